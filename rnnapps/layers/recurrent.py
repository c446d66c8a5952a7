"""The recurrent layers: a cell carried along a sequence, with exact rules for padding."""

import keras
from keras import ops

from rnnapps.layers.cells import ElmanCell, GRUCell, LSTMCell, RecurrentCell


class RecurrentLayer(keras.layers.RNN):
    """What the recurrent layers have in common: a cell run over the steps of a sequence.

    A masked step changes no state and its output is zero. The last output is that of the last
    valid step. A sequence without a valid step, or without any step, answers with its initial state
    and zeros.

    Args:
        units: Size of the output and of each state.
        return_sequences: Whether to return the output at every step or the last one only.
            Default: `False`.
        return_state: Whether to return the final states too. Default: `False`.
        go_backwards: Whether to run from the end to the start; the outputs come in the order in
            which they were computed. Default: `False`.
        stateful: Whether a batch starts from the states in which the one before it ended.
            Default: `False`.
        name: Name of the layer. Default: `None`, chosen by Keras.
        trainable: Whether the weights are trained. Default: `True`.
        dtype: Data type or policy. Default: `None`, Keras' global policy.
        **options: The arguments of the cell.

    Call arguments:
        sequences: Float tensor, `[batch, time, features]`; any of the three may be unknown, but for
            the features when the layer is built.
        initial_state: List of tensors, `[batch, units]` each. Default: `None`, the cell's own.
        mask: Boolean tensor, `[batch, time]`, true at the valid steps, in any pattern. Default:
            `None`, the mask attached to `sequences` if there is one.
        training: Whether dropout is active. Default: `False`.

    Returns:
        The output, `[batch, time, units]` or `[batch, units]`; with `return_state` a tuple of the
        output and the final states, `[batch, units]` each.
    """

    cell_class: type[RecurrentCell]

    def __init__(
        self,
        units: int,
        *,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        name: str | None = None,
        trainable: bool = True,
        dtype=None,
        **options,
    ):
        super().__init__(
            self.cell_class(units, name="cell", trainable=trainable, dtype=dtype, **options),
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            # Keras would also put zero in the place of the last output when the last step is
            # masked, so this is for whole sequences only.
            zero_output_for_mask=return_sequences,
            name=name,
            trainable=trainable,
            dtype=dtype,
        )

    def call(self, sequences, initial_state=None, mask=None, training=False):
        """Runs the cell over the steps."""
        if mask is None:
            # Keras hands on the mask of `sequences` only when no other tensor is passed.
            mask = getattr(sequences, "_keras_mask", None)
        timesteps = ops.shape(sequences)[1]
        if sequences.shape[1] in (None, 0):
            sequences, mask = _at_least_one_step(sequences, mask)
        result = super().call(sequences, initial_state, mask, training)
        output, *states = result if self.return_state else (result,)
        if self.return_sequences:
            output = output[:, :timesteps]  # [batch, time, units]
        return (output, *states) if self.return_state else output

    def compute_mask(self, sequences, mask=None):
        """Returns the mask of the output, in the order of its steps."""
        if not self.return_sequences:
            mask = None
        elif mask is not None and self.go_backwards:
            mask = ops.flip(mask, axis=1)
        return [mask] + [None] * len(self.state_size) if self.return_state else mask

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        config = {**self.cell.get_config(), **super().get_config()}
        for fixed in ("cell", "unroll", "zero_output_for_mask"):
            del config[fixed]
        return config

    @classmethod
    def from_config(cls, config: dict):
        """Makes a layer from the constructor's arguments."""
        return cls(**config)


def _at_least_one_step(sequences, mask):
    """Puts one padded step behind sequences of length 0: the loop looks at its first step."""
    batch, timesteps, features = ops.shape(sequences)
    missing = 1 if sequences.shape[1] == 0 else ops.maximum(1 - timesteps, 0)
    padding = ops.zeros((batch, missing, features), dtype=sequences.dtype)
    mask = ops.ones((batch, timesteps), "bool") if mask is None else ops.cast(mask, "bool")
    return (
        ops.concatenate([sequences, padding], axis=1),  # [batch, max(time, 1), features]
        ops.concatenate([mask, ops.zeros((batch, missing), "bool")], axis=1),
    )


@keras.saving.register_keras_serializable(package="rnnapps")
class Elman(RecurrentLayer):
    """The simple recurrent network of Elman (1990), `h_t = φ(W x_t + U h_{t-1} + b)`.

    Its arguments are those of `ElmanCell` and of `RecurrentLayer`; its one state is `h`.

    Example:

    >>> layer = Elman(4, activation="relu", recurrent_initializer="identity")
    >>> layer(keras.ops.ones((2, 5, 3))).shape
    TensorShape([2, 4])
    """

    cell_class = ElmanCell


@keras.saving.register_keras_serializable(package="rnnapps")
class LSTM(RecurrentLayer):
    """Long short-term memory over a sequence (Hochreiter & Schmidhuber 1997).

    Its arguments are those of `LSTMCell`, which has the equations, and of `RecurrentLayer`; its
    states are `h` and `c`.

    Example:

    >>> layer = LSTM(4, return_sequences=True, return_state=True)
    >>> output, h, c = layer(keras.ops.ones((2, 5, 3)))
    >>> output.shape, c.shape
    (TensorShape([2, 5, 4]), TensorShape([2, 4]))
    """

    cell_class = LSTMCell


@keras.saving.register_keras_serializable(package="rnnapps")
class GRU(RecurrentLayer):
    """Gated recurrent units over a sequence (Cho et al. 2014).

    Its arguments are those of `GRUCell`, which has the equations, and of `RecurrentLayer`; its one
    state is `h`.

    Example:

    >>> layer = GRU(4, return_sequences=True)
    >>> layer(keras.ops.ones((2, 5, 3))).shape
    TensorShape([2, 5, 4])
    """

    cell_class = GRUCell
