r"""Rows with named columns: CSV, TSV and JSON lines.

The three readers are called alike: `fields` maps each field wanted to the column it comes from,
`columns` names the columns of a file that has no header, a field in `required` may not be blank.
"""

import csv
import json
from collections.abc import Collection, Iterator, Mapping, Sequence

from rnnapps.data.formats.rows import (
    LARGEST_ROW,
    BadRow,
    Row,
    decode,
    read_lines,
    read_text_lines,
    shortened,
)
from rnnapps.data.printable import printable
from rnnapps.errors import UserError

# How the csv module words its complaints, and how they read in a report.
CSV_REASONS = {
    "unexpected end of data": "a quote that opens in this row is never closed",
    "field larger than field limit": "a row is too long, its quote is perhaps never closed",
    "',' expected after": "a quote inside a quoted field must be doubled",
}


def read_csv(
    path: str,
    fields: Mapping[str, str],
    columns: Sequence[str] | None = None,
    required: Collection[str] = (),
) -> Iterator[Row]:
    r"""Streams a CSV file (RFC 4180): a quoted newline, comma or `\r` belongs to its field.

    Args:
        path: The file.
        fields: Field name to column name.
        columns: The columns' names where the file has no header.
        required: The fields that may not be blank.

    Yields:
        `{field: text}`, or a `BadRow`.

    Raises:
        UserError: The file is missing, damaged or empty, or lacks a column.
    """
    return _named(path, _csv_cells(path), fields, columns, required)


def read_tsv(
    path: str,
    fields: Mapping[str, str],
    columns: Sequence[str] | None = None,
    required: Collection[str] = (),
) -> Iterator[Row]:
    r"""Streams a TSV file: only `\n` ends a row and only a tab a field; quotes are plain text.

    Args:
        path: The file.
        fields: Field name to column name.
        columns: The columns' names where the file has no header.
        required: The fields that may not be blank.

    Yields:
        `{field: text}`, or a `BadRow`.

    Raises:
        UserError: The file is missing, damaged or empty, or lacks a column.
    """
    return _named(path, _tsv_cells(path), fields, columns, required)


def read_jsonl(
    path: str,
    fields: Mapping[str, str],
    columns: Sequence[str] | None = None,
    required: Collection[str] = (),
) -> Iterator[Row]:
    """Streams JSON lines, an object a line; numbers, true and false give their JSON text.

    Args:
        path: The file.
        fields: Field name to key.
        columns: Not for JSON lines, whose rows name their own columns.
        required: The fields that may not be blank.

    Yields:
        `{field: text}`, or a `BadRow`.

    Raises:
        UserError: The file is missing, damaged or empty, `columns` is given, or the first object
            lacks a key.
    """
    if columns:
        raise UserError(f"{path} names its own columns: leave out columns {','.join(columns)}")
    line, known = 0, False
    for line, text, reason in read_text_lines(path):
        try:
            row = None if reason else _json_object(text)
        except ValueError as error:
            row, reason = None, str(error)
        if row is None:
            yield BadRow(path, line, reason or "")
            continue
        for column in () if known else fields.values():
            column_position(path, column, list(row))
        known = True
        try:
            values = {field: _json_text(row, column) for field, column in fields.items()}
        except ValueError as error:
            yield BadRow(path, line, str(error))
            continue
        yield _checked(path, line, values, fields, required)
    if line == 0:
        raise UserError(f"{path} is empty")


def column_position(path: str, column: str, columns: Sequence[str], advice: str = "") -> int:
    """Finds a column by its name.

    Args:
        path: The file, for the error.
        column: The column's name.
        columns: The names of the file's columns.
        advice: What to try otherwise, for the error.

    Returns:
        The column's index.

    Raises:
        UserError: There is no such column, or more than one; it lists those there.
    """
    if columns.count(column) == 1:
        return columns.index(column)
    if column in columns:
        raise UserError(f"column {column!r} is there {columns.count(column)} times in {path}")
    # A file without header shows its first row here, which may be as long as a review.
    there = printable(", ".join(shortened(name, 30) for name in columns[:20]))
    raise UserError(
        f"no column {column!r} in {path}; its columns are: {there}"
        + (", …" if len(columns) > 20 else "")
        + advice
    )


