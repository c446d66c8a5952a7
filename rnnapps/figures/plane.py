"""Points in the plane, with what they are beside some of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from rnnapps.figures.styles import STYLES


def plane(
    points: np.ndarray,
    groups: Sequence[str],
    named: Sequence[tuple[int, str]] = (),
    axis_labels: tuple[str, str] = ("first component", "second component"),
) -> Figure:
    """Draws a point for each vector, in the colour and shape of its group.

    Args:
        points: float array `[points, 2]`.
        groups: the group of each point.
        named: the indices of points that have a text beside them, and the texts.
        axis_labels: what the axes are. Default: `"first component"` and `"second component"`.
    """
    figure = Figure(figsize=(7, 5.2), layout="constrained")
    axes = figure.subplots()
    groups = np.array(groups)
    for number, group in enumerate(dict.fromkeys(groups.tolist())):
        style: dict[str, Any] = {**STYLES[number % len(STYLES)], "linestyle": "none"}
        axes.plot(*points[groups == group].T, **style, markersize=4, label=group, alpha=0.6)
    for index, text in named:
        axes.annotate(
            text,
            points[index],
            xytext=(4, 4),
            textcoords="offset points",
            fontsize=7,
            parse_math=False,
        )
    axes.set(xlabel=axis_labels[0], ylabel=axis_labels[1])
    axes.legend(fontsize=8)
    return figure
