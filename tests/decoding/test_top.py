"""The highest scores by blocks against a sort."""

import numpy as np
import pytest

from rnnapps.decoding.top import top_k


@pytest.mark.parametrize("many", [7, 2000, 2049])
@pytest.mark.parametrize("levels", [3, 10**6])
def test_it_is_a_stable_sort(many, levels):
    draws = np.random.default_rng(0)
    scores = draws.integers(levels, size=(4, many)).astype("float32")
    scores[1, 5:] = -np.inf
    order = np.argsort(-scores, axis=1, kind="stable")
    for k in {1, 6, min(many, 60), many}:
        values, indices = top_k(scores, k)
        np.testing.assert_array_equal(indices, order[:, :k])
        np.testing.assert_array_equal(values, np.take_along_axis(scores, order[:, :k], axis=1))


def test_there_may_be_no_rows():
    assert top_k(np.zeros((0, 3000), "float32"), 4)[1].shape == (0, 4)
