"""The recurrent encoder: layers in order, states in order, padding nowhere."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rnnapps.models import SequenceEncoder

X = np.random.default_rng(0).normal(size=(3, 5, 2)).astype("float32")
MASK = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], bool)

ENCODERS = [
    pytest.param(dict(cell=cell, bidirectional=both, num_layers=2, units=4), id=f"{cell}-{name}")
    for cell in ("elman", "lstm", "gru")
    for both, name in ((False, "forward"), (True, "both"))
]


@pytest.mark.parametrize("arguments", ENCODERS)
def test_is_its_layers_one_after_the_other(arguments):
    encoder = SequenceEncoder(**arguments)
    outputs, states = encoder(X, mask=MASK)
    lower, upper = encoder.recurrent_layers
    middle, *lower_states = lower(X, mask=MASK)
    top, *upper_states = upper(middle, mask=MASK)
    np.testing.assert_array_equal(outputs, top)
    for one, other in zip(states, [*lower_states, *upper_states], strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(outputs[~MASK], 0)
    assert encoder.output_size == outputs.shape[-1] == (8 if arguments["bidirectional"] else 4)


@pytest.mark.parametrize("arguments", ENCODERS)
def test_states_go_in_as_they_came_out(arguments):
    encoder = SequenceEncoder(**{**arguments, "bidirectional": False})
    outputs, states = encoder(X)
    head, between = encoder(X[:, :2])
    tail, end = encoder(X[:, 2:], initial_state=between)
    np.testing.assert_allclose(np.concatenate([head, tail], axis=1), outputs, atol=1e-6)
    for one, other in zip(end, states, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("arguments", ENCODERS)
def test_stateful_encoders_remember_until_reset(arguments):
    encoder = SequenceEncoder(**arguments, stateful=True)
    first = encoder(X, mask=MASK)
    second = encoder(X, mask=MASK)
    assert np.any(first[0] != second[0])
    encoder.reset_state()
    for one, other in zip(
        keras.tree.flatten(encoder(X, mask=MASK)), keras.tree.flatten(first), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_both_ways_states_start_an_encoder_of_the_same_kind():
    reader, writer = (SequenceEncoder("lstm", units=4, num_layers=2) for _ in range(2))
    _, states = reader(X, mask=MASK)
    outputs, _ = writer(X, initial_state=states)
    assert np.any(outputs[0] != writer(X)[0][0])
    np.testing.assert_allclose(outputs[2], writer(X)[0][2], atol=1e-6)  # zeros: nothing was read


def test_resets_cut_a_row_for_every_layer():
    encoder = SequenceEncoder("gru", units=4, num_layers=2, bidirectional=False)
    reset = np.zeros((3, 5), bool)
    reset[:, 2] = True
    outputs, states = encoder(X, reset=reset)
    np.testing.assert_allclose(outputs[:, :2], encoder(X[:, :2])[0], atol=1e-6)
    tail, end = encoder(X[:, 2:])
    np.testing.assert_allclose(outputs[:, 2:], tail, atol=1e-6)
    for one, other in zip(states, end, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_resets_cut_a_row_both_ways():
    encoder = SequenceEncoder("gru", units=4, num_layers=2)
    reset = np.zeros((3, 5), bool)
    reset[:, 2] = True
    outputs, _ = encoder(X, reset=reset)
    np.testing.assert_allclose(outputs[:, :2], encoder(X[:, :2])[0], atol=1e-6)
    np.testing.assert_allclose(outputs[:, 2:], encoder(X[:, 2:])[0], atol=1e-6)


@pytest.mark.parametrize("option", [{"go_backwards": True}, {"return_state": False}])
def test_what_an_encoder_sets_itself_is_refused(option):
    ((name, value),) = option.items()
    with pytest.raises(ValueError, match=f"Received: {name}={value}"):
        SequenceEncoder("gru", units=4, **option)


@pytest.mark.parametrize("arguments", ENCODERS)
def test_a_sequence_of_padding_returns_its_initial_state(arguments):
    encoder = SequenceEncoder(**arguments)
    _, states = encoder(X)
    rng = np.random.default_rng(1)
    start = [tf.constant(rng.normal(size=s.shape), tf.float32) for s in states]
    for x, mask in [(X, np.zeros((3, 5), bool)), (X[:, :0], None)]:
        outputs, end = encoder(x, mask=mask, initial_state=start)
        np.testing.assert_array_equal(outputs, 0)
        for one, other in zip(end, start, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("arguments", ENCODERS)
def test_last_output_is_what_each_direction_read_last(arguments):
    encoder = SequenceEncoder(**arguments)
    outputs, states = encoder(X, mask=MASK)
    last = encoder.last_output(states)
    for row, length in enumerate(MASK.sum(axis=1)):
        if length == 0:
            expected = np.zeros(encoder.output_size)
        else:
            expected = np.concatenate([outputs[row, length - 1, :4], outputs[row, 0, 4:]])
        np.testing.assert_array_equal(last[row], expected)


@pytest.mark.parametrize("arguments", ENCODERS)
def test_an_attached_mask_is_seen_and_handed_on(arguments):
    encoder = SequenceEncoder(**arguments)
    masked = keras.layers.Masking()(np.where(MASK[..., None], X, 0))
    expected, states = encoder(X, mask=MASK)
    for start in (None, [tf.zeros_like(state) for state in states]):
        outputs, _ = encoder(masked, initial_state=start)
        np.testing.assert_array_equal(outputs, expected)
        np.testing.assert_array_equal(outputs._keras_mask, MASK)


def test_dropout_is_between_the_layers_and_in_training_only():
    encoder = SequenceEncoder("elman", 4, num_layers=2, bidirectional=False, dropout=0.5)
    outputs, states = encoder(X, training=True)
    lower, upper = encoder.recurrent_layers
    below, state = lower(X)
    # Nothing before the first layer. Training and inference round differently.
    np.testing.assert_allclose(states[0], state, atol=1e-6)
    assert np.any(outputs != upper(below)[0])  # something between
    np.testing.assert_array_equal(outputs[:, -1], states[1])  # nothing after the last
    np.testing.assert_array_equal(encoder(X)[0], upper(below)[0])


@pytest.mark.parametrize("arguments", ENCODERS)
def test_shapes_are_known_beforehand(arguments):
    encoder = SequenceEncoder(**arguments)
    shape, state_shapes = encoder.compute_output_shape((None, None, 2))
    symbolic, symbolic_states = encoder(keras.Input((None, 2)))
    assert symbolic.shape == shape == (None, None, encoder.output_size)
    assert [s.shape for s in symbolic_states] == state_shapes
    assert len(encoder(X)[1]) == len(state_shapes)


@pytest.mark.parametrize(
    "arguments",
    [
        *(parameter.values[0] for parameter in ENCODERS),
        dict(dropout=0.1, recurrent_dropout=0.2, units=3, name="reader", trainable=False),
        dict(cell="gru", units=3, reset_after=True, seed=4, dtype="mixed_bfloat16"),
        dict(cell="jordan", units=3, output_units=2, num_layers=2, recurrent_weight_dropout=0.2),
        dict(units=3, peephole=True, layer_norm=True, recurrent_constraint="unit_norm"),
        dict(
            units=3,
            unit_forget_bias=2.0,
            use_bias=True,
            kernel_initializer=keras.initializers.RandomNormal(stddev=0.2),
            activation=keras.activations.relu,
        ),
    ],
)
def test_round_trips(arguments, tmp_path):
    encoder = SequenceEncoder(**arguments)
    config = encoder.get_config()
    copy = SequenceEncoder.from_config(config)
    assert copy.get_config() == config
    for one, other in zip(copy.recurrent_layers, encoder.recurrent_layers, strict=True):
        one, other = (getattr(layer, "forward_layer", layer).cell for layer in (one, other))
        assert one.get_config() == other.get_config()

    inputs = keras.Input((None, 2))
    model = keras.Model(inputs, encoder(inputs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for one, other in zip(*(keras.tree.flatten(m(X)) for m in (loaded, model)), strict=True):
        np.testing.assert_array_equal(one, other)
