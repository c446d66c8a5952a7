"""A text in the colours of a unit that reads it (Karpathy, Johnson & Fei-Fei 2015)."""

import html
from collections.abc import Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, to_hex
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


def coloured_html(text: str, values: np.ndarray) -> str:
    """Writes what `coloured_text` draws as a piece of HTML that stands for itself.

    Args:
        text: the text.
        values: float array `[characters]`.

    Returns:
        A `<pre>` element; each character shows its value where the pointer rests on it.

    Raises:
        ValueError: there is not one value for each character.
    """
    colours, _ = _colours(text, values)
    spans = [
        character
        if character == "\n"
        else f'<span style="background:{to_hex(colour)};color:{_ink(colour)}" '
        f'title="{value:.2f}">{html.escape(character)}</span>'
        for character, colour, value in zip(text, colours, values, strict=True)
    ]
    return f"<pre>{''.join(spans)}</pre>\n"


def _colours(text: str, values: Sequence[float] | np.ndarray):
    """Returns a colour for each value, and the value at the end of the scale."""
    values = np.asarray(values, float)
    if values.shape != (len(text),):
        raise ValueError(
            f"`values` must hold one number for each of {len(text)} characters. "
            f"Received: shape {values.shape}"
        )
    most = float(np.abs(values).max(initial=0)) or 1.0
    return colormaps[_MAP](Normalize(-most, most)(values)), most


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
