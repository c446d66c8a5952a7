"""Examples that occur more than once, within train and in two splits."""

import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from rnnapps.data.sources import digest


@dataclass(frozen=True)
class Overlaps:
    """How often train repeats itself, and what of the other splits is in train too.

    Attributes:
        repeated: The number of different pairs that train holds more than once.
        known: Split to the number of its sources that are sources of train.
        totals: Split to the number of its sources.
    """

    repeated: int
    known: Mapping[str, int]
    totals: Mapping[str, int]

    def __str__(self) -> str:
        """Says it in a line."""
        pairs = "1 pair" if self.repeated == 1 else f"{self.repeated:,} pairs"
        told = [f"{pairs} of train {'occurs' if self.repeated == 1 else 'occur'} more than once"]
        for split, known in self.known.items():
            stand = "stands" if known == 1 else "stand"
            told.append(f"{known:,} of {self.totals[split]:,} {split} sources {stand} in train too")
        return "; ".join(told)


def overlaps(splits: Mapping[str, tf.data.Dataset]) -> Overlaps:
    """Counts the pairs and sources that occur more than once.

    Case, compatibility forms and white space do not count. Of a text a number of 64 bits is kept:
    16 bytes a pair of train, however long it is.

    Args:
        splits: `"train"` and others, datasets of `{"source": …, "target": …}`.

    Returns:
        What was found; its `str` is a line such as "12 pairs of train occur more than once; 3 of
        1,014 dev sources stand in train too".
    """
    pairs, sources = array.array("Q"), array.array("Q")
    for source, target in _texts(splits["train"], "source", "target"):
        pairs.append(digest(source, target))
        sources.append(digest(source))
    _, counts = np.unique(np.asarray(pairs, dtype=np.uint64), return_counts=True)
    in_train = np.unique(np.asarray(sources, dtype=np.uint64))
    known, totals = {}, {}
    for split in splits:
        if split != "train":
            found = array.array(
                "Q", (digest(source) for (source,) in _texts(splits[split], "source"))
            )
            known[split] = int(np.isin(np.asarray(found, dtype=np.uint64), in_train).sum())
            totals[split] = len(found)
    return Overlaps(int((counts > 1).sum()), known, totals)


def _texts(examples: tf.data.Dataset, *fields: str) -> Iterator[tuple[str, ...]]:
    for batch in examples.batch(1_000).as_numpy_iterator():
        for values in zip(*(batch[field] for field in fields), strict=True):
            yield tuple(value.decode("utf-8") for value in values)
