"""A model that writes text, as it is trained."""

import keras


@keras.saving.register_keras_serializable(package="rnnapps")
class BeforeSoftmax(keras.Model):
    """Stops before the softmax of the model it holds, in whose place it is trained.

    The loss, `Decoder.nats`, goes on from there without computing probabilities that it does not
    need.

    Args:
        model: A `LanguageModel` or an `EncoderDecoder`.
        **kwargs: `name` and `dtype`, as for every Keras model.

    Call arguments:
        inputs: As for the model.
        training: Whether dropout is active. Default: `None`, as the surrounding call says.

    Returns:
        What the model's `hidden` gives, `[batch, time, features]`.

    Example:

    >>> encoder = TextEncoder(50, 8, SequenceEncoder("lstm", 4, bidirectional=False))
    >>> model = LanguageModel(Decoder(encoder))
    >>> hidden = BeforeSoftmax(model)(np.ones((2, 5), "int32"))
    >>> model.decoder.nats(hidden, np.ones((2, 5), "int32")).shape
    TensorShape([2, 5])
    """

    def __init__(self, model: keras.Model, **kwargs):
        super().__init__(**kwargs)
        self.model = model

    def build(self, input_shape):
        """Builds the model."""
        if not self.model.built:
            self.model.build(input_shape)

    def call(self, inputs, training=None):
        """Reads the inputs."""
        return self.model.hidden(inputs, training=training)

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "model": keras.saving.serialize_keras_object(self.model)}

    @classmethod
    def from_config(cls, config: dict):
        """Makes a model from the constructor's arguments."""
        return cls(**{**config, "model": keras.saving.deserialize_keras_object(config["model"])})
