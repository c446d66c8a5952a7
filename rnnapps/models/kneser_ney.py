"""Kneser–Ney n-grams: the count-based language model that recurrent ones are measured against."""

import itertools
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

BEGINNING = 0  # the id of the beginning; the vocabulary's ids follow it
UNSEEN = -1  # the row of all n-grams that were not seen: the last of each level


class KneserNey:
    """Interpolated n-grams with modified Kneser–Ney smoothing (Chen & Goodman, 1999).

    With `h` the context of `k - 1` tokens, `h'` the same without its first token, and `c` the
    counts of level `k`:

        p_k(w | h) = (c(h w) - D(c(h w))) / c(h ·) + γ(h) p_{k-1}(w | h')
        γ(h) = Σ_w D(c(h w)) / c(h ·)
        p_0(w) = 1 / |V|

    A context that was not seen leaves everything to the shorter one: `p_k = p_{k-1}`. At the
    highest level `c` is how often the n-gram occurs; below it is how many different tokens stand
    before it (Kneser & Ney, 1995). An n-gram that begins with the beginning of a sentence has no
    token before it, so there `c` is always how often it occurs. `D` is 0 for a count of 0 and one
    of the level's three `discounts` for counts of 1, 2, and 3 or more.

    Each sentence has one beginning in front of it, which is context and never predicted, and an end
    behind it, which is predicted as every token is. The vocabulary holds the end and the unknown
    token but not the beginning; after any context its probabilities add up to one, and none is 0.
    A token outside it is read as the unknown token, in training and later.

    Args:
        sentences: The training text, as sequences of tokens: strings or anything else with a hash.
            A plain string is a sequence of characters.
        order: The length of the longest n-grams: the predicted token and up to `order - 1` before
            it. Default: 5.
        vocabulary: The tokens that are known, each once; the unknown token and the end are added
            at its end if it lacks them. Default: `None`, the tokens of `sentences` as they come;
            the unknown token, if the text has none, then has only its part of `p_0`.
        unknown: The unknown token. Default: `"<unk>"`.
        end: The token at the end of each sentence, which the sentences themselves do not hold.
            `None` is for running text: nothing then ends a sequence. Default: `"</s>"`.

    Attributes:
        vocabulary: The predicted tokens, a tuple in the order of `distribution`.
        discounts: For each level from 1 to `order`, the discounts of counts of 1, 2, and 3 or more.

    Raises:
        ValueError: If `order` is not positive, or if a sentence holds the end token.

    Example:

    >>> model = KneserNey([["a", "cat", "sat"], ["a", "dog", "sat"]], order=3)
    >>> model.log_probabilities(["a", "cat", "ran"]).shape
    (4,)
    >>> model.vocabulary
    ('a', 'cat', 'sat', 'dog', '<unk>', '</s>')
    >>> model.distribution(["a"]).round(3).tolist()
    [0.039, 0.414, 0.067, 0.414, 0.025, 0.039]
    >>> characters = KneserNey(["to be or not to be"], order=4, end=None)
    >>> characters.vocabulary[characters.distribution("or not t").argmax()]
    'o'
    """

    def __init__(
        self,
        sentences: Iterable[Iterable[Hashable]],
        order: int = 5,
        vocabulary: Iterable[Hashable] | None = None,
        unknown: Hashable = "<unk>",
        end: Hashable | None = "</s>",
    ):
        if order < 1:
            raise ValueError(f"`order` must be positive. Received: order={order}")
        if vocabulary is None:
            sentences = [list(sentence) for sentence in sentences]
            vocabulary = itertools.chain.from_iterable(sentences)
        ends = [] if end is None else [end]
        self.vocabulary = tuple(dict.fromkeys(itertools.chain(vocabulary, [unknown], ends)))
        self._ids = {token: i for i, token in enumerate(self.vocabulary, BEGINNING + 1)}
        self._unknown_id = self._ids[unknown]
        self._end_ids = [self._ids[token] for token in ends]  # one or none
        self._base = len(self._ids) + 1
        self._levels = _levels(self._encode(sentences), order, self._base)
        self.discounts = [level.discounts for level in self._levels]

    def log_probabilities(self, sentence: Iterable[Hashable]) -> np.ndarray:
        """Measures each token of a sentence, and its end, after all that stands before it.

        Args:
            sentence: The tokens, without the end.

        Returns:
            A float64 array `[tokens + 1]`, or `[tokens]` where `end` is `None`, in nats. By the
            chain rule the sum is the log probability of the sentence.

        Raises:
            ValueError: If the sentence holds the end token.
        """
        return self._log_probabilities([sentence])

    def perplexity(self, sentences: Iterable[Iterable[Hashable]]) -> float:
        """Returns `exp(-mean(log_probabilities))` over the tokens and ends of all sentences.

        Raises:
            ValueError: If there is no token, or if a sentence holds the end token.
        """
        log_probabilities = self._log_probabilities(sentences)  # [all tokens and ends]
        if not log_probabilities.size:
            raise ValueError("`sentences` must have a token. Received: none")
        return float(np.exp(-log_probabilities.mean()))

    def distribution(self, prefix: Iterable[Hashable] = ()) -> np.ndarray:
        """Returns the probability of every token of the vocabulary to come next.

        Args:
            prefix: The sentence so far, from its beginning. Default: nothing, so that the next
                token is the first.

        Returns:
            A float64 array `[vocabulary]`, in the order of `vocabulary`.

        Raises:
            ValueError: If the prefix holds the end token.
        """
        # Any token may stand for the next one: only the contexts before it are used.
        tokens = np.append(self._encode([prefix], ends=False), self._unknown_id)  # [prefix + 2]
        base = self._base
        probabilities = np.full(base, 1 / len(self.vocabulary))  # [1 + vocabulary]
        for level, contexts, _ in self._walk(tokens[-len(self._levels) :]):
            first, last = np.searchsorted(level.keys, contexts[-1] * base + [0, base])
            followers = level.keys[first:last] % base  # [followers]
            probabilities *= level.backoffs[contexts[-1]]
            probabilities[followers] += level.shares[first:last]
        return probabilities[BEGINNING + 1 :]  # [vocabulary]

    def _log_probabilities(self, sentences):
        tokens = self._encode(sentences)  # [tokens], with each beginning
        probabilities = np.full(len(tokens), 1 / len(self.vocabulary))
        for level, contexts, rows in self._walk(tokens):
            probabilities = level.shares[rows] + level.backoffs[contexts] * probabilities
        return np.log(probabilities[tokens != BEGINNING])  # [tokens and ends]

    def _encode(self, sentences, ends=True):
        """Returns the ids of all sentences in a row, each behind a beginning: int64 `[tokens]`."""
        closing = self._end_ids if ends else []
        tokens = np.fromiter(self._ids_of(sentences, closing), np.int64)
        num_sentences = np.count_nonzero(tokens == BEGINNING)
        for end in self._end_ids:
            inside = np.count_nonzero(tokens == end) - num_sentences * len(closing)
            if inside:
                raise ValueError(
                    "A sentence must not hold the end token. "
                    f"Received: {self.vocabulary[end - 1]!r} {inside} times"
                )
        return tokens

    def _ids_of(self, sentences, closing):
        for sentence in sentences:
            yield BEGINNING
            for token in sentence:
                yield self._ids.get(token, self._unknown_id)
            yield from closing

    def _walk(self, tokens):
        """Gives each level with the rows of the contexts before, and of the n-grams at, each token.

        A context's row is its row among the n-grams of the level below; the empty one's is 0.
        """
        contexts = np.zeros_like(tokens)
        for level in self._levels:
            rows = _find(level.keys, contexts * self._base + tokens)
            yield level, contexts, rows
            contexts = _contexts(rows, tokens)


