"""The spelling of words: the convolution by hand, the LSTM by its own layers, and padding."""

import keras
import numpy as np
import pytest

from rnnapps.models import CharacterEncoder, SequenceEncoder

IDS = np.array([[[3, 1, 2, 0, 0], [4, 0, 0, 0, 0]], [[1, 2, 3, 4, 5], [0, 0, 0, 0, 0]]], "int32")


def built(**options):
    encoder = CharacterEncoder(6, 3, **options)
    encoder.build((None, None, 5))
    rng = np.random.default_rng(1)
    for weight in encoder.weights:
        if "seed" not in weight.path:
            weight.assign(rng.normal(size=weight.shape))
    return encoder


@pytest.mark.parametrize("width", [1, 2, 3])
def test_the_convolution_is_the_largest_value_of_each_filter_in_the_word(width):
    encoder = built(filters=4, width=width)
    table = np.array(encoder.embedding.embeddings)
    kernel, bias = encoder.convolution.get_weights()
    left = (width - 1) // 2
    expected = np.zeros((2, 2, 4))
    for place in np.ndindex(2, 2):
        word = [table[i] for i in IDS[place] if i]
        padded = [np.zeros(3)] * left + word + [np.zeros(3)] * (width - 1 - left)
        windows = [padded[i : i + width] for i in range(len(word))]
        if word:
            values = [np.concatenate(window) @ kernel for window in windows]
            expected[place] = np.max(values, axis=0) + bias
    np.testing.assert_allclose(encoder(IDS), expected, atol=1e-5)
    assert encoder.compute_output_shape(IDS.shape) == (2, 2, 4)


def test_the_lstm_reads_each_word_both_ways():
    encoder = built(filters=0, units=2)
    reader = SequenceEncoder("lstm", 2)
    reader.build((None, None, 3))
    reader.set_weights(encoder.encoder.get_weights())
    table = np.array(encoder.embedding.embeddings)
    outputs = np.array(encoder(IDS))
    for place in np.ndindex(2, 2):
        word = IDS[place][IDS[place] > 0]
        if word.size:
            _, states = reader(table[word][None])
            np.testing.assert_allclose(outputs[place], reader.last_output(states)[0], atol=1e-6)
        else:
            np.testing.assert_array_equal(outputs[place], 0)


def test_padding_and_neighbours_do_not_count():
    encoder = built(filters=4, units=2)
    outputs = encoder(IDS)
    np.testing.assert_allclose(
        encoder(np.pad(IDS, [(0, 0), (0, 3), (0, 4)]))[:, :2], outputs, atol=1e-6
    )
    np.testing.assert_allclose(encoder(IDS[:1, 1:, :1]), outputs[:1, 1:], atol=1e-6)
    assert encoder(IDS[:0]).shape == (0, 2, 8) and encoder(IDS[:, :0]).shape == (2, 0, 8)


def test_round_trip_and_refusal():
    encoder = built(filters=4, width=2, units=2, dropout=0.3)
    config = encoder.get_config()
    other = CharacterEncoder.from_config(config)
    assert other.get_config() == config
    inputs = keras.Input((None, 5), dtype="int32")
    assert encoder(inputs).shape == (None, None, 8)
    assert np.any(encoder(IDS, training=True) != encoder(IDS))
    with pytest.raises(ValueError, match="Received: filters=0, units=0"):
        CharacterEncoder(6, filters=0)
