"""Mixtures of language models against closed forms and a grid."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from rnnapps.models import KneserNey, mixture_log_probabilities, mixture_weights


def mean_log_probability(log_probabilities, weights):
    return mixture_log_probabilities(log_probabilities, weights).mean()


def test_a_mixture_is_the_weighted_mean_of_probabilities():
    probabilities = np.array([[[0.2, 0.0], [0.5, 1.0]], [[0.4, 0.3], [0.5, 0.0]]])
    with np.errstate(divide="ignore"):
        logs = np.log(probabilities)
    for weights in ([0.25, 0.75], [1, 0], [0, 1]):
        expected = np.tensordot(weights, probabilities, 1)
        np.testing.assert_allclose(np.exp(mixture_log_probabilities(logs, weights)), expected)
    # Probabilities too small for floats, of one model.
    tiny = mixture_log_probabilities([np.array([-2000.0])], [1])
    assert tiny.tolist() == [-2000]


@pytest.mark.parametrize(("often", "seldom"), [(3, 1), (2, 2), (5, 3)])
def test_weights_have_their_closed_form(often, seldom):
    """Two models that disagree on two kinds of tokens.

    With `a, b` the probabilities of the first kind, `c, d` of the second, and `w` the first model's
    weight, the derivative of the log probability is 0 where

        often (a - b) / (w a + (1 - w) b) = seldom (d - c) / (w c + (1 - w) d).
    """
    a, b, c, d = 0.6, 0.2, 0.1, 0.4
    logs = np.log([[a] * often + [c] * seldom, [b] * often + [d] * seldom])
    gain, loss = often * (a - b), seldom * (d - c)
    weight = (gain * d - loss * b) / (gain * (d - c) + loss * (a - b))
    assert 0 < weight < 1
    found = mixture_weights(logs, tolerance=1e-12)
    np.testing.assert_allclose(found, [weight, 1 - weight], atol=1e-5)
    # The weights are what each model's part in the tokens adds up to.
    parts = np.exp(logs - mixture_log_probabilities(logs, [weight, 1 - weight])).mean(axis=1)
    np.testing.assert_allclose(parts, 1)


def test_models_of_different_tokens_share_by_their_numbers():
    with np.errstate(divide="ignore"):
        logs = np.log(np.repeat([[0.5, 0, 0], [0, 0.01, 0], [0, 0, 1]], [5, 3, 2], axis=1))
    np.testing.assert_allclose(mixture_weights(logs), [0.5, 0.3, 0.2])


def test_the_better_model_takes_all():
    logs = np.log([[0.5, 0.2, 0.4], [0.4, 0.1, 0.4], [0.1, 0.2, 0.3]])
    np.testing.assert_allclose(mixture_weights(logs), [1, 0, 0], atol=1e-4)
    assert mixture_weights(logs[:1]).tolist() == [1]
    np.testing.assert_allclose(mixture_weights([logs[0], logs[0]]), [0.5, 0.5])


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 3).flatmap(
        lambda models: st_numpy.arrays(
            np.float64,
            st.tuples(st.just(models), st.integers(1, 6)),
            elements=st.floats(-8, 0, width=16),
        )
    )
)
def test_no_step_loses_and_the_end_is_as_good_as_the_best(logs):
    likelihoods = [
        mean_log_probability(logs, mixture_weights(logs, 0, max_steps=n)) for n in range(6)
    ]
    assert all(b >= a - 1e-12 for a, b in itertools.pairwise(likelihoods))
    weights = mixture_weights(logs, tolerance=1e-4)
    assert weights.sum() == pytest.approx(1, abs=1e-14) and (weights >= 0).all()
    grid = np.linspace(0, 1, 11)
    candidates = [w for w in itertools.product(grid, repeat=len(logs)) if np.isclose(sum(w), 1)]
    best = max(mean_log_probability(logs, candidate) for candidate in candidates)
    assert mean_log_probability(logs, weights) >= best - 1e-4 - 1e-12


def test_two_orders_together_are_better_than_each():
    """Distributions mix to a distribution, and tokens to what it says of them."""
    random = np.random.default_rng(3)
    text = "".join(random.choice(["abc", "abd", "ca", "d"], 60))
    models = [KneserNey([text], order, vocabulary="abcd") for order in (1, 2, 6)]
    dev = "".join(random.choice(["abc", "abd", "ca", "d"], 30))
    logs = [model.log_probabilities(dev) for model in models]
    weights = mixture_weights(logs)
    mixed = mixture_log_probabilities(logs, weights)
    assert mixed.mean() > max(log.mean() for log in logs) - 1e-6
    for i in (0, 5, 20):
        distribution = np.tensordot(weights, [m.distribution(dev[:i]) for m in models], 1)
        assert distribution.sum() == pytest.approx(1)
        assert distribution["abcd".index(dev[i])] == pytest.approx(np.exp(mixed[i]))


def test_faults_are_named():
    logs = np.log([[0.5, 0.5], [0.1, 0.9]])
    for weights in ([1], [0.5, 0.6], [1.5, -0.5], [np.nan, 1]):
        with pytest.raises(ValueError, match="Received: weights="):
            mixture_log_probabilities(logs, weights)
    with pytest.raises(ValueError, match="same shape"):
        mixture_log_probabilities([np.zeros(2), np.zeros(3)], [0.5, 0.5])
    for nothing in (np.zeros((2, 0)), np.zeros((2, 2, 2))):
        with pytest.raises(ValueError, match="Received: shape"):
            mixture_weights(nothing)
    for bad in (np.nan, -np.inf):
        with pytest.raises(ValueError, match=r"Received: \[1\] are the first"):
            mixture_weights([[-1, bad], [-1, -np.inf]])
