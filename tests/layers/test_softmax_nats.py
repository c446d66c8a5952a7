"""The loss of a softmax: the definition, and the gradients of automatic differentiation."""

import keras
import numpy as np
import pytest
from keras import ops

from rnnapps.layers import softmax_nats
from tests.layers.backends import compiled, with_gradients

pytestmark = pytest.mark.usefixtures("float64")


def example(dtype="float64"):
    rng = np.random.default_rng(3)
    h, words, bias = (rng.normal(size=shape).astype(dtype) for shape in ((2, 3, 4), (7, 4), (7,)))
    return h, words, bias, rng.integers(0, 7, (2, 3)).astype("int32")


def by_definition(h, words, bias, targets, share):
    log_probabilities = ops.log_softmax(ops.matmul(h, ops.transpose(words)) + bias)
    wanted = np.eye(7)[targets] * (1 - share) + share / 7
    return -ops.sum(wanted * log_probabilities, axis=-1)


@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("mode", [lambda run: run, compiled], ids=["eager", "compiled"])
def test_losses_and_gradients_are_those_of_the_definition(share, mode):
    *tensors, targets = example()
    weights = np.random.default_rng(5).normal(size=(2, 3))

    def losses_and_gradients(function):
        def total(*tensors):
            losses = function(*tensors, targets, share)
            return ops.sum(losses * weights), losses

        return with_gradients(total)

    (_, losses), gradients = mode(losses_and_gradients(softmax_nats))(*tensors)
    (_, expected), of_definition = losses_and_gradients(by_definition)(*tensors)
    np.testing.assert_allclose(losses, expected, atol=1e-12)
    for one, other in zip(gradients, of_definition, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_large_scores_and_no_steps():
    h, words, bias, targets = example("float32")
    losses = softmax_nats(1e4 * h, words, bias, targets, 0.1)
    expected = by_definition(1e4 * h.astype("float64"), words.astype("float64"), bias, targets, 0.1)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert softmax_nats(h[:, :0], words, bias, targets[:, :0]).shape == (2, 0)


def test_other_backends_compute_the_same(monkeypatch):
    *tensors, targets = example()
    ours = softmax_nats(*tensors, targets, 0.1)
    monkeypatch.setattr(keras.backend, "backend", lambda: "another")
    np.testing.assert_allclose(softmax_nats(*tensors, targets, 0.1), ours, atol=1e-12)
