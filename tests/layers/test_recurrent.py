"""The recurrent layers against stock Keras, under every mask and shape."""

import itertools

import keras
import numpy as np
import pytest

from rnnapps.layers import GRU, LSTM, Elman, ElmanCell, Jordan
from tests.layers import backends
from tests.layers.backends import BACKEND, some_of, with_gradients

BATCH, TIME, FEATURES, UNITS = 4, 6, 3, 5

LAYERS = [
    pytest.param(Elman, {}, id="elman"),
    pytest.param(LSTM, {}, id="lstm"),
    pytest.param(GRU, {}, id="gru"),
    pytest.param(GRU, {"reset_after": True}, id="gru_after"),
    pytest.param(Jordan, {"output_units": 4}, id="jordan"),
    pytest.param(LSTM, {"peephole": True, "layer_norm": True}, id="lstm_peephole_norm"),
    pytest.param(GRU, {"layer_norm": True}, id="gru_norm"),
]
LIKE_STOCK = some_of(LAYERS[:4], 1, 3)
LAYERS = some_of(LAYERS, 1, 4)
STOCK = {Elman: keras.layers.SimpleRNN, LSTM: keras.layers.LSTM, GRU: keras.layers.GRU}

LENGTHS = np.array([6, 3, 0, 1])
MASKS = {
    "none": None,
    "prefix": np.arange(TIME) < LENGTHS[:, None],
    "holes": np.array([[1, 0, 1, 1, 0, 1], [0, 0, 1, 0, 1, 0], [0] * 6, [1] * 6], bool),
}


def sequences(shape=(BATCH, TIME, FEATURES), seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def stock_layer(layer_class, options, **arguments):
    if layer_class is GRU:
        arguments["reset_after"] = options.get("reset_after", False)
    return STOCK[layer_class](UNITS, **arguments)


def built(layer, features=FEATURES, seed=3):
    """Builds a layer and gives it weights that no initialiser would, biases included."""
    layer.build((None, None, features))
    rng = np.random.default_rng(seed)
    layer.set_weights([rng.normal(scale=0.6, size=w.shape) for w in layer.weights])
    return layer


def states_of(layer, seed=1, batch=BATCH):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(batch, n)).astype("float32") for n in layer.state_size]


def static(layer):
    return layer


def graph(layer):
    import tensorflow as tf  # not above: other backends do without it

    return tf.function(lambda x, mask=None: layer(x, mask=mask), reduce_retracing=True)


def compiled(layer):
    return backends.compiled(lambda x, mask=None: layer(x, mask=mask))


def results_and_gradients(layer, x, mask, states):
    def loss(x, *states):
        results = layer(x, initial_state=list(states), mask=mask)
        factors = [sequences(result.shape, seed=5 + n) for n, result in enumerate(results)]
        loss = sum(keras.ops.sum(r * f) for r, f in zip(results, factors, strict=True))
        return loss, results

    (_, results), gradients = with_gradients(loss, layer.trainable_variables)(x, *states)
    return results, gradients


