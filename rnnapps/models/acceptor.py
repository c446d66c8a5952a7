"""Many-to-one: a sequence in, a class out."""

import keras

from rnnapps.layers import SequencePooling
from rnnapps.models.sequence_encoder import SequenceEncoder
from rnnapps.models.text_encoder import TextEncoder


@keras.saving.register_keras_serializable(package="rnnapps")
class Acceptor(keras.Model):
    """Classifies whole sequences: encoder, pooling over time, dense layers.

    Args:
        encoder: A `TextEncoder` for token ids or a `SequenceEncoder` for sequences of vectors.
        num_classes: Number of classes.
        pooling: How the encoder's outputs become one vector: `"last"`, `"mean"`, `"max"` or
            `"attention"` (see `SequencePooling`); `"last"` takes the end of each direction.
            Default: `"max"`.
        hidden_units: Size of a hidden dense layer; 0 for none. Default: 0.
        hidden_activation: Activation of the hidden layer. Default: `"relu"`.
        dropout: Share of the features that is dropped before each dense layer in training.
            Default: 0.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras model.

    Call arguments:
        inputs: What the encoder takes: ids, an integer tensor `[batch, time]` or
            `[batch, time, features]`, or vectors, a float tensor `[batch, time, features]`.
        training: Whether dropout is active. Default: `None`, as the surrounding call says.
        mask: Boolean tensor, `[batch, time]`, true at the valid steps of float inputs. Default:
            `None`, the mask attached to `inputs`, or all steps. Token ids bring their own.

    Returns:
        Logits, `[batch, num_classes]`, in float32 whatever the policy; the softmax is outside.

    Raises:
        ValueError: If `num_classes` is not positive.

    Example:

    >>> encoder = TextEncoder(100, 8, SequenceEncoder("gru", units=4))
    >>> model = Acceptor(encoder, num_classes=2, pooling="attention")
    >>> ids = keras.ops.convert_to_tensor([[5, 7, 0], [3, 0, 0]])
    >>> model(ids).shape, model.encode(ids).shape
    (TensorShape([2, 2]), TensorShape([2, 8]))
    """

    def __init__(
        self,
        encoder: TextEncoder | SequenceEncoder,
        num_classes: int,
        pooling: str = "max",
        hidden_units: int = 0,
        hidden_activation="relu",
        dropout: float = 0.0,
        **kwargs,
    ):
        if num_classes < 1:
            raise ValueError(f"`num_classes` must be positive. Received: num_classes={num_classes}")
        super().__init__(**kwargs)
        self.encoder = encoder
        self.num_classes = num_classes
        self.pooling = pooling
        self.hidden_units = hidden_units
        self.hidden_activation = keras.activations.get(hidden_activation)
        self.dropout = dropout
        self.pooling_layer = SequencePooling(pooling, dtype=self.dtype_policy)
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        self.hidden_layer = None
        if hidden_units:
            self.hidden_layer = keras.layers.Dense(
                hidden_units, activation=self.hidden_activation, dtype=self.dtype_policy
            )
        self.output_layer = keras.layers.Dense(num_classes, dtype="float32")

    def build(self, input_shape):
        """Builds the layers for inputs as the encoder takes them."""
        self.encoder.build(input_shape)
        outputs_shape, _ = self.encoder.compute_output_shape(input_shape)
        self.pooling_layer.build(outputs_shape)
        shape = (outputs_shape[0], outputs_shape[-1])
        if self.hidden_layer is not None:
            self.hidden_layer.build(shape)
            shape = (shape[0], self.hidden_units)
        self.output_layer.build(shape)

    def encode(self, inputs, training=None, mask=None):
        """Returns one vector a sequence, `[batch, output_size]`: what the dense layers read."""
        if isinstance(self.encoder, TextEncoder):
            mask = self.encoder.compute_mask(inputs)
            outputs, states = self.encoder(inputs, training=training)
        else:
            outputs, states = self.encoder(inputs, mask=mask, training=training)
        if self.pooling == "last":
            return self.encoder.last_output(states)
        return self.pooling_layer(outputs, mask=mask)

    def call(self, inputs, training=None, mask=None):
        """Returns the logits."""
        features = self.dropout_layer(self.encode(inputs, training, mask), training=training)
        if self.hidden_layer is not None:
            features = self.hidden_layer(features)  # [batch, hidden_units]
            features = self.dropout_layer(features, training=training)
        return self.output_layer(features)  # [batch, num_classes]

    def compute_mask(self, inputs, mask=None):
        """Returns `None`: there are no steps any more."""
        return None

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "num_classes": self.num_classes,
            "pooling": self.pooling,
            "hidden_units": self.hidden_units,
            "hidden_activation": keras.activations.serialize(self.hidden_activation),
            "dropout": self.dropout,
        }

    @classmethod
    def from_config(cls, config: dict):
        """Makes a model from the constructor's arguments."""
        encoder = keras.saving.deserialize_keras_object(config["encoder"])
        return cls(**{**config, "encoder": encoder})
