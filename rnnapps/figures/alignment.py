"""Where a decoder looked when it wrote each of its tokens."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

# So many tokens have room for their names.
_MOST_NAMED = 80


def alignment(weights: np.ndarray, source: Sequence[str], target: Sequence[str]) -> Figure:
    """Draws the attention's weights, the darker the larger.

    Args:
        weights: float array of shape `[target, source]`.
        source: the tokens that were read.
        target: the tokens that were written.
    """
    width = 1.5 + 0.32 * min(len(source), _MOST_NAMED)
    height = 1.3 + 0.32 * min(len(target), _MOST_NAMED)
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.imshow(weights, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    for axis, tokens in ((axes.xaxis, source), (axes.yaxis, target)):
        step = -(-len(tokens) // _MOST_NAMED)
        # A token may be "$", which begins no formula.
        axis.set_ticks(range(0, len(tokens), step), tokens[::step], parse_math=False)
    axes.tick_params(
        axis="x", rotation=90, top=True, labeltop=True, bottom=False, labelbottom=False
    )
    return figure