@pytest.mark.parametrize(("layer_class", "options"), LIKE_STOCK)
@pytest.mark.parametrize(
    ("mask", "return_sequences", "go_backwards"),
    some_of(
        [
            ("none", True, True),
            ("none", False, False),
            ("prefix", True, False),
            ("prefix", False, True),
            ("holes", True, True),
            ("holes", False, False),
        ],
        1,
        4,
    ),
)
def test_parity_with_keras(layer_class, options, mask, return_sequences, go_backwards):
    """Every pair of values, for every layer."""
    common = dict(return_sequences=return_sequences, return_state=True, go_backwards=go_backwards)
    stock = built(
        stock_layer(layer_class, options, zero_output_for_mask=return_sequences, **common)
    )
    layer = layer_class(UNITS, **common, **options)
    layer.build((None, None, FEATURES))
    layer.set_weights(stock.get_weights())
    states = states_of(layer)
    expected = results_and_gradients(stock, sequences(), MASKS[mask], states)
    actual = results_and_gradients(layer, sequences(), MASKS[mask], states)
    for name, ours, theirs in zip(("results", "gradients"), actual, expected, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("layer_class", "options", "mask", "return_sequences"),
    some_of(
        [
            pytest.param(*layer.values, mask, (row + column) % 2 == 1, id=f"{layer.id}-{mask}")
            for row, layer in enumerate(LIKE_STOCK)
            for column, mask in enumerate(MASKS)
        ],
        5,
        11,
    ),
)
def test_parity_inside_bidirectional(layer_class, options, mask, return_sequences):
    """Every pair of values, for every layer."""
    common = dict(return_sequences=return_sequences, return_state=True)
    stock = built(keras.layers.Bidirectional(stock_layer(layer_class, options, **common)))
    ours = keras.layers.Bidirectional(layer_class(UNITS, **common, **options))
    ours.build((None, None, FEATURES))
    ours.set_weights(stock.get_weights())
    states = [*states_of(ours.forward_layer), *states_of(ours.backward_layer, seed=2)]
    expected = results_and_gradients(stock, sequences(), MASKS[mask], states)
    actual = results_and_gradients(ours, sequences(), MASKS[mask], states)
    for one, other in zip(itertools.chain(*actual), itertools.chain(*expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("layer_class", "options"), LAYERS)
@pytest.mark.parametrize("mask", ["prefix", "holes"])
@pytest.mark.parametrize("go_backwards", [False, True])
def test_masked_steps_might_as_well_not_be_there(layer_class, options, mask, go_backwards):
    layer = built(
        layer_class(
            UNITS, return_sequences=True, return_state=True, go_backwards=go_backwards, **options
        )
    )
    x, mask, start = sequences(), MASKS[mask], states_of(layer)
    outputs, *states = layer(np.where(mask[..., None], x, 1e3), initial_state=start, mask=mask)
    for row in range(BATCH):
        valid = x[row : row + 1, mask[row]]
        alone, *alone_states = layer(valid, initial_state=[s[row : row + 1] for s in start])
        seen = mask[row, ::-1] if go_backwards else mask[row]
        np.testing.assert_allclose(outputs[row][seen], alone[0], atol=1e-6)
        np.testing.assert_array_equal(outputs[row][~seen], 0)
        for state, alone_state in zip(states, alone_states, strict=True):
            np.testing.assert_allclose(state[row], alone_state[0], atol=1e-6)


@pytest.mark.parametrize(("layer_class", "options"), LAYERS)
@pytest.mark.parametrize("go_backwards", [False, True])
def test_last_output_is_that_of_the_last_valid_step(layer_class, options, go_backwards):
    layer = built(layer_class(UNITS, return_state=True, go_backwards=go_backwards, **options))
    mask = MASKS["holes"]
    output, *states = layer(sequences(), initial_state=states_of(layer), mask=mask)
    some = mask.any(axis=1)
    np.testing.assert_allclose(output[some], states[0][some], rtol=1e-6)
    np.testing.assert_array_equal(output[~some], 0)


@pytest.mark.parametrize(("layer_class", "options"), LAYERS)
def test_masked_steps_pass_no_gradient(layer_class, options):
    layer = built(layer_class(UNITS, return_sequences=True, return_state=True, **options))
    _, (x_gradient, *_) = results_and_gradients(
        layer, sequences(), MASKS["holes"], states_of(layer)
    )
    np.testing.assert_array_equal(x_gradient[~MASKS["holes"]], 0)
    assert np.all(np.any(x_gradient[MASKS["holes"]] != 0, axis=-1))


@pytest.mark.parametrize(("layer_class", "options"), LAYERS)
def test_rows_do_not_depend_on_their_batch(layer_class, options):
    layer = built(layer_class(UNITS, return_sequences=True, **options))
    x, mask, order = sequences(), MASKS["prefix"], [2, 0, 3, 1]
    outputs = layer(x, mask=mask)
    shuffled = layer(x[order], mask=mask[order])
    np.testing.assert_allclose(shuffled, np.array(outputs)[order], atol=1e-6)
    alone = layer(x[1:2], mask=mask[1:2])
    np.testing.assert_allclose(alone, outputs[1:2], atol=1e-6)
    padded = np.pad(x, [(0, 0), (0, 7), (0, 0)], constant_values=9.0)
    longer = layer(padded, mask=np.pad(mask, [(0, 0), (0, 7)]))
    np.testing.assert_allclose(longer[:, :TIME], outputs, atol=1e-6)
    np.testing.assert_array_equal(longer[:, TIME:], 0)


EMPTY = [
    pytest.param(*layer.values, mode, whole, id=f"{layer.id}-{mode.__name__}-{whole}")
    for row, layer in enumerate(LAYERS)
    for mode, whole in (
        (static, True),
        (static, False),
        (graph, row % 2 == 0),
        *([(compiled, True)] if layer.id in ("lstm", "gru_after", "jordan") else []),
    )
]


@pytest.mark.parametrize(
    ("layer_class", "options", "mode", "return_sequences"), some_of(EMPTY, 4, 6, 15, 17)
)
def test_no_steps_and_no_rows(layer_class, options, mode, return_sequences):
    """Compiled, which is slow, two layers of the engine and one whose cell is called in a loop."""
    layer = built(
        layer_class(UNITS, return_sequences=return_sequences, return_state=True, **options)
    )
    run = mode(layer)
    for batch, timesteps in [(2, 0), (0, 3), (2, 3)]:
        x = sequences((batch, timesteps, FEATURES))
        output, *states = run(x)
        size = layer.cell.output_size
        assert output.shape == ((batch, timesteps, size) if return_sequences else (batch, size))
        assert all(state.shape == (batch, size) for state in states)
        assert np.any(output) == (batch > 0 and timesteps > 0)
        assert np.any(states[0]) == (batch > 0 and timesteps > 0)
        if batch and timesteps:
            np.testing.assert_allclose(output, layer(x)[0], atol=1e-6)


@pytest.mark.parametrize(("layer_class", "options"), LAYERS)
def test_no_steps_keep_the_initial_state(layer_class, options):
    layer = built(layer_class(UNITS, return_state=True, **options))
    start = states_of(layer, batch=2)
    empty = np.zeros((2, 0, FEATURES), "float32")
    for mask in (None, np.zeros((2, 0), bool)):
        output, *states = layer(empty, initial_state=start, mask=mask)
        np.testing.assert_array_equal(output, 0)
        for state, initial in zip(states, start, strict=True):
            np.testing.assert_array_equal(state, initial)


@pytest.mark.parametrize(("layer_class", "options"), LAYERS)
def test_no_steps_pass_no_gradient_to_the_weights(layer_class, options):
    layer = built(layer_class(UNITS, return_sequences=True, return_state=True, **options))
    start = states_of(layer, batch=2)
    _, (_, *gradients) = results_and_gradients(
        layer, np.zeros((2, 0, FEATURES), "float32"), None, start
    )
    for gradient in gradients[len(start) :]:
        np.testing.assert_array_equal(gradient, 0)
    for gradient in gradients[: len(start)]:
        assert np.all(np.isfinite(gradient)) and np.any(gradient)


@pytest.mark.parametrize(("layer_class", "options"), LAYERS)
def test_an_attached_mask_is_seen_beside_initial_states(layer_class, options):
    layer = built(layer_class(UNITS, return_sequences=True, **options))
    x = np.where(MASKS["prefix"][..., None], sequences(), 0)
    start = states_of(layer)
    expected = layer(x, initial_state=start, mask=MASKS["prefix"])
    attached = keras.layers.Masking()(x)
    np.testing.assert_array_equal(layer(attached, initial_state=start), expected)

    inputs = keras.Input((None, FEATURES))
    initial = [keras.Input(state.shape[1:]) for state in start]
    outputs = layer(keras.layers.Masking()(inputs), initial_state=initial)
    functional = keras.Model([inputs, *initial], outputs)
    np.testing.assert_allclose(functional([x, *start]), expected, atol=1e-6)


@pytest.mark.parametrize("go_backwards", [False, True])
def test_the_output_mask_lies_on_the_outputs(go_backwards):
    layer = built(Elman(UNITS, return_sequences=True, return_state=True, go_backwards=go_backwards))
    outputs, state = layer(sequences(), mask=keras.ops.convert_to_tensor(MASKS["prefix"]))
    np.testing.assert_array_equal(outputs._keras_mask, np.any(outputs != 0, axis=-1))
    assert getattr(state, "_keras_mask", None) is None


GRAPHS = (graph,) if BACKEND == "tensorflow" else ()
PRECISIONS = [
    ("mixed_float16", (static, *GRAPHS), 5e-3),
    ("mixed_bfloat16", (static,), 5e-2),
    ("float32", GRAPHS, 1e-6),
    ("float64", (static,), 1e-6),
]


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    ("layer_class", "options", "dtype", "modes", "tolerance"),
    [
        pytest.param(
            *layer.values,
            dtype,
            (*modes, compiled) if column == row % 3 else modes,
            tolerance,
            id=f"{layer.id}-{dtype}",
            marks=layer.marks,
        )
        for row, layer in enumerate(LAYERS)
        for column, (dtype, modes, tolerance) in enumerate(PRECISIONS)
    ],
)
def test_precisions_and_modes_agree(layer_class, options, dtype, modes, tolerance):
    """Every layer in every precision. Compiled, which is slow, every layer in one of three.

    The engine and the cell in a loop then meet all three, and a layer's equations know no types.
    """
    reference = built(layer_class(UNITS, return_sequences=True, **options))
    layer = layer_class(UNITS, return_sequences=True, dtype=dtype, **options)
    layer.build((None, None, FEATURES))
    layer.set_weights(reference.get_weights())
    expected = reference(sequences(), mask=MASKS["holes"])
    for mode in modes:
        outputs = mode(layer)(sequences(), mask=MASKS["holes"])
        assert outputs.dtype == layer.compute_dtype
        outputs = keras.ops.cast(outputs, "float32")
        np.testing.assert_allclose(outputs, expected, atol=tolerance)


