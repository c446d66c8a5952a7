"""Quantities over something that grows: steps, gaps, orders, sizes."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from rnnapps.figures.styles import STYLES

_COLUMNS = 3
_MOST_MARKERS = 12
_MOST_BARS = 8


@dataclasses.dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Args:
        x: what it is drawn over, `[points]`: numbers, or names.
        lines: the values by name: `[points]`, or `[repeats, points]`, of which the mean is drawn
            with a bar (over many points, a band) from the smallest to the largest.
        xlabel: the name of x, with its unit.
        ylabel: the name of the values, with their unit.
        title: what stands above. Default: nothing.
        xscale: `"linear"` or `"log"`. Default: `"linear"`.
        yscale: `"linear"` or `"log"`. Default: `"linear"`.
        ylim: the ends of the axis of values. Default: `None`, chosen by matplotlib.
        levels: values that are drawn as dotted lines from side to side, by name, such as chance.
    """

    x: Sequence | np.ndarray
    lines: Mapping[str, Sequence | np.ndarray]
    xlabel: str
    ylabel: str
    title: str = ""
    xscale: str = "linear"
    yscale: str = "linear"
    ylim: tuple[float, float] | None = None
    levels: Mapping[str, float] = dataclasses.field(default_factory=dict)


def lines(panels: Sequence[Panel]) -> Figure:
    """Draws panels of lines, up to three side by side, each line in its own colour and dash.

    Args:
        panels: what is drawn, row by row. A name has the same style in all of them.
    """
    columns = min(len(panels), _COLUMNS)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(4.5 * columns, 3.6 * rows), layout="constrained")
    styles = _styles(panels)
    subplots = figure.subplots(rows, columns, squeeze=False).flatten()
    for axes in subplots[len(panels) :]:
        axes.set_visible(False)
    for axes, panel in zip(subplots, panels, strict=False):
        _draw(axes, panel, styles)
    return figure


def _styles(panels: Sequence[Panel]) -> dict[str, dict[str, Any]]:
    """Gives each name a style: the first that no other name of its panel has."""
    given = {}
    for panel in panels:
        free = [i for i in range(len(STYLES)) if i not in map(given.get, panel.lines)]
        for name in panel.lines:
            if name not in given:
                given[name] = free.pop(0) if free else len(given) % len(STYLES)
    return {name: STYLES[i] for name, i in given.items()}


def _draw(axes: Axes, panel: Panel, styles: Mapping[str, Mapping[str, Any]]):
    named = isinstance(panel.x[0], str)
    x = range(len(panel.x)) if named else panel.x
    every = max(-(-len(panel.x) // _MOST_MARKERS), 1)
    for number, (name, values) in enumerate(panel.lines.items()):
        values = np.asarray(values, float)
        repeats = np.atleast_2d(values)  # [repeats, points]
        mean = repeats.mean(axis=0)  # [points]
        spread = [mean - repeats.min(axis=0), repeats.max(axis=0) - mean]  # [points] each
        is_band = values.ndim == 2 and len(panel.x) > _MOST_BARS
        if is_band:
            colour = styles[name]["color"]
            axes.fill_between(x, mean - spread[0], mean + spread[1], color=colour, alpha=0.15)
        axes.errorbar(
            x,
            mean,
            None if is_band or values.ndim == 1 else spread,
            label=name,
            capsize=3,
            markersize=4.5,
            # So that markers of lines that lie on each other do not.
            markevery=(number * every // max(len(panel.lines), 1), every),
            **styles[name],
        )
    for name, level in panel.levels.items():
        axes.axhline(level, color="0.4", linestyle=":", linewidth=1.2, label=name)
    axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel, title=panel.title)
    axes.set(xscale=panel.xscale, yscale=panel.yscale)
    if named:
        axes.set_xticks(x, panel.x, parse_math=False)
    if panel.ylim is not None:
        axes.set_ylim(panel.ylim)
    if panel.xscale == "log" and len(panel.x) <= _MOST_MARKERS:
        axes.set_xticks(panel.x, [f"{x:g}" for x in panel.x])
        axes.minorticks_off()
    low, high = axes.get_ylim()
    if panel.yscale == "log" and high < 1000 * low:
        # Numbers as they are read, where powers of ten are too few.
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(NullLocator())
    if len(panel.lines) + len(panel.levels) > 1:
        axes.legend(fontsize=8)
