"""The folders that runs and exports are written to."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from rnnapps.errors import UserError


def next_version(directory: Path) -> Path:
    """Returns `directory/<n>` for the smallest integer above those that are there."""
    taken = [int(child.name) for child in directory.glob("*") if child.name.isdecimal()]
    return directory / str(max(taken, default=0) + 1)


def require_writable(directory: Path) -> None:
    """Raises UserError where a folder could not be made or written, without making it."""
    existing = directory
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise UserError(f"cannot write to {directory}: {existing} is not a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(f"cannot write to {directory}: no permission to write to {existing}")


@contextlib.contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yields a path to write beside a file, and puts it in the file's place: whole, or not at all.

    Example:
        with replacing(Path("best.yaml")) as beside:
            beside.write_text("units: 64")
    """
    beside = file.with_name(f".{file.name}")
    yield beside
    beside.replace(file)
