"""What the layers use of Keras that has no public name exists and does what they count on."""

import keras
import numpy as np
import pytest
from keras.src import backend
from keras.src.layers.rnn.dropout_rnn_cell import DropoutRNNCell
from keras.src.saving import serialization_lib

from rnnapps.layers import ElmanCell

BACKEND = keras.backend.backend()

X = np.random.default_rng(0).normal(size=(2, 3, 1)).astype("float32")
MASK = np.array([[1, 1, 0], [0, 0, 0]], bool)


def add_up(inputs, states):
    (total,) = states
    return inputs + total, [inputs + total]


@pytest.mark.parametrize("return_all_outputs", [False, True])
def test_the_loop_over_the_steps(return_all_outputs):
    last, outputs, states = backend.rnn(
        add_up,
        keras.ops.convert_to_tensor(X),
        [keras.ops.ones((2, 1))],
        go_backwards=False,
        mask=keras.ops.convert_to_tensor(MASK),
        input_length=3,
        zero_output_for_mask=return_all_outputs,
        return_all_outputs=return_all_outputs,
    )
    sums = 1 + np.cumsum(X, axis=1)
    np.testing.assert_allclose(states[0], [sums[0, 1], [1]], rtol=1e-6)
    if return_all_outputs:
        np.testing.assert_allclose(outputs, np.where(MASK[..., None], sums, 0), rtol=1e-6)
    elif BACKEND == "tensorflow":  # nothing is made of it elsewhere
        np.testing.assert_allclose(last, [sums[0, 1], [0]], rtol=1e-6)


def test_the_loop_runs_backwards():
    _, outputs, _ = backend.rnn(
        add_up, keras.ops.convert_to_tensor(X), [keras.ops.zeros((2, 1))], go_backwards=True
    )
    np.testing.assert_allclose(outputs, np.cumsum(X[:, ::-1], axis=1), rtol=1e-6)


def test_cells_keep_their_masks_until_they_are_told_to_forget():
    cell = ElmanCell(50, dropout=0.5, recurrent_dropout=0.5)
    cell.build((None, 50))
    assert isinstance(cell, DropoutRNNCell)
    ones = keras.ops.ones((2, 50))
    draws = [(cell.get_dropout_mask, cell.reset_dropout_mask)]
    draws += [(cell.get_recurrent_dropout_mask, cell.reset_recurrent_dropout_mask)]
    for draw, forget in draws:
        first = draw(ones)
        assert draw(ones) is first
        forget()
        assert np.any(draw(ones) != first)


@pytest.mark.parametrize("stacked", [False, True])
def test_layers_draw_and_forget_the_masks_of_their_cells(stacked):
    cells = [ElmanCell(4, dropout=0.5), ElmanCell(3, dropout=0.5)]
    cell = keras.layers.StackedRNNCells(cells) if stacked else cells[0]
    layer = keras.layers.RNN(cell)
    layer.build(X.shape)
    state = [keras.ops.zeros((2, size)) for size in (4, 3)]
    layer._maybe_config_dropout_masks(cell, keras.ops.convert_to_tensor(X[:, 0]), state)
    drawn = [one._dropout_mask is not None for one in cells]
    assert drawn == [True, stacked]
    layer._maybe_reset_dropout_masks(cell)
    assert [one._dropout_mask for one in cells] == [None, None]


def test_a_layer_knows_whether_its_call_has_a_training_argument():
    assert ElmanCell(2)._call_has_training_arg
    assert not keras.layers.Flatten()._call_has_training_arg


def test_a_mask_is_attached_to_a_tensor():
    masked = keras.layers.Masking()(np.where(MASK[..., None], X, 0))
    np.testing.assert_array_equal(masked._keras_mask, MASK)
    np.testing.assert_array_equal(backend.get_keras_mask(masked), MASK)
    assert backend.get_keras_mask(keras.ops.ones((2, 3))) is None


def test_an_object_of_a_file_is_found_by_its_number():
    layer = ElmanCell(2)
    config = {**keras.saving.serialize_keras_object(layer), "shared_object_id": 1}
    with serialization_lib.ObjectSharingScope():
        serialization_lib.record_object_after_deserialization(layer, 1)
        assert keras.saving.deserialize_keras_object(config) is layer
    assert keras.saving.deserialize_keras_object(config) is not layer
