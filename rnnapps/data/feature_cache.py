"""Features of images that are computed once and kept on disk."""

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rnnapps.errors import UserError
from rnnapps.folders import replacing

# A run that is killed loses one chunk at most.
_CHUNK_BYTES = 16 * 2**20
_LEFT_OVER_SECONDS = 3_600


def fingerprint(model: keras.Model, **how: Any) -> str:
    """Tells apart all that decides what features are.

    Args:
        model: what computes them. Its layers' names and whether it is trained do not count, which
            change nothing in what it computes.
        **how: what is done to an image before, such as its size; anything that JSON can hold.

    Returns:
        32 hexadecimal digits.

    Example:
    >>> from rnnapps.models import backbones
    >>> told = fingerprint(backbones.small_cnn((4,)), image_size=160, resize="pad")
    >>> len(told)
    32
    """
    names = {}
    for layer in _layers(model):
        names.setdefault(layer.name, f"layer {len(names)}")
    config = _without_names(keras.saving.serialize_keras_object(model), names)
    digest = hashlib.sha256(json.dumps([config, how], sort_keys=True, default=str).encode())
    for weight in model.weights:
        digest.update(f"{weight.dtype} {tuple(weight.shape)}".encode())
        digest.update(np.ascontiguousarray(weight.numpy()).tobytes())
    return digest.hexdigest()[:32]


def keys(images: tf.Tensor) -> tf.Tensor:
    """Returns what tells images apart: int64 `[batch]` for encoded images, string `[batch]`.

    It is FarmHash of all bytes: among a million different images two are taken for the same with a
    chance of 3 in 100 million.
    """
    return tf.bitcast(tf.fingerprint(images), tf.int64)  # [batch]


