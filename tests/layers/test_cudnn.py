"""What goes to cuDNN on a GPU, with stock Keras on the CPU standing in for it."""

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf

from rnnapps.layers import GRU, LSTM, Elman, cudnn

SEQUENCES = np.random.default_rng(3).normal(size=(3, 5, 4)).astype("float32")
MASKS = {
    "padded at the end": ([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0]], True),
    "padded at the start": ([[1, 1, 1, 1, 1], [0, 1, 1, 1, 1], [1, 0, 0, 0, 0]], False),
    "a hole": ([[1, 0, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1]], False),
    "an empty row": ([[1, 1, 1, 1, 1], [0, 0, 0, 0, 0], [1, 1, 1, 0, 0]], False),
}
MASKS = {name: (np.array(mask, bool), fits) for name, (mask, fits) in MASKS.items()}


@pytest.fixture
def taken(monkeypatch):
    """Puts a GPU here; returns the list of the batches that went to it."""
    taken = []

    def kernels(layer_class):
        def run(inputs, *given, return_sequences, go_backwards):
            *states, mask, kernel, recurrent_kernel, bias, activation, gates = given
            assert return_sequences and (activation, gates) == (
                keras.activations.tanh,
                keras.activations.sigmoid,
            )
            taken.append(mask)
            layer = layer_class(
                recurrent_kernel.shape[0],
                return_sequences=True,
                return_state=True,
                go_backwards=go_backwards,
                zero_output_for_mask=True,
                use_cudnn=False,
            )
            layer.build(inputs.shape)
            # Called with the weights as they are, so that gradients reach them.
            weights = zip(layer.cell.weights, (kernel, recurrent_kernel, bias), strict=True)
            with keras.StatelessScope(state_mapping=list(weights)):
                outputs, *states = layer(inputs, initial_state=states, mask=mask)
            return states[0], outputs, states

        return run

    gpu = tf.config.LogicalDevice("/device:GPU:0", "GPU")
    monkeypatch.setattr(cudnn.tf.config, "list_logical_devices", lambda kind: [gpu])
    monkeypatch.setattr(cudnn.backend, "lstm", kernels(keras.layers.LSTM))
    monkeypatch.setattr(cudnn.backend, "gru", kernels(keras.layers.GRU))
    return taken


def both(layer_class, taken, mask=None, **options):
    """Calls a layer and its reference; returns how often cuDNN was asked."""
    layer = layer_class(6, return_sequences=True, return_state=True, **options)
    reference = layer_class.from_config({**layer.get_config(), "implementation": "reference"})
    results = []
    for each in (layer, reference):
        each.build(SEQUENCES.shape)
        each.set_weights(layer.get_weights())
        with tf.GradientTape() as tape:
            outputs = each(SEQUENCES, mask=mask, training=True)
            loss = sum(tf.reduce_sum(tf.sin(output)) for output in outputs)
        variables = [weight.value for weight in each.trainable_weights]
        results.append([*outputs, *tape.gradient(loss, variables)])
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    return len(taken)


@pytest.mark.parametrize(
    ("layer_class", "options", "go_backwards", "name"),
    [
        (LSTM, {}, True, "padded at the end"),
        (GRU, {"reset_after": True}, False, "padded at the end"),
        *((LSTM, {}, False, name) for name in MASKS),
        *((GRU, {"reset_after": True}, True, name) for name in MASKS),
    ],
)
def test_masks_that_do_not_fit_never_reach_it(layer_class, options, go_backwards, name, taken):
    """Every mask with every layer; both ways where cuDNN takes it."""
    mask, fits = MASKS[name]
    assert bool(cudnn.fits(tf.constant(SEQUENCES), tf.constant(mask))) == fits
    assert both(layer_class, taken, mask, go_backwards=go_backwards, **options) == fits


def test_without_a_mask(taken):
    assert LSTM(2).implementation_used == "cudnn"
    assert both(LSTM, taken) == 1
    assert not cudnn.fits(tf.zeros((2, 0, 3)), None)
    assert not cudnn.fits(tf.zeros((0, 4, 3)), None)


def test_stock_keras_takes_what_it_is_given():
    weights = ["mask", "kernel", "recurrent_kernel", "bias", "activation", "recurrent_activation"]
    for kernels, states in (
        (cudnn.backend.lstm, ["initial_state_h", "initial_state_c"]),
        (cudnn.backend.gru, ["initial_state"]),
    ):
        names = list(inspect.signature(kernels).parameters)
        assert names[: len(states) + 7] == ["inputs", *states, *weights]
        assert {"return_sequences", "go_backwards"} < set(names)


@pytest.mark.parametrize(
    "layer",
    [
        Elman(2),
        LSTM(2, peephole=True),
        LSTM(2, use_bias=False),
        LSTM(2, implementation="fused"),
        GRU(2, reset_after=False),
        LSTM(2, dtype="mixed_bfloat16"),
        LSTM(2, dtype="float64"),
    ],
    ids=lambda layer: layer.name,
)
def test_equations_that_it_does_not_have(layer, taken):
    assert layer.implementation_used == "fused"
    layer(SEQUENCES, training=True)
    assert not taken


def test_what_is_asked_at_each_call(taken, monkeypatch):
    def lstm(inputs, h, c, *_, **options):
        taken.append(inputs)
        return h, tf.repeat(h[:, None], inputs.shape[1], axis=1), [h, c]

    monkeypatch.setattr(cudnn.backend, "lstm", lstm)
    layer = LSTM(2, recurrent_dropout=0.5)
    layer(SEQUENCES, training=True)
    layer = LSTM(2)
    layer(SEQUENCES, reset=np.eye(3, 5, dtype=bool), training=True)
    layer(SEQUENCES)  # what is served may run where there is no GPU
    tf.function(lambda x: layer(x, training=True), jit_compile=True)(SEQUENCES)
    assert not taken
    tf.function(lambda x: layer(x, training=True))(SEQUENCES)
    assert len(taken) == 1
