"""The highest of many scores."""

import numpy as np
import tensorflow as tf

# From how many scores on they are looked at in blocks, and how many make a block.
_MANY, _WIDTH = 2000, 50


def top_k(scores, k):
    """Returns the `k` highest scores and their indices, `[rows, k]`, of equals the lower index.

    It is `tf.math.top_k`, only faster where many scores are given: the highest `k` are in the
    blocks with the `k` highest maxima. For if a block isn't among these, each of them has a score
    that comes before all of its scores, as a higher one or as an equal one with a lower index.
    """
    many = scores.shape[-1]
    if many < _MANY:
        return tf.math.top_k(scores, k)
    scores = tf.pad(scores, [[0, 0], [0, -many % _WIDTH]], constant_values=-np.inf)
    blocks = tf.reshape(scores, [-1, scores.shape[-1] // _WIDTH, _WIDTH])  # [rows, blocks, width]
    some = tf.minimum(k, blocks.shape[1])
    _, chosen = tf.math.top_k(tf.reduce_max(blocks, axis=2), some)  # [rows, some]
    # In their order, for that of equals.
    chosen = tf.sort(chosen, axis=1)
    among = tf.gather(blocks, chosen, batch_dims=1)  # [rows, some, width]
    values, places = tf.math.top_k(tf.reshape(among, [-1, some * _WIDTH]), k)  # [rows, k]
    block = tf.gather(chosen, places // _WIDTH, batch_dims=1)  # [rows, k]
    return values, block * _WIDTH + places % _WIDTH
