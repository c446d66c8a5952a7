"""The cells against their equations, the documents' numbers, and NumPy."""

import keras
import numpy as np
import pytest

from rnnapps.layers import Elman, ElmanCell, GRUCell, LSTMCell

BATCH, FEATURES, UNITS = 3, 4, 5


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def elman_step(weights, x, h, dropped):
    W, U, b = weights
    h = np.tanh(x @ W + dropped @ U + b)
    return [h]


def lstm_step(weights, x, h, dropped, c):
    stacked = np.concatenate(weights[:2])
    a = np.concatenate([x, dropped], axis=1) @ stacked + weights[2]
    i, f, g, o = np.split(a, 4, axis=1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return [sigmoid(o) * np.tanh(c), c]


def gru_step(weights, x, h, dropped):
    (W_u, W_r, W_h), (U_u, U_r, U_h), (b_u, b_r, b_h) = (np.split(w, 3, axis=-1) for w in weights)
    u = sigmoid(x @ W_u + dropped @ U_u + b_u)
    r = sigmoid(x @ W_r + dropped @ U_r + b_r)
    return [u * h + (1 - u) * np.tanh(x @ W_h + (r * dropped) @ U_h + b_h)]


def gru_after_step(weights, x, h, dropped):
    (W_u, W_r, W_h), (U_u, U_r, U_h) = (np.split(w, 3, axis=-1) for w in weights[:2])
    (b_u, b_r, b_h), (d_u, d_r, d_h) = (np.split(row, 3) for row in weights[2])
    u = sigmoid(x @ W_u + b_u + dropped @ U_u + d_u)
    r = sigmoid(x @ W_r + b_r + dropped @ U_r + d_r)
    return [u * h + (1 - u) * np.tanh(x @ W_h + b_h + r * (dropped @ U_h + d_h))]


CELLS = [
    pytest.param(ElmanCell, {}, elman_step, id="elman"),
    pytest.param(LSTMCell, {}, lstm_step, id="lstm"),
    pytest.param(GRUCell, {}, gru_step, id="gru"),
    pytest.param(GRUCell, {"reset_after": True}, gru_after_step, id="gru_after"),
]


@pytest.mark.parametrize(("cell_class", "options", "equation"), CELLS)
@pytest.mark.parametrize("rates", [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.3, 0.5)])
def test_steps_follow_the_equation(cell_class, options, equation, rates):
    rng = np.random.default_rng(0)
    rates = dict(zip(("dropout", "recurrent_dropout"), rates, strict=True))
    cell, twin = (
        cell_class(UNITS, seed=7, bias_initializer="random_normal", **rates, **options)
        for _ in range(2)
    )
    cell.build((BATCH, FEATURES))
    x = rng.normal(size=(2, BATCH, FEATURES)).astype("float32")
    states = [
        rng.normal(size=(BATCH, UNITS)).astype("float32") for _ in cell.get_initial_state(BATCH)
    ]
    x_mask = twin.get_dropout_mask(keras.ops.ones((BATCH, FEATURES)))
    h_mask = twin.get_recurrent_dropout_mask(keras.ops.ones((BATCH, UNITS)))
    weights = cell.get_weights()
    expected = states
    for step in range(2):  # the second step sees the same dropout masks
        output, states = cell(x[step], states, training=True)
        h = expected[0]
        dropped_x = x[step] if x_mask is None else x[step] * np.array(x_mask)
        dropped_h = h if h_mask is None else h * np.array(h_mask)
        expected = equation(weights, dropped_x, h, dropped_h, *expected[1:])
        np.testing.assert_allclose(output, expected[0], atol=1e-6)
        for state, value in zip(states, expected, strict=True):
            np.testing.assert_allclose(state, value, atol=1e-6)


def test_one_unit_by_hand():
    layer = Elman(1, use_bias=False, return_sequences=True)
    layer.build((None, None, 1))
    layer.set_weights([np.array([[1.0]]), np.array([[0.5]])])
    outputs = layer(np.array([[[1.0], [0.0], [1.0]]], "float32"))
    np.testing.assert_allclose(np.ravel(outputs), [0.7616, 0.3634, 0.8280], atol=5e-5)


