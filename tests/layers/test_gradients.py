"""Gradients in float64 against finite differences, for every cell and every option."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rnnapps.layers import GRU, LSTM, RNN, Bidirectional, Elman, GRUCell, Jordan, LSTMCell
from rnnapps.models import SequenceEncoder

BATCH, TIME, FEATURES, UNITS = 3, 4, 2, 3
MASK = np.array([[1, 1, 1, 0], [1, 0, 1, 1], [0, 0, 0, 0]], bool)
RESET = np.array([[0, 1, 0, 0], [0, 1, 0, 1], [1, 0, 0, 0]], bool)

CELLS = {
    "elman": (Elman, {}),
    "jordan": (Jordan, {"output_units": 2}),
    "lstm": (LSTM, {}),
    "lstm-peephole": (LSTM, {"peephole": True}),
    "gru": (GRU, {}),
    "gru-after": (GRU, {"reset_after": True}),
}
DROPOUTS = {"dropout": 0.4, "recurrent_dropout": 0.3, "recurrent_weight_dropout": 0.3}
OPTIONS = {
    "plain": {},
    "no_bias": {"use_bias": False},
    "layer_norm": {"layer_norm": True},
    "all_dropouts": DROPOUTS,
    "backwards": {"go_backwards": True},
}


def check_gradients(layer, num_states, **arguments):
    """Compares the derivatives along a random direction of every input, state and weight."""
    rng = np.random.default_rng(0)
    layer.build((None, None, FEATURES))
    layer.set_weights([rng.normal(scale=0.7, size=w.shape) for w in layer.weights])
    x = tf.Variable(rng.normal(size=(BATCH, TIME, FEATURES)))
    shapes = [result.shape for result in keras.tree.flatten(layer(x))]
    states = [tf.Variable(rng.normal(size=shape)) for shape in shapes[1:]]
    factors = [rng.normal(size=shape) for shape in shapes]
    seeds = [v for v in layer.variables if v.name == "seed_generator_state"]
    assert len(states) == num_states

    @tf.function
    def loss():
        for seed in seeds:  # the same masks at every evaluation
            seed.assign([1, 2])
        start = [tf.convert_to_tensor(state) for state in states]
        results = layer(tf.convert_to_tensor(x), initial_state=start, training=True, **arguments)
        results = keras.tree.flatten(results)
        return tf.add_n([tf.reduce_sum(r * f) for r, f in zip(results, factors, strict=True)])

    sources = [x, *states, *(weight.value for weight in layer.trainable_weights)]
    with tf.GradientTape() as tape:
        value = loss()
    assert value.dtype == "float64"
    gradients = tape.gradient(value, sources)
    step = 1e-5
    for source, gradient in zip(sources, gradients, strict=True):
        direction = rng.normal(size=source.shape)
        source.assign_add(step * direction)
        above = loss()
        source.assign_sub(2 * step * direction)
        below = loss()
        source.assign_add(step * direction)
        expected = (above - below) / (2 * step)
        np.testing.assert_allclose(
            np.sum(gradient * direction), expected, rtol=1e-6, atol=1e-8, err_msg=source.name
        )


def check_gradients_of(cell, **options):
    layer_class, own = CELLS[cell]
    own = {"return_sequences": True, "return_state": True, "dtype": "float64", **own}
    layer = layer_class(UNITS, **own, **options)
    check_gradients(layer, len(layer.state_size), mask=MASK, reset=RESET)


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("cell", CELLS)  # the outer loop: options share compiled programs
def test_gradients_equal_finite_differences(cell, option):
    check_gradients_of(cell, **OPTIONS[option])


@pytest.mark.parametrize("cell", ["jordan", "gru"])
@pytest.mark.parametrize("rate", DROPOUTS)
def test_gradients_with_one_dropout(cell, rate):
    """Jordan's network feeds back its output, and the GRU a gated state."""
    check_gradients_of(cell, **{rate: DROPOUTS[rate]})


@pytest.mark.parametrize(
    ("layer_class", "options", "num_states"),
    [
        (GRU, {}, 2),
        (GRU, {"reset_after": True}, 2),
        (LSTM, {"peephole": True, "layer_norm": True}, 4),
    ],
)
def test_gradients_of_both_directions(layer_class, options, num_states):
    options = {"return_sequences": True, "return_state": True, "dtype": "float64", **options}
    layer = Bidirectional(layer_class(UNITS, **options), dtype="float64")
    check_gradients(layer, num_states, mask=MASK, reset=RESET)


def test_gradients_of_stacked_cells():
    cells = [GRUCell(UNITS, dtype="float64"), LSTMCell(2, peephole=True, dtype="float64")]
    deep = keras.layers.StackedRNNCells(cells, dtype="float64")
    layer = RNN(deep, return_sequences=True, return_state=True, dtype="float64")
    check_gradients(layer, 3, mask=MASK, reset=RESET)


def test_gradients_of_a_deep_network_both_ways():
    encoder = SequenceEncoder("lstm", UNITS, num_layers=2, dtype="float64")
    check_gradients(encoder, 8, mask=MASK)


def test_gradients_of_the_constants():
    layer = RNN(LSTMCell(UNITS, peephole=True, dtype="float64"), dtype="float64")
    x, k = np.ones((BATCH, TIME, FEATURES)), tf.Variable(np.linspace(-1, 1, BATCH)[:, None])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(x, constants=[tf.convert_to_tensor(k)]))
    gradient = tape.gradient(loss, k)
    above, below = (tf.reduce_sum(layer(x, constants=[k + step])) for step in (1e-5, -1e-5))
    np.testing.assert_allclose(tf.reduce_sum(gradient), (above - below) / 2e-5, rtol=1e-6)


def test_a_reset_lets_no_gradient_through():
    layer = RNN(GRUCell(UNITS), return_sequences=True)
    x = tf.constant(np.random.default_rng(0).normal(size=(1, TIME, FEATURES)), "float32")
    with tf.GradientTape() as tape:
        tape.watch(x)
        last = layer(x, reset=np.array([[0, 0, 1, 0]], bool))[:, -1]
        loss = tf.reduce_sum(last)
    seen = np.any(tape.gradient(loss, x)[0] != 0, axis=-1)
    np.testing.assert_array_equal(seen, [False, False, True, True])
