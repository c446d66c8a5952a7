"""Decoding against a slow loop with the same random numbers, and against exact distributions."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from scipy import stats

from rnnapps import decoding
from rnnapps.decoding import sampling

ROWS = 20_000
PLAIN = {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
LIMITS = {"end": 3, "forbidden": (0, 5)}
# A large vocabulary is not sorted and not summed up one by one.
SMALL, LARGE = 8, 1100


def threefry(key, counter, rounds=20):
    """Threefry-2x32 as its paper has it, on Python's integers."""
    mask = 0xFFFFFFFF
    keys = [*key, key[0] ^ key[1] ^ 0x1BD11BDA]
    a, b = (counter[0] + keys[0]) & mask, (counter[1] + keys[1]) & mask
    for number in range(rounds):
        rotation = (13, 15, 26, 6, 17, 29, 16, 24)[number % 8]
        a = (a + b) & mask
        b = ((b << rotation | b >> 32 - rotation) & mask) ^ a
        if number % 4 == 3:
            injection = number // 4 + 1
            a = (a + keys[injection % 3]) & mask
            b = (b + keys[(injection + 1) % 3] + injection) & mask
    return a, b


def uniform(seed, number):
    a, b = threefry((seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF), (number, 0))
    return ((a << 32 | b) >> 11) / 2**53


def truncated(logits, temperature=1.0, top_k=0, top_p=1.0, forbidden=()):
    """The distribution that is drawn from, by its definition."""
    order = [i for i in np.argsort(-logits, kind="stable") if i not in forbidden]
    if temperature == 0:
        return np.eye(len(logits))[order[0]]
    order = order[: top_k or None]
    weights = np.exp((logits[order] - logits[order[0]]) / temperature)
    before = (np.cumsum(weights) - weights) / weights.sum()
    weights[1:][before[1:] >= top_p] = 0
    probabilities = np.zeros(len(logits))
    probabilities[order] = weights / weights.sum()
    return probabilities


def slow(logits_of, token, seed, length, end=None, forbidden=(), **options):
    """Decodes one row: its tokens and their log-probability."""
    tokens, total = [], 0.0
    for number in range(length):
        logits = logits_of(token, number).astype("float64")
        sums = np.cumsum(truncated(logits, forbidden=forbidden, **options))
        token = np.searchsorted(sums, uniform(seed, number) * sums[-1], side="right")
        tokens.append(token)
        total += logits[token] - np.logaddexp.reduce(logits)
        if token == end:
            break
    return tokens, total


def chain(table):
    """A step without a state, whose logits are the last token's row."""
    return lambda tokens, state: (tf.gather(table, tokens), state)


def spec(dtype, *shape):
    return tf.TensorSpec(shape, dtype)


@functools.cache
def traced(vocabulary, end=None, forbidden=()):
    """`sample` over a chain as one graph for all its options, batches and lengths."""

    @tf.function(
        input_signature=[
            spec(tf.float32, vocabulary, vocabulary),
            spec(tf.int32, None),
            spec(tf.int32),
            spec(tf.int64, None),
            spec(tf.float32),
            spec(tf.int32),
            spec(tf.float32),
        ]
    )
    def sample(table, tokens, length, seeds, temperature, top_k, top_p):
        return decoding.sample(
            chain(table),
            tokens,
            (),
            length=length,
            seeds=seeds,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            end=end,
            forbidden=forbidden,
        )

    return lambda table, tokens, length, seeds, **options: sample(
        table, tokens, length, seeds, *(PLAIN | options).values()
    )


@functools.cache
def table_of(vocabulary, spread=2.0, seed=0):
    """A chain's logits, of which many are the same."""
    draws = np.random.default_rng(seed).normal(size=(vocabulary, vocabulary))
    return np.round(spread * draws, 1).astype("float32")


def agrees(counts, probabilities):
    """Whether counts are what these probabilities may give, by the chi-square test."""
    possible = probabilities > 0
    assert counts[~possible].sum() == 0
    if possible.sum() == 1:
        return True
    expected = probabilities[possible] * counts.sum()
    assert expected.min() > 5
    return stats.chisquare(counts[possible], expected).pvalue > 1e-3