class _Level(NamedTuple):
    """The n-grams of one length, a row each; the last row of each array is that of the unseen ones.

    An n-gram is known by its key: the row of its context, an n-gram one shorter, times `base` plus
    the id of its token. So the keys of all that follows one context are next to each other.
    """

    keys: np.ndarray  # int64 [n-grams + 1], increasing
    shares: np.ndarray  # float64 [n-grams + 1]: (c(h w) - D(c(h w))) / c(h ·)
    backoffs: np.ndarray  # float64 [contexts + 1]: γ(h)
    discounts: tuple[float, float, float]


def discounts(counts_of_counts: Sequence[int]) -> tuple[float, float, float]:
    """Estimates the modified Kneser–Ney discounts (Chen & Goodman, 1999).

    With `n_i` the number of n-grams that have count `i`:

        Y = n_1 / (n_1 + 2 n_2)
        D_i = i - (i + 1) Y n_{i+1} / n_i

    Small or unusual corpora have no such estimate, or one that would leave nothing of a count or
    nothing for unseen tokens. A `D_i` for which `n_i` or `n_{i+1}` is 0, or that is not between 0
    and `i`, is `i / 2`; all three are if `n_1` or `n_2` is 0.

    Args:
        counts_of_counts: `n_1` to `n_4`.

    Returns:
        The discounts of counts of 1, 2, and 3 or more.

    Example:

    >>> discounts([60, 20, 10, 5])
    (0.6, 1.1, 1.8)
    """
    n = [0, *counts_of_counts]
    y = n[1] / (n[1] + 2 * n[2]) if n[1] and n[2] else 0
    estimates = [
        i - (i + 1) * y * n[i + 1] / n[i] if y and n[i] and n[i + 1] else i for i in (1, 2, 3)
    ]
    one, two, more = (d if 0 < d < i else i / 2 for i, d in enumerate(estimates, 1))
    return one, two, more


