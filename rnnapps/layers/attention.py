"""Attention: which of the steps of a memory a query looks at, and what it sees there."""

from typing import Any, NamedTuple

import keras
from keras import ops

SCORES = ("dot", "general", "scaled")

# Finite in float32, so that a memory without valid steps gives no NaN.
_LOWEST = -3e38

# A batch of matrix products costs TensorFlow 20 to 50 µs on a CPU, however small they are: more
# than all else in a step of decoding. Of so few numbers products are multiplied and added up.
_FEW = 65_536


class Memory(NamedTuple):
    """What queries look at, with all that is the same for all queries.

    Attributes:
        values: Float tensor, `[batch, source, features]`.
        keys: Float tensor, `[batch, source, size]`: the values as the score needs them.
        mask: Boolean tensor, `[batch, source]`, true at the valid steps.
    """

    values: Any
    keys: Any
    mask: Any


class Attention(keras.layers.Layer):
    """What the kinds of attention have in common; a subclass says how `e` is computed.

        e_ts = score(q_t, v_s),    α_t = softmax_s(e_t),    c_t = Σ_s α_ts v_s

    A step of the memory that is masked has the weight 0; where all are, so is the context.

    Args:
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Call arguments:
        queries: Float tensor, `[batch, target, query_size]`.
        values: Float tensor, `[batch, source, features]`.
        mask: Boolean tensor, `[batch, source]`, true at the valid steps. Default: `None`, all.

    Returns:
        The contexts, `[batch, target, features]`, and the weights, `[batch, target, source]` in
        float32 or wider.
    """

    def call(self, queries, values, mask=None):
        """Looks at values that are met for the first time."""
        return self.attend(queries, self.remember(values, mask))

    def remember(self, values, mask=None) -> Memory:
        """Projects values once for many queries.

        Args:
            values: As for the call.
            mask: As for the call.

        Returns:
            The memory that `attend` takes.
        """
        if mask is None:
            mask = ops.ones(ops.shape(values)[:2], "bool")
        values = ops.cast(values, self.compute_dtype)
        return Memory(values, self._keys(values), ops.cast(mask, "bool"))

    def attend(self, queries, memory: Memory, decoding: bool = False):
        """Looks at a memory.

        Args:
            queries: As for the call.
            memory: What `remember` returned.
            decoding: Whether this is a step of decoding, which may have few queries; that changes
                how long it takes, not what it gives. Default: `False`.

        Returns:
            As the call.
        """
        queries = ops.cast(queries, self.compute_dtype)
        if not decoding or keras.backend.backend() != "tensorflow":
            return self._attend(queries, memory, few=False)
        return ops.cond(
            ops.size(memory.values) * ops.shape(queries)[1] <= _FEW,
            lambda: self._attend(queries, memory, few=True),
            lambda: self._attend(queries, memory, few=False),
        )

    def _attend(self, queries, memory, few):
        scores = self._scores(queries, memory.keys, few)
        # Sums over steps need at least float32, also where the layers around compute in less.
        scores = ops.cast(scores, keras.backend.result_type(scores.dtype, "float32"))
        mask = memory.mask[:, None]  # [batch, 1, source]
        scores = ops.where(mask, scores, _LOWEST)  # [batch, target, source]
        highest = ops.max(scores, axis=-1, keepdims=True, initial=_LOWEST)
        weights = ops.where(mask, ops.exp(scores - ops.stop_gradient(highest)), 0)
        total = ops.sum(weights, axis=-1, keepdims=True)  # [batch, target, 1]
        weights = weights / ops.where(total > 0, total, 1)
        factors = ops.cast(weights, self.compute_dtype)
        if few:
            contexts = ops.sum(factors[..., None] * memory.values[:, None], axis=2)
        else:
            contexts = ops.matmul(factors, memory.values)
        return contexts, weights  # [batch, target, features], [batch, target, source]

    def compute_mask(self, queries, mask=None):
        """Returns no masks: what queries are padding, the caller knows."""
        return None, None

    def compute_output_shape(self, queries_shape, values_shape):
        """Returns the shapes of the contexts and of the weights."""
        batch, target, _ = queries_shape
        return (batch, target, values_shape[-1]), (batch, target, values_shape[1])