@pytest.mark.parametrize(
    ("key", "counter", "answer"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_the_slow_generator_gives_the_known_answers(key, counter, answer):
    assert threefry(key, counter) == answer


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.0},
        {"temperature": 0.5},
        {"temperature": 4.0},
        {"top_k": 1},
        {"top_k": 5},
        {"top_k": 150},
        {"top_k": 10_000},
        {"top_p": 0.0},
        {"top_p": 0.3},
        {"top_p": 0.9},
        {"top_p": 0.999},
        {"temperature": 2.0, "top_k": 6, "top_p": 0.75},
        {"temperature": 8.0, "top_k": 160, "top_p": 0.95},
        {"temperature": 100.0, "top_p": 0.9},
    ],
    ids=str,
)
@pytest.mark.parametrize(("vocabulary", "rows", "length"), [(SMALL, 12, 30), (LARGE, 6, 5)])
def test_sampling_is_the_slow_loop(vocabulary, rows, length, options):
    table = table_of(vocabulary)
    seeds = [0, 1, -1, 2**40, -(2**63), 2**63 - 1, *range(2, rows - 4)][:rows]
    tokens = np.arange(rows) % vocabulary
    decoded = traced(vocabulary, **LIMITS)(table, tokens, length, seeds, **options)
    for row in range(rows):
        expected, log_probability = slow(
            lambda token, number: table[token],
            tokens[row],
            seeds[row],
            length,
            **LIMITS,
            **(PLAIN | options),
        )
        n = len(expected)
        assert decoded.lengths[row] == n
        assert decoded.tokens[row].numpy().tolist() == expected + [0] * (length - n)
        np.testing.assert_allclose(decoded.log_probabilities[row], log_probability, 1e-5, 1e-5)


@pytest.mark.parametrize(
    "options",
    [{}, {"temperature": 0.5}, {"top_k": 4}, {"top_p": 0.8}, {"top_k": 5, "top_p": 0.6}],
    ids=str,
)
def test_frequencies_are_the_exact_probabilities(options):
    table = table_of(8, spread=1.0)
    decoded = traced(SMALL)(table, np.full(ROWS, 2), 2, range(ROWS), **options)
    first, second = decoded.tokens.numpy().T
    exact = [truncated(row.astype("float64"), **options) for row in table]
    assert agrees(np.bincount(first, minlength=8), exact[2])
    for token in np.unique(first):
        if (first == token).sum() > 2000:
            assert agrees(np.bincount(second[first == token], minlength=8), exact[token])


@pytest.mark.parametrize("spacing", [1, 2**32, -(2**50)])
def test_draws_are_independent(spacing):
    steps = 6
    seeds = np.arange(ROWS) * spacing if abs(spacing) == 1 else np.arange(2**13) * spacing
    tokens = traced(SMALL)(np.zeros((8, 8)), np.zeros(len(seeds)), steps, seeds).tokens.numpy()

    def independent(one, other):
        counts = np.bincount(8 * one.ravel() + other.ravel(), minlength=64)
        return agrees(counts, np.full(64, 1 / 64))

    assert independent(tokens[:, :-1], tokens[:, 1:])  # a seed's successive steps
    assert independent(tokens[:, :-2], tokens[:, 2:])
    assert independent(tokens[:-1], tokens[1:])  # successive seeds at one step
    assert independent(tokens[:-1, 1:], tokens[1:, :-1])  # and one behind the other
    sums = tokens.sum(axis=1)  # too even or too uneven where steps repel or attract one another
    variance = steps * (8**2 - 1) / 12
    assert abs(sums.var() / variance - 1) < 4 * np.sqrt(2 / len(sums))


def test_one_long_row_has_no_serial_correlation():
    tokens = traced(SMALL)(np.zeros((8, 8)), [0], 4000, [123]).tokens.numpy()[0]
    assert agrees(np.bincount(tokens, minlength=8), np.full(8, 1 / 8))
    centred = tokens - tokens.mean()
    for lag in (1, 2, 4, 64, 256):
        correlation = (centred[:-lag] * centred[lag:]).mean() / centred.var()
        assert abs(correlation) < 4 / np.sqrt(len(tokens))


