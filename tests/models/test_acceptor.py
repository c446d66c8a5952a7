"""The classifier: its parts in order, invariances, precision, saving, training."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rnnapps.layers.pooling import MODES
from rnnapps.models import Acceptor, SequenceEncoder, TextEncoder

IDS = np.array([[5, 2, 7, 0, 0], [1, 2, 3, 4, 5], [0, 0, 0, 0, 0], [9, 0, 0, 0, 0]], "int32")
X = np.random.default_rng(0).normal(size=(4, 5, 3)).astype("float32")


@pytest.fixture
def policy():
    yield keras.config.set_dtype_policy
    keras.config.set_dtype_policy("float32")


def text_acceptor(pooling="max", cell="gru", **options):
    encoder = TextEncoder(10, 3, SequenceEncoder(cell, 4, num_layers=2), dropout=0.1)
    model = Acceptor(encoder, num_classes=3, pooling=pooling, **options)
    model.build((None, None))
    # Far from the initial weights, so that a difference cannot hide in small numbers.
    rng = np.random.default_rng(2)
    model.set_weights([rng.normal(size=w.shape) for w in model.weights if "seed" not in w.path])
    return model


@pytest.mark.parametrize("pooling", MODES)
@pytest.mark.parametrize("hidden_units", [0, 6])
def test_is_its_parts_one_after_the_other(pooling, hidden_units):
    model = text_acceptor(pooling, hidden_units=hidden_units, hidden_activation="tanh")
    outputs, states = model.encoder(IDS)
    if pooling == "last":
        vector = model.encoder.last_output(states)
    else:
        vector = model.pooling_layer(outputs, mask=IDS != 0)
    np.testing.assert_array_equal(model.encode(IDS), vector)
    features = np.array(vector)
    if hidden_units:
        W, b = model.hidden_layer.get_weights()
        features = np.tanh(features @ W + b)
    W, b = model.output_layer.get_weights()
    logits = model(IDS)
    np.testing.assert_allclose(logits, features @ W + b, atol=1e-5)
    assert logits.shape == (4, 3)
    assert getattr(logits, "_keras_mask", None) is None


@pytest.mark.parametrize(
    ("cell", "pooling"), [*(("gru", mode) for mode in MODES), ("elman", "last"), ("lstm", "last")]
)
def test_an_answer_does_not_depend_on_its_batch_or_padding(cell, pooling):
    """Only the last output is made of the cell's states; the other poolings see outputs alone."""
    model = text_acceptor(pooling, cell, hidden_units=5)
    logits = model(IDS)
    np.testing.assert_allclose(model(np.pad(IDS, [(0, 0), (0, 9)])), logits, atol=1e-6)
    for row, length in enumerate((IDS != 0).sum(axis=1)):
        np.testing.assert_allclose(model(IDS[row : row + 1, :length])[0], logits[row], atol=2e-6)


@pytest.mark.parametrize(
    ("pooling", "jit_compile"), [*((mode, False) for mode in MODES), ("attention", True)]
)
def test_nothing_to_read(pooling, jit_compile):
    model = text_acceptor(pooling)
    spec = tf.TensorSpec([None, None], tf.int32)
    run = tf.function(lambda ids: model(ids), input_signature=[spec], jit_compile=jit_compile)
    padding = run(tf.zeros((2, 3), tf.int32))
    bias = model.output_layer.get_weights()[1]
    np.testing.assert_allclose(padding, [bias, bias], atol=1e-6)
    np.testing.assert_array_equal(run(tf.zeros((2, 0), tf.int32)), padding)
    assert run(tf.zeros((0, 4), tf.int32)).shape == (0, 3)


@pytest.mark.parametrize("pooling", MODES)
def test_float_sequences_take_a_mask(pooling):
    model = Acceptor(SequenceEncoder("lstm", 4), num_classes=2, pooling=pooling)
    mask = IDS != 0
    logits = model(X, mask=mask)
    garbled = np.where(mask[..., None], X, 1e3)
    np.testing.assert_array_equal(model(garbled, mask=mask), logits)
    np.testing.assert_allclose(model(X[:1, :3]), logits[:1], atol=1e-6)
    attached = keras.layers.Masking()(np.where(mask[..., None], X, 0))
    np.testing.assert_array_equal(model(attached), logits)
    assert model.encode(X, mask=mask).shape == (4, 8)


