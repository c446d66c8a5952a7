"""Labelled text in whatever format the path shows."""

import os
from collections.abc import Iterator, Sequence

from rnnapps.data.formats.classes import read_class_files, read_class_folder
from rnnapps.data.formats.rows import Row, listed, require_file
from rnnapps.data.formats.tabular import read_csv, read_jsonl, read_tsv
from rnnapps.errors import UserError

READERS = {".csv": read_csv, ".tsv": read_tsv, ".jsonl": read_jsonl, ".json": read_jsonl}


def read_labelled(
    path: str | os.PathLike,
    text_column: str = "text",
    label_column: str = "label",
    columns: Sequence[str] | None = None,
) -> Iterator[Row]:
    """Streams texts and their labels; the path's form decides how it is read.

    Args:
        path: A `.csv`, `.tsv`, `.jsonl` or `.json` file (an object a line), each also `.gz`; a
            folder of class folders or class files; or a comma-separated list of class files.
        text_column: The column that holds the text.
        label_column: The column that holds the label.
        columns: The columns' names where a CSV or TSV file has no header.

    Yields:
        `{"text": …, "label": …}`, or a `BadRow`.

    Raises:
        UserError: The path is missing, empty, damaged, of no known form, or lacks a column.
    """
    path = os.fspath(path)
    if os.path.isdir(path):
        return read_class_folder(path)
    paths = listed(path)
    if paths != [path]:
        return read_class_files(paths)
    require_file(path)
    suffix = os.path.splitext(path.removesuffix(".gz"))[1].lower()
    if suffix not in READERS:
        raise UserError(
            f"{path}: {suffix or 'a file without suffix'} is not a known format; known are "
            f"{', '.join(READERS)} (each also .gz), class folders, and lists of class files"
        )
    fields = {"text": text_column, "label": label_column}
    return _stripped(READERS[suffix](path, fields, columns, required=("label",)))


def _stripped(rows: Iterator[Row]) -> Iterator[Row]:
    for row in rows:
        if isinstance(row, dict):
            # A label is one line of a list of labels.
            row["label"] = " ".join(row["label"].split())
        yield row