@pytest.mark.parametrize("options", [{}, {"top_p": 0.9}], ids=str)
def test_a_row_does_not_depend_on_its_batch(options):
    sample, table = traced(LARGE), table_of(LARGE)
    tokens, seeds = np.arange(33), np.arange(33) * 7
    together = sample(table, tokens, 12, seeds, **options)
    turned = sample(table, tokens[::-1], 12, seeds[::-1], **options)
    np.testing.assert_array_equal(turned.tokens[::-1], together.tokens)
    for row in (0, 17, 32):
        alone = sample(table, tokens[row : row + 1], 12, seeds[row : row + 1], **options)
        np.testing.assert_array_equal(alone.tokens[0], together.tokens[row])
        np.testing.assert_allclose(alone.log_probabilities[0], together.log_probabilities[row])
    shorter = sample(table, tokens, 5, seeds, **options)
    np.testing.assert_array_equal(shorter.tokens, together.tokens[:, :5])


@pytest.mark.parametrize("vocabulary", [SMALL, LARGE])
def test_temperature_zero_is_greedy(vocabulary):
    table, tokens = table_of(vocabulary), np.arange(5)
    greedy = decoding.greedy(chain(table), tokens, (), length=6, **LIMITS)
    for temperature in (0.0, -1.0, np.nan, 1e-40):
        sampled = traced(vocabulary, **LIMITS)(
            table, tokens, 6, np.arange(5), temperature=temperature
        )
        np.testing.assert_array_equal(sampled.tokens, greedy.tokens)
        np.testing.assert_allclose(sampled.log_probabilities, greedy.log_probabilities)
    expected, _ = slow(lambda token, number: table[token], 4, 0, 6, temperature=0.0, **LIMITS)
    assert greedy.tokens[4].numpy().tolist() == expected + [0] * (6 - len(expected))


@pytest.mark.parametrize("vocabulary", [SMALL, LARGE])
@pytest.mark.parametrize("kept", [{1}, {1, 2, 3}], ids=str)
@pytest.mark.parametrize("option", ["temperature", "top_k", "top_p"])
def test_of_equal_tokens_the_lower_ids_are_kept(option, kept, vocabulary):
    values = {"top_k": len(kept), "top_p": (len(kept) - 0.1) / (vocabulary - 2)}
    if option == "temperature":
        kept, values = {1}, {"temperature": 0.0}
    table, rows = np.zeros((vocabulary, vocabulary)), 64
    sample = traced(vocabulary, **LIMITS)
    decoded = sample(table, np.zeros(rows), 4, range(rows), **{option: values[option]})
    assert set(decoded.tokens.numpy().ravel()) - {0} == kept


def test_the_nucleus_ends_where_the_share_is_reached():
    probabilities = np.array([0.125, 0.5, 0.3, 0.075, 0, 0, 0, 0])
    with np.errstate(divide="ignore"):
        table = np.tile(np.log(probabilities), (SMALL, 1))

    def kept(top_p):
        decoded = traced(SMALL)(table, np.zeros(2000), 1, range(2000), top_p=top_p)
        return set(decoded.tokens.numpy().ravel())

    assert kept(-1.0) == kept(0.0) == kept(0.4999) == kept(0.5) == {1}
    assert kept(0.501) == kept(0.8) == {1, 2}
    assert kept(0.801) == kept(0.925) == {0, 1, 2}
    assert kept(0.926) == kept(1.0) == kept(2.0) == {0, 1, 2, 3}


@pytest.mark.parametrize("top_p", [0.2, 0.3334, 0.45, 0.6, 0.9])
def test_the_nucleus_may_end_among_tokens_of_nearly_one_probability(top_p):
    weights = np.zeros(LARGE)
    some = np.random.default_rng(0).permutation(LARGE)[:21]
    weights[some] = [10, *(1 - 0.001 * np.arange(20))]
    logits = np.log(np.maximum(weights, 1e-30)).astype("float32")
    kept = np.flatnonzero(truncated(logits, top_p=top_p))
    table = np.tile(logits, (LARGE, 1))
    decoded = traced(LARGE)(table, np.zeros(500), 1, range(500), top_p=top_p)
    np.testing.assert_array_equal(np.unique(decoded.tokens), kept)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_weight_of_zero_is_not_drawn_at_the_ends_of_the_interval(size):
    weights = np.zeros((4, size), "float32")
    weights[:, 2], weights[:, size - 3] = [1, 1, 1, 1e-30], [3, 3, 3, 1]
    drawn = sampling._draw(
        tf.constant(weights), tf.constant([0, 0.25, 1 - 2.0**-53, 1e-31], "float64")
    )
    assert drawn.numpy().tolist() == [2, size - 3, size - 3, 2]


