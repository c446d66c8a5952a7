"""Tokens so far to the next one: the block that writes."""

import keras
from keras import ops

from rnnapps.models.text_encoder import TextEncoder


@keras.saving.register_keras_serializable(package="rnnapps")
class Decoder(keras.layers.Layer):
    """Predicts each next token from those before it (Elman 1990; Mikolov et al. 2010).

        h_t = recurrent layers(embedding(w_t), h_{t-1})
        P(w_{t+1} | w_1 … w_t) = softmax(V h_t + c)

    One call takes all steps of given tokens, as in training (teacher forcing); `step` takes one
    after the other, as in writing. Both are the same layers.

    With tied embeddings V is the embedding itself (Press & Wolf 2017; Inan et al. 2017), behind a
    projection where the sizes differ.

    Args:
        encoder: A `TextEncoder` whose recurrent layers run one way.
        tied: Whether the output shares the embedding's weights. Default: `False`.
        dropout: Share of the recurrent outputs that is dropped in training, variational if the
            encoder's is. Default: 0.
        activation_regularization: α of the penalty α · mean(h²) on the dropped outputs (Merity et
            al. 2017). Default: 0.
        temporal_regularization: β of the penalty β · mean((h_t - h_{t-1})²). Default: 0.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Call arguments:
        ids: Integer tensor, `[batch, time]`; 0 is padding.
        initial_state: List of tensors, `[batch, units]` each, in the order of the returned states.
            Default: `None`, the cells' own.
        reset: Boolean tensor, `[batch, time]`, true where a row begins anew before the step.
            Default: `None`.
        training: Whether dropout is active. Default: `None`, as the surrounding call says.

    Returns:
        Logits of the next token, `[batch, time, vocabulary_size]`, in float32 whatever the policy,
        and the list of final states, `[batch, units]` each.

    Raises:
        ValueError: If the encoder reads both ways.

    Example:

    >>> decoder = Decoder(TextEncoder(50, 8, SequenceEncoder("gru", 4, bidirectional=False)))
    >>> logits, states = decoder(keras.ops.convert_to_tensor([[5, 7, 3], [3, 0, 0]]))
    >>> logits.shape
    TensorShape([2, 3, 50])
    >>> logits, states = decoder.step(keras.ops.convert_to_tensor([9, 4]), states)
    >>> logits.shape
    TensorShape([2, 50])
    """

    def __init__(
        self,
        encoder: TextEncoder,
        tied: bool = False,
        dropout: float = 0.0,
        activation_regularization: float = 0.0,
        temporal_regularization: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if encoder.encoder.bidirectional:
            raise ValueError("A decoder cannot read what comes. Received: bidirectional=True")
        self.encoder = encoder
        self.tied = tied
        self.dropout = dropout
        self.activation_regularization = activation_regularization
        self.temporal_regularization = temporal_regularization
        self.supports_masking = True
        noise_shape = (None, 1, None) if encoder.variational else None
        self.dropout_layer = keras.layers.Dropout(dropout, noise_shape, dtype=self.dtype_policy)
        self.projection = self.output_layer = None
        if not tied:
            self.output_layer = keras.layers.Dense(encoder.vocabulary_size, dtype="float32")
        elif encoder.output_size != encoder.embedding_size:
            self.projection = keras.layers.Dense(
                encoder.embedding_size, use_bias=False, dtype=self.dtype_policy
            )

    def build(self, ids_shape, initial_state_shape=None, reset_shape=None):
        """Builds the layers for ids of shape `[batch, time]`."""
        if not self.encoder.built:  # as it is where it came from a file
            self.encoder.build(ids_shape)
        outputs_shape = (*ids_shape[:2], self.encoder.output_size)
        for layer in (self.projection, self.output_layer):
            if layer is not None:
                layer.build(outputs_shape)
        if self.tied:
            self.bias = self.add_weight(
                shape=(self.encoder.vocabulary_size,),
                initializer="zeros",
                dtype="float32",
                autocast=False,
                name="bias",
            )

    def call(self, ids, initial_state=None, reset=None, training=None):
        """Reads the ids and predicts what follows each of them."""
        outputs, states = self.encoder(
            ids, initial_state=initial_state, reset=reset, training=training
        )
        dropped = self.dropout_layer(outputs, training=training)
        if training:
            self._regularize(outputs, dropped)
        return self._logits(dropped), states

    def step(self, ids, states):
        """Takes one step.

        Args:
            ids: Integer tensor, `[batch]`, the tokens last written.
            states: The list of states before them.

        Returns:
            The logits of the next tokens, `[batch, vocabulary_size]`, and the states after the ids.
        """
        logits, states = self(ids[:, None], initial_state=states, training=False)
        return logits[:, 0], states

    def _logits(self, outputs):
        if not self.tied:
            return self.output_layer(outputs)  # [batch, time, vocabulary_size]
        if self.projection is not None:
            outputs = self.projection(outputs)  # [batch, time, embedding_size]
        embeddings = ops.cast(ops.transpose(self.encoder.embedding.embeddings), "float32")
        return ops.matmul(ops.cast(outputs, "float32"), embeddings) + self.bias

    def _regularize(self, outputs, dropped):
        """Adds the penalties; padded outputs are zero and count little, as in the original."""
        if self.activation_regularization:
            mean = ops.mean(ops.square(ops.cast(dropped, "float32")))
            self.add_loss(self.activation_regularization * mean)
        if self.temporal_regularization:
            change = ops.square(ops.cast(outputs[:, 1:] - outputs[:, :-1], "float32"))
            size = ops.maximum(ops.size(change), 1)  # there is none in a single step
            mean = ops.sum(change) / ops.cast(size, "float32")
            self.add_loss(self.temporal_regularization * mean)

    def compute_mask(self, ids, mask=None):
        """Returns the mask of the logits, which is that of the ids, and none for the states."""
        return self.encoder.compute_mask(ids), [None] * len(self.state_sizes)

    @property
    def state_sizes(self) -> list[int]:
        """Number of features of each state."""
        stack = self.encoder.encoder
        return stack.state_sizes * stack.num_layers

    def compute_output_shape(self, ids_shape, initial_state_shape=None, reset_shape=None):
        """Returns the shapes of the logits and of the states."""
        states = [(ids_shape[0], size) for size in self.state_sizes]
        return (*ids_shape, self.encoder.vocabulary_size), states

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "tied": self.tied,
            "dropout": self.dropout,
            "activation_regularization": self.activation_regularization,
            "temporal_regularization": self.temporal_regularization,
        }

    @classmethod
    def from_config(cls, config: dict):
        """Makes a layer from the constructor's arguments."""
        encoder = keras.saving.deserialize_keras_object(config["encoder"])
        return cls(**{**config, "encoder": encoder})
