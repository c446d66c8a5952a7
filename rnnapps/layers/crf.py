"""The functions of a linear-chain conditional random field (Lafferty, McCallum & Pereira 2001).

A sequence of tags `y_1 … y_n` has the score

    score(y) = start[y_1] + Σ_t emissions_t[y_t] + Σ_{t>1} transitions[y_{t-1}, y_t] + end[y_n]

and the probability `exp(score(y)) / Z` with `Z = Σ_y exp(score(y))`. Messages from the front and
from the back add up all sequences in linear time (Rabiner 1989),

    f_1 = exp(start),  f_t[j] = Σ_i f_{t-1}[i] exp(emissions_{t-1}[i] + transitions[i, j])
    b_n = exp(end),    b_t[i] = Σ_j exp(transitions[i, j] + emissions_{t+1}[j]) b_{t+1}[j]

and the gradient of `log Z` is what is expected of the tags:

    ∂ log Z / ∂ emissions_t[j]    = p(y_t = j)                  ∝ f_t[j] exp(emissions_t[j]) b_t[j]
    ∂ log Z / ∂ transitions[i, j] = Σ_{t>1} p(y_{t-1} = i, y_t = j)
    ∂ log Z / ∂ start[j]          = p(y_1 = j)
    ∂ log Z / ∂ end[j]            = p(y_n = j)

With the largest in place of the sum of `exp`, the messages find the best sequence (Viterbi 1967).

What holds for all functions here: a step that the mask calls invalid is skipped, wherever it is, so
that its neighbours follow each other. A sequence without valid steps is the empty one, with score 0
and probability 1. A score of -inf, in the emissions, transitions, start or end, forbids what has
it. All is computed in float32 at least. (On Nvidia GPUs TensorFlow rounds what goes into a matrix
product to TF32, unless `tf.config.experimental.enable_tensor_float_32_execution(False)` is called.)
"""

from typing import NamedTuple

import keras
import numpy as np
from keras import ops

# Steps that one turn of a loop takes: the turns cost time on TensorFlow, elsewhere compiling does.
BLOCK = 8 if keras.backend.backend() == "tensorflow" else 1
# Sums of exp below this may have lost terms to underflow, and are done again with logarithms.
_SAFE = 1e-30
# Finite in float32, so that a difference with -inf is -inf.
_LOWEST = -3e38


def sequence_score(emissions, tags, transitions, start_scores=None, end_scores=None, mask=None):
    """Adds up the scores along given sequences.

    Args:
        emissions: Float tensor, `[batch, time, tags]`.
        tags: Integer tensor, `[batch, time]`; anything at invalid steps.
        transitions: Float tensor, `[tags, tags]`, from a tag (row) to the next (column).
        start_scores: Float tensor, `[tags]`, for the first tag. Default: `None`, zeros.
        end_scores: Float tensor, `[tags]`, for the last tag. Default: `None`, zeros.
        mask: Boolean tensor, `[batch, time]`, true at the valid steps. Default: `None`, all steps.

    Returns:
        Float tensor, `[batch]`; -inf where a valid step has a tag out of range.

    Example:

    >>> emissions = np.array([[[1.0, 0.0], [0.0, 2.0]]])
    >>> transitions = np.array([[0.0, 0.5], [0.0, 0.0]])
    >>> float(sequence_score(emissions, [[0, 1]], transitions)[0])
    3.5
    """
    scores = _Scores.of(emissions, transitions, start_scores, end_scores, mask)
    return _sequence_score(scores, _Front(scores.mask), tags)


