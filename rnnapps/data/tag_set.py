"""The tags of a tagger, in the graph: IOBES inside, any scheme outside."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import tensorflow as tf

from rnnapps.data import tagging_schemes
from rnnapps.data.labels import Labels


class TagSet(tf.Module):
    """The tags that a tagger tells apart, and how they are written.

    Entities are learnt as IOBES, which says most about where they begin and end (Ratinov & Roth
    2009), whatever scheme the data has. Tags without a scheme are taken as they are.

    Args:
        names: The tags, in IOBES or without a scheme, in the order of their ids.
        scheme: How tags are written: `"iob1"`, `"iob2"`, `"iobes"` or `"none"`.
        file: The file that holds the names, as `content` gives it; where it is given, an exported
            model carries it as an asset.

    Example:
    >>> tags = TagSet.of(["B-PER", "I-PER", "O"], "iob1")
    >>> tags.labels.names
    ('O', 'B-PER', 'E-PER', 'I-PER', 'S-PER')
    >>> ids = tags.ids(tf.constant(["B-PER", "I-PER", "B-PER", "O"]))
    >>> tags.labels.name_of(ids).numpy().tolist(), tags.written(ids[None]).numpy().tolist()
    ([b'B-PER', b'E-PER', b'S-PER', b'O'], [[b'I-PER', b'I-PER', b'B-PER', b'O']])
    """

    def __init__(self, names: Iterable[str], scheme: str, file: Path | None = None):
        super().__init__()
        self.scheme = scheme
        self.labels = Labels(names, file)
        names = self.labels.names
        self._types = tf.constant(_numbers(name[2:] for name in names))
        self._begins = tf.constant([name[0] in "BS" for name in names])
        self._alone = tf.constant([self._write(name, "O") for name in names])
        self._behind_its_like = tf.constant([self._write(name, name) for name in names])

    @classmethod
    def of(cls, tags: Iterable[str], scheme: str) -> "TagSet":
        """Makes the set for tags that occur, in IOB2 or without a scheme."""
        if scheme == "none":
            return cls(sorted(tags), scheme)
        types = sorted({tag[2:] for tag in tags if tag != "O"})
        return cls(["O", *(f"{prefix}-{kind}" for kind in types for prefix in "BEIS")], scheme)

    @classmethod
    def load(cls, file: Path, scheme: str) -> "TagSet":
        """Reads a file of `content`."""
        return cls(Labels.load(file).names, scheme, file)

    def content(self) -> bytes:
        """Returns one tag a line, so that the line number is the id."""
        return self.labels.content()

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def types(self) -> list[str]:
        """The types of entities; none where the tags have no scheme."""
        if self.scheme == "none":
            return []
        return sorted({name[2:] for name in self.labels.names if name != "O"})

    def allowed(self) -> tagging_schemes.Allowed | None:
        """Returns what may follow what, as the CRF takes it; None for everything."""
        if self.scheme == "none":
            return None
        return tagging_schemes.allowed_transitions(self.labels.names, "iobes")

    def ids(self, tags: tf.Tensor) -> tf.Tensor:
        """Looks up the tags of a sentence.

        Args:
            tags: string tensor of shape `[time]`, valid IOB2 or without a scheme.

        Returns:
            An int32 tensor of shape `[time]`; -1 where a tag is none of the set.
        """
        if self.scheme == "none":
            return self.labels.ids(tags)
        prefixes = tf.strings.substr(tags, 0, 1)  # [time]
        goes_on = tf.concat([prefixes[1:] == "I", [False]], axis=0)[: tf.size(tags)]  # [time]
        inner = tf.where(
            prefixes == "B", tf.where(goes_on, "B", "S"), tf.where(goes_on, "I", "E")
        )  # [time]
        written = inner + tf.strings.regex_replace(tags, "^.", "")  # [time]
        return self.labels.ids(tf.where(tags == "O", "O", written))

    def written(self, ids: tf.Tensor) -> tf.Tensor:
        """Writes rows of ids in the scheme.

        Args:
            ids: integer tensor of shape `[batch, time]`.

        Returns:
            A string tensor of shape `[batch, time]`.
        """
        if self.scheme != "iob1":
            return tf.gather(self._alone, ids)
        types = tf.gather(self._types, ids)  # [batch, time]
        behind = tf.pad(types[:, :-1], [[0, 0], [1, 0]], constant_values=-1)[:, : tf.shape(ids)[1]]
        adjacent = tf.gather(self._begins, ids) & (types == behind)  # [batch, time]
        return tf.where(
            adjacent, tf.gather(self._behind_its_like, ids), tf.gather(self._alone, ids)
        )

    def _write(self, name: str, before: str) -> str:
        """Writes one tag behind an entity of its own type, or behind none."""
        if name == "O" or self.scheme in ("none", "iobes"):
            return name
        begins = name[0] in "BS" and (self.scheme == "iob2" or before != "O")
        return ("B" if begins else "I") + name[1:]


def _numbers(names: Iterable[str]) -> np.ndarray:
    """Numbers names by their first occurrence."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int32)
