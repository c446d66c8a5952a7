"""The loss of a softmax: the definition, and the gradients of automatic differentiation."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rnnapps.layers import softmax_nats


def example(dtype="float64"):
    rng = np.random.default_rng(3)
    h, words, bias = (rng.normal(size=shape).astype(dtype) for shape in ((2, 3, 4), (7, 4), (7,)))
    return h, words, bias, rng.integers(0, 7, (2, 3)).astype("int32")


def by_definition(h, words, bias, targets, share):
    log_probabilities = tf.nn.log_softmax(tf.matmul(h, words, transpose_b=True) + bias)
    wanted = tf.one_hot(targets, 7, dtype=h.dtype) * (1 - share) + share / 7
    return -tf.reduce_sum(wanted * log_probabilities, axis=-1)


@pytest.mark.parametrize("share", [0.0, 0.1])
@pytest.mark.parametrize("compiled", [False, True])
def test_losses_and_gradients_are_those_of_the_definition(share, compiled):
    *tensors, targets = example()
    tensors = [tf.constant(tensor) for tensor in tensors]
    weights = tf.constant(np.random.default_rng(5).normal(size=(2, 3)))

    def losses_and_gradients(function, *tensors):
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            losses = function(*tensors, targets, share)
            total = tf.reduce_sum(losses * weights)
        return losses, tape.gradient(total, tensors)

    run = tf.function(losses_and_gradients, autograph=False, jit_compile=compiled)
    losses, gradients = run(softmax_nats, *tensors)
    expected, of_definition = losses_and_gradients(by_definition, *tensors)
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
