"""The cells against their equations in NumPy."""

import keras
import numpy as np
import pytest

from rnnapps.layers import ElmanCell, GRUCell, JordanCell, LSTMCell

BATCH, FEATURES, UNITS = 3, 4, 5


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def as_it_is(a, gain, shift):
    return a


def normalised(a, gain, shift):
    deviation = a - a.mean(axis=1, keepdims=True)
    return gain * deviation / np.sqrt((deviation**2).mean(axis=1, keepdims=True) + 1e-5) + shift


# One step each: `w` holds the weights by name, `norm` is what normalises, `dropped` is what `U`
# sees of the state.


def preactivation(w, norm, x, dropped):
    a = norm(x @ w["kernel"], w["kernel_gain"], w["kernel_shift"])
    s = norm(dropped @ w["recurrent_kernel"], w["recurrent_gain"], w["recurrent_shift"])
    return a + s + w["bias"]


def elman_step(w, norm, x, dropped, h):
    return [np.tanh(preactivation(w, norm, x, dropped))]


def jordan_step(w, norm, x, dropped, y):
    h = np.tanh(preactivation(w, norm, x, dropped))
    return [sigmoid(h @ w["output_kernel"] + w["output_bias"])]


def lstm_step(w, norm, x, dropped, h, c):
    i, f, g, o = np.split(preactivation(w, norm, x, dropped), 4, axis=1)
    p_i, p_f, p_o = np.split(w["peephole_kernel"], 3)
    i, f = sigmoid(i + p_i * c), sigmoid(f + p_f * c)
    c = f * c + i * np.tanh(g)
    return [sigmoid(o + p_o * c) * np.tanh(norm(c, w["cell_gain"], w["cell_shift"])), c]


def gru_step(w, norm, x, dropped, h):
    U, gain, shift = w["recurrent_kernel"], w["recurrent_gain"], w["recurrent_shift"]
    n = 2 * UNITS
    a = norm(x @ w["kernel"], w["kernel_gain"], w["kernel_shift"]) + w["bias"]
    a_u, a_r, a_h = np.split(a, 3, axis=1)
    s_u, s_r = np.split(norm(dropped @ U[:, :n], gain[:n], shift[:n]), 2, axis=1)
    u, r = sigmoid(a_u + s_u), sigmoid(a_r + s_r)
    s_h = norm((r * dropped) @ U[:, n:], gain[n:], shift[n:])
    return [u * h + (1 - u) * np.tanh(a_h + s_h)]


def gru_after_step(w, norm, x, dropped, h):
    b, b_after = w["bias"]
    a = norm(x @ w["kernel"], w["kernel_gain"], w["kernel_shift"]) + b
    s = norm(dropped @ w["recurrent_kernel"], w["recurrent_gain"], w["recurrent_shift"]) + b_after
    (a_u, a_r, a_h), (s_u, s_r, s_h) = np.split(a, 3, axis=1), np.split(s, 3, axis=1)
    u, r = sigmoid(a_u + s_u), sigmoid(a_r + s_r)
    return [u * h + (1 - u) * np.tanh(a_h + r * s_h)]


CELLS = [
    pytest.param(ElmanCell, {}, elman_step, id="elman"),
    pytest.param(JordanCell, {"output_units": 3}, jordan_step, id="jordan"),
    pytest.param(LSTMCell, {}, lstm_step, id="lstm"),
    pytest.param(LSTMCell, {"peephole": True}, lstm_step, id="lstm_peephole"),
    pytest.param(GRUCell, {}, gru_step, id="gru"),
    pytest.param(GRUCell, {"reset_after": True}, gru_after_step, id="gru_after"),
]
RATES = [
    {},
    {"recurrent_weight_dropout": 0.4},
    {"dropout": 0.3, "recurrent_dropout": 0.5, "recurrent_weight_dropout": 0.4},
]