def columns_held(cells: Sequence[str]) -> str:
    """Counts a row's columns in words.

    Args:
        cells: The row.

    Returns:
        `"1 column"`, `"2 columns"`, …
    """
    return "1 column" if len(cells) == 1 else f"{len(cells)} columns"


def _csv_cells(path: str) -> Iterator[tuple[int, list[str] | BadRow]]:
    csv.field_size_limit(max(csv.field_size_limit(), LARGEST_ROW))
    lines = _CsvLines(path)
    reader = csv.reader(lines, strict=True)
    blank = range(0)
    while True:
        start = lines.begin_row()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            cells = BadRow(path, start, _csv_reason(str(error), start, lines.number))
        if not cells:
            # Only what follows tells whether this blank line ends the file.
            blank = range(blank.start if blank else start, start + 1)
            continue
        for missed in blank:
            yield missed, [""]
        blank = range(0)
        if isinstance(cells, list):
            cells = lines.bad or [cell.replace("\0", "\r") for cell in cells]
        yield start, cells


class _CsvLines:
    """The lines that the csv module reads, with the number of the last one and the row's faults."""

    def __init__(self, path: str):
        self.number = 0
        self.bad: BadRow | None = None
        self._path = path
        self._lines = read_lines(path)
        self._size = 0

    def begin_row(self) -> int:
        """Forgets the row before; returns the number of the line that comes next."""
        self.bad, self._size = None, 0
        return self.number + 1

    def __iter__(self):
        return self

    def __next__(self) -> str:
        self.number, raw = next(self._lines)
        self._size += len(raw)
        if self._size > LARGEST_ROW:
            raise csv.Error("field larger than field limit")
        text, reason = decode(raw)
        if reason and self.bad is None:
            self.bad = BadRow(self._path, self.number, reason)
        # To the csv module "\r" ends a row. No sound text holds a NUL, so it can stand in.
        body = text.removesuffix("\n").removesuffix("\r")
        return body.replace("\r", "\0") + text[len(body) :]


def _csv_reason(error: str, start: int, end: int) -> str:
    for complaint, told in CSV_REASONS.items():
        if error.startswith(complaint):
            return told if start == end else f"{told} (read to line {end})"
    return error


def _tsv_cells(path: str) -> Iterator[tuple[int, list[str] | BadRow]]:
    for line, text, reason in read_text_lines(path):
        yield line, BadRow(path, line, reason) if reason else text.split("\t")


def _named(path, cells, fields, columns, required) -> Iterator[Row]:
    """Turns rows of cells into rows of fields."""
    advice = ""
    if not columns:
        columns = _header(path, cells)
        advice = "\nIf its first line is no header, name the columns with `columns`"
    positions = {
        field: column_position(path, column, columns, advice) for field, column in fields.items()
    }
    width, line = len(columns), 0
    for line, row in cells:
        if isinstance(row, BadRow):
            yield row
        elif len(row) != width:
            held = "a blank line" if row == [""] else columns_held(row)
            yield BadRow(path, line, f"{held} where {width} columns are needed")
        else:
            values = {field: row[position] for field, position in positions.items()}
            yield _checked(path, line, values, fields, required)
    if line == 0:
        raise UserError(f"{path} holds no rows")


def _header(path: str, cells: Iterator[tuple[int, list[str] | BadRow]]) -> list[str]:
    _, header = next(cells, (0, None))
    if header is None:
        raise UserError(f"{path} is empty")
    if isinstance(header, BadRow):
        raise UserError(str(header))
    return [name.strip() for name in header]


def _checked(path, line, values, fields, required) -> Row:
    for field in required:
        if not values[field].strip():
            return BadRow(path, line, f"no {fields[field]!r}")
    return values


def _json_object(text: str) -> dict:
    try:
        # Numbers stay as they are written.
        row = json.loads(text, parse_int=str, parse_float=str)
    except (json.JSONDecodeError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise ValueError("not a JSON object: one object a line is needed")
    return row


def _json_text(row: dict, key: str) -> str:
    value = row.get(key)
    if value is None:
        raise ValueError(f"no {key!r}")
    if isinstance(value, bool):
        value = json.dumps(value)
    if not isinstance(value, str):
        raise ValueError(f"{key!r} is not a text or a number")
    if "\0" in value:
        raise ValueError("a NUL byte in the text")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair in the text") from None
    return value