@pytest.mark.parametrize("vocabulary", [SMALL, LARGE])
@pytest.mark.parametrize("options", [{}, {"top_k": 3}, {"top_p": 0.9}], ids=str)
@pytest.mark.parametrize("temperature", [0.0, 1e-37, 1e-3, 1.0, 1e30, np.inf])
def test_what_is_forbidden_or_impossible_never_comes_out(temperature, options, vocabulary):
    last = vocabulary - 1
    table = np.full((vocabulary, vocabulary), -np.inf, "float32")
    table[0, last] = -1e4  # one token, and that as good as impossible
    table[last, last - 1] = 1e4
    table[last - 1] = np.nan  # none
    table[:, [0, 5]] = [3e38, np.inf]  # forbidden
    sample = traced(vocabulary, **LIMITS)
    tokens = sample(
        table, np.zeros(200), 3, range(200), temperature=temperature, **options
    ).tokens.numpy()
    assert (tokens[:, 0] == last).all()
    assert (tokens[:, 1] == last - 1).all()
    assert not np.isin(tokens, LIMITS["forbidden"]).any() and (tokens < vocabulary).all()


def test_a_log_probability_may_be_below_what_a_probability_can_be():
    logits = tf.constant([[1000.0, 0.0, 0.0]])
    decoded = decoding.greedy(lambda t, s: (logits, s), [0], (), length=2, forbidden=[0])
    assert decoded.tokens.numpy().tolist() == [[1, 1]]
    np.testing.assert_allclose(decoded.log_probabilities, [-2000.0])


def test_the_loop_ends_when_every_row_has_ended():
    steps = tf.Variable(0)
    following = tf.one_hot([0, 2, 3, 4, 0], 5)

    @tf.function(input_signature=[spec(tf.int32, None)])
    def decode(tokens):
        def step(tokens, state):
            steps.assign_add(1)
            return tf.gather(following, tokens), state

        return decoding.greedy(step, tokens, (), length=100, end=4)

    decoded = decode([1, 3, 2])
    assert steps.numpy() == 3
    assert decoded.lengths.numpy().tolist() == [3, 1, 2]
    assert decoded.tokens.shape == (3, 100)
    assert decoded.tokens[:, :4].numpy().tolist() == [[2, 3, 4, 0], [4, 0, 0, 0], [3, 4, 0, 0]]
    assert not decoded.tokens[:, 4:].numpy().any()
    assert decode([0]).lengths.numpy() == [100]
    assert steps.numpy() == 103
    assert decode(np.zeros(0)).tokens.shape == (0, 100)
    assert steps.numpy() == 103


@pytest.mark.parametrize(("rows", "length"), [(0, 5), (3, 0), (3, -2)])
@pytest.mark.parametrize("vocabulary", [SMALL, LARGE])
@pytest.mark.parametrize("options", [{}, {"top_p": 0.5}], ids=str)
def test_nothing_to_decode(rows, length, vocabulary, options):
    decoded = traced(vocabulary)(
        table_of(vocabulary), np.zeros(rows), length, np.arange(rows), **options
    )
    assert decoded.tokens.shape == (rows, max(length, 0))
    assert decoded.lengths.numpy().tolist() == [0] * rows
    assert decoded.log_probabilities.numpy().tolist() == [0] * rows


def counting(tokens, state):
    """A step whose state counts, remembers, and changes what comes next."""
    number, (history,) = state["number"], state["history"]
    history = tf.concat([history[:, 1:], tokens[:, None]], axis=1)
    number = number + tf.ones([tf.size(tokens), 1], tf.float16)
    logits = tf.one_hot(tf.reduce_sum(history, axis=1) % 9, 9, dtype=tf.float16) * 3 + number / 4
    return logits * tf.range(9, dtype=tf.float16) / 8, {"number": number, "history": (history,)}


