"""Where states come from and go to: resets, stateful layers, stacks of cells, constants."""

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
from tests.layers.backends import BACKEND, some_of

BATCH, TIME, FEATURES, UNITS = 4, 6, 3, 5
LAYERS = some_of(
    [
        pytest.param(Elman, {}, id="elman"),
        pytest.param(Jordan, {"output_units": 4}, id="jordan"),
        pytest.param(LSTM, {"peephole": True}, id="lstm_peephole"),
        pytest.param(GRU, {"layer_norm": True}, id="gru_norm"),
        pytest.param(GRU, {"reset_after": True}, id="gru_after"),
    ],
    2,
)
X = np.random.default_rng(0).normal(size=(BATCH, TIME, FEATURES)).astype("float32")
MASK = np.array([[1, 0, 1, 1, 0, 1], [0, 0, 1, 0, 1, 0], [0] * 6, [1] * 6], bool)
RESET = np.array([[0, 0, 1, 0, 1, 0], [1, 0, 0, 0, 1, 0], [0, 1, 0, 0, 0, 0], [1] * 6], bool)


@keras.saving.register_keras_serializable(package="tests")
class WarmCell(ElmanCell):
    """A cell with an initial state of its own: ones."""

    def get_initial_state(self, batch_size=None):
        return [keras.ops.ones((batch_size, self.units), dtype=self.compute_dtype)]


def with_weights(layer, *shape, seed=3):
    layer.build(shape or (None, None, FEATURES))
    rng = np.random.default_rng(seed)
    weights = layer.get_weights()
    count = len(layer.trainable_weights)
    layer.set_weights(
        [rng.normal(scale=0.6, size=w.shape) for w in weights[:count]] + weights[count:]
    )
    return layer


def random_states(layer, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(BATCH, n)).astype("float32") for n in layer.state_size]


def assert_close(actual, expected):
    for one, other in zip(keras.tree.flatten(actual), keras.tree.flatten(expected), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


# Resets


@pytest.mark.parametrize(("layer_class", "options"), LAYERS)
@pytest.mark.parametrize("go_backwards", [False, True])
@pytest.mark.parametrize("mask", [None, MASK], ids=["all", "masked"])
def test_resets_cut_a_row_into_sequences(layer_class, options, go_backwards, mask):
    options = {"return_sequences": True, "return_state": True, **options}
    layer = with_weights(layer_class(UNITS, go_backwards=go_backwards, **options))
    single = with_weights(layer_class(UNITS, **options))  # in time order, a sequence at a time
    start = random_states(layer)
    outputs, *states = layer(X, initial_state=start, mask=mask, reset=RESET)
    valid = np.ones((BATCH, TIME), bool) if mask is None else mask
    order = slice(None, None, -1 if go_backwards else 1)
    for row in range(BATCH):
        seen = valid[row, order]
        steps, resets = X[row, order][seen], RESET[row, order][seen]
        np.testing.assert_array_equal(outputs[row][~seen], 0)
        current, expected = [state[row : row + 1] for state in start], []
        for step, restart in zip(steps, resets, strict=True):
            output, *current = single(step[None, None], initial_state=None if restart else current)
            expected.append(output[0, 0])
        if expected:
            np.testing.assert_allclose(outputs[row][seen], expected, atol=1e-6)
        assert_close([state[row] for state in states], [state[0] for state in current])


@pytest.mark.parametrize("jit_compile", [False, True])
def test_resets_in_graphs_of_unknown_length(tf, jit_compile):
    layer = with_weights(LSTM(UNITS, return_sequences=True, recurrent_weight_dropout=0.5))
    signature = [
        tf.TensorSpec([None, None, FEATURES]),
        tf.TensorSpec([None, None], tf.bool),
        tf.TensorSpec([None, None], tf.bool),
    ]

    @tf.function(input_signature=signature, jit_compile=jit_compile)
    def run(x, mask, reset):
        with tf.GradientTape() as tape:
            outputs = layer(x, mask=mask, reset=reset)
        return outputs, tape.gradient(outputs, layer.trainable_weights)

    outputs, gradients = run(X, MASK, RESET)
    np.testing.assert_allclose(outputs, layer(X, mask=MASK, reset=RESET), atol=1e-6)
    assert all(np.any(gradient) and np.all(np.isfinite(gradient)) for gradient in gradients)
    nothing, _ = run(X[:, :0], MASK[:, :0], RESET[:, :0])
    assert nothing.shape == (BATCH, 0, UNITS)


def test_resets_in_a_functional_model():
    layer = with_weights(GRU(UNITS))
    inputs, reset = keras.Input((None, FEATURES)), keras.Input((None,), dtype="bool")
    model = keras.Model([inputs, reset], layer(inputs, reset=reset))
    np.testing.assert_allclose(model([X, RESET]), layer(X, reset=RESET), atol=1e-6)


def test_a_reset_goes_to_the_initial_state_of_the_cell():
    layer = with_weights(RNN(WarmCell(UNITS), return_sequences=True))
    cold = random_states(layer)
    reset = np.zeros((BATCH, TIME), bool)
    reset[:, 2] = True
    outputs = layer(X, initial_state=cold, reset=reset)
    assert_close(outputs[:, 2:], layer(X[:, 2:]))
    assert_close(outputs[:, :2], layer(X[:, :2], initial_state=cold))


# Stateful layers


@pytest.mark.parametrize(("layer_class", "options"), LAYERS)
def test_stateful_halves_make_the_whole(layer_class, options):
    whole = with_weights(layer_class(UNITS, return_sequences=True, **options))
    halves = layer_class(UNITS, return_sequences=True, stateful=True, **options)
    halves.build((BATCH, None, FEATURES))
    for one, other in zip(halves.trainable_weights, whole.trainable_weights, strict=True):
        one.assign(other)
    parts = [halves(X[:, :2]), halves(X[:, :0]), halves(X[:, 2:])]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole(X), atol=1e-6)
    halves.reset_state()
    np.testing.assert_allclose(halves(X), whole(X), atol=1e-6)


