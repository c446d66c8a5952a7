"""Token ids: padding is masked, not seen and not trained."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rnnapps.models import SequenceEncoder, TextEncoder

IDS = np.array([[5, 2, 7, 0, 0], [1, 2, 3, 4, 5], [0, 0, 0, 0, 0], [9, 0, 0, 0, 0]], "int32")


def text_encoder(dropout=0.0, **options):
    encoder = TextEncoder(10, 3, SequenceEncoder("lstm", 4, num_layers=2), dropout, **options)
    encoder.build((None, None))
    return encoder


def test_is_an_embedding_read_by_the_encoder():
    encoder = text_encoder()
    outputs, states = encoder(IDS)
    embedded = np.array(encoder.embedding.embeddings)[IDS]
    expected, expected_states = encoder.encoder(embedded, mask=IDS != 0)
    np.testing.assert_array_equal(outputs, expected)
    for one, other in zip(states, expected_states, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(encoder.last_output(states), encoder.encoder.last_output(states))
    np.testing.assert_array_equal(encoder.compute_mask(IDS), IDS != 0)
    np.testing.assert_array_equal(outputs._keras_mask, IDS != 0)


def test_embeddings_start_small():
    embeddings = text_encoder().embedding.embeddings.numpy()
    assert 0.15 < np.abs(embeddings).max() <= 0.25


def test_the_ids_of_one_token_are_summed():
    encoder = TextEncoder(10, 3, SequenceEncoder("lstm", 4))
    encoder.build((None, None, None))
    ids = np.array([[[5, 2], [7, 1], [0, 0]], [[1, 1], [0, 0], [0, 0]]], "int32")
    outputs, _ = encoder(ids)
    embedded = np.array(encoder.embedding.embeddings)[ids].sum(axis=2)
    expected, _ = encoder.encoder(embedded, mask=ids[:, :, 0] != 0)
    np.testing.assert_allclose(outputs, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(encoder.compute_mask(ids), ids[:, :, 0] != 0)
    assert encoder.compute_output_shape(ids.shape)[0] == outputs.shape
    single, _ = encoder(ids[:, :, :1])
    np.testing.assert_allclose(single, encoder(ids[:, :, 0])[0], rtol=1e-6, atol=1e-7)


def test_padding_is_neither_seen_nor_trained():
    encoder = text_encoder()
    outputs, states = encoder(IDS)
    longer, longer_states = encoder(np.pad(IDS, [(0, 0), (0, 6)]))
    np.testing.assert_array_equal(longer[:, :5], outputs)
    np.testing.assert_array_equal(longer[:, 5:], 0)
    for one, other in zip(longer_states, states, strict=True):
        np.testing.assert_array_equal(one, other)

    embeddings = encoder.embedding.embeddings
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(encoder(tf.constant(IDS))[0] ** 2)
    gradient = tf.convert_to_tensor(tape.gradient(loss, embeddings.value))
    np.testing.assert_array_equal(gradient[0], 0)
    used = np.setdiff1d(IDS, 0)
    assert np.all(np.any(gradient.numpy()[used] != 0, axis=1))

    embeddings.assign(tf.tensor_scatter_nd_update(embeddings.value, [[0]], [[1e3] * 3]))
    np.testing.assert_array_equal(encoder(IDS)[0], outputs)


def test_dropout_acts_on_the_embeddings_in_training_only():
    encoder = text_encoder(dropout=0.5)
    outputs, _ = encoder(IDS)
    np.testing.assert_array_equal(encoder(IDS, training=False)[0], outputs)
    dropped, _ = encoder(IDS, training=True)
    assert np.any(dropped != outputs)
    np.testing.assert_array_equal(dropped[IDS == 0], 0)


def test_initial_states_reach_the_encoder():
    encoder = text_encoder()
    _, states = encoder(IDS)
    start = [state + 1.0 for state in states]
    outputs, end = encoder(tf.zeros((4, 0), tf.int32), initial_state=start)
    assert outputs.shape == (4, 0, 8)
    for one, other in zip(end, start, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_round_trips_and_shapes(dtype, tmp_path):
    encoder = text_encoder(dropout=0.2, dtype=dtype)
    config = encoder.get_config()
    assert config["vocabulary_size"] == 10
    assert config["embedding_size"] == 3
    assert config["dropout"] == 0.2
    assert TextEncoder.from_config(config).encoder.get_config() == encoder.encoder.get_config()

    inputs = keras.Input((None,), dtype="int32")
    symbolic, states = encoder(inputs)
    assert symbolic.shape == (None, None, 8)
    assert [s.shape for s in states] == [(None, 4)] * 8
    model = keras.Model(inputs, symbolic)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(IDS), model(IDS))
