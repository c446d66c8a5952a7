"""Where on an image a decoder looked when it wrote each of its words."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

_COLUMNS = 5
_MOST_WORDS = 40


def image_attention(image: np.ndarray, words: Sequence[str], weights: np.ndarray) -> Figure:
    """Draws an image, and once more for each word, the brighter the more it was looked at there.

    The weights are drawn between their grid's places without steps (Xu et al. 2015). All words
    share one scale, whose brightest is the largest weight.

    Args:
        image: uint8 array of shape `[height, width, 3]`, as the encoder saw it.
        words: what was written; of more than 40 the first are drawn.
        weights: float array of shape `[words, rows, columns]`.
    """
    words = words[:_MOST_WORDS]
    panels = len(words) + 1
    columns = min(_COLUMNS, panels)
    rows = -(-panels // columns)
    height, width = image.shape[:2]
    shape = np.clip(height / width, 0.3, 3)
    figure = Figure(figsize=(2.2 * columns, rows * (2.2 * shape + 0.3)), layout="constrained")
    subplots = figure.subplots(rows, columns, squeeze=False).flatten()
    grey = image.mean(axis=-1)  # [height, width]
    brightest = max(float(np.max(weights, initial=0)), 1e-9)
    for axes in subplots:
        axes.set_axis_off()
    subplots[0].imshow(image)
    for axes, word, looked in zip(subplots[1:], words, weights, strict=False):
        axes.imshow(grey, cmap="gray", vmin=0, vmax=255)
        axes.imshow(
            looked,
            cmap="inferno",
            vmin=0,
            vmax=brightest,
            alpha=0.6,
            interpolation="bilinear",
            extent=(-0.5, width - 0.5, height - 0.5, -0.5),
        )
        # A word may be "$", which begins no formula.
        axes.set_title(word, fontsize=10, parse_math=False)
    return figure