def _levels(tokens, order, base):
    """Counts, then smooths, the n-grams of every length in a row of sentences."""
    keys, counts = [], []
    contexts = np.zeros_like(tokens)
    shorter = None
    for _ in range(order):
        found = contexts * base + tokens  # [tokens]
        seen, times = np.unique(found[contexts != UNSEEN], return_counts=True)  # [n-grams]
        rows = _find(_closed(seen), found)  # [tokens]
        if shorter is None:
            times[seen == BEGINNING] = 0  # it is never predicted
        else:
            # An n-gram has one suffix, whichever of its occurrences tells it.
            suffixes = np.zeros(len(seen) + 1, np.int64)
            suffixes[rows] = shorter
            before = np.bincount(suffixes[:UNSEEN], minlength=len(counts[-1]))  # [n-grams below]
            # What has nothing before it stands at the beginning.
            counts[-1] = np.where(before > 0, before, counts[-1])
        keys.append(seen)
        counts.append(times)
        contexts, shorter = _contexts(rows, tokens), rows
    num_contexts = [1, *map(len, keys)]
    return [_smooth(*level, base) for level in zip(keys, counts, num_contexts, strict=False)]


def _smooth(keys, counts, num_contexts, base):
    """Turns the counts of one level into probabilities and what is left for the level below."""
    estimated = discounts(np.bincount(counts, minlength=5)[1:5].tolist())
    discount = np.array([0, *estimated])[np.minimum(counts, 3)]  # [n-grams]
    context = keys // base  # [n-grams]
    total = np.bincount(context, counts, num_contexts)  # [contexts]
    reserved = np.bincount(context, discount, num_contexts)  # [contexts]
    followed = total > 0
    backoffs = np.divide(reserved, total, out=np.ones(num_contexts), where=followed)
    shares = (counts - discount) / np.where(followed, total, 1)[context]
    return _Level(_closed(keys), np.append(shares, 0), np.append(backoffs, 1), estimated)


def _closed(keys):
    """Puts behind the keys one that is never looked for, in the row of all that is not found."""
    return np.append(keys, np.iinfo(np.int64).max)


def _find(keys, wanted):
    """Returns the rows of the wanted keys, `UNSEEN` where there is none."""
    rows = np.searchsorted(keys, wanted)
    return np.where(keys[rows] == wanted, rows, UNSEEN)


def _contexts(rows, tokens):
    """Moves each n-gram's row to the token after it, but not past the beginning of a sentence."""
    return np.where(tokens == BEGINNING, UNSEEN, np.append(UNSEEN, rows[:-1])[: len(rows)])
