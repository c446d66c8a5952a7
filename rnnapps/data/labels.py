"""The label set of a classifier, in the graph: names to ids and back."""

from collections.abc import Iterable
from pathlib import Path

import tensorflow as tf

from rnnapps.data.text import as_lines, lines_of, lookup_tables


class Labels(tf.Module):
    """Class names and their ids, which follow the names' order.

    Args:
        names: the class names, in the order of their ids.
        file: the file that holds them, as `content` gives it; where it is given, an exported model
            carries it as an asset.

    Example:
    >>> labels = Labels(["negative", "positive"])
    >>> labels.ids(tf.constant(["positive", "mixed"])).numpy()
    array([ 1, -1], dtype=int32)
    """

    def __init__(self, names: Iterable[str], file: Path | None = None):
        super().__init__()
        self.names = tuple(names)
        self._to_id, self._to_name = lookup_tables(self.names, file, (-1, ""))

    @classmethod
    def load(cls, file: Path) -> "Labels":
        """Reads a file of `content`."""
        return cls(lines_of(file.read_bytes()), file)

    def content(self) -> bytes:
        """Returns one name a line, so that the line number is the id."""
        return as_lines(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def ids(self, names: tf.Tensor) -> tf.Tensor:
        """Looks up int32 ids in the shape of `names`; -1 where a name is none of the labels."""
        return tf.cast(self._to_id.lookup(names), tf.int32)

    def name_of(self, ids: tf.Tensor) -> tf.Tensor:
        """Looks up the string names of integer ids, in their shape."""
        return self._to_name.lookup(tf.cast(ids, tf.int64))