def test_any_nest_is_a_state():
    tokens = np.arange(4)
    state = {
        "number": tf.zeros([4, 1], tf.float16),
        "history": (tf.constant(np.arange(12).reshape(4, 3), tf.int32),),
    }
    decoded = decoding.sample(counting, tokens, state, length=10, seeds=range(4))
    for row in range(4):
        history = list(state["history"][0][row].numpy())

        def logits_of(token, number, history=history):
            history[:] = [*history[1:], token]
            one_hot = 3 * np.eye(9)[sum(history) % 9]
            logits = (one_hot + (number + 1) / 4) * np.arange(9) / 8
            return logits.astype("float16")

        expected, log_probability = slow(logits_of, tokens[row], row, 10, **PLAIN)
        assert decoded.tokens[row].numpy().tolist() == expected
        np.testing.assert_allclose(decoded.log_probabilities[row], log_probability, rtol=1e-5)


def test_a_saved_model_decodes_the_same(tmp_path):
    table = tf.Variable(table_of(40))

    @tf.function(
        input_signature=[
            spec(tf.int32, None),
            spec(tf.int32),
            spec(tf.float32),
            spec(tf.int32),
            spec(tf.float32),
            spec(tf.int64, None),
        ]
    )
    def generate(prompt, length, temperature, top_k, top_p, seed):
        return decoding.sample(
            chain(table),
            prompt,
            (),
            length=length,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seeds=seed,
            end=3,
        )._asdict()

    module = tf.Module()
    module.table, module.generate = table, generate
    tf.saved_model.save(module, tmp_path, signatures={"generate": generate})
    loaded = tf.saved_model.load(tmp_path)
    given = (tf.range(5), tf.constant(9), 0.75, tf.constant(30), 0.9, tf.range(5, dtype=tf.int64))
    names = ("prompt", "length", "temperature", "top_k", "top_p", "seed")
    given = dict(zip(names, map(tf.convert_to_tensor, given), strict=True))
    served = loaded.signatures["generate"](**given)
    for name, value in generate(**given).items():
        np.testing.assert_array_equal(served[name], value)


@pytest.mark.parametrize("vocabulary", [SMALL, LARGE])
def test_it_compiles(vocabulary):
    table = table_of(vocabulary)

    @tf.function(jit_compile=True)
    def compiled(tokens, seeds, temperature, top_k, top_p):
        return decoding.sample(
            chain(table),
            tokens,
            (),
            length=8,
            seeds=seeds,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            **LIMITS,
        )

    tokens, seeds = tf.range(4), tf.range(4, dtype=tf.int64)
    for options in (PLAIN, {"temperature": 0.0}, {"top_k": 5}, {"top_p": 0.9}):
        options = PLAIN | options
        fast = compiled(tokens, seeds, *map(tf.convert_to_tensor, options.values()))
        plain = traced(vocabulary, **LIMITS)(table, tokens, 8, seeds, **options)
        np.testing.assert_array_equal(fast.tokens, plain.tokens)
        np.testing.assert_array_equal(fast.lengths, plain.lengths)
        np.testing.assert_allclose(fast.log_probabilities, plain.log_probabilities, 1e-5)


def test_mistakes_are_named():
    step = chain(np.zeros((3, 3), "float32"))
    with pytest.raises(ValueError, match=r"0 … 2. Received: 3"):
        decoding.greedy(step, [0], (), length=1, end=3)
    with pytest.raises(ValueError, match=r"0 … 2. Received: -1"):
        decoding.greedy(step, [0], (), length=1, forbidden=[-1])
    with pytest.raises(ValueError, match="must be allowed. Received: forbidden=.0, 1, 2."):
        decoding.greedy(step, [0], (), length=1, forbidden=[0, 1, 2])

    @tf.function(input_signature=[spec(tf.float32, None, None)])
    def unknown(table):
        return decoding.greedy(chain(table), [0], (), length=1)

    with pytest.raises(ValueError, match="last axis must be known"):
        unknown(np.zeros((3, 3), "float32"))
