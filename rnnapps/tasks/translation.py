"""Translation: a sentence in one language in, its translations out (many-to-many)."""

import collections
import dataclasses
import functools
import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from etils import epy
from jsonargparse.typing import PositiveFloat, PositiveInt

from rnnapps.errors import UserError
from rnnapps.tasks import search
from rnnapps.tasks.config import Auto, DataConfig, Share, TrainingConfig, settled, with_defaults_of
from rnnapps.tasks.drawn_attention import DrawnAttention
from rnnapps.tasks.search import SearchConfig
from rnnapps.tasks.task import Evaluation, Objective, Splits, Task, once_a_model

with epy.lazy_imports():
    import keras
    import keras_tuner
    import numpy as np
    import tensorflow as tf
    from matplotlib import figure

    from rnnapps import decoding, models
    from rnnapps.data import batching, duplicates, levels, printable, segmentation
    from rnnapps.data.formats import parallel
    from rnnapps.figures import alignment, bleu_by_length
    from rnnapps.layers import attention
    from rnnapps.metrics import translation as translation_metrics

log = logging.getLogger("rnnapps")

_PAD, _UNKNOWN, _END = 0, 1, search.END
_SHORTEST_LIMIT, _LONGEST_LIMIT = 64, 256
_DECODED_AT_ONCE = 64
_WORST_SHOWN, _TRAIN_MEASURED = 100, 1_000
# What `auto` is for the sample, and otherwise.
_AUTO = {"embedding_size": (96, 256), "units": (128, 256), "epochs": (9, 30)}


@dataclasses.dataclass(frozen=True)
class TranslationData(SearchConfig, DataConfig):
    """Where pairs of sentences come from, and how they are read."""

    source_column: str = "1"
    """The column of a TSV that holds what is translated: its number, counted from 1, or its name,
    which the first line then tells; of a TFDS data set the feature."""
    target_column: str = "2"
    """The column that holds the translation, likewise."""
    replace_unknown: bool = True
    """Whether a word that is not known is written as the source token looked at most."""


@dataclasses.dataclass(frozen=True)
class TranslationConfig(TrainingConfig, TranslationData):
    """The encoder-decoder."""

    level: Literal["subword", "word", "char"] = "subword"
    """What a token is: a piece of a word, learnt from the training text; a word or punctuation
    mark; or a character."""
    lowercase: bool = False
    """Whether both sides are read, and written, in small letters."""
    vocabulary_size: PositiveInt = 6_000
    """The largest number of known tokens of a side."""
    joint: bool = False
    """Whether both sides share one vocabulary; each has vectors of its own."""
    min_count: PositiveInt = 1
    """How often a word or character must occur in the training text to be known."""
    max_length: PositiveInt | Auto = "auto"
    """Tokens of a sentence that are read or written. Longer pairs are left out of training; `auto`:
    as many as the longest training sentence has, but at least 64 and at most 256."""
    max_ratio: PositiveFloat = 9.0
    """Training leaves out pairs of which one side has more than so many times the other's
    tokens."""
    max_growth: PositiveFloat | Auto = "auto"
    """Tokens that are written are at most so many times those that are read, and 10, so that a
    model that repeats itself comes to an end; `auto`: as few as let all training pairs be written.
    """
    reverse_source: bool = False
    """Whether the source is read from its end (Sutskever et al. 2014)."""
    embedding_size: PositiveInt | Auto = "auto"
    """Units of a token's vector; `auto`: 96 for the sample, otherwise 256."""
    cell: Literal["elman", "lstm", "gru"] = "lstm"
    """The recurrent cell."""
    units: PositiveInt | Auto = "auto"
    """Units of a recurrent layer; of the encoder's, in each direction; `auto`: 128 for the sample,
    otherwise 256."""
    num_layers: PositiveInt = 1
    """Recurrent layers of encoder and decoder, one on top of the other."""
    bidirectional: bool = True
    """Whether a second run of the encoder reads each sentence backwards."""
    attention: Literal["none", "additive", "dot", "general", "scaled"] = "general"
    """How the decoder scores what it looks at (Bahdanau et al. 2015; Luong et al. 2015); `none`: it
    knows the source by one vector alone."""
    input_feeding: bool = False
    """Whether the decoder is told where it has looked before; slower to train."""
    tied: bool = True
    """Whether the output shares the weights of the decoder's embedding."""
    embedding_dropout: Share = 0.3
    """The share of the values of a token's vector that is dropped in training."""
    dropout: Share = 0.4
    """The share of values dropped between layers, of the encoder's outputs and final states, and
    before the output in training."""
    label_smoothing: Share = 0.1
    """The share of the probability that training gives to all tokens alike."""
    scheduled_sampling: Share = 0.0
    """The share of tokens that training comes to read as the model would have written them."""
    sampling_steps: PositiveInt = 10_000
    """Training steps over which that share grows from 0."""
    buckets: PositiveInt | Auto = "auto"
    """The largest number of padded lengths; a batch holds pairs of similar length. Each costs a
    compilation of all layers, so `auto` gives each at least 2,500 training pairs, up to 8
    lengths."""
    epochs: PositiveInt | Auto = "auto"
    """The largest number of passes over the training pairs; `auto`: 9 for the sample, otherwise
    30."""
    learning_rate: PositiveFloat = 2e-3
    """The step size at the start."""

    def __post_init__(self):
        if self.attention == "none" and self.input_feeding:
            raise UserError("input_feeding needs an attention. Received: attention=none")
        if self.attention == "dot" and self.bidirectional:
            raise UserError(
                "attention=dot needs an encoder that reads one way, whose outputs are as wide as "
                "the decoder's. Received: bidirectional=True"
            )


