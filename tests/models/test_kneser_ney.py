"""N-grams against fractions worked out by hand, and against the equations in exact arithmetic."""

from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnapps.models import KneserNey, kneser_ney

BEGINNING = object()
SENTENCES = st.lists(st.lists(st.sampled_from("abc"), max_size=5), max_size=7)


class Equations:
    """The docstring's equations with fractions and dictionaries, as slowly as they read."""

    def __init__(self, sentences, order, vocabulary, end="</s>"):
        self.order, self.vocabulary = order, vocabulary
        self.ends = [] if end is None else [end]
        occurrences = Counter()
        for sentence in sentences:
            tokens = [BEGINNING, *map(self.known, sentence), *self.ends]
            for length in range(1, order + 1):
                for start in range(len(tokens) - length + 1):
                    occurrences[tuple(tokens[start : start + length])] += 1
        self.counts = {}
        for gram, times in occurrences.items():
            if len(gram) < order and gram[0] is not BEGINNING:
                times = len({longer[0] for longer in occurrences if longer[1:] == gram})
            self.counts[gram] = times
        self.counts.pop((BEGINNING,), None)
        self.counts_of_counts, self.followers = defaultdict(Counter), defaultdict(dict)
        for gram, count in self.counts.items():
            self.counts_of_counts[len(gram)][count] += 1
            self.followers[gram[:-1]][gram[-1]] = count

    def known(self, token):
        return token if token in self.vocabulary else "<unk>"

    def discount(self, length, count):
        n = self.counts_of_counts[length]
        i = min(count, 3)
        if n[1] and n[2] and n[i] and n[i + 1]:
            discount = i - (i + 1) * Fraction(n[1], n[1] + 2 * n[2]) * Fraction(n[i + 1], n[i])
            if 0 < discount < i:
                return discount
        return Fraction(i, 2)

    def probability(self, context, token):
        shorter = (
            self.probability(context[1:], token) if context else Fraction(1, len(self.vocabulary))
        )
        followers = self.followers.get(context)
        if not followers:
            return shorter
        length, total = len(context) + 1, sum(followers.values())
        left = sum(self.discount(length, count) for count in followers.values()) / total
        count = followers.get(token, 0)
        share = (count - self.discount(length, count)) / total if count else 0
        return share + left * shorter

    def distribution(self, prefix):
        context = (BEGINNING, *map(self.known, prefix))
        context = context[max(len(context) - self.order + 1, 0) :]
        return [self.probability(context, token) for token in self.vocabulary]

    def log_probabilities(self, sentence):
        tokens = [self.known(token) for token in [*sentence, *self.ends]]
        return [
            np.log(float(self.distribution(tokens[:i])[self.vocabulary.index(token)]))
            for i, token in enumerate(tokens)
        ]


def assert_follows_equations(model, equations, sentences):
    for sentence in sentences:
        measured = model.log_probabilities(sentence)
        np.testing.assert_allclose(measured, equations.log_probabilities(sentence), atol=1e-12)
        for end in range(len(sentence) + 1):
            distribution = model.distribution(sentence[:end])
            exact = equations.distribution(sentence[:end])
            assert sum(exact) == 1
            np.testing.assert_allclose(distribution, np.array(exact, float), atol=1e-14)
            assert distribution.sum() == pytest.approx(1, abs=1e-14) and distribution.min() > 0


