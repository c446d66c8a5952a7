"""Many-to-many in lockstep: a sequence in, a tag for each step out."""

from collections.abc import Mapping

import keras
from keras import ops

from rnnapps.layers import CRF
from rnnapps.models.text_encoder import TextEncoder
from rnnapps.models.unknown_words import UnknownWords


@keras.saving.register_keras_serializable(package="rnnapps")
class Tagger(keras.Model):
    """Tags each token of a text: token vectors, encoder, CRF (Huang, Xu & Yu 2015).

    It is trained with `CRFLoss(tagger.crf)` in plain `compile` and `fit`. Without a CRF its
    transitions stay zero, which makes the same loss a softmax at each step; what may not follow
    what is heeded in decoding all the same.

    Args:
        encoder: The `TextEncoder`, built of a word embedding and recurrent layers.
        num_tags: Number of tags.
        features: Layers that make vectors of further inputs, `[batch, time, …]` to
            `[batch, time, size]`, by the input's name; a `CharacterEncoder` or an `Embedding` of
            casing classes, for example. They stand beside the words' embeddings. Default: none.
        allowed: What may follow what, as for `CRF`. Default: `None`, everything.
        use_crf: Whether the transitions are learnt. Default: `True`.
        constrain_training: Whether the likelihood, too, is among allowed sequences only. Default:
            `False`.
        unknown_words: The layer that replaces rare words in training. Default: `None`.
        dropout: Share of the encoder's outputs that is dropped in training. Default: 0.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras model.

    Call arguments:
        inputs: Word ids, `[batch, time]` or `[batch, time, ids]`, 0 at padding; or with features a
            dict of them, as `words`, and of the further inputs by name.
        training: Whether dropout is active. Default: `None`, as the surrounding call says.

    Returns:
        Emissions, `[batch, time, num_tags]`, in float32 whatever the policy.

    Raises:
        ValueError: If `num_tags` is not positive.

    Example:

    >>> encoder = TextEncoder(100, 8, SequenceEncoder("lstm", units=4))
    >>> model = Tagger(encoder, num_tags=3, features={"casing": keras.layers.Embedding(9, 2)})
    >>> ids = keras.ops.convert_to_tensor([[5, 7, 0], [3, 0, 0]])
    >>> tags, confidences = model.tag({"words": ids, "casing": ids})
    >>> tags.shape, confidences.shape
    (TensorShape([2, 3]), TensorShape([2, 3]))
    """

    def __init__(
        self,
        encoder: TextEncoder,
        num_tags: int,
        features: Mapping[str, keras.Layer] | None = None,
        allowed=None,
        use_crf: bool = True,
        constrain_training: bool = False,
        unknown_words: UnknownWords | None = None,
        dropout: float = 0.0,
        **kwargs,
    ):
        if num_tags < 1:
            raise ValueError(f"`num_tags` must be positive. Received: num_tags={num_tags}")
        super().__init__(**kwargs)
        self.encoder = encoder
        self.num_tags = num_tags
        self.features = dict(features or {})
        self.use_crf = use_crf
        self.unknown_words = unknown_words
        self.dropout = dropout
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        self.output_layer = keras.layers.Dense(num_tags, dtype="float32")
        self.crf = CRF(
            num_tags,
            allowed=allowed,
            constrain_training=constrain_training,
            trainable=use_crf,
            dtype="float32",
        )

    def build(self, input_shape):
        """Builds the layers for inputs as they are called with."""
        shapes = input_shape if isinstance(input_shape, Mapping) else {"words": input_shape}
        words_shape, size = shapes["words"], 0
        for name, layer in self.features.items():
            if not layer.built:  # as it is where it came from a file
                layer.build(shapes[name])
            size += layer.compute_output_shape(shapes[name])[-1]
        self.encoder.build(words_shape, (*words_shape[:2], size) if size else None)
        outputs_shape = (*words_shape[:2], self.encoder.output_size)
        self.output_layer.build(outputs_shape)
        self.crf.build((*words_shape[:2], self.num_tags))

    def call(self, inputs, training=None):
        """Returns the emissions."""
        inputs = inputs if isinstance(inputs, Mapping) else {"words": inputs}
        words, mask = inputs["words"], self.mask_of(inputs)
        if self.unknown_words is not None:
            words = self.unknown_words(words, training=training)
        features = [layer(inputs[name]) for name, layer in self.features.items()]
        features = ops.concatenate(features, axis=-1) if features else None
        outputs, _ = self.encoder(words, features, training=training)
        outputs = self.dropout_layer(outputs, training=training)
        return self.crf(self.output_layer(outputs), mask=mask)  # [batch, time, num_tags]

    def mask_of(self, inputs):
        """Returns which steps of the inputs, `[batch, time]`, are not padding."""
        words = inputs["words"] if isinstance(inputs, Mapping) else inputs
        return self.encoder.compute_mask(words)

    def tag(self, inputs):
        """Finds the best tags of each row and how sure they are.

        Args:
            inputs: As for the call.

        Returns:
            The tags, int32 tensor, `[batch, time]`, and their probabilities at each step, float32
            tensor, `[batch, time]`; both 0 at padding.
        """
        emissions, mask = self(inputs, training=False), self.mask_of(inputs)
        tags, _ = self.crf.decode(emissions, mask)
        marginals = self.crf.marginals(emissions, mask)  # [batch, time, num_tags]
        confidences = ops.take_along_axis(marginals, tags[..., None], axis=-1)
        return tags, confidences[..., 0]

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        parts = {"encoder": self.encoder, "unknown_words": self.unknown_words}
        return {
            **super().get_config(),
            **{name: keras.saving.serialize_keras_object(part) for name, part in parts.items()},
            "num_tags": self.num_tags,
            "features": {
                name: keras.saving.serialize_keras_object(layer)
                for name, layer in self.features.items()
            },
            "allowed": self.crf.get_config()["allowed"],
            "use_crf": self.use_crf,
            "constrain_training": self.crf.constrain_training,
            "dropout": self.dropout,
        }

    @classmethod
    def from_config(cls, config: dict):
        """Makes a model from the constructor's arguments."""
        parts = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in ("encoder", "unknown_words")
        }
        features = {
            name: keras.saving.deserialize_keras_object(layer)
            for name, layer in config["features"].items()
        }
        return cls(**{**config, **parts, "features": features})