@dataclasses.dataclass(frozen=True)
class TranslationPredict:
    """How `predict` answers."""

    beam: PositiveInt | None = None
    """Translations that are kept in decoding; by default as many as the model's beam_width."""
    nbest: PositiveInt = 1
    """Translations that are shown, as different sequences of tokens; a score is that of the tokens
    that were written."""
    attention: str | None = None
    """Draw where the decoder looked to this PNG file; for a single sentence."""


class Translation(Task):
    """Translates sentences: bidirectional encoder, attention, decoder, beam search.

    Example:
    >>> task = Translation(TranslationConfig(data="train.en,train.de", dev_data="val.en,val.de"))
    >>> task.config.data
    'train.en,train.de'
    """

    name = "translation"
    key = "source"
    examples = ("Do you want to dance with me?",)
    bytes_a_step = 12
    cuts_training = False
    Config = TranslationConfig
    Data = TranslationData
    PredictOptions = TranslationPredict
    config: TranslationConfig
    source: "segmentation.Segmentation"
    target: "segmentation.Segmentation"
    _monitor = "bleu"

    def reading(self) -> dict[str, Any]:
        config = self.config
        return {
            "read": functools.partial(
                parallel.read_parallel,
                source_column=config.source_column,
                target_column=config.target_column,
            ),
            "sample": "sample_translation",
            "fields": {"source": config.source_column, "target": config.target_column},
            "convert": parallel.from_rows,
            "on_bad_row": config.on_bad_row,
        }

    def check(self, splits: Splits) -> None:
        if "train" in splits and len(splits) > 1:
            log.info("%s", duplicates.overlaps(splits))

    def as_examples(self, inputs: Sequence[str]) -> "dict[str, tf.Tensor]":
        return {"source": tf.constant(inputs, tf.string)}

    def adapt(self, train: "tf.data.Dataset") -> None:
        texts = train.batch(1024)
        try:
            self._learn_tokens(texts)
        except ValueError as error:  # no room for the characters
            raise UserError(f"{error}: raise vocabulary_size") from error
        if min(len(self.source), len(self.target)) <= 3:
            raise UserError(
                "no token of the training text is known. Received: "
                f"vocabulary_size={self.config.vocabulary_size}, min_count={self.config.min_count}"
            )
        pairs: collections.Counter[tuple[int, int]] = collections.Counter()
        with_blanks = 0
        for batch in texts:
            spaced = tf.strings.regex_full_match(tf.strings.strip(batch["target"]), r"(?s).*\s.*")
            with_blanks += int(tf.math.count_nonzero(spaced))
            lengths = (
                (side.ids(batch[name]).row_lengths() + 1).numpy().tolist()  # with the end
                for name, side in (("source", self.source), ("target", self.target))
            )
            pairs.update(zip(*lengths, strict=True))
        # Without blanks there are no words, of which BLEU is made.
        self._monitor = "bleu" if 2 * with_blanks >= pairs.total() else "chrf"
        kept = self._settle(pairs)
        long = sum(count for pair, count in pairs.items() if max(pair) > self.config.max_length)
        self.plan = batching.Plan.of(kept, **self.plan_sizes())
        log.info(
            "%s training pairs; left out are %s longer than %d tokens, and %s of which one side is "
            "more than %g times as long as the other; %s and %s tokens known; %s",
            f"{kept.total():,}",
            f"{long:,}",
            self.config.max_length,
            f"{pairs.total() - long - kept.total():,}",
            self.config.max_ratio,
            f"{len(self.source):,}",
            f"{len(self.target):,}",
            self.plan,
        )

    def _settle(self, pairs: "collections.Counter[tuple[int, int]]") -> "collections.Counter[int]":
        """Gives every `auto` field its value, for training pairs of such lengths.

        Returns:
            How many of the pairs that training takes have each length, that of the longer side.
        """
        config = with_defaults_of(self.config, _AUTO)
        if config.max_length == "auto":
            longest = min(max(*map(max, pairs), _SHORTEST_LIMIT), _LONGEST_LIMIT)
            config = dataclasses.replace(config, max_length=longest)
        kept = {pair: count for pair, count in pairs.items() if self._fits(*pair, config)}
        if not kept:
            raise UserError(
                "all training pairs are longer than max_length or more unlike than max_ratio. "
                f"Received: {pairs.total():,} pairs, max_length={config.max_length}, "
                f"max_ratio={config.max_ratio}"
            )
        if config.max_growth == "auto":
            growth = max(1.0, *((target - 10) / source for source, target in kept))
            config = dataclasses.replace(config, max_growth=round(growth + 0.005, 2))
        lengths = collections.Counter()
        for pair, count in kept.items():
            lengths[max(pair)] += count
        if config.buckets == "auto":
            buckets = min(max(lengths.total() // 2500, 1), 8)
            config = dataclasses.replace(config, buckets=buckets)
        self.config = settled(config, lengths.total())
        return lengths

    def _learn_tokens(self, texts: "tf.data.Dataset") -> None:
        config = self.config
        learn = functools.partial(
            levels.LEVELS[config.level].learn,
            size=config.vocabulary_size,
            min_count=config.min_count,
            lowercase=config.lowercase,
        )
        if config.joint:
            both = texts.map(lambda batch: tf.concat([batch["source"], batch["target"]], 0))
            self.source = self.target = learn(both)
        else:
            self.source = learn(texts.map(lambda batch: batch["source"]))
            self.target = learn(texts.map(lambda batch: batch["target"]))

    @staticmethod
    def _fits(source: Any, target: Any, config: TranslationConfig) -> Any:
        """Whether training takes a pair of these lengths; numbers, or tensors."""
        larger, smaller = (max, min) if isinstance(source, int) else (tf.maximum, tf.minimum)
        longer, shorter = larger(source, target), smaller(source, target)
        return (longer <= config.max_length) & (longer / shorter <= config.max_ratio)

    def state(self) -> Mapping[str, bytes]:
        return {
            "source.txt": self.source.content(),
            "target.txt": self.target.content(),
            "length_counts.txt": self.plan.content(),
        }

    def restore(self, directory: Path) -> None:
        self.source, self.target = (
            levels.LEVELS[self.config.level].load(directory / name, self.config.lowercase)
            for name in ("source.txt", "target.txt")
        )
        self.plan = batching.Plan.load(directory / "length_counts.txt", **self.plan_sizes())

    def encode(
        self, example: "Mapping[str, tf.Tensor]"
    ) -> "tuple[dict[str, tf.Tensor], tf.Tensor]":
        """Turns a pair into what is read of both sides, and what follows each target token."""
        batch = {side: example[side][None] for side in ("source", "target")}
        encoded = self._encode_batch(batch, self.config.max_length)
        return tf.nest.map_structure(lambda ids: ids[0], encoded)

    def _encode_batch(self, batch, limit):
        """Encodes pairs together, which costs a tenth: ragged `[batch, (time)]`."""
        target = self.target.ids(batch["target"])  # [batch, (time)]
        ends = tf.fill([tf.shape(batch["target"])[0], 1], _END)
        read = tf.concat([ends, target], axis=1)[:, :limit]  # [batch, (time)]
        following = tf.concat([target, ends], axis=1)[:, :limit]  # [batch, (time)]
        return {"source": self._source_ids(batch["source"], limit), "target": read}, following

    def _source_ids(self, text: "tf.Tensor", limit: int) -> "tf.RaggedTensor":
        """Returns what the encoder reads of texts `[batch]`: int32, ragged `[batch, (source)]`."""
        ids = self.source.ids(text)[:, : limit - 1]
        if self.config.reverse_source:
            ids = tf.reverse(ids, [1])
        return tf.concat([ids, tf.fill([tf.shape(text)[0], 1], _END)], axis=1)

    def _source_pieces(self, text: "tf.Tensor") -> "tf.RaggedTensor":
        """Returns the strings of `_source_ids`, `""` for the end."""
        pieces = self.source.pieces(text)[:, : self.config.max_length - 1]
        if self.config.reverse_source:
            pieces = tf.reverse(pieces, [1])
        return tf.concat([pieces, tf.fill([tf.shape(text)[0], 1], "")], axis=1)

    def encoded(self, examples: "tf.data.Dataset", training: bool = False) -> "tf.data.Dataset":
        limit = self.config.max_length
        if training:
            limit += 1  # to see which are longer
        encode = functools.partial(self._encode_batch, limit=limit)
        encoded = examples.batch(256).map(encode, num_parallel_calls=tf.data.AUTOTUNE).unbatch()
        # The rows of ragged tensors are plain ones, but say so only when they are mapped.
        encoded = encoded.map(lambda *pair: tf.nest.map_structure(tf.identity, pair))
        if not training:
            return encoded
        encoded = encoded.filter(
            lambda inputs, targets: self._fits(
                tf.size(inputs["source"]), tf.size(targets), self.config
            )
        )
        small = batching.fits_in_memory(self.plan.num_steps * self.bytes_a_step)
        return encoded.cache() if small else encoded

    def num_steps(self, inputs: "dict[str, tf.Tensor]") -> "tf.Tensor":
        return tf.maximum(tf.size(inputs["source"]), tf.size(inputs["target"]))

    def batches(self, encoded: "tf.data.Dataset", epoch: int | None = None) -> "tf.data.Dataset":
        return batching.weigh_tokens(super().batches(encoded, epoch))

    def count_cut(self, batch: "Mapping[str, tf.Tensor]") -> int:
        """Counts the pairs of which a side is cut; the target matters to the perplexity alone."""
        sides = [self.source.ids(batch["source"])]
        if "target" in batch:
            sides.append(self.target.ids(batch["target"]))
        longest = functools.reduce(tf.maximum, (side.row_lengths() for side in sides))  # [batch]
        return int(tf.math.count_nonzero(longest + 1 > self.config.max_length))

    def build(self) -> "keras.Model":
        config = self.config

        def reader(vocabulary: int, bidirectional: bool) -> "models.TextEncoder":
            stack = models.SequenceEncoder(
                config.cell, config.units, config.num_layers, bidirectional, config.dropout
            )
            return models.TextEncoder(
                vocabulary, config.embedding_size, stack, config.embedding_dropout
            )

        decoder = models.Decoder(
            reader(len(self.target), bidirectional=False),
            attention.by_name(config.attention, config.units),
            config.input_feeding,
            tied=config.tied,
            dropout=config.dropout,
        )
        model = models.EncoderDecoder(
            reader(len(self.source), config.bidirectional),
            decoder,
            config.dropout,
            config.scheduled_sampling,
            config.sampling_steps,
        )
        model.build({"source": (None, None), "target": (None, None)})
        return model

    def trained(self, model: "keras.Model") -> "keras.Model":
        return models.BeforeSoftmax(model)

    def objective(self) -> Objective:
        return Objective(
            loss=lambda model, targets, hidden: model.decoder.nats(
                hidden, targets, self.config.label_smoothing
            ),
            step_metrics=[],
            monitor=self._monitor,
            mode="max",
            panels=(("loss",), ("val_perplexity",), (f"val_{self._monitor}",)),
        )

    def evaluate(self, model: "keras.Model", examples: "tf.data.Dataset") -> Evaluation:
        """Translates the sources, and scores the translations that are given."""
        score, translate = self._functions(model)
        nats, tokens = 0.0, 0
        batches = self.batches(self.encoded(examples))
        for inputs, following, weights in batching.full_batches(batches, self.config.batch_size):
            counted = weights.numpy()
            nats -= float(
                np.sum(score(inputs["source"], inputs["target"], following) * counted, dtype=float)
            )
            tokens += int(counted.sum())
        sources, references = (
            [text for batch in examples.batch(1024) for text in batch[side].numpy().tolist()]
            for side in ("source", "target")
        )
        if not np.isfinite(nats):
            raise UserError("the model's answers are not numbers any more: lower learning_rate")
        written = self._translated(translate, sources)
        lengths = self.source.ids(tf.constant(sources)).row_lengths().numpy().tolist()
        sources, references = (
            [text.decode("utf-8", "replace") for text in texts] for texts in (sources, references)
        )
        metrics = translation_metrics.scores(written, references)
        metrics["perplexity"] = float(np.exp(min(nats / tokens, 700)))
        told = "  ".join(
            f"{name} {signature}" for name, signature in translation_metrics.signatures().items()
        )
        return Evaluation(
            metrics=metrics,
            report=f"{len(written):,} sentences, {tokens:,} tokens\n{told}",
            errors=translation_metrics.worst(sources, references, written, _WORST_SHOWN),
            outcomes=translation_metrics.bleu_by_length(written, references, lengths),
        )

    def measured(self, split: str, examples: "tf.data.Dataset") -> "tf.data.Dataset":
        """Takes 1,000 of the training pairs: to translate all would take as long as an epoch."""
        return examples.take(_TRAIN_MEASURED) if split == "train" else examples

    def _translated(self, translate, sources: Sequence[bytes]) -> list[str]:
        """Translates any number of texts, those of similar length together."""
        order = sorted(range(len(sources)), key=lambda number: len(sources[number]))
        written = [""] * len(sources)
        for begin in range(0, len(order), _DECODED_AT_ONCE):
            numbers = order[begin : begin + _DECODED_AT_ONCE]
            texts, _ = translate(
                tf.constant([sources[number] for number in numbers]), self.config.beam_width, 1
            )
            for number, text in zip(numbers, texts[:, 0].numpy(), strict=True):
                written[number] = text.decode()
        return written

    @once_a_model
    def _functions(self, model: "keras.Model"):
        """Returns the functions that score and translate batches."""
        ids, text = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None], tf.string)
        number = tf.TensorSpec([], tf.int32)

        # One graph for all shapes, each of which is compiled.
        @tf.function(input_signature=[ids] * 3, jit_compile=True, autograph=False)
        def score(source, target, following):
            return model.log_probabilities(source, target, following)

        @tf.function(input_signature=[text, number, number], autograph=False)
        def translate(text, beam, nbest):
            return self._translate(model, text, self._read(model, text), beam, nbest)

        return score, translate

    def _read(self, model, text):
        """Returns a text's ids, int32 `[batch, source]`, and what `encode` returns of them."""
        source = self._source_ids(text, self.config.max_length).to_tensor()  # [batch, source]
        return source, model.encode(source, training=False)

    def _translate(self, model, text, read, beam, nbest):
        """Writes the best translations.

        Args:
            model: the model.
            text: string `[batch]`.
            read: what `_read` returned of it.
            beam: how many are kept, an int32 scalar.
            nbest: how many are given, an int32 scalar of at most `beam`.

        Returns:
            Strings `[batch, nbest]`, best first, `""` where there is none; and their
            log-probabilities, float32 `[batch, nbest]`, -inf where there is none.
        """
        found = self._search(model, *read, beam, nbest)
        replacements = None
        if self._copies:
            pieces = self._source_pieces(text).to_tensor()  # [batch, source]
            replacements = tf.gather(pieces, found.attended, batch_dims=1)  # [batch, nbest, time]
        return self.target.texts(found.tokens, replacements), found.log_probabilities

    def _search(self, model, source, encoded, beam, nbest) -> "decoding.Hypotheses":
        """Searches for the best translations of ids, int32 `[batch, source]`."""
        config = self.config
        read = tf.math.count_nonzero(source, 1, dtype=tf.int32)  # [batch]
        grown = tf.math.ceil(config.max_growth * tf.cast(read, tf.float32))  # [batch]
        # Of a text without tokens, which has its end alone, nothing is written.
        longest = tf.where(read > 1, tf.cast(grown, tf.int32) + 10, 0)  # [batch]
        return search.search(
            model,
            encoded,
            config,
            beam_width=beam,
            nbest=nbest,
            length=tf.minimum(longest, config.max_length),
            forbidden=(_PAD,) if self._copies else (_PAD, _UNKNOWN),
            traced=self._copies,
        )

    @property
    def _copies(self) -> bool:
        """Whether words that are not known are taken from the source."""
        config = self.config
        return config.replace_unknown and config.attention != "none" and config.level != "subword"

    def signatures(
        self, model: "keras.Model"
    ) -> "dict[str, tf.types.experimental.GenericFunction]":
        text = tf.TensorSpec([None], tf.string, name="text")
        limit = self.config.max_length

        # Written into the export once for all signatures, each of which would else hold a copy.
        @tf.function(input_signature=[text], autograph=False)
        def read(text):
            return self._read(model, text)

        @tf.function(
            input_signature=[
                text,
                tf.TensorSpec([], tf.int32, name="beam"),
                tf.TensorSpec([], tf.int32, name="nbest"),
            ],
            autograph=False,
        )
        def decode(text, beam, nbest):
            nbest = tf.clip_by_value(nbest, 1, tf.maximum(beam, 1))
            beam = tf.maximum(beam, 1)
            translations, scores = self._translate(model, text, read(text), beam, nbest)
            return {"translation": translations, "score": scores}

        @tf.function(input_signature=[text], autograph=False)
        def serve(text):
            return decode(text, self.config.beam_width, 1)

        @tf.function(
            input_signature=[text, tf.TensorSpec([None], tf.string, name="translation")],
            autograph=False,
        )
        def look(text, translation):
            target = self.target.ids(translation)[:, : limit - 1]  # [batch, (time)]
            ends = tf.fill([tf.shape(text)[0], 1], _END)
            given = tf.concat([ends, target], axis=1).to_tensor()  # [batch, time]
            _, encoded = read(text)
            weights = model.alignment(encoded, given)  # [batch, time, source]
            # The end is what follows the last token, and is shown as nothing.
            pieces = self.target.pieces(translation)[:, : limit - 1]  # [batch, (time)]
            pieces = tf.concat([pieces, tf.fill([tf.shape(text)[0], 1], "")], axis=1)
            there = tf.sequence_mask(pieces.row_lengths(), tf.shape(weights)[1])[..., None]
            return {
                "source": self._source_pieces(text).to_tensor(),
                "target": pieces.to_tensor(),
                "weights": tf.where(there, weights, 0.0),
            }

        @tf.function(input_signature=[text], autograph=False)
        def encode(text):
            source = self._source_ids(text, limit).to_tensor()  # [batch, source]
            _, states = model.encoder(source, training=False)
            return {"vector": model.encoder.last_output(states)}

        functions = {"serving_default": serve, "decode": decode, "encode": encode}
        if self.config.attention != "none":
            functions["attention"] = look
        return functions

    def probe(self) -> "dict[str, dict[str, tf.Tensor]]":
        known = self.source.texts(tf.range(3, min(len(self.source), 43))[None]).numpy()[0].decode()
        awkward = ["", "   ", "!!!", "\u65e5\u672c\u8a9e caf\u00e9 \U0001f600", "word " * 400]
        texts = tf.constant([known, known[::3], *awkward])
        inputs = {
            "serving_default": {"text": texts},
            "decode": {"text": texts, "beam": tf.constant(3), "nbest": tf.constant(2)},
            "encode": {"text": texts},
            "attention": {"text": texts, "translation": texts},
        }
        if self.config.attention == "none":
            del inputs["attention"]
        return inputs

    def limits(self) -> str:
        return (
            f"It reads and writes at most {self.config.max_length - 1:,} tokens of a text, as one "
            "sentence (of a blank one it writes nothing), and knows the language and the subjects "
            "of its training text only. A translation can be fluent and wrong. Of the training "
            "pairs the first "
            f"{_TRAIN_MEASURED:,} are measured."
        )

    def answer(
        self, served: Any, inputs: Sequence[str], options: TranslationPredict
    ) -> list[dict[str, Any]]:
        beam = options.beam or self.config.beam_width
        if options.nbest > beam:
            raise UserError(f"nbest is at most beam. Received: nbest={options.nbest}, beam={beam}")
        if options.attention:
            self._drawn.require_one(inputs, served)
        found = served.call("decode", text=list(inputs), beam=beam, nbest=options.nbest)
        answers = [
            {"translation": texts, "score": scores}
            for texts, scores in zip(found["translation"], found["score"], strict=True)
        ]
        if options.attention:
            (given,), (best, *_) = inputs, answers[0]["translation"]
            self._drawn.save(_attention_picture(served, given, best), options.attention)
        return answers

    @functools.cached_property
    def _drawn(self) -> DrawnAttention:
        return DrawnAttention("sentence")

    def interpret(self, given: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Leaves out the places of an n-best list for which there was no translation."""
        there = [score > -np.inf for score in answer["score"]]
        return {
            name: [value for value, is_there in zip(values, there, strict=True) if is_there]
            for name, values in answer.items()
        }

    def present(self, given: str, answer: Mapping[str, Any], options: TranslationPredict) -> str:
        shown = answer["translation"]
        if sys.stdout.isatty():
            shown = [printable.printable(text) for text in shown]
        if options.nbest == 1:
            return "".join(shown)
        return "\n".join(
            f"{score:.3f}\t{text}" for score, text in zip(answer["score"], shown, strict=True)
        )

    def search_space(self, hp: "keras_tuner.HyperParameters") -> TranslationConfig:
        choice = functools.partial(self.choice, hp)
        return dataclasses.replace(
            self.config,
            vocabulary_size=choice("vocabulary_size", 4_000, 6_000, 8_000),
            cell=choice("cell", "lstm", "gru"),
            units=choice("units", 128, 256, 384),
            num_layers=choice("num_layers", 1, 2),
            attention=choice("attention", "additive", "general", "scaled"),
            embedding_size=choice("embedding_size", 128, 256),
            embedding_dropout=choice("embedding_dropout", 0.1, 0.3),
            dropout=choice("dropout", 0.2, 0.4),
            label_smoothing=choice("label_smoothing", 0.0, 0.1),
            learning_rate=choice("learning_rate", 1e-3, 2e-3, 4e-3),
        )

    def figures(
        self, model: "keras.Model", examples: "tf.data.Dataset", evaluation: Evaluation
    ) -> "dict[str, figure.Figure]":
        return {"bleu_by_length": bleu_by_length.bleu_by_length({"test": evaluation.outcomes})}


def _attention_picture(served: Any, given: str, written: str) -> "figure.Figure":
    seen = served.call("attention", text=[given], translation=[written])
    source, target = (segmentation.labels(seen[side][0]) for side in ("source", "target"))
    return alignment.alignment(np.array(seen["weights"][0]), source, target)
