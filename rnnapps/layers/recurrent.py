"""The recurrent layers: a cell carried along a sequence, with exact rules for padding."""

import keras
from keras import ops, tree

# The loop over the steps has no public name.
from keras.src import backend

from rnnapps.layers.cells import ElmanCell, GRUCell, JordanCell, LSTMCell, RecurrentCell

IMPLEMENTATIONS = ("auto", "reference", "fused")
ELMAN_ACTIVATIONS = tuple(
    keras.activations.get(name) for name in ("tanh", "sigmoid", "relu", "linear")
)


@keras.saving.register_keras_serializable(package="rnnapps")
class RNN(keras.layers.RNN):
    """A cell run over the steps of a sequence.

    A masked step changes no state and its output is zero. The last output is that of the last
    valid step. A sequence without a valid step, or without any step, answers with its initial state
    and zeros.

    Args:
        cell: A recurrent cell of this package, of `keras.layers`, one's own, or
            `keras.layers.StackedRNNCells` of them.
        return_sequences: Whether to return the output at every step or the last one only.
            Default: `False`.
        return_state: Whether to return the final states too. Default: `False`.
        go_backwards: Whether to run from the end to the start; the outputs come in the order in
            which they were computed. Default: `False`.
        stateful: Whether a batch starts from the states in which the one before it ended, until
            `reset_state()`. The batch size must then be known. Default: `False`.
        **kwargs: `name`, `dtype`, `trainable` and `activity_regularizer`, as for every Keras layer.

    Call arguments:
        sequences: Float tensor, `[batch, time, features]`; any of the three may be unknown, but for
            the features when the layer is built.
        initial_state: List of tensors, `[batch, units]` each. Default: `None`, the cell's own, or
            what a stateful layer remembers.
        mask: Boolean tensor, `[batch, time]`, true at the valid steps, in any pattern. Default:
            `None`, the mask attached to `sequences` if there is one.
        reset: Boolean tensor, `[batch, time]`. Where it is true, the row goes back to the cell's
            own initial state just before that step is taken, so that one row can hold several
            sequences one after the other. With `go_backwards` the steps are taken from the end, so
            a reset forgets what stands behind it. At a masked step it does nothing. Default:
            `None`.
        constants: List of tensors, `[batch, n]` each, which do not change over the steps: every
            step sees them behind its input, `[x_t; k]`, and the cell's `dropout` drops features of
            both. Default: `None`.
        training: Whether dropout is active. Default: `False`.

    Returns:
        The output, `[batch, time, units]` or `[batch, units]`; with `return_state` a tuple of the
        output and the final states, `[batch, units]` each.

    Raises:
        ValueError: If `sequences` has not three axes, `initial_state` not as many tensors as the
            cell has states, or `constants` is a tensor.

    Example:

    >>> deep = keras.layers.StackedRNNCells([LSTMCell(4), LSTMCell(2)])
    >>> layer = RNN(deep, return_state=True)
    >>> output, lower, (h, c) = layer(keras.ops.ones((3, 5, 6)))
    >>> tuple(output.shape), tuple(c.shape)
    ((3, 2), (3, 2))
    """

    def __init__(
        self,
        cell,
        *,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        **kwargs,
    ):
        super().__init__(
            cell,
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            # Keras would also put zero in the place of the last output when the last step is
            # masked, so this is for whole sequences only.
            zero_output_for_mask=return_sequences,
            **kwargs,
        )
        self.input_spec = keras.layers.InputSpec(ndim=3)

    def build(self, sequences_shape, initial_state_shape=None, constants_shape=None):
        """Builds the cell for inputs of shape `[batch, time, features]`."""
        *shape, features = sequences_shape
        if constants_shape is not None:
            if not tree.is_nested(constants_shape[0]):
                raise _not_a_list(constants_shape)
            features += sum(size for *_, size in constants_shape)
        super().build((*shape, features))

    def call(
        self, sequences, initial_state=None, mask=None, reset=None, constants=None, training=False
    ):
        """Runs the cell over the steps."""
        if mask is None:
            # Keras hands on the mask of `sequences` only when no other tensor is passed.
            mask = getattr(sequences, "_keras_mask", None)
        batch, timesteps, _ = ops.shape(sequences)
        if constants is not None:
            if not tree.is_nested(constants):
                raise _not_a_list(constants.shape)
            sequences = _beside(sequences, constants)
        states = self._starting_states(batch, initial_state)
        if training:
            # A call that failed may have left its masks behind.
            self._maybe_reset_dropout_masks(self.cell)
            # Ahead of the loop, so that all steps see the same masks.
            self._maybe_config_dropout_masks(self.cell, _any_step(sequences), states)
        last, outputs, states = tree.map_structure(
            lambda result: ops.cast(result, self.compute_dtype),
            self.inner_loop(sequences, states, mask, training, reset),
        )
        self._maybe_reset_dropout_masks(self.cell)
        if self.stateful:
            for variable, state in zip(
                tree.flatten(self.states), tree.flatten(states), strict=True
            ):
                variable.assign(state)
        output = outputs[:, :timesteps] if self.return_sequences else last
        if not self.return_state:
            return output
        sizes = [list(size) if tree.is_nested(size) else size for size in self.state_size]
        return (output, *tree.pack_sequence_as(sizes, tree.flatten(states)))

    def _starting_states(self, batch, states=None):
        """Returns the states given, or remembered, or the cell's own, as the cell takes them."""
        if self.stateful:
            rows = tree.flatten(self.states)[0].shape[0]
            if isinstance(batch, int) and batch != rows:
                raise ValueError(
                    f"A stateful layer built for {rows} rows must be called with as many. "
                    f"Received: a batch of {batch}"
                )
        own = self.get_initial_state(batch)
        if states is None:
            states = self.states if self.stateful else own
        given, wanted = tree.flatten(states), len(tree.flatten(own))
        if len(given) != wanted:
            raise ValueError(
                f"`initial_state` must hold as many tensors as the cell has states, {wanted}. "
                f"Received: {len(given)}"
            )
        return tree.pack_sequence_as(
            own, [ops.convert_to_tensor(state, dtype=self.cell.compute_dtype) for state in given]
        )

    def inner_loop(self, sequences, initial_state, mask, training=False, reset=None):
        """Returns the last output, all outputs and the final states of a run over the steps."""
        if sequences.shape[1] in (None, 0):
            sequences, mask, reset = at_least_one_step(sequences, mask, reset)
        options = {"training": training} if self.cell._call_has_training_arg else {}
        if reset is not None:
            fresh = tree.flatten(self.get_initial_state(ops.shape(sequences)[0]))
            # The loop takes one tensor of inputs, so the resets travel as its last feature.
            flags = ops.cast(reset, sequences.dtype)[..., None]  # [batch, time, 1]
            sequences = ops.concatenate([sequences, flags], axis=-1)

        def step(inputs, states):
            if reset is not None:
                inputs, flags = inputs[:, :-1], inputs[:, -1:]
                states = tree.pack_sequence_as(
                    states,
                    [
                        ops.where(flags > 0, new, old)
                        for new, old in zip(fresh, tree.flatten(states), strict=True)
                    ],
                )
            output, new_states = self.cell(inputs, states, **options)
            # A cell may return a single state as it is; the loop wants the structure it gave.
            return output, tree.pack_sequence_as(states, tree.flatten(new_states))

        # Only TensorFlow's loop knows the last valid output: others take the first state for it.
        unknown = mask is not None and keras.backend.backend() != "tensorflow"
        last, outputs, states = backend.rnn(
            step,
            sequences,
            initial_state,
            go_backwards=self.go_backwards,
            mask=mask,
            input_length=sequences.shape[1],
            zero_output_for_mask=self.zero_output_for_mask or unknown,
            return_all_outputs=self.return_sequences or unknown,
        )
        if unknown:
            last = _last_valid(outputs, ops.flip(mask, axis=1) if self.go_backwards else mask)
        return last, outputs, states

    def reset_state(self):
        """Puts a stateful layer back to the cell's own initial state."""
        if self.states is not None:
            variables = tree.flatten(self.states)
            fresh = tree.flatten(self.get_initial_state(variables[0].shape[0]))
            for variable, state in zip(variables, fresh, strict=True):
                variable.assign(state)

    def compute_mask(self, sequences, mask=None):
        """Returns the mask of the output, in the order of its steps."""
        if not self.return_sequences:
            mask = None
        elif mask is not None and self.go_backwards:
            mask = ops.flip(mask, axis=1)
        return [mask] + [None] * len(self.state_size) if self.return_state else mask

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        config = super().get_config()
        for fixed in ("unroll", "zero_output_for_mask"):
            del config[fixed]
        penalty = keras.regularizers.serialize(self.activity_regularizer)
        return {**config, "activity_regularizer": penalty}


