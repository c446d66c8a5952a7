"""How long one request to an exported model takes, against the usual Keras export of its sizes.

    python benchmarks/latency.py [TASK ...] [--requests 1000] [--threads 1] [--seed 0]

Both sides are exported, loaded again, and asked in turn for one text at a time: random words of the
task's bundled sample, 1 to 40 of them, of translation 1 to 12. The weights are untrained, which
changes no time: a translation has 20 tokens on both sides. The peer is what Keras' guides do:
`TextVectorization`, `Embedding`, stock recurrent layers with masks, and `Model.export`; for
translation a `tf.while_loop` over stock cells with `AdditiveAttention`, the likeliest token at each
step. Milliseconds: median and 99th percentile, after twenty requests to warm up.
"""

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from rnnapps import export
from rnnapps.tasks.language_model import LanguageModel, LanguageModelConfig
from rnnapps.tasks.ner import Ner, NerConfig
from rnnapps.tasks.sentiment import Sentiment, SentimentConfig
from rnnapps.tasks.task import Task
from rnnapps.tasks.translation import Translation, TranslationConfig

WRITTEN = 20
WARM_UP = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(TASKS))
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0, help="0: as TensorFlow chooses")
    flags = parser.parse_args()
    tf.config.threading.set_inter_op_parallelism_threads(flags.threads)
    tf.config.threading.set_intra_op_parallelism_threads(flags.threads)
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, seed {flags.seed}, "
        f"{flags.requests:,} requests, {flags.threads or 'all'} threads\n"
    )
    print("| task | ours, p50 | p99 | Keras, p50 | p99 | Keras / ours, p50 | p99 |")
    print("|---" * 7 + "|")
    for name in flags.tasks or TASKS:
        make_task, peer, max_words = TASKS[name]
        task = make_task()
        keras.utils.set_random_seed(flags.seed)
        with tempfile.TemporaryDirectory() as folder:
            train = task.load()["train"]
            task.adapt(train)
            sides = {"ours": exported(task, Path(folder)), "keras": peer(task, f"{folder}/keras")}
            texts = random_texts(train, max_words, flags.requests + WARM_UP, flags.seed)
            found = times(sides, texts)
        (p50, p99), (peer50, peer99) = found["ours"], found["keras"]
        print(
            f"| {name} | {p50:.2f} | {p99:.2f} | {peer50:.2f} | {peer99:.2f} "
            f"| {peer50 / p50:.2f} | {peer99 / p99:.2f} |",
            flush=True,
        )


def exported(task: Task, folder: Path) -> Callable:
    """Exports an untrained model of a task; returns its default signature, as it is served."""
    model = task.build()
    nothing = {"test": {}, "examples": {}, "parameters": model.count_params(), "seconds": 0}
    version = export.write(task, model, nothing, folder / "ours")
    return loaded(version)


def loaded(folder: Path | str) -> Callable:
    """Loads an export; returns what answers texts."""
    model = tf.saved_model.load(str(folder))
    serve = model.signatures["serving_default"]
    (name,) = serve.structured_input_signature[1]
    # The signature does not keep its model.
    return lambda text, model=model: next(iter(serve(**{name: text}).values())).numpy()


def random_texts(train: tf.data.Dataset, max_words: int, number: int, seed: int) -> list[tf.Tensor]:
    """Draws texts of the words that the first examples have."""
    rng = np.random.default_rng(seed)
    words = set()
    for example in train.take(300).as_numpy_iterator():
        text = next(example[key] for key in ("text", "source", "tokens") if key in example)
        text = b" ".join(np.atleast_1d(text).tolist())
        words |= set(text.split())
    words = sorted(words)
    lengths = rng.integers(1, max_words + 1, number)
    return [tf.constant([b" ".join(rng.choice(words, length))]) for length in lengths]


def times(sides: dict[str, Callable], texts: list[tf.Tensor]) -> dict[str, np.ndarray]:
    """Returns median and 99th percentile of each side, in milliseconds."""
    taken = {name: [] for name in sides}
    for text in texts:
        for name, answer in sides.items():
            started = time.perf_counter()
            answer(text)
            taken[name].append(1000 * (time.perf_counter() - started))
    return {name: np.percentile(values[WARM_UP:], [50, 99]) for name, values in taken.items()}


def recurrent(config, number: int):
    """Stock Keras' layer of a task's sizes."""
    stock = {"elman": layers.SimpleRNN, "lstm": layers.LSTM, "gru": layers.GRU}[config.cell]
    layer = stock(config.units, return_sequences=True, name=f"recurrent_{number}")
    return layers.Bidirectional(layer) if getattr(config, "bidirectional", False) else layer


def vectorisation(size: int, **options):
    """Stock Keras' tokens, of a vocabulary of a size; its words do not matter."""
    vectorise = layers.TextVectorization(**options)
    vectorise.set_vocabulary([f"word{number}" for number in range(size - 2)])
    return vectorise


