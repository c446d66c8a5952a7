"""The functions of the CRF against brute force over all sequences of tags."""

import functools
import itertools

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnapps.layers import crf as functions
from tests.layers.backends import BACKEND, assert_gradients, compiled, some_of, with_gradients

TAGS, BEST = 3, 5
FORBIDDEN = -np.inf
pytestmark = pytest.mark.usefixtures("float64")
# Other backends compile for every size anew, and that takes seconds.
ON_TENSORFLOW = BACKEND == "tensorflow"
SIZES = st.tuples(st.integers(1, 4), st.integers(1, 6)) if ON_TENSORFLOW else st.just((4, 6))
MODES = ["eager", "graph", "compiled"] if ON_TENSORFLOW else ["compiled"]


def brute_force(emissions, transitions, start, end, mask):
    """Everything about one row, from the scores of all its sequences."""
    emissions, n, tags = emissions[mask], mask.sum(), len(transitions)
    ways = np.array(list(itertools.product(range(tags), repeat=n)), int).reshape(tags**n, n)
    scores = np.zeros(len(ways))
    if n:
        scores = start[ways[:, 0]] + end[ways[:, -1]] + emissions[np.arange(n), ways].sum(axis=1)
        scores += transitions[ways[:, :-1], ways[:, 1:]].sum(axis=1)
    order = np.argsort(-scores, kind="stable")
    possible = scores.max() > FORBIDDEN
    log_z = scores.max() + np.log(np.exp(scores - scores.max()).sum()) if possible else FORBIDDEN
    shares = np.exp(scores - log_z) if possible else np.zeros(len(ways))
    marginals, pairs = np.zeros((len(mask), tags)), np.zeros((tags, tags))
    for step, t in enumerate(np.flatnonzero(mask)):
        np.add.at(marginals[t], ways[:, step], shares)
    for before, after in zip(ways.T[:-1], ways.T[1:], strict=True):
        np.add.at(pairs, (before, after), shares)
    return {
        "score": dict(zip(map(tuple, ways.tolist()), scores, strict=True)),
        "ranked": scores[order],
        "log_z": log_z,
        "marginals": marginals,
        "pairs": pairs,
    }


def everything(emissions, transitions, start, end, mask, tags):
    """What the functions say, and the gradient of `log Z`."""
    given = emissions, transitions, start, end

    def total(*given):
        log_z = functions.log_partition(*given, mask)
        return keras.ops.sum(log_z), log_z

    (_, log_z), gradients = with_gradients(total)(*given)
    return {
        "log_z": log_z,
        "gradients": gradients,
        "score": functions.sequence_score(emissions, tags, transitions, start, end, mask),
        "log_likelihood": functions.log_likelihood(emissions, tags, transitions, start, end, mask),
        "marginals": functions.marginals(*given, mask),
        "viterbi": functions.viterbi(*given, mask),
        "n_best": functions.n_best(emissions, BEST, transitions, start, end, mask),
    }


@functools.cache
def traced(tags, dtype="float64", jit_compile=False):
    """`everything` as one graph for all batches and lengths; each is traced once for all tests."""
    if not ON_TENSORFLOW:
        return compiled(everything)
    import tensorflow as tf

    return tf.function(
        everything,
        input_signature=[
            tf.TensorSpec([None, None, tags], dtype),
            tf.TensorSpec([tags, tags], dtype),
            *[tf.TensorSpec([tags], dtype)] * 2,
            tf.TensorSpec([None, None], tf.bool),
            tf.TensorSpec([None, None], tf.int32),
        ],
        jit_compile=jit_compile,
    )