@pytest.mark.parametrize(("layer_class", "options"), LAYERS)
def test_two_traces_at_most_over_ten_lengths(tf, layer_class, options):
    layer = built(layer_class(UNITS, **options))
    traces = []

    @tf.function(reduce_retracing=True)
    def run(x, mask):
        traces.append(x.shape[1])
        return layer(x, mask=mask)

    for timesteps in range(10):
        x = tf.constant(sequences((2, timesteps, FEATURES)))
        output = run(x, tf.ones((2, timesteps), tf.bool))
        np.testing.assert_allclose(output, layer(x), atol=1e-6)
    assert traces == [0, None]


# Dropout


@pytest.mark.parametrize(("layer_class", "options"), LAYERS)
def test_inference_does_not_know_of_dropout(layer_class, options):
    rates = {"dropout": 0.4, "recurrent_dropout": 0.6, "recurrent_weight_dropout": 0.5}
    plain = built(layer_class(UNITS, return_sequences=True, **options))
    layer = layer_class(UNITS, return_sequences=True, **rates, **options)
    layer.build((None, None, FEATURES))
    layer.set_weights(plain.get_weights())
    np.testing.assert_array_equal(layer(sequences(), training=False), plain(sequences()))
    np.testing.assert_array_equal(layer(sequences()), plain(sequences()))
    assert np.any(layer(sequences(), training=True) != plain(sequences()))