def read_by_words(config, folder: str, vectorise, *head) -> Callable:
    """Exports tokens, their vectors, recurrent layers, and the layers behind them."""
    model = keras.Sequential(
        [
            keras.Input((), dtype="string"),
            vectorise,
            layers.Embedding(vectorise.vocabulary_size(), config.embedding_size, mask_zero=True),
            *(recurrent(config, number) for number in range(config.num_layers)),
            *head,
        ]
    )
    model.export(folder, verbose=False)
    return loaded(folder)


def sentiment_peer(task: Sentiment, folder: str) -> Callable:
    head = layers.GlobalAveragePooling1D(), layers.Dense(len(task.labels), activation="softmax")
    return read_by_words(task.config, folder, vectorisation(len(task.vocabulary)), *head)


def ner_peer(task: Ner, folder: str) -> Callable:
    vectorise = vectorisation(len(task.vocabulary), standardize=None, split="whitespace")
    head = layers.Dense(len(task.tags), activation="softmax")
    return read_by_words(task.config, folder, vectorise, head)


def language_model_peer(task: LanguageModel, folder: str) -> Callable:
    config, size = task.config, len(task.vocabulary)
    stack = [recurrent(config, number) for number in range(config.num_layers)]
    read = keras.Input((), dtype="string")
    ids = vectorisation(size, standardize=None, split="character")(read)
    states = layers.Embedding(size, config.embedding_size, mask_zero=True)(ids)
    for layer in stack:
        states = layer(states)
    logits = layers.Dense(size)(states)

    class Nats(layers.Layer):
        def call(self, ids, logits):
            nats = keras.losses.sparse_categorical_crossentropy(ids, logits, from_logits=True)
            return keras.ops.sum(nats * keras.ops.cast(ids > 0, nats.dtype), axis=-1)

    model = keras.Model(read, Nats()(ids, logits))
    model.export(folder, verbose=False)
    return loaded(folder)


def translation_peer(task: Translation, folder: str) -> Callable:
    config = task.config
    source, target = len(task.source), len(task.target)

    class Translator(keras.Model):
        """Stock layers, and the likeliest token at each step."""

        def __init__(self):
            super().__init__()
            self.vectorise = vectorisation(source, standardize=None)
            self.read = layers.Embedding(source, config.embedding_size, mask_zero=True)
            self.encoders = [
                layers.Bidirectional(layers.LSTM(config.units, return_sequences=True))
                for _ in range(config.num_layers)
            ]
            self.written = layers.Embedding(target, config.embedding_size)
            self.cells = [layers.LSTMCell(config.units) for _ in range(config.num_layers)]
            self.look = layers.AdditiveAttention()
            self.memory = layers.Dense(config.units)
            self.combine = layers.Dense(config.units, activation="tanh")
            self.score = layers.Dense(target)

        def call(self, text):
            ids = self.vectorise(text)
            outputs, mask = self.read(ids), ids > 0
            for encoder in self.encoders:
                outputs = encoder(outputs, mask=mask)
            memory = self.memory(outputs)
            batch = tf.shape(text)[0]
            states = [cell.get_initial_state(batch) for cell in self.cells]

            def step(t, token, states, found):
                output, after = self.written(token), []
                for cell, state in zip(self.cells, states, strict=True):
                    output, state = cell(output, state)
                    after.append(state)
                seen = self.look([output[:, None], memory], mask=[None, mask])[:, 0]
                combined = self.combine(tf.concat([output, seen], axis=-1))
                token = tf.argmax(self.score(combined), axis=-1, output_type=tf.int32)
                return t + 1, token, after, found.write(t, token)

            found = tf.TensorArray(tf.int32, WRITTEN)
            first = (0, tf.ones([batch], tf.int32), states, found)
            *_, found = tf.while_loop(lambda t, *_: t < WRITTEN, step, first)
            return tf.transpose(found.stack())

    model = Translator()
    model(tf.constant(["word1 word2"]))
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", model.call, [tf.TensorSpec([None], tf.string, name="text")])
    archive.write_out(folder, verbose=False)
    return loaded(folder)


def translation() -> Translation:
    """The task, of which the likeliest token at each step is taken, so many times."""
    return Translation(
        TranslationConfig(
            beam_width=1, min_length=WRITTEN, max_length=WRITTEN, max_growth=float(WRITTEN)
        )
    )


TASKS = {
    "sentiment": (lambda: Sentiment(SentimentConfig()), sentiment_peer, 40),
    "ner": (lambda: Ner(NerConfig()), ner_peer, 40),
    "language_model": (lambda: LanguageModel(LanguageModelConfig()), language_model_peer, 40),
    "translation": (translation, translation_peer, 12),
}

if __name__ == "__main__":
    main()
