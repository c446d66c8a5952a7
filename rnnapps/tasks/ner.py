"""Named entities, or any other tags of single tokens (many-to-many, in lockstep)."""

import collections
import dataclasses
import functools
import itertools
import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from etils import epy
from jsonargparse.typing import NonNegativeInt, PositiveInt

from rnnapps.errors import UserError
from rnnapps.tasks.config import Auto, DataConfig, Share, TrainingConfig, settled
from rnnapps.tasks.task import Evaluation, NoOptions, Objective, Splits, Task, once_a_model

with epy.lazy_imports():
    import keras
    import keras_tuner
    import numpy as np
    import tensorflow as tf
    from matplotlib import figure

    from rnnapps import models
    from rnnapps.data import (
        batching,
        entities,
        tag_set,
        tagged,
        text,
        tokens,
        vectors,
        words,
    )
    from rnnapps.data.formats import conll
    from rnnapps.figures import confusion
    from rnnapps.layers import crf_layer
    from rnnapps.metrics import entities as entity_metrics

log = logging.getLogger("rnnapps")

_SHORTEST_LIMIT, _LONGEST_LIMIT = 256, 2048
_CHARACTERS_READ = 20


@dataclasses.dataclass(frozen=True)
class NerData(DataConfig):
    """Where tagged sentences come from, and how they are read."""

    token_column: int | str = 0
    """The column that holds the token, counted from 0 or, where the first line is a header, by its
    name; of a TFDS data set the feature."""
    tag_column: int | str = -1
    """The column that holds the tag, counted likewise; -1 is the last."""
    scheme: Literal["auto", "iob1", "iob2", "iobes", "none"] = "auto"
    """How tags show where an entity begins and ends; `none` for tags of single tokens, such as
    parts of speech; `auto` finds it out."""


@dataclasses.dataclass(frozen=True)
class NerConfig(TrainingConfig, NerData):
    """The tagger."""

    lowercase: bool = True
    """Whether a word is looked up in small letters; its characters keep their case."""
    zero_digits: bool = True
    """Whether a word is looked up with every digit as 0."""
    vocabulary_size: PositiveInt = 100_000
    """The largest number of known words; the most frequent are kept."""
    unknown_share: Share = 0.5
    """How often in training a word that occurs once is read as unknown."""
    max_length: PositiveInt | Auto = "auto"
    """Tokens of a sentence that are read; `auto`: as many as the longest training sentence has, but
    at least 256 and at most 2,048."""
    vectors: str | None = None
    """A file of word vectors to start from, in the text form of GloVe or word2vec."""
    train_vectors: bool = True
    """Whether the words' vectors are trained."""
    embedding_size: PositiveInt | Auto = "auto"
    """Units of a word's vector; `auto`: as many as `vectors` has, or 100."""
    character_size: PositiveInt = 25
    """Units of a character's vector."""
    character_filters: NonNegativeInt = 50
    """Features that a convolution finds in a word's characters; 0 for none."""
    character_units: NonNegativeInt = 0
    """Units of an LSTM that reads a word's characters, in each direction; 0 for none."""
    character_dropout: Share = 0.25
    """The share of the values of a character's vector that is dropped in training."""
    casing_size: NonNegativeInt = 10
    """Units of the vector of a word's casing, such as a capital at its beginning; 0 for none."""
    cell: Literal["elman", "lstm", "gru"] = "lstm"
    """The recurrent cell."""
    units: PositiveInt = 128
    """Units of a recurrent layer, in each direction."""
    num_layers: PositiveInt = 1
    """Recurrent layers, one on top of the other."""
    bidirectional: bool = True
    """Whether a second run reads each sentence backwards."""
    use_crf: bool = True
    """Whether it is learnt how likely tags follow each other; if not, each tag stands alone."""
    constrain_training: bool = False
    """Whether training, too, rules out what may not follow in the scheme; decoding always does."""
    embedding_dropout: Share = 0.5
    """The share of the values of a token's vector that is dropped in training."""
    dropout: Share = 0.3
    """The share of values dropped between layers and before the output in training."""
    recurrent_dropout: Share = 0.0
    """The share of state values dropped in the recurrence, the same at each time step."""


