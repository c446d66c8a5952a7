"""Batches of similar length: where the buckets end, what padding they cost, and the batches."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf


@dataclass(frozen=True)
class Padding:
    """What padding costs, without running anything.

    Attributes:
        share: The share of the padded steps that are padding, from 0 to 1.
        num_shapes: How many distinct padded lengths occur.
        num_batches: How many batches an epoch has, or None where no batch size was given.
    """

    share: float
    num_shapes: int
    num_batches: int | None = None


def bucket_boundaries(length_counts: np.ndarray, num_buckets: int) -> list[int]:
    r"""Chooses the padded lengths that cost the fewest steps.

    With $n_\ell$ examples of length $\ell$, the boundaries $b_1 < \dots < b_K$ minimise
    $\sum_\ell n_\ell \min\{b_k : b_k \ge \ell\}$ exactly, by the dynamic programme
    $D_k(j) = \min_{i<j} D_{k-1}(i) + b_j (N_j - N_i)$ over the lengths that occur, where $N$ counts
    the examples up to a length.

    Args:
        length_counts: The number of examples of each length, from 0: integers `[L + 1]`.
        num_buckets: The largest number of padded lengths.

    Returns:
        At most `num_buckets` rising lengths, each of them the padded length of the examples up to
        it. The last is the greatest length; none is below 1, so that the shortest examples, even of
        no steps, are padded to something.

    Raises:
        ValueError: There are no examples, or `num_buckets` is below 1.

    Example:
    >>> bucket_boundaries(np.array([0, 5, 5, 0, 0, 0, 0, 0, 0, 9]), 2)
    [2, 9]
    """
    if num_buckets < 1:
        raise ValueError(f"num_buckets must be at least 1. Received: num_buckets={num_buckets}")
    lengths, counts = _occurring(length_counts)
    if not lengths.size:
        raise ValueError("length_counts must count at least one example. Received: none")
    num_lengths = lengths.size
    num_buckets = min(num_buckets, num_lengths)
    examples = np.concatenate([[0], np.cumsum(counts)])  # [lengths + 1]
    # cost[k - 1, j]: the fewest steps for the j shortest lengths in at most k buckets, the last of
    # which holds all but the previous[k - 1, j] shortest.
    cost = np.zeros([num_buckets, num_lengths + 1], np.int64)
    previous = np.zeros_like(cost)
    for j in range(1, num_lengths + 1):
        last_bucket = lengths[j - 1] * (examples[j] - examples[:j])  # [j]
        cost[0, j] = last_bucket[0]
        candidates = cost[:-1, :j] + last_bucket  # [buckets - 1, j]
        previous[1:, j] = np.argmin(candidates, axis=1)
        cost[1:, j] = np.min(candidates, axis=1)
    boundaries: list[int] = []
    k, j = num_buckets - 1, num_lengths
    while j > 0:
        boundaries.append(int(lengths[j - 1]))
        k, j = k - 1, previous[k, j]
    return boundaries[::-1]


def padding(
    length_counts: np.ndarray, boundaries: Sequence[int], batch_size: int | None = None
) -> Padding:
    """Reports what padding costs with these boundaries.

    Args:
        length_counts: The number of examples of each length, from 0: integers `[L + 1]`.
        boundaries: The rising padded lengths; the last is at least the greatest length.
        batch_size: Examples a batch.

    Returns:
        The share of padding, the number of padded shapes and of batches.

    Raises:
        ValueError: An example is longer than the last boundary.
    """
    counts = np.asarray(length_counts, np.int64)
    lengths = np.arange(counts.size)
    longest = int(lengths[counts > 0].max(initial=0))
    if not len(boundaries) or longest > boundaries[-1]:
        raise ValueError(
            f"the last boundary must be at least the greatest length, {longest}. "
            f"Received: boundaries={list(boundaries)}"
        )
    buckets = np.searchsorted(boundaries, lengths)  # [L + 1]
    held = np.bincount(
        np.minimum(buckets, len(boundaries) - 1), counts, minlength=len(boundaries)
    ).astype(np.int64)  # [buckets]
    steps = int(held @ np.asarray(boundaries, np.int64))
    return Padding(
        share=1.0 - int(counts @ lengths) / steps if steps else 0.0,
        num_shapes=int(np.count_nonzero(held)),
        num_batches=int(np.sum(-(-held // batch_size))) if batch_size else None,
    )


def bucket_batches(
    examples: tf.data.Dataset,
    length: Callable[[Any], tf.Tensor],
    boundaries: Sequence[int],
    batch_size: int,
    shuffle_seed: int | Sequence[int] | None = None,
    shuffle_buffer: int = 100_000,
) -> tf.data.Dataset:
    """Batches examples with others of similar length, padded to their bucket's boundary.

    Each example comes out exactly once; the last batch of a bucket may be smaller. With a seed, the
    order is a function of it (and of TensorFlow's global seed): each iteration has the same,
    whatever was read before.

    Args:
        examples: Unbatched `(inputs, targets)`, nested structures of tensors. Dimensions of unknown
            size are padded with zeros or `""` to the boundary.
        length: Gives an example's length, an integer scalar, from its inputs. The targets may be
            anything.
        boundaries: The rising padded lengths, as from `bucket_boundaries`.
        batch_size: Examples a batch.
        shuffle_seed: One or more numbers, such as a run's seed and the epoch, that seed the order;
            None keeps the order of the examples within each bucket.
        shuffle_buffer: How many examples are held to draw from. A larger dataset is mixed only
            within about so many neighbours.

    Returns:
        Batches `(inputs, targets, weights)`, prefetched; `weights` are ones, float32 `[batch]`. An
        example longer than the last boundary raises `tf.errors.InvalidArgumentError`.
    """
    longest = boundaries[-1]

    def checked_length(inputs, targets):
        steps = tf.cast(length(inputs), tf.int32)
        tf.debugging.assert_less_equal(
            steps, longest, message=f"an example is longer than the last boundary, {longest}"
        )
        return steps

    def weighted(inputs, targets):
        batch = tf.shape(tf.nest.flatten(inputs)[0])[0]
        return inputs, targets, tf.ones([batch])

    if shuffle_seed is not None:
        (seed,) = np.random.SeedSequence(shuffle_seed).generate_state(1)
        examples = examples.shuffle(shuffle_buffer, int(seed), reshuffle_each_iteration=False)
    batches = examples.bucket_by_sequence_length(
        checked_length,
        # tf.data's boundaries are the first length that a bucket does not hold.
        bucket_boundaries=[boundary + 1 for boundary in boundaries],
        bucket_batch_sizes=[batch_size] * (len(boundaries) + 1),
        pad_to_bucket_boundary=True,
    )
    return batches.map(weighted).prefetch(tf.data.AUTOTUNE)


def full_batches(batches: tf.data.Dataset, size: int) -> tf.data.Dataset:
    """Fills up smaller batches, so that each padded length has one shape only.

    A shape costs a compilation, and the devices that share a batch want equal parts.

    Args:
        batches: `(inputs, targets, weights)`, as from `bucket_batches`, of at least one row.
        size: The rows of a full batch.

    Returns:
        The batches with a known number of rows. What was missing are copies of the last row, of
        weight 0. A batch of more rows raises `tf.errors.InvalidArgumentError`.

    Example:
    >>> examples = tf.data.Dataset.range(2, 5).map(lambda number: (tf.range(number), number))
    >>> batches = bucket_batches(examples, tf.size, [2, 4], batch_size=2)
    >>> for inputs, targets, weights in full_batches(batches, 2):
    ...     print(inputs.shape, weights.numpy())
    (2, 4) [1. 1.]
    (2, 2) [1. 0.]
    """

    def fill(inputs, targets, weights):
        rows = tf.shape(weights)[0]
        tf.debugging.assert_less_equal(rows, size, message=f"a batch of more than {size} rows")
        taken = tf.minimum(tf.range(size), rows - 1)  # [size]
        inputs, targets = tf.nest.map_structure(lambda v: tf.gather(v, taken), (inputs, targets))
        of_row = tf.range(size) < rows  # [size]
        of_row = tf.reshape(of_row, [size, *[1] * (weights.shape.rank - 1)])
        return inputs, targets, tf.where(of_row, tf.gather(weights, taken), 0.0)

    return batches.map(fill).prefetch(tf.data.AUTOTUNE)


def weigh_tokens(batches: tf.data.Dataset) -> tf.data.Dataset:
    """Gives each target token the weight 1 and padding, id 0, the weight 0.

    Args:
        batches: `(inputs, targets, …)`; the first of the targets are ids, `[batch, time]`.

    Returns:
        `(inputs, targets, weights)`, prefetched; the weights are float32 `[batch, time]`.
    """

    def weighted(inputs, targets, *_):
        return inputs, targets, tf.cast(tf.nest.flatten(targets)[0] != 0, tf.float32)

    return batches.map(weighted).prefetch(tf.data.AUTOTUNE)


def fits_in_memory(num_bytes: int) -> bool:
    """Whether encoded examples of that size are kept from epoch to epoch, not encoded each time."""
    return num_bytes < 2**30


class Plan:
    """How a task's examples become batches, planned once from the lengths of the training split.

    Args:
        length_counts: The number of training examples of each length, from 0: integers `[L + 1]`.
        max_length: The length of the longest example of any split.
        num_buckets: The largest number of padded lengths for the training examples; where none of
            them is as long as `max_length`, that is one more.
        batch_size: Examples a batch.

    Attributes:
        padded_lengths: The rising padded lengths.
        padding: What they cost in an epoch of training.

    Example:
    >>> plan = Plan.of({3: 50, 9: 50}, max_length=20, num_buckets=2, batch_size=32)
    >>> plan.padded_lengths, plan.padding.num_batches
    ([3, 9, 20], 4)
    """

    def __init__(
        self, length_counts: np.ndarray, max_length: int, num_buckets: int, batch_size: int
    ):
        self._length_counts = length_counts
        self._batch_size = batch_size
        self.padded_lengths = bucket_boundaries(length_counts, num_buckets)
        if self.padded_lengths[-1] < max_length:
            self.padded_lengths.append(max_length)
        self.padding = padding(length_counts, self.padded_lengths, batch_size)

    @classmethod
    def of(cls, lengths: Mapping[int, int], max_length: int, *sizes: int, **named: int) -> "Plan":
        """Plans for examples counted by length; of longer ones `max_length` steps are read."""
        counts = np.zeros(max_length + 1, int)
        for length, count in lengths.items():
            counts[min(length, max_length)] += count
        return cls(counts, max_length, *sizes, **named)

    @classmethod
    def load(cls, file: Path, *sizes: int, **named: int) -> "Plan":
        """Reads a file of `content`; the sizes are those of the constructor."""
        return cls(np.array(file.read_text().split(), int), *sizes, **named)

    def content(self) -> bytes:
        """Returns the counts, one a line."""
        return "".join(f"{count}\n" for count in self._length_counts).encode()

    @property
    def num_steps(self) -> int:
        """The steps of all training examples together, without padding."""
        return int(self._length_counts @ np.arange(self._length_counts.size))

    def batches(
        self,
        examples: tf.data.Dataset,
        length: Callable[[Any], tf.Tensor],
        shuffle_seed: Sequence[int] | None = None,
    ) -> tf.data.Dataset:
        """Returns `bucket_batches`; with a seed they are the training examples, so many batches."""
        batches = bucket_batches(
            examples, length, self.padded_lengths, self._batch_size, shuffle_seed
        )
        if shuffle_seed is None:
            return batches
        return batches.apply(tf.data.experimental.assert_cardinality(self.padding.num_batches))

    def __str__(self) -> str:
        """Tells the sizes in words."""
        return (
            f"batches of {self._batch_size} in {self.padding.num_shapes} padded lengths, "
            f"{100 * self.padding.share:.1f}% of their steps padding"
        )


def _occurring(length_counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lengths that occur and how often; no steps count as one."""
    counts = np.array(length_counts, np.int64)
    if counts.size and counts[0]:
        counts = np.pad(counts, [0, max(0, 2 - counts.size)])
        counts[1] += counts[0]
    counts[:1] = 0
    lengths = np.flatnonzero(counts)
    return lengths, counts[lengths]
