"""Plain text as it is written: rows that put one behind the other are the file."""

import os
from collections.abc import Iterator

from rnnapps.data.formats.rows import (
    BYTE_ORDER_MARK,
    BadRow,
    Row,
    decode,
    listed,
    open_bytes,
    require_file,
)
from rnnapps.errors import UserError

LONGEST_ROW = 2**12  # bytes


def read_plain_text(path: str | os.PathLike) -> Iterator[Row]:
    r"""Streams the lines of a text, each with the line feed that ends it.

    A line end of Windows becomes a line feed. A line of more than 4 KiB comes in several rows, cut
    behind a blank where there is one, so that a file without line ends takes no more memory than
    another.

    Args:
        path: The file, also `.gz`, or a comma-separated list of files.

    Yields:
        `{"text": "a line\n"}`, or a `BadRow`.

    Raises:
        UserError: A file is missing, damaged or empty.
    """
    paths = listed(os.fspath(path))
    for part in paths:
        require_file(part)
        if os.path.isdir(part):
            raise UserError(f"{part} is a folder, and no text file")
    for part in paths:
        yield from _rows(part)


def _rows(path: str) -> Iterator[Row]:
    line, raw, is_empty = 1, b"", True
    with open_bytes(path) as handle:
        while piece := handle.readline(LONGEST_ROW):
            goes_on = len(piece) == LONGEST_ROW and not piece.endswith(b"\n")
            if is_empty:
                piece, is_empty = piece.removeprefix(BYTE_ORDER_MARK), False
            raw += piece
            # A word, a character and a line end of Windows must not be cut in two.
            keep = 0
            if goes_on:
                behind = len(raw) - 1 - raw.rfind(b" ") if b" " in raw else len(raw)
                keep = behind if 0 < behind < LONGEST_ROW // 2 else _unfinished(raw)
            whole, raw = raw[: len(raw) - keep], raw[len(raw) - keep :]
            yield _row(path, line, whole)
            line += whole.endswith(b"\n")
    if raw:
        yield _row(path, line, raw)
    if is_empty:
        raise UserError(f"{path} is empty")


def _unfinished(raw: bytes) -> int:
    """The number of bytes at the end that may be the beginning of something longer."""
    if raw.endswith(b"\r"):
        return 1
    for size in range(1, min(4, len(raw) + 1)):
        if raw[-size] >= 0xC0:
            return size
        if raw[-size] < 0x80:
            break
    return 0


def _row(path: str, line: int, raw: bytes) -> Row:
    text, reason = decode(raw.replace(b"\r\n", b"\n"))
    return BadRow(path, line, reason) if reason else {"text": text}