def test_bigrams_by_hand():
    model = KneserNey([["a", "b"], ["a", "b"], ["b"]], order=2)
    assert model.vocabulary == ("a", "b", "<unk>", "</s>")
    # One token, <s> or b, stands before a and one before </s>; two before b: n_1 = 2, n_2 = 1, so
    # Y = 2 / 4, D_1 = 1/2; n_3 = 0, so D_2 = 2/2, D_3 = 3/2. The counts add up to 4.
    assert model.discounts[0] == (1 / 2, 1, 3 / 2)
    left = Fraction(1, 4) * (Fraction(1, 2) + 1 + Fraction(1, 2))  # 1/2, for the uniform 1/4
    p_a = Fraction(1, 4) * Fraction(1, 2) + left / 4
    p_b = Fraction(1, 4) * 1 + left / 4
    assert (p_a, p_b, left / 4) == (Fraction(2, 8), Fraction(3, 8), Fraction(1, 8))
    unigrams = [p_a, p_b, left / 4, p_a]
    # Twice <s> a and a b, once <s> b, thrice b </s>: n_1 = 1, n_2 = 2, n_3 = 1, n_4 = 0, so
    # Y = 1/5, D_1 = 1/5, D_2 = 2 - 3 · 1/5 · 1/2 = 17/10, D_3 = 3/2.
    assert model.discounts[1] == pytest.approx((1 / 5, 17 / 10, 3 / 2))
    left = Fraction(1, 3) * (Fraction(17, 10) + Fraction(1, 5))  # 19/30, behind <s>
    first = [
        Fraction(1, 3) * Fraction(3, 10) + left * p_a,
        Fraction(1, 3) * Fraction(4, 5) + left * p_b,
        left * Fraction(1, 8),
        left * p_a,
    ]
    assert first == [Fraction(n, 240) for n in (62, 121, 19, 38)]
    np.testing.assert_allclose(model.distribution(), np.array(first, float))
    # a is followed by b twice: (2 - 17/10) / 2 + 17/20 · 3/8 = 15/32. b is followed by the end
    # thrice: (3 - 3/2) / 3 + 1/2 · 1/4 = 5/8.
    expected = np.log([62 / 240, 15 / 32, 5 / 8])
    np.testing.assert_allclose(model.log_probabilities(["a", "b"]), expected)
    # c is unknown, and nothing was seen behind it: unigrams.
    np.testing.assert_allclose(model.distribution("c"), np.array(unigrams, float))
    np.testing.assert_allclose(model.log_probabilities("c"), np.log([19 / 240, 1 / 4]))
    product = 62 / 240 * 15 / 32 * 5 / 8 * 19 / 240 * 1 / 4
    assert model.perplexity([["a", "b"], ["c"]]) == pytest.approx(product ** (-1 / 5))


def test_one_token_is_interpolated_with_the_uniform():
    model = KneserNey(["aaaa", "aab", "b"], order=1)
    # a 6, b 2, end 3 times: n_1 = 0, so 1 of the 2, 3/2 of each of the others are left.
    left = (1 + 3 / 2 + 3 / 2) / 11 / 4
    expected = [4.5 / 11 + left, 1 / 11 + left, left, 1.5 / 11 + left]
    for prefix in ("", "a", "xyz"):
        np.testing.assert_allclose(model.distribution(prefix), expected)


@settings(max_examples=60, deadline=None)
@given(
    SENTENCES,
    st.lists(st.lists(st.sampled_from("abcd"), max_size=5), max_size=2),
    st.integers(1, 4),
    st.sampled_from([None, ["a", "b"], ["</s>", "d", "a", "<unk>", "c"]]),
    st.sampled_from(["</s>", None]),
)
def test_random_texts_follow_the_equations(sentences, others, order, vocabulary, end):
    model = KneserNey(sentences, order, vocabulary, end=end)
    equations = Equations(sentences, order, model.vocabulary, end)
    assert_follows_equations(model, equations, [*sentences[:2], *others])


def test_a_larger_text_follows_the_equations():
    """Large enough for all discounts to come from the counts of counts."""
    random = np.random.default_rng(7)
    weights = 1 / np.arange(1, 31)
    sentences = [
        random.choice(30, random.integers(2, 12), p=weights / weights.sum()).tolist()
        for _ in range(60)
    ]
    model = KneserNey(iter(sentences), order=3)
    equations = Equations(sentences, 3, model.vocabulary)
    for length, discounts in enumerate(model.discounts, 1):
        exact = [equations.discount(length, count) for count in (1, 2, 3)]
        assert discounts == pytest.approx(tuple(map(float, exact)))
    assert sum(d == i / 2 for ds in model.discounts for i, d in enumerate(ds, 1)) <= 2
    assert_follows_equations(model, equations, [sentences[0], [0, 1, 99, 0, 2, 1]])


