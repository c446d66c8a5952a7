"""Tokens so far to the next one: the block that writes."""

import keras
from keras import ops

# Stock Keras' loop over steps has no public name.
from keras.src import backend

from rnnapps.layers.attention import Attention, Memory
from rnnapps.layers.recurrent import at_least_one_step
from rnnapps.layers.softmax_nats import softmax_nats
from rnnapps.models.text_encoder import TextEncoder


@keras.saving.register_keras_serializable(package="rnnapps")
class Decoder(keras.layers.Layer):
    """Predicts each next token from those before it (Elman 1990; Mikolov et al. 2010).

        h_t = recurrent layers(embedding(w_t), h_{t-1})
        P(w_{t+1} | w_1 … w_t) = softmax(V h_t + b)

    With attention it looks at a memory too, such as the text that it translates, and what it has
    seen there takes the place of h_t in the softmax (Luong et al. 2015):

        c_t = attention(h_t, memory),    a_t = tanh(W [c_t; h_t])

    Nothing of that goes from step to step, so that all steps of a text are taken at once. With
    input feeding a_{t-1} stands beside embedding(w_t), so that the layers know where the decoder
    has looked, as they do in Bahdanau et al. (2015); the steps are then taken one by one.

    One call takes all steps of given tokens, as in training (teacher forcing); `step` takes one
    after the other, as in writing. Both are the same weights and equations.

    With tied embeddings V is the embedding itself (Press & Wolf 2017; Inan et al. 2017), behind a
    projection where the sizes differ.

    Args:
        encoder: A `TextEncoder` whose recurrent layers run one way.
        attention: What looks at the memory, such as `AdditiveAttention`. Default: `None`, there is
            no memory.
        input_feeding: Whether a_{t-1} is fed to the next step. Default: `False`.
        tied: Whether the output shares the embedding's weights. Default: `False`.
        dropout: Share of the recurrent outputs (with attention, of a_t) that is dropped in
            training, variational if the encoder's is. Default: 0.
        activation_regularization: α of the penalty α · mean(h²) on the dropped outputs (Merity et
            al. 2017). Default: 0.
        temporal_regularization: β of the penalty β · mean((h_t - h_{t-1})²). Default: 0.
        doubly_stochastic: λ of the penalty λ · Σ_s (1 - Σ_t α_ts)² of a text, by which the decoder
            comes to look at all of the memory (Xu et al. 2015). It is added to the text's loss,
            the sum over its tokens; where the loss is a mean over tokens, so is it. Default: 0.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Call arguments:
        ids: Integer tensor, `[batch, time]`; 0 is padding.
        initial_state: List of tensors, `[batch, units]` each, in the order of the returned states.
            Default: `None`, the cells' own.
        reset: Boolean tensor, `[batch, time]`, true where a row begins anew before the step.
            Default: `None`.
        memory: What the decoder's `attention.remember` returned. Default: `None`, without
            attention.
        padded: Whether id 0 is padding. Without, every step is valid, which is faster than to mask
            none. Default: `True`.
        training: Whether dropout is active. Default: `None`, as the surrounding call says.

    Returns:
        Logits of the next token, `[batch, time, vocabulary_size]`, in float32 whatever the policy,
        and the list of final states, `[batch, units]` each; with input feeding the last is a_t.

    Raises:
        ValueError: If the encoder reads both ways; if with input feeding or `doubly_stochastic`
            there is no attention; if with input feeding there is a dropout that is the same at all
            steps.

    Example:

    >>> decoder = Decoder(TextEncoder(50, 8, SequenceEncoder("gru", 4, bidirectional=False)))
    >>> logits, states = decoder(keras.ops.convert_to_tensor([[5, 7, 3], [3, 0, 0]]))
    >>> logits.shape
    TensorShape([2, 3, 50])
    >>> logits, _, states = decoder.step(keras.ops.convert_to_tensor([9, 4]), states)
    >>> logits.shape
    TensorShape([2, 50])
    """

    def __init__(
        self,
        encoder: TextEncoder,
        attention: Attention | None = None,
        input_feeding: bool = False,
        tied: bool = False,
        dropout: float = 0.0,
        activation_regularization: float = 0.0,
        temporal_regularization: float = 0.0,
        doubly_stochastic: float = 0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if encoder.encoder.bidirectional:
            raise ValueError("A decoder cannot read what comes. Received: bidirectional=True")
        if input_feeding:
            _require_steps(encoder, attention)
        if doubly_stochastic and attention is None:
            raise ValueError(
                "The penalty `doubly_stochastic` needs an attention. Received: "
                f"doubly_stochastic={doubly_stochastic}, attention=None"
            )
        self.encoder = encoder
        self.attention = attention
        self.input_feeding = input_feeding
        self.tied = tied
        self.dropout = dropout
        self.activation_regularization = activation_regularization
        self.temporal_regularization = temporal_regularization
        self.doubly_stochastic = doubly_stochastic
        self.supports_masking = True
        noise_shape = (None, 1, None) if encoder.variational else None
        self.dropout_layer = keras.layers.Dropout(dropout, noise_shape, dtype=self.dtype_policy)
        self.attentional_layer: keras.Layer = None
        self.projection: keras.Layer = None
        self.output_layer: keras.Layer = None
        if attention is not None:
            self.attentional_layer = keras.layers.Dense(
                encoder.output_size, "tanh", use_bias=False, dtype=self.dtype_policy
            )
        if not tied:
            self.output_layer = keras.layers.Dense(encoder.vocabulary_size, dtype="float32")
        elif encoder.output_size != encoder.embedding_size:
            self.projection = keras.layers.Dense(
                encoder.embedding_size, use_bias=False, dtype=self.dtype_policy
            )

    def build(self, ids_shape, initial_state_shape=None, reset_shape=None, memory_shape=None):
        """Builds the layers for ids `[batch, time]` and memories of the shapes given."""
        outputs_shape = (*ids_shape[:2], self.encoder.output_size)
        if not self.encoder.built:  # as it is where it came from a file
            self.encoder.build(ids_shape, outputs_shape if self.input_feeding else None)
        if self.attention is not None:
            values_shape = Memory(*memory_shape).values
            if not self.attention.built:
                self.attention.build(outputs_shape, values_shape)
            size = values_shape[-1] + self.encoder.output_size
            self.attentional_layer.build((*ids_shape[:2], size))
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

    def call(self, ids, initial_state=None, reset=None, memory=None, padded=True, training=None):
        """Reads the ids and predicts what follows each of them."""
        hidden, states = self.hidden(ids, initial_state, reset, memory, padded, training)
        return self.logits(hidden), states

    def hidden(
        self,
        ids,
        initial_state=None,
        reset=None,
        memory=None,
        padded=True,
        training=None,
        share=1.0,
    ):
        """Reads the ids, and stops before the softmax; `logits` and `nats` go on.

        Args:
            ids: As for the call, and so are the others.
            initial_state: As for the call.
            reset: As for the call.
            memory: As for the call.
            padded: As for the call.
            training: As for the call.
            share: Of a text that is read in parts, the share of its steps that these are: what
                the penalties on outputs count. Default: 1.

        Returns:
            Float tensor, `[batch, time, output_size]`, and the list of final states.
        """
        outputs, weights, states = self.read(ids, initial_state, reset, memory, padded, training)
        dropped = self.dropout_layer(outputs, training=training)
        if training:
            self._regularize(outputs, dropped, share)
            if self.doubly_stochastic:
                tokens = self.encoder.compute_mask(ids) if padded else ops.ones_like(ids)
                self._look_at_all(weights, memory.mask, tokens)
        return dropped, states

    def read(self, ids, initial_state=None, reset=None, memory=None, padded=True, training=None):
        """Reads the ids without predicting.

        Args:
            ids: As for the call, and so are the others.
            initial_state: As for the call.
            reset: As for the call.
            memory: As for the call.
            padded: As for the call.
            training: As for the call.

        Returns:
            The outputs, `[batch, time, output_size]`, of which a softmax predicts; the attention's
            weights, `[batch, time, source]`, `None` without attention; and the final states.
        """
        if self.input_feeding:
            return self._feed(ids, initial_state, reset, memory, padded, training)
        outputs, states = self.encoder(
            ids, initial_state=initial_state, reset=reset, padded=padded, training=training
        )
        if self.attention is None:
            return outputs, None, states
        contexts, weights = self.attention.attend(outputs, memory)
        return self._combined(contexts, outputs), weights, states

    def begin(self, vectors, training=None):
        """Reads what is no token before the first one, from states of zero.

        With attention, the decoder does not look at the memory yet.

        Args:
            vectors: Float tensor, `[batch, embedding_size]`.
            training: As for the call.

        Returns:
            The list of states after it.
        """
        fresh = [
            ops.zeros((ops.shape(vectors)[0], size), vectors.dtype) for size in self.state_sizes
        ]
        fed = [fresh.pop()] if self.input_feeding else []
        vectors = ops.concatenate([vectors, *fed], axis=-1)  # [batch, embedding_size (+ fed)]
        _, states = self.encoder.encoder.step(vectors, fresh, training)
        return [*states, *fed]

    def step(self, ids, states, memory=None):
        """Takes one step.

        Args:
            ids: Integer tensor, `[batch]`, the tokens last written; with a memory of `n` rows
                `[n * beams]`, a memory's row by row.
            states: The list of states before them.
            memory: As for the call.

        Returns:
            The logits of the next tokens, `[batch, vocabulary_size]`; the attention's weights,
            `[batch, source]`, `None` without attention; and the states after the ids.
        """
        vectors = self.encoder.embed(ids[:, None])[:, 0]  # [batch, embedding_size]
        outputs, weights, states = self._step(vectors, states, memory, decoding=True)
        return self.logits(outputs), weights, states

    def _step(self, vectors, states, memory, decoding=False, training=None):
        """Takes a step for embeddings, `[batch, embedding_size]`; decoding, for some beams each."""
        if self.input_feeding:
            *states, fed = states
            vectors = ops.concatenate([vectors, fed], axis=-1)
        outputs, states = self.encoder.encoder.step(vectors, states, training)
        if self.attention is None:
            return outputs, None, states
        # The rows that look at the same row of the memory are as several steps of one text.
        rows, (texts, source) = ops.shape(outputs)[0], ops.shape(memory.mask)
        beams = rows // ops.maximum(texts, 1) if decoding else 1
        queries = ops.reshape(outputs, (texts, beams, outputs.shape[-1]))
        contexts, weights = self.attention.attend(queries, memory, decoding)
        contexts = ops.reshape(contexts, (rows, contexts.shape[-1]))  # [batch, features]
        outputs = self._combined(contexts, outputs)
        weights = ops.reshape(weights, (rows, source))  # [batch, source]
        return outputs, weights, [*states, outputs] if self.input_feeding else states

    def _combined(self, contexts, outputs):
        """Combines what was seen with what sought it, `[batch, (time,) output_size]`."""
        return self.attentional_layer(ops.concatenate([contexts, outputs], axis=-1))

    def _feed(self, ids, initial_state, reset, memory, padded, training):
        """Takes the steps of `read` one by one."""
        vectors = self.encoder.embed(ids, training=training)  # [batch, time, embedding_size]
        fresh = [ops.zeros((ops.shape(ids)[0], size), vectors.dtype) for size in self.state_sizes]
        states = fresh if initial_state is None else list(initial_state)
        mask = self.encoder.compute_mask(ids) if padded else None
        if ids.shape[1] in (None, 0):
            vectors, mask, reset = at_least_one_step(vectors, mask, reset)
        size = vectors.shape[-1]
        if reset is not None:
            flags = ops.cast(reset, vectors.dtype)[..., None]  # [batch, time, 1]
            vectors = ops.concatenate([vectors, flags], axis=-1)

        def step(inputs, states):
            if reset is not None:
                begins = inputs[:, size:] > 0  # [batch, 1]
                states = [ops.where(begins, *both) for both in zip(fresh, states, strict=True)]
            outputs, weights, states = self._step(
                inputs[:, :size], states, memory, training=training
            )
            weights = ops.cast(weights, outputs.dtype)
            return ops.concatenate([outputs, weights], axis=-1), states

        _, outputs, states = backend.rnn(
            step,
            vectors,
            states,
            mask=mask,
            zero_output_for_mask=True,
        )
        outputs = outputs[:, : ops.shape(ids)[1]]  # [batch, time, output_size + source]
        size = self.encoder.output_size
        weights = outputs[..., size:]  # [batch, time, source]
        # How many positions the source has, and so the outputs' last axis, may not be known.
        outputs = ops.reshape(outputs[..., :size], (*ops.shape(ids), size))
        return outputs, weights, list(states)

    def logits(self, hidden):
        """Scores all words, float32 `[batch, time, vocabulary_size]`, for what `hidden` gave.

        The time may be left out on both sides.
        """
        if not self.tied:
            return self.output_layer(hidden)
        if self.projection is not None:
            hidden = self.projection(hidden)  # [batch, time, embedding_size]
        words = ops.cast(ops.transpose(self.encoder.embedding.embeddings), "float32")
        return ops.matmul(ops.cast(hidden, "float32"), words) + self.bias

    def nats(self, hidden, targets, label_smoothing: float = 0.0):
        """Computes the loss of what really follows, faster than from all `logits`.

        Args:
            hidden: What `hidden` gave.
            targets: Integer tensor, `[batch, time]`.
            label_smoothing: As for `softmax_nats`. Default: 0.

        Returns:
            `-log P(target)`, or with label smoothing the cross entropy, float32 `[batch, time]`.
        """
        if self.tied:
            if self.projection is not None:
                hidden = self.projection(hidden)  # [batch, time, embedding_size]
            words, bias = self.encoder.embedding.embeddings, self.bias
        else:
            words, bias = ops.transpose(self.output_layer.kernel), self.output_layer.bias
        hidden, words = ops.cast(hidden, "float32"), ops.cast(words, "float32")
        return softmax_nats(hidden, words, bias, targets, label_smoothing)

    def _regularize(self, outputs, dropped, share):
        """Adds the penalties; padded outputs are zero and count little, as in the original."""
        if self.activation_regularization:
            mean = ops.mean(ops.square(ops.cast(dropped, "float32")))
            self.add_loss(self.activation_regularization * share * mean)
        if self.temporal_regularization:
            change = ops.square(ops.cast(outputs[:, 1:] - outputs[:, :-1], "float32"))
            size = ops.maximum(ops.size(change), 1)  # there is none in a single step
            mean = ops.sum(change) / ops.cast(size, "float32")
            self.add_loss(self.temporal_regularization * share * mean)

    def _look_at_all(self, weights, valid, tokens):
        """Adds the penalty on a memory's steps, `[batch, source]`, that the tokens overlook."""
        tokens = ops.cast(tokens, "float32")  # [batch, time]
        looked = ops.sum(ops.cast(weights, "float32") * tokens[..., None], axis=1)
        counted = valid & ops.any(tokens > 0, axis=1, keepdims=True)  # [batch, source]
        overlooked = ops.where(counted, ops.square(1 - looked), 0)  # [batch, source]
        mean = ops.sum(overlooked) / ops.maximum(ops.sum(tokens), 1)
        self.add_loss(self.doubly_stochastic * mean)

    def compute_mask(self, ids, mask=None):
        """Returns the mask of the logits, which is that of the ids, and none for the states."""
        return self.encoder.compute_mask(ids), [None] * len(self.state_sizes)

    @property
    def state_sizes(self) -> list[int]:
        """Number of features of each state."""
        stack = self.encoder.encoder
        fed = [self.encoder.output_size] if self.input_feeding else []
        return stack.state_sizes * stack.num_layers + fed

    def compute_output_shape(
        self, ids_shape, initial_state_shape=None, reset_shape=None, memory_shape=None
    ):
        """Returns the shapes of the logits and of the states."""
        states = [(ids_shape[0], size) for size in self.state_sizes]
        return (*ids_shape, self.encoder.vocabulary_size), states

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "attention": keras.saving.serialize_keras_object(self.attention),
            "input_feeding": self.input_feeding,
            "tied": self.tied,
            "dropout": self.dropout,
            "activation_regularization": self.activation_regularization,
            "temporal_regularization": self.temporal_regularization,
            "doubly_stochastic": self.doubly_stochastic,
        }

    @classmethod
    def from_config(cls, config: dict):
        """Makes a layer from the constructor's arguments."""
        parts = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in ("encoder", "attention")
        }
        return cls(**{**config, **parts})


def _require_steps(encoder: TextEncoder, attention: Attention | None) -> None:
    """Raises ValueError where steps cannot be taken one by one, with what they lead to fed."""
    if attention is None:
        raise ValueError("Input feeding needs an attention. Received: attention=None")
    stack = encoder.encoder
    kept = {
        "variational": encoder.variational or stack.variational,
        "recurrent_dropout": stack.recurrent_dropout,
        "recurrent_weight_dropout": stack.layer_kwargs.get("recurrent_weight_dropout", 0.0),
    }
    for name, value in kept.items():
        if value:
            raise ValueError(
                "With input feeding nothing can be dropped in the same way at all steps. "
                f"Received: {name}={value}"
            )
