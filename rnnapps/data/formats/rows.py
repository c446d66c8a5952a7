"""The ground every reader stands on: bytes to lines to rows, and the rows that cannot be read."""

import functools
import gzip
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, TypeAlias

from rnnapps.data.printable import printable
from rnnapps.errors import UserError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

LARGEST_ROW = 2**26
"""The bytes of the longest row: a text of ten million words. What goes on for longer is no file of
rows, or unpacks to far more than it seems, and is refused before it fills the memory."""

_LONGEST_REASON = 300


@dataclass(frozen=True)
class BadRow:
    """A row that could not be read, yielded in its place so that the caller stops or goes on.

    Attributes:
        path: The file, as the user named it.
        line: The line, counted from 1, where the row starts; None for what has no lines.
        reason: What is wrong with it, in a few words.
    """

    path: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        """Names the place as compilers do, on one line: `FILE:LINE: REASON`."""
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return printable(f"{place}: {shortened(self.reason, _LONGEST_REASON)}")


# A field's name says whether it is a text or bytes. What is costly to read, or large, is a function
# that reads it, `() -> bytes | BadRow`; not every pass needs it.
Field: TypeAlias = Any
Row: TypeAlias = dict[str, Field] | BadRow


def whole(row: Row) -> dict[str, str | bytes] | BadRow:
    """Reads those fields of a row that are still to be read.

    Args:
        row: A row.

    Returns:
        The row with nothing but text and bytes; or the `BadRow` that one of them turned out to be.
    """
    if isinstance(row, BadRow):
        return row
    values = {name: value() if callable(value) else value for name, value in row.items()}
    return next((value for value in values.values() if isinstance(value, BadRow)), values)


@contextmanager
def open_bytes(path: str) -> Iterator[IO[bytes]]:
    """Opens a file, through gzip when it is named `.gz`; what fails becomes a `UserError`.

    Args:
        path: The file.

    Yields:
        A binary handle.
    """
    try:
        opened: Any = gzip.open if path.endswith(".gz") else open
        with opened(path, "rb") as handle:
            yield handle
    except FileNotFoundError:
        raise UserError(f"no such file or folder: {printable(path)}") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(
            f"{printable(path)} is not a whole gzip file, fetch it again: {error}"
        ) from None
    except OSError as error:
        raise UserError(f"{printable(path)} cannot be read: {error.strerror or error}") from None


def read_lines(path: str) -> Iterator[tuple[int, bytes]]:
    r"""Streams a file's lines as bytes; only `\n` ends one.

    Args:
        path: The file.

    Yields:
        The line's number, from 1, and its bytes with their line end, without byte-order mark.

    Raises:
        UserError: The file is missing or damaged, or a line is longer than `LARGEST_ROW`.
    """
    with open_bytes(path) as handle:
        yield from numbered_lines(handle, path)


def numbered_lines(handle: IO[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """Streams what `read_lines` does of a file that is open; `name` is what errors call it."""
    lines = iter(functools.partial(handle.readline, LARGEST_ROW + 1), b"")
    for number, line in enumerate(lines, 1):
        if len(line) > LARGEST_ROW:
            raise UserError(f"{name}:{number}: a line of more than {LARGEST_ROW:,} bytes")
        yield number, line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line


def decode(raw: bytes) -> tuple[str, str | None]:
    """Decodes UTF-8 text and says what is wrong with it, if anything is.

    Args:
        raw: The bytes.

    Returns:
        The text (with replacement characters where it is broken) and the reason why it is bad,
        or None.
    """
    try:
        text, reason = raw.decode("utf-8"), None
    except UnicodeDecodeError as error:
        text = raw.decode("utf-8", errors="replace")
        reason = f"not UTF-8 text (byte 0x{raw[error.start]:02x})"
    return text, "a NUL byte in the text" if b"\0" in raw else reason


def read_text_lines(path: str) -> Iterator[tuple[int, str, str | None]]:
    r"""Streams a file's lines as text; blank lines at its end do not count.

    Args:
        path: The file.

    Yields:
        The line's number, its text without line end (`\n` or `\r\n`), and the reason why it is
        bad or None.
    """
    blank = range(0)
    for number, raw in read_lines(path):
        text, reason = decode(raw.removesuffix(b"\n").removesuffix(b"\r"))
        if not text:
            blank = range(blank.start if blank else number, number + 1)
            continue
        for missed in blank:
            yield missed, "", None
        blank = range(0)
        yield number, text, reason


def read_document(path: str) -> tuple[str, BadRow | None]:
    """Reads a small file as one text, without the line ends that close it.

    Args:
        path: The file.

    Returns:
        The text, and what is wrong with it (naming the line) or None.

    Raises:
        UserError: The file is missing or damaged.
    """
    require_file(path)
    with open_bytes(path) as handle:
        raw = handle.read(LARGEST_ROW + 1)
    if len(raw) > LARGEST_ROW:
        return "", BadRow(path, None, f"a text of more than {LARGEST_ROW:,} bytes")
    raw = raw.removeprefix(BYTE_ORDER_MARK)
    text, reason = decode(raw)
    if reason is not None:
        line = next(n for n, part in enumerate(raw.split(b"\n"), 1) if decode(part)[1])
        return text, BadRow(path, line, reason)
    return text.rstrip("\r\n"), None


def join_items(items: Iterable[str]) -> str:
    """Makes a sequence one field: its items joined by line feeds.

    Args:
        items: Texts that are not blank and hold no line feed.

    Returns:
        The items, one a line without a last line end.

    Raises:
        ValueError: An item cannot stand on a line of its own.
    """
    items = list(items)
    for position, item in enumerate(items):
        if not item.strip():
            raise ValueError(f"an empty item (number {position + 1} of {len(items)})")
        if "\n" in item:
            raise ValueError(f"a line feed in the item {item!r}")
    return "\n".join(items)


def listed(path: str) -> list[str]:
    """Takes a comma-separated list of files apart.

    Args:
        path: The list, or one path; a path that exists may hold commas.

    Returns:
        The files; `[path]` where it is one.
    """
    if "," not in path or os.path.exists(path):
        return [path]
    return [part.strip() for part in path.split(",") if part.strip()]


def require_file(path: str) -> None:
    """Raises a `UserError` unless there is a file or folder of that name.

    A pipe or a device is neither: data is read more than once, and has an end.

    Args:
        path: The file or folder.
    """
    try:
        kind = os.stat(path).st_mode
    except (OSError, ValueError):
        raise UserError(f"no such file or folder: {printable(path)}") from None
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        raise UserError(f"{printable(path)} is a pipe or a device: write its content to a file")


def shortened(text: str, length: int) -> str:
    """Leaves out the end of a text that is longer than `length` characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"
