"""The picture of where a decoder looked, which `predict` draws of one input."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from etils import epy

from rnnapps.errors import UserError

with epy.lazy_imports():
    from matplotlib import figure

    from rnnapps.figures import png


class DrawnAttention:
    """Sees to it that only one input is drawn, in however many batches they come.

    Args:
        of: what an input is, for the messages.

    Example:
    >>> drawn = DrawnAttention("image")
    >>> drawn.require_one(["dog.jpg", "cat.jpg"], served=None)
    Traceback (most recent call last):
    rnnapps.errors.UserError: attention is drawn for one image. Received: several
    >>> drawn.save(figure.Figure(), "attention.png")
    """

    def __init__(self, of: str):
        self._of = of
        self._has_begun = False

    def require_one(self, inputs: Sequence[str], served: Any) -> None:
        """Raises UserError if other inputs come, or came before, or the model has no attention."""
        if len(inputs) > 1 or self._has_begun:
            raise UserError(f"attention is drawn for one {self._of}. Received: several")
        if "attention" not in served.signatures:
            raise UserError("the model has no attention to draw. Received: attention=none")
        self._has_begun = True

    def save(self, picture: "figure.Figure", file: str) -> None:
        """Writes a PNG file, or raises UserError where that cannot be done."""
        try:
            Path(file).write_bytes(png.png(picture))
        except OSError as error:
            raise UserError(f"cannot write {file}: {error.strerror}") from error
