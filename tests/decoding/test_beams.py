"""Beam search against all sequences there are, and against a slow search over lists."""

import doctest
import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf

from rnnapps import decoding
from rnnapps.decoding import beams

END, BEGIN = 1, 2
UNITS, SOURCE = 3, 4
SENTENCES = 3


class Model:
    """A small recurrent network that attends to a memory, in TensorFlow and slowly in NumPy."""

    def __init__(self, vocabulary, sentences=SENTENCES, seed=0, end_bias=0.0, scale=2.0):
        draws = np.random.default_rng(seed)
        self.vocabulary, self.sentences = vocabulary, sentences
        shapes = (
            (vocabulary, UNITS),
            (UNITS, UNITS),
            (UNITS, vocabulary),
            (sentences, SOURCE, UNITS),
        )
        arrays = [scale * draws.normal(size=shape).astype("float32") for shape in shapes]
        self.embeddings, self.recurrent, self.output, self.memory = arrays
        self.bias = end_bias * np.eye(vocabulary, dtype="float32")[END]
        self.mask = np.arange(SOURCE) < draws.integers(2, SOURCE + 1, (sentences, 1))

    def step(self, tokens, state, memory):
        keys, mask = memory
        rows = tf.shape(state["h"])
        h = tf.tanh(tf.gather(self.embeddings, tokens) + state["h"] @ self.recurrent)
        beams = tf.reshape(h, [tf.shape(keys)[0], -1, UNITS])
        scores = tf.einsum("bku,bsu->bks", beams, keys)
        weights = tf.nn.softmax(tf.where(mask[:, None], scores, -np.inf))
        context = tf.reshape(tf.einsum("bks,bsu->bku", weights, keys), rows)
        weights = tf.reshape(weights, [rows[0], SOURCE])
        logits = (h + context) @ self.output + self.bias
        return logits, {"h": h, "weights": weights}

    def search(self, rows=slice(None), **options):
        memory, mask = self.memory[rows], self.mask[rows]
        state = {
            "h": tf.zeros([len(memory), UNITS]),
            "weights": tf.zeros([len(memory), SOURCE]),
        }
        if options.get("coverage_penalty"):
            options["source_mask"] = mask
        return decoding.beam_search(
            self.step,
            np.full(len(memory), BEGIN),
            state,
            end=END,
            memory=(memory, mask),
            attention=lambda state: state["weights"],
            **options,
        )

    @functools.cache  # noqa: B019
    def after(self, sentence, prefix):
        """The log-probabilities behind a prefix, the state, and the weights of each step so far."""
        if prefix:
            _, h, weights = self.after(sentence, prefix[:-1])
        else:
            h, weights = np.zeros(UNITS), ()
        token = prefix[-1] if prefix else BEGIN
        h = np.tanh(self.embeddings[token].astype("float64") + h @ self.recurrent)
        keys = self.memory[sentence][self.mask[sentence]]
        scores = np.exp(keys @ h - (keys @ h).max())
        some = np.zeros(SOURCE)
        some[self.mask[sentence]] = scores / scores.sum()
        logits = (h + some[self.mask[sentence]] @ keys) @ self.output + self.bias
        return logits - np.logaddexp.reduce(logits), h, (*weights, some)


def may_follow(vocabulary, prefix, min_length=0, no_repeat_ngram=0, forbidden=(), **_):
    for token in set(range(vocabulary)) - set(forbidden):
        n, longer = no_repeat_ngram, (*prefix, token)
        ngrams = [longer[i : i + n] for i in range(len(longer) - n + 1)] if n else []
        if len(ngrams) == len(set(ngrams)) and (token != END or len(prefix) >= min_length):
            yield token


def hypothesis(
    model, sentence, tokens, length_penalty="none", alpha=0.6, coverage_penalty=0.0, **_
):
    """The score of a sequence, its tokens, its log-probability and where it attended to."""
    places = range(len(tokens))
    total = sum(model.after(sentence, tokens[:i])[0][tokens[i]] for i in places)
    n = len(tokens)
    score = total / {"none": 1, "average": n, "gnmt": ((5 + n) / 6) ** alpha}[length_penalty]
    weights = np.array(model.after(sentence, tokens[:-1])[2])
    attended = weights.argmax(axis=1)
    covers = np.log(np.minimum(weights.sum(axis=0)[model.mask[sentence]], 1)).sum()
    return score + coverage_penalty * covers, tokens, total, attended.tolist()


