"""Which classes are taken for which."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

_MOST_CLASSES = 25


def confusion(counts: np.ndarray, names: Sequence[str]) -> Figure:
    """Draws a confusion matrix, coloured by the share of each true class.

    Of more than 25 classes it shows those with the most errors.

    Args:
        counts: int array of shape `[classes, classes]`; rows are the true classes.
        names: the class names.
    """
    errors = counts.sum(axis=0) + counts.sum(axis=1) - 2 * counts.diagonal()  # [classes]
    shown = np.sort(np.argsort(-errors, kind="stable")[:_MOST_CLASSES])
    counts, names = counts[np.ix_(shown, shown)], [names[i] for i in shown]
    size = 2.6 + 0.6 * len(names)
    figure = Figure(figsize=(size + 0.8, size), layout="constrained")
    axes = figure.subplots()
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)  # [classes, classes]
    image = axes.imshow(shares, vmin=0, vmax=1, cmap="Blues")
    for (row, column), count in np.ndenumerate(counts):
        colour = "white" if shares[row, column] > 0.5 else "black"
        axes.text(column, row, str(count), ha="center", va="center", color=colour)
    # A class may be called "$a$", which is no formula.
    axes.set_xticks(range(len(names)), names, parse_math=False, rotation=30, ha="right")
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set(xlabel="predicted", ylabel="true")
    figure.colorbar(image, label="share of the true class")
    return figure