@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize(
    "cells",
    [[ElmanCell(4)], [LSTMCell(4)], [GRUCell(4), LSTMCell(UNITS)]],
    ids=["one_state", "two_states", "two_cells"],
)
def test_resets_of_stacked_cells(cells, stateful):
    layer = RNN(
        keras.layers.StackedRNNCells(cells),
        return_sequences=True,
        return_state=True,
        stateful=stateful,
    )
    with_weights(layer, BATCH, None, FEATURES)
    reset = np.zeros((BATCH, TIME), bool)
    reset[:, 2] = True

    def run(x, **arguments):
        layer.reset_state()
        return layer(x, **arguments)

    for mask in (None, MASK[3:4].repeat(BATCH, axis=0)):
        outputs, *states = run(X, reset=reset, mask=mask)
        head, (tail, *expected) = run(X[:, :2])[0], run(X[:, 2:])
        assert_close(outputs, np.concatenate([head, tail], axis=1))
        assert_close(states, expected)
    masked, *_ = run(X, reset=RESET, mask=MASK)
    np.testing.assert_array_equal(masked[~MASK], 0)


class BareCell(ElmanCell):
    """A cell of a user, which returns its state as it is."""

    def call(self, inputs, states, training=False):
        h, _ = super().call(inputs, states, training=training)
        return h, h


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("batch", [BATCH, 1])
def test_a_cell_may_return_its_state_as_it_is(stacked, batch):
    cell, twin = BareCell(UNITS), ElmanCell(UNITS)
    layers = []
    for one in (cell, twin):
        one = keras.layers.StackedRNNCells([one]) if stacked else one
        layers.append(with_weights(RNN(one, return_sequences=True, return_state=True)))
    x, mask, reset = X[:batch], MASK[:batch], RESET[:batch]
    for arguments in ({}, {"mask": mask}, {"reset": reset}, {"mask": mask, "reset": reset}):
        actual, expected = (layer(x, **arguments) for layer in layers)
        assert_close(actual, expected)


def graphs(layer):
    """The graph of a layer, where there are graphs that change its state."""
    if BACKEND != "tensorflow":
        return []
    import tensorflow as tf

    return [tf.function(lambda x, **options: layer(x, **options))]


@pytest.mark.parametrize("wrap", [lambda cell: cell, lambda cell: [cell, GRUCell(2)]])
def test_a_failed_call_leaves_no_dropout_masks(wrap):
    """Masks drawn for another batch, or inside a graph that was given up, break later calls."""
    cell = LSTMCell(UNITS, dropout=0.5, recurrent_dropout=0.5, recurrent_weight_dropout=0.5)
    cells = wrap(cell)
    layer = RNN(keras.layers.StackedRNNCells(cells) if isinstance(cells, list) else cells)
    layer.build(X.shape)
    wrong = np.ones((BATCH, TIME, 1, 1), bool)  # a mask of two axes too many
    for call in (layer, *graphs(layer)):
        with pytest.raises(Exception, match="shape|rank|[Dd]imension|axes"):
            call(X, mask=wrong, training=True)
        assert np.all(np.isfinite(layer(X[:2], training=True)))


