"""The documents' numbers, each through the public layers."""

import keras
import numpy as np
import pytest

from rnnapps.layers import GRU, LSTM, Elman, ElmanCell, GRUCell, JordanCell, LSTMCell
from tests.layers.backends import BACKEND, some_of, with_gradients


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


def gradient_over(layer, steps, start):
    """How much of a change of the first states is left in the last ones, through the layer."""

    def last(*start):
        _, *states = layer(np.zeros((1, steps, 1)), initial_state=list(start))
        return keras.ops.sum(states[-1])

    _, gradients = with_gradients(last)(*(np.array([[value]]) for value in start))
    return float(gradients[-1][0, 0])


@pytest.mark.usefixtures("float64")
def test_gradient_of_the_simple_cell_decays():
    """h rests where tanh' = 0.5, and U = 0.9: each step's Jacobian is 0.5 · 0.9."""
    h = np.sqrt(0.5)
    layer = Elman(1, return_state=True, dtype="float64")
    layer.build((None, None, 1))
    U, b = np.array([[0.9]]), np.array([np.arctanh(h) - 0.9 * h])
    layer.set_weights([np.zeros((1, 1)), U, b])
    for steps, expected in [(5, 1.8e-2), (10, 3.4e-4), (20, 1.2e-7), (40, 1.3e-14)]:
        gradient = gradient_over(layer, steps, [h])
        assert gradient == pytest.approx((0.5 * 0.9) ** steps, rel=1e-9)
        assert gradient == pytest.approx(expected, rel=0.05)


def lstm_with_gates(i, f, **options):
    """One unit whose input and forget gates are held by their biases, with U = 0."""
    layer = LSTM(1, return_state=True, dtype="float64", **options)
    layer.build((None, None, 1))
    layer.set_weights([np.zeros((1, 4)), np.zeros((1, 4)), np.array([i, f, 0, 0])])
    return layer


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    ("bias", "f", "table"),
    [
        (np.log(9.0), 0.9, {5: 0.59, 10: 0.35, 20: 0.12, 40: 0.015}),
        (1e3, 1.0, {5: 1, 10: 1, 20: 1, 40: 1}),
    ],
)
def test_gradient_of_the_lstm_lasts(bias, f, table):
    layer = lstm_with_gates(0.0, bias)
    for steps, expected in table.items():
        gradient = gradient_over(layer, steps, [0.3, 0.7])
        assert gradient == pytest.approx(f**steps, rel=1e-9)
        assert gradient == pytest.approx(expected, rel=0.02)


@pytest.mark.usefixtures("float64")
def test_what_was_written_is_there_after_400_steps():
    layer = lstm_with_gates(-1e3, 1e3)
    W = np.array([[2e3, 0.0, 1e3, 0.0]])  # an input of 1 opens the input gate and is written
    layer.set_weights([W, *layer.get_weights()[1:]])
    x = np.zeros((1, 401, 1))
    x[0, 0] = 1
    _, _, c = layer(x)
    assert float(c[0, 0]) == 1.0


LETTERS = "helo"


def one_hot(word):
    return np.eye(4, dtype="float32")[[[LETTERS.index(letter) for letter in word]]]


ELLO = np.array([[LETTERS.index(letter) for letter in "ello"]])


def learn_hello(layer):
    """Trains the layer; returns the layer of scores that learns with it, and the last scores."""
    inputs, scores = keras.Input((None, 4)), keras.layers.Dense(4)
    model = keras.Model(inputs, scores(layer(inputs)[0]))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.05), loss, jit_compile=BACKEND == "jax")
    for _ in range(150):
        model.train_on_batch(one_hot("hell"), ELLO)
    return scores, model.predict_on_batch(one_hot("hell"))


@pytest.mark.parametrize("layer_class", some_of([Elman, LSTM, GRU], 1))
def test_hello_is_learnt_and_spelt(layer_class):
    layer = layer_class(8, return_sequences=True, return_state=True)
    layer.build((None, None, 4))
    scores, logits = learn_hello(layer)
    np.testing.assert_array_equal(np.argmax(logits, axis=-1), ELLO)

    spelt, states = "h", None
    for _ in range(4):
        output, *states = layer(one_hot(spelt[-1]), initial_state=states)
        spelt += LETTERS[int(np.argmax(scores(output)))]
    assert spelt == "hello"


def test_hello_needs_a_memory():
    """The two l stand before different letters: with U held at 0 three of four are all there is."""
    layer = Elman(8, recurrent_initializer="zeros", return_sequences=True, return_state=True)
    layer.build((None, None, 4))
    layer.cell.recurrent_kernel.trainable = False
    _, logits = learn_hello(layer)
    np.testing.assert_array_equal(layer.cell.recurrent_kernel, 0)
    assert np.sum(np.argmax(logits, axis=-1) == ELLO) == 3


@pytest.mark.parametrize(
    ("cell", "count"),
    [
        (ElmanCell(100), 20_100),
        (LSTMCell(100), 4 * 20_100),
        (GRUCell(100), 3 * 20_100),
        (GRUCell(100, reset_after=True), 3 * 20_100 + 3 * 100),
        (LSTMCell(100, peephole=True), 4 * 20_100 + 3 * 100),
        (JordanCell(100, 20), 100 * 100 + 20 * 100 + 100 + 100 * 20 + 20),
        (ElmanCell(100, use_bias=False), 20_000),
        (JordanCell(100, 20, use_bias=False), 100 * 100 + 2 * 20 * 100),
        (LSTMCell(100, use_bias=False), 80_000),
        (GRUCell(100, use_bias=False, reset_after=True), 60_000),
        (ElmanCell(100, layer_norm=True), 20_100 + 4 * 100),
        (LSTMCell(100, layer_norm=True), 4 * 20_100 + 4 * 400 + 2 * 100),
        (GRUCell(100, layer_norm=True), 3 * 20_100 + 4 * 300),
    ],
)
def test_parameter_counts(cell, count):
    cell.recurrent_initializer = keras.initializers.Zeros()  # quicker than the orthogonal one
    cell.build((None, 100))
    assert cell.count_params() == count


@pytest.mark.parametrize("layer_class", [Elman, LSTM, GRU])
def test_parameter_counts_do_not_depend_on_the_length(layer_class):
    counts = []
    for steps in (1, 7):
        layer = layer_class(100, recurrent_initializer="zeros")
        layer(np.ones((1, steps, 100), "float32"))
        counts.append(layer.count_params())
    gates = {Elman: 1, LSTM: 4, GRU: 3}[layer_class]
    assert counts == [gates * 20_100] * 2
