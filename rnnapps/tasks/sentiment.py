"""Sentiment: one label for a whole text (many-to-one)."""

import collections
import dataclasses
import functools
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from etils import epy
from jsonargparse.typing import NonNegativeInt, PositiveInt

from rnnapps.errors import UserError
from rnnapps.tasks.config import Auto, DataConfig, Share, TrainingConfig, settled
from rnnapps.tasks.task import Evaluation, NoOptions, Objective, Splits, Task

with epy.lazy_imports():
    import keras
    import keras_tuner
    import numpy as np
    import tensorflow as tf
    from matplotlib import figure

    from rnnapps import models
    from rnnapps.data import batching, labels, text
    from rnnapps.data.formats import labelled
    from rnnapps.figures import confusion
    from rnnapps.metrics import classification
    from rnnapps.tasks import encoder_start

log = logging.getLogger("rnnapps")

_SHORTEST_LIMIT, _LONGEST_LIMIT = 128, 512


@dataclasses.dataclass(frozen=True)
class SentimentData(DataConfig):
    """Where labelled texts come from, and how they are read."""

    text_column: str = "text"
    """The column (or TFDS feature) that holds the text."""
    label_column: str = "label"
    """The column (or TFDS feature) that holds the label."""
    columns: str | None = None
    """Column names in order, separated by commas, for a file without a header line."""


@dataclasses.dataclass(frozen=True)
class SentimentConfig(TrainingConfig, SentimentData):
    """The sentiment model."""

    tokens: Literal["words", "characters"] = "words"
    """What a time step is: a word or punctuation mark, or a single character."""
    lowercase: bool = True
    """Whether capitals are read as small letters."""
    affixes: bool = True
    """Whether a word's vector is the sum of its own and those of its beginnings (3 and 5 letters)
    and endings (2 and 3), so that a new word is not quite unknown."""
    vocabulary_size: PositiveInt = 50_000
    """The largest number of known words and affixes together; the most frequent are kept."""
    min_count: PositiveInt = 2
    """How often a word or affix must occur in the training texts to be known."""
    max_length: PositiveInt | Auto = "auto"
    """Tokens of a text that are read; `auto`: as many as the longest training text has, but at
    least 128 and at most 512."""
    embedding_size: PositiveInt = 128
    """Units of a token's vector."""
    cell: Literal["elman", "lstm", "gru"] = "lstm"
    """The recurrent cell."""
    units: PositiveInt = 128
    """Units of a recurrent layer, in each direction."""
    num_layers: PositiveInt = 1
    """Recurrent layers, one on top of the other."""
    bidirectional: bool = True
    """Whether a second run reads each text backwards."""
    pooling: Literal["last", "mean", "max", "attention"] = "max"
    """How the outputs at all time steps become one vector."""
    hidden_units: NonNegativeInt = 0
    """Units of a dense layer before the output; 0 for none."""
    embedding_dropout: Share = 0.6
    """The share of embedding values dropped in training."""
    dropout: Share = 0.2
    """The share of values dropped between layers and before the output in training."""
    recurrent_dropout: Share = 0.0
    """The share of state values dropped in the recurrence, the same at each time step."""
    label_smoothing: Share = 0.1
    """The share of the target probability that is spread evenly over all classes."""
    encoder_from: str | None = None
    """The run folder of a language model whose known tokens, vectors and recurrent weights the
    encoder starts from (Dai & Le 2015); it has the same `embedding_size`, `cell`, `units` and
    `num_layers`, and was trained on texts of the same `tokens`, with blanks between words. It goes
    without `affixes`; what reads backwards, beside a single layer, starts anew."""


