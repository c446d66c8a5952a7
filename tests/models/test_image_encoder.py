"""The image encoder: features for images, batches, what is trained, round trips, captions."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rnnapps.errors import UserError
from rnnapps.layers import AdditiveAttention
from rnnapps.models import (
    Decoder,
    EncoderDecoder,
    ImageEncoder,
    SequenceEncoder,
    TextEncoder,
    backbones,
)

IMAGES = np.random.default_rng(5).integers(0, 256, (3, 16, 24, 3)).astype("float32")
TARGET = np.array([[2, 9, 4, 8], [2, 7, 0, 0], [2, 3, 5, 0]], "int32")


def encoder_of(filters=(8, 16), **options):
    return ImageEncoder(backbones.small_cnn(filters), 5, **options)


def captioner(first_input=False, **options):
    writer = TextEncoder(10, 3, SequenceEncoder("lstm", 4, bidirectional=False))
    decoder = Decoder(writer, AdditiveAttention(6), doubly_stochastic=1.0)
    model = EncoderDecoder(encoder_of(**options), decoder, first_input=first_input)
    model.build({"source": (None, None, None, 3), "target": (None, None)})
    return model


def test_regions_by_hand():
    encoder = encoder_of()
    outputs, states = encoder(IMAGES)
    features = np.array(encoder.features(IMAGES))
    assert features.shape == (3, 4, 6, 16)
    rows, columns = np.meshgrid(np.linspace(-1, 1, 4), np.linspace(-1, 1, 6), indexing="ij")
    places = np.broadcast_to(np.stack([rows, columns], axis=-1), (3, 4, 6, 2))
    features = np.concatenate([features, places], axis=-1)
    expected = np.maximum(features @ encoder.dense.kernel + encoder.dense.bias, 0)
    expected = expected.reshape(3, 24, 5)  # row by row
    np.testing.assert_allclose(outputs, expected, atol=1e-5)
    largest = expected.max(axis=1)
    seen = (largest - largest.mean(-1, keepdims=True)) / np.sqrt(
        largest.var(-1, keepdims=True) + 1e-3
    )
    np.testing.assert_allclose(encoder.last_output(states), seen, atol=1e-5)
    assert encoder.grid(16, 24) == (4, 6)
    assert encoder.compute_output_shape((3, 16, 24, 3)) == ((3, 24, 5), [(3, 5)])
    assert encoder.compute_output_shape((3, 4, 6, 16)) == ((3, 24, 5), [(3, 5)])
    assert encoder.compute_output_shape((None, None, None, 3)) == ((None, None, 5), [(None, 5)])


def test_features_and_small_integers_are_as_good_as_images():
    encoder = encoder_of(dropout=0.5)
    outputs, _ = encoder(IMAGES)
    np.testing.assert_array_equal(encoder(IMAGES.astype("uint8"))[0], outputs)
    np.testing.assert_array_equal(encoder(encoder.features(IMAGES))[0], outputs)
    assert np.any(np.array(encoder(IMAGES, training=True)[0]) != outputs)
    with pytest.raises(ValueError, match=r"Received: shape=\(3, 4, 6, 7\)"):
        encoder(np.zeros((3, 4, 6, 7), "float32"))


def test_an_image_does_not_depend_on_its_batch_and_a_black_one_is_seen():
    model = captioner()
    images = IMAGES * np.array([1, 0, 1])[:, None, None, None].astype("float32")
    together = model({"source": images, "target": TARGET})
    for row in range(3):
        inputs = {"source": images[row : row + 1], "target": TARGET[row : row + 1]}
        np.testing.assert_allclose(model(inputs)[0], together[row], atol=1e-5)
    alignment = np.array(model.alignment(model.encode(images), TARGET))
    assert alignment.shape == (3, 4, 24)
    np.testing.assert_allclose(alignment.sum(axis=-1), 1, atol=1e-5)
    assert np.all(alignment > 0)
    specs = {
        "source": tf.TensorSpec((None, 16, 24, 3)),
        "target": tf.TensorSpec((None, 4), "int32"),
    }
    none = {"source": images[:0], "target": TARGET[:0]}
    assert tf.function(model, [specs])(none).shape == model(none).shape == (0, 4, 10)


def test_steps_one_by_one_are_the_call():
    model = captioner(first_input=True)
    logits = model({"source": IMAGES, "target": TARGET})
    memory, states = model.encode(IMAGES)
    for t in range(TARGET.shape[1]):
        stepped, _, states = model.decoder.step(tf.constant(TARGET[:, t]), states, memory)
        there = TARGET[:, t] > 0
        np.testing.assert_allclose(stepped[there], logits[:, t][there], atol=1e-5)


@pytest.mark.parametrize("train_backbone", [False, True])
def test_what_is_trained(train_backbone):
    model = captioner(first_input=train_backbone, train_backbone=train_backbone)
    weights = model.trainable_weights
    own = {id(weight) for weight in model.encoder.backbone.weights}
    assert any(id(weight) in own for weight in weights) == train_backbone
    with tf.GradientTape() as tape:
        logits = model({"source": IMAGES, "target": TARGET}, training=True)
        loss = tf.reduce_sum(tf.nn.log_softmax(logits)[:, :, 3]) + model.losses[0]
    for weight, gradient in zip(
        weights, tape.gradient(loss, [weight.value for weight in weights]), strict=True
    ):
        assert gradient is not None and np.any(tf.convert_to_tensor(gradient)), weight.path


def test_batch_normalization_keeps_its_statistics_in_training():
    images = keras.Input((None, None, 3))
    features = keras.layers.Conv2D(4, 3, 2, "same")(images)
    features = keras.layers.BatchNormalization()(features)
    encoder = ImageEncoder(keras.Model(images, features), 5)
    calm = np.array(encoder(IMAGES)[0])
    np.testing.assert_array_equal(encoder(IMAGES, training=True)[0], calm)
    np.testing.assert_array_equal(encoder(IMAGES)[0], calm)


def test_round_trips(tmp_path):
    model = captioner(first_input=True, dropout=0.2, train_backbone=False)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    inputs = {"source": IMAGES, "target": TARGET}
    np.testing.assert_array_equal(loaded(inputs), model(inputs))
    assert (loaded.encoder.dropout, loaded.encoder.train_backbone) == (0.2, False)
    assert len(loaded.trainable_weights) == len(model.trainable_weights)
    module, encoder = tf.Module(), model.encoder
    module.kept = [variable.value for variable in encoder.variables]
    images = tf.TensorSpec((None, None, None, 3))
    module.see = tf.function(lambda images: encoder(images)[0], [images])
    tf.saved_model.save(module, str(tmp_path / "saved"))
    saved = tf.saved_model.load(str(tmp_path / "saved"))
    np.testing.assert_allclose(saved.see(tf.constant(IMAGES)), encoder(IMAGES)[0], atol=1e-5)


def test_half_precision():
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = captioner()
    finally:
        keras.config.set_dtype_policy("float32")
    outputs, states = model.encoder(IMAGES)
    assert outputs.dtype == states[0].dtype == "bfloat16"
    assert model({"source": IMAGES, "target": TARGET}, training=True).dtype == "float32"


def test_the_small_network_learns_left_from_right():
    """Of two squares it learns whether the red one is on the left, at the rate of captioning."""
    rng = np.random.default_rng(0)
    images, answers = np.full((200, 32, 32, 3), 128, "float32"), rng.integers(0, 2, 200)
    for image, red_right in zip(images, answers, strict=True):
        for right in (0, 1):
            row, column = rng.integers(0, 11, 2)
            colour = [255, 0, 0] if right == red_right else [0, 255, 0]
            image[row * 2 : row * 2 + 6, 16 * right + column : 16 * right + column + 6] = colour
    encoder, answer = encoder_of((16, 32, 64)), keras.layers.Dense(2)
    encoder.build(images.shape)
    answer.build((None, 5))
    optimizer = keras.optimizers.Adam(2e-3)
    weights = encoder.trainable_weights + answer.trainable_weights

    @tf.function
    def step(seen, expected):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                expected, answer(encoder(seen)[1][0])
            )
        gradients = tape.gradient(losses, [weight.value for weight in weights])
        optimizer.apply(gradients, weights)
        return tf.reduce_mean(losses)

    for _ in range(12):
        losses = [
            float(step(images[begin : begin + 20], answers[begin : begin + 20]))
            for begin in range(0, 200, 20)
        ]
    assert np.mean(losses) < 0.05


def test_networks_of_keras_preprocess_on_their_own():
    with pytest.raises(UserError, match="Received: name='resnet50'"):
        backbones.pretrained("resnet50")
    backbone = backbones.pretrained("MobileNetV2", weights=None)
    network = backbone.layers[-1]
    images = np.tile(IMAGES, (1, 4, 3, 1))
    np.testing.assert_allclose(backbone(images), network(images / 127.5 - 1), rtol=1e-3)
    with pytest.raises(UserError, match="too small.*Received: height=1, width=72"):
        ImageEncoder(backbone, 5).build((None, 1, 72, 3))
    preprocessing = backbones.ApplicationPreprocessing("vgg16")
    expected = IMAGES[..., ::-1] - np.array([103.939, 116.779, 123.68])
    np.testing.assert_allclose(preprocessing(IMAGES), expected, atol=1e-4)
    again = backbones.ApplicationPreprocessing.from_config(preprocessing.get_config())
    assert again.module == "vgg16"


def test_weights_that_cannot_be_downloaded(monkeypatch):
    def offline(*args, **options):
        raise Exception("URL fetch failure on https://example.org: None -- no route")

    monkeypatch.setattr("keras.src.applications.mobilenet_v2.file_utils.get_file", offline)
    with pytest.raises(UserError, match="no route.*~/.keras/models.*feature extractor"):
        backbones.pretrained("MobileNetV2")


def test_backbones_from_files(tmp_path):
    backbone = backbones.small_cnn((8,))
    backbone.save(tmp_path / "good.keras")
    loaded = backbones.from_file(tmp_path / "good.keras")
    np.testing.assert_array_equal(loaded(IMAGES), backbone(IMAGES))
    with pytest.raises(UserError, match="no such file"):
        backbones.from_file(tmp_path / "none.keras")
    (tmp_path / "text.keras").write_text("no model")
    with pytest.raises(UserError, match="text.keras: not a model"):
        backbones.from_file(tmp_path / "text.keras")
    images = keras.Input((None, None, 3))
    keras.Model(images, keras.layers.Lambda(lambda x: x[..., :2])(images)).save(
        tmp_path / "code.keras"
    )
    with pytest.raises(UserError, match="not a model that Keras can load safely"):
        backbones.from_file(tmp_path / "code.keras")
    keras.Model(images, keras.layers.ZeroPadding2D(1)(images)).save(tmp_path / "padded.keras")
    with pytest.raises(UserError, match=r"padded.keras: .* and \(None, None, None, 3\)"):
        backbones.from_file(tmp_path / "padded.keras")


def test_backbones_of_one_vector_and_of_one_size(tmp_path):
    layers = [
        keras.Input(IMAGES.shape[1:]),
        keras.layers.AveragePooling2D(8),
        keras.layers.Flatten(),
    ]
    pooled = keras.Sequential(layers)
    pooled.save(tmp_path / "pooled.keras")
    loaded = backbones.from_file(tmp_path / "pooled.keras")
    np.testing.assert_array_equal(loaded(IMAGES)[:, 0, 0], pooled(IMAGES))
    encoder = ImageEncoder(loaded, 5)
    assert encoder(IMAGES)[0].shape == (len(IMAGES), 1, 5)
    with pytest.raises(UserError, match="16 high and 24 wide .* Received: height=32, width=32"):
        encoder.grid(32, 32)
    nasnet = backbones.pretrained("NASNetMobile", weights=None)
    assert nasnet.compute_output_shape((None, 224, 224, 3)) == (None, 7, 7, 1056)
