"""Pooling against a loop over rows and valid steps in NumPy."""

import keras
import numpy as np
import pytest

from rnnapps.layers import SequencePooling
from rnnapps.layers.pooling import MODES
from tests.layers.backends import with_gradients

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 6, 3)).astype("float32") - 2.0  # mostly negative: zeros would win a max
MASK = np.array(
    [[1] * 6, [1, 1, 0, 0, 0, 0], [0, 1, 0, 1, 1, 0], [0] * 6, [0, 0, 0, 0, 0, 1]], bool
)


def brute_force(layer, x, mask):
    rows = []
    for row, valid in zip(x, mask, strict=True):
        steps = row[valid]
        if len(steps) == 0:
            rows.append(np.zeros(x.shape[-1]))
        elif layer.mode == "last":
            rows.append(steps[-1])
        elif layer.mode == "mean":
            rows.append(steps.mean(axis=0))
        elif layer.mode == "max":
            rows.append(steps.max(axis=0))
        else:
            W, b, v = layer.get_weights()
            scores = np.exp(np.tanh(steps @ W + b) @ v)
            rows.append((scores * steps).sum(axis=0) / scores.sum())
    return np.stack(rows)


def pooling(mode, **options):
    layer = SequencePooling(mode, **options)
    layer.build((None, None, 3))
    layer.set_weights([RNG.normal(size=w.shape) for w in layer.weights])
    return layer


@pytest.mark.parametrize("mode", MODES)
def test_pooling_equals_brute_force(mode):
    layer = pooling(mode)
    np.testing.assert_allclose(layer(X, mask=MASK), brute_force(layer, X, MASK), atol=1e-6)
    everything = np.ones_like(MASK)
    np.testing.assert_allclose(layer(X), brute_force(layer, X, everything), atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_an_attached_mask_is_seen_and_ends_here(mode):
    layer = pooling(mode)
    masked = keras.layers.Masking()(np.where(MASK[..., None], X, 0))
    pooled = layer(masked)
    np.testing.assert_allclose(pooled, brute_force(layer, X, MASK), atol=1e-6)
    assert getattr(pooled, "_keras_mask", None) is None


@pytest.mark.parametrize("mode", MODES)
def test_padding_is_not_there(mode):
    layer = pooling(mode)
    longer = np.pad(X, [(0, 0), (0, 4), (0, 0)], constant_values=1e4)
    padded = layer(longer, mask=np.pad(MASK, [(0, 0), (0, 4)]))
    np.testing.assert_allclose(padded, layer(X, mask=MASK), atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_no_steps_give_zeros_and_no_rows_nothing(mode):
    layer = pooling(mode)
    np.testing.assert_array_equal(layer(np.zeros((2, 0, 3), "float32")), np.zeros((2, 3)))
    assert layer(np.zeros((0, 4, 3), "float32")).shape == (0, 3)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("jit_compile", [False, True])
def test_graphs_of_unknown_length(tf, mode, jit_compile):
    layer = pooling(mode)
    spec = tf.TensorSpec([None, None, 3], tf.float32)
    run = tf.function(lambda x: layer(x), input_signature=[spec], jit_compile=jit_compile)
    np.testing.assert_array_equal(run(tf.zeros((2, 0, 3))), np.zeros((2, 3)))
    assert run(tf.zeros((0, 4, 3))).shape == (0, 3)
    np.testing.assert_allclose(run(tf.constant(X)), layer(X), atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_finite_and_none_goes_to_padding(mode):
    layer = pooling(mode)
    loss = with_gradients(
        lambda x: keras.ops.sum(layer(x, mask=MASK) ** 2), layer.trainable_variables
    )
    _, gradients = loss(X)
    assert all(np.all(np.isfinite(g)) for g in gradients)
    np.testing.assert_array_equal(gradients[0][~MASK], 0)
    assert np.any(gradients[0][MASK] != 0)


@pytest.mark.parametrize("mode", MODES)
def test_half_precision_sums_in_float32(mode):
    layer, half = pooling(mode), pooling(mode, dtype="mixed_float16")
    half.set_weights(layer.get_weights())
    x = np.full((1, 3000, 3), 30.0, "float32")  # the sum, 90,000, is beyond float16
    pooled = half(x)
    assert pooled.dtype == "float16"
    np.testing.assert_allclose(pooled, [[30.0] * 3], rtol=2e-3)


@pytest.mark.parametrize("mode", MODES)
def test_round_trips_and_shapes(mode, tmp_path):
    inputs = keras.Input((None, 3))
    layer = pooling(mode)
    model = keras.Model(inputs, layer(inputs))
    assert model.output_shape == (None, 3)
    assert layer.compute_output_shape((5, 6, 3)) == (5, 3)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.layers[-1].get_config() == layer.get_config()
    np.testing.assert_array_equal(loaded(X), model(X))


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="Received: mode='min'"):
        SequencePooling("min")
