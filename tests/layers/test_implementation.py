"""The engine and the cell in a loop are the same layer."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from rnnapps.layers import GRU, LSTM, Elman, Jordan, recurrent_stack
from tests.layers.backends import with_gradients

ROOT = str(Path(__file__).parents[2])
BATCH, TIME, FEATURES, UNITS = 4, 9, 3, 5
LAYERS = [
    pytest.param(Elman, {}, id="elman"),
    pytest.param(Elman, {"activation": "relu"}, id="relu"),
    pytest.param(LSTM, {}, id="lstm"),
    pytest.param(LSTM, {"peephole": True, "peephole_initializer": "random_normal"}, id="peephole"),
    pytest.param(GRU, {}, id="gru"),
    pytest.param(GRU, {"reset_after": True, "use_bias": False}, id="gru_after"),
]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(BATCH, TIME, FEATURES)).astype("float32")
MASK = np.arange(TIME) < np.array([[9], [4], [0], [1]])
HOLES = RNG.random((BATCH, TIME)) < 0.6
RESET = RNG.random((BATCH, TIME)) < 0.3


def results_and_gradients(layer, training=True, **arguments):
    def loss(x):
        results = keras.tree.flatten(layer(x, training=training, **arguments))
        return sum(keras.ops.sum(keras.ops.sin(3 * result)) for result in results), results

    (_, results), gradients = with_gradients(loss, layer.trainable_variables)(X)
    return results + gradients


STATES = {"return_sequences": True, "return_state": True}, {"mask": MASK}
BACKWARDS = {"return_state": True, "go_backwards": True}, {"mask": HOLES, "reset": RESET}
RATES = dict.fromkeys(("dropout", "recurrent_dropout", "recurrent_weight_dropout"), 0.4)


@pytest.mark.parametrize(
    ("layer_class", "options", "more", "arguments"),
    [
        pytest.param(*LAYERS[layer].values, *case, id=f"{LAYERS[layer].id}-{name}")
        for name, case, layers in (
            ("backwards", BACKWARDS, range(6)),
            ("states", STATES, (0, 2, 4)),
            ("dropout", (RATES, {}), (0, 2, 5)),
        )
        for layer in layers
    ],
)
def test_both_give_the_same(tf, layer_class, options, more, arguments):
    """The hardest case of every layer, the others of each class.

    That the engine is right in every combination, `test_fused.py` says.
    """
    auto = layer_class(UNITS, seed=7, **options, **more)
    reference = layer_class(UNITS, seed=7, implementation="reference", **options, **more)
    auto.build(X.shape)
    reference.build(X.shape)
    auto.set_weights(reference.get_weights())
    assert auto.implementation_used == "fused"
    for training in (True, False):
        pairs = zip(
            results_and_gradients(auto, training, **arguments),
            results_and_gradients(reference, training, **arguments),
            strict=True,
        )
        for one, other in pairs:
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (LSTM(2, layer_norm=True), "layer normalisation"),
        (LSTM(2, activation="relu"), "activation"),
        (GRU(2, recurrent_activation="hard_sigmoid"), "activation"),
        (Jordan(2, 2), "JordanCell"),
        (GRU(2, implementation="reference"), "asked for"),
    ],
)
def test_a_layer_says_why_it_takes_the_reference(tf, layer, reason):
    assert layer.implementation_used.startswith("reference")
    assert reason in layer.implementation_used
    assert layer(X).shape == (BATCH, 2)


def test_the_engine_is_for_tensorflow(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    assert LSTM(2).implementation_used == "reference (the engine is for the TensorFlow backend)"
    with pytest.raises(ValueError, match="TensorFlow backend"):
        LSTM(2, implementation="fused")


def test_what_cannot_be_fused_is_refused(tf):
    with pytest.raises(ValueError, match="layer normalisation"):
        LSTM(2, layer_norm=True, implementation="fused")


def test_an_unknown_implementation_is_refused():
    with pytest.raises(ValueError, match="implementation='quick'"):
        LSTM(2, implementation="quick")


@pytest.mark.parametrize(("implementation", "compiles"), [("auto", False), ("fused", True)])
def test_exports_compile_only_if_asked_to(tf, tmp_path, implementation, compiles):
    model = keras.Sequential(
        [keras.Input((None, FEATURES)), LSTM(UNITS, implementation=implementation)]
    )
    model.compile("sgd", "mse")
    model.fit(X, np.zeros((BATCH, UNITS)), verbose=0)
    expected = model.predict(X, verbose=0)
    model.export(tmp_path / "export", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "export")
    served = loaded.signatures["serving_default"]
    np.testing.assert_allclose(loaded.serve(X), expected, atol=1e-6)
    functions = served.graph.as_graph_def().library.function
    assert any(function.attr["_XlaMustCompile"].b for function in functions) == compiles


def test_mirrored_replicas_train_like_one_device(tf):
    script = """
import keras, numpy as np, tensorflow as tf
from rnnapps.layers import GRU, LSTM, Bidirectional

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
x, y = np.random.default_rng(0).normal(size=(16, 9, 3)), np.ones((16, 2))

def trained(strategy):
    with strategy.scope():
        keras.utils.set_random_seed(1)
        model = keras.Sequential([Bidirectional(LSTM(5, return_sequences=True)), GRU(2)])
        model.compile(keras.optimizers.SGD(0.1), "mse")
    model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return model.get_weights()

one = trained(tf.distribute.OneDeviceStrategy("CPU:0"))
two = trained(tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]))
for single, mirrored in zip(one, two, strict=True):
    np.testing.assert_allclose(single, mirrored, atol=1e-6)
"""
    # In a process of its own, because the devices are fixed once they have been used.
    environment = {**os.environ, "PYTHONPATH": ROOT}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


def test_mixed_precision_and_accumulated_gradients_train():
    keras.utils.set_random_seed(0)
    layers = recurrent_stack("gru", UNITS, num_layers=2, dtype="mixed_bfloat16")
    inputs = keras.Input((None, FEATURES))
    outputs = layers[1](layers[0](inputs)[0])[0]
    model = keras.Model(inputs, keras.layers.GlobalMaxPooling1D()(outputs))
    model.compile(keras.optimizers.Adam(0.05, gradient_accumulation_steps=2), "mse")
    before = model.evaluate(X, np.ones((BATCH, UNITS)), verbose=0)
    model.fit(X, np.ones((BATCH, UNITS)), batch_size=2, epochs=20, verbose=0)
    assert model.evaluate(X, np.ones((BATCH, UNITS)), verbose=0) < before / 2