@pytest.mark.parametrize(("cell_class", "options", "equation"), CELLS)
@pytest.mark.parametrize("norm", [as_it_is, normalised])
@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("rates", RATES, ids=" ".join)
def test_steps_follow_the_equation(cell_class, options, equation, norm, use_bias, rates):
    rng = np.random.default_rng(0)
    options = {"layer_norm": norm is normalised, "use_bias": use_bias, **options}
    cell, twin = (cell_class(UNITS, seed=7, **rates, **options) for _ in range(2))
    for one in (cell, twin):
        one.build((BATCH, FEATURES))
    cell.set_weights([rng.normal(scale=0.7, size=w.shape) for w in cell.weights])
    x = rng.normal(size=(2, BATCH, FEATURES)).astype("float32")
    states = [rng.normal(size=s.shape).astype("float32") for s in cell.get_initial_state(BATCH)]
    x_mask, h_mask, U_mask = (
        1.0 if mask is None else np.array(mask)
        for mask in (
            twin.get_dropout_mask(keras.ops.ones((BATCH, FEATURES))),
            twin.get_recurrent_dropout_mask(keras.ops.ones((BATCH, cell.output_size))),
            twin.get_recurrent_weight_mask(),
        )
    )
    unused = np.zeros(cell.gates * UNITS)
    w = {
        **dict.fromkeys(
            ("kernel_gain", "kernel_shift", "recurrent_gain", "recurrent_shift"), unused
        ),
        **dict.fromkeys(("cell_gain", "cell_shift", "output_bias"), 0.0),
        "bias": np.zeros(cell.bias_shape),
        "peephole_kernel": np.zeros(3 * UNITS),
        **{weight.name: np.array(weight) for weight in cell.trainable_weights},
    }
    w["recurrent_kernel"] = w["recurrent_kernel"] * U_mask
    expected = states
    for step in range(2):  # the second step sees the same dropout masks
        output, states = cell(x[step], states, training=True)
        expected = equation(w, norm, x[step] * x_mask, expected[0] * h_mask, *expected)
        np.testing.assert_allclose(output, expected[0], atol=2e-6)
        for state, value in zip(states, expected, strict=True):
            np.testing.assert_allclose(state, value, atol=2e-6)


@pytest.mark.usefixtures("float64")
def test_split_and_stacked_lstm_are_the_same():
    """`W x + U h` and `[W U] · [x; h]`: one matrix of 4H × (H + D) gives all four gates."""
    rng = np.random.default_rng(1)
    cell = LSTMCell(UNITS, dtype="float64")
    cell.build((None, FEATURES))
    cell.set_weights([rng.normal(size=w.shape) for w in cell.weights])
    W, U, b = (np.array(weight) for weight in cell.weights)
    stacked = np.concatenate([W, U]).T
    assert stacked.shape == (4 * UNITS, FEATURES + UNITS)
    x = rng.normal(size=(BATCH, FEATURES))
    h, c = rng.normal(size=(2, BATCH, UNITS))
    i, f, g, o = np.split(stacked @ np.concatenate([x, h], axis=1).T + b[:, None], 4)
    c_next = (sigmoid(f) * c.T + sigmoid(i) * np.tanh(g)).T
    _, states = cell(x, [h, c])
    np.testing.assert_allclose(states[1], c_next, rtol=1e-13)
    np.testing.assert_allclose(states[0], sigmoid(o).T * np.tanh(c_next), rtol=1e-13)


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


def test_dropout_rates_over_many_draws():
    options = {"dropout": 0.3, "recurrent_dropout": 0.6, "recurrent_weight_dropout": 0.2}
    cell = LSTMCell(100, seed=1, **options)
    cell.build((None, 50))
    masks = {
        "dropout": cell.get_dropout_mask(keras.ops.ones((2000, 50))),
        "recurrent_dropout": cell.get_recurrent_dropout_mask(keras.ops.ones((2000, 100))),
        "recurrent_weight_dropout": cell.get_recurrent_weight_mask(),  # 40,000 entries
    }
    for name, mask in masks.items():
        assert np.mean(np.array(mask) == 0) == pytest.approx(options[name], abs=0.01)
        assert np.mean(mask) == pytest.approx(1, abs=0.02)
        assert len(np.unique(mask)) == 2


@pytest.mark.parametrize("rate", [0.1, 0.7])
def test_each_draw_is_another(rate):
    """Over 300 draws each entry is dropped as often as the rate says, on its own."""
    cell = LSTMCell(5, dropout=rate, recurrent_dropout=rate, recurrent_weight_dropout=rate, seed=1)
    cell.build((None, FEATURES))
    draws = []
    for _ in range(300):
        x = cell.get_dropout_mask(keras.ops.ones((BATCH, FEATURES)))
        h = cell.get_recurrent_dropout_mask(keras.ops.ones((BATCH, 5)))
        U = cell.get_recurrent_weight_mask()
        draws.append(np.concatenate([np.ravel(mask) for mask in (x, h, U)]) == 0)
        cell.reset_dropout_mask()
        cell.reset_recurrent_dropout_mask()
    assert np.mean(draws) == pytest.approx(rate, abs=0.01)
    deviation = np.sqrt(rate * (1 - rate) / len(draws))
    np.testing.assert_allclose(np.mean(draws, axis=0), rate, atol=5 * deviation)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"units": 0}, "Received: units=0"),
        ({"units": 2, "dropout": 1.0}, "Received: dropout=1.0"),
        ({"units": 2, "recurrent_dropout": -0.1}, "Received: recurrent_dropout=-0.1"),
        ({"units": 2, "recurrent_weight_dropout": 2}, "Received: recurrent_weight_dropout=2"),
        ({"units": 2, "output_units": 0}, "Received: output_units=0"),
    ],
)
def test_impossible_arguments_are_refused(options, message):
    cell_class = JordanCell if "output_units" in options else ElmanCell
    with pytest.raises(ValueError, match=message):
        cell_class(**options)
