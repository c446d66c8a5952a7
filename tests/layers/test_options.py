"""The options of the cells: dropped weights, penalties, constraints, the identity."""

import keras
import numpy as np
import pytest

from rnnapps.layers import GRU, LSTM, RNN, Elman, ElmanCell, Jordan
from tests.layers.backends import some_of, with_gradients

BATCH, TIME, FEATURES, UNITS = 4, 6, 3, 5
LAYERS = some_of(
    [
        pytest.param(Elman, {}, id="elman"),
        pytest.param(Jordan, {"output_units": 4}, id="jordan"),
        pytest.param(LSTM, {}, id="lstm"),
        pytest.param(GRU, {}, id="gru"),
        pytest.param(GRU, {"reset_after": True}, id="gru_after"),
    ],
    1,
    2,
)
X = np.random.default_rng(0).normal(size=(BATCH, TIME, FEATURES)).astype("float32")


# Dropped weights


@pytest.mark.parametrize("wrapper", ["layer", "rnn", "stock_rnn"])
def test_dropped_weights_last_for_the_call_and_are_shared_by_the_rows(wrapper):
    """With h_t = h_{t-1} M and rows e_1, e_2, … the outputs are M, M², …: the dropped U itself."""
    size = 30
    options = {"activation": "linear", "use_bias": False, "seed": 3}
    options["recurrent_weight_dropout"] = 0.5
    if wrapper == "layer":
        layer = Elman(size, return_sequences=True, **options)
    else:
        stock = keras.layers.RNN if wrapper == "stock_rnn" else RNN
        layer = stock(ElmanCell(size, **options), return_sequences=True)
    layer.build((None, None, 1))
    layer.set_weights([np.zeros((1, size)), np.full((size, size), 0.1)])
    x, rows = np.zeros((size, 3, 1), "float32"), np.eye(size, dtype="float32")
    first, second = (np.array(layer(x, initial_state=[rows], training=True)) for _ in range(2))
    M = first[:, 0]
    np.testing.assert_allclose(np.unique(M), [0, 0.2], atol=1e-7)
    assert 0.4 < np.mean(M == 0) < 0.6
    np.testing.assert_allclose(first[:, 1], M @ M, rtol=1e-5)
    np.testing.assert_allclose(first[:, 2], M @ M @ M, rtol=1e-5)
    assert np.any(first != second)
    at_inference = np.array(layer(x, initial_state=[rows]))
    np.testing.assert_allclose(at_inference[:, 0], np.full((size, size), 0.1), rtol=1e-6)


@pytest.mark.parametrize(("layer_class", "options"), LAYERS)
def test_dropped_weights_differ_from_draw_to_draw_only(layer_class, options):
    layer = layer_class(UNITS, recurrent_weight_dropout=0.5, seed=1, **options)
    twin = layer_class(UNITS, recurrent_weight_dropout=0.5, seed=1, **options)
    layer.build(X.shape)
    twin.build(X.shape)
    twin.set_weights(layer.get_weights())
    one, other = layer(X, training=True), layer(X, training=True)
    assert np.any(one != other)
    np.testing.assert_array_equal(twin(X, training=True), one)
    repeated = np.repeat(X[:1], BATCH, axis=0)
    rows = np.array(layer(repeated, training=True))
    np.testing.assert_allclose(rows, np.repeat(rows[:1], BATCH, axis=0), atol=1e-6)


# Penalties and constraints


@pytest.mark.parametrize(("layer_class", "options"), LAYERS)
def test_penalties_are_added_to_the_loss(layer_class, options):
    layer = layer_class(
        UNITS,
        kernel_regularizer=keras.regularizers.L2(0.1),
        recurrent_regularizer=keras.regularizers.L1(0.2),
        bias_regularizer=keras.regularizers.L1(0.3),
        activity_regularizer=keras.regularizers.L2(0.4),
        bias_initializer="random_normal",
        return_sequences=True,
        **options,
    )
    cell, outputs = layer.cell, np.array(layer(X))
    expected = 0.1 * np.sum(np.square(cell.kernel)) + 0.2 * np.sum(np.abs(cell.recurrent_kernel))
    expected += 0.3 * np.sum(np.abs(cell.bias))
    expected += 0.4 * np.sum(np.square(outputs)) / BATCH  # Keras means activities over the batch
    if layer_class is Jordan:
        expected += 0.1 * np.sum(np.square(cell.output_kernel))
        expected += 0.3 * np.sum(np.abs(cell.output_bias))
    assert float(sum(layer.losses)) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize(("layer_class", "options"), LAYERS)
def test_constraints_hold_after_a_step(layer_class, options):
    layer = layer_class(
        UNITS,
        kernel_constraint=keras.constraints.MaxNorm(0.3),
        recurrent_constraint=keras.constraints.UnitNorm(),
        bias_constraint=keras.constraints.NonNeg(),
        **options,
    )
    model = keras.Sequential([layer])
    model.compile(keras.optimizers.SGD(1.0), "mse")
    model.fit(X, np.ones((BATCH, layer.cell.output_size)), verbose=0)
    cell = layer.cell
    assert np.all(np.linalg.norm(cell.kernel, axis=0) < 0.3 + 1e-5)
    np.testing.assert_allclose(np.linalg.norm(cell.recurrent_kernel, axis=0), 1, atol=1e-5)
    assert np.all(np.array(cell.bias) >= 0)
    if layer_class is Jordan:
        assert np.all(np.linalg.norm(cell.output_kernel, axis=0) < 0.3 + 1e-5)


# The identity


def test_the_irnn_starts_as_a_memory_without_loss():
    layer = Elman(UNITS, activation="relu", recurrent_initializer="identity", return_state=True)
    layer.build((None, None, FEATURES))
    np.testing.assert_array_equal(layer.cell.recurrent_kernel, np.eye(UNITS))
    start = np.random.default_rng(1).uniform(0.1, 1, (BATCH, UNITS)).astype("float32")

    def last(start):
        _, last = layer(np.zeros((BATCH, 100, FEATURES), "float32"), initial_state=[start])
        return keras.ops.sum(last), last

    (_, remembered), (gradient,) = with_gradients(last)(start)
    np.testing.assert_array_equal(remembered, start)
    np.testing.assert_array_equal(gradient, np.ones((BATCH, UNITS)))


def test_layer_norm_does_not_see_the_scale_of_its_input():
    layer = LSTM(UNITS, layer_norm=True)
    layer.build(X.shape)
    gains = [w for w in layer.weights if "gain" in w.name or "shift" in w.name]
    assert [w.shape[0] for w in gains] == [4 * UNITS] * 4 + [UNITS] * 2
    expected = layer(100 * X)
    np.testing.assert_allclose(layer(1000 * X), expected, atol=1e-4)