def _last_valid(outputs, mask):
    """Returns the output at the last valid step of each row, or zeros."""
    steps = ops.arange(outputs.shape[1])  # [time]
    last = ops.max(ops.where(mask, steps, -1), axis=1, keepdims=True)  # [batch, 1]
    return ops.sum(ops.where((steps == last)[..., None], outputs, 0), axis=1)


def _not_a_list(shape) -> ValueError:
    return ValueError(
        f"`constants` must be a list of tensors. Received: one tensor of shape {tuple(shape)}"
    )


def _beside(sequences, constants):
    """Puts tensors `[batch, n]` behind the features of every step."""
    batch, timesteps, _ = ops.shape(sequences)
    repeated = [
        ops.broadcast_to(
            ops.cast(constant, sequences.dtype)[:, None], (batch, timesteps, constant.shape[-1])
        )
        for constant in constants
    ]
    return ops.concatenate([sequences, *repeated], axis=-1)  # [batch, time, features + n]


def _any_step(sequences):
    """Returns a tensor of the shape of one step, `[batch, features]`, even if there is no step."""
    return ops.sum(sequences[:, :1], axis=1)


def at_least_one_step(sequences, mask, reset):
    """Puts one padded step behind sequences of length 0: Keras' loop looks at its first step.

    Args:
        sequences: Float tensor, `[batch, time, features]`.
        mask: Boolean tensor, `[batch, time]`, or `None`.
        reset: Boolean tensor, `[batch, time]`, or `None`.

    Returns:
        The same of `max(time, 1)` steps; the mask is never `None`.
    """
    batch, timesteps, _ = ops.shape(sequences)
    missing = 1 if sequences.shape[1] == 0 else ops.maximum(1 - timesteps, 0)

    def padded(steps):
        padding = ops.zeros((batch, missing, *steps.shape[2:]), dtype=steps.dtype)
        return ops.concatenate([steps, padding], axis=1)  # [batch, max(time, 1), ...]

    mask = ops.ones((batch, timesteps), "bool") if mask is None else ops.cast(mask, "bool")
    if reset is not None:
        reset = padded(ops.cast(reset, "bool"))
    return padded(sequences), padded(mask), reset


