"""Language modelling: what comes next, by characters or words (many-to-many, causal)."""

import ast
import collections
import dataclasses
import functools
import logging
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from etils import epy
from jsonargparse.typing import (
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    restricted_number_type,
)

from rnnapps.errors import UserError
from rnnapps.tasks.config import Auto, DataConfig, Factor, Share, TrainingConfig, settled
from rnnapps.tasks.task import Evaluation, Objective, Splits, Task, once_a_model

with epy.lazy_imports():
    import keras
    import keras_tuner
    import numpy as np
    import tensorflow as tf
    from matplotlib import figure

    from rnnapps import decoding, models
    from rnnapps.data import batching, printable, stream, text
    from rnnapps.data.formats import plain_text
    from rnnapps.figures import token_losses

log = logging.getLogger("rnnapps")

_END = "<end>"
_END_ID = 2
# A vocabulary has a token a line, so that a line feed needs another sign.
_LINE_FEED = "\u2424"
# A long text is measured in pieces of so many tokens at a time, each read from so many before it.
_PIECE, _WARM_UP, _READ_AT_ONCE, _PIECES_AT_ONCE = 10_000, 1_000, 100, 16
_PROGRAMS_PARSED = 200

if TYPE_CHECKING:
    Number: TypeAlias = int
else:
    Number = restricted_number_type(
        "Number", int, [(">=", 0), ("<", 2**31)], docstring="a whole number from 0 to below 2^31"
    )


@dataclasses.dataclass(frozen=True)
class LanguageModelData(DataConfig):
    """Where texts come from, and how they are read."""

    text_column: str = "text"
    """The feature of a TFDS data set that holds the text."""
    dynamic_rate: NonNegativeFloat = 0.0
    """The step size at which a model goes on learning from a stream while it is measured on it
    (dynamic evaluation), which changes no model that is kept; 0 for none."""


@dataclasses.dataclass(frozen=True)
class LanguageModelConfig(TrainingConfig, LanguageModelData):
    """The language model."""

    context: Literal["auto", "lines", "stream"] = "auto"
    """What comes before a token: its own line or TFDS example alone (`lines`), or all of the text
    (`stream`); `auto`: `lines` for the sample, otherwise `stream`."""
    level: Literal["char", "word"] = "char"
    """What a token is: a character, or what stands between blanks; the end of a line is one."""
    vocabulary_size: PositiveInt = 50_000
    """The largest number of known tokens; the most frequent are kept."""
    min_count: PositiveInt = 1
    """How often a token must occur in the training text to be known."""
    max_length: PositiveInt | Auto = "auto"
    """Tokens of a line, or of a text to be scored, that are read; `auto`: as many as the longest
    training line has, but at least 256 and at most 2,048, or 10,000 of a stream."""
    window: PositiveInt = 64
    """Tokens of a stream that a training step reads (k1 of truncated backpropagation)."""
    window_overlap: NonNegativeInt = 0
    """Tokens before a window that the gradient runs back through, too (k2 - k1)."""
    embedding_size: PositiveInt = 64
    """Units of a token's vector."""
    cell: Literal["elman", "lstm", "gru"] = "lstm"
    """The recurrent cell."""
    units: PositiveInt = 256
    """Units of a recurrent layer."""
    num_layers: PositiveInt = 1
    """Recurrent layers, one on top of the other."""
    tied: bool = False
    """Whether the output shares the weights of the embedding."""
    word_dropout: Share = 0.0
    """The share of the vocabulary that is dropped in a training step, wherever it stands."""
    embedding_dropout: Share = 0.0
    """The share of the embeddings' values dropped in training, the same at all steps."""
    dropout: Share = 0.0
    """The share of values dropped between layers and before the output in training, the same at all
    steps."""
    weight_dropout: Share = 0.0
    """The share of the recurrent weights dropped in a training step."""
    activation_regularization: NonNegativeFloat = 0.0
    """The penalty on the size of the last layer's outputs."""
    temporal_regularization: NonNegativeFloat = 0.0
    """The penalty on how much they change from a step to the next."""
    epochs: PositiveInt = 8
    """The largest number of passes over the training text."""
    sample_temperature: NonNegativeFloat = 0.7
    """What the scores are divided by where a run writes samples; 0 for the likeliest token."""

    def __post_init__(self):
        if self.dynamic_rate and not self.is_stream:
            raise UserError(
                "a model learns on from a stream only. "
                f"Received: dynamic_rate={self.dynamic_rate}, context=lines"
            )

    @property
    def is_stream(self) -> bool:
        """Whether all of the text comes before a token; by default it does but in the sample."""
        return self.data != "sample" if self.context == "auto" else self.context == "stream"


