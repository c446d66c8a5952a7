"""Word vectors that others have learnt: the text formats of GloVe and of word2vec."""

import itertools
import os
import re
from collections.abc import Callable, Container, Iterator
from typing import NamedTuple

import numpy as np

from rnnapps.data.formats.rows import read_lines, require_file, shortened
from rnnapps.errors import UserError

CHUNK_WORDS = 10_000

# No file holds more, and no larger number of columns can be counted to.
_COUNT = re.compile(rb"\d{1,15}")


class Vectors(NamedTuple):
    """Words and their vectors, in the file's order."""

    words: list[str]
    values: np.ndarray  # [words, size], float32


def read_vectors(
    path: str | os.PathLike,
    wanted: Container[str] | Callable[[str], bool] | None = None,
    size: int | None = None,
) -> Vectors:
    """Reads word vectors in text form, of which only the wanted ones are held in memory.

    A line is a word and its numbers, with one blank between (GloVe, Pennington et al. 2014). Where
    the first line is two whole numbers, it says how many vectors of which size follow (word2vec,
    Mikolov et al. 2013). A word may hold blanks, as some of GloVe 840B do. Of a word that is there
    twice the first vector counts.

    Args:
        path: The file, also `.gz`.
        wanted: The words to keep, or a function that says whether to keep a word; None keeps all.
        size: The size that the vectors must have; None takes any.

    Returns:
        The words, and their vectors as a float32 array of shape `[words, size]`.

    Raises:
        UserError: The file is missing, damaged or empty, holds another number of vectors than its
            first line says, or vectors of another size than `size`; a line has too few or too many
            numbers, or (where its word is kept) something that is no finite number.

    Example:
    >>> text = "the 0.5 1.5\\nof 0.25 2\\nfilm -1 3\\n"
    >>> with open("vectors.txt", "w") as file:
    ...     _ = file.write(text)
    >>> vectors = read_vectors("vectors.txt", {"the", "film"}, size=2)
    >>> vectors.words, vectors.values.tolist()
    (['the', 'film'], [[0.5, 1.5], [-1.0, 3.0]])
    """
    path = os.fspath(path)
    require_file(path)
    keep = wanted if callable(wanted) else (lambda word: wanted is None or word in wanted)
    lines = _lines(path)
    first = next(lines, None)
    if first is None:
        raise UserError(f"{path} is empty")
    header = first[1].split(b" ")
    if len(header) == 2 and all(map(_COUNT.fullmatch, header)):
        promised, width = map(int, header)
    else:
        promised, width = None, len(header) - 1
        lines = itertools.chain([first], lines)
    if width == 0:
        raise UserError(f"{path}:{first[0]}: no numbers behind the word")
    if size is not None and width != size:
        raise UserError(
            f"vectors of the wrong width: {path} has {width} numbers a word, {size} are wanted"
        )
    count, kept, values = 0, {}, bytearray()
    chunk: list[tuple[int, bytes]] = []
    for line, raw in lines:
        count += 1
        word, numbers = _parts(path, line, raw, width)
        if word not in kept and keep(word):
            kept[word] = None
            chunk.append((line, numbers))
            if len(chunk) == CHUNK_WORDS:
                values += _parsed(path, chunk).tobytes()
                chunk = []
    if chunk:
        values += _parsed(path, chunk).tobytes()
    if promised not in (None, count):
        raise UserError(f"{path} holds {count:,} vectors where its first line says {promised:,}")
    return Vectors(list(kept), np.frombuffer(values, np.float32).reshape(-1, width))


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    for line, raw in read_lines(path):
        # word2vec ends its lines with a blank.
        raw = raw.rstrip(b" \r\n")
        if raw:
            yield line, raw


def _parts(path: str, line: int, raw: bytes, width: int) -> tuple[str, bytes]:
    """The word of a line, and its numbers."""
    num_blanks = raw.count(b" ")
    if num_blanks == width:
        word, _, numbers = raw.partition(b" ")
    else:
        word, *numbers = raw.rsplit(b" ", width)
        if num_blanks < width or _looks_like_number(word.rpartition(b" ")[2]):
            raise UserError(f"{path}:{line}: {num_blanks} numbers where {width} are needed")
        numbers = b" ".join(numbers)
    return word.decode("utf-8", errors="replace"), numbers


def _looks_like_number(piece: bytes) -> bool:
    try:
        return piece[-1:].isdigit() and float(piece) is not None
    except ValueError:
        return False


def _parsed(path: str, chunk: list[tuple[int, bytes]]) -> np.ndarray:
    """The chunk's numbers, [words, size]."""
    values = _numbers([numbers for _, numbers in chunk])
    if values is not None:
        return values
    line, numbers = next((line, raw) for line, raw in chunk if _numbers([raw]) is None)
    wrong = next(part for part in numbers.split(b" ") if not part or _numbers([part]) is None)
    wrong = shortened(wrong.decode("utf-8", errors="replace"), 50)
    raise UserError(f"{path}:{line}: {wrong!r} is not a finite number")


def _numbers(lines: list[bytes]) -> np.ndarray | None:
    try:
        values = np.loadtxt(lines, np.float32, comments=None, delimiter=" ", ndmin=2)
    except ValueError:
        return None
    return values if np.isfinite(values).all() else None
