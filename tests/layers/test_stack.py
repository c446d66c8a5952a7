"""Stacks: what a deep or bidirectional network is, done by hand."""

import keras
import numpy as np
import pytest

from rnnapps.layers import GRU, LSTM, Elman, recurrent_stack

X = np.random.default_rng(0).normal(size=(3, 5, 2)).astype("float32")
MASK = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], bool)


@pytest.mark.parametrize(
    ("cell", "layer_class", "states"), [("elman", Elman, 1), ("lstm", LSTM, 2), ("gru", GRU, 1)]
)
def test_a_stack_is_made_of_layers_of_the_cell(cell, layer_class, states):
    stack = recurrent_stack(cell, 4, num_layers=3)
    assert [type(layer) for layer in stack] == [layer_class] * 3
    assert len({layer.name for layer in stack}) == 3
    outputs = X
    for layer in stack:
        outputs, *finals = layer(outputs, mask=MASK)
        assert outputs.shape == (3, 5, 4)
        assert [final.shape for final in finals] == [(3, 4)] * states


def test_each_layer_reads_the_one_below():
    """`h^i_t = tanh(W^i h^{i-1}_t + U^i h^i_{t-1} + b^i)`, step by step in NumPy."""
    stack = recurrent_stack("elman", 4, num_layers=3)
    rng = np.random.default_rng(1)
    for depth, layer in enumerate(stack):
        layer.build((None, None, 4 if depth else 2))
        layer.set_weights([rng.normal(scale=0.7, size=w.shape) for w in layer.weights])
    h = [np.zeros((3, 4)) for _ in stack]
    expected = np.zeros((3, 5, 4))
    for t in range(5):
        below, valid = X[:, t], MASK[:, t, None]
        for depth, layer in enumerate(stack):
            W, U, b = layer.get_weights()
            h[depth] = np.where(valid, np.tanh(below @ W + h[depth] @ U + b), h[depth])
            below = h[depth]
        expected[:, t] = valid * below
    outputs = X
    for layer, final in zip(stack, h, strict=True):
        outputs, state = layer(outputs, mask=MASK)
        np.testing.assert_allclose(state, final, atol=1e-6)
    np.testing.assert_allclose(outputs, expected, atol=1e-6)


@pytest.mark.parametrize("cell", ["elman", "jordan", "lstm", "gru"])
def test_both_directions_by_hand(cell):
    options = {"output_units": 2} if cell == "jordan" else {}
    (layer,) = recurrent_stack(cell, 4, bidirectional=True, **options)
    outputs, *states = layer(X, mask=MASK)
    for row in range(len(X)):
        valid = X[row : row + 1, MASK[row]]
        forward, *forward_states = layer.forward_layer(valid)
        backward, *backward_states = layer.backward_layer(valid)
        expected = np.concatenate([forward, np.flip(backward, axis=1)], axis=-1)
        np.testing.assert_allclose(outputs[row][MASK[row]], expected[0], atol=1e-6)
        np.testing.assert_array_equal(outputs[row][~MASK[row]], 0)
        for state, alone in zip(states, forward_states + backward_states, strict=True):
            np.testing.assert_allclose(state[row], alone[0], atol=1e-6)


def test_options_reach_every_layer():
    stack = recurrent_stack(
        "lstm", 4, 2, bidirectional=True, peephole=True, layer_norm=True, dtype="mixed_bfloat16"
    )
    for layer in stack:
        assert layer.compute_dtype == "bfloat16"
        for run in (layer.forward_layer, layer.backward_layer):
            assert run.cell.peephole and run.cell.layer_norm
            assert run.compute_dtype == "bfloat16"


def test_no_two_layers_draw_the_same():
    initialiser = keras.initializers.RandomNormal()  # one object draws one value, again and again
    stack = recurrent_stack(
        "elman", 4, 2, bidirectional=True, dropout=0.5, seed=9, kernel_initializer=initialiser
    )
    outputs = np.ones((1, 2, 8), "float32")
    for layer in stack:
        layer.build(outputs.shape)
    runs = [run for layer in stack for run in (layer.forward_layer, layer.backward_layer)]
    kernels = {np.array(run.cell.kernel).tobytes() for run in runs}
    masks = {np.array(run.cell.get_dropout_mask(np.ones((1, 99)))).tobytes() for run in runs}
    assert len(kernels) == len(masks) == len({run.cell.seed for run in runs}) == 4


@pytest.mark.parametrize(
    "option", [{"go_backwards": True}, {"name": "deep"}, {"return_sequences": False}]
)
def test_what_the_stack_sets_itself_is_refused(option):
    ((name, value),) = option.items()
    with pytest.raises(ValueError, match=f"Received: {name}={value!r}"):
        recurrent_stack("gru", 4, **option)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("rnn", 4), "Received: cell='rnn'"), (("gru", 4, 0), "Received: num_layers=0")],
)
def test_impossible_stacks_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        recurrent_stack(*arguments)
