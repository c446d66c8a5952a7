"""A text in the colours of a unit that reads it (Karpathy, Johnson & Fei-Fei 2015)."""

import html
import itertools
from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

_COLUMNS = 72
_MAP = "RdBu_r"
# In inches: a character, and a line.
_CHARACTER, _LINE = 0.095, 0.2


def coloured_text(text: str, values: np.ndarray, label: str = "value of the unit") -> Figure:
    """Draws each character of a text on the colour of its value: blue below 0, red above.

    Args:
        text: the text; lines of more than 72 characters go on below.
        values: float array `[characters]`.
        label: what the values are, beside the scale.

    Raises:
        ValueError: there is not one value for each character.
    """
    colours, most = _colours(text, values)
    lines = _lines(text)
    width = max((len(line) for line in lines), default=1) or 1
    across, down = width * _CHARACTER, len(lines) * _LINE
    figure = Figure(figsize=(across + 1.2, max(down, 1.2) + 0.1))
    size = figure.get_size_inches()
    axes = figure.add_axes((0.02, 0.02, across / size[0], 0.96))
    axes.set_axis_off()
    axes.set(xlim=(0, width), ylim=(max(len(lines), 1.2 / _LINE), 0))
    for row, line in enumerate(lines):
        for column, place in enumerate(line):
            axes.add_patch(Rectangle((column, row), 1, 1, color=colours[place], linewidth=0))
            axes.text(
                column + 0.5,
                row + 0.55,
                text[place],
                ha="center",
                va="center",
                family="monospace",
                fontsize=9,
                color=_ink(colours[place]),
                parse_math=False,
            )
    bar = figure.add_axes((across / size[0] + 0.25 / size[0], 0.1, 0.12 / size[0], 0.8))
    figure.colorbar(ScalarMappable(Normalize(-most, most), _MAP), cax=bar, label=label)
    return figure


def coloured_html(
    text: str, values: np.ndarray, least_scale: float = 0.0, colours: str = _MAP
) -> str:
    """Writes what `coloured_text` draws as a piece of HTML that stands for itself.

    Args:
        text: the text.
        values: float array `[characters]`.
        least_scale: the smallest value at the end of the scale, so that where all values are
            small, all colours are pale. Default: 0, so that the largest has the strongest.
        colours: matplotlib's name of the colours, from below 0 to above. Default: `"RdBu_r"`.

    Returns:
        A `<pre>` element; each character shows its value where the pointer rests on it.

    Raises:
        ValueError: there is not one value for each character.
    """
    shades, _ = _colours(text, values, least_scale, colours)
    runs = itertools.groupby(
        zip(text, map(to_hex, shades), values, strict=True),
        # What is alike in colour and value is marked once; a line break has neither.
        key=lambda one: one[0] == "\n" or one[1:],
    )
    parts = []
    for kind, run in runs:
        inside = html.escape("".join(character for character, *_ in run))
        if kind is not True:
            shade, value = kind
            ink = _ink(to_rgb(shade))
            style = f"background:{shade};color:{ink}"
            inside = f'<span style="{style}" title="{value:.2f}">{inside}</span>'
        parts.append(inside)
    return f"<pre>{''.join(parts)}</pre>\n"


def _colours(
    text: str,
    values: Sequence[float] | np.ndarray,
    least_scale: float = 0.0,
    colours: str = _MAP,
):
    """Returns a colour for each value, and the value at the end of the scale."""
    values = np.asarray(values, float)
    if values.shape != (len(text),):
        raise ValueError(
            f"`values` must hold one number for each of {len(text)} characters. "
            f"Received: shape {values.shape}"
        )
    most = max(float(np.abs(values).max(initial=0)), least_scale) or 1.0
    return colormaps[colours](Normalize(-most, most)(values)), most


def _ink(colour) -> str:
    """Returns the colour of a letter that can be read on another colour."""
    red, green, blue = colour[:3]
    return "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 0.5 else "black"


def _lines(text: str) -> list[list[int]]:
    """Returns the places of the characters that stand on each line, without the line breaks."""
    lines, line = [], []
    for place, character in enumerate(text):
        if character == "\n" or len(line) == _COLUMNS:
            lines.append(line)
            line = []
        if character != "\n":
            line.append(place)
    return [*lines, line] if line else lines
