"""The most likely token at each step, or one drawn at random."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from rnnapps.decoding.steps import (
    PADDING,
    Step,
    allowed_tokens,
    at_least_0,
    best_of,
    finite,
    log_probability,
    same_shape,
)

# What a temperature is kept between where it is not zero, so that a quotient is never NaN.
_COLDEST, _HOTTEST = float(np.finfo("float32").tiny), 1e30
# The share of a probability that float32 may have rounded away.
_ROUNDING = 1e-6
# Tokens that are sorted to find the last one kept; all are where it is not among them.
_SORTED = 128
# Bins of the log-probabilities, and bins to a nat.
_BINS, _BINS_A_NAT = 1024, 32
# Weights that are summed up one by one, and not in blocks.
_SUMMED = 1024
# Threefry-2x32's constants: how far its rounds rotate, and what the keys' parity begins with.
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
# The step from one number to the next below 1, of 53 bits.
_ULP = 2.0**-53


class Decoded(NamedTuple):
    """Decoded tokens.

    Attributes:
        tokens: int32 `[batch, length]`, padding (0) behind a row's end.
        lengths: int32 `[batch]`, how many tokens a row has, the one that ended it included.
        log_probabilities: float32 `[batch]`, the log-probability in nats of a row's tokens, the
            one that ended it included, under the softmax of the logits as they are: at temperature
            1, with nothing forbidden or cut off.
    """

    tokens: tf.Tensor
    lengths: tf.Tensor
    log_probabilities: tf.Tensor


def greedy(
    step: Step,
    tokens: tf.Tensor,
    state: Any,
    *,
    length: int | tf.Tensor,
    end: int | None = None,
    forbidden: Sequence[int] = (),
) -> Decoded:
    """Takes the most likely token at each step.

    Args:
        step: The step function, as above.
        tokens: int32 `[batch]`, the last token of each row.
        state: The state before `tokens` were read.
        length: How many tokens to decode; none where it is negative. A scalar.
        end: The id of the token that ends a row. Default: `None`, every row has `length` tokens.
        forbidden: The ids of the tokens that never come out. Default: none.

    Returns:
        The tokens with their lengths and log-probabilities.

    Raises:
        ValueError: An id is outside the vocabulary, all are forbidden, or the size of the
            vocabulary is not known.

    Example: a chain in which each token is followed by the next one.

    >>> chain = tf.constant([[0.0, 2.0, 0.0], [0.0, 0.0, 2.0], [2.0, 0.0, 0.0]])
    >>> step = lambda tokens, state: (tf.gather(chain, tokens), state)
    >>> greedy(step, [0, 1], (), length=4, end=2).tokens.numpy()
    array([[1, 2, 0, 0],
           [2, 0, 0, 0]], dtype=int32)
    """

    def choose(number, scores, finished):
        return best_of(scores)

    return _decode(step, choose, tokens, state, length, end, forbidden)


def sample(
    step: Step,
    tokens: tf.Tensor,
    state: Any,
    *,
    length: int | tf.Tensor,
    seeds: tf.Tensor,
    temperature: float | tf.Tensor = 1.0,
    top_k: int | tf.Tensor = 0,
    top_p: float | tf.Tensor = 1.0,
    end: int | None = None,
    forbidden: Sequence[int] = (),
) -> Decoded:
    """Draws each token from `softmax(logits / temperature)`, or from its most likely tokens.

    Of the tokens that are not forbidden the `top_k` most likely are kept, and of these the nucleus
    (Holtzman et al. 2020), the smallest set of most likely tokens whose share of the probability is
    at least `top_p`, to within rounding (1e-6 of it); one token at least.

    What a row draws depends on its seed, the number of the step, and its logits: not on its place
    in a batch or on the others there. The draws of different seeds, also of successive ones, are
    independent.

    Args:
        step: The step function, as above.
        tokens: int32 `[batch]`, the last token of each row.
        state: The state before `tokens` were read.
        length: How many tokens to decode; none where it is negative. A scalar.
        seeds: int64 `[batch]`, of which all bits count.
        temperature: What the logits are divided by. 0 or less takes the most likely token, as
            `greedy` does. A scalar. Default: 1.
        top_k: How many tokens are kept; all where it is 0 or less. A scalar. Default: 0.
        top_p: The probability that the kept tokens have at least; all are kept where it is 1 or
            more. A scalar. Default: 1.
        end: The id of the token that ends a row. Default: `None`, every row has `length` tokens.
        forbidden: The ids of the tokens that never come out. Default: none.

    Returns:
        The tokens with their lengths and log-probabilities.

    Raises:
        ValueError: An id is outside the vocabulary, all are forbidden, or the size of the
            vocabulary is not known.

    Example: three throws of a die each, of which a 1 is the last.

    >>> step = lambda tokens, state: (tf.zeros([tf.size(tokens), 7]), state)
    >>> sample(step, [0, 0], (), length=3, seeds=[1, 2], end=1, forbidden=[0]).tokens.numpy()
    array([[5, 1, 0],
           [4, 2, 3]], dtype=int32)
    """
    temperature = tf.convert_to_tensor(temperature, tf.float32)
    top_k = tf.convert_to_tensor(top_k, tf.int32)
    top_p = tf.convert_to_tensor(top_p, tf.float32)
    uniforms = _uniforms(tf.convert_to_tensor(seeds, tf.int64), at_least_0(length))
    hot = temperature >= _COLDEST
    truncates = (top_k > 0) | (top_p < 1)
    temperature = tf.clip_by_value(temperature, _COLDEST, _HOTTEST)

    def choose(number, scores, finished):
        def draw():
            best = tf.reduce_max(scores, axis=-1, keepdims=True)  # [batch, 1]
            weights = _weights(scores, best, temperature)
            kept = tf.cond(
                truncates,
                lambda: _truncated(weights, scores, best, temperature, top_k, top_p, finished),
                lambda: weights,
            )
            return _draw(kept, uniforms[number])

        return tf.cond(hot, draw, lambda: best_of(scores))

    return _decode(step, choose, tokens, state, length, end, forbidden)


class _Rows(NamedTuple):
    """What the loop carries from one step to the next."""

    tokens: tf.Tensor  # [batch], what the step reads
    state: Any
    finished: tf.Tensor  # [batch]
    lengths: tf.Tensor  # [batch]
    log_probabilities: tf.Tensor  # [batch], float64: a long sum of small numbers


def _decode(step, choose, tokens, state, length, end, forbidden) -> Decoded:
    """Decodes with `choose(number of the step, scores, finished)`, which gives `[batch]` tokens."""
    tokens = tf.convert_to_tensor(tokens, tf.int32)
    length = at_least_0(length)
    # One more than is written, because an array of none cannot be stacked.
    padding = tf.fill([length + 1, tf.size(tokens)], PADDING)  # [length + 1, batch]
    written = tf.TensorArray(tf.int32, length + 1, element_shape=tokens.shape).unstack(padding)
    rows = _Rows(
        tokens,
        tf.nest.map_structure(tf.convert_to_tensor, state),
        finished=tf.zeros_like(tokens, tf.bool),
        lengths=tf.zeros_like(tokens),
        log_probabilities=tf.zeros_like(tokens, tf.float64),
    )

    def unfinished(number, rows, written):
        return (number < length) & ~tf.reduce_all(rows.finished)

    def turn(number, rows, written):
        logits, state = step(rows.tokens, rows.state)
        logits = tf.cast(logits, tf.float32)
        drawn = choose(number, _scores(logits, end, forbidden), rows.finished)  # [batch]
        drawn = tf.where(rows.finished, PADDING, drawn)
        log_probabilities = tf.where(rows.finished, 0.0, log_probability(logits, drawn))  # [batch]
        after = _Rows(
            drawn,
            state,
            rows.finished if end is None else rows.finished | (drawn == end),
            rows.lengths + tf.cast(~rows.finished, tf.int32),
            rows.log_probabilities + tf.cast(log_probabilities, tf.float64),
        )
        return (
            number + 1,
            tf.nest.map_structure(same_shape, after, rows),
            written.write(number, drawn),
        )

    _, rows, written = tf.while_loop(unfinished, turn, (0, rows, written))
    return Decoded(
        tf.transpose(written.stack()[:-1]),  # [batch, length]
        rows.lengths,
        tf.cast(rows.log_probabilities, tf.float32),
    )


def _scores(logits, end, forbidden):
    """Returns the logits, finite but for those of forbidden tokens, which become -inf."""
    allowed = allowed_tokens(logits, end, forbidden)
    scores = finite(logits)
    return scores if allowed.all() else tf.where(allowed, scores, -np.inf)


def _first(flags):
    """Returns the id of the first flag that is set, `[batch]`."""
    return best_of(tf.cast(flags, tf.float32))


def _weights(scores, best, temperature):
    """Returns the probabilities relative to that of the best score, so that none overflows."""
    return tf.exp((scores - best) / temperature)


def _draw(weights, uniform):
    """Draws with `[batch]` numbers in [0, 1) from `[batch, n]` weights."""
    size = weights.shape[-1]
    if size <= _SUMMED:
        return _invert(weights, uniform)[0]
    # Running sums are slow: a block is drawn by its sum, and with what is left of the number one
    # of its weights.
    width = math.isqrt(size)
    blocks = tf.pad(weights, [[0, 0], [0, -size % width]])
    blocks = tf.reshape(blocks, [-1, math.ceil(size / width), width])  # [batch, blocks, width]
    block, rest = _invert(tf.reduce_sum(blocks, axis=-1), uniform)  # [batch]
    return block * width + _invert(tf.gather(blocks, block, batch_dims=1), rest)[0]


def _invert(weights, uniform):
    """Finds the weight in which a share of their sum ends, and how far into it, in [0, 1)."""
    # In float32 small weights would be lost in the sum of many.
    weights = tf.cast(weights, tf.float64)
    sums = tf.cumsum(weights, axis=-1)  # [batch, n]
    # Sums made in parallel need not rise: what has no weight must not come out for that.
    sums = tf.where(weights > 0, sums, 0)
    share = uniform * tf.reduce_max(sums, axis=-1)  # [batch]
    found = _first(sums > share[:, None])  # [batch]
    behind = tf.gather(sums, found, batch_dims=1) - share  # [batch]
    rest = 1 - behind / tf.gather(weights, found, batch_dims=1)  # [batch]
    return found, tf.clip_by_value(rest, 0, 1 - _ULP)


def _truncated(weights, scores, best, temperature, top_k, top_p, finished):
    """Returns the weights with 0 for all but the `top_k` and, of these, the nucleus."""
    vocabulary = scores.shape[-1]
    top_k = tf.where(top_k > 0, tf.minimum(top_k, vocabulary), vocabulary)
    top_p = tf.cast(top_p, tf.float64)
    share = tf.where(top_p < 1, top_p * (1 - _ROUNDING), np.inf)
    masses = tf.cast(weights, tf.float64)
    whole = tf.reduce_sum(masses, axis=-1, keepdims=True)  # [batch, 1]

    def last_of(many, scores, mass):
        """Sorts `many` scores, better than which are tokens of this mass, and finds the last kept.

        Returns its score and id, `[batch, 1]`, and whether it is among the many in each row.
        """
        scores, ids = tf.math.top_k(scores, many)  # [batch, many]
        among = tf.range(many) < top_k  # [many]
        masses = tf.where(among, tf.cast(_weights(scores, best, temperature), tf.float64), 0)
        of = tf.where(top_k < vocabulary, tf.reduce_sum(masses, axis=-1, keepdims=True), whole)
        mass += tf.cumsum(masses, axis=-1, exclusive=True)  # [batch, many]
        kept = tf.math.count_nonzero(among & (mass < share * of), axis=-1, keepdims=True)
        last = tf.maximum(kept - 1, 0)  # [batch, 1]
        found = (top_k == vocabulary) & tf.reduce_all((kept < many) | finished[:, None])
        score, id_ = (tf.gather(values, last, batch_dims=1) for values in (scores, ids))
        return score, tf.cast(id_, tf.int64), found | (top_k <= many)

    def of_one_bin():
        """Narrows the scores down to the bin in which the nucleus ends, without sorting."""
        depths = tf.minimum((best - scores) / temperature * _BINS_A_NAT, _BINS - 1)
        bins = tf.cast(depths, tf.int64)  # [batch, vocabulary]
        row = tf.range(tf.shape(bins, tf.int64)[0])[:, None]  # [batch, 1]
        sums = tf.math.unsorted_segment_sum(masses, bins + row * _BINS, tf.size(row) * _BINS)
        sums = tf.cumsum(tf.reshape(sums, [-1, _BINS]), axis=-1)  # [batch, bins]
        reached = sums >= tf.minimum(share * whole, sums[:, -1:])
        number = _first(reached)[:, None]  # [batch, 1]
        before = tf.gather(tf.pad(sums, [[0, 0], [1, 0]]), number, batch_dims=1)  # [batch, 1]
        return tf.where(bins == tf.cast(number, tf.int64), scores, -np.inf), before

    none = tf.zeros_like(whole)
    if vocabulary <= _SORTED:
        score, token, _ = last_of(vocabulary, scores, none)
    else:
        some, mass = tf.cond(top_k < vocabulary, lambda: (scores, none), of_one_bin)
        score, token, found = last_of(_SORTED, some, mass)
        score, token = tf.cond(
            found, lambda: (score, token), lambda: last_of(vocabulary, scores, none)[:2]
        )
    ids = tf.range(vocabulary, dtype=tf.int64)
    kept = (scores > score) | ((scores == score) & (ids <= token))  # [batch, vocabulary]
    return tf.where(kept, weights, 0)


def _uniforms(seeds, length):
    """Returns a number in [0, 1) for each step and row, `[length, batch]`.

    They are the 53 leading bits of Threefry-2x32 with 20 rounds (Salmon et al. 2011), a
    block cipher whose key is the seed and which here enciphers the number of the step.
    """
    halves = seeds, tf.bitwise.right_shift(seeds, 32)
    low, high = (tf.cast(half & 0xFFFFFFFF, tf.uint32) for half in halves)  # [batch]
    keys = low, high, low ^ high ^ _PARITY
    a = tf.cast(tf.range(length), tf.uint32)[:, None] + keys[0]  # [length, batch]
    b = tf.zeros_like(a) + keys[1]  # [length, batch]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            a += b
            b = tf.bitwise.left_shift(b, rotation) | tf.bitwise.right_shift(b, 32 - rotation)
            b ^= a
        a += keys[(group + 1) % 3]
        b += keys[(group + 2) % 3] + (group + 1)
    leading = tf.cast(a, tf.float64) * 2**21 + tf.cast(tf.bitwise.right_shift(b, 11), tf.float64)
    return leading * _ULP