class Ner(Task):
    """Finds named entities, or tags tokens: embeddings, recurrent layers, CRF.

    Example:
    >>> task = Ner(NerConfig(data="train.conll", dev_data="dev.conll", test_data="test.conll"))
    >>> task.config.data
    'train.conll'
    """

    name = "ner"
    key = "tokens"
    examples = ("Luke joined Google as a data scientist in Mountain View",)
    Config = NerConfig
    Data = NerData
    config: NerConfig
    tags: "tag_set.TagSet"
    vocabulary: "text.Vocabulary"
    characters: "text.Vocabulary"
    _num_frequent: int
    _vectors: "Mapping[str, np.ndarray] | None" = None

    def check(self, splits: Splits) -> None:
        counts, schemes = {}, {}
        for name, examples in splits.items():
            schemes[name], counts[name] = _count_tags(examples)
        plain = {name: "none" in schemes[name] for name in splits}
        is_adapted = hasattr(self, "tags")
        if is_adapted:
            plain["training"] = self.tags.scheme == "none"
        if len(set(plain.values())) > 1:
            told = ", ".join(
                f"{name} {'plain tags' if is_plain else 'entities'}"
                for name, is_plain in plain.items()
            )
            raise UserError(f"all splits must have tags of the same kind. Received: {told}")
        for name, is_plain in plain.items():
            bilou = [tag for tag in counts.get(name, ()) if tag[:2] in ("B-", "I-", "L-", "U-")]
            is_bilou = any(tag[0] in "LU" for tag in bilou)
            if is_plain and is_bilou and 2 * len(bilou) > len(counts[name]):
                raise UserError(
                    f"the tags of the {name} split look like BILOU, which is not read: write E- "
                    f"for L- and S- for U-. Received: {', '.join(sorted(bilou)[:5])}"
                )
        known = set(self.tags.types or self.tags.labels.names) if is_adapted else counts["train"]
        if not known:
            raise UserError("there is no entity in the train split. Received: O for every token")
        for name, of_split in counts.items():
            for kind, count in sorted(of_split.items()):
                if kind not in known:
                    log.warning(
                        "%s (%s times in the %s split) is not in the training data: it is missed "
                        "each time",
                        kind,
                        f"{count:,}",
                        name,
                    )

    def as_examples(self, inputs: Sequence[str]) -> "dict[str, tf.Tensor]":
        found = tokens.tokenise(tf.constant(inputs, tf.string)).tokens  # [batch, (time)]
        return {"tokens": tf.strings.reduce_join(found, axis=1, separator="\n")}

    def adapt(self, train: "tf.data.Dataset") -> None:
        config = self.config
        schemes, tags, seen, characters, lengths = (collections.Counter() for _ in range(5))
        for batch in train.batch(1024):
            schemes.update(batch["scheme"].numpy().tolist())
            for sentence in batch["tags"].numpy():
                tags.update(sentence.decode().split("\n"))
            split = tf.strings.split(batch["tokens"], "\n")  # [batch, (time)]
            text.count_tokens(self._folded(split), seen, lengths)
            characters.update("".join(token.decode() for token in split.flat_values.numpy()))
        ((scheme, _),) = schemes.most_common(1)
        self.tags = tag_set.TagSet.of(tags, scheme.decode())
        longest = min(max(*lengths, _SHORTEST_LIMIT), _LONGEST_LIMIT)
        num_known = self._adapt_vocabulary(seen)
        self.characters = text.Vocabulary.learn(characters, len(characters) + 2)
        size = len(next(iter(self._vectors.values()))) if self._vectors else 100
        config = dataclasses.replace(
            config,
            max_length=longest if config.max_length == "auto" else config.max_length,
            embedding_size=size if config.embedding_size == "auto" else config.embedding_size,
        )
        self.config = settled(config, lengths.total())
        self.plan = batching.Plan.of(lengths, **self.plan_sizes())
        log.info(
            "%s training sentences with %d kinds of tags (%s); %s of %s different words known; %s",
            f"{lengths.total():,}",
            len(self.tags),
            self.tags.scheme,
            f"{num_known:,}",
            f"{len(seen):,}",
            self.plan,
        )

    def _adapt_vocabulary(self, seen: collections.Counter) -> int:
        """Learns the words, also those of the vectors; returns how many are known."""
        config = self.config
        self.vocabulary = text.Vocabulary.learn(seen, config.vocabulary_size)
        self._num_frequent = 2 + sum(seen[token] > 1 for token in self.vocabulary.tokens[2:])
        if config.vectors:
            size = None if config.embedding_size == "auto" else config.embedding_size
            found = vectors.read_vectors(config.vectors, size=size)
            # Words are looked up as they are folded: others would only take room.
            folded = self._folded(tf.constant(found.words)).numpy()
            self._vectors = {
                word: vector
                for word, key, vector in zip(found.words, folded, found.values, strict=True)
                if word.encode() == key
            }
            if not self._vectors:
                raise UserError(
                    f"{config.vectors} has no word as words are looked up here: small letters and "
                    "digits as 0, unless lowercase and zero_digits are off"
                )
            covered = sum(word in self._vectors for word in seen)
            log.info(
                "%s has vectors of %s of the %s different training words (%.1f%% of all tokens)",
                config.vectors,
                f"{covered:,}",
                f"{len(seen):,}",
                100
                * sum(count for word, count in seen.items() if word in self._vectors)
                / seen.total(),
            )
            known = dict.fromkeys(self.vocabulary.tokens[2:])
            special = (text.Vocabulary.PADDING, text.Vocabulary.UNKNOWN)
            more = [word for word in self._vectors if word not in known and word not in special]
            room = max(config.vocabulary_size - len(self.vocabulary), 0)
            self.vocabulary = text.Vocabulary([*known, *more[:room]])
        known = set(self.vocabulary.tokens)
        return sum(word in known for word in seen)

    def state(self) -> Mapping[str, bytes]:
        return {
            "tags.txt": self.tags.content(),
            "scheme.txt": text.as_lines([self.tags.scheme]),
            "vocabulary.txt": self.vocabulary.content(),
            "characters.txt": self.characters.content(),
            "length_counts.txt": self.plan.content(),
        }

    def restore(self, directory: Path) -> None:
        (scheme,) = text.lines_of((directory / "scheme.txt").read_bytes())
        self.tags = tag_set.TagSet.load(directory / "tags.txt", scheme)
        self.vocabulary = text.Vocabulary.load(directory / "vocabulary.txt")
        self.characters = text.Vocabulary.load(directory / "characters.txt")
        self.plan = batching.Plan.load(directory / "length_counts.txt", **self.plan_sizes())
        self._num_frequent = len(self.vocabulary)  # it matters in training only

    def encode(
        self, example: "Mapping[str, tf.Tensor]"
    ) -> "tuple[dict[str, tf.Tensor], tf.Tensor]":
        inputs = self._inputs(self._split(example["tokens"]))
        return inputs, self.tags.ids(self._split(example["tags"]))

    def num_steps(self, inputs: "dict[str, tf.Tensor]") -> "tf.Tensor":
        return tf.shape(inputs["words"])[0]

    def count_cut(self, batch: "Mapping[str, tf.Tensor]") -> int:
        lengths = tf.strings.split(batch["tokens"], "\n").row_lengths()  # [batch]
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
        features: dict[str, keras.Layer] = {}
        shapes: dict[str, tuple[int | None, ...]] = {"words": (None, None)}
        if self._reads_characters:
            features["characters"] = models.CharacterEncoder(
                len(self.characters),
                config.character_size,
                filters=config.character_filters,
                units=config.character_units,
                dropout=config.character_dropout,
            )
            shapes["characters"] = (None, None, _CHARACTERS_READ)
        if config.casing_size:
            features["casing"] = keras.layers.Embedding(len(words.Casing), config.casing_size)
            shapes["casing"] = (None, None)
        model = models.Tagger(
            models.TextEncoder(
                len(self.vocabulary),
                config.embedding_size,
                encoder,
                config.embedding_dropout,
                train_embedding=config.train_vectors,
            ),
            num_tags=len(self.tags),
            features=features,
            allowed=self.tags.allowed(),
            use_crf=config.use_crf,
            constrain_training=config.constrain_training,
            unknown_words=models.UnknownWords(self._num_frequent, config.unknown_share),
            dropout=config.dropout,
        )
        model.build(shapes)
        if self._vectors:
            embeddings = model.encoder.embedding.embeddings
            values = embeddings.numpy()
            for number, word in enumerate(self.vocabulary.tokens):
                values[number] = self._vectors.get(word, values[number])
            embeddings.assign(values)
        return model

    def objective(self) -> Objective:
        monitor = "accuracy" if self._is_plain else "f1"
        return Objective(
            loss=self._negative_log_likelihood,
            step_metrics=[],
            monitor=monitor,
            mode="max",
            panels=(("loss",), (f"val_{monitor}",)),
        )

    def _negative_log_likelihood(
        self, model: "keras.Model", tags: "tf.Tensor", emissions: "tf.Tensor"
    ) -> "tf.Tensor":
        loss = crf_layer.CRFLoss(model.crf, reduction=None)
        return loss(tags, emissions)  # [batch]

    def evaluate(self, model: "keras.Model", examples: "tf.data.Dataset") -> Evaluation:
        """Decodes every sentence; what lies beyond the longest that is read counts as `O`."""
        decode = self._decode_function(model)
        outside = tag_set.TagSet(self.tags.labels.names, "none" if self._is_plain else "iob2")
        kept = examples.map(
            lambda example: (self.encode(example)[0], (example["tokens"], example["tags"])),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
        batches = batching.full_batches(self.batches(kept), self.config.batch_size)
        sentences, true, predicted = [], [], []
        for inputs, (given, tags), weights in batches:
            emissions = tf.convert_to_tensor(model.predict_on_batch(inputs))
            if not tf.reduce_all(tf.math.is_finite(emissions)):
                raise UserError("the model's answers are not numbers any more: lower learning_rate")
            written = outside.written(decode(emissions, model.mask_of(inputs))).numpy()
            given, tags = given.numpy(), tags.numpy()
            for row in np.flatnonzero(weights.numpy() > 0):
                sentence = given[row].decode().split("\n")
                found = [tag.decode() for tag in written[row, : len(sentence)]]
                sentences.append(sentence)
                true.append(tags[row].decode().split("\n"))
                predicted.append(found + ["O"] * (len(sentence) - len(found)))
        return self._measured(sentences, true, predicted)

    @once_a_model
    def _decode_function(self, model: "keras.Model"):
        """Returns the function that finds the best tags of batches."""
        specs = [
            tf.TensorSpec([None, None, len(self.tags)]),  # emissions
            tf.TensorSpec([None, None], tf.bool),  # mask
        ]
        return tf.function(lambda *given: model.crf.decode(*given)[0], specs)

    def _measured(self, sentences, true, predicted) -> Evaluation:
        if self._is_plain:
            parts = map(itertools.chain.from_iterable, (sentences, true, predicted))
            flat = list(zip(*parts, strict=True))
            errors = (
                (f"{tag} {token!r}", f"{other}") for token, tag, other in flat if tag != other
            )
            names = self.tags.labels.names
            places = {name: place for place, name in enumerate(names)}
            counts = np.zeros([len(names)] * 2, int)
            for _, tag, other in flat:
                if tag in places:
                    counts[places[tag], places[other]] += 1
            right = entity_metrics.accuracy(true, predicted)
            return Evaluation(
                metrics={"accuracy": right},
                report=f"{len(flat):,} tokens, {right:.4f} of them with the right tag",
                errors=entity_metrics.most_frequent(errors),
                outcomes=(counts, list(names)),
            )
        pairs = entity_metrics.pairs_of(true, predicted)
        types = sorted(
            {entity.type for sentence in pairs for pair in sentence for entity in pair if entity}
        )
        return Evaluation(
            metrics=entity_metrics.scores(true, predicted),
            report=entity_metrics.report(true, predicted),
            errors=entity_metrics.frequent_errors(sentences, pairs),
            outcomes=(entity_metrics.confusion(pairs, types), [*types, "none"]),
        )

    def signatures(
        self, model: "keras.Model"
    ) -> "dict[str, tf.types.experimental.GenericFunction]":
        limit = self.config.max_length

        def tag(given):
            """Tags tokens, string `[batch, time]` with "" as padding."""
            ids, confidences = model.tag(self._inputs(given))
            return tf.where(given == "", "", self.tags.written(ids)), confidences

        @tf.function(
            input_signature=[tf.TensorSpec([None], tf.string, name="text")], autograph=False
        )
        def serve(text):
            found = tokens.tokenise(text)
            given = found.tokens[:, :limit].to_tensor()  # [batch, time]
            tags, confidences = tag(given)
            return {
                "tokens": given,
                "tags": tags,
                "starts": found.starts[:, :limit].to_tensor(),
                "ends": found.ends[:, :limit].to_tensor(),
                "confidences": confidences,
            }

        @tf.function(
            input_signature=[tf.TensorSpec([None, None], tf.string, name="tokens")], autograph=False
        )
        def tag_tokens(tokens):
            tags, confidences = tag(tokens[:, :limit])
            # What is not read is outside, and nothing is known about it.
            rest = tokens[:, limit:]
            unread = tf.where(rest == "", "", "O")
            return {
                "tags": tf.concat([tags, unread], axis=1),
                "confidences": tf.pad(confidences, [[0, 0], [0, tf.shape(rest)[1]]]),
            }

        return {"serving_default": serve, "tag_tokens": tag_tokens}

    def probe(self) -> "dict[str, dict[str, tf.Tensor]]":
        known = self.vocabulary.tokens[2:]
        likely = [" ".join(known[i::7][: i + 1]).title() for i in range(20)]
        awkward = ["", "   ", "!!!", "\u65e5\u672c\u8a9e caf\u00e9 O'Brien's", "word " * 3000]
        given = tf.ragged.constant([*([word] for word in known[:5]), list(known[:30]), []])
        return {
            "serving_default": {"text": tf.constant([*likely, *awkward])},
            "tag_tokens": {"tokens": given.to_tensor()},
        }

    def limits(self) -> str:
        kinds = ", ".join(self.tags.types or self.tags.labels.names)
        return (
            f"It knows {len(self.vocabulary) - 2:,} words, and reads the first "
            f"{self.config.max_length} tokens of a text. It knows these tags, and no others, in "
            f"texts of any kind: {kinds}."
        )

    def interpret(self, given: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Adds the entities, and leaves out padding."""
        count = sum(token != "" for token in answer["tokens"])
        meant = {name: values[:count] for name, values in answer.items()}
        if not self._is_plain:
            found = entities.entities(given, meant, self.tags.scheme)
            meant["entities"] = [entity._asdict() for entity in found]
        return meant

    def present(self, given: str, answer: Mapping[str, Any], options: NoOptions) -> str:
        if self._is_plain:
            return " ".join(map("/".join, zip(answer["tokens"], answer["tags"], strict=True)))
        found = [entities.Entity(**entity) for entity in answer["entities"]]
        return entities.highlight(given, found, colour=sys.stdout.isatty())

    def search_space(self, hp: "keras_tuner.HyperParameters") -> NerConfig:
        choice = functools.partial(self.choice, hp)
        return dataclasses.replace(
            self.config,
            cell=choice("cell", "lstm", "gru"),
            units=choice("units", 64, 128, 256),
            num_layers=choice("num_layers", 1, 2),
            use_crf=choice("use_crf", False, True),
            character_filters=choice("character_filters", 0, 25, 50),
            character_units=choice("character_units", 0, 25),
            embedding_dropout=choice("embedding_dropout", 0.3, 0.5),
            dropout=choice("dropout", 0.3, 0.5),
            recurrent_dropout=choice("recurrent_dropout", 0.0, 0.2),
            unknown_share=choice("unknown_share", 0.2, 0.5),
            learning_rate=choice("learning_rate", 0.0015, 0.003, 0.006),
            batch_size=choice("batch_size", 32, "auto"),
        )

    def figures(
        self, model: "keras.Model", examples: "tf.data.Dataset", evaluation: Evaluation
    ) -> "dict[str, figure.Figure]":
        return {"confusion": confusion.confusion(*evaluation.outcomes)}

    @property
    def _is_plain(self) -> bool:
        return self.tags.scheme == "none"

    @property
    def _reads_characters(self) -> bool:
        return bool(self.config.character_filters or self.config.character_units)

    def reading(self) -> dict[str, Any]:
        config = self.config
        return {
            "read": functools.partial(
                conll.read_conll,
                token_column=config.token_column,
                tag_column=config.tag_column,
                scheme=config.scheme,
            ),
            "sample": "sample_entities",
            "fields": {
                "tokens": _feature(config.token_column, "tokens"),
                "tags": _feature(config.tag_column, "tags"),
                "scheme": None,
            },
            "sequences": ("tokens", "tags"),
            "convert": functools.partial(tagged.from_rows, scheme=config.scheme),
            "on_bad_row": config.on_bad_row,
        }

    @property
    def bytes_a_step(self) -> int:  # type: ignore[override]
        """Ids of the word, its tag and its casing, and those of its characters."""
        return 4 * (3 + (_CHARACTERS_READ if self._reads_characters else 0))

    def _split(self, lines: "tf.Tensor") -> "tf.Tensor":
        """Splits a sentence's lines, as many as are read: string `[time]`."""
        return tf.strings.split(lines, "\n")[: self.config.max_length]

    def _folded(self, given: "tf.Tensor | tf.RaggedTensor") -> "tf.Tensor | tf.RaggedTensor":
        fold = functools.partial(
            words.fold, lowercase=self.config.lowercase, digits=self.config.zero_digits
        )
        return tf.ragged.map_flat_values(fold, given)

    def _inputs(self, given: "tf.Tensor") -> "dict[str, tf.Tensor]":
        """Makes what the model takes of tokens, string `[…, time]` with "" as padding."""
        there = given != ""  # […, time]
        inputs = {"words": tf.where(there, self.vocabulary.ids(self._folded(given)), 0)}
        if self._reads_characters:
            spelt = words.spellings(tf.reshape(given, [-1]), _CHARACTERS_READ)
            ids = tf.where(spelt != "", self.characters.ids(spelt), 0)
            shape = tf.concat([tf.shape(given), [_CHARACTERS_READ]], axis=0)
            inputs["characters"] = tf.reshape(ids, shape)  # […, time, characters]
            inputs["characters"].set_shape([*given.shape, _CHARACTERS_READ])
        if self.config.casing_size:
            inputs["casing"] = tf.where(there, words.casing_ids(given), 0)
        return inputs


def _feature(column: int | str, default: str) -> str:
    """The TFDS feature that stands for a column, which is one of the default name if numbered."""
    return column if isinstance(column, str) else default


def _count_tags(examples: "tf.data.Dataset") -> "tuple[set[str], collections.Counter]":
    """Finds the schemes of examples, and counts their entities by type or their plain tags."""
    schemes, kinds = set(), collections.Counter()
    for batch in examples.batch(1024):
        schemes.update(scheme.decode() for scheme in batch["scheme"].numpy())
        for sentence in batch["tags"].numpy():
            tags = sentence.decode().split("\n")
            kinds.update(tags if "none" in schemes else (t[2:] for t in tags if t[0] == "B"))
    return schemes, kinds