def slow(model, sentence, length, beam_width=None, **options):
    """A search over lists that never ends early; over all sequences without a width."""
    live, found = [((), 0.0)], []
    for number in range(length):
        longer = [
            ((*prefix, token), total + model.after(sentence, prefix)[0][token])
            for prefix, total in live
            for token in may_follow(model.vocabulary, prefix, **options)
        ]
        longer.sort(key=lambda pair: -pair[1])
        ended = [tokens for tokens, _ in longer[:beam_width] if tokens[-1] == END]
        live = [pair for pair in longer if pair[0][-1] != END][:beam_width]
        cut = [tokens for tokens, _ in live] if number == length - 1 else []
        found += [hypothesis(model, sentence, tokens, **options) for tokens in ended + cut]
    return sorted(found, key=lambda one: -one[0])


def assert_found(found, expected, sentence):
    """Whether a sentence's hypotheses are the first of these, and nothing where there are none."""
    tokens, lengths, log_probabilities, scores, attended = (x[sentence].numpy() for x in found)
    assert (np.diff(scores[np.isfinite(scores)]) <= 0).all()
    for row in range(len(lengths)):
        n = lengths[row]
        assert not tokens[row, n:].any() and not attended[row, n:].any()
        if row >= len(expected):
            assert n == 0 and log_probabilities[row] == scores[row] == -np.inf
            continue
        score, sequence, total, places = expected[row]
        assert tuple(tokens[row, :n]) == sequence
        assert attended[row, :n].tolist() == places
        np.testing.assert_allclose(scores[row], score, 1e-5, 1e-5)
        np.testing.assert_allclose(log_probabilities[row], total, 1e-5, 1e-5)


PENALTIES = [
    {},
    {"length_penalty": "average"},
    {"length_penalty": "gnmt"},
    {"length_penalty": "gnmt", "alpha": 2.0},
    {"coverage_penalty": 0.5},
    {"length_penalty": "gnmt", "alpha": 1.0, "coverage_penalty": 0.2},
]
LIMITS = [
    {"min_length": 2},
    {"no_repeat_ngram": 1},
    {"no_repeat_ngram": 2},
    {"no_repeat_ngram": 3, "forbidden": (0,)},
    {"forbidden": (0, BEGIN), "length_penalty": "average"},
    {"min_length": 1, "no_repeat_ngram": 2, "length_penalty": "average", "coverage_penalty": 1.0},
    {"min_length": 9},
]


@pytest.mark.parametrize("options", PENALTIES + LIMITS, ids=str)
def test_a_beam_as_wide_as_the_space_finds_the_best_of_all_sequences(options):
    for seed in range(2):
        model = Model(4, seed=seed)
        lengths = [4, 3, 4]
        found = model.search(beam_width=128, length=lengths, hypotheses=130, **options)
        for sentence in range(SENTENCES):
            assert_found(found, slow(model, sentence, lengths[sentence], **options), sentence)


@pytest.mark.parametrize("options", PENALTIES + LIMITS, ids=str)
@pytest.mark.parametrize(("width", "hypotheses"), [(1, 1), (3, 3), (5, 2)])
def test_it_is_the_slow_search(width, hypotheses, options):
    # Sentences end after different numbers of steps, so that few are left.
    model = Model(30, sentences=5, seed=width, end_bias=4.0, scale=1.0)
    lengths = [8, 8, 2, 5, 8]
    found = model.search(beam_width=width, length=lengths, hypotheses=hypotheses, **options)
    assert found.tokens.shape == (5, hypotheses, 8)
    for sentence in range(5):
        expected = slow(model, sentence, lengths[sentence], width, **options)
        assert_found(found, expected[:hypotheses], sentence)


def chain(table):
    """A step without a state, whose logits are the last token's row."""
    return lambda tokens, state: (tf.gather(table, tokens), state)


def logs(*rows):
    with np.errstate(divide="ignore"):
        return np.log(np.array(rows, "float32"))


def test_two_beams_find_what_is_hidden_behind_the_second_best_token():
    table = logs([0, 0, 0.6, 0.4], [0, 1, 0, 0], [0, 0.4, 0.35, 0.25], [0, 0.9, 0, 0.1])
    search = functools.partial(
        decoding.beam_search, chain(table), [0], (), beam_width=2, length=3, end=1
    )
    greedy = decoding.greedy(chain(table), [0], (), length=3, end=1)
    assert greedy.tokens.numpy().tolist() == [[2, 1, 0]]
    found = search()
    assert found.tokens.numpy().tolist() == [[[3, 1, 0], [2, 1, 0]]]
    np.testing.assert_allclose(np.exp(found.scores), [[0.4 * 0.9, 0.6 * 0.4]], 1e-6)
    # By the token 2 3 1 is before 2 1, whose mean is the root of 0.24.
    found = search(length_penalty="average")
    assert found.tokens.numpy().tolist() == [[[3, 1, 0], [2, 3, 1]]]
    assert found.lengths.numpy().tolist() == [[2, 3]]
    probabilities = [0.4 * 0.9, 0.6 * 0.25 * 0.9]
    np.testing.assert_allclose(np.exp(found.log_probabilities), [probabilities], 1e-6)
    np.testing.assert_allclose(np.exp(found.scores), [[0.6, probabilities[1] ** (1 / 3)]], 1e-6)