@pytest.mark.parametrize("wrap", [lambda cell: cell, keras.layers.RNN], ids=["layer", "stock_rnn"])
@pytest.mark.parametrize("rate", ["dropout", "recurrent_dropout"])
def test_a_dropout_mask_lasts_for_the_sequence(wrap, rate):
    """h_t = m ⊙ x with U = 0, and h_t = m ⊙ h_{t-1} with W = 0, show the mask m itself."""
    options = {"activation": "linear", "use_bias": False, rate: 0.5, "seed": 3}
    if wrap is keras.layers.RNN:
        layer = keras.layers.RNN(ElmanCell(50, **options), return_sequences=True)
    else:
        layer = Elman(50, return_sequences=True, **options)
    layer.build((None, None, 50))
    zero, one = np.zeros((50, 50)), np.eye(50)
    layer.set_weights([one, zero] if rate == "dropout" else [zero, one])
    x, h = np.ones((3, 4, 50), "float32"), np.ones((3, 50), "float32")
    first, second = (np.array(layer(x, initial_state=[h], training=True)) for _ in range(2))
    powers = [1, 1, 1, 1] if rate == "dropout" else [1, 2, 3, 4]
    for t, power in enumerate(powers):
        np.testing.assert_allclose(first[:, t], first[:, 0] ** power)
    assert set(np.unique(first[:, 0])) == {0.0, 2.0}
    assert np.any(first[0] != first[1])  # rows differ
    assert np.any(first != second)  # and so do batches


