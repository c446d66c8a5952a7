"""A few quantities side by side."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from rnnapps.figures.styles import STYLES

_HATCHES = ("", "//", "..", "xx", "--", "\\\\", "oo")


def bars(
    values: Mapping[str, np.ndarray],
    groups: Sequence[str],
    ylabel: str,
    ylim: tuple[float, float] | None = None,
    levels: Mapping[str, float] | None = None,
) -> Figure:
    """Draws groups of bars, one of each colour and hatch in each group.

    Args:
        values: the heights by name: `[groups]`, or `[repeats, groups]`, of which the mean is drawn
            with a line from the smallest to the largest.
        groups: the names of the groups.
        ylabel: what the heights are, with their unit.
        ylim: the ends of the axis of heights. Default: `None`, chosen by matplotlib.
        levels: heights that are drawn as dotted lines, by name, such as chance. Default: none.
    """
    width = 0.8 / len(values)
    figure = Figure(figsize=(2 + 0.45 * len(values) * len(groups), 3.6), layout="constrained")
    axes = figure.subplots()
    for number, (name, heights) in enumerate(values.items()):
        repeats = np.atleast_2d(np.asarray(heights, float))  # [repeats, groups]
        mean = repeats.mean(axis=0)  # [groups]
        spread = None
        if len(repeats) > 1:
            spread = [mean - repeats.min(axis=0), repeats.max(axis=0) - mean]
        axes.bar(
            np.arange(len(groups)) + (number - (len(values) - 1) / 2) * width,
            mean,
            width,
            yerr=spread,
            capsize=3,
            label=name,
            color=STYLES[number % len(STYLES)]["color"],
            hatch=_HATCHES[number % len(_HATCHES)],
            edgecolor="white",
            ecolor="black",
        )
    for name, level in (levels or {}).items():
        axes.axhline(level, color="0.4", linestyle=":", label=name)
    axes.set_xticks(range(len(groups)), groups, parse_math=False)
    axes.set_ylabel(ylabel)
    if ylim is not None:
        axes.set_ylim(ylim)
    figure.legend(loc="outside upper center", ncols=len(values) + 1, fontsize=8)
    return figure
