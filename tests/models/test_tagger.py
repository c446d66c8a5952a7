"""The tagger: its parts, invariances, CRF and softmax, saving, training."""

import keras
import numpy as np
import pytest

from rnnapps.data.tagging_schemes import allowed_transitions
from rnnapps.layers import CRFLoss
from rnnapps.models import CharacterEncoder, SequenceEncoder, Tagger, TextEncoder, UnknownWords

RNG = np.random.default_rng(0)
IDS = np.array([[5, 2, 7, 0, 0], [1, 2, 3, 4, 5], [0, 0, 0, 0, 0], [9, 0, 0, 0, 0]], "int32")
INPUTS = {
    "words": IDS,
    "characters": np.where(IDS[..., None] > 0, RNG.integers(0, 8, size=(4, 5, 6)), 0),
    "casing": np.where(IDS > 0, IDS % 3 + 1, 0),
}
NAMES = ["O", "B-X", "E-X", "I-X", "S-X"]
ALLOWED = allowed_transitions(NAMES, "iobes")


def tagger(cell="lstm", **options):
    features = {
        "characters": CharacterEncoder(8, 3, filters=4, units=2),
        "casing": keras.layers.Embedding(4, 2),
    }
    encoder = TextEncoder(10, 3, SequenceEncoder(cell, 4), dropout=0.1)
    model = Tagger(encoder, len(NAMES), features, **options)
    model.build({"words": (None, None), "characters": (None, None, 6), "casing": (None, None)})
    rng = np.random.default_rng(2)
    for weight in model.weights:
        if "seed" not in weight.path:
            weight.assign(rng.normal(size=weight.shape))
    return model


def test_is_its_parts_one_after_the_other():
    model = tagger()
    parts = [layer(INPUTS[name]) for name, layer in model.features.items()]
    outputs, _ = model.encoder(IDS, np.concatenate(parts, axis=-1))
    emissions = model(INPUTS)
    np.testing.assert_allclose(emissions, model.output_layer(outputs), atol=1e-6)
    np.testing.assert_array_equal(emissions._keras_mask, IDS != 0)
    tags, confidences = model.tag(INPUTS)
    np.testing.assert_array_equal(tags, model.crf.decode(emissions, IDS != 0)[0])
    marginals = np.array(model.crf.marginals(emissions, IDS != 0))
    expected = np.take_along_axis(marginals, np.array(tags)[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(confidences, np.where(IDS > 0, expected, 0), atol=1e-6)


def test_an_answer_does_not_depend_on_its_batch_or_padding():
    model = tagger(allowed=ALLOWED)
    tags, confidences = model.tag(INPUTS)
    for row, length in enumerate((IDS != 0).sum(axis=1)):
        alone = {name: values[row : row + 1, :length] for name, values in INPUTS.items()}
        for one, other in zip(model.tag(alone), (tags, confidences), strict=True):
            np.testing.assert_allclose(one[0], other[row, :length], atol=2e-6)
            np.testing.assert_array_equal(other[row, length:], 0)
    nothing = {name: values[:0] for name, values in INPUTS.items()}
    assert model.tag(nothing)[0].shape == (0, 5)


def test_what_may_not_follow_never_comes_out():
    for use_crf in (False, True):
        model = tagger(allowed=ALLOWED, use_crf=use_crf)
        for row in np.array(model.tag({name: v[:2] for name, v in INPUTS.items()})[0]):
            assert all(ALLOWED.transitions[a, b] for a, b in zip(row, row[1:], strict=False))


def test_without_a_crf_the_loss_is_that_of_a_softmax():
    model = tagger(use_crf=False, allowed=ALLOWED)
    for weight in model.crf.weights:
        weight.assign(np.zeros(weight.shape))
    assert not any("crf" in weight.path for weight in model.trainable_weights)
    tags = np.where(IDS > 0, IDS % 5, -1)
    emissions = model(INPUTS)
    loss = CRFLoss(model.crf, reduction=None)(tags, emissions)
    each = keras.losses.sparse_categorical_crossentropy(
        np.maximum(tags, 0), emissions, from_logits=True
    )
    np.testing.assert_allclose(loss, np.where(tags >= 0, each, 0).sum(axis=1), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_emissions_are_float32_in_mixed_precision(dtype):
    reference = tagger()
    keras.config.set_dtype_policy(dtype)
    try:
        model = tagger()
    finally:
        keras.config.set_dtype_policy("float32")
    assert model(INPUTS).dtype == "float32" and model.crf.transitions.dtype == "float32"
    np.testing.assert_allclose(model(INPUTS), reference(INPUTS), atol=0.3 if "b" in dtype else 0.03)


def test_round_trips(tmp_path):
    model = tagger(
        allowed=ALLOWED,
        constrain_training=True,
        unknown_words=UnknownWords(4, share=0.3),
        dropout=0.2,
        name="names",
    )
    config = model.get_config()
    assert Tagger.from_config(config).get_config().keys() == config.keys()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.crf.constrain_training and loaded.unknown_words.share == 0.3
    for one, other in zip(loaded.tag(INPUTS), model.tag(INPUTS), strict=True):
        np.testing.assert_array_equal(one, other)


def test_words_alone_are_enough_and_are_learnt_by_fit():
    """Each tag is that of the word before: a tagger of single words cannot know it."""
    keras.utils.set_random_seed(0)
    ids = np.random.default_rng(0).integers(1, 6, size=(128, 9))
    ids[::2, 6:] = 0
    tags = np.pad(ids % 2, [(0, 0), (1, 0)])[:, :-1]
    model = Tagger(TextEncoder(6, 8, SequenceEncoder("gru", 16)), 2)
    model.build((None, None))
    model.compile(keras.optimizers.Adam(0.02), CRFLoss(model.crf))
    losses = model.fit(ids, tags, epochs=15, batch_size=32, verbose=0).history["loss"]
    assert losses[-1] < 0.1 < 1 < losses[0]
    found, confidences = model.tag(ids)
    assert np.mean(np.array(found)[ids > 0] == tags[ids > 0]) > 0.99
    assert np.all(np.array(confidences)[ids > 0] > 0.5)


def test_impossible_arguments_are_refused():
    with pytest.raises(ValueError, match="Received: num_tags=0"):
        Tagger(TextEncoder(6, 8, SequenceEncoder("gru", 2)), 0)


def test_rare_words_are_read_as_unknown_in_training_only():
    layer = UnknownWords(first_rare=5, share=0.25, seed=1)
    ids = np.tile(np.arange(10, dtype="int32"), (1000, 1))
    np.testing.assert_array_equal(layer(ids), ids)
    replaced = np.array(layer(ids, training=True))
    assert set(replaced[replaced != ids]) == {1}
    shares = (replaced != ids).mean(axis=0)
    assert np.all(shares[:5] == 0) and np.all(np.abs(shares[5:] - 0.25) < 0.06)
    assert np.any(replaced != np.array(layer(ids, training=True)))
    model = tagger(unknown_words=UnknownWords(first_rare=2, share=0.999))
    np.testing.assert_array_equal(model(INPUTS), model(INPUTS, training=False))
    assert np.any(model(INPUTS, training=True) != model(INPUTS))
