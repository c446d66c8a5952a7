"""What every way of decoding asks of a step function and makes of its logits."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

Step = Callable[[tf.Tensor, Any], tuple[tf.Tensor, Any]]

PADDING = 0
# Logits are kept between -LARGEST and LARGEST, so that their differences are finite in float32.
LARGEST = 1e38
# TensorFlow's softmax goes to its threads at once, which takes longer than to add up so many.
_FEW = 32_768


def at_least_0(length):
    return tf.maximum(tf.convert_to_tensor(length, tf.int32), 0)


def same_shape(after, before):
    """Tells what a tensor's shape still is, where the step function's operations have lost it."""
    after.set_shape(before.shape)
    return after


def allowed_tokens(logits, end, forbidden):
    """Returns which tokens of the vocabulary may come out, as an array."""
    vocabulary = logits.shape[-1]
    if vocabulary is None:
        raise ValueError(f"the logits' last axis must be known. Received: shape={logits.shape}")
    allowed = np.ones(vocabulary, bool)
    for token in [*forbidden, *([] if end is None else [end])]:
        if not 0 <= token < vocabulary:
            raise ValueError(f"ids must be in 0 … {vocabulary - 1}. Received: {token}")
    allowed[list(forbidden)] = False
    if not allowed.any():
        raise ValueError(f"a token must be allowed. Received: forbidden={forbidden}")
    return allowed


def finite(logits, lowest=-LARGEST):
    """Returns the logits between -LARGEST and LARGEST; what is -inf or NaN becomes `lowest`."""
    # A comparison, because the minimum with NaN is NaN.
    return tf.where(logits > -LARGEST, tf.minimum(logits, LARGEST), lowest)


def best_of(scores):
    """Returns the highest score's id, `[batch]`; argmax does not promise the lowest of several."""
    return tf.math.top_k(scores, 1).indices[:, 0]


def log_probability(logits, tokens):
    """Returns log softmax at the tokens, `[batch]`, by way of the best, which cannot underflow."""
    best = tf.reduce_max(logits, axis=-1)  # [batch]
    return tf.gather(logits, tokens, batch_dims=1) - best + log_probability_of_best(logits)


def log_probability_of_best(logits):
    """Returns log softmax of the best token, `[batch]`."""

    def few():
        best = tf.reduce_max(logits, axis=-1, keepdims=True)  # [batch, 1]
        return -tf.math.log(tf.reduce_sum(tf.exp(logits - best), axis=-1))

    def many():
        return tf.math.log(tf.reduce_max(tf.nn.softmax(logits), axis=-1))

    return tf.cond(tf.size(logits) <= _FEW, few, many)  # [batch]
