"""The folders that runs and exports are written to, and files in them that are always whole."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from rnnapps.errors import UserError, reason


def next_version(directory: Path) -> Path:
    """Returns `directory/<n>` for the smallest integer above those that are there."""
    taken = [int(child.name) for child in directory.glob("*") if child.name.isdecimal()]
    return directory / str(max(taken, default=0) + 1)


def task_of(version: Path) -> str:
    """Reads which task an exported version is of: the heading of its model card.

    Args:
        version: the version's folder, whatever the folder around it is called.
    """
    file = version / "MODEL_CARD.md"
    with reading(file):
        card = file.read_text(encoding="utf-8")
    return card.partition("\n")[0].removeprefix("# ").strip()


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
    """Gives a path beside a file to write to; what was written there then takes the file's place.

    Until it is whole and on disk the old file stays, whatever happens to the process.

    Args:
        file: the file to write; its folder exists.

    Example:
    >>> with replacing(Path("metrics.json")) as beside:
    ...     _ = beside.write_text("{}")
    >>> Path("metrics.json").read_text()
    '{}'
    """
    beside = file.with_name(f"writing-{file.name}")
    try:
        yield beside
        with beside.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(beside, file)
    finally:
        beside.unlink(missing_ok=True)


@contextlib.contextmanager
def reading(place: Path) -> Iterator[None]:
    """Says that a file or folder is damaged where what was written to it cannot be read back.

    Args:
        place: what is read in this context, and in nothing else.

    Raises:
        UserError: in the place of whatever is raised in the context.

    Example:
    >>> with reading(Path("metrics.json")):
    ...     int("many")
    Traceback (most recent call last):
    rnnapps.errors.UserError: metrics.json is damaged: ValueError: invalid literal for int() \
with base 10: 'many'
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{place} is damaged: {reason(error)}") from error


def write_text(file: Path, text: str) -> None:
    """Writes a whole text file in the place of the old one."""
    with replacing(file) as beside:
        beside.write_text(text, encoding="utf-8")
