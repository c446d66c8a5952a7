"""A stack of recurrent layers over sequences of vectors."""

import keras
from keras import ops, tree

from rnnapps.layers import recurrent_stack


@keras.saving.register_keras_serializable(package="rnnapps")
class SequenceEncoder(keras.layers.Layer):
    """Reads sequences of vectors with N recurrent layers, one way or both ways.

    Args:
        cell: `"elman"`, `"jordan"`, `"lstm"` or `"gru"`. Default: `"lstm"`.
        units: Size of each direction of each layer. Default: 64.
        num_layers: Number of recurrent layers. Default: 1.
        bidirectional: Whether each layer runs both ways. Default: `True`.
        dropout: Share of the features that is dropped between the layers in training. Default: 0.
        recurrent_dropout: Share of the previous output that is dropped inside the cells in
            training, one mask a sequence. Default: 0.
        variational: Whether what is dropped between the layers is the same at all steps of a
            sequence (Gal & Ghahramani 2016). Default: `False`.
        name: Name of the layer. Default: `None`, chosen by Keras.
        trainable: Whether the weights are trained. Default: `True`.
        dtype: Data type or policy. Default: `None`, Keras' global policy.
        **layer_kwargs: Further arguments of the recurrent layers, `stateful=True` among them; see
            `recurrent_stack`.

    Call arguments:
        sequences: Float tensor, `[batch, time, features]`.
        mask: Boolean tensor, `[batch, time]`, true at the valid steps. Default: `None`, the mask
            attached to `sequences`, or all steps.
        initial_state: List of tensors, `[batch, units]` each, in the order of the returned states.
            Default: `None`, the cells' own, or what stateful layers remember.
        reset: Boolean tensor, `[batch, time]`, true where a row goes back to its initial state
            before the step is taken, so that it can hold several sequences one after the other;
            see `rnnapps.layers.Bidirectional` for both ways. Default: `None`.
        training: Whether dropout is active. Default: `None`, as the surrounding call says.

    Returns:
        The outputs of the top layer, `[batch, time, output_size]`, zero at padded steps; and the
        list of final states, `[batch, units]` each: layer by layer from the lowest, forward before
        backward, in a direction the output first (an LSTM's `h`, then `c`).

    Example:

    >>> encoder = SequenceEncoder("lstm", units=4, num_layers=2)
    >>> outputs, states = encoder(keras.ops.ones((2, 5, 3)))
    >>> outputs.shape, len(states)
    (TensorShape([2, 5, 8]), 8)
    """

    def __init__(
        self,
        cell: str = "lstm",
        units: int = 64,
        num_layers: int = 1,
        bidirectional: bool = True,
        dropout: float = 0.0,
        recurrent_dropout: float = 0.0,
        variational: bool = False,
        *,
        name: str | None = None,
        trainable: bool = True,
        dtype=None,
        **layer_kwargs,
    ):
        super().__init__(name=name, trainable=trainable, dtype=dtype)
        self.cell = cell
        self.units = units
        self.num_layers = num_layers
        self.bidirectional = bidirectional
        self.dropout = dropout
        self.recurrent_dropout = recurrent_dropout
        self.variational = variational
        self.layer_kwargs = layer_kwargs
        self.supports_masking = True
        self.recurrent_layers = recurrent_stack(
            cell,
            units,
            num_layers,
            bidirectional,
            recurrent_dropout=recurrent_dropout,
            dtype=self.dtype_policy,
            **layer_kwargs,
        )
        noise_shape = (None, 1, None) if variational else None
        self.dropout_layer = keras.layers.Dropout(dropout, noise_shape, dtype=self.dtype_policy)

    @property
    def output_size(self) -> int:
        """Number of features of the outputs."""
        return sum(run.cell.output_size for run in self._directions)

    @property
    def state_sizes(self) -> list[int]:
        """Number of features of each state of one layer, both directions together."""
        return [size for run in self._directions for size in run.state_size]

    @property
    def _directions(self) -> list[keras.Layer]:
        layer = self.recurrent_layers[0]
        return [layer.forward_layer, layer.backward_layer] if self.bidirectional else [layer]

    def build(self, sequences_shape, initial_state_shape=None):
        """Builds the layers for inputs of shape `[batch, time, features]`."""
        for layer in self.recurrent_layers:
            layer.build(sequences_shape)
            sequences_shape = (*sequences_shape[:2], self.output_size)

    def call(self, sequences, mask=None, initial_state=None, reset=None, training=None):
        """Runs the layers, each on the outputs of the one below."""
        resets = {} if reset is None else {"reset": reset}
        outputs, states = sequences, []
        for depth, layer in enumerate(self.recurrent_layers):
            if depth > 0:
                outputs = self.dropout_layer(outputs, training=training)
            start = None
            if initial_state is not None:
                start = initial_state[len(states) : len(states) + len(self.state_sizes)]
            outputs, *final = layer(
                outputs, initial_state=start, mask=mask, training=training, **resets
            )
            states.extend(final)
        return outputs, states

    def step(self, vectors, states: list, training=None):
        """Takes one step with a stack that reads one way.

        In training, what is dropped between the layers is drawn anew at each step; the cells drop
        nothing.

        Args:
            vectors: Float tensor, `[batch, features]`.
            states: The list of states before, as the call returns them.
            training: Whether dropout is active. Default: `None`, as the surrounding call says.

        Returns:
            The output of the top layer, `[batch, output_size]`, and the list of states after.
        """
        outputs, after = vectors, []
        for depth, layer in enumerate(self.recurrent_layers):
            if depth > 0 and training:
                outputs = self.dropout_layer(outputs, training=True)
            before = states[len(after) : len(after) + len(self.state_sizes)]
            outputs, new = layer.cell(outputs, before)  # [batch, units]
            after.extend(tree.flatten(new))
        return outputs, after

    def last_output(self, states: list):
        """Returns the top layer's output at the end of each direction, `[batch, output_size]`.

        The forward run ends at the last valid step and the backward run at the first, so this is
        what the network knows after having read the sequence.

        Args:
            states: The states that the call returned.
        """
        top = states[-len(self.state_sizes) :]
        if not self.bidirectional:
            return top[0]
        return ops.concatenate([top[0], top[len(top) // 2]], axis=-1)  # [batch, output_size]

    def reset_state(self):
        """Puts stateful layers back to their cells' own initial states."""
        for layer in self.recurrent_layers:
            layer.reset_state()

    def compute_mask(self, sequences, mask=None):
        """Returns the mask of the outputs, which is that of the inputs, and none for the states."""
        return mask, [None] * (len(self.state_sizes) * self.num_layers)

    def compute_output_shape(self, sequences_shape, initial_state_shape=None):
        """Returns the shapes of the outputs and of the states."""
        batch, timesteps, _ = sequences_shape
        states = [(batch, size) for size in self.state_sizes] * self.num_layers
        return (batch, timesteps, self.output_size), states

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "cell": self.cell,
            "units": self.units,
            "num_layers": self.num_layers,
            "bidirectional": self.bidirectional,
            "dropout": self.dropout,
            "recurrent_dropout": self.recurrent_dropout,
            "variational": self.variational,
            **{
                name: keras.saving.serialize_keras_object(value)
                for name, value in self.layer_kwargs.items()
            },
        }
