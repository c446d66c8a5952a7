"""What is like what: the tree of a hierarchical clustering."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from scipy.cluster import hierarchy


def tree(
    linkage: np.ndarray,
    names: Sequence[str],
    groups: Sequence[str] | np.ndarray,
    xlabel: str = "distance",
) -> Figure:
    """Draws a dendrogram, its leaves with their group behind them.

    Args:
        linkage: float array `[leaves - 1, 4]`, as `scipy.cluster.hierarchy.linkage` returns it.
        names: the leaves' names.
        groups: the group of each leaf, such as the class of a word.
        xlabel: what the distance is. Default: `"distance"`.
    """
    figure = Figure(figsize=(6, 0.6 + 0.19 * len(names)), layout="constrained")
    axes = figure.subplots()
    labels = [f"{name}  {group}" for name, group in zip(names, groups, strict=True)]
    hierarchy.dendrogram(
        linkage,
        labels=labels,
        orientation="left",
        ax=axes,
        color_threshold=0,
        above_threshold_color="#0072B2",
    )
    axes.tick_params(axis="y", labelsize=8)
    axes.set_xlabel(xlabel)
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    return figure