@pytest.mark.parametrize(
    ("dtype", "pooling"),
    [*(("mixed_float16", mode) for mode in MODES), ("mixed_bfloat16", "attention")],
)
def test_logits_are_float32_in_mixed_precision(policy, dtype, pooling):
    reference = text_acceptor(pooling, hidden_units=5)
    policy(dtype)
    model = text_acceptor(pooling, hidden_units=5)
    logits = model(IDS)
    assert logits.dtype == "float32"
    assert model.encode(IDS).dtype == model.compute_dtype == dtype.removeprefix("mixed_")
    np.testing.assert_allclose(logits, reference(IDS), atol=0.2 if "b" in dtype else 0.02)
    assert model(keras.Input((None,), dtype="int32")).dtype == "float32"


@pytest.mark.parametrize("pooling", MODES)
def test_gradients_are_finite_and_padding_gets_none(pooling):
    model = text_acceptor(pooling, hidden_units=5, dropout=0.3)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(
            keras.losses.sparse_categorical_crossentropy(
                tf.constant([0, 1, 2, 0]), model(tf.constant(IDS), training=True), from_logits=True
            )
        )
    variables = [w.value for w in model.trainable_variables]
    gradients = [tf.convert_to_tensor(g) for g in tape.gradient(loss, variables)]
    assert all(np.all(np.isfinite(g)) for g in gradients)
    by_path = dict(zip((w.path for w in model.trainable_variables), gradients, strict=True))
    (embedding,) = (g for path, g in by_path.items() if path.endswith("embeddings"))
    np.testing.assert_array_equal(embedding[0], 0)
    assert np.any(embedding != 0)


def test_dropout_is_off_at_inference():
    model = text_acceptor(hidden_units=5, dropout=0.5)
    np.testing.assert_array_equal(model(IDS), model(IDS, training=False))
    assert np.any(model(IDS, training=True) != model(IDS))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pooling": "last", "cell": "lstm"},
        {"pooling": "attention", "hidden_units": 5, "hidden_activation": "tanh", "dropout": 0.2},
        {"pooling": "mean", "dtype": "mixed_bfloat16", "name": "judge"},
    ],
)
def test_round_trips(options, tmp_path):
    model = text_acceptor(**options)
    config = model.get_config()
    assert Acceptor.from_config(config).get_config().keys() == config.keys()
    for name in options.keys() - {"cell", "dtype"}:
        assert config[name] == options[name]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.compute_dtype == model.compute_dtype
    np.testing.assert_array_equal(loaded(IDS), model(IDS))
    np.testing.assert_array_equal(loaded.encode(IDS), model.encode(IDS))


def test_an_exported_model_answers_alike(tmp_path):
    encoder = TextEncoder(10, 3, SequenceEncoder("lstm", 4, recurrent_dropout=0.3), dropout=0.1)
    model = Acceptor(encoder, num_classes=3, pooling="attention", dropout=0.2)
    model.build((None, None))
    signature = [keras.InputSpec(shape=(None, None), dtype="int32")]
    model.export(str(tmp_path / "model"), input_signature=signature, verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    for ids in (IDS, IDS[:1], IDS[:, :0], IDS[:0]):
        np.testing.assert_allclose(loaded.serve(ids), model(ids), atol=1e-6)


def test_learns_what_only_order_tells(tmp_path):
    """Which of two tokens came first: no bag of words can know it."""
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    ids = rng.integers(3, 8, size=(256, 7))
    first, second = np.sort(np.argsort(rng.random((256, 7)), axis=1)[:, :2], axis=1).T
    labels = rng.integers(0, 2, size=256)
    rows = np.arange(256)
    ids[rows, first], ids[rows, second] = 1 + labels, 2 - labels
    encoder = TextEncoder(8, 8, SequenceEncoder("lstm", 16, bidirectional=False))
    model = Acceptor(encoder, num_classes=2, pooling="last")
    model.compile(
        keras.optimizers.Adam(0.02),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(ids, labels, epochs=15, batch_size=64, verbose=0)
    assert model.evaluate(ids, labels, verbose=0)[1] > 0.95
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(ids), model(ids))


def test_impossible_arguments_are_refused():
    encoder = SequenceEncoder("gru", 2)
    with pytest.raises(ValueError, match="Received: num_classes=0"):
        Acceptor(encoder, num_classes=0)
    with pytest.raises(ValueError, match="Received: mode='sum'"):
        Acceptor(encoder, num_classes=2, pooling="sum")
