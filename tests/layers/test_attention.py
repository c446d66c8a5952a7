"""Attention: the equations in NumPy, masks, gradients, round trips."""

import keras
import numpy as np
import pytest

from rnnapps.layers import AdditiveAttention, MultiplicativeAttention
from tests.layers.backends import assert_gradients, some_of

KINDS = {
    "additive": lambda **options: AdditiveAttention(5, **options),
    "dot": lambda **options: MultiplicativeAttention("dot", **options),
    "general": lambda **options: MultiplicativeAttention("general", **options),
    "scaled": lambda **options: MultiplicativeAttention("scaled", **options),
}
SOME = some_of(KINDS, 0, 3)
QUERIES, VALUES = (2, 3, 4), (2, 6, 4)


def example(kind, features=4, dtype="float32"):
    rng = np.random.default_rng(7)
    queries = rng.normal(size=QUERIES).astype(dtype)
    values = rng.normal(size=(*VALUES[:2], features)).astype(dtype)
    layer = KINDS[kind](dtype=dtype)
    layer.build(queries.shape, values.shape)
    for weight in layer.weights:
        weight.assign(rng.normal(size=weight.shape))
    return layer, queries, values


def by_hand(layer, queries, values, mask):
    """The equations, one score after the other."""
    weights = {weight.name: np.array(weight) for weight in layer.weights}

    def score(q, v):
        if isinstance(layer, AdditiveAttention):
            hidden = q @ weights["query_kernel"] + v @ weights["value_kernel"] + weights["bias"]
            return (np.tanh(hidden) @ weights["score"])[0]
        product = q @ v if layer.score == "dot" else q @ weights["kernel"].T @ v
        return product / np.sqrt(len(q)) if layer.score == "scaled" else product

    alpha = np.zeros((*queries.shape[:2], values.shape[1]))
    for b, t in np.ndindex(*queries.shape[:2]):
        there = np.flatnonzero(mask[b])
        e = np.exp([score(queries[b, t], values[b, s]) for s in there])
        alpha[b, t, there] = e / e.sum()
    return alpha @ values, alpha


@pytest.mark.parametrize("kind", SOME)
def test_the_equations(kind):
    layer, queries, values = example(kind, features=4 if kind == "dot" else 7)
    mask = np.array([[1, 1, 0, 1, 0, 0], [1, 1, 1, 1, 1, 1]], bool)
    for given in (mask, None):
        contexts, weights = layer(queries, values, mask=given)
        expected = by_hand(layer, queries, values, np.ones_like(mask) if given is None else given)
        np.testing.assert_allclose(contexts, expected[0], atol=1e-5)
        np.testing.assert_allclose(weights, expected[1], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("few", [0, 10**6])
def test_a_step_of_decoding_gives_the_same(kind, few, monkeypatch):
    monkeypatch.setattr("rnnapps.layers.attention._FEW", few)
    layer, queries, values = example(kind)
    mask = np.array([[1, 1, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0]], bool)
    memory = layer.remember(values, mask)
    for one, other in zip(
        layer.attend(queries, memory, decoding=True), layer.attend(queries, memory), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("kind", SOME)
def test_padding_changes_nothing_and_nothing_to_see_gives_zero(kind):
    layer, queries, values = example(kind)
    mask = np.array([[1, 1, 1, 0, 0, 0], [0] * 6], bool)
    values[:, 3:] = 1e9
    contexts, weights = layer(queries, values, mask=mask)
    shorter, _ = layer(queries[:1], values[:1, :3])
    np.testing.assert_allclose(contexts[:1], shorter, atol=1e-6)
    np.testing.assert_array_equal(contexts[1], 0)
    np.testing.assert_array_equal(weights[1], 0)
    for shape in ((0, 3, 6), (2, 0, 6), (2, 3, 0)):
        batch, target, source = shape
        contexts, weights = layer(queries[:batch, :target], values[:batch, :source])
        assert contexts.shape == (batch, target, 4) and weights.shape == shape


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("kind", SOME)
def test_gradients(kind):
    """Against finite differences, in float64 and with a step that is masked."""
    layer, queries, values = example(kind, dtype="float64")
    mask = np.array([[1, 1, 0, 1, 1, 1], [1, 0, 0, 0, 0, 0]], bool)

    def loss(queries, values):
        return keras.ops.sum(keras.ops.sin(layer(queries, values, mask=mask)[0]))

    assert_gradients(loss, [queries, values], layer.weights, step=1e-6, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", SOME)
def test_round_trip(kind, tmp_path):
    layer, queries, values = example(kind)
    q, v = keras.Input(QUERIES[1:]), keras.Input(VALUES[1:])
    model = keras.Model([q, v], layer(q, v))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for one, other in zip(loaded([queries, values]), model([queries, values]), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", SOME)
def test_half_precision_keeps_the_weights_in_float32(kind):
    layer = KINDS[kind](dtype="mixed_bfloat16")
    contexts, weights = layer(np.ones(QUERIES), np.ones(VALUES))
    assert contexts.dtype == "bfloat16" and weights.dtype == "float32"


def test_wrong_arguments():
    with pytest.raises(ValueError, match="Received: units=0"):
        AdditiveAttention(0)
    with pytest.raises(ValueError, match="Received: score='cosine'"):
        MultiplicativeAttention("cosine")
    with pytest.raises(ValueError, match="Received: 4 and 5"):
        MultiplicativeAttention("dot").build((None, None, 4), (None, None, 5))