def check(run, case, tolerance=1e-9):
    """Compares what a graph says with brute force."""
    emissions, transitions, start, end, mask, tags = case
    said = keras.tree.map_structure(np.array, run(*case))
    de, dA, ds, df = said["gradients"]
    rows = [
        brute_force(e, transitions, start, end, m) for e, m in zip(emissions, mask, strict=True)
    ]
    close = {"rtol": tolerance, "atol": tolerance}

    def stacked(name):
        return np.array([row[name] for row in rows])

    np.testing.assert_allclose(said["log_z"], stacked("log_z"), **close)
    scores = [row["score"][tuple(t[m])] for row, t, m in zip(rows, tags, mask, strict=True)]
    np.testing.assert_allclose(said["score"], scores, **close)
    with np.errstate(invalid="ignore"):
        likelihood = np.where(np.isinf(scores), FORBIDDEN, scores - stacked("log_z"))
    np.testing.assert_allclose(said["log_likelihood"], likelihood, **close)

    marginals = stacked("marginals")
    for name, found in [("marginals", said["marginals"]), ("gradients", de)]:
        np.testing.assert_allclose(found, marginals, atol=tolerance, err_msg=name)
    np.testing.assert_allclose(dA, stacked("pairs").sum(axis=0), atol=10 * tolerance)
    ends = [(m.argmax(), len(m) - 1 - m[::-1].argmax()) for m in mask if m.any()]
    filled = marginals[mask.any(axis=1)]
    for t, gradient in enumerate((ds, df)):
        expected = sum(
            (row[at[t]] for row, at in zip(filled, ends, strict=True)), np.zeros(len(ds))
        )
        np.testing.assert_allclose(gradient, expected, atol=10 * tolerance)

    best, best_scores = said["viterbi"]
    many, many_scores = said["n_best"]
    assert best.dtype == many.dtype == np.int32
    assert not best[~mask].any() and not many[~np.repeat(mask[:, None], BEST, 1)].any()
    for i, row in enumerate(rows):
        ranked = np.append(row["ranked"], np.full(BEST, FORBIDDEN))[:BEST]
        np.testing.assert_allclose(best_scores[i], ranked[0], **close)
        np.testing.assert_allclose(many_scores[i], ranked, **close)
        found = many_scores[i] > FORBIDDEN
        ways = [tuple(way[mask[i]].tolist()) for way in many[i][found]]
        assert len(set(ways)) == len(ways)
        np.testing.assert_allclose([row["score"][way] for way in ways], ranked[found], **close)
        assert not many[i][~found].any()
        if ranked[0] > FORBIDDEN:
            way = tuple(best[i][mask[i]].tolist())
            np.testing.assert_allclose(row["score"][way], ranked[0], **close)


def random_case(rng, batch, time, tags, scale=1.0, forbidden=0.0, masks="prefix", dtype="float64"):
    """Random scores, some of them -inf, with a mask and with tags."""

    def scores(*shape):
        drawn = rng.normal(scale=scale, size=shape)
        return np.where(rng.random(shape) < forbidden, FORBIDDEN, drawn).astype(dtype)

    mask = np.arange(time) < rng.integers(0, time + 1, size=(batch, 1))
    if masks == "any":
        mask = rng.random((batch, time)) < 0.6
    emissions = np.where(mask[..., None], scores(batch, time, tags), np.nan).astype(dtype)
    truth = rng.integers(0, tags, size=(batch, time)).astype("int32")
    truth = np.where(mask, truth, rng.integers(-9, 9, size=(batch, time))).astype("int32")
    return emissions, scores(tags, tags), scores(tags), scores(tags), mask, truth


@pytest.fixture(scope="module")
def run():
    return traced(TAGS)


@given(
    seed=st.integers(0, 2**32 - 1),
    size=SIZES,
    scale=st.sampled_from([0.1, 1.0, 10.0, 100.0, 1e4]),
    forbidden=st.sampled_from([0.0, 0.2, 0.6]),
    masks=st.sampled_from(["prefix", "any"]),
)
@settings(max_examples=120, deadline=None, derandomize=True)
def test_everything_equals_brute_force(run, seed, size, scale, forbidden, masks):
    rng = np.random.default_rng(seed)
    check(run, random_case(rng, *size, TAGS, scale, forbidden, masks))


