"""Token ids to vectors that know their context."""

import keras
from keras import ops

from rnnapps.models.sequence_encoder import SequenceEncoder


@keras.saving.register_keras_serializable(package="rnnapps")
class TextEncoder(keras.layers.Layer):
    """Embeds token ids and reads them with a `SequenceEncoder`.

    Id 0 is padding: it is masked, so that its embedding is never seen and never trained. A token
    may have several ids, such as a word's and its affixes'; its vector is then the sum of their
    embeddings. The embeddings start uniform in ±0.25.

    Args:
        vocabulary_size: Number of ids, padding included.
        embedding_size: Size of an embedding.
        encoder: The `SequenceEncoder` that reads the embeddings.
        dropout: Share of the vectors' entries that is dropped in training. Default: 0.
        variational: Whether the entries that are dropped are the same at all steps of a sequence
            (Gal & Ghahramani 2016). Default: `False`.
        word_dropout: Share of the vocabulary that is dropped in training, each word wherever it
            stands in the batch (Gal & Ghahramani 2016). Default: 0.
        train_embedding: Whether the embeddings are trained. Default: `True`.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Call arguments:
        ids: Integer tensor, `[batch, time]` or `[batch, time, ids]`.
        features: Float tensor, `[batch, time, features]`, which stands beside the embeddings in
            what is read. Default: `None`, nothing.
        initial_state: List of tensors, as for the encoder. Default: `None`.
        reset: Boolean tensor, `[batch, time]`, as for the encoder. Default: `None`.
        padded: Whether id 0 is padding. Without, every step is valid, which is faster than to mask
            none. Default: `True`.
        training: Whether dropout is active. Default: `None`, as the surrounding call says.

    Returns:
        The outputs, `[batch, time, output_size]`, zero at padded steps, and the list of final
        states, as `SequenceEncoder` gives them.

    Example:

    >>> encoder = TextEncoder(100, 8, SequenceEncoder("gru", units=4))
    >>> outputs, states = encoder(keras.ops.convert_to_tensor([[5, 7, 0], [3, 0, 0]]))
    >>> outputs.shape, len(states)
    (TensorShape([2, 3, 8]), 2)
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_size: int,
        encoder: SequenceEncoder,
        dropout: float = 0.0,
        variational: bool = False,
        word_dropout: float = 0.0,
        train_embedding: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.vocabulary_size = vocabulary_size
        self.embedding_size = embedding_size
        self.encoder = encoder
        self.dropout = dropout
        self.variational = variational
        self.word_dropout = word_dropout
        self.train_embedding = train_embedding
        self.supports_masking = True
        self.embedding = keras.layers.Embedding(
            vocabulary_size,
            embedding_size,
            keras.initializers.RandomUniform(-0.25, 0.25),
            trainable=train_embedding,
            dtype=self.dtype_policy,
        )
        noise_shape = (None, 1, None) if variational else None
        self.dropout_layer = keras.layers.Dropout(dropout, noise_shape, dtype=self.dtype_policy)
        self.word_dropout_layer = keras.layers.Dropout(word_dropout, dtype=self.dtype_policy)

    @property
    def output_size(self) -> int:
        """Number of features of the outputs."""
        return self.encoder.output_size

    def build(self, ids_shape, features_shape=None, initial_state_shape=None, reset_shape=None):
        """Builds the embedding and the encoder for ids and features of the shapes given."""
        self.embedding.build(ids_shape)
        size = self.embedding_size + (features_shape[-1] if features_shape else 0)
        self.encoder.build((*ids_shape[:2], size))

    def call(self, ids, features=None, initial_state=None, reset=None, padded=True, training=None):
        """Embeds and reads."""
        return self.encoder(
            self.embed(ids, features, training),
            mask=self.compute_mask(ids) if padded else None,
            initial_state=initial_state,
            reset=reset,
            training=training,
        )

    def embed(self, ids, features=None, training=None):
        """Returns what is read, `[batch, time, size]`, of arguments as for the call."""
        vectors = self.embedding(ids)  # [batch, time, (ids,) embedding_size]
        if training and self.word_dropout:
            kept = ops.ones((self.vocabulary_size,), dtype=self.compute_dtype)
            kept = self.word_dropout_layer(kept, training=True)
            vectors = vectors * ops.take(kept, ids)[..., None]
        if len(ids.shape) == 3:
            vectors = ops.sum(vectors, axis=2)  # [batch, time, embedding_size]
        if features is not None:
            vectors = ops.concatenate([vectors, features], axis=-1)
        return self.dropout_layer(vectors, training=training)

    def last_output(self, states: list):
        """Returns the output at the end of each direction, as `SequenceEncoder.last_output`."""
        return self.encoder.last_output(states)

    def compute_mask(self, ids, mask=None):
        """Returns which tokens, `[batch, time]`, are not padding."""
        return ops.not_equal(ids[:, :, 0] if len(ids.shape) == 3 else ids, 0)

    def compute_output_shape(
        self, ids_shape, features_shape=None, initial_state_shape=None, reset_shape=None
    ):
        """Returns the shapes of the outputs and of the states."""
        return self.encoder.compute_output_shape((*ids_shape[:2], self.embedding_size))

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "embedding_size": self.embedding_size,
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "dropout": self.dropout,
            "variational": self.variational,
            "word_dropout": self.word_dropout,
            "train_embedding": self.train_embedding,
        }

    @classmethod
    def from_config(cls, config: dict):
        """Makes a layer from the constructor's arguments."""
        encoder = keras.saving.deserialize_keras_object(config["encoder"])
        return cls(**{**config, "encoder": encoder})
