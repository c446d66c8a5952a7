"""Captioning: an image in, sentences about it out (one-to-many)."""

import collections
import dataclasses
import functools
import json
import logging
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from etils import epy
from jsonargparse.typing import NonNegativeFloat, PositiveFloat, PositiveInt

from rnnapps.errors import UserError
from rnnapps.tasks import search
from rnnapps.tasks.config import Auto, DataConfig, Share, TrainingConfig, with_defaults_of
from rnnapps.tasks.drawn_attention import DrawnAttention
from rnnapps.tasks.search import SearchConfig
from rnnapps.tasks.task import Evaluation, Objective, Splits, Task, once_a_model

with epy.lazy_imports():
    import keras
    import keras_tuner
    import numpy as np
    import tensorflow as tf
    from matplotlib import figure

    from rnnapps import models
    from rnnapps.data import batching, feature_cache, images, levels, printable, segmentation
    from rnnapps.data.datasets.sample_scenes import wording
    from rnnapps.data.formats import captions as caption_files
    from rnnapps.data.formats import image_files
    from rnnapps.figures import contact_sheet, image_attention
    from rnnapps.layers import attention
    from rnnapps.metrics import captioning as captioning_metrics
    from rnnapps.models import backbones

log = logging.getLogger("rnnapps")

_PAD, _UNKNOWN, _END = 0, 1, search.END
_SHORTEST_LIMIT, _LONGEST_LIMIT = 20, 100
_DECODED_AT_ONCE = 32
_TRAIN_MEASURED, _SHOWN = 500, 12
_SMALL_IMAGE, _LARGE_IMAGE = 64, 224
# What `auto` is for the sample, and otherwise.
_AUTO = {
    "embedding_size": (128, 256),
    "units": (128, 256),
    "embedding_dropout": (0.0, 0.3),
    "dropout": (0.0, 0.4),
    "label_smoothing": (0.0, 0.1),
    "batch_size": (32, 64),
    "epochs": (2, 30),
    "learning_rate": (1.5e-3, 1e-3),
}


@dataclasses.dataclass(frozen=True)
class CaptioningData(SearchConfig, DataConfig):
    """Where images and their captions come from."""

    images: str | None = None
    """The folder or zip of the images, or several with commas between them."""
    train_images: str | None = None
    """A file of the names of the images to train on, one a line; by default all that are in no
    other such file."""
    dev_images: str | None = None
    """A file of the names of the images of the development split."""
    test_images: str | None = None
    """A file of the names of the images of the test split."""
    image_column: str = "image"
    """The column of a table that holds an image's path; of a TFDS data set the feature."""
    caption_column: str = "caption"
    """The column that holds a caption; of a TFDS data set the feature of all captions."""
    features: str = "runs/features"
    """The folder in which features of a frozen image encoder are kept."""