@pytest.mark.parametrize(("layer_class", "options"), LAYERS)
def test_the_masks_of_a_row_are_those_of_all_its_steps(layer_class, options):
    """A mask on x is a mask on the inputs of every step, and one on h takes rows out of U."""
    if "layer_norm" in options:
        options = {**options, "layer_norm": False}
    rates = dict.fromkeys(("dropout", "recurrent_dropout", "recurrent_weight_dropout"), 0.4)
    plain = built(layer_class(UNITS, return_sequences=True, **options))
    layer, twin = (
        layer_class(UNITS, return_sequences=True, seed=2, **rates, **options) for _ in range(2)
    )
    for one in (layer, twin):
        one.build((None, None, FEATURES))
    weights = plain.get_weights()
    layer.set_weights(weights)
    outputs = layer(sequences(), training=True)
    x_masks = np.array(twin.cell.get_dropout_mask(keras.ops.ones((BATCH, FEATURES))))
    h_masks = twin.cell.get_recurrent_dropout_mask(keras.ops.ones((BATCH, layer.cell.output_size)))
    h_masks, U_mask = np.array(h_masks), np.array(twin.cell.get_recurrent_weight_mask())
    assert len(np.unique(np.concatenate([x_masks, h_masks], axis=1), axis=0)) == BATCH
    W, U, *others = weights
    for row in range(BATCH):
        plain.set_weights([W, h_masks[row][:, None] * (U * U_mask), *others])
        alone = plain(sequences()[row : row + 1] * x_masks[row])
        np.testing.assert_allclose(outputs[row], alone[0], atol=2e-6)


@pytest.mark.parametrize(
    ("layer_class", "options", "jit_compile"),
    [
        *(pytest.param(*p.values, True, id=p.id) for p in LAYERS[:5]),  # without normalisation
        pytest.param(Jordan, {"output_units": 4}, False, id="jordan_graph"),
        pytest.param(LSTM, {}, False, id="lstm_graph"),
    ],
)
def test_dropout_trains_in_graphs(tf, layer_class, options, jit_compile):
    """Every layer as a whole compiled graph; in a plain graph, one with the engine and one not."""
    rates = dict.fromkeys(("dropout", "recurrent_dropout", "recurrent_weight_dropout"), 0.3)
    layer = built(layer_class(UNITS, seed=1, **rates, **options))

    @tf.function(input_signature=[tf.TensorSpec([None, None, FEATURES])], jit_compile=jit_compile)
    def gradients(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x, training=True))
        return tape.gradient(loss, layer.trainable_variables)

    first, second = (gradients(tf.constant(sequences())) for _ in range(2))
    assert all(np.all(np.isfinite(gradient)) for gradient in first)
    assert np.any(first[0] != second[0])


@pytest.mark.parametrize(("layer_class", "options"), LAYERS)
@pytest.mark.parametrize("return_sequences", [False, True])
@pytest.mark.parametrize("return_state", [False, True])
def test_output_shapes_are_known_beforehand(layer_class, options, return_sequences, return_state):
    layer = layer_class(
        UNITS, return_sequences=return_sequences, return_state=return_state, **options
    )
    promised = layer.compute_output_shape((BATCH, TIME, FEATURES))
    results = layer(sequences())
    actual = tuple(r.shape for r in results) if return_state else results.shape
    assert tuple(promised) == actual
    symbolic = layer(keras.Input((None, FEATURES)))
    output = symbolic[0] if return_state else symbolic
    size = layer.cell.output_size
    assert output.shape == ((None, None, size) if return_sequences else (None, size))


def test_an_unknown_option_is_refused():
    with pytest.raises(ValueError, match="peephoel"):
        LSTM(2, peephoel=True)