class RecurrentLayer(RNN):
    """What the layers with a cell of their own have in common.

    Their rules for padding, resets and constants, their call arguments and what they return are
    those of `RNN`.

    Args:
        units: The cell's size, `units`.
        return_sequences: Whether to return the output at every step or the last one only.
            Default: `False`.
        return_state: Whether to return the final states too. Default: `False`.
        go_backwards: Whether to run from the end to the start. Default: `False`.
        stateful: Whether a batch starts from the states in which the one before it ended.
            Default: `False`.
        implementation: How the steps are run. `"reference"` calls the cell at every step.
            `"fused"` is the engine of `rnnapps.layers.fused`, for TensorFlow: the same results from
            one loop with a gradient of its own, compiled for each new shape. `"auto"` takes the
            engine if it has the layer's equations. It compiles in training and in Keras' `fit`,
            `evaluate` and `predict`, and not elsewhere, so that an exported graph never stops to
            compile. Where it would, on a GPU, cuDNN takes its place for batches that cuDNN can
            take (see `rnnapps.layers.cudnn`). Default: `"auto"`.
        activity_regularizer: Penalty on what the layer returns. Default: `None`.
        name: Name of the layer. Default: `None`, chosen by Keras.
        trainable: Whether the weights are trained. Default: `True`.
        dtype: Data type or policy. Default: `None`, Keras' global policy.
        **options: The arguments of the cell.

    Attributes:
        implementation_used: `"fused"`, `"cudnn"` where that stands in for it, or `"reference"` with
            the reason why.

    Raises:
        ValueError: If `implementation` is unknown, or is `"fused"` and the engine does not have
            the layer's equations.
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
        implementation: str = "auto",
        activity_regularizer=None,
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
            activity_regularizer=activity_regularizer,
            name=name,
            trainable=trainable,
            dtype=dtype,
        )
        if implementation not in IMPLEMENTATIONS:
            raise ValueError(
                f"`implementation` must be one of {', '.join(IMPLEMENTATIONS)}. "
                f"Received: implementation={implementation!r}"
            )
        self.implementation = implementation
        if implementation == "fused" and self.implementation_used != "fused":
            raise ValueError(
                f'`implementation="fused"` is not possible here; "auto" would give '
                f"{self.implementation_used}. Received: implementation={implementation!r}"
            )

    @property
    def implementation_used(self) -> str:
        """`"fused"`, `"cudnn"`, or `"reference"` with the reason why."""
        if reason := self._obstacle():
            return f"reference ({reason})"
        return "cudnn" if self._has_cudnn() else "fused"

    def _has_cudnn(self) -> bool:
        """Returns whether cuDNN stands in for the engine, where a batch fits."""
        # Here, because other backends need not have TensorFlow.
        from rnnapps.layers import cudnn

        return self.implementation == "auto" and cudnn.has_equations(self.cell)

    def _obstacle(self) -> str | None:
        """Returns what keeps the layer from the engine, if anything does."""
        cell = self.cell
        if self.implementation == "reference":
            return "as asked for"
        if keras.backend.backend() != "tensorflow":
            return "the engine is for the TensorFlow backend"
        if type(cell) not in (ElmanCell, LSTMCell, GRUCell):
            return f"the engine has no equations of {type(cell).__name__}"
        if cell.layer_norm:
            return "layer normalisation"
        if isinstance(cell, ElmanCell):
            usual = cell.activation in ELMAN_ACTIVATIONS
        else:
            usual = (cell.activation, cell.recurrent_activation) == (
                keras.activations.tanh,
                keras.activations.sigmoid,
            )
        return None if usual else "an activation that the engine does not have"

    def _equations(self):
        """Returns the cell's equations for the engine."""
        from rnnapps.layers import equations

        cell = self.cell
        if isinstance(cell, ElmanCell):
            return equations.Elman(cell.activation.__name__)
        if isinstance(cell, LSTMCell):
            return equations.LSTM(cell.peephole)
        return equations.GRUResetAfter() if cell.reset_after else equations.GRU()

    def inner_loop(self, sequences, initial_state, mask, training=False, reset=None):
        """Returns the last output, all outputs and the final states of a run over the steps."""
        if self._obstacle():
            return super().inner_loop(sequences, initial_state, mask, training, reset)
        from rnnapps.layers import fused

        cell, dropped, U = self.cell, {}, self.cell.recurrent_kernel
        if training and cell.dropout > 0:
            dropped["input_dropout"] = cell.get_dropout_mask(_any_step(sequences))
        if training and cell.recurrent_dropout > 0:
            dropped["recurrent_dropout"] = cell.get_recurrent_dropout_mask(initial_state[0])
        if training and cell.recurrent_weight_dropout > 0:
            U = U * cell.get_recurrent_weight_mask()
        mask, reset = (v if v is None else ops.cast(v, "bool") for v in (mask, reset))
        compiled = training or self.implementation == "fused" or fused.run_by_strategy()

        def engine():
            steps = sequences, mask, reset
            if self.go_backwards:
                steps = (v if v is None else ops.flip(v, axis=1) for v in steps)
            inputs, valid, again = steps
            return fused.run(
                self._equations(),
                inputs,
                cell.kernel,
                U,
                cell.bias,
                getattr(cell, "peephole_kernel", None),
                states=initial_state,
                mask=valid,
                reset=again,
                training=bool(training),
                compiled=compiled,
                **dropped,
            )

        stands_in = compiled and reset is None and "recurrent_dropout" not in dropped
        if stands_in and self._has_cudnn() and not fused.in_compiled_graph():
            outputs, last, states = self._on_cudnn(
                sequences, U, initial_state, mask, dropped.get("input_dropout"), engine
            )
        else:
            outputs, last, states = engine()
        return last, outputs, list(states)

    def _on_cudnn(self, sequences, U, states, mask, input_dropout, engine):
        """Runs a batch on cuDNN where it fits, and otherwise on the engine."""
        from rnnapps.layers import cudnn

        cell = self.cell

        def kernels():
            inputs = sequences
            if input_dropout is not None:
                inputs = inputs * input_dropout[:, None]  # [batch, time, features]
            options = {"states": states, "mask": mask, "go_backwards": self.go_backwards}
            return cudnn.run(cell, inputs, cell.kernel, U, cell.bias, **options)

        return ops.cond(cudnn.fits(sequences, mask), kernels, engine)

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        config = {**self.cell.get_config(), **super().get_config()}
        del config["cell"]
        return {**config, "implementation": self.implementation}

    @classmethod
    def from_config(cls, config: dict):
        """Makes a layer from the constructor's arguments."""
        return cls(**config)


