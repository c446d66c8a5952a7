"""The loss of a large softmax and its gradient, without passes over the scores that need not be.

The scores of all words at all steps are the largest tensor of a model that writes text: on a CPU it
is the passes over it that cost, beside the products. So on TensorFlow

- the bias is one more feature of the words, so that adding it is part of the product;
- the gradient is made of `P` alone; the targets and label smoothing enter where it has met the
  features, which are small: `∂logits = u (P - q)`, where `u` is the gradient of each step's loss;
- `log Σ exp` is found from `P` at the best word, which cannot underflow.

With `q = (1 - ε) 1[target] + ε / V` the error signals are

    ∂h = u ⊙ (P E - (1 - ε) E[target] - ε mean E),
    ∂E = Pᵀ (u ⊙ h) - (1 - ε) Σ_{target = w} u h - ε Σ u h / V
"""

import keras
from keras import ops


def softmax_nats(features, words, bias, targets, label_smoothing: float = 0.0):
    """Computes the cross entropy between smoothed targets and a softmax over words.

        loss = -Σ_w q(w) log P(w),    P = softmax(E h + b),    q = (1 - ε) 1[target] + ε / V

    Args:
        features: Float tensor, `[..., features]`: `h`.
        words: Float tensor, `[vocabulary_size, features]`: `E`.
        bias: Float tensor, `[vocabulary_size]`: `b`.
        targets: Integer tensor, `[...]`.
        label_smoothing: `ε`, the share of the probability that all words have alike (Szegedy et al.
            2016). Default: 0.

    Returns:
        The loss of each target in nats, `[...]`.

    Example:

    >>> h, E, b = (keras.ops.zeros(shape) for shape in ((2, 3), (4, 3), (4,)))
    >>> nats = softmax_nats(h, E, b, [1, 3])
    >>> keras.ops.convert_to_numpy(keras.ops.exp(nats)).round(4)
    array([4., 4.], dtype=float32)
    """
    if keras.backend.backend() == "tensorflow":
        return _on_tensorflow(features, words, bias, targets, label_smoothing)
    logits = ops.matmul(features, ops.transpose(words)) + bias  # [..., vocabulary_size]
    log_probabilities = ops.log_softmax(logits)
    targets = ops.expand_dims(targets, -1)  # [..., 1]
    of_target = ops.take_along_axis(log_probabilities, targets, axis=-1)[..., 0]
    mean = ops.mean(log_probabilities, axis=-1)  # [...]
    return -(1 - label_smoothing) * of_target - label_smoothing * mean


def _on_tensorflow(features, words, bias, targets, share):
    import tensorflow as tf

    features, words, bias, targets = map(tf.convert_to_tensor, (features, words, bias, targets))
    shape = tf.shape(targets)
    ids = tf.reshape(targets, [-1])  # [steps]

    @tf.custom_gradient
    def nats(features, words, bias):
        steps = tf.size(ids)
        rows = tf.concat([features, tf.ones([steps, 1], features.dtype)], axis=1)
        table = tf.concat([words, bias[:, None]], axis=1)  # [vocabulary, features + 1]
        logits = tf.matmul(rows, table, transpose_b=True)  # [steps, vocabulary]
        P = tf.nn.softmax(logits)
        log_sum = tf.reduce_max(logits, axis=1) - tf.math.log(tf.reduce_max(P, axis=1))  # [steps]
        losses = log_sum - (1 - share) * tf.gather(logits, ids, batch_dims=1)
        wanted = (1 - share) * tf.gather(table, ids)  # [steps, features + 1]
        if share:
            mean = share * tf.reduce_mean(table, axis=0)  # [features + 1]
            losses -= tf.linalg.matvec(rows, mean)
            wanted += mean

        def backward(upstream):
            weighted = rows * upstream[:, None]  # [steps, features + 1]
            to_rows = (tf.matmul(P, words) - wanted[:, :-1]) * upstream[:, None]
            to_table = tf.matmul(P, weighted, transpose_a=True)  # [vocabulary, features + 1]
            if share:
                size = tf.cast(tf.shape(table)[0], table.dtype)
                to_table -= share * tf.reduce_sum(weighted, axis=0) / size
            to_table = tf.tensor_scatter_nd_sub(to_table, ids[:, None], (1 - share) * weighted)
            return to_rows, to_table[:, :-1], to_table[:, -1]

        return losses, backward

    flat = tf.reshape(features, [-1, features.shape[-1]])  # [steps, features]
    return tf.reshape(nats(flat, words, bias), shape)
