"""The encoder-decoder: one step as all steps, batches, attention by hand, scheduled sampling."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rnnapps.layers import AdditiveAttention, MultiplicativeAttention
from rnnapps.models import Bridge, Decoder, EncoderDecoder, SequenceEncoder, TextEncoder

SOURCE = np.array([[5, 3, 7, 2], [4, 2, 0, 0], [6, 8, 2, 0]], "int32")
TARGET = np.array([[2, 9, 4, 8, 3], [2, 7, 0, 0, 0], [2, 3, 5, 0, 0]], "int32")
OPTIONS = {
    "no_attention": {},
    "additive": {"attention": AdditiveAttention, "score": 6, "num_layers": 2},
    "general_gru": {"attention": MultiplicativeAttention, "score": "general", "cell": "gru"},
    "scaled_tied": {"attention": MultiplicativeAttention, "score": "scaled", "tied": True},
    "dot": {"attention": MultiplicativeAttention, "score": "dot", "units": 8},
    "feeding": {
        "attention": MultiplicativeAttention,
        "score": "general",
        "input_feeding": True,
        "num_layers": 2,
    },
    "feeding_additive": {"attention": AdditiveAttention, "score": 6, "input_feeding": True},
    "first_input": {
        "attention": MultiplicativeAttention,
        "score": "general",
        "input_feeding": True,
        "first_input": True,
    },
}


def make(
    attention=None,
    score=None,
    *,
    cell="lstm",
    units=4,
    num_layers=1,
    stack_dropout=0.0,
    decoder_dropout=0.0,
    tied=False,
    input_feeding=False,
    doubly_stochastic=0.0,
    **options,
):
    encoder = TextEncoder(9, 3, SequenceEncoder("gru", 4, num_layers=2))
    layers = SequenceEncoder(cell, units, num_layers, bidirectional=False, dropout=stack_dropout)
    decoder = Decoder(
        TextEncoder(10, 3, layers),
        attention and attention(score),
        input_feeding=input_feeding,
        tied=tied,
        dropout=decoder_dropout,
        doubly_stochastic=doubly_stochastic,
    )
    model = EncoderDecoder(encoder, decoder, **options)
    model.build({"source": (None, None), "target": (None, None)})
    rng = np.random.default_rng(2)
    for weight in model.trainable_weights:
        weight.assign(rng.normal(size=weight.shape))
    return model


def logits_of(model, source=SOURCE, target=TARGET, **options):
    return np.array(model({"source": source, "target": target}, **options))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_steps_one_by_one_are_the_call(options):
    model = make(**options)
    logits = tf.nn.log_softmax(logits_of(model))
    memory, states = model.encode(SOURCE)
    weights = None if memory is None else model.alignment(model.encode(SOURCE), TARGET)
    for t in range(TARGET.shape[1]):
        stepped, looked, states = model.decoder.step(tf.constant(TARGET[:, t]), states, memory)
        there = TARGET[:, t] > 0
        np.testing.assert_allclose(
            tf.nn.log_softmax(stepped)[there], logits[:, t][there], atol=1e-5
        )
        if memory is not None:
            np.testing.assert_allclose(looked[there], weights[:, t][there], atol=1e-5)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_beams_look_at_the_memory_of_their_text(options):
    model = make(**options)
    memory, states = model.encode(SOURCE)
    ids = tf.constant([9, 3, 4, 4, 8, 1])
    beams = [tf.repeat(state, 2, axis=0) for state in states]
    together, _, _ = model.decoder.step(ids, beams, memory)
    repeated, states = model.encode(np.repeat(SOURCE, 2, axis=0))
    alone, _, _ = model.decoder.step(ids, states, repeated)
    np.testing.assert_allclose(together, alone, atol=1e-5)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
def test_batches_and_padding_change_nothing(options):
    model = make(**options)
    logits = logits_of(model)
    for row, (read, written) in enumerate([(4, 5), (2, 2), (3, 3)]):
        alone = logits_of(model, SOURCE[row : row + 1, :read], TARGET[row : row + 1, :written])
        np.testing.assert_allclose(alone[0], logits[row, :written], atol=1e-5)
    assert logits_of(model, SOURCE[:0], TARGET[:0]).shape == (0, 5, 10)
    assert logits_of(model, SOURCE, TARGET[:, :0]).shape == (3, 0, 10)
    assert logits_of(model, SOURCE[:, :0]).shape == (3, 5, 10)
    if "attention" in options:
        assert model.alignment(model.encode(SOURCE), TARGET)[1, 0, 2:].numpy().tolist() == [0, 0]


def test_luongs_equations_by_hand():
    model = make(MultiplicativeAttention, "general", cell="elman", units=3)
    outputs, finals = model.encoder(SOURCE[:1])
    bridge, decoder = model.bridge.dense, model.decoder
    state = np.tanh(np.concatenate(finals, axis=-1)[0] @ bridge.kernel + bridge.bias)
    cell = decoder.encoder.encoder.recurrent_layers[0].cell
    values = np.array(outputs[0])
    for t, token in enumerate(TARGET[0]):
        vector = np.array(decoder.encoder.embedding.embeddings)[token]
        state = np.tanh(vector @ cell.kernel + state @ cell.recurrent_kernel + cell.bias)
        scores = values @ np.array(decoder.attention.kernel) @ state
        alpha = np.exp(scores) / np.exp(scores).sum()
        context = alpha @ values
        seen = np.tanh(np.concatenate([context, state]) @ decoder.attentional_layer.kernel)
        expected = seen @ decoder.output_layer.kernel + decoder.output_layer.bias
        np.testing.assert_allclose(logits_of(model)[0, t], expected, atol=1e-4)


def test_log_probabilities_are_those_of_the_softmax():
    model = make(**OPTIONS["general_gru"])
    following = np.array([[9, 4, 8, 3, 2], [7, 2, 0, 0, 0], [3, 5, 2, 0, 0]], "int32")
    found = model.log_probabilities(SOURCE, TARGET, following)
    expected = np.take_along_axis(
        np.array(tf.nn.log_softmax(logits_of(model))), following[..., None], axis=-1
    )[..., 0]
    np.testing.assert_allclose(found, np.where(following > 0, expected, 0), atol=1e-5)


@pytest.mark.parametrize("feeding", [False, True])
def test_every_weight_learns_and_dropout_acts_in_training_only(feeding):
    options = {"dropout": 0.5} if feeding else {"dropout": 0.5, "decoder_dropout": 0.5}
    model = make(
        AdditiveAttention, 6, input_feeding=feeding, num_layers=2, stack_dropout=0.5, **options
    )
    np.testing.assert_array_equal(logits_of(model), logits_of(model, training=False))
    assert np.any(logits_of(model) != logits_of(model, training=True))
    with tf.GradientTape() as tape:
        logits = model({"source": SOURCE, "target": TARGET}, training=True)
        loss = tf.reduce_sum(tf.nn.log_softmax(logits)[:, :, 3])
    for weight, gradient in zip(
        model.trainable_weights,
        tape.gradient(loss, [weight.value for weight in model.trainable_weights]),
        strict=True,
    ):
        assert gradient is not None and np.any(tf.convert_to_tensor(gradient)), weight.path


def test_feeding_is_the_gradient_of_a_loop_of_steps():
    model = make(**OPTIONS["feeding"])
    weights = [weight.value for weight in model.trainable_weights]
    source, target = SOURCE[:1], TARGET[:1]
    with tf.GradientTape(persistent=True) as tape:
        whole = tf.reduce_sum(tf.sin(model({"source": source, "target": target})))
        memory, states = model.encode(source)
        stepped = 0.0
        for t in range(target.shape[1]):
            logits, _, states = model.decoder.step(tf.constant(target[:, t]), states, memory)
            stepped += tf.reduce_sum(tf.sin(logits))
    for one, other in zip(
        tape.gradient(whole, weights), tape.gradient(stepped, weights), strict=True
    ):
        np.testing.assert_allclose(
            tf.convert_to_tensor(one), tf.convert_to_tensor(other), rtol=1e-4, atol=1e-4
        )


def test_scheduled_sampling_reads_the_models_own_tokens():
    model = make(**OPTIONS["general_gru"], scheduled_sampling=1.0, sampling_steps=2)
    plain = logits_of(model)
    # The share is still 0.
    np.testing.assert_allclose(logits_of(model, training=True), plain, atol=1e-5)
    model.steps_taken.assign(2)
    own = plain[:, :-1, 1:].argmax(axis=-1) + 1
    read = np.where(TARGET[:, 1:] > 0, own, 0)
    expected = logits_of(model, target=np.concatenate([TARGET[:, :1], read], axis=1))
    np.testing.assert_allclose(logits_of(model, training=True), expected, atol=1e-5)
    np.testing.assert_array_equal(logits_of(model), plain)
    assert float(model.steps_taken) == 3


def test_a_first_input_is_read_as_if_it_were_a_token():
    model = make(first_input=True, num_layers=2)
    _, states = model.encode(SOURCE)
    # Three tokens whose embeddings are what the bridge makes of the encoder's states.
    embeddings = np.array(model.decoder.encoder.embedding.embeddings)
    embeddings[[5, 6, 7]] = model.bridge(model.encoder(SOURCE)[1])[0]
    model.decoder.encoder.embedding.embeddings.assign(embeddings)
    _, expected = model.decoder(np.array([[5], [6], [7]]))
    for one, other in zip(states, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("feeding", [False, True])
def test_the_doubly_stochastic_penalty_by_hand(feeding):
    options = {"input_feeding": feeding, "scheduled_sampling": 0.5 if feeding else 0.0}
    model = make(
        AdditiveAttention, 6, cell="elman", doubly_stochastic=0.7, sampling_steps=10, **options
    )
    source, target = np.pad(SOURCE, ((0, 1), (0, 0))), np.pad(TARGET, ((0, 1), (0, 0)))
    weights = np.array(model.alignment(model.encode(source), target))
    overlooked = 0.0
    for row in range(3):  # the fourth is all padding
        for place in range((source[row] > 0).sum()):
            looked = weights[row, : (target[row] > 0).sum(), place].sum()
            overlooked += (1 - looked) ** 2
    model({"source": source, "target": target}, training=True)
    # Once only, although the share of sampled tokens, which is still 0, takes a pass of its own.
    (penalty,) = model.losses
    assert float(penalty) == pytest.approx(0.7 * overlooked / (target > 0).sum(), rel=1e-5)
    model({"source": source, "target": target}, training=False)
    assert model.losses == []


@pytest.mark.parametrize("name", ["no_attention", "first_input"])
def test_round_trip(name, tmp_path):
    penalty = 0.3 if "attention" in OPTIONS[name] else 0.0
    options = {"scheduled_sampling": 0.2, "sampling_steps": 7, "doubly_stochastic": penalty}
    model = make(**OPTIONS[name], dropout=0.1, **options)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(logits_of(loaded), logits_of(model))
    assert loaded.decoder.doubly_stochastic == penalty
    assert (loaded.dropout, loaded.scheduled_sampling, loaded.sampling_steps) == (0.1, 0.2, 7)
    assert loaded.first_input == (name == "first_input")


def test_the_bridge_is_one_layer_of_all_states():
    states = [np.ones((2, 3), "float32"), np.full((2, 1), 2, "float32")]
    bridge = Bridge([2, 4])
    first, second = bridge(states)
    kernel, bias = bridge.get_weights()
    expected = np.tanh(np.concatenate(states, axis=1) @ kernel + bias)
    np.testing.assert_allclose(np.concatenate([first, second], axis=1), expected, atol=1e-6)
    assert Bridge.from_config(bridge.get_config()).sizes == [2, 4]


def test_wrong_arguments():
    with pytest.raises(ValueError, match="Received: attention=None"):
        make(input_feeding=True)
    with pytest.raises(ValueError, match="Received: doubly_stochastic=1.0, attention=None"):
        make(doubly_stochastic=1.0)
    layers = SequenceEncoder("gru", 4, bidirectional=False, recurrent_weight_dropout=0.5)
    with pytest.raises(ValueError, match="Received: recurrent_weight_dropout=0.5"):
        Decoder(TextEncoder(10, 3, layers), MultiplicativeAttention(), input_feeding=True)
