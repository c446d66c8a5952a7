"""NVIDIA's own recurrent kernels, through stock Keras, where they have a layer's equations.

cuDNN knows the LSTM without peepholes and the GRU that resets after, and sequences padded at their
end, each with at least one step. Anything else it answers with an error or not at all, so that
`fits` asks first; what does not fit is the engine's.
"""

import keras
import tensorflow as tf

# Stock Keras' own way to cuDNN has no public name.
from keras.src import backend

from rnnapps.layers.cells import GRUCell, LSTMCell

DTYPES = ("float16", "float32")


def has_equations(cell) -> bool:
    """Returns whether cuDNN, on a GPU that is here, has the equations and the type of a cell.

    Args:
        cell: A cell that the engine has the equations of.
    """
    usual = isinstance(cell, GRUCell) and cell.reset_after
    usual = usual or (isinstance(cell, LSTMCell) and not cell.peephole)
    return (
        usual
        and cell.use_bias
        and cell.compute_dtype in DTYPES
        and bool(tf.config.list_logical_devices("GPU"))
    )


def fits(sequences, mask):
    """Returns whether cuDNN takes the sequences, a boolean scalar.

    Args:
        sequences: Float tensor, `[batch, time, features]`.
        mask: Boolean tensor, `[batch, time]`, or `None`, all valid.
    """
    some = tf.size(sequences) > 0
    if mask is None:
        return some
    # With one step at least, a mask of ones and then zeros never rises.
    rises = tf.reduce_any(mask[:, 1:] & ~mask[:, :-1])
    return some & tf.reduce_all(mask[:, :1]) & ~rises


def run(cell, inputs, kernel, recurrent_kernel, bias, *, states, mask=None, go_backwards=False):
    """Carries a cell along a batch of sequences that fit.

    Args:
        cell: A cell of which it has the equations.
        inputs: Float tensor, `[batch, time, features]`.
        kernel: `W` as the Keras layer has it, `[features, gates·units]`.
        recurrent_kernel: `U` as the Keras layer has it, `[units, gates·units]`.
        bias: `b` as the Keras layer has it.
        states: List of the states before the first step, `[batch, units]` each.
        mask: Boolean tensor, `[batch, time]`, true at the valid steps. Default: `None`, all.
        go_backwards: Whether the steps are taken from the end. Default: `False`.

    Returns:
        The outputs, `[batch, time, units]`, zero at padded steps; the last output, `[batch,
        units]`; and the final states, `[batch, units]` each.
    """
    kernels = backend.lstm if isinstance(cell, LSTMCell) else backend.gru
    last, outputs, states = kernels(
        inputs,
        *states,
        mask,
        *(keras.ops.convert_to_tensor(v) for v in (kernel, recurrent_kernel, bias)),
        cell.activation,
        cell.recurrent_activation,
        return_sequences=True,
        go_backwards=go_backwards,
    )
    return outputs, last, tuple(states)