def test_discounts_of_known_counts():
    # Y = 1/2: 1 - 2 · 1/2 · 20/40, 2 - 3 · 1/2 · 16/20, 3 - 4 · 1/2 · 12/16.
    assert kneser_ney.discounts([40, 20, 16, 12]) == pytest.approx((0.5, 0.8, 1.5))
    # Y = 3/5: 2 - 3 · 3/5 · 30/20 is below 0, so half of the count; 3 - 4 · 3/5 · 10/30.
    assert kneser_ney.discounts([60, 20, 30, 10]) == pytest.approx((0.6, 1, 2.2))
    # The third has no estimate.
    assert kneser_ney.discounts([60, 20, 10, 0]) == pytest.approx((0.6, 1.1, 1.5))
    for vanished in ([0, 20, 10, 5], [60, 0, 10, 5], [0, 0, 0, 0]):
        assert kneser_ney.discounts(vanished) == (0.5, 1, 1.5)


@pytest.mark.parametrize(
    "sentences",
    [[], [[]], [["a"]], [["a"] * 9], [[], ["a", "b"]], [list("abcabcab")]],
    ids=["none", "empty", "word", "one word", "empty and not", "one sentence"],
)
@pytest.mark.parametrize("order", [1, 2, 5, 12])
def test_degenerate_texts_follow_the_equations(sentences, order):
    for end in ("</s>", None):
        model = KneserNey(sentences, order, end=end)
        equations = Equations(sentences, order, model.vocabulary, end)
        assert_follows_equations(model, equations, [[], ["a"], ["b", "a", "a"], *sentences])
    assert KneserNey([], order).distribution("a").tolist() == [1 / 2, 1 / 2]


def test_many_sentences_are_measured_as_one_by_one():
    model = KneserNey(["abab", "", "bba", "ca"], order=4)
    sentences = ["ab", "", "dba", "bbab"]
    each = np.concatenate([model.log_probabilities(sentence) for sentence in sentences])
    assert each.shape == (13,)
    assert model.perplexity(iter(sentences)) == pytest.approx(np.exp(-each.mean()))
    for sentence in sentences:
        for i, expected in enumerate(model.log_probabilities(sentence)[:-1]):
            distribution = model.distribution(sentence[:i])
            token = sentence[i] if sentence[i] in model.vocabulary else "<unk>"
            assert np.log(distribution[model.vocabulary.index(token)]) == pytest.approx(expected)


def test_a_given_vocabulary_keeps_its_order():
    """So that its distributions can be laid beside those of another model."""
    model = KneserNey(["ab"], 2, vocabulary=["<pad>", "<unk>", "</s>", "b"])
    assert model.vocabulary == ("<pad>", "<unk>", "</s>", "b")
    assert KneserNey(["ab"], 2, ["b"]).vocabulary == ("b", "<unk>", "</s>")
    assert KneserNey(["ab"], 2, ["b"], unknown="?", end=None).vocabulary == ("b", "?")
    # a is not known, so the text was ? b.
    assert model.distribution().argmax() == 1 and model.distribution("x").argmax() == 3


def test_running_text_has_no_end():
    model = KneserNey(["abcabcabcabc"], order=3, end=None)
    assert model.vocabulary == ("a", "b", "c", "<unk>")
    assert model.log_probabilities("abca").shape == (4,)
    assert [model.vocabulary[model.distribution(p).argmax()] for p in ("", "ab", "abcab")] == [
        "a",
        "c",
        "c",
    ]
    joined = KneserNey([["a", "</s>", "b", "</s>"]], order=2, end=None)
    assert joined.distribution(["a"]).argmax() == joined.vocabulary.index("</s>")


def test_faults_are_named():
    with pytest.raises(ValueError, match="Received: order=0"):
        KneserNey(["a"], order=0)
    with pytest.raises(ValueError, match="Received: '</s>' 2 times"):
        KneserNey([["a", "</s>"], ["</s>"], ["b"]])
    model = KneserNey(["a"])
    for measure in (model.log_probabilities, model.distribution):
        with pytest.raises(ValueError, match="Received: '</s>' 1 times"):
            measure(["a", "</s>"])
    with pytest.raises(ValueError, match="Received: none"):
        model.perplexity([])
