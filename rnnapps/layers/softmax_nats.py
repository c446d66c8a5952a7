"""The loss of a large softmax and its gradient, without passes over the scores that need not be.

The scores of all words at all steps are the largest tensor of a model that writes text: on a CPU it
is the passes over it that cost, beside the products. So on TensorFlow

- the bias is one more feature of the words, so that adding it is part of the product;
- what label smoothing adds, `ε (score of the target - mean of the scores)`, and the weights of the
  steps are applied to the features, which are small;
- the loss and `P - 1[target]`, from which both gradients are made, come from one operation.

With `g = P - 1[target]` and the gradient `u` of each step's loss, the error signals are

    ∂h = u ⊙ (g E + ε (E[target] - mean E)),
    ∂E = gᵀ (u ⊙ h) + ε (Σ_{target = w} u h - Σ u h / V)
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
    >>> keras.ops.exp(softmax_nats(h, E, b, [1, 3])).numpy().round(4)
    array([4., 4.], dtype=float32)
    """
    if keras.backend.backend() == "tensorflow":
        return _on_tensorflow(features, words, bias, targets, label_smoothing)
    logits = ops.matmul(features, ops.transpose(words)) + bias  # [..., vocabulary_size]
    log_probabilities = ops.log_softmax(logits)
    of_target = ops.take_along_axis(log_probabilities, targets[..., None], axis=-1)[..., 0]
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
        losses, rest = tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(features=logits, labels=ids)
        if share:
            of_targets = tf.gather(table, ids) - tf.reduce_mean(
                table, axis=0
            )  # [steps, features + 1]
            losses += share * tf.reduce_sum(rows * of_targets, axis=1)  # [steps]

        def backward(upstream):
            weighted = rows * upstream[:, None]  # [steps, features + 1]
            to_rows = tf.matmul(rest, words) * upstream[:, None]  # [steps, features]
            to_table = tf.matmul(rest, weighted, transpose_a=True)  # [vocabulary, features + 1]
            if share:
                to_rows += share * of_targets[:, :-1] * upstream[:, None]
                size = tf.shape(table)[0]
                to_table += share * (
                    tf.math.unsorted_segment_sum(weighted, ids, size)
                    - tf.reduce_sum(weighted, axis=0) / tf.cast(size, table.dtype)
                )
            return to_rows, to_table[:, :-1], to_table[:, -1]

        return losses, backward

    flat = tf.reshape(features, [-1, features.shape[-1]])  # [steps, features]
    return tf.reshape(nats(flat, words, bias), shape)
