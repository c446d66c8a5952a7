"""How much of a gradient comes from each time step."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from rnnapps.layers.recurrent import RecurrentLayer


class StepGradients(NamedTuple):
    """What each step adds to the gradient of an error E.

    Attributes:
        kernel: float array `[time, features, gates·units]`, what the step adds to `∂E/∂W`; the sum
            over the steps is `∂E/∂W` itself.
        inputs: float array `[batch, time, features]`, `∂E/∂x_t`.
    """

    kernel: np.ndarray
    inputs: np.ndarray

    @property
    def kernel_norms(self) -> np.ndarray:
        """Length of each step's share of `∂E/∂W`, `[time]`."""
        return np.linalg.norm(self.kernel, axis=(1, 2))

    @property
    def input_norms(self) -> np.ndarray:
        """Length of `∂E/∂x_t`, the mean over the rows, `[time]`."""
        return np.linalg.norm(self.inputs, axis=2).mean(axis=0)


def step_gradients(layer: RecurrentLayer, sequences, errors) -> StepGradients:
    """Takes the gradient of a layer apart, step by step (Pascanu et al. 2013).

    With the pre-activation `a_t = W x_t + U h_{t-1} + b`, step t adds `∂E/∂a_t x_t^T` to `∂E/∂W`.
    `∂E/∂a_t` is the gradient of an input that enters beside `W x_t` with the identity in place of
    `W`, and is zero: so it comes from the layer's own backpropagation, not from a formula.

    Args:
        layer: An `Elman`, `LSTM` or `GRU` layer of this package, built, without `layer_norm`.
        sequences: Float array, `[batch, time, features]`.
        errors: Float array, `[batch, time, units]`: `∂E/∂h_t` where E sees the output itself. An
            error at the last step only is zero before it.

    Returns:
        What each step adds, in the layer's precision.

    Raises:
        ValueError: If the layer normalises `W x`, in which case no step's part stands alone.

    Example:

    >>> layer = LSTM(4)
    >>> layer.build((None, None, 3))
    >>> errors = np.zeros((2, 5, 4))
    >>> errors[:, -1] = 1
    >>> step_gradients(layer, np.ones((2, 5, 3)), errors).kernel_norms.shape
    (5,)
    """
    cell = layer.cell
    if cell.layer_norm:
        raise ValueError("`layer` must not normalise `W x`. Received: layer_norm=True")
    dtype = cell.compute_dtype
    x, errors = tf.cast(sequences, dtype), tf.cast(errors, dtype)
    columns = cell.kernel.shape[1]
    options = {
        **layer.get_config(),
        "return_sequences": True,
        "return_state": False,
        "stateful": False,
        "dropout": 0.0,
        "recurrent_dropout": 0.0,
        "recurrent_weight_dropout": 0.0,
    }
    probe = type(layer).from_config(options)
    probe.build((None, None, x.shape[2] + columns))
    W, *others = layer.get_weights()
    probe.set_weights([np.concatenate([W, np.eye(columns)]), *others])
    beside = tf.zeros((*x.shape[:2], columns), dtype)  # [batch, time, gates·units]

    @tf.function(autograph=False)
    def backpropagate():
        with tf.GradientTape() as tape:
            tape.watch([x, beside])
            outputs = probe(tf.concat([x, beside], axis=-1))  # [batch, time, units]
        return tape.gradient(outputs, [x, beside], output_gradients=errors)

    inputs, preactivations = backpropagate()
    kernel = tf.einsum("btd,btc->tdc", x, preactivations)  # [time, features, gates·units]
    return StepGradients(kernel.numpy(), inputs.numpy())
