"""Texts to their probabilities, with no Markov assumption."""

import keras
from keras import ops

from rnnapps.models.decoder import Decoder


@keras.saving.register_keras_serializable(package="rnnapps")
class LanguageModel(keras.Model):
    """Gives a text its probability by the chain rule, exactly (Mikolov et al. 2010).

        log P(w_1 … w_n) = Σ_t log P(w_t | w_1 … w_{t-1})

    Args:
        decoder: The `Decoder`.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras model.

    Call arguments:
        ids: Integer tensor, `[batch, time]`; 0 is padding.
        training: Whether dropout is active. Default: `None`, as the surrounding call says.

    Returns:
        Logits of the next token after each, `[batch, time, vocabulary_size]`, in float32.

    Example:

    >>> encoder = TextEncoder(50, 8, SequenceEncoder("lstm", 4, bidirectional=False))
    >>> model = LanguageModel(Decoder(encoder))
    >>> ids, targets = np.array([[2, 5, 7]]), np.array([[5, 7, 2]])
    >>> log_probabilities, states = model.log_probabilities(ids, targets)
    >>> log_probabilities.shape
    TensorShape([1, 3])
    """

    def __init__(self, decoder: Decoder, **kwargs):
        super().__init__(**kwargs)
        self.decoder = decoder

    def build(self, ids_shape):
        """Builds the decoder."""
        if not self.decoder.built:  # as it is where it came from a file
            self.decoder.build(ids_shape)

    def call(self, ids, training=None):
        """Returns the logits."""
        return self.decoder(ids, training=training)[0]

    def hidden(self, ids, training=None):
        """Reads as the call does, and stops before the softmax; see `Decoder.hidden`."""
        return self.decoder.hidden(ids, training=training)[0]

    def step(self, ids, states):
        """Takes one step.

        Args:
            ids: Integer tensor, `[batch]`, the tokens last written.
            states: The list of states before them.

        Returns:
            The logits of the next tokens, `[batch, vocabulary_size]`, and the states after the ids.
        """
        logits, _, states = self.decoder.step(ids, states)
        return logits, states

    def log_probabilities(self, ids, targets, initial_state=None, reset=None):
        """Scores what really follows each token.

        Args:
            ids: Integer tensor, `[batch, time]`: the tokens that are read.
            targets: Integer tensor, `[batch, time]`: the token that follows each.
            initial_state: List of states before the first; as for the decoder. Default: `None`.
            reset: Boolean tensor, `[batch, time]`, as for the decoder. Default: `None`.

        Returns:
            Their log-probabilities in nats, float32 `[batch, time]`, 0 where the target is padding;
            and the list of final states.
        """
        logits, states = self.decoder(ids, initial_state=initial_state, reset=reset, training=False)
        nats = keras.losses.sparse_categorical_crossentropy(targets, logits, from_logits=True)
        return -ops.where(ops.not_equal(targets, 0), nats, ops.zeros_like(nats)), states

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "decoder": keras.saving.serialize_keras_object(self.decoder),
        }

    @classmethod
    def from_config(cls, config: dict):
        """Makes a model from the constructor's arguments."""
        decoder = keras.saving.deserialize_keras_object(config["decoder"])
        return cls(**{**config, "decoder": decoder})
