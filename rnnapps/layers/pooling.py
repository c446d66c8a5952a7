"""From one vector a step to one vector a sequence."""

import keras
from keras import ops

MODES = ("last", "mean", "max", "attention")

# Finite in float32, so that a row without valid steps gives no NaN.
_LOWEST = -3e38


@keras.saving.register_keras_serializable(package="rnnapps")
class SequencePooling(keras.layers.Layer):
    """Sums a sequence up in one vector, over its valid steps.

    - `"last"`: the last valid step. (A bidirectional stack has read the whole sequence backwards at
      the *first* step: take its final states instead.)
    - `"mean"`: the mean over the valid steps.
    - `"max"`: for each feature the largest value over the valid steps.
    - `"attention"` (Yang et al. 2016): `Σ_t α_t h_t` with `α = softmax_t(v · tanh(W h_t + b))`.

    A sequence without valid steps gives zeros.

    Args:
        mode: `"last"`, `"mean"`, `"max"` or `"attention"`.
        **kwargs: `name`, `dtype` and `trainable`, as for every Keras layer.

    Call arguments:
        sequences: Float tensor, `[batch, time, features]`.
        mask: Boolean tensor, `[batch, time]`, true at the valid steps. Default: `None`, the mask
            attached to `sequences`, or all steps.

    Returns:
        Float tensor, `[batch, features]`.

    Raises:
        ValueError: If `mode` is unknown.

    Example:

    >>> sequences = keras.ops.convert_to_tensor([[[1.0, 5.0], [3.0, 1.0], [9.0, 9.0]]])
    >>> mask = keras.ops.convert_to_tensor([[True, True, False]])
    >>> keras.ops.convert_to_numpy(SequencePooling("mean")(sequences, mask=mask))
    array([[2., 3.]], dtype=float32)
    """

    def __init__(self, mode: str, **kwargs):
        if mode not in MODES:
            raise ValueError(f"`mode` must be one of {', '.join(MODES)}. Received: mode={mode!r}")
        super().__init__(**kwargs)
        self.mode = mode
        self.supports_masking = True

    def build(self, sequences_shape):
        """Makes the weights of the attention: square `W`, `b` and `v`."""
        if self.mode != "attention":
            return
        features = sequences_shape[-1]
        self.kernel = self.add_weight(
            shape=(features, features), initializer="glorot_uniform", name="kernel"
        )
        self.bias = self.add_weight(shape=(features,), initializer="zeros", name="bias")
        self.score = self.add_weight(
            shape=(features, 1), initializer="glorot_uniform", name="score"
        )

    def call(self, sequences, mask=None):
        """Pools over time."""
        if mask is None:
            mask = ops.ones(ops.shape(sequences)[:2], "bool")
        mask = ops.expand_dims(ops.cast(mask, "bool"), -1)  # [batch, time, 1]
        # Sums over time need at least float32, also where the layers around compute in less.
        wide = keras.backend.result_type(sequences.dtype, "float32")
        values = ops.where(mask, ops.cast(sequences, wide), 0)
        pooled = getattr(self, f"_{self.mode}")(values, mask)  # [batch, features]
        return ops.cast(pooled, self.compute_dtype)

    def _last(self, values, mask):
        steps = ops.expand_dims(ops.arange(ops.shape(values)[1]), -1)  # [time, 1]
        last = ops.max(ops.where(mask, steps, -1), axis=1, keepdims=True, initial=-1)
        return ops.sum(ops.where(steps == last, values, 0), axis=1)

    def _mean(self, values, mask):
        count = ops.sum(ops.cast(mask, values.dtype), axis=1)  # [batch, 1]
        return ops.sum(values, axis=1) / ops.maximum(count, 1)

    def _max(self, values, mask):
        largest = ops.max(ops.where(mask, values, _LOWEST), axis=1, initial=_LOWEST)
        return ops.where(ops.any(mask, axis=1), largest, 0)

    def _attention(self, values, mask):
        hidden = ops.tanh(ops.matmul(ops.cast(values, self.compute_dtype), self.kernel) + self.bias)
        scores = ops.cast(ops.matmul(hidden, self.score), values.dtype)  # [batch, time, 1]
        scores = ops.where(mask, scores, _LOWEST)
        highest = ops.max(scores, axis=1, keepdims=True, initial=_LOWEST)
        weights = ops.exp(scores - ops.stop_gradient(highest))  # [batch, time, 1]
        # A row of padding gives each step a weight, but its values are all zero.
        total = ops.sum(weights, axis=1)  # [batch, 1]
        return ops.sum(weights * values, axis=1) / ops.where(total > 0, total, 1)

    def compute_mask(self, sequences, mask=None):
        """Returns `None`: there are no steps any more."""
        return None

    def compute_output_shape(self, sequences_shape):
        """Returns `(batch, features)`."""
        return (sequences_shape[0], sequences_shape[-1])

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "mode": self.mode}
