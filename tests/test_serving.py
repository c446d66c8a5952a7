"""What an export is given: Python's values as tensors."""

import tracemalloc

import pytest
import tensorflow as tf

from rnnapps import serving


def test_one_long_text_does_not_make_room_for_as_many():
    texts = [b"a"] * 63 + [b"b" * 1_000_000]
    tracemalloc.start()
    tensor = serving._tensor(texts, tf.TensorSpec([None], tf.string))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert tensor.numpy().tolist() == texts and peak < 4_000_000


@pytest.mark.parametrize(("value", "shape"), [([], [0, 0]), ([[], []], [0, 0]), ([["a"]], [1, 1])])
def test_what_is_empty_has_the_rank_of_its_signature(value, shape):
    assert serving._tensor(value, tf.TensorSpec([None, None], tf.string)).shape == shape
