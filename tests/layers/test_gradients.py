"""Gradients in float64 against finite differences, for every cell and every option."""

import itertools

import keras
import numpy as np
import pytest

from rnnapps.layers import GRU, LSTM, RNN, Bidirectional, Elman, GRUCell, Jordan, LSTMCell
from tests.layers.backends import assert_gradients, some_of, with_gradients

pytestmark = pytest.mark.usefixtures("float64")
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
    "all": {"layer_norm": True, "go_backwards": True, **DROPOUTS},
}


def check_gradients(layer, num_states, **arguments):
    """Compares the derivatives along a random direction of every input, state and weight."""
    rng = np.random.default_rng(0)
    layer.build((None, None, FEATURES))
    layer.set_weights([rng.normal(scale=0.7, size=w.shape) for w in layer.weights])
    x = rng.normal(size=(BATCH, TIME, FEATURES))
    results = layer(keras.Input(x.shape[1:], batch_size=BATCH, dtype="float64"))
    shapes = [result.shape for result in keras.tree.flatten(results)]
    states = [rng.normal(size=shape) for shape in shapes[1:]]
    factors = [rng.normal(size=shape) for shape in shapes]
    seeds = [v for v in layer.variables if v.name == "seed_generator_state"]
    assert len(states) == num_states

    def loss(x, *states):
        for seed in seeds:  # the same masks at every evaluation
            seed.assign([1, 2])
        results = layer(x, initial_state=list(states), training=True, **arguments)
        results = keras.tree.flatten(results)
        return sum(keras.ops.sum(r * f) for r, f in zip(results, factors, strict=True))

    assert_gradients(loss, [x, *states], layer.trainable_weights)


def check_gradients_of(cell, **options):
    layer_class, own = CELLS[cell]
    own = {"return_sequences": True, "return_state": True, "dtype": "float64", **own}
    layer = layer_class(UNITS, **own, **options)
    check_gradients(layer, len(layer.state_size), mask=MASK, reset=RESET)


@pytest.mark.parametrize(
    ("cell", "option"),
    [
        *itertools.product(CELLS, ("all",)),
        *some_of(
            [
                *itertools.product(CELLS, ("plain", "no_bias")),
                *itertools.product(("jordan", "lstm"), ("layer_norm",)),
                *itertools.product(("lstm-peephole", "gru-after"), ("all_dropouts",)),
                *itertools.product(("elman", "gru"), ("backwards",)),
            ]
        ),
    ],
)
def test_gradients_equal_finite_differences(cell, option):
    """Every cell as it is, without biases and with everything; each option by itself with two.

    The engine, which takes what is not normalised, has each of its cells with every dropout in
    `test_fused.py`.
    """
    check_gradients_of(cell, **OPTIONS[option])


@pytest.mark.parametrize("cell", some_of(["jordan", "gru"], 1))
@pytest.mark.parametrize("rate", some_of(DROPOUTS, 0))
def test_gradients_with_one_dropout(cell, rate):
    """Jordan's network feeds back its output, and the GRU a gated state."""
    check_gradients_of(cell, **{rate: DROPOUTS[rate]})


@pytest.mark.parametrize(
    ("layer_class", "options", "num_states"),
    some_of(
        [
            (GRU, {}, 2),
            (GRU, {"reset_after": True}, 2),
            (LSTM, {"peephole": True, "layer_norm": True}, 4),
        ],
        2,
    ),
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


def test_gradients_of_a_deep_network_both_ways(tf):
    from rnnapps.models import SequenceEncoder  # not above: models are for TensorFlow

    encoder = SequenceEncoder("lstm", UNITS, num_layers=2, dtype="float64")
    check_gradients(encoder, 8, mask=MASK)


def test_gradients_of_the_constants():
    layer = RNN(LSTMCell(UNITS, peephole=True, dtype="float64"), dtype="float64")
    x, k = np.ones((BATCH, TIME, FEATURES)), np.linspace(-1, 1, BATCH)[:, None]
    layer.build(x.shape, constants_shape=[k.shape])
    assert_gradients(lambda k: keras.ops.sum(layer(x, constants=[k])), [k])


def test_a_reset_lets_no_gradient_through():
    layer = RNN(GRUCell(UNITS), return_sequences=True)
    x = np.random.default_rng(0).normal(size=(1, TIME, FEATURES)).astype("float32")
    layer.build(x.shape)

    def last(x):
        return keras.ops.sum(layer(x, reset=np.array([[0, 0, 1, 0]], bool))[:, -1])

    _, (gradient,) = with_gradients(last)(x)
    np.testing.assert_array_equal(np.any(gradient[0] != 0, axis=-1), [False, False, True, True])