def test_reset_state_goes_to_the_initial_state_of_the_cell():
    layer = RNN(WarmCell(UNITS), stateful=True)
    first = layer(X)
    assert np.any(layer.states[0] != 1)
    layer.reset_state()
    np.testing.assert_array_equal(layer.states[0], 1)
    assert_close(layer(X), first)


def test_reset_state_works_on_stacked_cells():
    cells = [WarmCell(UNITS), LSTMCell(3)]
    layer = RNN(keras.layers.StackedRNNCells(cells), stateful=True, return_state=True)
    first = layer(X)
    again = layer(X)
    assert np.any(first[0] != again[0])
    layer.reset_state()
    warm, h, c = keras.tree.flatten(layer.states)
    np.testing.assert_array_equal(warm, 1)
    np.testing.assert_array_equal(h, 0)
    np.testing.assert_array_equal(c, 0)
    assert_close(layer(X), first)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_reset_state_works_on_stacks(bidirectional):
    stack = recurrent_stack("lstm", 4, 2, bidirectional, stateful=True)

    def run():
        outputs, states = X, []
        for layer in stack:
            outputs, *final = layer(outputs, mask=MASK)
            states.extend(final)
        return outputs, states

    first = run()
    assert np.any(first[0] != run()[0])
    for layer in stack:
        layer.reset_state()
    assert_close(run(), first)


def test_a_stateful_layer_knows_its_batch():
    layer = LSTM(UNITS, stateful=True)
    layer(X)
    with pytest.raises(ValueError, match="Received: a batch of 2"):
        layer(X[:2])
    with pytest.raises(ValueError, match="batch size must be static"):
        LSTM(UNITS, stateful=True).build((None, None, FEATURES))


# Cells in stacks


@pytest.mark.parametrize("wrapper", [keras.layers.RNN, RNN], ids=["stock", "ours"])
@pytest.mark.parametrize("go_backwards", [False, True])
def test_stacked_cells_are_layers_one_after_the_other(wrapper, go_backwards):
    cells = [GRUCell(4, layer_norm=True), LSTMCell(UNITS, peephole=True), JordanCell(3, 2)]
    stacked = wrapper(
        keras.layers.StackedRNNCells(cells),
        return_sequences=True,
        return_state=True,
        go_backwards=go_backwards,
    )
    with_weights(stacked)
    outputs, *states = stacked(X)
    values = X
    for n, cell in enumerate(cells):
        backwards = go_backwards and n == 0
        layer = RNN(cell, return_sequences=True, return_state=True, go_backwards=backwards)
        values, *final = layer(values)
        assert_close(states[n], final)
    assert_close(outputs, values)


@pytest.mark.parametrize("wrapper", [keras.layers.RNN, RNN], ids=["stock", "ours"])
def test_stacked_cells_take_resets_masks_and_dropout(wrapper):
    rates = {"dropout": 0.3, "recurrent_dropout": 0.3, "recurrent_weight_dropout": 0.3}
    cells = [GRUCell(4, seed=1, **rates), LSTMCell(UNITS, seed=2, **rates)]
    layer = with_weights(wrapper(keras.layers.StackedRNNCells(cells), return_sequences=True))
    first, second = (layer(X, mask=MASK, training=True) for _ in range(2))
    assert np.any(first != second)
    twins = [GRUCell(4), LSTMCell(UNITS)]
    twin = with_weights(RNN(keras.layers.StackedRNNCells(twins), return_sequences=True))
    at_inference = np.where(MASK[..., None], layer(X, mask=MASK), 0)  # stock repeats outputs
    assert_close(at_inference, twin(X, mask=MASK))
    if wrapper is RNN:
        outputs = layer(X, mask=MASK, reset=RESET)
        np.testing.assert_array_equal(outputs[~MASK], 0)
        assert_close(outputs[3, 2], layer(X[3:, 2:3])[0, 0])  # row 3 starts afresh at every step


# States that start another layer


def test_a_bidirectional_encoder_starts_a_decoder():
    encoder = Bidirectional(LSTM(UNITS, return_state=True))
    decoder = LSTM(2 * UNITS, return_sequences=True)
    source, target = keras.Input((None, FEATURES)), keras.Input((None, 2))
    _, h, c, h_back, c_back = encoder(keras.layers.Masking()(source))
    start = [keras.layers.Concatenate()(pair) for pair in ((h, h_back), (c, c_back))]
    model = keras.Model([source, target], decoder(target, initial_state=start))
    y = np.random.default_rng(1).normal(size=(BATCH, 4, 2)).astype("float32")
    x = np.where(MASK[..., None], X, 0)
    _, *states = encoder(x, mask=MASK)
    start = [np.concatenate(states[i::2], axis=-1) for i in range(2)]
    assert_close(model([x, y]), decoder(y, initial_state=start))
    assert_close(model([x, y])[2], decoder(y)[2])  # nothing was read: zeros