def test_two_units_by_hand():
    W = np.array([[0.5, 1.0], [1.0, -0.5]])
    U = np.array([[1.0, -0.5], [0.5, 1.0]])
    x = np.array([[[-0.2, 0.6], [0.6, 0.2]]], "float32")
    weights = [W.T, U.T, np.zeros(2)]

    def run(activation, steps):
        layer = Elman(2, activation=activation, return_sequences=True)
        layer.build((None, None, 2))
        layer.set_weights(weights)
        return layer, np.array(layer(steps))[0]

    _, pre_activation = run("linear", x[:, :1])
    np.testing.assert_allclose(pre_activation[0], [0.5, -0.5], atol=1e-6)
    layer, h = run("tanh", x)
    np.testing.assert_allclose(h, [[0.46, -0.46], [0.83, 0.26]], atol=5e-3)
    linear, _ = run("linear", x)
    np.testing.assert_allclose(
        np.ravel(linear(x[:, 1:], initial_state=[h[None, 0]])), [1.19, 0.27], atol=5e-3
    )


def test_words_from_the_memory():
    V = np.array([[-1.0, 0.0], [-0.5, 0.5], [0.5, 0.0], [0.5, -0.5]])  # river, lake, road, sat
    h_7 = np.array([[-0.90, 0.24]], "float32")
    scores = keras.layers.Dense(4, use_bias=False)
    scores.build((None, 2))
    scores.set_weights([V.T])
    np.testing.assert_allclose(scores(h_7)[0], [0.90, 0.57, -0.45, -0.57], atol=5e-3)
    np.testing.assert_allclose(
        keras.ops.softmax(scores(h_7))[0], [0.453, 0.326, 0.117, 0.104], atol=5e-4
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(np.array([0]), scores(h_7))
    assert float(loss) == pytest.approx(0.79, abs=5e-3)


def test_softmax_of_four_scores():
    probabilities = keras.ops.softmax(np.array([1.0, 2.2, -3.0, 4.1], "float32"))
    np.testing.assert_allclose(probabilities, [0.04, 0.13, 0.00, 0.84], atol=5e-3)
    assert float(probabilities[0]) == pytest.approx(0.0377, abs=5e-5)


@pytest.mark.parametrize(
    ("cell", "count"),
    [
        (ElmanCell(100), 20_100),
        (LSTMCell(100), 4 * 20_100),
        (GRUCell(100), 3 * 20_100),
        (GRUCell(100, reset_after=True), 3 * 20_100 + 3 * 100),
        (ElmanCell(100, use_bias=False), 20_000),
        (LSTMCell(100, use_bias=False), 80_000),
        (GRUCell(100, use_bias=False, reset_after=True), 60_000),
    ],
)
def test_parameter_counts(cell, count):
    cell.build((None, 100))
    assert cell.count_params() == count


@pytest.mark.parametrize("start", [0.0, 1.0, 2.0, -0.5])
def test_forget_bias_starts_where_it_is_told(start):
    cell = LSTMCell(2, unit_forget_bias=start, bias_initializer=keras.initializers.Constant(3.0))
    cell.build((None, 1))
    np.testing.assert_array_equal(cell.bias, [3, 3, start, start, 3, 3, 3, 3])


@pytest.mark.parametrize(
    ("ours", "stock"),
    [
        (ElmanCell(UNITS), keras.layers.SimpleRNNCell(UNITS)),
        (LSTMCell(UNITS), keras.layers.LSTMCell(UNITS)),
        (GRUCell(UNITS), keras.layers.GRUCell(UNITS, reset_after=False)),
        (GRUCell(UNITS, reset_after=True), keras.layers.GRUCell(UNITS)),
    ],
)
def test_weights_are_named_and_shaped_as_in_keras(ours, stock):
    for cell in (ours, stock):
        cell.build((None, FEATURES))
    assert [(w.name, w.shape) for w in ours.weights] == [(w.name, w.shape) for w in stock.weights]


def test_dropout_rate_over_many_draws():
    cell = LSTMCell(50, dropout=0.3, recurrent_dropout=0.6, seed=1)
    x_mask = np.array(cell.get_dropout_mask(keras.ops.ones((2000, 50))))
    h_mask = np.array(cell.get_recurrent_dropout_mask(keras.ops.ones((2000, 50))))
    assert np.mean(x_mask == 0) == pytest.approx(0.3, abs=0.01)
    assert np.mean(h_mask == 0) == pytest.approx(0.6, abs=0.01)
    assert np.mean(x_mask) == pytest.approx(1, abs=0.02)
    assert np.mean(h_mask) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"units": 0}, "Received: units=0"),
        ({"units": 2, "dropout": 1.0}, "Received: dropout=1.0"),
        ({"units": 2, "recurrent_dropout": -0.1}, "Received: recurrent_dropout=-0.1"),
    ],
)
def test_impossible_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ElmanCell(**options)