@dataclasses.dataclass(frozen=True)
class CaptioningConfig(TrainingConfig, CaptioningData):
    """The encoder of images and the decoder of captions."""

    image_encoder: str = "cnn"
    """What finds features in an image: `cnn`, a small network that is trained from scratch; a
    network of `keras.applications` by name, with weights from ImageNet; or a `.keras` file of any
    that makes features of images."""
    fine_tune: bool = False
    """Whether a network that was not trained from scratch is trained on; its features are then not
    kept."""
    image_size: PositiveInt | Auto = "auto"
    """The side of the square into which an image is fitted, in pixels; `auto`: 64 for the small
    network, what a network takes that takes one size only, otherwise 224."""
    resizing: Literal["pad", "crop"] = "pad"
    """How an image that is no square becomes one: with a border, or without what is too long."""
    image_input: Literal["state", "first"] = "state"
    """Where the image as a whole enters the decoder: as its initial state, or as its first input
    (Vinyals et al. 2015)."""
    level: Literal["word", "subword", "char"] = "word"
    """What a token is."""
    lowercase: bool = True
    """Whether captions are read, and written, in small letters."""
    vocabulary_size: PositiveInt = 10_000
    """The largest number of known tokens."""
    min_count: PositiveInt = 2
    """How often a token must occur in the training captions to be known."""
    max_length: PositiveInt | Auto = "auto"
    """Tokens of a caption that are read or written; `auto`: as many as the longest training caption
    has, but at least 20 and at most 100."""
    embedding_size: PositiveInt | Auto = "auto"
    """Units of a token's vector; `auto`: 128 for the sample, otherwise 256."""
    cell: Literal["elman", "lstm", "gru"] = "lstm"
    """The recurrent cell."""
    units: PositiveInt | Auto = "auto"
    """Units of a recurrent layer, and of an image's regions; `auto`: 128 for the sample, otherwise
    256."""
    num_layers: PositiveInt = 1
    """Recurrent layers, one on top of the other."""
    attention: Literal["none", "additive", "general", "scaled"] = "additive"
    """How the decoder scores the regions that it looks at (Xu et al. 2015); `none`: it knows the
    image as a whole only."""
    input_feeding: bool = False
    """Whether the decoder is told where it has looked before; slower to train."""
    doubly_stochastic: NonNegativeFloat = 0.0
    """The penalty on regions that are not looked at (Xu et al. 2015)."""
    tied: bool = True
    """Whether the output shares the weights of the decoder's embedding."""
    embedding_dropout: Share | Auto = "auto"
    """The share of the values of a token's vector that is dropped in training; `auto`: none for the
    sample, of which there is as much as is needed, otherwise 0.3."""
    dropout: Share | Auto = "auto"
    """The share of values dropped of the image's features, between layers and before the output in
    training; `auto`: none for the sample, otherwise 0.4."""
    label_smoothing: Share | Auto = "auto"
    """The share of the probability that training gives to all tokens alike; `auto`: 0 for the
    sample, otherwise 0.1."""
    batch_size: PositiveInt | Auto = "auto"
    """Captions in a training step; `auto`: 32 for the sample, otherwise 64."""
    buckets: PositiveInt | Auto = "auto"
    """The largest number of padded lengths; a batch holds captions of similar length. Each costs a
    compilation of all layers, so `auto` gives each at least 2,500 training captions, up to 8
    lengths."""
    epochs: PositiveInt | Auto = "auto"
    """The largest number of passes over the training captions; `auto`: 2 for the sample, otherwise
    30."""
    learning_rate: PositiveFloat | Auto = "auto"
    """The step size at the start; `auto`: 0.0015 for the sample, otherwise 0.001."""

    def __post_init__(self):
        for name in ("input_feeding", "doubly_stochastic"):
            if self.attention == "none" and getattr(self, name):
                raise UserError(f"{name} needs an attention. Received: attention=none")


@dataclasses.dataclass(frozen=True)
class CaptioningPredict:
    """How `predict` answers."""

    beam: PositiveInt | None = None
    """Captions that are kept in decoding; by default as many as the model's beam_width."""
    nbest: PositiveInt = 1
    """Captions that are shown."""
    attention: str | None = None
    """Draw where the decoder looked to this PNG file; for a single image."""