def log_partition(emissions, transitions, start_scores=None, end_scores=None, mask=None):
    """Computes `log Z`, the log of the sum of `exp(score)` over all sequences.

    Its gradient is written out, as above; it has no second one.

    Args:
        emissions: Float tensor, `[batch, time, tags]`.
        transitions: Float tensor, `[tags, tags]`, from a tag (row) to the next (column).
        start_scores: Float tensor, `[tags]`, for the first tag. Default: `None`, zeros.
        end_scores: Float tensor, `[tags]`, for the last tag. Default: `None`, zeros.
        mask: Boolean tensor, `[batch, time]`, true at the valid steps. Default: `None`, all steps.

    Returns:
        Float tensor, `[batch]`; -inf where every sequence is forbidden.

    Example:

    >>> log_z = log_partition(np.zeros((1, 3, 2)), np.zeros((2, 2)))  # the log of 2³ sequences
    >>> round(float(log_z[0]), 4)
    2.0794
    """
    scores = _Scores.of(emissions, transitions, start_scores, end_scores, mask)
    return _log_partition(scores, _Front(scores.mask))


def log_likelihood(emissions, tags, transitions, start_scores=None, end_scores=None, mask=None):
    """Computes the log-probabilities of given sequences, `score(y) - log Z`.

    Args:
        emissions: Float tensor, `[batch, time, tags]`.
        tags: Integer tensor, `[batch, time]`; anything at invalid steps.
        transitions: Float tensor, `[tags, tags]`, from a tag (row) to the next (column).
        start_scores: Float tensor, `[tags]`, for the first tag. Default: `None`, zeros.
        end_scores: Float tensor, `[tags]`, for the last tag. Default: `None`, zeros.
        mask: Boolean tensor, `[batch, time]`, true at the valid steps. Default: `None`, all steps.

    Returns:
        Float tensor, `[batch]`; -inf for a forbidden sequence, whose gradient is that of any other
        sequence and finite.

    Example:

    >>> likelihood = log_likelihood(np.zeros((1, 3, 2)), [[0, 1, 1]], np.zeros((2, 2)))
    >>> round(float(likelihood[0]), 4)
    -2.0794
    """
    scores = _Scores.of(emissions, transitions, start_scores, end_scores, mask)
    front = _Front(scores.mask)
    log_z = _log_partition(scores, front)
    # Where every sequence is forbidden the score alone says so.
    log_z = ops.where(log_z == -np.inf, ops.zeros_like(log_z), log_z)
    return _sequence_score(scores, front, tags) - log_z


def marginals(emissions, transitions, start_scores=None, end_scores=None, mask=None):
    """Computes each tag's probability at each step, `p(y_t = j)`. No gradient goes through it.

    Args:
        emissions: Float tensor, `[batch, time, tags]`.
        transitions: Float tensor, `[tags, tags]`, from a tag (row) to the next (column).
        start_scores: Float tensor, `[tags]`, for the first tag. Default: `None`, zeros.
        end_scores: Float tensor, `[tags]`, for the last tag. Default: `None`, zeros.
        mask: Boolean tensor, `[batch, time]`, true at the valid steps. Default: `None`, all steps.

    Returns:
        Float tensor, `[batch, time, tags]`; zeros at invalid steps, and where every sequence is
        forbidden.

    Example:

    >>> probabilities = marginals(np.zeros((1, 3, 2)), np.zeros((2, 2)), [np.log(3.0), 0.0])
    >>> ops.convert_to_numpy(probabilities).round(3).tolist()
    [[[0.75, 0.25], [0.5, 0.5], [0.5, 0.5]]]
    """
    scores = _Scores.of(emissions, transitions, start_scores, end_scores, mask).fixed()
    return _expect(scores, _Front(scores.mask)).tags


