"""The steps' shares of a gradient: closed forms, and a sum that is the whole."""

import numpy as np
import pytest
import tensorflow as tf

from rnnapps.inspection.step_gradients import step_gradients
from rnnapps.layers import GRU, LSTM, Elman


@pytest.mark.parametrize(
    "layer",
    [
        Elman(4, use_bias=False, dtype="float64"),
        LSTM(4, peephole=True, dropout=0.5, dtype="float64"),
        GRU(4, dtype="float64"),
        GRU(4, reset_after=True, implementation="reference", dtype="float64"),
    ],
    ids=["elman", "lstm", "gru", "reset_after"],
)
def test_the_shares_add_up_to_the_gradient(layer):
    rng = np.random.default_rng(0)
    x, errors = tf.constant(rng.normal(size=(3, 5, 2))), rng.normal(size=(3, 5, 4))
    layer.return_sequences = True
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = layer(x)
    kernel, inputs = tape.gradient(
        outputs, [layer.cell.kernel.value, x], output_gradients=tf.constant(errors)
    )
    shares = step_gradients(layer, x, errors)
    np.testing.assert_allclose(shares.kernel.sum(axis=0), kernel, rtol=1e-9)
    np.testing.assert_allclose(shares.inputs, inputs, rtol=1e-9)
    assert shares.kernel_norms.shape == shares.input_norms.shape == (5,)


def test_a_linear_layer_by_hand():
    """h_t = x_t + 0.5 h_{t-1}: an error of 1 at step 4 is 0.5^(4-t) at step t."""
    layer = Elman(1, activation="linear", dtype="float64")
    layer.build((None, None, 1))
    layer.set_weights([np.ones((1, 1)), np.full((1, 1), 0.5), np.zeros(1)])
    x, errors = np.array([[[1.0], [2.0], [3.0], [4.0]]]), np.zeros((1, 4, 1))
    errors[0, -1] = 1
    shares = step_gradients(layer, x, errors)
    np.testing.assert_allclose(shares.kernel_norms, [0.125, 0.5, 1.5, 4.0])
    np.testing.assert_allclose(shares.input_norms, [0.125, 0.25, 0.5, 1.0])


def test_normalised_products_are_refused():
    layer = LSTM(4, layer_norm=True)
    layer.build((None, None, 3))
    with pytest.raises(ValueError, match="Received"):
        step_gradients(layer, np.ones((1, 2, 3)), np.ones((1, 2, 4)))
