"""Every layer with every option: configuration, `.keras` file and SavedModel."""

import inspect
import json

import keras
import numpy as np
import pytest

from rnnapps.layers import (
    GRU,
    LSTM,
    RNN,
    Bidirectional,
    Elman,
    ElmanCell,
    GRUCell,
    Jordan,
    JordanCell,
    LSTMCell,
    recurrent_stack,
)
from rnnapps.layers.cells import RecurrentCell
from rnnapps.layers.recurrent import RecurrentLayer
from tests.layers.backends import some_of

BATCH, TIME, FEATURES, UNITS = 3, 4, 2, 3
X = np.random.default_rng(0).normal(size=(BATCH, TIME, FEATURES)).astype("float32")
CLASSES = {Elman: ElmanCell, Jordan: JordanCell, LSTM: LSTMCell, GRU: GRUCell}
NEEDED = {Jordan: {"output_units": 2}}

CELL_OPTIONS = [
    {},
    {"activation": "relu", "use_bias": False, "trainable": False},
    {
        "kernel_initializer": keras.initializers.RandomNormal(stddev=0.3, seed=5),
        "recurrent_initializer": "identity",
        "bias_initializer": "ones",
        "layer_norm": True,
        "dtype": "mixed_float16",
    },
    {
        "kernel_regularizer": keras.regularizers.L2(0.1),
        "recurrent_regularizer": "l1",
        "bias_regularizer": keras.regularizers.L1L2(0.1, 0.2),
        "kernel_constraint": keras.constraints.MaxNorm(2.0),
        "recurrent_constraint": "unit_norm",
        "bias_constraint": "non_neg",
    },
    {
        "dropout": 0.2,
        "recurrent_dropout": 0.3,
        "recurrent_weight_dropout": 0.4,
        "seed": 11,
    },
]
OWN_OPTIONS = {
    Elman: [],
    Jordan: [
        {"output_units": 4, "output_activation": "softmax", "output_initializer": "random_normal"}
    ],
    LSTM: [
        {
            "recurrent_activation": "hard_sigmoid",
            "unit_forget_bias": 2.0,
            "peephole": True,
            "peephole_initializer": "ones",
        }
    ],
    GRU: [{"recurrent_activation": "hard_sigmoid", "reset_after": True}],
}
LAYER_OPTIONS = [
    {"return_sequences": True, "name": "memory"},
    {"return_sequences": True, "return_state": True, "go_backwards": True},
    {"return_state": True, "activity_regularizer": keras.regularizers.L2(0.3)},
    {"stateful": True},
    {"implementation": "reference"},
]

BIDIRECTIONAL_OPTIONS = [
    {"merge_mode": mode, "activity_regularizer": "l2"} for mode in ("sum", "ave", "mul", None)
]


@keras.saving.register_keras_serializable(package="tests.round_trips")
class LeakyCell(keras.layers.Layer):
    """A cell of a user: its state leaks, and is returned as it is."""

    def __init__(self, units, leak=0.1, **kwargs):
        super().__init__(**kwargs)
        self.units, self.leak = units, leak
        self.state_size = units

    def build(self, input_shape):
        self.kernel = self.add_weight(shape=(input_shape[-1], self.units), name="kernel")

    def call(self, inputs, states):
        h = (1 - self.leak) * states[0] + keras.ops.matmul(inputs, self.kernel)
        return h, h

    def get_config(self):
        return {**super().get_config(), "units": self.units, "leak": self.leak}


def options_of(layer_class):
    return [
        {**NEEDED.get(layer_class, {}), **options}
        for options in CELL_OPTIONS + OWN_OPTIONS[layer_class]
    ]


# Each place puts layers with the given options behind the input, and yields what they return.


def alone(layer_class, inputs, choices):
    for options in choices:
        yield layer_class(UNITS, **options)(inputs)


def in_rnn(wrapper):
    def build(layer_class, inputs, choices):
        for options in choices:
            cell = CLASSES[layer_class](UNITS, **options)
            yield wrapper(cell, dtype=cell.dtype_policy)(inputs)

    return build