def viterbi(emissions, transitions, start_scores=None, end_scores=None, mask=None):
    """Finds the sequences of the highest score.

    Args:
        emissions: Float tensor, `[batch, time, tags]`.
        transitions: Float tensor, `[tags, tags]`, from a tag (row) to the next (column).
        start_scores: Float tensor, `[tags]`, for the first tag. Default: `None`, zeros.
        end_scores: Float tensor, `[tags]`, for the last tag. Default: `None`, zeros.
        mask: Boolean tensor, `[batch, time]`, true at the valid steps. Default: `None`, all steps.

    Returns:
        The tags, int32 tensor, `[batch, time]`, 0 at invalid steps, and their scores, float tensor,
        `[batch]`; -inf where every sequence is forbidden, whose tags mean nothing.

    Example:

    >>> emissions = np.array([[[1.0, 0.0], [0.0, 2.0], [0.0, 0.5]]])
    >>> tags, scores = viterbi(emissions, np.array([[0.0, 0.0], [0.0, -9.0]]))
    >>> ops.convert_to_numpy(tags).tolist(), float(scores[0])
    ([[0, 1, 0]], 3.0)
    """
    scores = _Scores.of(emissions, transitions, start_scores, end_scores, mask)
    front, fixed = _Front(scores.mask), scores.fixed()
    steps = front.take(fixed.emissions)  # [steps, batch, tags]

    def step(message, emission):
        after = _level(message + emission)  # [batch, tags]
        return ops.max(after[:, None] + fixed.transitions, axis=-1, initial=-np.inf)

    first = _repeat(fixed.end, front.batch)  # [batch, tags]
    messages, _ = _chain(step, first, front.reverse(steps))
    best = steps + front.reverse(messages)  # [steps, batch, tags]
    # One row more, for what comes before the first tag.
    rows = ops.concatenate([fixed.transitions, fixed.start[None]])  # [tags + 1, tags]

    def follow(tag, best):
        best = ops.take(rows, tag[:, 0], axis=0) + best  # [batch, tags]
        return ops.cast(ops.top_k(best, 1)[1], "int32")  # [batch, 1]

    beginning = ops.full((front.batch, 1), rows.shape[0] - 1, dtype="int32")
    tags, last = _chain(follow, beginning, best)  # [steps, batch, 1]
    tags = ops.concatenate([tags[1:], last[None]])[..., 0]  # [steps, batch]
    tags = front.give_back(tags)  # [batch, time]
    return tags, _sequence_score(scores, front, tags)


