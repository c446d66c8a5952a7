"""A word's characters to a vector."""

import keras
import numpy as np
from keras import ops

from rnnapps.models.sequence_encoder import SequenceEncoder


@keras.saving.register_keras_serializable(package="rnnapps")
class CharacterEncoder(keras.layers.Layer):
    """Makes a vector of a word's spelling, so that a new word is not quite unknown.

    Two readers of the characters' embeddings, either or both: a convolution with the largest value
    over the positions in the word (dos Santos & Zadrozny 2014; Ma & Hovy 2016), and the two ends of
    a bidirectional LSTM (Ling et al. 2015; Lample et al. 2016).

    Args:
        vocabulary_size: Number of character ids. Id 0 is padding, wherever it stands.
        embedding_size: Size of a character's embedding. Default: 25.
        filters: Features of the convolution; 0 for none. Default: 50.
        width: Characters that a filter sees at once. Default: 3.
        units: Units of the LSTM in each direction; 0 for none. Default: 0.
        dropout: Share of the characters' embeddings that is dropped in training. Default: 0.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Call arguments:
        ids: Integer tensor, `[batch, time, characters]`.
        training: Whether dropout is active. Default: `None`, as the surrounding call says.

    Returns:
        Float tensor, `[batch, time, filters + 2 · units]`; zeros for a word without characters.

    Raises:
        ValueError: If there are neither filters nor units.

    Example:

    >>> encoder = CharacterEncoder(30, filters=4, units=3)
    >>> encoder(np.array([[[5, 7, 0], [3, 0, 0]]])).shape
    TensorShape([1, 2, 10])
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_size: int = 25,
        filters: int = 50,
        width: int = 3,
        units: int = 0,
        dropout: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if not filters and not units:
            raise ValueError(
                f"`filters` or `units` must be positive. Received: filters={filters}, units={units}"
            )
        self.vocabulary_size = vocabulary_size
        self.embedding_size = embedding_size
        self.filters = filters
        self.width = width
        self.units = units
        self.dropout = dropout
        self.embedding = keras.layers.Embedding(
            vocabulary_size,
            embedding_size,
            keras.initializers.RandomUniform(-0.25, 0.25),
            dtype=self.dtype_policy,
        )
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        self.convolution = self.encoder = None
        if filters:
            self.convolution = keras.layers.Dense(filters, dtype=self.dtype_policy)
        if units:
            self.encoder = SequenceEncoder("lstm", units, dtype=self.dtype_policy)

    def build(self, ids_shape):
        """Builds the readers for ids of shape `[batch, time, characters]`."""
        self.embedding.build(ids_shape)
        shape = (None, ids_shape[-1], self.embedding_size)
        if self.convolution is not None:
            self.convolution.build((*shape[:2], self.width * self.embedding_size))
        if self.encoder is not None:
            self.encoder.build(shape)

    def call(self, ids, training=None):
        """Reads each word for itself."""
        batch, time, length = ops.shape(ids)
        ids = ops.reshape(ids, (batch * time, length))  # [words, characters]
        mask = ops.not_equal(ids, 0)
        embedded = self.embedding(ids)  # [words, characters, embedding_size]
        embedded = self.dropout_layer(embedded, training=training)
        # A word ends in nothing, not in padding that has been learnt.
        embedded = ops.where(mask[..., None], embedded, ops.zeros_like(embedded))
        features = []
        if self.convolution is not None:
            # TensorFlow's own convolution gives an answer of the wrong shape where there is no
            # word at all, so that a window is read as one vector.
            left = (self.width - 1) // 2
            padded = ops.pad(embedded, [(0, 0), (left, self.width - 1 - left), (0, 0)])
            windows = [padded[:, first : first + length] for first in range(self.width)]
            windows = ops.concatenate(windows, axis=-1)  # [words, characters, width * size]
            values = self.convolution(windows)  # [words, characters, filters]
            # The lowest number of half precision stands for a window outside the word.
            lowest = np.finfo("float16").min
            values = ops.where(mask[..., None], values, ops.full_like(values, lowest))
            values = ops.max(values, axis=1, initial=lowest)  # [words, filters]
            there = ops.any(mask, axis=1)[:, None]  # [words, 1]
            features.append(ops.where(there, values, ops.zeros_like(values)))
        if self.encoder is not None:
            _, states = self.encoder(embedded, mask=mask, training=training)
            features.append(self.encoder.last_output(states))  # [words, 2 * units]
        features = ops.concatenate(features, axis=-1)
        return ops.reshape(features, (batch, time, self.filters + 2 * self.units))

    def compute_output_shape(self, ids_shape):
        """Returns the shape of the words' vectors."""
        return (*ids_shape[:2], self.filters + 2 * self.units)

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "embedding_size": self.embedding_size,
            "filters": self.filters,
            "width": self.width,
            "units": self.units,
            "dropout": self.dropout,
        }