class Captioning(Task):
    """Describes images: convolutional encoder, attention, decoder, beam search.

    Example:
    >>> task = Captioning(CaptioningConfig(data="captions.csv", images="photos.zip"))
    >>> task.config.data
    'captions.csv'
    """

    name = "captioning"
    key = "name"
    bytes_a_step = 8
    named_with_data = ("dev_data", "test_data", "train_images", "dev_images", "test_images")
    cuts_training = False
    Config = CaptioningConfig
    Data = CaptioningData
    PredictOptions = CaptioningPredict
    config: CaptioningConfig
    tokens: "segmentation.Segmentation"
    _files: "image_files.ImageFiles | None" = None
    _backbone: "keras.Model"
    _restored_fingerprint: str | None = None
    _learnt: "np.ndarray"

    def reading(self) -> dict[str, Any]:
        config = self.config
        self._files = image_files.ImageFiles(config.images) if config.images else None

        def read(path: str) -> Iterator[Any]:
            if self._files is None:
                raise UserError(
                    f"the images of {path} are missing: name their folder with --images"
                )
            return caption_files.read_captions(
                path, self._files, config.image_column, config.caption_column
            )

        return {
            "read": read,
            "sample": "sample_scenes",
            "fields": {
                "image": config.image_column,
                "name": None,
                "captions": config.caption_column,
            },
            "sequences": ("captions",),
            "convert": functools.partial(caption_files.from_rows, faults={}),
            "on_bad_row": config.on_bad_row,
        }

    def load(self, **options: Any) -> Splits:
        config = self.config
        lists = {part: getattr(config, f"{part}_images") for part in ("train", "dev", "test")}
        return super().load(lists=lists, **options)

    def expand(self, inputs: Iterator[str]) -> Iterator[str]:
        """Puts the images in a folder in its place, in the order of their names; no hidden ones."""
        known = image_files.SUFFIXES
        for given in inputs:
            if not given.strip():  # which would be the folder where the process is
                raise UserError(f"an image is a file or a folder of them. Received: {given!r}")
            if not Path(given).is_dir():
                yield given
                continue
            files = sorted(
                file
                for file in Path(given).iterdir()
                if file.suffix.lower() in known and not file.name.startswith(".")
            )
            if not files:
                raise UserError(f"{given} holds no image: {', '.join(known)}")
            yield from map(str, files)

    def check(self, splits: Splits) -> None:
        if self._files is not None:
            log.info("%s", self._files.report())

    def as_examples(self, inputs: Sequence[str]) -> "dict[str, tf.Tensor]":
        return {"name": tf.constant(inputs, tf.string)}

    def adapt(self, train: "tf.data.Dataset") -> None:
        config = self.config
        self._backbone = self._new_backbone()
        captions = train.map(lambda example: tf.strings.split(example["captions"], "\n"))
        texts = captions.ragged_batch(256).map(lambda batch: batch.flat_values)
        try:
            self.tokens = levels.LEVELS[config.level].learn(
                texts, config.vocabulary_size, config.min_count, config.lowercase
            )
        except ValueError as error:  # no room for the characters
            raise UserError(f"{error}: raise vocabulary_size") from error
        if len(self.tokens) <= 3:
            raise UserError(
                "no token of the training captions is known. Received: "
                f"vocabulary_size={config.vocabulary_size}, min_count={config.min_count}"
            )
        lengths, learnt = collections.Counter(), []
        for batch in texts:
            learnt.append(captioning_metrics.fingerprints(map(bytes.decode, batch.numpy())))
            lengths.update((self.tokens.ids(batch).row_lengths() + 1).numpy().tolist())
        config = self._settled(lengths)
        max_length = config.max_length
        long = sum(count for length, count in lengths.items() if length > max_length)
        kept = {length: count for length, count in lengths.items() if length <= max_length}
        if not kept:
            raise UserError(
                "all training captions are longer than max_length. "
                f"Received: {long:,} captions, max_length={max_length}"
            )
        self.config = config
        self.plan = batching.Plan.of(kept, **self.plan_sizes())
        self._learnt = np.unique(np.concatenate(learnt))
        log.info(
            "%s training captions; left out are %s longer than %d tokens; %s tokens known; %s",
            f"{sum(kept.values()):,}",
            f"{long:,}",
            max_length,
            f"{len(self.tokens):,}",
            self.plan,
        )

    def _settled(self, lengths: "collections.Counter[int]") -> CaptioningConfig:
        """Gives every `auto` field its value, for training captions of such lengths."""
        config = with_defaults_of(self.config, _AUTO)
        if config.max_length == "auto":
            longest = min(max(*lengths, _SHORTEST_LIMIT), _LONGEST_LIMIT)
            config = dataclasses.replace(config, max_length=longest)
        if config.image_size == "auto":
            size = _SMALL_IMAGE if config.image_encoder == "cnn" else _LARGE_IMAGE
            size = self._backbone.input_shape[1] or size
            config = dataclasses.replace(config, image_size=size)
        if config.buckets == "auto":
            buckets = min(max(lengths.total() // 2_500, 1), 8)
            config = dataclasses.replace(config, buckets=buckets)
        return config

    def _new_backbone(self) -> "keras.Model":
        name = self.config.image_encoder
        if name == "cnn":
            return backbones.small_cnn()
        if name.endswith(".keras"):
            return backbones.from_file(name)
        return backbones.pretrained(name)

    def state(self) -> Mapping[str, bytes]:
        backbone = {
            "network": keras.saving.serialize_keras_object(self._backbone),
            "fingerprint": feature_cache.fingerprint(self._backbone) if self._is_frozen else None,
        }
        return {
            "tokens.txt": self.tokens.content(),
            "length_counts.txt": self.plan.content(),
            "backbone.json": json.dumps(backbone).encode(),
            "learnt.bin": self._learnt.astype("<u8").tobytes(),
        }

    def restore(self, directory: Path) -> None:
        config = self.config
        tokens = levels.LEVELS[config.level]
        self.tokens = tokens.load(directory / "tokens.txt", config.lowercase)
        self.plan = batching.Plan.load(directory / "length_counts.txt", **self.plan_sizes())
        self._learnt = np.fromfile(directory / "learnt.bin", "<u8").astype("uint64")
        backbone = json.loads((directory / "backbone.json").read_text(encoding="utf-8"))
        # Without its weights, which are the model's.
        self._backbone = keras.saving.deserialize_keras_object(backbone["network"])
        self._restored_fingerprint = backbone["fingerprint"]

    def build(self) -> "keras.Model":
        config = self.config
        backbone = keras.models.clone_model(self._backbone)
        if config.image_encoder != "cnn":  # whose weights are new, and drawn with the others
            backbone.set_weights(self._backbone.get_weights())
        encoder = models.ImageEncoder(
            backbone,
            config.units,
            config.dropout,
            train_backbone=not self._is_frozen,
        )
        stack = models.SequenceEncoder(
            config.cell, config.units, config.num_layers, False, config.dropout
        )
        reader = models.TextEncoder(
            len(self.tokens), config.embedding_size, stack, config.embedding_dropout
        )
        decoder = models.Decoder(
            reader,
            attention.by_name(config.attention, config.units),
            config.input_feeding,
            tied=config.tied,
            dropout=config.dropout,
            doubly_stochastic=config.doubly_stochastic,
        )
        model = models.EncoderDecoder(encoder, decoder, first_input=config.image_input == "first")
        size = config.image_size
        model.build({"source": (None, size, size, 3), "target": (None, None)})
        return model

    @property
    def _is_frozen(self) -> bool:
        return self.config.image_encoder != "cnn" and not self.config.fine_tune

    def trained(self, model: "keras.Model") -> "keras.Model":
        return models.BeforeSoftmax(model)

    def objective(self) -> Objective:
        return Objective(
            loss=lambda model, targets, hidden: model.decoder.nats(
                hidden, targets, self.config.label_smoothing
            ),
            step_metrics=[],
            monitor="cider",
            mode="max",
            panels=(("loss",), ("val_perplexity",), ("val_cider",)),
        )

    def _ids(self, captions: "tf.Tensor") -> "tuple[tf.RaggedTensor, tf.RaggedTensor]":
        """Returns what the decoder reads of captions `[batch]`, and what follows each token."""
        ids = self.tokens.ids(captions)  # [batch, (time)]
        ends = tf.fill([tf.shape(captions)[0], 1], _END)
        limit = self.config.max_length
        read, following = tf.concat([ends, ids], 1), tf.concat([ids, ends], 1)
        return read[:, :limit], following[:, :limit]  # [batch, (time)]

    def _seen(self, encoded, features):
        """Returns what the model takes of encoded images `[batch]`: pixels, or kept features."""
        if features is not None:
            return features.read(feature_cache.keys(encoded))  # [batch, rows, columns, channels]
        return self._pixels(encoded)[0]

    def _pixels(self, encoded: "tf.Tensor") -> "tuple[tf.Tensor, tf.Tensor]":
        """Returns images, uint8 `[batch, size, size, 3]`, and which are images, bool `[batch]`."""
        pixels, valid = images.decode(encoded, self.config.image_size, self.config.resizing)
        return tf.cast(tf.round(pixels), tf.uint8), valid

    @functools.cached_property
    def _training_features(self) -> "feature_cache.FeatureCache | None":
        """The kept features of the configured network; None where it is trained."""
        if not self._is_frozen:
            return None
        if self._restored_fingerprint is not None:  # a run is taken up
            self._backbone = self._new_backbone()
            if feature_cache.fingerprint(self._backbone) != self._restored_fingerprint:
                raise UserError(
                    "the network has changed since the run began. Received: "
                    f"image_encoder={self.config.image_encoder}"
                )
        return self._features_by(self._backbone)

    def _features_by(self, backbone: "keras.Model") -> "feature_cache.FeatureCache":
        """Opens what is kept of the features that a network finds."""
        size = self.config.image_size
        resizing = self.config.resizing
        how = {"image_size": size, "resizing": resizing, "decoding": images.version()}
        return feature_cache.FeatureCache(
            Path(self.config.features),
            feature_cache.fingerprint(backbone, **how),
            backbone.compute_output_shape((None, size, size, 3))[1:],
        )

    def _keep(self, features, backbone, examples: "tf.data.Dataset") -> None:
        """Computes the features of images that are not known yet."""
        computed = features.fill(
            examples.map(lambda example: example["image"]),
            lambda encoded: tf.cast(self._pixels(encoded)[0], tf.float32),
            tf.function(lambda pixels: backbone(pixels, training=False)),
        )
        if computed:
            log.info("features of %s images computed", f"{computed:,}")

    def encoded(self, examples: "tf.data.Dataset", training: bool = False) -> "tf.data.Dataset":
        features = self._training_features
        if features is not None:
            self._keep(features, self._backbone, examples)
        return self._encoded(examples, features, training)

    def _encoded(self, examples, features, training=False):
        def of_images(batch):
            captions = tf.strings.split(batch["captions"], "\n")  # [images, (captions)]
            read, following = self._ids(captions.flat_values)  # [captions, (time)]
            rows = captions.with_values
            return self._seen(batch["image"], features), rows(read), rows(following)

        def pairs(seen, read, following):
            # All captions of an image share its pixels, which are not copied.
            sentences = tf.data.Dataset.from_tensor_slices((read, following))
            return sentences.map(
                lambda one, other: (
                    {"source": seen, "target": tf.identity(one)},
                    tf.identity(other),
                )
            )

        of_image = examples.batch(32).map(of_images, num_parallel_calls=tf.data.AUTOTUNE).unbatch()
        seen = of_image.element_spec[0]
        size = int(examples.cardinality()) * math.prod(seen.shape) * seen.dtype.size
        if training and batching.fits_in_memory(size):
            of_image = of_image.cache()
        encoded = of_image.flat_map(pairs)
        if not training:
            return encoded
        return encoded.filter(lambda _, following: tf.size(following) <= self.config.max_length)

    def num_steps(self, inputs: "dict[str, tf.Tensor]") -> "tf.Tensor":
        return tf.size(inputs["target"])

    def batches(self, encoded: "tf.data.Dataset", epoch: int | None = None) -> "tf.data.Dataset":
        return batching.weigh_tokens(super().batches(encoded, epoch))

    def measured(self, split: str, examples: "tf.data.Dataset") -> "tf.data.Dataset":
        """Takes 500 of the training images: to describe all would take as long as an epoch."""
        return examples.take(_TRAIN_MEASURED) if split == "train" else examples

    def evaluate(self, model: "keras.Model", examples: "tf.data.Dataset") -> Evaluation:
        """Describes the images, and scores the captions that are given."""
        features, score, describe = self._functions(model)
        if features is not None:
            self._keep(features, model.encoder.backbone, examples)
        nats, tokens = 0.0, 0
        batches = self.batches(self._encoded(examples, features))
        for inputs, following, weights in batching.full_batches(batches, self.config.batch_size):
            counted = weights.numpy()
            logs = score(inputs["source"], inputs["target"], following)
            nats -= float(np.sum(logs * counted, dtype=float))
            tokens += int(counted.sum())
        if not np.isfinite(nats):
            raise UserError("the model's answers are not numbers any more: lower learning_rate")
        written, references, shown = [], [], []
        seen = examples.batch(_DECODED_AT_ONCE).map(
            lambda batch: (batch, self._seen(batch["image"], features))
        )
        for batch, source in seen.prefetch(2):
            texts, _ = describe(source, self.config.beam_width, 1)
            written += [text.decode() for text in texts[:, 0].numpy()]
            references += [text.decode().split("\n") for text in batch["captions"].numpy()]
            if len(shown) < _SHOWN:
                shown += batch["image"].numpy().tolist()
        metrics = captioning_metrics.scores(written, references, self._learnt)
        metrics["perplexity"] = float(np.exp(min(nats / tokens, 700)))
        if self.config.data == "sample":
            metrics["attributes"] = _attributes_right(written, references)
        told = "  ".join(
            f"{name} {signature}"
            for name, signature in captioning_metrics.signatures(max(map(len, references))).items()
        )
        return Evaluation(
            metrics=metrics,
            report=f"{len(written):,} images, {tokens:,} tokens\n{told}",
            outcomes=(shown[:_SHOWN], written[:_SHOWN], references[:_SHOWN]),
        )

    @once_a_model
    def _functions(self, model: "keras.Model"):
        """Returns kept features, and the functions that score and describe batches."""
        ids, number = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([], tf.int32)
        size = self.config.image_size
        features, seen = None, tf.TensorSpec([None, size, size, 3], tf.uint8)
        if self._is_frozen:
            features = self._features_by(model.encoder.backbone)
            seen = tf.TensorSpec([None, *features.shape], tf.float32)

        # One graph for all shapes, each of which is compiled.
        @tf.function(input_signature=[seen, ids, ids], jit_compile=True, autograph=False)
        def score(source, target, following):
            return model.log_probabilities(source, target, following)

        @tf.function(input_signature=[seen, number, number], autograph=False)
        def describe(source, beam, nbest):
            return self._describe(model, source, beam, nbest)

        return features, score, describe

    def _describe(self, model, source, beam, nbest):
        """Writes the best captions.

        Args:
            model: the model.
            source: what its encoder takes, the batch first.
            beam: how many are kept, an int32 scalar.
            nbest: how many are given, an int32 scalar of at most `beam`.

        Returns:
            Strings `[batch, nbest]`, best first, `""` where there is none; and their
            log-probabilities, float32 `[batch, nbest]`, -inf where there is none.
        """
        found = search.search(
            model,
            model.encode(source, training=False),
            self.config,
            beam_width=beam,
            nbest=nbest,
            length=tf.constant(self.config.max_length),
            forbidden=(_PAD, _UNKNOWN),
        )
        return self.tokens.texts(found.tokens), found.log_probabilities

    def _look(self, model, pixels, captions):
        """Returns the tokens of captions, `""` for the end, and where each was looked for.

        They are strings `[batch, time]`, and float32 `[batch, time, rows, columns]`, 0 where there
        is no token.
        """
        read, _ = self._ids(captions)  # [batch, (time)]
        encoded = model.encode(pixels, training=False)
        weights = model.alignment(encoded, read.to_tensor())  # [batch, time, regions]
        pieces = self.tokens.pieces(captions)[:, : self.config.max_length - 1]  # [batch, (time)]
        pieces = tf.concat([pieces, tf.fill([tf.shape(captions)[0], 1], "")], axis=1)
        there = tf.sequence_mask(pieces.row_lengths(), tf.shape(weights)[1])  # [batch, time]
        grid = model.encoder.grid(*[self.config.image_size] * 2)
        weights = tf.where(there[..., None], weights, 0.0)
        return pieces.to_tensor(), tf.reshape(weights, [*tf.unstack(tf.shape(weights)[:2]), *grid])

    def signatures(
        self, model: "keras.Model"
    ) -> "dict[str, tf.types.experimental.GenericFunction]":
        config = self.config
        image = tf.TensorSpec([None], tf.string, name="image")

        @tf.function(
            input_signature=[
                image,
                tf.TensorSpec([], tf.int32, name="beam"),
                tf.TensorSpec([], tf.int32, name="nbest"),
            ],
            autograph=False,
        )
        def decode(image, beam, nbest):
            pixels, valid = self._pixels(image)
            beam = tf.maximum(beam, 1)
            nbest = tf.clip_by_value(nbest, 1, beam)
            captions, scores = self._describe(model, pixels, beam, nbest)
            valid = valid[:, None]  # [batch, 1]
            return {
                "caption": tf.where(valid, captions, ""),
                "score": tf.where(valid, scores, -np.inf),
            }

        @tf.function(input_signature=[image], autograph=False)
        def serve(image):
            return decode(image, config.beam_width, 1)

        @tf.function(
            input_signature=[image, tf.TensorSpec([None], tf.string, name="caption")],
            autograph=False,
        )
        def look(image, caption):
            pixels, valid = self._pixels(image)
            tokens, weights = self._look(model, pixels, caption)
            there = valid[:, None, None, None]  # [batch, 1, 1, 1]
            return {"tokens": tokens, "weights": tf.where(there, weights, 0.0)}

        functions = {"serving_default": serve, "decode": decode}
        if config.attention != "none":
            functions["attention"] = look
        return functions

    def probe(self) -> "dict[str, dict[str, tf.Tensor]]":
        rng = np.random.default_rng(0)
        shapes = ((64, 64, 3), (40, 90, 3), (1, 1, 3))
        pixels = [rng.integers(0, 256, shape).astype("uint8") for shape in shapes]
        encoded = [
            tf.io.encode_png(pixels[0]),
            tf.io.encode_jpeg(pixels[1]),
            tf.io.encode_png(pixels[2]),
            tf.constant(b"no image"),
            tf.constant(b""),
        ]
        image = tf.stack(encoded)
        known = self.tokens.texts(tf.range(3, min(len(self.tokens), 10))[None])
        inputs = {
            "serving_default": {"image": image},
            "decode": {"image": image, "beam": tf.constant(3), "nbest": tf.constant(2)},
            "attention": {"image": image, "caption": tf.repeat(known, 5)},
        }
        if self.config.attention == "none":
            del inputs["attention"]
        return inputs

    def limits(self) -> str:
        return (
            f"It sees an image fitted into {self.config.image_size} pixels square, and writes at "
            f"most {self.config.max_length - 1} tokens of the kind of its training captions. "
            "JPEG, PNG, BMP and the first frame of a GIF are read, up to "
            f"{images.MAX_PIXELS:,} pixels; what cannot be read has no caption and the score -inf. "
            f"Of the training images the first {_TRAIN_MEASURED} are measured."
        )

    def answer(
        self, served: Any, inputs: Sequence[str], options: CaptioningPredict
    ) -> list[dict[str, Any]]:
        beam = options.beam or self.config.beam_width
        if options.nbest > beam:
            raise UserError(f"nbest is at most beam. Received: nbest={options.nbest}, beam={beam}")
        if options.attention:
            self._drawn.require_one(inputs, served)
        encoded = [Path(file).read_bytes() for file in inputs]
        for file, given in zip(inputs, encoded, strict=True):
            if fault := images.fault(given):
                raise UserError(f"{file}: {fault}")
        found = served.call("decode", image=encoded, beam=beam, nbest=options.nbest)
        if options.attention:
            picture = self._attention_picture(served, encoded[0], found["caption"][0][0])
            self._drawn.save(picture, options.attention)
        return [
            {"image": file, "caption": captions, "score": scores}
            for file, captions, scores in zip(inputs, found["caption"], found["score"], strict=True)
        ]

    @functools.cached_property
    def _drawn(self) -> DrawnAttention:
        return DrawnAttention("image")

    def _attention_picture(self, served: Any, encoded: bytes, written: str) -> "figure.Figure":
        seen = served.call("attention", image=[encoded], caption=[written])
        pixels, _ = self._pixels(tf.constant([encoded]))
        return image_attention.image_attention(
            pixels[0].numpy(), segmentation.labels(seen["tokens"][0]), np.array(seen["weights"][0])
        )

    def interpret(self, given: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Leaves out the places of an n-best list for which there was no caption."""
        there = [score > -np.inf for score in answer["score"]]
        kept = {
            name: [value for value, is_there in zip(answer[name], there, strict=True) if is_there]
            for name in ("caption", "score")
        }
        return {"image": given, **kept}

    def present(self, given: str, answer: Mapping[str, Any], options: CaptioningPredict) -> str:
        shown = answer["caption"]
        if sys.stdout.isatty():
            shown = [printable.printable(text) for text in shown]
        if options.nbest == 1:
            return f"{given}\t{''.join(shown)}"
        return "\n".join(
            f"{given}\t{score:.3f}\t{text}"
            for score, text in zip(answer["score"], shown, strict=True)
        )

    def search_space(self, hp: "keras_tuner.HyperParameters") -> CaptioningConfig:
        choice = functools.partial(self.choice, hp)
        return dataclasses.replace(
            self.config,
            cell=choice("cell", "lstm", "gru"),
            units=choice("units", 128, 256, 384),
            embedding_size=choice("embedding_size", 128, 256),
            attention=choice("attention", "additive", "general"),
            image_input=choice("image_input", "state", "first"),
            embedding_dropout=choice("embedding_dropout", 0.1, 0.3, 0.5),
            dropout=choice("dropout", 0.2, 0.4, 0.6),
            label_smoothing=choice("label_smoothing", 0.0, 0.1),
            learning_rate=choice("learning_rate", 1e-3, 2e-3, 4e-3),
        )

    def figures(
        self, model: "keras.Model", examples: "tf.data.Dataset", evaluation: Evaluation
    ) -> "dict[str, figure.Figure]":
        encoded, written, references = evaluation.outcomes
        pixels, _ = self._pixels(tf.constant(encoded))
        pictures = {"captions": contact_sheet.contact_sheet(pixels.numpy(), written, references)}
        if self.config.attention != "none":
            tokens, weights = self._look(model, pixels[:1], tf.constant(written[:1]))
            words = segmentation.labels(token.decode() for token in tokens[0].numpy())
            pictures["attention"] = image_attention.image_attention(
                pixels[0].numpy(), words, weights[0].numpy()
            )
        return pictures


def _attributes_right(written: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Counts, of the bundled sample, the captions that have every attribute of the scene right."""
    right = 0
    for caption, (reference, *_) in zip(written, references, strict=True):
        scene = wording.parse(reference)
        assert scene is not None, reference  # every caption of the sample tells one
        told, number = wording.attributes_right(caption, scene)
        right += told == number
    return right / len(written)
