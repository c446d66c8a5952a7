"""One long text as windows: rows that are streams of their own, each going on in the next batch."""

import tempfile
from collections.abc import Iterable, Iterator

import numpy as np
import tensorflow as tf


class Stream:
    """A text as a sequence of token ids, kept on disk, however long.

    Args:
        chunks: The ids in pieces, in order: integer arrays `[tokens]`.
        start: The id that is read before the first token.

    Example:
    >>> stream = Stream([np.array([5, 6]), np.array([7])], start=2)
    >>> len(stream), stream.read(0, 3), stream.targets(0, 3)
    (3, array([2, 5, 6], dtype=int32), array([5, 6, 7], dtype=int32))
    """

    def __init__(self, chunks: Iterable[np.ndarray], start: int):
        self._file = tempfile.TemporaryFile()
        self._file.write(np.array([start], np.int32).tobytes())
        length = 0
        for chunk in chunks:
            self._file.write(np.asarray(chunk, np.int32).tobytes())
            length += len(chunk)
        self._file.flush()
        self._ids = np.memmap(self._file, np.int32, "r", shape=(length + 1,))

    def __len__(self) -> int:
        return len(self._ids) - 1

    def read(self, first: int, end: int) -> np.ndarray:
        """Returns what is read where the `first`-th token to before the `end`-th are predicted.

        Positions outside the text are padding, id 0.
        """
        return self._piece(first, end, 0)

    def targets(self, first: int, end: int) -> np.ndarray:
        """Returns the `first`-th token to before the `end`-th; outside the text they are 0."""
        return self._piece(first, end, 1)

    def _piece(self, first: int, end: int, shift: int) -> np.ndarray:
        inside = range(max(first, 0), min(end, len(self)))
        piece = np.zeros(end - first, np.int32)
        if inside:
            piece[inside.start - first : inside.stop - first] = self._ids[
                inside.start + shift : inside.stop + shift
            ]
        return piece

    def num_windows(self, rows: int, stride: int) -> int:
        """Counts the windows of each row that cover all tokens."""
        return -(-self._row_length(rows) // stride)

    def windows(self, rows: int, size: int, stride: int | None = None) -> tf.data.Dataset:
        """Cuts the text into equally long rows, and each row into windows.

        The first windows of all rows come first, row after row, then the second ones. A window ends
        where `stride` new tokens end and begins `size` tokens before. None has padding: before a
        row and behind it stands what stands there in the text, taken as a ring. The state is to
        begin anew before the windows that `reset` names, the first ones.

        Args:
            rows: The number of rows, which a batch has.
            size: The tokens of a window.
            stride: The new ones among them. Default: `None`, all.

        Returns:
            Unbatched `({"tokens": int32 [size], "reset": bool []}, targets int32 [size])`; targets
            that are not to be counted, being not the row's or not new, are 0.
        """
        stride = stride or size
        length, num_windows = self._row_length(rows), self.num_windows(rows, stride)
        begins = length * np.arange(rows)[:, None]  # [rows, 1]
        ends = np.minimum(begins + length, len(self))

        def batches() -> Iterator[tuple]:
            for number in range(num_windows):
                news = begins + number * stride
                places = news + np.arange(stride - size, stride)  # [rows, size]
                counted = (news <= places) & (places < ends)
                around = places % len(self)
                inputs = {"tokens": self._ids[around], "reset": np.full(rows, number == 0)}
                yield inputs, np.where(counted, self._ids[around + 1], 0)

        ids = tf.TensorSpec([rows, size], tf.int32)
        signature = ({"tokens": ids, "reset": tf.TensorSpec([rows], tf.bool)}, ids)
        dataset = tf.data.Dataset.from_generator(batches, output_signature=signature).unbatch()
        return dataset.apply(tf.data.experimental.assert_cardinality(rows * num_windows))

    def _row_length(self, rows: int) -> int:
        return -(-len(self) // rows)