@keras.saving.register_keras_serializable(package="rnnapps")
class AdditiveAttention(Attention):
    """Scores by a small network (Bahdanau, Cho & Bengio 2015).

        e_ts = v · tanh(W q_t + U v_s + b)

    Args:
        units: Size of the network's hidden layer.
        **kwargs: As for `Attention`, and so are the call and what it returns.

    Raises:
        ValueError: If `units` is not positive.

    Example:

    >>> attention = AdditiveAttention(units=8)
    >>> queries, values = keras.ops.ones((2, 3, 4)), keras.ops.ones((2, 5, 6))
    >>> contexts, weights = attention(queries, values)
    >>> tuple(contexts.shape), tuple(weights.shape)
    ((2, 3, 6), (2, 3, 5))
    """

    def __init__(self, units: int, **kwargs):
        if units < 1:
            raise ValueError(f"`units` must be positive. Received: units={units}")
        super().__init__(**kwargs)
        self.units = units

    def build(self, queries_shape, values_shape):
        """Makes `W`, `U`, `b` and `v`."""
        for name, shape, initializer in (
            ("query_kernel", (queries_shape[-1], self.units), "glorot_uniform"),
            ("value_kernel", (values_shape[-1], self.units), "glorot_uniform"),
            ("bias", (self.units,), "zeros"),
            ("score", (self.units, 1), "glorot_uniform"),
        ):
            setattr(self, name, self.add_weight(shape=shape, initializer=initializer, name=name))

    def _keys(self, values):
        return ops.matmul(values, self.value_kernel) + self.bias  # [batch, source, units]

    def _scores(self, queries, keys, few):
        projected = ops.matmul(queries, self.query_kernel)  # [batch, target, units]
        hidden = ops.tanh(projected[:, :, None] + keys[:, None])  # [batch, target, source, units]
        if few:
            return ops.sum(hidden * self.score[:, 0], axis=-1)  # [batch, target, source]
        return ops.matmul(hidden, self.score)[..., 0]  # [batch, target, source]

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "units": self.units}


@keras.saving.register_keras_serializable(package="rnnapps")
class MultiplicativeAttention(Attention):
    """Scores by a product (Luong, Pham & Manning 2015).

        dot:      e_ts = q_t · v_s
        general:  e_ts = q_t · W v_s
        scaled:   e_ts = q_t · W v_s / √(size of q_t)

    The scale is that of Vaswani et al. (2017): large products would leave the softmax without a
    gradient.

    Args:
        score: `"dot"`, for which queries and values are of the same size, `"general"` or
            `"scaled"`. Default: `"general"`.
        **kwargs: As for `Attention`, and so are the call and what it returns.

    Raises:
        ValueError: If `score` is unknown, or the sizes differ with `"dot"`.

    Example: a query that is one of two values looks at that.

    >>> attention = MultiplicativeAttention("dot")
    >>> values = keras.ops.convert_to_tensor([[[9.0, 0.0], [0.0, 9.0]]])
    >>> contexts, weights = attention(values[:, 1:], values)
    >>> keras.ops.convert_to_numpy(weights).round(4)
    array([[[0., 1.]]], dtype=float32)
    """

    def __init__(self, score: str = "general", **kwargs):
        if score not in SCORES:
            raise ValueError(
                f"`score` must be one of {', '.join(SCORES)}. Received: score={score!r}"
            )
        super().__init__(**kwargs)
        self.score = score

    def build(self, queries_shape, values_shape):
        """Makes `W`, where the score has one."""
        queries, features = queries_shape[-1], values_shape[-1]
        if self.score == "dot":
            if queries != features:
                raise ValueError(
                    'With `score="dot"` queries and values must be of the same size. '
                    f"Received: {queries} and {features}"
                )
            return
        self.kernel = self.add_weight(
            shape=(features, queries), initializer="glorot_uniform", name="kernel"
        )

    def _keys(self, values):
        if self.score == "dot":
            return values
        return ops.matmul(values, self.kernel)  # [batch, source, query_size]

    def _scores(self, queries, keys, few):
        if self.score == "scaled":
            queries = queries / ops.sqrt(ops.cast(queries.shape[-1], queries.dtype))
        if few:
            return ops.sum(queries[:, :, None] * keys[:, None], axis=-1)  # [batch, target, source]
        return ops.matmul(queries, ops.swapaxes(keys, 1, 2))  # [batch, target, source]

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "score": self.score}


def by_name(name: str, units: int) -> Attention | None:
    """Makes an attention.

    Args:
        name: `"additive"`, one of the scores of `MultiplicativeAttention`, or `"none"`.
        units: Size of the hidden layer of the additive one.

    Returns:
        The layer; `None` for none.
    """
    if name == "none":
        return None
    return AdditiveAttention(units) if name == "additive" else MultiplicativeAttention(name)
