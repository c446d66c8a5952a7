"""Beam search: the most likely sequences, or those with the best score."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from rnnapps.decoding.penalties import LENGTH_PENALTIES, Penalties, covered
from rnnapps.decoding.steps import (
    PADDING,
    Step,
    allowed_tokens,
    at_least_0,
    best_of,
    finite,
    log_probability_of_best,
)
from rnnapps.decoding.top import top_k

_NONE = -1  # where an id is expected and there is none
_NEVER = np.float64("-inf")  # the log-probability of what is not there


class Hypotheses(NamedTuple):
    """The best hypotheses of each sentence, the best first.

    Where there are fewer, what is missing has the length 0, padding for tokens, and -inf for a
    log-probability and a score.

    Attributes:
        tokens: int32 `[batch, hypotheses, length]`, padding (0) behind a hypothesis' end.
        lengths: int32 `[batch, hypotheses]`, how many tokens there are, the one that ended the
            hypothesis included. Of one that was cut the last token is another one.
        log_probabilities: float32 `[batch, hypotheses]`, the log-probability in nats of the tokens
            under the softmax of the logits as they are, with nothing forbidden or penalised.
        scores: float32 `[batch, hypotheses]`, what they are sorted by: with the penalties.
        attended: int32 `[batch, hypotheses, length]`, the position in the source that each token
            attended to most; 0 behind the end, and everywhere without attention.
    """

    tokens: tf.Tensor
    lengths: tf.Tensor
    log_probabilities: tf.Tensor
    scores: tf.Tensor
    attended: tf.Tensor


def beam_search(
    step: Step | Callable[[tf.Tensor, Any, Any], tuple[tf.Tensor, Any]],
    tokens: tf.Tensor,
    state: Any,
    *,
    beam_width: int | tf.Tensor,
    length: int | tf.Tensor,
    end: int,
    hypotheses: int | tf.Tensor | None = None,
    memory: Any = None,
    attention: Callable[[Any], tf.Tensor] | None = None,
    source_mask: tf.Tensor | None = None,
    min_length: int = 0,
    length_penalty: str = "none",
    alpha: float = 0.6,
    coverage_penalty: float = 0.0,
    no_repeat_ngram: int = 0,
    forbidden: Sequence[int] = (),
) -> Hypotheses:
    """Searches for the sequences with the best scores, `beam_width` at a time (Wu et al. 2016).

    Each sentence has `beam_width` live beams. Of all their continuations by a token the best by
    their log-probability are looked at: those with the end token among the first `beam_width` are
    hypotheses and kept apart; the first `beam_width` others are the next live beams. What is still
    live at `length` is cut there and is a hypothesis as well, as good as its score. Scores

        log_probability / penalty(length) + coverage_penalty * Σ_i log(min(Σ_t attention_ti, 1))

    compare hypotheses, where `penalty` is 1 (`"none"`), the length (`"average"`), or
    `((5 + length) / 6) ** alpha` (`"gnmt"`), and the sum is over the source's positions. Live beams
    have one length and are compared without penalties. With one beam and no penalties this is
    `greedy`.

    A sentence is searched until no live beam can get a better score than its worst of `hypotheses`
    hypotheses, whatever might follow; this never changes them. Whenever a quarter of the sentences
    is done, they are left out of the next steps. A token with the logit -inf or NaN never comes
    out, also where there is no other. Of hypotheses with the same score the one found first comes
    first, and of those one that has ended; of continuations with the same log-probability that of
    the better beam, and of those the lower token.

    Args:
        step: The step function. It is given `[sentences * beam_width]` rows, of which successive
            ones are beams of one sentence; and `memory`, where there is one, as a third argument.
        tokens: int32 `[batch]`, the last token of each sentence.
        state: The state before `tokens` were read, of `batch` rows.
        beam_width: How many beams are live. A scalar, 1 or more.
        length: How many tokens a hypothesis has at most, the end token included; none where it is
            negative. A scalar; or `[batch]`, of which the greatest is that of what is returned.
        end: The id of the token that ends a hypothesis.
        hypotheses: How many are returned. A scalar, 1 or more; the fewer, the earlier the search
            ends. Default: `None`, as many as there are beams.
        memory: A nest of tensors with the sentences first, of `batch` rows, one for all beams of a
            sentence, as an encoder's keys and values. Default: `None`, nothing.
        attention: Gives for the state after a step what weights its attention had, float
            `[rows, source]`. Default: `None`, there is none.
        source_mask: bool `[batch, source]`, which positions are not padding. Only for
            `coverage_penalty`. Default: `None`.
        min_length: How many tokens come before the end token at least. Default: 0.
        length_penalty: `"none"`, `"average"` or `"gnmt"`. Default: `"none"`.
        alpha: The exponent of `"gnmt"`, 0 or more. Default: 0.6.
        coverage_penalty: The weight of the attention's coverage, 0 or more. Default: 0.
        no_repeat_ngram: The length of the n-grams that no hypothesis has twice; 0 for any.
            Default: 0.
        forbidden: The ids of the tokens that never come out. Default: none.

    Returns:
        The hypotheses with their lengths, log-probabilities and scores.

    Raises:
        ValueError: A setting is out of its range, an id is outside the vocabulary, all are
            forbidden, the size of the vocabulary is not known, or there is no attention or mask to
            know the coverage from.

    Example: token 1 is the more likely first one, and token 2 begins the more likely sequence.

    >>> after = [[0, 0.6, 0.4, 0], [0, 0.3, 0.3, 0.4], [0, 0, 0.1, 0.9], [0, 0, 0, 1]]
    >>> chain = tf.math.log(tf.constant(after))
    >>> step = lambda tokens, state: (tf.gather(chain, tokens), state)
    >>> found = beam_search(step, [0], (), beam_width=2, length=3, end=3)
    >>> found.tokens.numpy()
    array([[[2, 3, 0],
            [1, 3, 0]]], dtype=int32)
    >>> found.log_probabilities.numpy().round(2)  # of 0.4 * 0.9 and 0.6 * 0.4
    array([[-1.02, -1.43]], dtype=float32)
    """
    if length_penalty not in LENGTH_PENALTIES:
        raise ValueError(f"no such length penalty: {LENGTH_PENALTIES}. Received: {length_penalty}")
    if coverage_penalty and (attention is None or source_mask is None):
        raise ValueError("coverage needs both attention and source_mask. Received: None")
    _check(0, alpha=alpha, coverage_penalty=coverage_penalty)
    _check(0, min_length=min_length, no_repeat_ngram=no_repeat_ngram)
    hypotheses = beam_width if hypotheses is None else hypotheses
    _check(1, beam_width=beam_width, hypotheses=hypotheses)
    search = _Search(
        step,
        attention,
        has_memory=memory is not None,
        width=_at_least_1(beam_width),
        end=end,
        min_length=min_length,
        penalties=Penalties(length_penalty, alpha, coverage_penalty),
        no_repeat_ngram=no_repeat_ngram,
        forbidden=tuple(forbidden),
    )
    tokens = tf.convert_to_tensor(tokens, tf.int32)
    beams, progress, sentences = search.begin(
        tokens, state, memory, source_mask, at_least_0(length), _at_least_1(hypotheses)
    )
    length = at_least_0(tf.reduce_max(length))
    taken_shape = tf.stack([tf.size(tokens), search.width, 3])
    # Of each step and beam: the beam it came from, its token, and where that beam attended to.
    steps = tf.TensorArray(tf.int32, length, element_shape=[None, None, 3])

    def unfinished(number, beams, progress, sentences, found, steps):
        return tf.reduce_any(_is_live(progress.log_probabilities))

    def crowded(number, beams, progress, steps):
        # To leave out a quarter is often enough, and all copies are but 3 of the whole.
        live = _live_sentences(progress)
        return 4 * tf.math.count_nonzero(live, dtype=tf.int32) > 3 * tf.size(live)

    def phase(number, beams, progress, sentences, found, steps):
        # In a loop of its own, which carries and computes nothing but what a step changes.
        layout = search.layout(sentences)
        rows = sentences.numbers[:, None]

        def turn(number, beams, progress, steps):
            beams, progress, taken = search.turn(number, beams, progress, sentences, layout)
            taken = tf.scatter_nd(rows, taken, taken_shape)
            beams, progress = _shaped((beams, progress), shapes[:2])
            return number + 1, beams, progress, steps.write(number, taken)

        number, beams, progress, steps = tf.while_loop(
            crowded,
            turn,
            (number, beams, progress, steps),
            (tf.TensorShape([]), shapes.beams, shapes.progress, tf.TensorShape(None)),
        )
        found = _settled(found, progress.found, sentences.numbers)
        kept = search.only(tf.where(_live_sentences(progress))[:, 0], beams, progress, sentences)
        return number, *_shaped(kept, shapes), found, steps

    carried = _Carried(beams, progress, sentences)
    shapes = tf.nest.map_structure(_any_rows, carried)
    if no_repeat_ngram:
        history = tf.TensorShape([None, None])
        shapes = shapes._replace(beams=shapes.beams._replace(history=history))
    number, *_, found, steps = tf.while_loop(
        unfinished,
        phase,
        (0, *carried, progress.found, steps),
        (tf.TensorShape([]), *shapes, shapes.progress.found, tf.TensorShape(None)),
    )
    tokens, attended = _traced_back(found, steps, number, length, end)
    return Hypotheses(
        tokens, found.lengths, _float32(found.log_probabilities), _float32(found.scores), attended
    )


class _Beams(NamedTuple):
    """What the loop carries of each beam, in one row for each: `[sentences * width, …]`."""

    tokens: tf.Tensor  # [rows], what the step reads
    state: Any
    attention: Any  # [rows, source], the sum of the weights; () where it isn't asked for
    history: Any  # [rows, n - 1 + number of steps], the tokens so far; () likewise


class _Found(NamedTuple):
    """The best hypotheses so far, `[sentences, hypotheses]`, sorted; first none, of score -inf."""

    scores: tf.Tensor  # float64
    log_probabilities: tf.Tensor  # float64
    lengths: tf.Tensor
    beams: tf.Tensor  # of the last step that is not the end token, the number of the beam
    ended: tf.Tensor  # whether there is an end token


class _Progress(NamedTuple):
    """What each step changes of each sentence that is still searched."""

    log_probabilities: tf.Tensor  # [sentences, width], float64, of live beams; -inf of others
    found: _Found


class _Sentences(NamedTuple):
    """What is the same in all steps of each sentence that is still searched."""

    numbers: tf.Tensor  # [sentences], in the batch
    lengths: tf.Tensor  # [sentences], the most tokens
    memory: Any
    source_mask: Any  # [sentences, source]; () where it isn't asked for


class _Layout(NamedTuple):
    """Where things are in each step, as long as no sentence is left out."""

    first_rows: tf.Tensor  # [sentences, 1], the row of each sentence's first beam
    beams: tf.Tensor  # [sentences, width], the numbers of the beams
    first: tf.Tensor  # the size of a part that has as many columns as there are beams
    penalties: tf.Tensor  # [sentences, 1], what divides the score of the longest hypothesis


class _Carried(NamedTuple):
    """What is known of the sentences that are still searched."""

    beams: _Beams
    progress: _Progress
    sentences: _Sentences


@dataclasses.dataclass(frozen=True)
class _Search:
    """The settings of a search, and what is done by them."""

    step: Callable
    attention: Callable | None
    has_memory: bool
    width: tf.Tensor
    end: int
    min_length: int
    penalties: Penalties
    no_repeat_ngram: int
    forbidden: tuple[int, ...]

    def begin(self, tokens, state, memory, source_mask, lengths, hypotheses):
        """Returns what is known before the first step: the first beam of a sentence is live."""
        batch = tf.size(tokens)
        lengths = tf.broadcast_to(lengths, [batch])
        covers = bool(self.penalties.coverage)
        source_mask = tf.convert_to_tensor(source_mask, tf.bool) if covers else ()
        none = tf.fill([batch, hypotheses], _NEVER)
        zeros = tf.zeros([batch, hypotheses], tf.int32)
        found = _Found(none, none, zeros, zeros, tf.zeros_like(zeros, tf.bool))
        # Where nothing may be written the empty hypothesis is all there is.
        empty = (lengths == 0)[:, None] & (tf.range(hypotheses) == 0)  # [batch, hypotheses]
        certain = tf.where(empty, tf.zeros_like(none), none)
        found = found._replace(scores=certain, log_probabilities=certain)
        first = (lengths > 0)[:, None] & (tf.range(self.width) == 0)  # [batch, width]
        beams = _Beams(
            tokens,
            tf.nest.map_structure(tf.convert_to_tensor, state),
            tf.zeros_like(source_mask, tf.float32) if covers else (),
            tf.fill([batch, self.no_repeat_ngram - 1], _NONE) if self.no_repeat_ngram else (),
        )
        sentences = _Sentences(
            tf.range(batch),
            lengths,
            tf.nest.map_structure(tf.convert_to_tensor, memory) if self.has_memory else (),
            source_mask,
        )
        beams = tf.nest.map_structure(lambda x: tf.repeat(x, self.width, axis=0), beams)
        return beams, _Progress(tf.where(first, np.float64(0), _NEVER), found), sentences

    def layout(self, sentences):
        """Returns the layout of some sentences."""
        first_rows = tf.range(tf.size(sentences.numbers))[:, None] * self.width  # [sentences, 1]
        return _Layout(
            first_rows,
            tf.zeros_like(first_rows) + tf.range(self.width),
            tf.stack([-1, self.width]),
            self.penalties.of_length(sentences.lengths[:, None]),
        )

    def turn(self, number, beams, progress, sentences, layout):
        """Takes a step, and returns what is known after it and what each beam took.

        The latter is int32 `[sentences, width, 3]`: from which beam it came, by which token, and
        where in the source the beam of this number attended to.
        """
        width = self.width
        memory = [sentences.memory] if self.has_memory else []
        logits, state = self.step(beams.tokens, beams.state, *memory)
        attention, attended = beams.attention, tf.zeros_like(beams.tokens)
        if self.attention is not None:
            weights = tf.cast(self.attention(state), tf.float32)  # [rows, source]
            attended = best_of(weights)  # [rows]
            if self.penalties.coverage:
                attention += weights
        added, tokens = self._continuations(number, logits, beams.history)  # [rows, some]

        # The best 2 * width have at least width without the end token, as a beam ends but once.
        some = tf.shape(added)[1]
        sums = tf.cast(tf.reshape(added, [-1, width, some]), tf.float64)
        sums += progress.log_probabilities[:, :, None]  # [sentences, width, some]
        best, places = tf.math.top_k(
            tf.reshape(sums, [-1, width * some]), tf.minimum(2 * width, width * some)
        )  # [sentences, 2 * width]
        tokens = tf.gather(tf.reshape(tokens, [-1, width * some]), places, batch_dims=1)
        parents = places // some  # [sentences, 2 * width]
        ends = tokens == self.end

        live, which = tf.math.top_k(tf.where(ends, _NEVER, best), width)  # [sentences, width]
        came = tf.gather(parents, which, batch_dims=1)  # [sentences, width]
        came = tf.where(_is_live(live), came, layout.beams)
        tokens = tf.where(_is_live(live), tf.gather(tokens, which, batch_dims=1), PADDING)

        first = functools.partial(tf.slice, begin=[0, 0], size=layout.first)
        ended = first(tf.where(ends, best, _NEVER))  # [sentences, width]
        last = (number + 1 == sentences.lengths)[:, None]  # [sentences, 1]
        found = self._found(
            number + 1,
            progress.found,
            sentences,
            attention,
            layout,
            ended=(ended, first(parents)),
            cut=(tf.where(last, live, _NEVER), came),
        )
        # A row of live beams is sorted.
        bounds = self.penalties.bound(live[:, :1], layout.penalties)  # [sentences, 1]
        live = tf.where(last | (bounds <= found.scores[:, -1:]), _NEVER, live)

        carried = state, attention, beams.history
        moved = tf.reshape(layout.first_rows + came, [-1])  # [rows]
        state, attention, history = _gathered(carried, moved)
        rows = tf.reshape(tokens, [-1])
        if self.no_repeat_ngram:
            history = tf.concat([history, rows[:, None]], axis=1)
        taken = tf.stack([came, tokens, tf.reshape(attended, [-1, width])], axis=2)
        return (
            _Beams(rows, state, attention, history),
            _Progress(live, found),
            taken,
        )

    def only(self, kept, beams, progress, sentences):
        """Leaves only the sentences with these indices."""
        rows = tf.cast(kept, tf.int32)[:, None] * self.width + tf.range(self.width)
        rows = tf.reshape(rows, [-1])
        return _Carried(_gathered(beams, rows), *_gathered((progress, sentences), kept))

    def _continuations(self, number, logits, history):
        """Returns the best tokens of each row, and their log-probabilities, `[rows, some]`.

        They are enough to find the best `2 * width` of a sentence that may come out, among which
        a beam has no more than `width` tokens and the end token. -inf is what may not come out.
        """
        logits = tf.cast(logits, tf.float32)
        allowed_tokens(logits, self.end, self.forbidden)
        banned = self._banned(number, history)  # [rows or 1, some]
        most = banned.shape[1]
        if self.no_repeat_ngram:
            most = tf.reduce_max(tf.math.count_nonzero(banned != _NONE, axis=1, dtype=tf.int32))
        some = tf.minimum(self.width + 1 + most, logits.shape[-1])
        log_best = log_probability_of_best(logits)  # [rows]

        def cleaned():
            clean = finite(logits, -np.inf)
            return clean, log_probability_of_best(clean)

        logits, log_best = tf.cond(
            tf.reduce_all(tf.math.is_finite(log_best)), lambda: (logits, log_best), cleaned
        )
        values, tokens = top_k(logits, some)  # [rows, some]
        impossible = tf.reduce_any(tokens[:, :, None] == banned[:, None], axis=2)
        impossible |= tf.math.is_inf(values)  # [rows, some]
        added = tf.minimum(values - values[:, :1] + log_best[:, None], 0)
        return tf.where(impossible, -np.inf, added), tokens

    def _banned(self, number, history):
        """Returns the tokens that may not come next, `[rows or 1, some]`."""
        always = tf.constant([self.forbidden], tf.int32)  # [1, some]
        if self.min_length:
            too_early = tf.where(number < self.min_length, self.end, _NONE)
            always = tf.concat([always, [[too_early]]], axis=1)  # [1, some]
        n = self.no_repeat_ngram
        if not n:
            return always
        # What has followed on the last n - 1 tokens before.
        later = history[:, n - 1 :]  # [rows, number of steps]
        matches = tf.ones_like(later, tf.bool)
        for place in range(n - 1):
            same = history[:, place : place + number] == history[:, place + number, None]
            matches &= same
        later = tf.where(matches, later, _NONE)
        always = tf.repeat(always, tf.shape(later)[0], axis=0)  # [rows, some]
        return tf.concat([always, later], axis=1)

    def _found(self, length, found, sentences, attention, layout, ended, cut):
        """Returns the best of what was `found` before and of what has ended or was cut now.

        Both are log-probabilities, -inf where there is nothing, and the beams they came from,
        `[sentences, width]`.
        """
        log_probabilities = tf.concat([ended[0], cut[0]], axis=1)  # [sentences, 2 * width]

        def merged():
            covers = 0.0
            if self.penalties.coverage:
                shape = tf.shape(sentences.source_mask)
                sums = tf.reshape(attention, [-1, self.width, shape[1]])
                covers = covered(sums, sentences.source_mask[:, None])  # [sentences, width]
                came = tf.concat([ended[1], cut[1]], axis=1)  # [sentences, 2 * width]
                covers = tf.gather(covers, came, batch_dims=1)  # [sentences, 2 * width]
            own = layout.beams
            new = _Found(
                self.penalties.score(log_probabilities, length, covers),
                log_probabilities,
                tf.fill(tf.shape(log_probabilities), length),
                tf.concat([ended[1], own], axis=1),
                tf.concat([tf.ones_like(own, tf.bool), tf.zeros_like(own, tf.bool)], axis=1),
            )
            both = [tf.concat(pair, axis=1) for pair in zip(found, new, strict=True)]
            _, best = tf.math.top_k(both[0], tf.shape(found.scores)[1])
            return _Found(*(tf.gather(values, best, batch_dims=1) for values in both))

        return tf.cond(tf.reduce_any(_is_live(log_probabilities)), merged, lambda: found)


def _traced_back(found, steps, number, length, end):
    """Returns tokens and what they attended to, `[batch, hypotheses, length]`, last step first."""
    shape = tf.shape(found.lengths)
    # One more than is written, because an array of none cannot be stacked.
    padding = tf.fill([length + 1, shape[0], shape[1], 2], PADDING)
    written = tf.TensorArray(tf.int32, length + 1, element_shape=[None, None, 2]).unstack(padding)
    before_end = found.lengths - tf.cast(found.ended, tf.int32)  # [batch, hypotheses]

    def turn(number, beams, written):
        number -= 1
        taken = steps.read(number)  # [batch, width, 3]
        came, token, _ = tf.unstack(tf.gather(taken, beams, batch_dims=1), axis=2)
        token = tf.where(number < before_end, token, end)  # [batch, hypotheses]
        beams = tf.where(number < before_end, came, beams)  # [batch, hypotheses]
        attended = tf.gather(taken[:, :, 2], beams, batch_dims=1)  # [batch, hypotheses]
        row = tf.stack([token, attended], axis=2)  # [batch, hypotheses, 2]
        row = tf.where((number < found.lengths)[:, :, None], row, PADDING)
        return number, beams, written.write(number, row)

    _, _, written = tf.while_loop(
        lambda number, beams, written: number > 0, turn, (number, found.beams, written)
    )
    return tf.unstack(tf.transpose(written.stack()[:-1], [3, 1, 2, 0]))


def _settled(found, own, numbers):
    """Returns what was found in the whole batch, with what these sentences have found."""
    return tf.nest.map_structure(
        lambda all_, some: tf.tensor_scatter_nd_update(all_, numbers[:, None], some), found, own
    )


def _gathered(nest, rows):
    return tf.nest.map_structure(lambda x: tf.gather(x, rows), nest)


def _live_sentences(progress):
    """Returns which sentences have a live beam, `[sentences]`."""
    return tf.reduce_any(_is_live(progress.log_probabilities), axis=1)


def _is_live(log_probabilities):
    return log_probabilities > _NEVER


def _any_rows(tensor):
    """Returns what of a tensor's shape stays the same in the loop, which leaves out rows."""
    return tf.TensorShape([None, *tensor.shape[1:]])


def _shaped(nest, shapes):
    """Tells what shapes still are, where the step function's operations have lost them."""
    tf.nest.map_structure(lambda tensor, shape: tensor.set_shape(shape), nest, shapes)
    return nest


def _float32(numbers):
    """Returns float32, in which only what is infinite is."""
    lowest = tf.maximum(numbers, np.finfo("float32").min)
    return tf.cast(tf.where(_is_live(numbers), lowest, numbers), tf.float32)


def _at_least_1(number):
    return tf.maximum(tf.convert_to_tensor(number, tf.int32), 1)


def _check(lowest, **settings):
    for name, value in settings.items():
        if not tf.is_tensor(value) and not value >= lowest:
            raise ValueError(f"{name} must be {lowest} or more. Received: {value}")
