"""Many-to-many of different lengths: a sequence in, another one out."""

import keras
from keras import ops

from rnnapps.layers.attention import Memory
from rnnapps.models.bridge import Bridge
from rnnapps.models.decoder import Decoder


@keras.saving.register_keras_serializable(package="rnnapps")
class EncoderDecoder(keras.Model):
    """Writes a text about what it has read (Sutskever et al. 2014; Cho et al. 2014).

        P(w_1 … w_n | source) = Π_t P(w_t | w_1 … w_{t-1}, source)

    The encoder's final states become the decoder's initial ones through a `Bridge`, or the first
    input that it reads, from states of zero and before the first token (Vinyals et al. 2015). A
    decoder with attention looks at the encoder's outputs too (Bahdanau et al. 2015).

    With scheduled sampling (Bengio et al. 2015) the decoder reads in training, for a share of the
    tokens, what it would itself have written in their place, so that it learns to go on from its
    own mistakes. Its tokens are those that it finds likeliest when it reads the given text
    (Duckworth et al. 2019), so that no step has to wait for another. The share grows from 0 in a
    straight line.

    Args:
        encoder: What reads the source: a `TextEncoder`, an `ImageEncoder`, or any layer that
            returns outputs `[batch, source, features]` and a list of states, and whose
            `compute_mask` tells which outputs are valid, `None` where all are.
        decoder: The `Decoder`.
        dropout: Share of the encoder's outputs and states that is dropped in training. Default: 0.
        scheduled_sampling: The share of tokens that it reaches. Default: 0.
        sampling_steps: The number of training steps after which it is reached. Default: 1,
            at once.
        first_input: Whether what the encoder has read is the decoder's first input, in place of
            its initial states. Default: `False`.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras model.

    Call arguments:
        inputs: Dict of `source`, what the encoder takes, and `target`, an integer tensor
            `[batch, time]` of the tokens that are read; 0 is padding.
        training: Whether dropout is active. Default: `None`, as the surrounding call says.

    Returns:
        Logits of the next token after each, `[batch, time, vocabulary_size]`, in float32.

    Example:

    >>> encoder = TextEncoder(50, 8, SequenceEncoder("gru", 4))
    >>> writer = TextEncoder(60, 8, SequenceEncoder("gru", 4, bidirectional=False))
    >>> model = EncoderDecoder(encoder, Decoder(writer, MultiplicativeAttention()))
    >>> source, target = np.array([[5, 7, 2]]), np.array([[2, 9, 4, 8]])
    >>> model({"source": source, "target": target}).shape
    TensorShape([1, 4, 60])
    """

    def __init__(
        self,
        encoder: keras.Layer,
        decoder: Decoder,
        dropout: float = 0.0,
        scheduled_sampling: float = 0.0,
        sampling_steps: int = 1,
        first_input: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.encoder = encoder
        self.decoder = decoder
        self.dropout = dropout
        self.scheduled_sampling = scheduled_sampling
        self.sampling_steps = sampling_steps
        self.first_input = first_input
        stack, size = decoder.encoder.encoder, decoder.encoder.embedding_size
        sizes = [size] if first_input else stack.state_sizes * stack.num_layers
        self.bridge = Bridge(sizes, dtype=self.dtype_policy)
        self.dropout_layer = keras.layers.Dropout(dropout, dtype=self.dtype_policy)
        self.seed_generator = keras.random.SeedGenerator()

    def build(self, input_shape):
        """Builds the layers for inputs of the shapes given."""
        source_shape, target_shape = input_shape["source"], input_shape["target"]
        if not self.encoder.built:  # as it is where it came from a file
            self.encoder.build(source_shape)
        outputs_shape, states_shape = self.encoder.compute_output_shape(source_shape)
        if not self.decoder.built:
            memory_shape = Memory(outputs_shape, None, None)
            self.decoder.build(target_shape, memory_shape=memory_shape)
        self.bridge.build(states_shape)
        if self.scheduled_sampling:
            self.steps_taken = self.add_weight(
                shape=(),
                initializer="zeros",
                dtype="float32",
                trainable=False,
                autocast=False,
                name="steps_taken",
            )

    def call(self, inputs, training=None):
        """Reads the source and predicts what follows each target token."""
        return self.decoder.logits(self.hidden(inputs, training))

    def hidden(self, inputs, training=None):
        """Reads as the call does, and stops before the softmax; see `Decoder.hidden`."""
        source, target = inputs["source"], inputs["target"]
        memory, states = self.encode(source, training)
        reading = {"initial_state": states, "memory": memory, "training": training}
        if training and self.scheduled_sampling:
            # Not the call, which would add the decoder's penalties once more.
            outputs, _, _ = self.decoder.read(target, **reading)
            logits = self.decoder.logits(outputs)
            target = self._sampled(target, ops.stop_gradient(logits))
        return self.decoder.hidden(target, **reading)[0]

    def encode(self, source, training=None):
        """Reads the source.

        Args:
            source: As for the call.
            training: As for the call.

        Returns:
            The memory that the decoder looks at, `None` where it has no attention; and the list of
            states that it begins with.
        """
        outputs, states = self.encoder(source, training=training)
        states = [self.dropout_layer(state, training=training) for state in states]
        started = self.bridge(states)
        if self.first_input:
            started = self.decoder.begin(started[0], training)
        elif self.decoder.input_feeding:
            shape = (ops.shape(started[0])[0], self.decoder.state_sizes[-1])
            started = [*started, ops.zeros(shape, started[0].dtype)]
        if self.decoder.attention is None:
            return None, started
        outputs = self.dropout_layer(outputs, training=training)
        mask = self.encoder.compute_mask(source)
        return self.decoder.attention.remember(outputs, mask), started

    def log_probabilities(self, source, target, following):
        """Scores what really follows each target token.

        Args:
            source: As for the call.
            target: Integer tensor, `[batch, time]`: the tokens that are read.
            following: Integer tensor, `[batch, time]`: the token that follows each.

        Returns:
            Their log-probabilities in nats, float32 `[batch, time]`, 0 where there is padding.
        """
        logits = self({"source": source, "target": target}, training=False)
        nats = keras.losses.sparse_categorical_crossentropy(following, logits, from_logits=True)
        return -ops.where(ops.not_equal(following, 0), nats, ops.zeros_like(nats))

    def alignment(self, encoded, target):
        """Tells where the decoder looks when it writes what follows each target token.

        Args:
            encoded: What `encode` returned of the source.
            target: As for `log_probabilities`.

        Returns:
            The attention's weights, `[batch, time, source]`.
        """
        memory, states = encoded
        return self.decoder.read(target, states, memory=memory, training=False)[1]

    def _sampled(self, target, logits):
        """Puts the decoder's own tokens in the place of some that are given."""
        grown = ops.minimum(self.steps_taken / self.sampling_steps, 1.0)
        self.steps_taken.assign(self.steps_taken + 1)
        # Never padding, which is id 0.
        own = ops.argmax(logits[:, :-1, 1:], axis=-1) + 1  # [batch, time - 1]
        own = ops.cast(own, target.dtype)
        drawn = keras.random.uniform(ops.shape(own), seed=self.seed_generator)
        replaced = (drawn < self.scheduled_sampling * grown) & (target[:, 1:] != 0)
        later = ops.where(replaced, own, target[:, 1:])  # [batch, time - 1]
        return ops.concatenate([target[:, :1], later], axis=1)

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "decoder": keras.saving.serialize_keras_object(self.decoder),
            "dropout": self.dropout,
            "scheduled_sampling": self.scheduled_sampling,
            "sampling_steps": self.sampling_steps,
            "first_input": self.first_input,
        }

    @classmethod
    def from_config(cls, config: dict):
        """Makes a model from the constructor's arguments."""
        parts = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in ("encoder", "decoder")
        }
        return cls(**{**config, **parts})