def test_bidirectional_takes_states_for_both_directions():
    for wrapper in (keras.layers.Bidirectional, Bidirectional):
        layer = wrapper(GRU(UNITS, return_sequences=True, return_state=True))
        forward, backward = layer.forward_layer, layer.backward_layer
        start = random_states(forward), random_states(backward, seed=2)
        outputs, *states = layer(X, initial_state=[*start[0], *start[1]], mask=MASK)
        one, *one_states = forward(X, initial_state=start[0], mask=MASK)
        other, *other_states = backward(X, initial_state=start[1], mask=MASK)
        assert_close(outputs, np.concatenate([one, np.flip(other, axis=1)], axis=-1))
        assert_close(states, one_states + other_states)


def pieces_of(row):
    """The steps of each sequence in a row: cut before each valid step that is reset."""
    pieces = [[]]
    for step in range(TIME):
        if MASK_OF_PIECES[row, step]:
            if RESET[row, step] and pieces[-1]:
                pieces.append([])
            pieces[-1].append(step)
    return [piece for piece in pieces if piece]


MASK_OF_PIECES = np.array([[1, 1, 1, 0, 1, 1], [0, 1, 1, 1, 0, 1], [1, 0, 0, 1, 1, 0], [1] * 6])
MASK_OF_PIECES = MASK_OF_PIECES.astype(bool)


@pytest.mark.parametrize(
    ("layer_class", "options", "merge_mode"),
    [
        *(pytest.param(*p.values, "concat", id=p.id, marks=p.marks) for p in LAYERS),
        *some_of([(LSTM, {}, mode) for mode in ("sum", "ave", "mul", None)], 3),
    ],
)
def test_no_sequence_of_a_row_sees_another_either_way(layer_class, options, merge_mode):
    """Every layer, and every way to merge what two runs return, whatever layer runs."""
    layer = Bidirectional(
        layer_class(UNITS, return_sequences=True, return_state=True, **options),
        merge_mode=merge_mode,
    )
    with_weights(layer)
    both = 2 if merge_mode is None else 1
    outputs = layer(X, mask=MASK_OF_PIECES, reset=RESET)
    states, outputs = outputs[both:], outputs[:both]
    half = len(states) // 2
    for row in range(BATCH):
        pieces = pieces_of(row)
        alone = [layer(X[row : row + 1, piece]) for piece in pieces]
        for piece, expected in zip(pieces, alone, strict=True):
            for output, value in zip(outputs, expected[:both], strict=True):
                np.testing.assert_allclose(np.array(output)[row, piece], value[0], atol=1e-6)
        ends = [*alone[-1][both : both + half], *alone[0][both + half :]]
        assert_close([state[row] for state in states], [end[0] for end in ends])


@pytest.mark.parametrize("jit_compile", [False, True])
def test_both_ways_take_resets_in_graphs_of_unknown_length(tf, jit_compile):
    layer = with_weights(Bidirectional(GRU(UNITS, return_sequences=True)))
    spec = tf.TensorSpec([None, None], tf.bool)
    signature = [tf.TensorSpec([None, None, FEATURES]), spec, spec]
    run = tf.function(
        lambda x, mask, reset: layer(x, mask=mask, reset=reset),
        input_signature=signature,
        jit_compile=jit_compile,
    )
    arguments = X, MASK_OF_PIECES, RESET
    expected = layer(X, mask=MASK_OF_PIECES, reset=RESET)
    np.testing.assert_allclose(run(*arguments), expected, atol=1e-6)
    assert run(*(a[:, :0] for a in arguments)).shape == (BATCH, 0, 2 * UNITS)
    assert_close(layer(X, reset=RESET), run(X, np.ones((BATCH, TIME), bool), RESET))


@pytest.mark.parametrize("merge_mode", some_of(["concat", "sum", "ave", "mul", None], 0, 4))
@pytest.mark.parametrize("return_sequences", [False, True])
@pytest.mark.parametrize("return_state", [False, True])
def test_output_shapes_of_both_ways_are_known_beforehand(
    merge_mode, return_sequences, return_state
):
    run = LSTM(UNITS, return_sequences=return_sequences, return_state=return_state)
    layer = Bidirectional(run, merge_mode=merge_mode)
    promised, results = layer.compute_output_shape(X.shape), layer(X)
    several = merge_mode is None or return_state
    assert tuple(promised) == (tuple(r.shape for r in results) if several else results.shape)


