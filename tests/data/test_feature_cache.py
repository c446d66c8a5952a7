"""Cached features: the values, order and duplicates, killed runs, other networks."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rnnapps.data import feature_cache
from rnnapps.data.feature_cache import FeatureCache, fingerprint, keys
from rnnapps.errors import UserError
from rnnapps.models.backbones import small_cnn

NAMES = [f"{n} image".encode() for n in range(10)]
SHAPE = (2, 3, 8)


def prepare(images):
    """ "Images" whose pixels are the bytes of their names."""
    pixels = tf.io.decode_raw(images, tf.uint8, fixed_length=6)  # [batch, 6]
    return tf.tile(tf.cast(pixels, tf.float32)[:, None, :, None], [1, 4, 1, 3])  # [batch, 4, 6, 3]


def dataset(names):
    return tf.data.Dataset.from_tensor_slices(tf.constant(names, tf.string))


class Network:
    """A backbone that counts the images that it sees, and may be killed."""

    def __init__(self, killed_after=None):
        self.model, self.seen, self.killed_after = small_cnn((8,)), 0, killed_after

    def __call__(self, images):
        if self.killed_after is not None and self.seen >= self.killed_after:
            raise KeyboardInterrupt
        self.seen += len(images)
        return self.model(images)


def expected(network, names):
    return network.model(prepare(tf.constant(names)))


def test_values_order_and_duplicates(tmp_path):
    network = Network()
    cache = FeatureCache(tmp_path / "deep" / "folder", "one", SHAPE)
    assert cache.fill(dataset(NAMES[:7] + NAMES[:4]), prepare, network, batch_size=3) == 7
    assert network.seen == len(cache) == 7
    order = [3, 3, 0, 6, 1]
    read = dataset([NAMES[n] for n in order]).batch(5).map(lambda batch: cache.read(keys(batch)))
    assert read.element_spec == tf.TensorSpec((None, *SHAPE))
    (features,) = read
    direct = expected(network, [NAMES[n] for n in order])
    np.testing.assert_allclose(features, direct, rtol=2**-11, atol=1e-7)
    # Another process finds them, and computes what is new.
    again = FeatureCache(tmp_path / "deep" / "folder", "one", SHAPE)
    assert again.fill(dataset(NAMES[::-1]), prepare, network) == 3
    assert network.seen == 10
    np.testing.assert_allclose(
        again.read(keys(tf.constant(NAMES))), expected(network, NAMES), rtol=2**-11, atol=1e-7
    )
    assert again.read(keys(tf.constant([], tf.string))).shape == (0, *SHAPE)
    assert FeatureCache(tmp_path, "none", SHAPE).fill(dataset([]), prepare, network) == 0


def test_a_killed_run_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(feature_cache, "_CHUNK_BYTES", 4 * (8 + 2 * 2 * 3 * 8))
    network = Network(killed_after=6)
    with pytest.raises(KeyboardInterrupt):
        FeatureCache(tmp_path, "one", SHAPE).fill(dataset(NAMES), prepare, network, batch_size=2)
    (whole,) = (tmp_path / "one").iterdir()
    # Half of a chunk, as a process that dies while it writes leaves it.
    half = whole.read_bytes()[: whole.stat().st_size // 2]
    (tmp_path / "one" / "writing-half.npy").write_bytes(half)
    network.seen, network.killed_after = 0, None
    cache = FeatureCache(tmp_path, "one", SHAPE)
    assert len(cache) == 4
    assert cache.fill(dataset(NAMES), prepare, network) == network.seen == 6
    np.testing.assert_allclose(
        cache.read(keys(tf.constant(NAMES))), expected(network, NAMES), rtol=2**-11, atol=1e-7
    )


def test_a_stale_cache_is_never_used(tmp_path):
    model = small_cnn((8,))
    first = fingerprint(model, image_size=6)
    assert fingerprint(model, image_size=7) != first
    copy = small_cnn((8,))
    assert fingerprint(copy, image_size=6) != first
    copy.set_weights(model.get_weights())
    assert fingerprint(copy, image_size=6) == first
    copy.trainable = False
    copy.save(tmp_path / "copy.keras")
    loaded = keras.saving.load_model(tmp_path / "copy.keras")
    assert fingerprint(loaded, image_size=6) == first
    images = keras.Input((None, None, 3))
    features = model.layers[1](images)
    renamed = [keras.layers.Conv2D(8, 3, 2, "same", activation=a) for a in ("relu", "tanh", "relu")]
    models = [keras.Model(images, layer(features)) for layer in renamed]
    for other in models:
        other.set_weights(models[0].get_weights())
    prints = [fingerprint(other) for other in models]  # the names of their layers differ
    assert prints[0] == prints[2] != prints[1]

    network = Network()
    FeatureCache(tmp_path, first, SHAPE).fill(dataset(NAMES), prepare, network)
    other = FeatureCache(tmp_path, fingerprint(model, image_size=7), SHAPE)
    assert len(other) == 0 and other.fill(dataset(NAMES), prepare, network) == 10


def test_features_that_float16_cannot_hold(tmp_path):
    cache = FeatureCache(tmp_path, "one", SHAPE)
    with pytest.raises(UserError, match="Received: 70000.0"):
        cache.fill(dataset(NAMES), prepare, lambda images: tf.fill((len(images), *SHAPE), 7e4))
    assert len(FeatureCache(tmp_path, "one", SHAPE)) == 0


def test_damaged_files_are_named(tmp_path):
    FeatureCache(tmp_path, "one", SHAPE).fill(dataset(NAMES), prepare, Network())
    (file,) = (tmp_path / "one").iterdir()
    whole = file.read_bytes()
    np.save(tmp_path / "other.npy", np.zeros(3))
    for content in (whole[:-8], whole[:40], b"", (tmp_path / "other.npy").read_bytes()):
        file.write_bytes(content)
        with pytest.raises(UserError, match=f"{file.name} is not a whole file of this cache"):
            FeatureCache(tmp_path, "one", SHAPE)