@dataclasses.dataclass(frozen=True)
class LanguageModelPredict:
    """How `predict` answers."""

    score: bool = False
    """Tell the probability of each input, in place of going on with it."""
    length: Number = 500
    """The largest number of new tokens."""
    temperature: NonNegativeFloat = 0.7
    """What the scores are divided by; 0 for the likeliest token."""
    top_k: Number = 0
    """Draw from the k likeliest tokens; 0 for all."""
    top_p: Factor = 1.0
    """Draw from the fewest tokens that have this probability; 1 for all."""
    seed: Number = 0
    """Draws another text; each input has the next number."""


class LanguageModel(Task):
    """Predicts each next token of a text, and writes texts of its own.

    Example:
    >>> task = LanguageModel(LanguageModelConfig(data="book.txt", level="char"))
    >>> task.config.data
    'book.txt'
    """

    name = "language_model"
    key = "text"
    examples = ("", "def f(a, b):\n")
    bytes_a_step = 8
    Config = LanguageModelConfig
    Data = LanguageModelData
    PredictOptions = LanguageModelPredict
    config: LanguageModelConfig
    vocabulary: "text.Vocabulary"
    _answered = 0

    def load(self, **options: Any) -> Splits:
        return super().load(contiguous=self._is_stream, **options)

    def as_examples(self, inputs: Sequence[str]) -> "dict[str, tf.Tensor]":
        return {"text": tf.constant(inputs, tf.string)}

    def adapt(self, train: "tf.data.Dataset") -> None:
        config = self.config
        seen, lengths = collections.Counter(), collections.Counter()
        for batch in train.batch(1024):
            text.count_tokens(self._tokens(batch["text"]), seen, lengths)
        if len(seen) < 2:  # with the end of a line
            told = ", ".join(map(repr, seen)) or "none"
            raise UserError(f"the training text needs two different tokens. Received: {told}")
        seen.pop(_END, None)
        seen.pop(text.Vocabulary.UNKNOWN, None)
        known = text.Vocabulary.learn(seen, config.vocabulary_size - 1, config.min_count)
        if len(known) == 2:
            raise UserError(
                "no token of the training text is known. Received: "
                f"vocabulary_size={config.vocabulary_size}, min_count={config.min_count}"
            )
        self.vocabulary = text.Vocabulary([_END, *known.tokens[2:]])
        max_length = config.max_length
        if max_length == "auto":
            max_length = 10_000 if self._is_stream else min(max(*lengths, 256), 2048)
        # What the data is called may change later, but not what the model has learnt to read.
        context: Literal["stream", "lines"] = "stream" if self._is_stream else "lines"
        config = dataclasses.replace(config, max_length=max_length, context=context)
        if self._is_stream:
            total = sum(length * count for length, count in lengths.items())
            rows = config.batch_size
            if rows == "auto":
                rows = min(32, max(total // config.window, 1))
            if total < rows * config.window:
                raise UserError(
                    f"the training text is shorter than {rows} rows of a window of {config.window} "
                    f"tokens: lower window or batch_size. Received: {total} tokens"
                )
            buckets = 1 if config.buckets == "auto" else config.buckets
            self.config = dataclasses.replace(config, batch_size=rows, buckets=buckets)
            told = f"a stream of {total:,} tokens in {rows} rows"
        else:
            self.config = settled(config, lengths.total())
            ends = {length + 1: count for length, count in lengths.items()}  # with the end
            self.plan = batching.Plan.of(ends, **self.plan_sizes())
            told = f"{lengths.total():,} texts; {self.plan}"
        log.info(
            "%s; %s of %s different tokens known",
            told,
            f"{len(known) - 2:,}",
            f"{len(seen):,}",
        )

    def state(self) -> Mapping[str, bytes]:
        files = {"vocabulary.txt": self.vocabulary.content()}
        return files if self._is_stream else files | {"length_counts.txt": self.plan.content()}

    def restore(self, directory: Path) -> None:
        self.vocabulary = text.Vocabulary.load(directory / "vocabulary.txt")
        if not self._is_stream:
            self.plan = batching.Plan.load(directory / "length_counts.txt", **self.plan_sizes())

    def encode(self, example: "Mapping[str, tf.Tensor]") -> "tuple[tf.Tensor, tf.Tensor]":
        """Turns a text of its own into the tokens that are read, and those that follow them."""
        ids, limit = self.vocabulary.ids(self._tokens(example["text"])), self.config.max_length
        read, targets = tf.concat([[_END_ID], ids], 0), tf.concat([ids, [_END_ID]], 0)
        return read[:limit], targets[:limit]  # [time]

    def encoded(self, examples: "tf.data.Dataset", training: bool = False) -> "tf.data.Dataset":
        config = self.config
        if self._is_stream:
            size = config.window + config.window_overlap
            self._kept_stream = self._stream(examples)  # its file lasts as long as it
            return self._kept_stream.windows(config.batch_size, size, config.window)
        return super().encoded(examples, training)

    def batches(self, encoded: "tf.data.Dataset", epoch: int | None = None) -> "tf.data.Dataset":
        if self._is_stream:
            batches = encoded.batch(self.config.batch_size, drop_remainder=True)
        else:
            batches = super().batches(encoded, epoch)
        return batching.weigh_tokens(batches)

    def count_cut(self, batch: "Mapping[str, tf.Tensor]") -> int:
        if self._is_stream:
            return 0
        lengths = self._tokens(batch["text"]).row_lengths()  # [batch]
        return int(tf.math.count_nonzero(lengths + 1 > self.config.max_length))

    def count_cut_inputs(self, inputs: Sequence[str], options: LanguageModelPredict) -> int:
        lengths = self._tokens(tf.constant(inputs, tf.string)).row_lengths()  # [batch]
        if options.score and not self._is_stream:
            lengths += 1  # with the end, which is scored, too
        return int(tf.math.count_nonzero(lengths > self.config.max_length))

    def build(self) -> "keras.Model":
        config = self.config
        layers = models.SequenceEncoder(
            config.cell,
            config.units,
            config.num_layers,
            bidirectional=False,
            dropout=config.dropout,
            variational=True,
            recurrent_weight_dropout=config.weight_dropout,
        )
        encoder = models.TextEncoder(
            len(self.vocabulary),
            config.embedding_size,
            layers,
            config.embedding_dropout,
            variational=True,
            word_dropout=config.word_dropout,
        )
        decoder = models.Decoder(
            encoder,
            tied=config.tied,
            dropout=config.dropout,
            activation_regularization=config.activation_regularization,
            temporal_regularization=config.temporal_regularization,
        )
        model = models.LanguageModel(decoder)
        model.build((None, None))
        return model

    def trained(self, model: "keras.Model") -> "keras.Model":
        if not self._is_stream:
            return models.BeforeSoftmax(model)
        config = self.config
        stride = config.window if config.window_overlap else None
        carried = models.CarriedState(model, config.batch_size, stride)
        shape = (config.batch_size, config.window + config.window_overlap)
        carried.build({"tokens": shape, "reset": shape[:1]})
        return carried

    def objective(self) -> Objective:
        return Objective(
            loss=lambda model, targets, hidden: model.decoder.nats(hidden, targets),
            step_metrics=[],
            monitor="perplexity",
            mode="min",
            panels=(("loss", "val_nats_per_token"), ("val_perplexity",)),
        )

    def evaluate(self, model: "keras.Model", examples: "tf.data.Dataset") -> Evaluation:
        """Scores every token, the ends of lines too, whatever the batches."""
        nats = self.token_nats(model, examples)  # [tokens]
        characters = sum(self._count_characters(batch) for batch in examples.batch(1024))
        if not np.isfinite(nats).all():
            raise UserError("the model's answers are not numbers any more: lower learning_rate")
        if not characters:
            raise UserError("there is no word to score. Received: blank lines only")
        mean = float(np.mean(nats, dtype=float))
        return Evaluation(
            metrics={
                "perplexity": float(np.exp(mean)),
                "nats_per_token": mean,
                "bits_per_character": mean * nats.size / characters / math.log(2),
            },
            report=f"{nats.size:,} tokens, {mean:.4f} nats each",
            outcomes=nats,
        )

    def _count_characters(self, batch: "Mapping[str, tf.Tensor]") -> int:
        """Counts the characters that are scored, a word's with the blank or line end behind it."""
        tokens = self._tokens(batch["text"])  # [batch, (time)]
        ends = 0
        if not self._is_stream:
            limit = self.config.max_length
            if self.config.level == "char":
                ends = int(tf.math.count_nonzero(tokens.row_lengths() < limit))
            tokens = tokens[:, :limit]
        if self.config.level == "char":
            return ends + int(tf.size(tokens.flat_values))
        words = tf.boolean_mask(tokens.flat_values, tokens.flat_values != _END)
        return int(tf.reduce_sum(tf.strings.length(words, "UTF8_CHAR") + 1))

    def token_nats(self, model: "keras.Model", examples: "tf.data.Dataset") -> "np.ndarray":
        """Scores raw examples token by token, by which several models can be mixed.

        Args:
            model: a model of this task.
            examples: raw examples.

        Returns:
            `-log P` of each token in nats, float32 `[tokens]`: the tokens of a stream in order;
            those of single texts text after text, each with its end. Of a stream each 10,000 tokens
            are scored after reading the 1,000 before them, and what was before those is forgotten.

        Raises:
            UserError: There is no token.
        """
        if self._is_stream:
            kept = self._stream(examples)
            if not len(kept):
                raise UserError("there is no token to score. Received: blank lines only")
            rate = self.config.dynamic_rate
            return self._learning_nats(model, kept, rate) if rate else self._nats(model, kept)
        score = self._score_function(model)
        found: dict[int, np.ndarray] = {}
        numbered = self.encoded(examples).enumerate().map(lambda n, e: (e[0], (e[1], n)))
        batches = batching.full_batches(self.batches(numbered), self.config.batch_size)
        for ids, (targets, numbers), weights in batches:
            nats, _ = score(ids, targets, self._no_states(model, ids.shape[0]))
            counted = weights.numpy() > 0  # [batch, time]
            for number, row, there in zip(numbers.numpy(), nats.numpy(), counted, strict=True):
                found.setdefault(int(number), row[there])
        return np.concatenate([found[number] for number in sorted(found)])

    def _nats(self, model: "keras.Model", kept: "stream.Stream") -> "np.ndarray":
        """Scores a stream in pieces, several at a time."""
        score = self._score_function(model)
        firsts = list(range(0, len(kept), _PIECE))
        rows = min(len(firsts), _PIECES_AT_ONCE)
        # On disk, as the text itself.
        nats = np.memmap(tempfile.TemporaryFile(), np.float32, "w+", shape=(len(kept),))
        for begin in range(0, len(firsts), rows):
            group = firsts[begin : begin + rows]
            carried = self._no_states(model, rows)
            for first in range(-_WARM_UP, _PIECE, _READ_AT_ONCE):
                end = first + _READ_AT_ONCE
                pieces = [(place + first, place + end) for place in group]
                pieces += [(0, _READ_AT_ONCE)] * (rows - len(group))
                read = np.stack([kept.read(*piece) for piece in pieces])
                targets = np.stack([kept.targets(*piece) for piece in pieces])
                found, carried = score(read, targets, carried)
                if first < 0:
                    continue
                for (place, behind), row in zip(pieces[: len(group)], found.numpy(), strict=False):
                    counted = min(behind, len(kept)) - place
                    if counted > 0:
                        nats[place : place + counted] = row[:counted]
        return nats

    def _learning_nats(
        self, model: "keras.Model", kept: "stream.Stream", rate: float
    ) -> "np.ndarray":
        """Scores a stream from its beginning, learning from each window after it was scored."""
        before = model.get_weights()
        window = self.config.window
        variables = model.trainable_variables

        @tf.function(reduce_retracing=True, jit_compile=True)
        def score_and_learn(read, targets, carried):
            with tf.GradientTape() as tape:
                scores, after = model.log_probabilities(read, targets, carried)
                loss = -tf.reduce_mean(scores)
            gradients = tape.gradient(loss, [variable.value for variable in variables])
            gradients, _ = tf.clip_by_global_norm(
                [tf.convert_to_tensor(gradient) for gradient in gradients], 1.0
            )
            for variable, gradient in zip(variables, gradients, strict=True):
                variable.assign_sub(rate * gradient)
            return -scores, after

        nats, carried = [], self._no_states(model, 1)
        for first in range(0, len(kept), window):
            end = min(first + window, len(kept))
            read, targets = kept.read(first, end)[None], kept.targets(first, end)[None]
            found, carried = score_and_learn(tf.constant(read), tf.constant(targets), carried)
            nats.append(found.numpy()[0])
        model.set_weights(before)
        return np.concatenate(nats)

    @once_a_model
    def _score_function(self, model: "keras.Model"):
        """Returns the compiled function that scores batches."""
        ids = tf.TensorSpec([None, None], tf.int32)
        states = [tf.TensorSpec([None, size]) for size in model.decoder.state_sizes]

        # One graph for all shapes, each of which is compiled.
        @tf.function(input_signature=[ids, ids, states], jit_compile=True, autograph=False)
        def score(ids, targets, states):
            scores, after = model.log_probabilities(ids, targets, states)
            return -scores, after

        return score

    def _no_states(self, model: "keras.Model", rows: int) -> "list[tf.Tensor]":
        return [tf.zeros([rows, size]) for size in model.decoder.state_sizes]

    def final_metrics(self, model: "keras.Model") -> dict[str, float]:
        """Writes programs, where the sample of programs was learnt, and counts those that parse."""
        if self.config.data != "sample":
            return {}
        generate = self.signatures(model)["generate"]
        written = generate(
            prompt=tf.fill([_PROGRAMS_PARSED], ""),
            length=tf.constant(self.config.max_length),
            temperature=tf.constant(self.config.sample_temperature),
            top_k=tf.constant(0),
            top_p=tf.constant(1.0),
            seed=tf.range(_PROGRAMS_PARSED, dtype=tf.int64),
        )["text"].numpy()
        return {"parse_rate": sum(map(_parses, written)) / len(written)}

    def signatures(
        self, model: "keras.Model"
    ) -> "dict[str, tf.types.experimental.GenericFunction]":
        vocabulary, decoder = self.vocabulary, model.decoder
        limit = self.config.max_length

        @tf.function(
            input_signature=[tf.TensorSpec([None], tf.string, name="text")], autograph=False
        )
        def score(text):
            ids = vocabulary.ids(self._tokens(text))  # [batch, (time)]
            ends = tf.fill([tf.shape(text)[0], 1], _END_ID)
            read = tf.concat([ends, ids], axis=1)[:, :limit]  # [batch, (time)]
            targets = ids if self._is_stream else tf.concat([ids, ends], axis=1)
            targets = targets[:, :limit]  # [batch, (time)]
            nats = _nats_in_windows(model, read.to_tensor(), targets.to_tensor())
            return {"nats": nats, "tokens": tf.cast(targets.row_lengths(), tf.int32)}

        @tf.function(
            input_signature=[
                tf.TensorSpec([None], tf.string, name="prompt"),
                tf.TensorSpec([], tf.int32, name="length"),
                tf.TensorSpec([], tf.float32, name="temperature"),
                tf.TensorSpec([], tf.int32, name="top_k"),
                tf.TensorSpec([], tf.float32, name="top_p"),
                tf.TensorSpec([None], tf.int64, name="seed"),
            ],
            autograph=False,
        )
        def generate(prompt, length, temperature, top_k, top_p, seed):
            ids = vocabulary.ids(self._tokens(prompt))[:, -limit:]  # [batch, (time)]
            ends = tf.fill([tf.shape(prompt)[0], 1], _END_ID)
            ids = tf.concat([ends, ids], axis=1)  # [batch, (time + 1)]
            last = tf.gather(ids.flat_values, ids.row_limits() - 1)  # [batch]
            before = ids[:, :-1].to_tensor()  # [batch, time]
            _, states = decoder.encoder(before, training=False)
            written = decoding.sample(
                model.step,
                last,
                states,
                length=tf.minimum(length, limit),
                seeds=seed,
                temperature=temperature,
                top_k=top_k,
                top_p=top_p,
                end=None if self._is_stream else _END_ID,
                forbidden=(0, 1, _END_ID) if self._end_is_no_token else (0, 1),
            )
            return {"text": self._joined(prompt, written.tokens)}

        return {"serving_default": score, "generate": generate}

    def probe(self) -> "dict[str, dict[str, tf.Tensor]]":
        known = [token for token in self.vocabulary.tokens[3:] if token != _LINE_FEED]
        between = "" if self.config.level == "char" else " "
        likely = [between.join(known[i::7][: i + 1]) for i in range(6)]
        awkward = ["", "   ", "!!!", "\u65e5\u672c\u8a9e caf\u00e9", "word " * 200]
        texts = tf.constant([*likely, *awkward])
        sizes = {"length": tf.constant(20), "top_k": tf.constant(5), "top_p": tf.constant(0.9)}
        return {
            "serving_default": {"text": texts},
            "generate": {
                "prompt": texts,
                "temperature": tf.constant(0.0),
                "seed": tf.range(texts.shape[0], dtype=tf.int64),
                **sizes,
            },
        }

    def limits(self) -> str:
        tokens = "characters" if self.config.level == "char" else "words"
        return (
            f"It knows {len(self.vocabulary) - 3:,} {tokens}, reads the first "
            f"{self.config.max_length:,} of a text and the last of a prompt, and writes at most as "
            "many. What it writes looks like its training text, and means nothing."
        )

    def answer(
        self, served: Any, inputs: Sequence[str], options: LanguageModelPredict
    ) -> list[dict[str, Any]]:
        if options.score:
            return super().answer(served, inputs, options)
        seeds = [options.seed + self._answered + number for number in range(len(inputs))]
        self._answered += len(inputs)
        written = served.call(
            "generate",
            prompt=list(inputs),
            length=options.length,
            temperature=options.temperature,
            top_k=options.top_k,
            top_p=options.top_p,
            seed=seeds,
        )
        return [{"text": one} for one in written["text"]]

    def present(self, given: str, answer: Mapping[str, Any], options: LanguageModelPredict) -> str:
        if not options.score:
            shown = answer["text"]
            return printable.printable(shown, keep="\n\t") if sys.stdout.isatty() else shown
        perplexity = float(np.exp(answer["nats"] / max(answer["tokens"], 1)))
        return f"{answer['nats']:.3f} nats  {answer['tokens']} tokens  perplexity {perplexity:.3f}"

    def search_space(self, hp: "keras_tuner.HyperParameters") -> LanguageModelConfig:
        choice = functools.partial(self.choice, hp)
        return dataclasses.replace(
            self.config,
            cell=choice("cell", "lstm", "gru"),
            units=choice("units", 128, 256, 512),
            num_layers=choice("num_layers", 1, 2),
            embedding_size=choice("embedding_size", 32, 64, 128),
            embedding_dropout=choice("embedding_dropout", 0.0, 0.2),
            dropout=choice("dropout", 0.0, 0.2, 0.4),
            weight_dropout=choice("weight_dropout", 0.0, 0.3),
            learning_rate=choice("learning_rate", 0.0015, 0.003, 0.006),
            clip_norm=choice("clip_norm", 0.25, 1.0, 5.0),
        )

    def figures(
        self, model: "keras.Model", examples: "tf.data.Dataset", evaluation: Evaluation
    ) -> "dict[str, figure.Figure]":
        return {"losses": token_losses.token_losses(evaluation.outcomes)}

    @property
    def shares_batches(self) -> bool:  # type: ignore[override]
        """The rows of a stream go on from batch to batch, on one device."""
        return not self._is_stream

    @property
    def _is_stream(self) -> bool:
        return self.config.is_stream

    @property
    def _end_is_no_token(self) -> bool:
        """Whether the end of a line is a token of its own kind, and `<end>` never written."""
        return self._is_stream and self.config.level == "char"

    def reading(self) -> dict[str, Any]:
        config = self.config
        strip = not self._is_stream

        def read(path: str) -> Iterator[Any]:
            for row in plain_text.read_plain_text(path):
                if strip and isinstance(row, dict):
                    row["text"] = row["text"].removesuffix("\n")
                yield row

        return {
            "read": read,
            "sample": "sample_programs",
            "fields": {"text": config.text_column},
            "on_bad_row": config.on_bad_row,
        }

    def _tokens(self, texts: "tf.Tensor") -> "tf.RaggedTensor":
        """Splits texts, string `[…]`, into tokens, string `[…, (time)]`."""
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
        texts = tf.strings.regex_replace(texts, "\r\n?", "\n")
        if self.config.level == "char":
            texts = tf.strings.regex_replace(texts, "\n", _LINE_FEED)
            return text.characters(texts)
        return tf.strings.split(tf.strings.regex_replace(texts, "\n", f" {_END} "))

    def _joined(self, prompt: "tf.Tensor", ids: "tf.Tensor") -> "tf.Tensor":
        """Writes tokens behind their prompts: string `[batch]`."""
        tokens = tf.where(ids > 0, self.vocabulary.tokens_of(ids), "")  # [batch, time]
        if not self._is_stream:
            tokens = tf.where(ids == _END_ID, "", tokens)
        if self.config.level == "char":
            written = tf.strings.reduce_join(tokens, axis=-1)  # [batch]
            return prompt + tf.strings.regex_replace(written, _LINE_FEED, "\n")
        behind = tf.strings.reduce_join(
            tf.where(tokens == "", "", " " + tokens), axis=-1
        )  # [batch]
        behind = tf.strings.regex_replace(behind, f" {_END} ?", "\n")
        # A word stands right behind a blank or the beginning of a line.
        joins = tf.strings.regex_full_match(prompt, r"(?s)|.*\s")
        return prompt + tf.where(joins, tf.strings.regex_replace(behind, "^ ", ""), behind)

    def _stream(self, examples: "tf.data.Dataset") -> "stream.Stream":
        chunks = (
            self.vocabulary.ids(self._tokens(batch["text"]).flat_values).numpy()
            for batch in examples.batch(1024)
        )
        return stream.Stream(chunks, start=_END_ID)


def _nats_in_windows(model, read, targets, window: int = 64):
    """Adds up the nats of rows `[batch, time]`; the logits of all steps at once may be too many."""
    rows, time = tf.shape(targets)[0], tf.shape(targets)[1]
    missing = -time % window
    padded = [
        tf.pad(part, [[0, 0], [0, missing]]) for part in (read[:, :time], targets)
    ]  # [batch, time + missing]
    states = [tf.zeros([rows, size]) for size in model.decoder.state_sizes]

    def turn(first, nats, states):
        pieces = (part[:, first : first + window] for part in padded)
        scores, states = model.log_probabilities(*pieces, states)
        return first + window, nats - tf.reduce_sum(scores, axis=1), states

    loop = (tf.constant(0), tf.zeros([rows]), states)
    shapes = (
        tf.TensorShape([]),
        tf.TensorShape([None]),
        [tf.TensorShape([None, size]) for size in model.decoder.state_sizes],
    )
    return tf.while_loop(lambda first, *_: first < time, turn, loop, shapes)[1]


def _parses(program: bytes) -> bool:
    try:
        ast.parse(program.decode())
    except (SyntaxError, ValueError):
        return False
    return bool(program.strip())