@pytest.mark.parametrize("limits", [{}, {"forbidden": (0, 5)}], ids=str)
def test_one_beam_without_penalties_is_greedy(limits):
    table = np.random.default_rng(0).normal(size=(12, 12)).astype("float32")
    tokens = np.arange(12)
    greedy = decoding.greedy(chain(table), tokens, (), length=9, end=END, **limits)
    found = decoding.beam_search(
        chain(table), tokens, (), beam_width=1, length=9, end=END, **limits
    )
    np.testing.assert_array_equal(found.tokens[:, 0], greedy.tokens)
    np.testing.assert_array_equal(found.lengths[:, 0], greedy.lengths)
    np.testing.assert_allclose(found.log_probabilities[:, 0], greedy.log_probabilities, 1e-6)
    np.testing.assert_array_equal(found.scores, found.log_probabilities)
    assert not found.attended.numpy().any()


@pytest.mark.parametrize("options", [{}, {"length_penalty": "gnmt", "no_repeat_ngram": 2}], ids=str)
def test_a_sentence_does_not_depend_on_its_batch(options):
    model = Model(30, sentences=9, seed=5, end_bias=3.0)
    search = functools.partial(model.search, beam_width=4, length=10, **options)
    together = search()
    turned = search(slice(None, None, -1))
    fewer = search(hypotheses=2)
    for row in range(9):
        for whole, alone, other, two in zip(
            together, search(slice(row, row + 1)), turned, fewer, strict=True
        ):
            np.testing.assert_allclose(alone[0], whole[row], rtol=1e-5)
            np.testing.assert_allclose(other[8 - row], whole[row], rtol=1e-5)
            np.testing.assert_allclose(two[row], whole[row, :2], rtol=1e-5)


def counted(table):
    """A step over a chain, and the list in which it counts the rows of each of its calls."""
    rows = []

    def step(tokens, state):
        rows.append(len(tokens))
        return tf.gather(table, tokens), state

    return step, rows


def test_what_is_done_is_not_computed():
    # 2 begins 2 3 4 … as certain as can be, up to the end token behind 9.
    following = [0, 0, 3, 4, 5, 6, 7, 8, 9, END]
    table = logs(*(0.98 * np.eye(10)[following] + 0.002))
    step, rows = counted(table)
    tokens = [9, 5, 9, 9, 8, 5, 2, 5, 5, 9]
    found = decoding.beam_search(step, tokens, (), beam_width=2, length=50, end=END, hypotheses=1)
    assert found.lengths.numpy().ravel().tolist() == [1, 5, 1, 1, 2, 5, 8, 5, 5, 1]
    # Of 10 sentences 6 are left after a step, and then 5, which is more than three quarters.
    assert rows == [20, 12, 12, 12, 12, 2, 2, 2]
    # When half of the time nothing ends, nothing longer is more likely, but the mean may yet rise.
    step, rows = counted(logs([0, 0.5, 0.5], [0, 1, 0], [0, 0.5, 0.5]))
    search = functools.partial(decoding.beam_search, step, [0], (), beam_width=2, end=END)
    search(length=9, hypotheses=1)
    assert len(rows) == 1
    rows.clear()
    search(length=9, hypotheses=1, length_penalty="average")
    assert len(rows) == 9
    # Where nothing may follow nothing is waited for, though hypotheses are missing.
    step, rows = counted(logs([0, 1], [0, 1]))
    found = decoding.beam_search(step, [0], (), beam_width=2, length=9, end=END)
    assert len(rows) == 1
    assert found.lengths.numpy().tolist() == [[1, 0]]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_logits_may_be_short(dtype):
    table = np.round(np.random.default_rng(0).normal(size=(9, 9)) * 4).astype("float32") / 4
    search = functools.partial(
        decoding.beam_search, tokens=[2, 3], state=(), beam_width=3, length=5, end=END
    )
    short = search(chain(tf.cast(table, dtype)))
    for one, other in zip(short, search(chain(table)), strict=True):
        np.testing.assert_array_equal(one, other)
    assert short.scores.dtype == tf.float32


def test_of_equals_the_first_comes_first():
    flat = np.zeros((5, 5), "float32")
    found = decoding.beam_search(chain(flat), [0], (), beam_width=3, length=2, end=4)
    # The end token is as good as four others and its id higher, and so not among the first three.
    assert found.tokens.numpy().tolist() == [[[0, 0], [0, 1], [0, 2]]]
    found = decoding.beam_search(chain(flat), [0], (), beam_width=3, length=2, end=1)
    assert found.tokens.numpy().tolist() == [[[1, 0], [0, 1], [0, 0]]]
    assert found.lengths.numpy().tolist() == [[1, 2, 2]]


