"""Length buckets: the best boundaries, what they cost, and every example exactly once."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnapps.data.batching import bucket_batches, bucket_boundaries, full_batches, padding

some_counts = st.lists(st.integers(0, 9), min_size=1, max_size=11).filter(any).map(np.array)


def padded_steps(counts, boundaries):
    return sum(
        count * min(boundary for boundary in boundaries if boundary >= length)
        for length, count in enumerate(counts)
        if count
    )


@settings(max_examples=200, deadline=None)
@given(some_counts, st.integers(1, 6))
def test_boundaries_are_the_best_of_all(counts, num_buckets):
    longest = max(1, int(np.flatnonzero(counts)[-1]))
    best = min(
        padded_steps(counts, [*others, longest])
        for size in range(min(num_buckets, longest))
        for others in itertools.combinations(range(1, longest), size)
    )
    boundaries = bucket_boundaries(counts, num_buckets)
    assert padded_steps(counts, boundaries) == best
    assert boundaries == sorted(set(boundaries)) and len(boundaries) <= num_buckets
    assert boundaries[0] >= 1 and boundaries[-1] == longest


def test_boundaries_of_a_known_case():
    assert bucket_boundaries(np.array([0, 5, 5, 0, 0, 0, 0, 0, 0, 9]), 2) == [2, 9]
    assert bucket_boundaries(np.array([4]), 3) == [1]


def test_boundaries_of_many_lengths_do_not_overflow():
    counts = np.full(2_001, 10**9)
    counts[0] = 0
    assert bucket_boundaries(counts, 4) == [500, 1000, 1500, 2000]


@pytest.mark.parametrize(("counts", "num_buckets"), [([0, 1], 0), ([0, 0], 2), ([], 2)])
def test_boundaries_of_nothing(counts, num_buckets):
    with pytest.raises(ValueError, match="Received"):
        bucket_boundaries(np.array(counts), num_buckets)


@settings(max_examples=100, deadline=None)
@given(some_counts, st.integers(1, 6), st.integers(1, 5))
def test_padding_counts_what_the_buckets_hold(counts, num_buckets, batch_size):
    boundaries = bucket_boundaries(counts, num_buckets)
    lengths = np.repeat(np.arange(counts.size), counts)
    padded = np.array([min(b for b in boundaries if b >= length) for length in lengths])
    report = padding(counts, boundaries, batch_size)
    assert report.share == pytest.approx(1 - lengths.sum() / padded.sum())
    assert report.num_shapes == len(set(padded))
    assert report.num_batches == sum(
        -(-np.count_nonzero(padded == boundary) // batch_size) for boundary in boundaries
    )


def test_padding_refuses_an_example_beyond_the_last_boundary():
    with pytest.raises(ValueError, match="greatest length, 3. Received: boundaries=\\[1, 2\\]"):
        padding(np.array([0, 1, 1, 1, 0]), [1, 2])


def numbered(lengths):
    """Examples whose ids are all their number plus one, so that each can be told in a batch."""

    def generate():
        for number, length in enumerate(lengths):
            yield {"ids": np.full(length, number + 1, np.int32), "number": number}, str(number)

    spec = {"ids": tf.TensorSpec([None], tf.int32), "number": tf.TensorSpec([], tf.int32)}
    return tf.data.Dataset.from_generator(
        generate, output_signature=(spec, tf.TensorSpec([], tf.string))
    )


def num_steps(inputs):
    return tf.size(inputs["ids"])


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=40),
    st.integers(1, 4),
    st.integers(1, 7),
    st.none() | st.integers(0, 2**31),
)
def test_each_example_comes_out_once_padded_to_its_bucket(lengths, num_buckets, batch_size, seed):
    boundaries = bucket_boundaries(np.bincount(lengths), num_buckets)
    batches = list(
        bucket_batches(numbered(lengths), num_steps, boundaries, batch_size, shuffle_seed=seed)
    )
    seen = []
    for inputs, targets, weights in batches:
        size, steps = inputs["ids"].shape
        assert 1 <= size <= batch_size and steps in boundaries
        assert weights.dtype == tf.float32 and weights.numpy().tolist() == [1.0] * size
        for ids, number, target in zip(inputs["ids"], inputs["number"], targets, strict=True):
            length = lengths[int(number)]
            assert steps == min(boundary for boundary in boundaries if boundary >= length)
            expected = [int(number) + 1] * length + [0] * (steps - length)
            assert ids.numpy().tolist() == expected and target == str(int(number))
            seen.append(int(number))
    assert sorted(seen) == list(range(len(lengths)))
    assert len(batches) == padding(np.bincount(lengths), boundaries, batch_size).num_batches


def order(seed):
    lengths = [number % 7 for number in range(60)]
    batches = bucket_batches(numbered(lengths), num_steps, [2, 6], 4, shuffle_seed=seed)
    once, again = (
        [inputs["number"].numpy().tolist() for inputs, _, _ in batches] for _ in range(2)
    )
    assert once == again
    return once


def test_the_order_is_a_function_of_the_seed():
    orders = [order(seed) for seed in ((3, 0), (3, 1), (4, 0))]
    assert all(one != other for one, other in itertools.combinations(orders, 2))
    assert order((3, 1)) == orders[1]


def test_the_rest_of_an_order_is_reached_by_skipping():
    lengths = [number % 7 for number in range(60)]
    batches = bucket_batches(numbered(lengths), num_steps, [2, 6], 4, shuffle_seed=(3, 1))
    rest = [inputs["number"].numpy().tolist() for inputs, _, _ in batches.skip(5)]
    assert rest == order((3, 1))[5:]


def test_without_a_seed_the_order_is_kept():
    first = order(None)
    assert first[0] == [3, 4, 5, 6] and [0, 1, 2, 7] in first


def test_an_example_beyond_the_last_boundary_fails():
    batches = bucket_batches(numbered([2, 5, 2]), num_steps, [2, 4], 1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="longer than the last boundary, 4"):
        list(batches)


def test_no_examples_give_no_batches():
    assert list(bucket_batches(numbered([]), num_steps, [4], 2, shuffle_seed=0)) == []


def test_batches_are_filled_up_with_rows_of_no_weight():
    batches = bucket_batches(numbered([2, 5, 2, 1, 6]), num_steps, [2, 6], 2)
    full = list(full_batches(batches, 3))
    assert {tuple(inputs["ids"].shape) for inputs, *_ in full} == {(3, 2), (3, 6)}
    for (inputs, targets, weights), filled in zip(batches, full, strict=True):
        size = len(weights)
        more, more_targets, more_weights = filled
        np.testing.assert_array_equal(more_weights, [1.0] * size + [0.0] * (3 - size))
        for one, other in ((inputs["ids"], more["ids"]), (targets, more_targets)):
            np.testing.assert_array_equal(other[:size], one)
            for row in other[size:]:
                np.testing.assert_array_equal(row, one[-1])


def test_filled_batches_keep_weights_of_steps_and_known_sizes():
    steps = tf.data.Dataset.from_tensors(([[1], [2]], [[3], [4]], [[0.5, 1.0], [1.0, 0.0]]))
    full = full_batches(steps, 4)
    assert full.element_spec[0].shape == (4, 1)
    ((inputs, targets, weights),) = full
    np.testing.assert_array_equal(inputs, [[1], [2], [2], [2]])
    np.testing.assert_array_equal(targets, [[3], [4], [4], [4]])
    np.testing.assert_array_equal(weights, [[0.5, 1.0], [1.0, 0.0], [0, 0], [0, 0]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="more than 1 rows"):
        list(full_batches(steps, 1))
