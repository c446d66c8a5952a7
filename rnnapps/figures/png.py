"""A figure as the content of a PNG file."""

import io
import warnings

from matplotlib.figure import Figure


def png(figure: Figure) -> bytes:
    """Draws a figure; a letter that the font does not have is an empty box, without a warning."""
    content = io.BytesIO()
    with warnings.catch_warnings(action="ignore"):
        figure.savefig(content, dpi=120, format="png")
    return content.getvalue()
