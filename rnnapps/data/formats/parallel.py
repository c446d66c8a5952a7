"""Sentences and their translations: a table with a pair a row, or two files aligned line by line.

Both are tables: in a pair of files each file is a column, counted from 1 in the order given and
named by its suffix, so that `train.en,train.de` has the columns `en` and `de`.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Sequence

from rnnapps.data.formats.rows import (
    BadRow,
    Row,
    decode,
    listed,
    read_lines,
    read_text_lines,
    require_file,
)
from rnnapps.data.formats.tabular import column_position, columns_held
from rnnapps.errors import UserError

SIDES = ("source", "target")


def read_parallel(
    path: str | os.PathLike, source_column: str = "1", target_column: str = "2"
) -> Iterator[Row]:
    r"""Streams sentences and their translations.

    In a TSV file only `\n` ends a row and only a tab a field, quotes are plain text, and columns
    that are not asked for do not count. Where a column is named, its first line is a header.

    Of two aligned files, lines that are blank in both are left out; the files may be longer than
    memory. A folder's two files of a part come in the order of their names: name the columns.

    Args:
        path: A TSV file, or the pair of aligned files `SRC,TGT`; each also `.gz`.
        source_column: The column of the sentence: its number, from 1, or its name.
        target_column: The same for its translation.

    Yields:
        `{"source": "Good morning.", "target": "Buongiorno."}`; or a `BadRow` for a row that lacks
        a column or has an empty side, and for a line that is not UTF-8 or holds a NUL byte.

    Raises:
        UserError: A file is missing, damaged or without pairs; there are more than two; there is no
            such column; of two files, one has more lines.
    """
    paths = listed(os.fspath(path))
    columns = [_number_or_name(str(column)) for column in (source_column, target_column)]
    if columns[0] == columns[1] or 0 in columns:
        raise UserError(
            "sentences and translations are in two different columns, which are counted from 1. "
            f"Received: source_column={source_column}, target_column={target_column}"
        )
    if len(paths) > 2:
        raise UserError(
            f"sentence pairs are in one TSV file or a pair of files SRC,TGT. Received: "
            f"{len(paths)} files, {path}"
        )
    for file in paths:
        require_file(file)
        if os.path.isdir(file):
            raise UserError(f"{file} is a folder without train and one of dev and test: name files")
    return _read_table(paths[0], columns) if len(paths) == 1 else _read_aligned(paths, columns)


def from_rows(rows: Callable[[], Iterator[Row]], place: str) -> Iterator[Row]:
    """Streams the pairs of a TFDS data set as `read_parallel` does those of files.

    Args:
        rows: Starts reading pairs.
        place: What they are, for the errors: `"tfds:NAME SPLIT"`.

    Yields:
        Pairs, or a `BadRow` for one with an empty side; those that are blank on both are left out.
    """
    for number, row in enumerate(rows(), 1):
        if isinstance(row, BadRow):
            yield row
        elif any(side.strip() for side in row.values()):
            yield _pair([place] * 2, number, [row[side] for side in SIDES])


def _read_table(path: str, columns: Sequence[int | str]) -> Iterator[Row]:
    lines, header = read_text_lines(path), []
    line, text, reason = 0, "", None
    if any(isinstance(column, str) for column in columns):
        line, text, reason = next(lines, (0, "", None))
        if line == 0:
            raise UserError(f"{path} is empty")
        if reason:
            raise UserError(str(BadRow(path, line, reason)))
        header = [name.strip() for name in text.split("\t")]
    advice = "\nIf its first line is no header, give the columns' numbers"
    positions = [_position(path, column, header, advice) for column in columns]
    needed, num_headers = max(positions) + 1, line
    for line, text, reason in lines:
        cells = text.split("\t")
        if not reason and len(cells) < needed:
            held = columns_held(cells) if text.strip() else "a blank line"
            reason = f"{held} where {needed} columns are needed"
        if reason:
            yield BadRow(path, line, reason)
        else:
            yield _pair([path] * 2, line, [cells[position] for position in positions])
    if line == num_headers:
        raise UserError(f"{path} holds no pairs" if num_headers else f"{path} is empty")


def _read_aligned(paths: Sequence[str], columns: Sequence[int | str]) -> Iterator[Row]:
    names = [os.path.splitext(path.removesuffix(".gz"))[1].removeprefix(".") for path in paths]
    files = ",".join(paths)
    positions = [_position(files, column, names) for column in columns]
    if max(positions) > 1:
        raise UserError(
            f"{files} are two columns. Received: columns {' and '.join(map(str, columns))}"
        )
    paths = [paths[position] for position in positions]
    streams = [_decoded(path) for path in paths]
    has_pairs, lengths = False, [0, 0]
    for line, sides in enumerate(itertools.zip_longest(*streams), 1):
        lengths = [n + (side is not None) for n, side in zip(lengths, sides, strict=True)]
        texts, reasons = zip(*(side or ("", None) for side in sides), strict=True)
        if not any(text.strip() for text in texts) and not any(reasons):
            continue
        if None in sides:
            # One file has ended before the other's last sentence.
            lengths = [n + sum(1 for _ in rest) for n, rest in zip(lengths, streams, strict=True)]
            raise UserError(
                f"aligned files must have as many lines. Received: {paths[0]} with {lengths[0]:,}, "
                f"{paths[1]} with {lengths[1]:,}"
            )
        has_pairs = True
        faults = zip(paths, reasons, strict=True)
        bad = next((BadRow(path, line, reason) for path, reason in faults if reason), None)
        yield bad or _pair(paths, line, texts)
    if not has_pairs:
        raise UserError(f"{paths[0]} and {paths[1]} hold no pairs")


def _decoded(path: str) -> Iterator[tuple[str, str | None]]:
    for _, raw in read_lines(path):
        yield decode(raw.removesuffix(b"\n").removesuffix(b"\r"))


def _pair(paths: Sequence[str], line: int, texts: Sequence[str]) -> Row:
    for side, path, text in zip(SIDES, paths, texts, strict=True):
        if not text.strip():
            return BadRow(path, line, f"an empty {side}")
    return dict(zip(SIDES, texts, strict=True))


def _position(path: str, column: int | str, names: Sequence[str], advice: str = "") -> int:
    if isinstance(column, int):
        return column - 1
    return column_position(path, column, names, advice)


def _number_or_name(column: str) -> int | str:
    return int(column) if column.isascii() and column.isdigit() else column