class FeatureCache:
    """Keeps the features of images in a folder, in float16.

    Its rounding, at most 0.05% of a value, is far below what dropout does to features in training;
    it halves what is kept and read. They are read as float32.

    Each fingerprint has a folder of its own, so that features of another network or size are never
    taken for these. In it are files of 16 MiB, each written beside and renamed when it is whole and
    on disk: a killed process leaves no half-written row, and another process that fills the same
    cache does no harm. They are mapped into memory, so that a data set larger than memory works.

    Args:
        folder: where to keep them; made where there is none.
        fingerprint: what `fingerprint` returned.
        shape: the features of one image, `(rows, columns, channels)`.

    Raises:
        UserError: If a file in the folder is none of this cache's, or was damaged.

    Example:
    >>> from rnnapps.data.images import decode
    >>> from rnnapps.models import backbones
    >>> backbone = backbones.small_cnn((4,))
    >>> png = tf.io.encode_png(tf.zeros([20, 30, 3], tf.uint8))
    >>> images = tf.data.Dataset.from_tensors(png)
    >>> cache = FeatureCache(Path("features"), fingerprint(backbone, image_size=32), (16, 16, 4))
    >>> cache.fill(images, lambda batch: decode(batch, 32)[0], tf.function(backbone))
    1
    >>> features = images.batch(32).map(lambda batch: cache.read(keys(batch)))
    >>> next(iter(features)).shape
    TensorShape([1, 16, 16, 4])
    """

    def __init__(self, folder: Path, fingerprint: str, shape: tuple[int, int, int]):
        self.shape = tuple(shape)
        self._row = np.dtype([("key", "<i8"), ("features", "<f2", self.shape)])
        self._folder = folder / fingerprint
        self._folder.mkdir(parents=True, exist_ok=True)
        self._chunks: list[np.ndarray] = []
        self._places: dict[int, tuple[int, int]] = {}
        for file in sorted(self._folder.glob("*.npy")):
            if not file.name.startswith("writing-"):
                self._open(file)
            elif time.time() - file.stat().st_mtime > _LEFT_OVER_SECONDS:
                file.unlink(missing_ok=True)

    def __len__(self) -> int:
        """Returns of how many images the features are known."""
        return len(self._places)

    def fill(
        self,
        images: tf.data.Dataset,
        prepare: Callable[[tf.Tensor], Any],
        compute: Callable[[Any], tf.Tensor],
        batch_size: int = 32,
    ) -> int:
        """Computes what is not known yet; each image once, however often it comes.

        Args:
            images: encoded images, scalar strings, in the same order at each pass.
            prepare: from a batch of them to what `compute` takes, TensorFlow operations only; it
                runs ahead of `compute`.
            compute: from that to features, `[batch, rows, columns, channels]`.
            batch_size: images that are computed together.

        Returns:
            The number of images that were computed.

        Raises:
            UserError: If a feature is no number that float16 can hold.
        """
        known = [keys_of.numpy() for keys_of in images.batch(256).map(keys)]
        known = np.concatenate(known) if known else np.zeros(0, "int64")  # [images]
        unique, first = np.unique(known, return_index=True)
        first = [at for key, at in zip(unique.tolist(), first, strict=True) if key not in self]
        if not first:
            return 0
        needed = np.zeros(len(known), bool)
        needed[first] = True
        needed_tensor = tf.constant(needed)
        batches = (
            images.enumerate()
            .filter(lambda at, _: needed_tensor[at])
            .map(lambda _, image: image)
            .batch(batch_size)
            .map(prepare)
            .prefetch(2)
        )
        waiting, computed = known[needed], 0
        rows: list[np.ndarray] = []
        for batch in batches:
            features = np.asarray(compute(batch))
            row = np.empty(len(features), self._row)
            row["key"] = waiting[computed : computed + len(features)]
            with np.errstate(over="ignore"):
                row["features"] = features
            if not np.isfinite(row["features"]).all():
                raise UserError(
                    "the features are not all numbers of at most 65,504, which are kept of a "
                    f"frozen feature extractor. Received: {np.abs(features).max()}"
                )
            rows.append(row)
            computed += len(features)
            if sum(row.nbytes for row in rows) >= _CHUNK_BYTES:
                self._write(np.concatenate(rows))
                rows = []
        if rows:
            self._write(np.concatenate(rows))
        return computed

    def __contains__(self, key: int) -> bool:
        """Returns whether the features of an image of this key are known."""
        return key in self._places

    def read(self, keys: tf.Tensor) -> tf.Tensor:
        """Reads features, in a data set's `map` too.

        Args:
            keys: int64 `[batch]`, of images that are known.

        Returns:
            float32 `[batch, rows, columns, channels]`.
        """
        features = tf.numpy_function(self._read, [keys], tf.float32, stateful=False)
        return tf.ensure_shape(features, (*keys.shape, *self.shape))

    def _read(self, keys: np.ndarray) -> np.ndarray:
        features = np.empty((len(keys), *self.shape), "float32")
        for row, key in zip(features, keys.tolist(), strict=True):
            chunk, at = self._places[key]
            row[:] = self._chunks[chunk][at]
        return features

    def _write(self, rows: np.ndarray) -> None:
        file = self._folder / f"{uuid.uuid4().hex}.npy"  # no other process writes one of this name
        with replacing(file) as beside, beside.open("wb") as handle:
            np.save(handle, rows)
        self._open(file)

    def _open(self, file: Path) -> None:
        try:
            rows = np.load(file, mmap_mode="r")
        except (ValueError, EOFError):
            rows = None
        if rows is None or rows.dtype != self._row:
            raise UserError(f"{file} is not a whole file of this cache: remove it")
        for at, key in enumerate(rows["key"].tolist()):
            self._places[key] = len(self._chunks), at
        self._chunks.append(rows["features"])


def _layers(model: keras.Layer) -> Iterator[keras.Layer]:
    """Yields a model and the layers in it, those of models inside it too."""
    yield model
    for layer in getattr(model, "layers", ()):
        yield from _layers(layer)


def _without_names(config: Any, names: dict[str, str]) -> Any:
    """Returns a configuration with its layers' names replaced, and without what does not count."""
    if isinstance(config, dict):
        return {
            key: _without_names(value, names)
            for key, value in config.items()
            if key not in ("trainable", "compile_config")
        }
    if isinstance(config, (list, tuple)):
        return [_without_names(value, names) for value in config]
    return names.get(config, config) if isinstance(config, str) else config