@pytest.mark.parametrize("tags", some_of([1, 2], 0))
def test_one_tag_and_two(tags):
    rng, run = np.random.default_rng(0), traced(tags)
    for forbidden in (0.0, 0.3):
        for masks in ("prefix", "any"):
            check(run, random_case(rng, 5, 7 // tags, tags, 1.0, forbidden, masks))


def test_lengths_0_1_and_all(run):
    emissions, *scores, _, tags = random_case(np.random.default_rng(0), 4, 6, TAGS, 1.0)
    emissions = np.random.default_rng(1).normal(size=emissions.shape)
    mask = np.arange(6) < np.array([[0], [1], [6], [2]])
    tags = np.abs(tags) % TAGS
    check(run, (emissions, *scores, mask, tags))
    check(run, (emissions[:, :1], *scores, mask[:, :1], tags[:, :1]))


@pytest.mark.parametrize("mode", MODES)
def test_no_steps_and_no_rows(mode):
    dtype = "float32" if mode == "compiled" else "float64"
    run = everything if mode == "eager" else traced(TAGS, dtype, mode == "compiled")
    for batch, time in ((2, 0), (0, 3), (0, 0)):
        shapes = (batch, time, TAGS), (TAGS, TAGS), (TAGS,), (TAGS,)
        scores = [np.ones(shape, dtype) for shape in shapes]
        said = run(*scores, np.ones((batch, time), bool), np.ones((batch, time), "int32"))
        np.testing.assert_array_equal(said["log_z"], np.zeros(batch))
        np.testing.assert_array_equal(said["log_likelihood"], np.zeros(batch))
        assert said["marginals"].shape == (batch, time, TAGS)
        assert said["viterbi"][0].shape == (batch, time)
        assert said["n_best"][0].shape == (batch, BEST, time)
        one = np.tile([0.0, *[FORBIDDEN] * (BEST - 1)], (batch, 1))
        np.testing.assert_array_equal(said["n_best"][1], one)
        for gradient in said["gradients"]:
            assert not np.any(gradient)


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_eager_graph_and_compiled_agree_in_float32(scale):
    rng = np.random.default_rng(0)
    # Sums of whole numbers are exact in float32 too.
    emissions, *scores, mask, tags = random_case(rng, 4, 6, TAGS, scale, 0.2, "any", "float32")
    case = [np.round(emissions), *map(np.round, scores), mask, tags]
    for mode in MODES:
        run = everything if mode == "eager" else traced(TAGS, "float32", mode == "compiled")
        check(run, case, 2e-6)


def both_ways(*given):
    """What the fast way and the safe one say, and what is chosen of `log Z`."""
    scores = functions._Scores.of(*given)
    front = functions._Front(scores.mask)
    steps = front.take(scores.emissions)
    fast = functions._by_products(scores, front, steps)
    return fast, functions._by_logarithms(scores, front, steps), functions.log_partition(*given)


def test_the_fast_way_and_the_safe_one_agree():
    """Moderate scores take the matrix products, forbidden ones that count the logarithms."""
    rng = np.random.default_rng(0)
    run = both_ways if ON_TENSORFLOW else compiled(both_ways)
    *given, mask, _ = random_case(rng, 6, 20, 5, 3.0)
    (*fast, safe), exact, _ = run(*given, mask)
    assert safe
    lengths = mask.sum(axis=1)
    valid = np.arange(len(fast[1]))[:, None] < lengths
    np.testing.assert_allclose(fast[0][lengths > 0], exact[0][lengths > 0], rtol=1e-12)
    np.testing.assert_allclose(fast[1][valid], exact[1][valid], atol=1e-12)
    np.testing.assert_allclose(fast[2], exact[2], atol=1e-12)

    # All favour tag 0, which nothing but itself may follow, and then tag 1, from tag 2 only.
    emissions, none = np.zeros((1, 3, 3), "float32"), np.zeros(3, "float32")
    emissions[0, 0, 0], emissions[0, 1, 1] = 200, 500
    transitions = np.where([[1, 0, 0], [1, 1, 1], [1, 1, 1]], 0, FORBIDDEN).astype("float32")
    (*_, safe), _, log_z = run(emissions, transitions, none, none, np.ones((1, 3), bool))
    assert not safe
    np.testing.assert_allclose(log_z, 500 + np.log(6))


@pytest.mark.parametrize("scale", some_of([1.0, 1e3], 1))
def test_gradients_equal_finite_differences(scale):
    rng = np.random.default_rng(0)
    emissions, *scores, mask, tags = random_case(rng, 4, 5, TAGS, scale, masks="any")
    weights = rng.normal(size=4)

    def loss(emissions, *scores):
        likelihoods = functions.log_likelihood(emissions, tags, *scores, mask)
        return keras.ops.sum(likelihoods * weights)

    assert_gradients(loss, [np.nan_to_num(emissions), *scores], rtol=1e-5, atol=1e-5)


def test_there_is_no_second_gradient():
    def log_z(emissions):
        return keras.ops.sum(functions.log_partition(emissions, np.zeros((2, 2), "float32")))

    def slope(emissions):
        _, (gradient,) = with_gradients(log_z)(emissions)
        return keras.ops.sum(gradient)

    with pytest.raises(NotImplementedError, match="second-order"):
        with_gradients(slope)(np.zeros((1, 2, 2), "float32"))


def test_rows_do_not_see_padding_or_each_other():
    rng = np.random.default_rng(0)
    run = traced(TAGS, "float32")
    *scores, _, tags = random_case(rng, 4, 9, TAGS, 2.0, dtype="float32")
    scores[0] = rng.normal(size=(4, 9, TAGS)).astype("float32")
    mask = np.arange(9) < np.array([[9], [5], [1], [0]])
    whole = run(*scores, mask, tags)
    for i, length in enumerate([9, 5, 1, 0]):
        garbage = np.full((1, 16 - length, TAGS), [np.nan, np.inf, -np.inf], "float32")
        emissions = np.concatenate([scores[0][i : i + 1, :length], garbage], axis=1)
        row_mask = np.arange(16)[None] < length
        row_tags = np.concatenate([tags[i : i + 1, :length], np.full((1, 16 - length), -5)], axis=1)
        alone = run(emissions, *scores[1:], row_mask, row_tags.astype("int32"))
        for name in ("log_z", "score", "log_likelihood"):
            np.testing.assert_allclose(alone[name][0], whole[name][i], rtol=1e-6)
        for name, index in (("marginals", 0), ("gradients", 0), ("viterbi", 0), ("n_best", 0)):
            one, all_rows = (said[name] for said in (alone, whole))
            if name != "marginals":
                one, all_rows = one[index], all_rows[index]
            time = 2 if name == "n_best" else 1
            one = np.take(one[0], range(length), axis=time - 1)
            there = np.take(all_rows[i], range(length), axis=time - 1)
            np.testing.assert_allclose(one, there, atol=1e-6)


def test_steps_that_are_not_valid_are_skipped_wherever_they_are(run):
    rng = np.random.default_rng(0)
    emissions, *scores, mask, tags = random_case(rng, 4, 6, TAGS, masks="any")
    mask[:2] = [0, 1, 0, 1, 1, 0], [1, 1, 1, 0, 0, 0]
    emissions[0], tags[0] = rng.normal(size=(6, TAGS)), np.arange(6) % TAGS
    emissions[1, :3], tags[1, :3] = emissions[0, mask[0]], tags[0, mask[0]]
    said = run(emissions, *scores, mask, tags)
    for name in ("log_z", "score"):
        np.testing.assert_allclose(said[name][0], said[name][1])
    for values in (said["marginals"], said["viterbi"][0]):
        np.testing.assert_allclose(values[0][mask[0]], values[1][:3])


@pytest.mark.skipif(not ON_TENSORFLOW, reason="slow to compile, and the same arithmetic")
def test_long_sequences_lose_no_digits():
    rng = np.random.default_rng(0)
    emissions, *scores, _, tags = random_case(rng, 2, 1000, TAGS, 2.0)
    emissions, mask = rng.normal(size=emissions.shape), np.ones((2, 1000), bool)
    tags, scores = np.abs(tags) % TAGS, [emissions, *scores]
    double = traced(TAGS)(*scores, mask, tags)
    single = traced(TAGS, "float32")(*(v.astype("float32") for v in scores), mask, tags)
    np.testing.assert_allclose(single["log_z"], double["log_z"], rtol=1e-6)
    np.testing.assert_allclose(single["marginals"], double["marginals"], atol=1e-5)
    np.testing.assert_array_equal(single["viterbi"][0], double["viterbi"][0])


def test_tags_out_of_range_are_no_sequence():
    tags = [[0, 2], [-1, 0], [0, 1]]
    scores = functions.sequence_score(np.zeros((3, 2, 2)), tags, np.zeros((2, 2)))
    np.testing.assert_array_equal(scores, [FORBIDDEN, FORBIDDEN, 0])


def test_k_must_be_one_at_least():
    with pytest.raises(ValueError, match="Received: k=0"):
        functions.n_best(np.zeros((1, 1, 2)), 0, np.zeros((2, 2)))