class Sentiment(Task):
    """Labels whole texts: embedding, recurrent layers, pooling, softmax.

    Example:
    >>> task = Sentiment(SentimentConfig(data="reviews.csv"))
    >>> task.config.data
    'reviews.csv'
    """

    name = "sentiment"
    key = "text"
    examples = (
        "This café is great, the staff is really friendly and the coffee is delicious",
        "There is nothing to like in this movie.",
    )
    Config = SentimentConfig
    Data = SentimentData
    config: SentimentConfig
    labels: "labels.Labels"
    vocabulary: "text.Vocabulary"
    _start: "encoder_start.EncoderStart | None" = None

    def check(self, splits: Splits) -> None:
        counts = {
            name: collections.Counter(
                label.decode() for batch in examples.batch(1024) for label in batch["label"].numpy()
            )
            for name, examples in splits.items()
        }
        known = self.labels.names if hasattr(self, "labels") else counts["train"]
        for name, labels_there in counts.items():
            for label, count in labels_there.items():
                if not label.strip() or "\n" in label:
                    raise UserError(f"a label must be a line of text. Received: {label!r}")
                if label not in known:
                    raise UserError(
                        f"the label {label!r} (rows: {count}) in the {name} split is none of the "
                        f"training labels: {', '.join(sorted(known))}"
                    )
        if len(known) < 2:
            received = ", ".join(f"{label!r} (rows: {counts['train'][label]})" for label in known)
            raise UserError(f"training needs at least two classes. Received: {received}")

    def as_examples(self, inputs: Sequence[str]) -> "dict[str, tf.Tensor]":
        return {"text": tf.constant(inputs)}

    def adapt(self, train: "tf.data.Dataset") -> None:
        config = self.config
        classes, words, lengths = (collections.Counter() for _ in range(3))
        for batch in train.batch(1024):
            classes.update(name.decode() for name in batch["label"].numpy())
            text.count_tokens(self._tokens(batch["text"]), words, lengths)
        self.labels = labels.Labels(sorted(classes))
        known = text.add_affixes(words) if self._has_affixes() else words
        if config.encoder_from:
            self._start = self._read_start(config.encoder_from)
            self.vocabulary = self._start.vocabulary
        else:
            self.vocabulary = text.Vocabulary.learn(known, config.vocabulary_size, config.min_count)
        if len(self.vocabulary) == 2:
            raise UserError(
                "no token of the training texts is known. Received: "
                f"vocabulary_size={config.vocabulary_size}, min_count={config.min_count}"
            )
        max_length = config.max_length
        if max_length == "auto":
            max_length = min(max(*lengths, _SHORTEST_LIMIT), _LONGEST_LIMIT)
        self.config = settled(dataclasses.replace(config, max_length=max_length), classes.total())
        self.plan = batching.Plan.of(lengths, **self.plan_sizes())
        log.info(
            "%s training texts of %d classes; %s of %s different %s known; %s",
            f"{classes.total():,}",
            len(classes),
            f"{len(known.keys() & set(self.vocabulary.tokens)):,}",
            f"{len(known):,}",
            self._known_kind(),
            self.plan,
        )

    def _read_start(self, run: str) -> "encoder_start.EncoderStart":
        config = self.config
        if self._has_affixes():
            raise UserError(
                "a language model has no vectors of affixes. Received: "
                f"encoder_from={config.encoder_from}, affixes=True"
            )
        if config.bidirectional and config.num_layers > 1:
            raise UserError(
                "upper layers that read both ways do not fit those of a language model. Received: "
                f"encoder_from={config.encoder_from}, num_layers={config.num_layers}, "
                "bidirectional=True"
            )
        names = ("cell", "units", "num_layers", "embedding_size")
        sizes = {name: getattr(config, name) for name in names}
        return encoder_start.read_start(run, config.tokens, sizes)

    def state(self) -> Mapping[str, bytes]:
        return {
            "vocabulary.txt": self.vocabulary.content(),
            "labels.txt": self.labels.content(),
            "length_counts.txt": self.plan.content(),
        }

    def restore(self, directory: Path) -> None:
        self.vocabulary = text.Vocabulary.load(directory / "vocabulary.txt")
        self.labels = labels.Labels.load(directory / "labels.txt")
        self.plan = batching.Plan.load(directory / "length_counts.txt", **self.plan_sizes())

    def encode(self, example: "Mapping[str, tf.Tensor]") -> "tuple[tf.Tensor, tf.Tensor]":
        tokens = self._tokens(example["text"])[: self.config.max_length]  # [time]
        return self._ids(tokens), self.labels.ids(example["label"])

    def count_cut(self, batch: "Mapping[str, tf.Tensor]") -> int:
        lengths = self._tokens(batch["text"]).row_lengths()  # [batch]
        return int(tf.math.count_nonzero(lengths > self.config.max_length))

    def build(self) -> "keras.Model":
        config = self.config
        encoder = models.SequenceEncoder(
            config.cell,
            config.units,
            config.num_layers,
            config.bidirectional,
            dropout=config.dropout,
            recurrent_dropout=config.recurrent_dropout,
        )
        model = models.Acceptor(
            models.TextEncoder(
                len(self.vocabulary), config.embedding_size, encoder, config.embedding_dropout
            ),
            num_classes=len(self.labels),
            pooling=config.pooling,
            hidden_units=config.hidden_units,
            dropout=config.dropout,
        )
        model.build((None, None, None) if self._has_affixes() else (None, None))
        if self._start:
            self._start.give(model.encoder)
        return model

    def objective(self) -> Objective:
        return Objective(
            loss=self._smoothed_crossentropy,
            step_metrics=[keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
            monitor="log_loss",
            mode="min",
            panels=(("loss", "val_log_loss"), ("accuracy", "val_accuracy")),
        )

    def _smoothed_crossentropy(
        self, model: "keras.Model", labels: "tf.Tensor", logits: "tf.Tensor"
    ) -> "tf.Tensor":
        ids = tf.cast(tf.reshape(labels, [-1]), tf.int32)  # [batch]
        return keras.losses.categorical_crossentropy(
            tf.one_hot(ids, len(self.labels)),
            logits,
            from_logits=True,
            label_smoothing=self.config.label_smoothing,
        )

    def evaluate(self, model: "keras.Model", examples: "tf.data.Dataset") -> Evaluation:
        true, probabilities = [], []
        batches = self.batches(self.encoded(examples))
        for ids, targets, weights in batching.full_batches(batches, self.config.batch_size):
            there = weights.numpy() > 0  # [batch]
            true.append(targets.numpy()[there])
            probabilities.append(tf.nn.softmax(model.predict_on_batch(ids)).numpy()[there])
        true = np.concatenate(true)  # [examples]
        probabilities = np.concatenate(probabilities)  # [examples, classes]
        if not np.isfinite(probabilities).all():
            raise UserError("the model's answers are not numbers any more: lower learning_rate")
        predicted = probabilities.argmax(-1)  # [examples]
        names = self.labels.names
        return Evaluation(
            metrics=classification.scores(true, probabilities),
            report=classification.report(true, predicted, names),
            outcomes=classification.confusion(true, predicted, len(names)),
        )

    def signatures(
        self, model: "keras.Model"
    ) -> "dict[str, tf.types.experimental.GenericFunction]":
        texts = tf.TensorSpec([None], tf.string, name="text")

        @tf.function(input_signature=[texts], autograph=False)
        def serve(text):
            probabilities = tf.nn.softmax(model(self._padded_ids(text), training=False))
            label = self.labels.name_of(tf.argmax(probabilities, axis=-1))  # [batch]
            return {"label": label, "probabilities": probabilities}

        @tf.function(input_signature=[texts], autograph=False)
        def encode(text):
            return {"vector": model.encode(self._padded_ids(text), training=False)}

        return {"serving_default": serve, "encode": encode}

    def probe(self) -> "dict[str, dict[str, tf.Tensor]]":
        known = self.vocabulary.tokens[2:]
        likely = [" ".join(known[i::7][: i + 1]) for i in range(20)]
        awkward = ["", "   ", "!!!", "\u65e5\u672c\u8a9e caf\u00e9", "word " * 2000]
        texts = {"text": tf.constant([*likely, *awkward])}
        return {"serving_default": texts, "encode": texts}

    def limits(self) -> str:
        config = self.config
        known = f"{len(self.vocabulary) - 2:,} {self._known_kind()}"
        return (
            f"It knows {known}, and reads the first {config.max_length} {config.tokens} of a text. "
            "It answers every text, also one in another language or about another matter than its "
            f"training data, with one of: {', '.join(self.labels.names)}."
        )

    def present(self, given: str, answer: Mapping[str, Any], options: NoOptions) -> str:
        return f"{answer['label']}  {max(answer['probabilities']):.3f}"

    def search_space(self, hp: "keras_tuner.HyperParameters") -> SentimentConfig:
        choice = functools.partial(self.choice, hp)
        return dataclasses.replace(
            self.config,
            cell=choice("cell", "lstm", "gru"),
            units=choice("units", 64, 128, 256),
            num_layers=choice("num_layers", 1, 2),
            bidirectional=choice("bidirectional", False, True),
            pooling=choice("pooling", "mean", "max", "attention"),
            embedding_size=choice("embedding_size", 64, 128, 256),
            embedding_dropout=choice("embedding_dropout", 0.4, 0.6),
            dropout=choice("dropout", 0.2, 0.4),
            recurrent_dropout=choice("recurrent_dropout", 0.0, 0.2),
            learning_rate=choice("learning_rate", 0.0015, 0.003, 0.006),
            batch_size=choice("batch_size", 32, "auto"),
            clip_norm=choice("clip_norm", 1.0, 5.0),
        )

    def figures(
        self, model: "keras.Model", examples: "tf.data.Dataset", evaluation: Evaluation
    ) -> "dict[str, figure.Figure]":
        return {"confusion": confusion.confusion(evaluation.outcomes, self.labels.names)}

    def reading(self) -> dict[str, Any]:
        config = self.config
        columns = [name.strip() for name in config.columns.split(",")] if config.columns else None
        return {
            "read": lambda path: labelled.read_labelled(
                path, config.text_column, config.label_column, columns
            ),
            "sample": "sample_reviews",
            "fields": {"text": config.text_column, "label": config.label_column},
            "on_bad_row": config.on_bad_row,
        }

    @property
    def bytes_a_step(self) -> int:  # type: ignore[override]
        """Ids of the token, and those of its affixes."""
        return 4 * (5 if self._has_affixes() else 1)

    def _tokens(self, texts: "tf.Tensor") -> "tf.RaggedTensor":
        split = text.TOKENISERS[self.config.tokens]
        return split(text.normalise(texts, self.config.lowercase))  # [..., (time)]

    def _padded_ids(self, texts: "tf.Tensor") -> "tf.Tensor":
        tokens = self._tokens(texts)[:, : self.config.max_length]  # [batch, (time)]
        return self._ids(tokens).to_tensor()  # [batch, time] or [batch, time, features]

    def _ids(self, tokens: "tf.Tensor | tf.RaggedTensor") -> "tf.Tensor | tf.RaggedTensor":
        """Looks up tokens `[…, time]`: ids of the same shape, or with affixes `[…, time, 5]`."""
        if self._has_affixes():
            tokens = tf.ragged.map_flat_values(text.with_affixes, tokens)
        return tf.ragged.map_flat_values(self.vocabulary.ids, tokens)

    def _known_kind(self) -> str:
        return "words and affixes" if self._has_affixes() else self.config.tokens

    def _has_affixes(self) -> bool:
        return self.config.affixes and self.config.tokens == "words"