def in_stacked_cells(layer_class, inputs, choices):
    for options in choices:
        cells = [CLASSES[layer_class](size, **options) for size in (UNITS, 2)]
        dtype = cells[0].dtype_policy
        yield RNN(keras.layers.StackedRNNCells(cells, dtype=dtype), dtype=dtype)(inputs)


def in_bidirectional(wrapper):
    def build(layer_class, inputs, choices):
        for options in choices:
            layer = layer_class(UNITS, return_sequences=True, **options)
            yield wrapper(layer, dtype=layer.dtype_policy)(inputs)

    return build


def in_a_stack(layer_class, inputs, choices):
    for options in choices:
        outputs = inputs
        for layer in recurrent_stack(layer_class.__name__.lower(), UNITS, 2, True, **options):
            outputs, *states = layer(outputs)
        yield [outputs, *states]


def with_initial_states(layer_class, inputs, choices):
    for options in choices:
        reader = layer_class(UNITS, return_state=True, **options)
        writer = layer_class(UNITS, return_sequences=True, **options)
        _, *states = reader(inputs)
        yield writer(keras.layers.Masking()(inputs), initial_state=states)


PLACES = {
    "alone": alone,
    "rnn": in_rnn(RNN),
    "stock_rnn": in_rnn(keras.layers.RNN),
    "stacked_cells": in_stacked_cells,
    "bidirectional": in_bidirectional(Bidirectional),
    "stock_bidirectional": in_bidirectional(keras.layers.Bidirectional),
    "stack": in_a_stack,
    "initial_states": with_initial_states,
}


def as_json(config):
    """A configuration as it is written: tuples are lists there."""
    return json.dumps(config, sort_keys=True)