# Constants


def test_constants_stand_beside_the_inputs_of_both_directions(tmp_path):
    inputs, constant = keras.Input((None, FEATURES)), keras.Input((2,))
    layer = Bidirectional(LSTM(UNITS, return_sequences=True))
    outputs = layer(keras.layers.Masking()(inputs), constants=[constant])
    model = keras.Model([inputs, constant], outputs)
    x, k = np.where(MASK[..., None], X, 0), np.linspace(-1, 1, 2 * BATCH).reshape(BATCH, 2)
    x, k = x.astype("float32"), k.astype("float32")
    repeated = np.repeat(k[:, None], TIME, axis=1)
    assert_close(model([x, k]), layer(np.concatenate([x, repeated], axis=-1), mask=MASK))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded([x, k]), model([x, k]))


def test_input_dropout_covers_the_constants():
    layer = Elman(8, dropout=0.5, activation="linear", use_bias=False, seed=1)
    k = np.ones((BATCH, 8), "float32")
    layer.build((None, None, FEATURES), constants_shape=[k.shape])
    W = np.concatenate([np.zeros((FEATURES, 8)), np.eye(8)])
    layer.set_weights([W, np.zeros((8, 8))])
    assert set(np.unique(layer(X, constants=[k], training=True))) == {0.0, 2.0}


# Mistakes


@pytest.mark.parametrize("wrap", [lambda layer: layer, Bidirectional], ids=["one", "both"])
@pytest.mark.parametrize(
    ("inputs", "arguments", "message"),
    [
        (X[0], {}, r"received: \(6, 3\)"),
        (X, {"initial_state": [X[:, 0]]}, "as the cell has states, 2. Received: [01]"),
        (X, {"initial_state": [X[:, 0]] * 6}, "as the cell has states, 2. Received: [36]"),
        (X, {"constants": X[:, 0]}, r"list of tensors. Received: one tensor of shape \(4, 3\)"),
    ],
)
@pytest.mark.parametrize("build", [False, True])
def test_mistakes_are_told_plainly(wrap, inputs, arguments, message, build):
    layer = wrap(LSTM(UNITS))
    if build:
        layer.build(X.shape)
    with pytest.raises(ValueError, match=message):
        layer(inputs, **arguments)


def test_states_of_stacked_cells_come_as_promised_and_go_back_in():
    cells = [ElmanCell(4), LSTMCell(UNITS)]
    for stateful in (False, True):
        deep = keras.layers.StackedRNNCells(cells)
        layer = RNN(deep, return_state=True, stateful=stateful)
        promised = layer.compute_output_shape(X.shape)
        output, lower, (h, c) = layer(X)
        assert (output.shape, lower.shape, [h.shape, c.shape]) == tuple(promised)
        again = layer(X, initial_state=[lower, [h, c]])
        assert np.any(again[0] != output)
        assert_close(layer(X, initial_state=[lower, h, c]), again)


@pytest.mark.parametrize(("layer_class", "options"), LAYERS)
@pytest.mark.parametrize("go_backwards", [False, True])
def test_constants_stand_beside_every_input(layer_class, options, go_backwards):
    constants = [np.full((BATCH, 2), 0.5, "float32"), np.eye(BATCH, dtype="float32")]
    layer = layer_class(UNITS, return_sequences=True, go_backwards=go_backwards, **options)
    outputs = layer(X, constants=constants, mask=MASK)
    assert layer.cell.kernel.shape[0] == FEATURES + 2 + BATCH
    repeated = [np.repeat(k[:, None], TIME, axis=1) for k in constants]
    assert_close(outputs, layer(np.concatenate([X, *repeated], axis=-1), mask=MASK))
    empty = layer(X[:, :0], constants=constants)
    assert empty.shape == (BATCH, 0, layer.cell.output_size)


def test_constants_in_a_saved_functional_model(tmp_path):
    inputs, constant = keras.Input((None, FEATURES)), keras.Input((2,))
    start = keras.Input((UNITS,))
    layer = GRU(UNITS)
    outputs = layer(keras.layers.Masking()(inputs), constants=[constant], initial_state=[start])
    model = keras.Model([inputs, constant, start], outputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    rng = np.random.default_rng(0)
    arguments = [np.where(MASK[..., None], X, 0)]
    arguments += [rng.normal(size=(BATCH, n)).astype("float32") for n in (2, UNITS)]
    np.testing.assert_array_equal(loaded(arguments), model(arguments))
    x, k, h = arguments
    assert_close(model(arguments), layer(x, mask=MASK, constants=[k], initial_state=[h]))
