"""Truncated backpropagation through time over texts that are longer than a batch."""

import keras
from keras import ops

from rnnapps.models.language_model import LanguageModel


@keras.saving.register_keras_serializable(package="rnnapps")
class CarriedState(keras.Model):
    """Lets each row of a batch go on where it ended in the last one (Williams & Peng 1990).

    This is what is trained in place of the language model it holds: the windows of a text come one
    after the other, the state is carried from each to the next, and the gradient ends at the
    window's edge: truncated BPTT(k1, k2). A window holds k2 tokens, and the next one begins k1
    tokens later; where they overlap, the first k2 - k1 tokens are only read again, so that the
    gradient of the k1 new ones runs back further (their weight in the loss is for the caller to set
    to 0).

    Args:
        model: The `LanguageModel`.
        batch_size: Rows of each batch.
        stride: k1, the number of tokens from a window to the next. Default: `None`, the whole
            window, k1 = k2.
        **kwargs: `name` and `dtype`, as for every Keras model.

    Call arguments:
        inputs: A dict of `tokens`, integer tensor, `[batch_size, time]`, without padding, and
            `reset`, Boolean tensor, `[batch_size]`, true where the row begins anew with the window.
        training: Whether dropout is active. Default: `None`, as the surrounding call says.

    Returns:
        What stands before the softmax, `[batch_size, time, features]`, as the decoder's `hidden`.

    Example:

    >>> encoder = TextEncoder(50, 8, SequenceEncoder("lstm", 4, bidirectional=False))
    >>> model = CarriedState(LanguageModel(Decoder(encoder)), batch_size=2)
    >>> window = {"tokens": np.ones((2, 5), "int32"), "reset": np.zeros(2, bool)}
    >>> first, second = model(window), model(window)
    >>> bool(np.all(first == second))
    False
    """

    def __init__(self, model: LanguageModel, batch_size: int, stride: int | None = None, **kwargs):
        super().__init__(**kwargs)
        self.model = model
        self.batch_size = batch_size
        self.stride = stride

    def build(self, input_shape):
        """Builds the model and the states."""
        if not self.model.built:
            self.model.build((self.batch_size, None))
        self.states = [
            self.add_weight(
                shape=(self.batch_size, size),
                initializer="zeros",
                dtype=self.model.decoder.compute_dtype,
                trainable=False,
                autocast=False,
                name="state",
            )
            for size in self.model.decoder.state_sizes
        ]

    def call(self, inputs, training=None):
        """Reads a window from where the last one ended."""
        tokens, reset = inputs["tokens"], ops.cast(inputs["reset"], "bool")[:, None]
        states = [ops.where(reset, ops.zeros_like(state), state) for state in self.states]
        if self.stride is None:
            hidden, states = self._read(tokens, states, training)
            self._carry(states)
            return hidden
        share = self.stride / ops.shape(tokens)[1]
        first, states = self._read(tokens[:, : self.stride], states, training, share)
        self._carry(states)
        rest, _ = self._read(tokens[:, self.stride :], states, training, 1 - share)
        return ops.concatenate([first, rest], axis=1)  # [batch, time, features]

    def _read(self, tokens, states, training, share=1.0):
        return self.model.decoder.hidden(
            tokens, states, padded=False, training=training, share=share
        )

    def _carry(self, states):
        for kept, state in zip(self.states, states, strict=True):
            kept.assign(ops.stop_gradient(state))

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "model": keras.saving.serialize_keras_object(self.model),
            "batch_size": self.batch_size,
            "stride": self.stride,
        }

    @classmethod
    def from_config(cls, config: dict):
        """Makes a model from the constructor's arguments."""
        model = keras.saving.deserialize_keras_object(config["model"])
        return cls(**{**config, "model": model})
