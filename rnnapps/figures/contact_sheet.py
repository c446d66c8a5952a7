"""Images, and what was written about them."""

import textwrap
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

_COLUMNS = 4
_CHARACTERS = 44
# In inches: an image's cell, of which it fills most, and a line of text.
_SIDE, _FILLED, _LINE = 3.0, 0.96, 0.155


def contact_sheet(
    images: Sequence[np.ndarray],
    written: Sequence[str],
    references: Sequence[Sequence[str]],
) -> Figure:
    """Draws images with the caption that was written in bold, and the references below it.

    Args:
        images: uint8 arrays of shape `[height, width, 3]`, of any sizes.
        written: a caption for each.
        references: what people wrote about each; no more than there is room for should be given.
    """
    columns = max(min(_COLUMNS, len(images)), 1)
    rows = max(-(-len(images) // columns), 1)
    own = [_wrapped([caption]) for caption in written]
    others = [_wrapped(captions) for captions in references]
    lines = max((len(a) + len(b) for a, b in zip(own, others, strict=True)), default=0)
    width, height = columns * _SIDE, rows * (_SIDE + (lines + 1) * _LINE)
    figure = Figure(figsize=(width, height))
    for place, (image, bold, plain) in enumerate(zip(images, own, others, strict=True)):
        row, column = divmod(place, columns)
        left, bottom = (column + (1 - _FILLED) / 2) * _SIDE, height - _SIDE - row * height / rows
        axes = figure.add_axes(
            (left / width, bottom / height, _FILLED * _SIDE / width, _FILLED * _SIDE / height)
        )
        axes.set_axis_off()
        axes.imshow(image)
        # A caption may hold "$", which begins no formula.
        for number, line in enumerate([*bold, *plain]):
            axes.annotate(
                line,
                (0, 0),
                xytext=(0, -72 * _LINE * (number + 1)),
                xycoords="axes fraction",
                textcoords="offset points",
                fontsize=8,
                fontweight="bold" if number < len(bold) else "normal",
                color="black" if number < len(bold) else "0.35",
                parse_math=False,
            )
    return figure


def _wrapped(captions: Sequence[str]) -> list[str]:
    """Returns the lines of captions; of none or an empty one, one line that says so."""
    return [
        line
        for caption in captions
        for line in textwrap.wrap(caption, _CHARACTERS, subsequent_indent="  ") or ["(nothing)"]
    ]