@keras.saving.register_keras_serializable(package="rnnapps")
class Elman(RecurrentLayer):
    """The simple recurrent network of Elman (1990), `h_t = φ(W x_t + U h_{t-1} + b)`.

    Its arguments are those of `ElmanCell` and of `RecurrentLayer`; its one state is `h`.

    Example:

    >>> layer = Elman(4, activation="relu", recurrent_initializer="identity")
    >>> tuple(layer(keras.ops.ones((2, 5, 3))).shape)
    (2, 4)
    """

    cell_class = ElmanCell


@keras.saving.register_keras_serializable(package="rnnapps")
class Jordan(RecurrentLayer):
    """The recurrent network of Jordan (1986), whose output is fed back.

    Its arguments are those of `JordanCell`, which has the equations, and of `RecurrentLayer`; its
    output and its one state are y, `[batch, output_units]`.

    Example:

    >>> layer = Jordan(8, 4, output_activation="softmax", return_sequences=True)
    >>> tuple(layer(keras.ops.ones((2, 5, 3))).shape)
    (2, 5, 4)
    """

    cell_class = JordanCell

    def __init__(self, units: int, output_units: int, **options):
        super().__init__(units, output_units=output_units, **options)


@keras.saving.register_keras_serializable(package="rnnapps")
class LSTM(RecurrentLayer):
    """Long short-term memory over a sequence (Hochreiter & Schmidhuber 1997).

    Its arguments are those of `LSTMCell`, which has the equations, and of `RecurrentLayer`; its
    states are `h` and `c`.

    Example:

    >>> layer = LSTM(4, return_sequences=True, return_state=True)
    >>> output, h, c = layer(keras.ops.ones((2, 5, 3)))
    >>> tuple(output.shape), tuple(c.shape)
    ((2, 5, 4), (2, 4))
    """

    cell_class = LSTMCell


@keras.saving.register_keras_serializable(package="rnnapps")
class GRU(RecurrentLayer):
    """Gated recurrent units over a sequence (Cho et al. 2014).

    Its arguments are those of `GRUCell`, which has the equations, and of `RecurrentLayer`; its one
    state is `h`.

    Example:

    >>> layer = GRU(4, return_sequences=True)
    >>> tuple(layer(keras.ops.ones((2, 5, 3))).shape)
    (2, 5, 4)
    """

    cell_class = GRUCell