def n_best(emissions, k: int, transitions, start_scores=None, end_scores=None, mask=None):
    """Finds the k sequences of the highest scores.

    Args:
        emissions: Float tensor, `[batch, time, tags]`.
        k: The number of sequences, an integer of at least 1.
        transitions: Float tensor, `[tags, tags]`, from a tag (row) to the next (column).
        start_scores: Float tensor, `[tags]`, for the first tag. Default: `None`, zeros.
        end_scores: Float tensor, `[tags]`, for the last tag. Default: `None`, zeros.
        mask: Boolean tensor, `[batch, time]`, true at the valid steps. Default: `None`, all steps.

    Returns:
        The tags, int32 tensor, `[batch, k, time]`, 0 at invalid steps, and their scores, float
        tensor, `[batch, k]`, the highest first. Where there are fewer sequences than k the scores
        behind them are -inf and the tags 0.

    Raises:
        ValueError: If k is less than 1.

    Example:

    >>> tags, scores = n_best(np.array([[[1.0, 0.0]]]), 3, np.zeros((2, 2)))
    >>> ops.convert_to_numpy(tags).tolist(), ops.convert_to_numpy(scores).tolist()
    ([[[0], [1], [0]]], [[1.0, 0.0, -inf]])
    """
    if k < 1:
        raise ValueError(f"`k` must be at least 1. Received: k={k}")
    scores = _Scores.of(emissions, transitions, start_scores, end_scores, mask)
    front, fixed = _Front(scores.mask), scores.fixed()
    num_tags = fixed.transitions.shape[0]
    steps = front.take(fixed.emissions)  # [steps, batch, tags]

    def choices(before, emission, messages):
        """How good the k best ways on are from each row of `before`, and which they are."""
        after = _level(emission[..., None] + messages, axes=(-2, -1))  # [batch, tags, k]
        after = after[:, None] + before[..., None]  # [batch, from, tags, k]
        after = ops.reshape(after, (front.batch, after.shape[1], num_tags * k))
        return ops.top_k(after, k)  # [batch, from, k] both

    def step(carried, emission):
        messages, _ = carried
        ways = choices(fixed.transitions[None], emission, messages)
        return (ways[0], ops.cast(ways[1], "int32")), carried

    # A sequence that ends here goes on in one way only.
    end = ops.pad(fixed.end[:, None], [(0, 0), (0, k - 1)], constant_values=-np.inf)
    end = _repeat(end, front.batch)  # [batch, tags, k]
    start = end, ops.zeros(ops.shape(end), dtype="int32")
    _, (messages, ways) = ops.scan(step, start, front.reverse(steps))
    messages, ways = front.reverse(messages), front.reverse(ways)  # [steps, batch, tags, k]
    best, chosen = choices(fixed.start[None, None], steps[0], messages[0])  # [batch, 1, k]

    def follow(way, ways):
        ways = ops.reshape(ways, (front.batch, num_tags * k))
        return ops.take_along_axis(ways, way, axis=-1), way  # [batch, k] both

    _, ways = ops.scan(follow, ops.cast(chosen[:, 0], "int32"), ways)  # [steps, batch, k]
    found = best[:, 0] > -np.inf  # [batch, k]
    found = ops.where(front.lengths[:, None] > 0, found, ops.arange(k) == 0)
    tags = [front.give_back(ways[..., rank] // k) for rank in range(k)]
    tags = ops.where(found[..., None], ops.stack(tags, axis=1), 0)  # [batch, k, time]
    return tags, ops.where(found, _sequence_score(scores, front, tags), -np.inf)


class _Scores(NamedTuple):
    """What the functions are given, in one data type, and the emissions of invalid steps zero."""

    emissions: object  # [batch, time, tags]
    transitions: object  # [tags, tags]
    start: object  # [tags]
    end: object  # [tags]
    mask: object  # bool [batch, time]

    @classmethod
    def of(cls, emissions, transitions, start, end, mask):
        emissions, transitions = map(ops.convert_to_tensor, (emissions, transitions))
        wide = keras.backend.result_type(emissions.dtype, transitions.dtype, "float32")
        emissions, transitions = ops.cast(emissions, wide), ops.cast(transitions, wide)
        start, end = (
            ops.zeros_like(transitions[0]) if v is None else ops.cast(v, wide) for v in (start, end)
        )
        if mask is None:
            mask = ops.ones(ops.shape(emissions)[:2], dtype="bool")
        mask = ops.cast(mask, "bool")
        emissions = ops.where(mask[..., None], emissions, ops.zeros_like(emissions))
        return cls(emissions, transitions, start, end, mask)

    def fixed(self):
        """Returns the same with no gradient."""
        return _Scores(*map(ops.stop_gradient, self[:4]), self.mask)


class _Front:
    """The valid steps of a batch in the front of its rows, so that no loop looks at a mask.

    Sequences are kept by time, `[steps, batch, ...]`. The steps are at least as many as the time of
    the mask, and whole blocks; those behind a row's length hold anything that is finite.
    """

    def __init__(self, mask):
        self.mask = mask
        self.batch, self.time = ops.shape(mask)
        valid = ops.cast(mask, "int32")
        before = ops.cumsum(valid, axis=1) - valid  # [batch, time]
        self.lengths = ops.sum(valid, axis=1)  # [batch]
        # Where each step goes, the valid ones to the front.
        at = ops.arange(self.time, dtype="int32")  # [time]
        self.places = ops.where(mask, before, self.lengths[:, None] + at - before)  # [batch, time]
        self.rows = ops.arange(self.batch, dtype="int32")  # [batch]
        blocks = -(-self.time // BLOCK)
        blocks = ops.maximum(blocks, 1) if ops.is_tensor(blocks) else max(blocks, 1)
        self.missing = blocks * BLOCK - self.time
        self.steps = ops.arange(blocks * BLOCK, dtype="int32")[:, None]  # [steps, 1]

    @property
    def valid(self):
        """Whether a step is within its row's length, bool `[steps, batch]`."""
        return self.steps < self.lengths

    @property
    def sources(self):
        """The steps from the front on, valid ones first, int32 `[batch, time]`."""
        at = ops.broadcast_to(ops.arange(self.time, dtype="int32"), (self.batch, self.time))
        places = self.places + self.rows[:, None] * self.time
        return ops.reshape(self._put(places, at), (self.batch, self.time))

    def take(self, values):
        """Brings `[batch, time, features]` to the front, `[steps, batch, features]`."""
        size, features = self.batch * self.time, values.shape[-1]
        steps = ops.reshape(ops.arange(size, dtype="int32"), (self.batch, self.time))
        steps = self._put(self.places * self.batch + self.rows[:, None], steps)  # [time · batch]
        values = ops.take(ops.reshape(values, (size, features)), steps, axis=0)
        values = ops.reshape(values, (self.time, self.batch, features))
        if isinstance(self.missing, int) and self.missing == 0:
            return values
        padding = ops.zeros((self.missing, self.batch, features), dtype=values.dtype)
        return ops.concatenate([values, padding])  # [steps, batch, features]

    def give_back(self, values):
        """Undoes `take` on `[steps, batch, ...]`; zeros at the invalid steps."""
        values = self._gather(values, self.places * self.batch + self.rows[:, None])
        mask = ops.reshape(self.mask, (self.batch, self.time, *[1] * (len(values.shape) - 2)))
        return ops.where(mask, values, ops.zeros_like(values))  # [batch, time, ...]

    def reverse(self, values):
        """Puts the valid steps of each row in the other order; twice gives what was."""
        places = ops.where(self.valid, self.lengths - 1 - self.steps, self.steps)  # [steps, batch]
        return self._gather(values, places * self.batch + self.rows)  # [steps, batch, ...]

    def last(self, values):
        """Returns the last valid step of each row, `[batch, ...]`; of an empty row, its first."""
        return self._gather(values, ops.maximum(self.lengths - 1, 0) * self.batch + self.rows)

    @staticmethod
    def _gather(values, places):
        return _take(ops.reshape(values, (-1, *values.shape[2:])), places)

    def _put(self, places, values):
        """The values, `[batch, time]`, in the order of their places, `[batch · time]`."""
        size = self.batch * self.time
        places = ops.reshape(places, (size, 1))
        return ops.scatter(places, ops.reshape(values, (size,)), (size,))


def _sequence_score(scores, front, tags):
    """The scores along sequences of tags, `[batch, ..., time]`; `[batch, ...]`."""
    tags = ops.cast(tags, "int32")
    num_tags = scores.transitions.shape[0]
    between = [1] * (len(tags.shape) - 2)

    def of_rows(values):
        """Puts axes of length 1 between batch and time."""
        return ops.reshape(values, (front.batch, *between, front.time))

    mask, places = of_rows(scores.mask), of_rows(front.places)
    lengths = ops.reshape(front.lengths, (front.batch, *between, 1))
    known = ops.all(~mask | ((tags >= 0) & (tags < num_tags)), axis=-1)  # [batch, ...]
    tags = ops.clip(tags, 0, num_tags - 1)

    def add_up(values, indices, where):
        values = _take(ops.reshape(values, (-1,)), indices)  # [batch, ..., time]
        return ops.sum(ops.where(where, values, ops.zeros_like(values)), axis=-1)  # [batch, ...]

    steps = ops.arange(front.batch * front.time, dtype="int32")
    total = add_up(scores.emissions, of_rows(steps) * num_tags + tags, mask)
    total += add_up(scores.start, tags, mask & (places == 0))
    total += add_up(scores.end, tags, mask & (places == lengths - 1))
    tags = ops.take_along_axis(tags, of_rows(front.sources), axis=-1)  # the valid ones in front
    followed = ops.arange(front.time, dtype="int32")[1:] < lengths  # [batch, ..., time - 1]
    total += add_up(scores.transitions, tags[..., :-1] * num_tags + tags[..., 1:], followed)
    return ops.where(known, total, -np.inf)


def _log_partition(scores, front):
    """`log Z`, with its gradient as in the module's docstring."""

    @ops.custom_gradient
    def log_z(*given):
        fixed = _Scores(*given, scores.mask).fixed()
        expected = _expect(fixed, front)

        def gradient(*args, upstream=None):
            # Backends differ in how they hand it over.
            error = args[0] if upstream is None else upstream  # [batch]

            # Of the scores too, so that a second derivative is noticed.
            @ops.custom_gradient
            def errors(error, *_):
                return (
                    error[:, None, None] * expected.tags,
                    ops.einsum("b,bij->ij", error, expected.transitions),
                    ops.einsum("b,bj->j", error, expected.first),
                    ops.einsum("b,bj->j", error, expected.last),
                ), _refuse

            return errors(error, *given)

        return expected.log_z, gradient

    return log_z(*scores[:4])


def _refuse(*args, **kwargs):
    raise NotImplementedError("The CRF's log-partition has no second-order gradient.")


class _Expected(NamedTuple):
    """What a row's sequences are on the whole; all zero in an empty row."""

    log_z: object  # [batch]
    tags: object  # p(y_t = j), [batch, time, tags]
    transitions: object  # Σ_{t>1} p(y_{t-1} = i, y_t = j), [batch, tags, tags]
    first: object  # p(y_1 = j), [batch, tags]
    last: object  # p(y_n = j), [batch, tags]


def _expect(scores, front):
    """Runs the messages both ways."""
    steps = front.take(scores.emissions)  # [steps, batch, tags]
    log_z, tags, transitions, safe = _by_products(scores, front, steps)
    log_z, tags, transitions = ops.cond(
        safe,
        lambda: (log_z, tags, transitions),
        lambda: _by_logarithms(scores, front, steps),
    )
    tags = ops.where(front.valid[..., None], tags, ops.zeros_like(tags))
    log_z = ops.where(front.lengths > 0, log_z, ops.zeros_like(log_z))
    return _Expected(log_z, front.give_back(tags), transitions, tags[0], front.last(tags))


def _by_products(scores, front, steps):
    """`log Z`, the marginals of tags and of transitions, and whether they can be relied on.

    A message is kept with sum 1 before its product with `exp(transitions)`, which may lose what is
    too small for the data type. As no message that comes out is near that size, nothing that
    counts was lost.
    """
    num_tags = scores.transitions.shape[0]
    top = _peak(steps, -1)  # [steps, batch, 1]
    weights = ops.exp(steps - top)  # [steps, batch, tags]
    weights = ops.concatenate([weights, front.reverse(weights)], axis=-1)  # [steps, batch, 2·tags]
    edges_top, start_top, end_top = map(_peak, (scores.transitions, scores.start, scores.end))
    edges = ops.exp(scores.transitions - edges_top)  # [tags, tags]
    first = ops.concatenate([ops.exp(scores.start - start_top), ops.exp(scores.end - end_top)])
    # Both ways in one product.
    both, ones = _diagonal(edges, ops.transpose(edges)), ops.ones_like(edges)
    halves = _diagonal(ones, ones)  # [2·tags, 2·tags]

    def step(message, weights):
        product = message * weights
        return ops.matmul(product, both) / ops.matmul(product, halves)

    messages, _ = _chain(step, _repeat(first, front.batch), weights)  # [steps, batch, 2·tags]
    products = messages * weights
    ways = (*ops.shape(steps)[:2], 2, num_tags)
    totals = ops.sum(ops.reshape(products, ways), axis=-1)  # [steps, batch, 2]
    lowest = ops.min(ops.reshape(messages, ways), axis=-1, initial=np.inf)  # [steps, batch, 2]
    forward, total = products[..., :num_tags], totals[..., :1]
    backward = front.reverse(messages[..., num_tags:])  # [steps, batch, tags]
    tags = forward * backward
    sums = ops.sum(tags, axis=-1, keepdims=True)  # [steps, batch, 1]
    valid = front.valid[..., None]  # [steps, batch, 1]

    log_z = ops.sum(ops.where(valid, ops.log(total) + top, ops.zeros_like(top)), axis=(0, 2))
    log_z += ops.log(front.last(sums / total))[:, 0] + start_top + end_top  # [batch]
    log_z += ops.cast(front.lengths - 1, log_z.dtype) * edges_top
    # p(y_{t-1} = i, y_t = j) is a product of three.
    pairs = (forward / total)[:-1], (weights[..., :num_tags] * backward / sums)[1:]
    pairs = [ops.where(valid[1:], part, ops.zeros_like(part)) for part in pairs]
    transitions = ops.einsum("tbi,tbj->bij", *pairs) * edges  # [batch, tags, tags]
    safe = ops.all((lowest[1:] * totals[:-1] > _SAFE) | ~valid[1:])
    safe = safe & ops.all((sums > _SAFE) | ~valid)
    return log_z, tags / sums, transitions, safe


def _by_logarithms(scores, front, steps):
    """The same as `_by_products`, for scores of any size."""
    both = ops.stack([steps, front.reverse(steps)], axis=2)  # [steps, batch, 2, tags]
    edges = ops.stack([ops.transpose(scores.transitions), scores.transitions])  # [2, to, from]

    def step(message, emissions):
        after = _level(message + emissions)  # [batch, 2, tags]
        return ops.logsumexp(after[..., None, :] + edges, axis=-1)

    first = _repeat(ops.stack([scores.start, scores.end]), front.batch)  # [batch, 2, tags]
    messages, _ = _chain(step, first, both)  # [steps, batch, 2, tags]
    forward = messages[:, :, 0] + steps
    top = _peak(forward, -1)  # [steps, batch, 1]
    forward = forward - top
    backward = front.reverse(messages[:, :, 1])  # [steps, batch, tags]
    valid = front.valid[..., None]  # [steps, batch, 1]
    log_z = ops.sum(ops.where(valid, top, ops.zeros_like(top)), axis=(0, 2))  # [batch]
    log_z += ops.logsumexp(front.last(forward) + scores.end, axis=-1)
    tags = _share(forward + backward, -1)
    after = steps + backward

    def add(t, transitions):
        pairs = forward[t - 1][..., None] + scores.transitions + after[t][:, None]
        pairs = _share(pairs, (1, 2))  # [batch, tags, tags]
        return transitions + ops.where(valid[t][..., None], pairs, ops.zeros_like(pairs))

    none = ops.zeros((front.batch, *scores.transitions.shape), dtype=steps.dtype)
    return log_z, tags, ops.fori_loop(1, ops.shape(steps)[0], add, none)


def _chain(step, first, inputs):
    """Runs `message = step(message, input)` over `[steps, ...]`.

    Returns the messages before each step, `[steps, ...]`, and the one after the last.
    """
    steps, *shape = ops.shape(inputs)
    blocks = ops.reshape(inputs, (steps // BLOCK, BLOCK, *shape))

    def run_block(carried, block):
        message, messages = carried[0], []
        for one in ops.unstack(block, BLOCK):
            messages.append(message)
            message = step(message, one)
        carried = message, ops.stack(messages)
        return carried, carried

    (last, _), (_, messages) = ops.scan(run_block, (first, ops.stack([first] * BLOCK)), blocks)
    return ops.reshape(messages, (steps, *ops.shape(first))), last


def _take(values, places):
    """The rows of values at places of any shape, `[*places, ...]`."""
    taken = ops.take(values, places, axis=0)
    if 0 in tuple(places.shape):
        # JAX gives another shape where nothing is taken.
        taken = ops.reshape(taken, (*ops.shape(places), *values.shape[1:]))
    return taken


def _repeat(values, batch):
    """Gives each row the same values, `[batch, ...]`."""
    return ops.broadcast_to(values, (batch, *values.shape))


def _diagonal(a, b):
    """Two square matrices as the blocks of one."""
    zeros = ops.zeros_like(a)
    return ops.concatenate(
        [ops.concatenate([a, zeros], axis=1), ops.concatenate([zeros, b], axis=1)]
    )


def _peak(values, axes=None):
    """The largest value, not below what is finite; the axes stay, unless they are all."""
    return ops.max(values, axis=axes, keepdims=axes is not None, initial=_LOWEST)


def _level(values, axes=-1):
    """Moves the largest value to 0, which leaves more digits to the differences."""
    return values - _peak(values, axes)


def _share(values, axes):
    """The softmax, or zeros where all values are -inf."""
    values = ops.exp(_level(values, axes))
    total = ops.sum(values, axis=axes, keepdims=True)
    return values / ops.where(total > 0, total, ops.ones_like(total))
