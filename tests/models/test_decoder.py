"""The decoder and the language model: one step as all steps, ties, penalties, truncation."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rnnapps.layers import AdditiveAttention
from rnnapps.models import CarriedState, Decoder, LanguageModel, SequenceEncoder, TextEncoder

IDS = np.array([[5, 2, 7, 3, 8, 0], [1, 2, 3, 4, 5, 6], [9, 0, 0, 0, 0, 0]], "int32")
OPTIONS = {
    "elman": {"cell": "elman"},
    "lstm": {"cell": "lstm", "num_layers": 2},
    "peepholes": {"cell": "lstm", "peephole": True},
    "gru": {"cell": "gru", "num_layers": 3},
    "gru_after": {"cell": "gru", "reset_after": True},
    "layer_norm": {"cell": "lstm", "layer_norm": True},
    "weight_dropout": {"cell": "lstm", "recurrent_weight_dropout": 0.5},
    "tied": {"cell": "gru", "tied": True, "units": 3},
    "projected": {"cell": "lstm", "tied": True},
}


def decoder(cell="lstm", num_layers=1, units=4, variational=False, word_dropout=0.0,
            embedding_dropout=0.0, layer_dropout=0.0, stack=None, **options):  # fmt: skip
    stack = stack or {}
    for name in ("peephole", "reset_after", "layer_norm", "recurrent_weight_dropout"):
        if name in options:
            stack[name] = options.pop(name)
    layers = SequenceEncoder(
        cell, units, num_layers, bidirectional=False, dropout=layer_dropout,
        variational=variational, **stack,
    )  # fmt: skip
    encoder = TextEncoder(
        10, 3, layers, embedding_dropout, variational=variational, word_dropout=word_dropout
    )
    layer = Decoder(encoder, **options)
    layer.build((None, None))
    rng = np.random.default_rng(2)
    for weight in layer.weights:
        if "seed" not in weight.path:
            weight.assign(rng.normal(size=weight.shape))
    return layer


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_steps_one_by_one_are_the_call(options):
    layer = decoder(**options)
    logits, finals = layer(IDS)
    states = [tf.zeros((3, size)) for size in layer.state_sizes]
    for t in range(IDS.shape[1]):
        there = IDS[:, t] > 0
        stepped, _, after = layer.step(tf.constant(IDS[:, t]), states)
        one, other = tf.nn.log_softmax(stepped), tf.nn.log_softmax(logits[:, t])
        np.testing.assert_allclose(one[there], other[there], atol=1e-5)
        states = after
    for one, other in zip(states, finals, strict=True):
        np.testing.assert_allclose(one[1], other[1], atol=1e-5)  # the row that is full
    # The states of a shorter row are those at its end.
    _, short = layer(IDS[:1, :5])
    for one, other in zip(short, finals, strict=True):
        np.testing.assert_allclose(one[0], other[0], atol=1e-5)


def test_tied_logits_are_products_with_the_embeddings():
    layer = decoder(cell="gru", tied=True, units=3)
    outputs, _ = layer.encoder(IDS)
    table = np.array(layer.encoder.embedding.embeddings)
    np.testing.assert_allclose(layer(IDS)[0], outputs @ table.T + np.array(layer.bias), atol=1e-5)
    assert sum("embeddings" in weight.path for weight in layer.weights) == 1
    projected = decoder(cell="gru", tied=True, units=5)
    assert projected.projection.kernel.shape == (5, 3)


@pytest.mark.parametrize(
    "options",
    [
        {"embedding_dropout": 0.5},
        {"layer_dropout": 0.5, "num_layers": 2},
        {"dropout": 0.5},
        {"word_dropout": 0.5},
        {"recurrent_weight_dropout": 0.5},
    ],
    ids=str,
)
def test_every_dropout_acts_in_training_only(options):
    layer = decoder(variational=True, **options)
    np.testing.assert_array_equal(layer(IDS)[0], layer(IDS, training=False)[0])
    assert np.any(layer(IDS)[0] != layer(IDS, training=True)[0])


def test_variational_dropout_is_the_same_at_all_steps():
    ones = np.ones((4, 30, 3), "float32")
    for variational in (False, True):
        encoder = decoder(variational=variational, layer_dropout=0.5, embedding_dropout=0.5).encoder
        for layer in (encoder.dropout_layer, encoder.encoder.dropout_layer):
            dropped = np.array(layer(ones, training=True)) == 0
            assert (dropped == dropped[:, :1]).all() == variational


def test_a_dropped_word_is_dropped_wherever_it_stands():
    encoder = decoder(cell="elman", word_dropout=0.5).encoder
    cell = encoder.encoder.recurrent_layers[0].cell
    for weight in (cell.recurrent_kernel, cell.bias):
        weight.assign(np.zeros(weight.shape))  # each output is of its own word alone
    ids = np.tile(np.arange(1, 10), (5, 1))
    outputs = np.array(encoder(ids, training=True)[0])
    gone = (outputs == 0).all(axis=-1)
    assert (gone == gone[:1]).all() and 0 < gone[0].sum() < 9
    words = np.array(encoder.embedding.embeddings)[1:]
    expected = np.tanh(2 * words @ np.array(cell.kernel))
    np.testing.assert_allclose(outputs[0][~gone[0]], expected[~gone[0]], atol=1e-5)


def test_penalties_are_those_of_the_outputs():
    layer = decoder(activation_regularization=2.0, temporal_regularization=3.0)
    layer(IDS)
    assert layer.losses == []
    layer(IDS, training=True)
    outputs = np.array(layer.encoder(IDS)[0])
    expected = [2 * np.mean(outputs**2), 3 * np.mean((outputs[:, 1:] - outputs[:, :-1]) ** 2)]
    np.testing.assert_allclose(layer.losses, expected, rtol=1e-5)


def test_log_probabilities_are_the_chain_rule():
    model = LanguageModel(decoder(cell="gru"))
    model.build((None, None))
    ids, targets = IDS, np.pad(IDS[:, 1:], [(0, 0), (0, 1)])
    scores, _ = model.log_probabilities(ids, targets)
    for row, length in enumerate((targets > 0).sum(axis=1)):
        for t in range(length):
            logits = np.array(model(ids[row : row + 1, : t + 1]))[0, -1]
            expected = logits[targets[row, t]] - np.log(np.exp(logits).sum())
            assert float(scores[row, t]) == pytest.approx(expected, abs=1e-5)
        np.testing.assert_array_equal(scores[row, length:], 0)
    # In parts, with the state handed on, and with an empty part.
    first, states = model.log_probabilities(ids[:2, :2], targets[:2, :2])
    rest, _ = model.log_probabilities(ids[:2, 2:], targets[:2, 2:], states)
    np.testing.assert_allclose(np.concatenate([first, rest], axis=1), scores[:2], atol=1e-5)
    assert model.log_probabilities(ids[:, :0], targets[:, :0])[0].shape == (3, 0)


@pytest.mark.parametrize("options", [{}, {"tied": True, "units": 3}, {"tied": True}], ids=str)
def test_the_loss_is_that_of_the_logits(options):
    layer = decoder(cell="gru", **options)
    targets = np.pad(IDS[:, 1:], [(0, 0), (0, 1)])
    weights = [weight.value for weight in layer.trainable_weights]
    with tf.GradientTape(persistent=True) as tape:
        nats = layer.nats(layer.hidden(IDS)[0], targets)
        expected = keras.losses.sparse_categorical_crossentropy(
            targets, layer(IDS)[0], from_logits=True
        )
        one, other = tf.reduce_sum(nats), tf.reduce_sum(expected)
    np.testing.assert_allclose(nats, expected, rtol=1e-5, atol=1e-6)
    for ours, plain in zip(tape.gradient(one, weights), tape.gradient(other, weights), strict=True):
        ours, plain = map(tf.convert_to_tensor, (ours, plain))
        np.testing.assert_allclose(ours, plain, rtol=1e-4, atol=1e-5)


def test_round_trips(tmp_path):
    layer = decoder(
        num_layers=2, tied=True, dropout=0.1, variational=True, word_dropout=0.1,
        activation_regularization=1.0, recurrent_weight_dropout=0.2,
    )  # fmt: skip
    model = LanguageModel(layer, name="writer")
    model.build((None, None))
    assert Decoder.from_config(layer.get_config()).get_config().keys() == layer.get_config().keys()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.decoder.tied and loaded.decoder.encoder.word_dropout == 0.1
    np.testing.assert_array_equal(loaded(IDS), model(IDS))


def test_it_reads_one_way():
    with pytest.raises(ValueError, match="Received: bidirectional=True"):
        Decoder(TextEncoder(10, 3, SequenceEncoder("gru", 4)))


TEXT = np.random.default_rng(3).integers(1, 10, size=(2, 25)).astype("int32")


def carried(stride=None, **options):
    inner = LanguageModel(decoder(num_layers=2, **options))
    model = CarriedState(inner, batch_size=2, stride=stride)
    model.build({"tokens": (2, None), "reset": (2,)})
    return model


def window(start, size, reset=False):
    return {"tokens": TEXT[:, start : start + size], "reset": np.full(2, reset)}


def gradients(model, inputs, targets, weights, decoder):
    with tf.GradientTape() as tape:
        nats = decoder.nats(model(inputs, training=True), targets)
        loss = tf.reduce_sum(nats * weights)
    variables = [variable.value for variable in model.trainable_variables]
    return [tf.convert_to_tensor(g).numpy() for g in tape.gradient(loss, variables)]


def test_the_penalties_of_a_window_are_its_mean_where_windows_overlap():
    for stride in (None, 3):
        model = carried(stride, activation_regularization=1.0)
        hidden = model(window(0, 8, reset=True), training=True)
        penalty = float(sum(model.losses))
        assert penalty == pytest.approx(np.mean(np.square(hidden)), rel=1e-5)


def test_windows_carry_the_state_on():
    model = carried()
    whole = model.model.hidden(TEXT[:, :24])
    parts = [np.array(model(window(start, 6))) for start in range(0, 24, 6)]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, atol=1e-5)
    # One row begins anew, the other goes on.
    later = np.array(model({"tokens": TEXT[:, :6], "reset": np.array([True, False])}))
    np.testing.assert_allclose(later[0], whole[0, :6], atol=1e-5)
    assert np.abs(later[1] - whole[1, :6]).max() > 1e-3


@pytest.mark.parametrize("fed", [False, True])
def test_without_padding_all_steps_are_valid(fed):
    """As with a mask that is true everywhere, whatever the ids."""
    encoder = TextEncoder(10, 3, SequenceEncoder("lstm", 4, 2, bidirectional=False))
    layer, memory = Decoder(encoder), None
    if fed:
        layer = Decoder(encoder, AdditiveAttention(2), input_feeding=True)
        layer.build((None, None), memory_shape=((None, None, 5), (None, None, 2), (None, None)))
        memory = layer.attention.remember(tf.random.normal((3, 4, 5)), tf.ones((3, 4), bool))
    ids = np.where(IDS == 0, 9, IDS)
    outputs, _, states = layer.read(ids, memory=memory, padded=False)
    expected, _, after = layer.read(ids, memory=memory)
    np.testing.assert_allclose(outputs, expected, atol=1e-6)
    for one, other in zip(states, after, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    assert np.abs(layer.read(IDS, memory=memory, padded=False)[0]).min() > 0


def test_one_window_as_long_as_the_text_is_full_bptt():
    model = carried()
    targets, weights = TEXT[:, 1:], np.ones((2, 24), "float32")
    decoder = model.model.decoder
    ours = gradients(model, window(0, 24, True), targets, weights, decoder)

    def plain(inputs, training):
        return model.model.hidden(inputs["tokens"], training=training)

    plain.trainable_variables = model.trainable_variables
    for one, other in zip(
        ours, gradients(plain, window(0, 24), targets, weights, decoder), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_the_gradient_runs_back_k2_steps_while_k1_are_new():
    """The second window's gradient is that of a run whose state is cut k2 steps before its end."""
    model, k1, k2 = carried(stride=3), 3, 8
    new = np.zeros((2, k2), "float32")
    new[:, k2 - k1 :] = 1
    model(window(0, k2, True))
    decoder = model.model.decoder
    ours = gradients(model, window(k1, k2), TEXT[:, k1 + 1 : k1 + k2 + 1], new, decoder)
    inner = model.model
    _, states = inner.decoder(TEXT[:, :k1])
    states = [tf.stop_gradient(state) for state in states]

    def cut(inputs, training):
        return inner.decoder.hidden(inputs["tokens"], states, training=training)[0]

    cut.trainable_variables = model.trainable_variables
    expected = gradients(cut, window(k1, k2), TEXT[:, k1 + 1 : k1 + k2 + 1], new, decoder)
    for one, other in zip(ours, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    # And the state that is carried on is that after another k1.
    _, after = inner.decoder(TEXT[:, : 2 * k1])
    for one, other in zip(model.states, after, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
