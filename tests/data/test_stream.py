"""A stream's windows cover each token once, in rows that go on."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from rnnapps.data.stream import Stream


def of(length):
    ids = np.arange(length) + 10
    return Stream([ids[:3], ids[3:]], start=2), ids


@hypothesis.settings(max_examples=40, deadline=None)
@hypothesis.given(st.integers(4, 60), st.integers(1, 4), st.integers(1, 9), st.integers(0, 6))
def test_every_token_is_counted_once_and_read_after_those_before_it(length, rows, stride, overlap):
    kept, ids = of(length)
    size = stride + overlap
    windows = list(kept.windows(rows, size, stride).batch(rows, drop_remainder=True))
    assert len(windows) == kept.num_windows(rows, stride)
    row_length = -(-length // rows)
    read = np.concatenate([[2], ids])
    counted = []
    for number, (inputs, targets) in enumerate(windows):
        tokens, reset = inputs["tokens"].numpy(), inputs["reset"].numpy()
        assert (reset == (number == 0)).all() and reset.shape == (rows,)
        for row in range(rows):
            first = row * row_length + (number + 1) * stride - size
            for step, place in enumerate(range(first, first + size)):
                inside = row * row_length <= place < min((row + 1) * row_length, length)
                assert tokens[row, step] == read[place % length]
                if targets[row, step] != 0:
                    assert inside and step >= overlap and targets[row, step] == ids[place]
                    counted.append(place)
    assert sorted(counted) == list(range(length))


def test_pieces_are_padded_outside_the_text():
    kept, ids = of(5)
    assert len(kept) == 5
    assert kept.read(-2, 7).tolist() == [0, 0, 2, *ids[:4], 0, 0]
    assert kept.targets(-2, 7).tolist() == [0, 0, *ids, 0, 0]
    assert kept.read(9, 12).tolist() == [0, 0, 0]


def test_the_order_is_the_same_each_time():
    windows = of(23)[0].windows(2, 5)
    assert int(windows.cardinality()) == 6
    first, second = ([targets.numpy().tolist() for _, targets in windows] for _ in range(2))
    assert first == second


def test_an_empty_text_has_no_windows():
    kept = Stream([], start=2)
    assert len(kept) == 0 and kept.num_windows(2, 4) == 0
    with pytest.raises(StopIteration):
        next(iter(kept.windows(2, 4)))
