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
def test_each_layer_reads_the_one_below(cell, layer_class, states):
    stack = recurrent_stack(cell, 4, num_layers=3)
    assert [type(layer) for layer in stack] == [layer_class] * 3
    outputs, mask = X, MASK
    for layer in stack:
        outputs, *finals = layer(outputs, mask=mask)
        assert outputs.shape == (3, 5, 4)
        assert len(finals) == states
    assert len({layer.name for layer in stack}) == 3


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
    kernels = {run.cell.kernel.numpy().tobytes() for run in runs}
    masks = {np.array(run.cell.get_dropout_mask(np.ones((1, 99)))).tobytes() for run in runs}
    assert len(kernels) == len(masks) == len({run.cell.seed for run in runs}) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("rnn", 4), "Received: cell='rnn'"), (("gru", 4, 0), "Received: num_layers=0")],
)
def test_impossible_stacks_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        recurrent_stack(*arguments)
