"""What units are compared with, and which of them goes with it the most."""

import numpy as np
import pytest

from rnnapps.inspection.tracking import bracket_depth, in_quotes, most_correlated, read_out


def test_depth_and_quotations_by_hand():
    assert bracket_depth(")(a{[b]}").tolist() == [0, 1, 1, 2, 3, 3, 2, 1]
    assert in_quotes("'a' b", mark="'").tolist() == [1, 1, 0, 0, 0]
    assert bracket_depth("").size == in_quotes("").size == 0


def test_the_planted_unit_is_found():
    rng = np.random.default_rng(0)
    values, target = rng.normal(size=(200, 9)), rng.integers(0, 3, 200)
    values[:, 4] = 0.0
    values[:, 7] = 5 - 2.0 * target + 0.1 * rng.normal(size=200)
    unit, correlation = most_correlated(values, target)
    assert unit == 7
    assert correlation == pytest.approx(np.corrcoef(values[:, 7], target)[0, 1], abs=1e-9)


@pytest.mark.parametrize("value", [1.0, 0.1])
def test_a_constant_target_is_refused(value):
    """Also one whose mean is rounded."""
    with pytest.raises(ValueError, match="Received"):
        most_correlated(np.ones((7, 2)), np.full(7, value))


def test_what_is_a_weighted_sum_is_read_out():
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=(50, 4)), np.array([1.0, -2.0, 0.0, 0.5])
    found, bias = read_out(values, values @ weights + 3)
    np.testing.assert_allclose(found, weights, atol=1e-9)
    assert bias == pytest.approx(3)