def test_what_is_impossible_never_comes_out():
    table = np.full((6, 6), -np.inf, "float32")
    table[2, 3] = np.inf
    table[3] = np.nan
    table[3, [4, 5]] = 0, -1e30
    table[4, [0, 3, END]] = 0, 0, -1e4
    search = functools.partial(decoding.beam_search, chain(table), end=END, beam_width=3)
    found = search([2, 5], (), length=3, forbidden=[0])
    # Nothing may follow on 5. On 4 it is 0 or 3, of which one is forbidden.
    assert found.tokens[0].numpy().tolist() == [[3, 4, 3], [3, 4, END], [0, 0, 0]]
    np.testing.assert_allclose(found.log_probabilities[0, :2], [np.log(0.5), -1e4 - np.log(2)])
    for row, column in [(0, 2), (1, 0), (1, 1), (1, 2)]:
        assert found.lengths[row, column] == 0 and found.scores[row, column] == -np.inf
        assert not found.tokens[row, column].numpy().any()


def test_nothing_to_search():
    def search(tokens, length):
        step = chain(np.zeros((4, 4), "float32"))
        return decoding.beam_search(step, tokens, (), beam_width=3, length=length, end=END)

    traced = tf.function(
        search, input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32)]
    )
    for function, (rows, length) in itertools.product([search, traced], [(0, 5), (2, 0), (2, -3)]):
        found = function(tf.zeros([rows], tf.int32), length)
        assert found.tokens.shape == found.attended.shape == (rows, 3, max(length, 0))
        assert found.lengths.numpy().tolist() == [[0, 0, 0]] * rows
        assert found.scores.numpy().tolist() == [[0, -np.inf, -np.inf]] * rows


def test_a_saved_model_finds_the_same(tmp_path):
    model = Model(12, sentences=6, end_bias=2.0)
    module = tf.Module()
    module.model = [tf.Variable(x) for x in (model.embeddings, model.recurrent, model.output)]
    model.embeddings, model.recurrent, model.output = module.model
    spec = tf.TensorSpec

    @tf.function(
        input_signature=[
            spec([None, SOURCE, UNITS], tf.float32),
            spec([None, SOURCE], tf.bool),
            *[spec([], tf.int32)] * 3,
        ]
    )
    def decode(memory, mask, beam, nbest, length):
        batch = tf.shape(memory)[0]
        return decoding.beam_search(
            model.step,
            tf.fill([batch], BEGIN),
            {"h": tf.zeros([batch, UNITS]), "weights": tf.zeros([batch, SOURCE])},
            memory=(memory, mask),
            attention=lambda state: state["weights"],
            source_mask=mask,
            beam_width=beam,
            hypotheses=nbest,
            length=length,
            end=END,
            min_length=1,
            length_penalty="gnmt",
            coverage_penalty=0.1,
            no_repeat_ngram=2,
            forbidden=(0,),
        )._asdict()

    module.decode = decode
    tf.saved_model.save(module, tmp_path, signatures={"decode": decode})
    loaded = tf.saved_model.load(tmp_path)
    options = dict(
        min_length=1,
        length_penalty="gnmt",
        coverage_penalty=0.1,
        no_repeat_ngram=2,
        forbidden=(0,),
    )
    for (beam, nbest), length in itertools.product([(4, 2), (1, 1)], [7, 0]):
        given = map(tf.constant, (model.memory, model.mask, beam, nbest, length))
        served = loaded.decode(*given)
        found = model.search(beam_width=beam, hypotheses=nbest, length=length, **options)
        for name, values in found._asdict().items():
            np.testing.assert_allclose(served[name], values, rtol=1e-5)


def test_mistakes_are_named():
    search = functools.partial(
        decoding.beam_search, chain(np.zeros((3, 3), "float32")), [0], (), length=1
    )
    for options, message in [
        ({"beam_width": 0}, "beam_width must be 1 or more. Received: 0"),
        ({"hypotheses": -1}, "hypotheses must be 1 or more. Received: -1"),
        ({"alpha": -0.5}, "alpha must be 0 or more. Received: -0.5"),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram must be 0 or more. Received: -1"),
        ({"length_penalty": "long"}, "Received: long"),
        ({"coverage_penalty": 1.0}, "needs both attention and source_mask"),
        ({"end": 3}, "0 … 2. Received: 3"),
        ({"forbidden": [-1]}, "0 … 2. Received: -1"),
        ({"forbidden": [0, 1, 2]}, "must be allowed. Received: forbidden=.0, 1, 2."),
    ]:
        with pytest.raises(ValueError, match=message):
            search(**({"beam_width": 2, "end": END} | options))


def test_examples_run():
    result = doctest.testmod(beams)
    assert result.attempted > 0
    assert result.failed == 0
