"""Text whose class is the name of its folder or file: `pos/*.txt`, the lines of `reviews.pos`."""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence

from rnnapps.data.formats.rows import (
    BadRow,
    Row,
    read_document,
    read_text_lines,
    require_file,
)
from rnnapps.errors import UserError

# Suffixes that name a format, never a class.
NOT_CLASSES = {"", ".csv", ".tsv", ".json", ".jsonl", ".txt", ".md", ".zip", ".tar", ".tgz"}

UNLABELLED = "unsup"

log = logging.getLogger("rnnapps")


def class_of(path: str) -> str | None:
    """The class in a file's name: its last suffix before `.gz`.

    Args:
        path: The file.

    Returns:
        `"pos"` for `reviews.pos` and `reviews.pos.gz`; None where the suffix names a format.
    """
    suffix = os.path.splitext(path.removesuffix(".gz"))[1]
    return None if suffix.lower() in NOT_CLASSES else suffix[1:].strip() or None


def read_class_folder(path: str) -> Iterator[Row]:
    """Streams a folder of class folders (one example a file), or of class files (one a line).

    Class folders hold `.txt` or `.txt.gz` files; where there is one, files beside it do not count.
    Folders and files are read in the order of their names.

    Args:
        path: The folder.

    Yields:
        `{"text": …, "label": …}`, or a `BadRow`.

    Raises:
        UserError: The folder holds neither.
    """
    names = [name for name in sorted(os.listdir(path)) if not name.startswith((".", "__"))]
    folders = [name for name in names if _documents(os.path.join(path, name))]
    if UNLABELLED in folders:
        log.warning("%s is left out: it is where aclImdb keeps what has no label", UNLABELLED)
        folders.remove(UNLABELLED)
    if folders:
        _require_text(folders)
        return _read_documents(path, folders)
    files = [os.path.join(path, name) for name in names if class_of(name)]
    files = [file for file in files if os.path.isfile(file)]
    if files:
        return read_class_files(files)
    raise UserError(
        f"{path} holds neither class folders (pos/*.txt, neg/*.txt) nor class files "
        "(reviews.pos, reviews.neg) nor train, dev and test"
    )


def read_class_files(paths: Sequence[str]) -> Iterator[Row]:
    """Streams files of one example a line, each named by its class: `reviews.pos`, `reviews.neg`.

    Args:
        paths: The files.

    Yields:
        `{"text": …, "label": …}`, or a `BadRow`.

    Raises:
        UserError: A file is missing, damaged or empty, or its name holds no class.
    """
    labels = []
    for path in paths:
        require_file(path)
        label = class_of(path)
        if label is None or os.path.isdir(path):
            raise UserError(
                f"{path} is not named by its class: a list is of files like reviews.pos,reviews.neg"
            )
        labels.append(label)
    _require_text(labels)
    return _read_lines(paths)


def _require_text(labels: Iterable[str]) -> None:
    """Raises where a class has a name that only a file system takes."""
    for label in labels:
        if "\n" in label or any("\ud800" <= character <= "\udfff" for character in label):
            raise UserError(f"a class cannot have the name of a file that is {label!r}: rename it")


def _read_lines(paths: Sequence[str]) -> Iterator[Row]:
    for path in paths:
        label, line = class_of(path), 0
        for line, text, reason in read_text_lines(path):
            yield BadRow(path, line, reason) if reason else {"text": text, "label": label}
        if line == 0:
            raise UserError(f"{path} is empty")


def _read_documents(path: str, folders: Sequence[str]) -> Iterator[Row]:
    for label in folders:
        folder = os.path.join(path, label)
        for name in _documents(folder):
            text, bad = read_document(os.path.join(folder, name))
            yield bad or {"text": text, "label": label}


def _documents(folder: str) -> list[str]:
    if not os.path.isdir(folder):
        return []
    names = sorted(os.listdir(folder))
    return [n for n in names if n.endswith((".txt", ".txt.gz")) and not n.startswith(".")]
