"""The folders that runs and exports are written to."""

import os
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