def assert_close(actual, expected, atol):
    for one, other in zip(keras.tree.flatten(actual), keras.tree.flatten(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=atol)


def start_again(model):
    for layer in model.layers:
        if getattr(layer, "stateful", False):
            layer.reset_state()


@pytest.mark.parametrize(
    ("place", "layer_class"),
    [
        *some_of((("alone", layer_class) for layer_class in CLASSES), 2),
        ("rnn", Elman),
        *some_of([("stock_rnn", Jordan)]),
        ("stacked_cells", LSTM),
        ("bidirectional", GRU),
        *some_of([("stock_bidirectional", Elman), ("stack", Jordan)]),
        ("initial_states", LSTM),
        *some_of([("initial_states", Jordan), ("stacked_cells", GRU), ("bidirectional", LSTM)]),
    ],
)
def test_every_option_survives(place, layer_class, tmp_path):
    """Of every layer alone, and in every place, which knows no layers, of one or two."""
    choices = options_of(layer_class)
    if place == "alone":
        choices += [{**NEEDED.get(layer_class, {}), **options} for options in LAYER_OPTIONS]
    inputs = keras.Input((None, FEATURES), batch_size=BATCH)
    assert_survives(
        keras.Model(inputs, list(PLACES[place](layer_class, inputs, choices))), tmp_path
    )


@pytest.mark.parametrize("make_cell", [lambda: GRUCell(UNITS), lambda: LeakyCell(UNITS, leak=0.3)])
@pytest.mark.parametrize("stacked", [False, True])
def test_every_option_of_rnn_survives(make_cell, stacked, tmp_path):
    inputs = keras.Input((None, FEATURES), batch_size=BATCH)
    results = []
    for options in LAYER_OPTIONS:
        if "implementation" in options:  # of the layers with a cell of their own
            continue
        cell = make_cell()
        if stacked:
            cell = keras.layers.StackedRNNCells([cell, make_cell()])
        results.append(RNN(cell, **options)(inputs))
    assert_survives(keras.Model(inputs, results), tmp_path)


def test_every_option_of_bidirectional_survives(tmp_path):
    inputs = keras.Input((None, FEATURES), batch_size=BATCH)
    results = []
    for options in BIDIRECTIONAL_OPTIONS:
        for chosen in LAYER_OPTIONS:
            layer = LSTM(UNITS, **{**chosen, "name": None, "go_backwards": False})
            results.append(Bidirectional(layer, **options)(inputs))
    forward, backward = LSTM(UNITS), LSTM(UNITS, go_backwards=True, peephole=True)
    results.append(Bidirectional(forward, backward_layer=backward)(inputs))
    assert_survives(keras.Model(inputs, results), tmp_path)


def assert_survives(model, tmp_path):
    """The configuration and the `.keras` file keep the options, the results and the penalties."""
    for layer in model.layers:
        config = layer.get_config()
        assert type(layer).from_config(layer.get_config()).get_config() == config
    expected, penalties = model(X), [float(loss) for loss in model.losses]
    start_again(model)

    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for one, other in zip(loaded.layers, model.layers, strict=True):
        assert type(one) is type(other)
        assert as_json(one.get_config()) == as_json(other.get_config())
        assert [w.trainable for w in one.weights] == [w.trainable for w in other.weights]
    assert_close(loaded(X), expected, atol=0)
    assert [float(loss) for loss in loaded.losses] == penalties


@pytest.mark.parametrize("layer_class", CLASSES)
def test_saved_models_of_each_option_answer_alike(tf, layer_class, tmp_path):
    needed = NEEDED.get(layer_class, {})
    choices = options_of(layer_class) + [{**needed, **options} for options in LAYER_OPTIONS]
    inputs = keras.Input((None, FEATURES), batch_size=BATCH)
    results = keras.tree.flatten(list(alone(layer_class, inputs, choices)))
    model = keras.Model(inputs, results)
    first = model(X)
    start_again(model)
    model.export(tmp_path / "exported", verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    for one, other in zip(loaded.serve(X), first, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-3 if other.dtype == "float16" else 1e-5)


def test_saved_models_of_wrapped_layers_answer_alike(tf, tmp_path):
    """The LSTM stands for all: the wrappers are the same, and each option is tried above."""
    everything = {}
    for options in options_of(LSTM):
        everything.update(options)
    for name in ("trainable", "dtype", "use_bias"):
        del everything[name]
    inputs = keras.Input((None, FEATURES), batch_size=BATCH)
    places = ["stock_rnn", "initial_states", "stacked_cells", "stack"]
    outputs = [list(PLACES[place](LSTM, inputs, [everything])) for place in places]
    stateful = LSTM(UNITS, stateful=True, **everything)
    model = keras.Model(inputs, keras.tree.flatten([outputs, stateful(inputs)]))
    first, second = model(X), model(X)
    start_again(model)
    model.export(tmp_path / "exported", verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    assert_close(loaded.serve(X), first, atol=1e-5)
    assert_close(loaded.serve(X), second, atol=1e-5)
    assert np.any(first[-1] != second[-1])


def test_every_argument_is_tried_here():
    tried = {name for options in LAYER_OPTIONS + CELL_OPTIONS for name in options}
    for layer_class, cell_class in CLASSES.items():
        own = tried | {name for options in OWN_OPTIONS[layer_class] for name in options}
        arguments = set()
        for constructor in (RecurrentCell, cell_class, RecurrentLayer, layer_class):
            arguments |= set(inspect.signature(constructor.__init__).parameters)
        arguments -= {"self", "kwargs", "options"}
        assert arguments - {"units"} <= own
        assert arguments <= set(layer_class(2, **NEEDED.get(layer_class, {})).get_config())


@pytest.mark.parametrize(
    ("wrapper", "example", "tried"),
    [
        (RNN, RNN(ElmanCell(2)), LAYER_OPTIONS),
        (Bidirectional, Bidirectional(Elman(2)), BIDIRECTIONAL_OPTIONS),
    ],
)
def test_every_argument_of_the_wrappers_is_tried_here(wrapper, example, tried):
    arguments = set(inspect.signature(wrapper.__init__).parameters) | {"activity_regularizer"}
    arguments -= {"self", "kwargs", "weights"}  # `weights` are values, not configuration
    assert arguments <= set(example.get_config())
    wrapped = {"cell", "layer", "backward_layer"}
    assert arguments - wrapped <= {name for options in tried for name in options}
