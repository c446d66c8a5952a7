"""Language models: perplexity against n-grams, and seconds against stock Keras.

    RNNAPPS_DATA=DIR python benchmarks/language_model.py ptb [--seed 0] [--epochs 14]
    RNNAPPS_DATA=DIR python benchmarks/language_model.py shakespeare [--seed 0] [--epochs 12]
    RNNAPPS_DATA=DIR python benchmarks/language_model.py mixtures NAME=DIR/VERSION …
    RNNAPPS_DATA=DIR python benchmarks/language_model.py speed [--seed 0]
    RNNAPPS_DATA=DIR python benchmarks/language_model.py sampling --export DIR/VERSION

`ptb` trains a word model of less than 5M parameters on the Penn Treebank and reports perplexity on
test, with the ends of lines; the valid split chooses the epoch. Beside it stand an interpolated
modified Kneser-Ney model of order 5, the mixture of both with the weight that is best on valid,
and the model that goes on learning from the test text (dynamic evaluation). `shakespeare` trains a
character model on the first 90% of tiny shakespeare, of which the last part chooses the epoch, and
reports nats a character on the last 10%. `mixtures` mixes several exports of the first, and
Kneser-Ney.

`speed` trains both models without dropout for some steps, and stock Keras' layers of the same sizes
on the same windows, each in a process of its own, three times by turns. The median step of a turn
counts, and of the turns the median, so that neither a pause of the machine nor a busy minute does.
Each side is as its user has it: that a process keeps the memory it frees is part of training here.
`sampling` writes with an exported character model, one prompt and 64 at a time, against a Python
loop that calls `predict` for each character of one prompt.

`DIR/lm` holds `ptb.train.txt.gz`, `ptb.valid.txt.gz`, `ptb.test.txt.gz` and
`tinyshakespeare.txt.gz`.
"""

import argparse
import gzip
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import real_data
import training_run
from etils import epy

from rnnapps.tasks.language_model import LanguageModel, LanguageModelConfig

with epy.lazy_imports():
    from rnnapps import export, models

SCRIPT = Path(__file__).parents[1] / "pipelines" / "language_model.py"
PTB = {
    "level": "word",
    "embedding_size": 256,
    "units": 384,
    "num_layers": 2,
    "tied": True,
    "window": 35,
    "batch_size": 32,
    "embedding_dropout": 0.2,
    "dropout": 0.3,
    "weight_dropout": 0.1,
    "learning_rate": 0.003,
    "weight_average": 0.999,
    "clip_norm": 0.5,
}
SHAKESPEARE = {
    "level": "char",
    "splits": "85/5/10",
    "embedding_size": 64,
    "units": 512,
    "window": 64,
    "batch_size": 32,
    "embedding_dropout": 0.1,
    "dropout": 0.4,
    "learning_rate": 0.002,
    "weight_average": 0.999,
}
# Of a size that takes about an hour on 2 cores.
SHAKESPEARE_HOUR = SHAKESPEARE | {"num_layers": 2, "dropout": 0.5, "epochs": 30}
WIKITEXT2 = PTB | {
    "embedding_size": 200,
    "units": 512,
    "num_layers": 1,
    "embedding_dropout": 0.1,
    "dropout": 0.2,
    "epochs": 6,
}
IMDB = PTB | {
    "embedding_size": 256,
    "units": 512,
    "num_layers": 1,
    "vocabulary_size": 20_000,
    "embedding_dropout": 0.1,
    "dropout": 0.2,
    "epochs": 5,
}
SPEED_STEPS = 60
# What `mixtures` measures of three models before the mixture of all.
MIXTURES = (
    "Kneser-Ney of order 5 alone",
    "LSTM and Kneser-Ney",
    "mix of the three",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=[*COMMANDS])
    parser.add_argument("exports", nargs="*", metavar="NAME=EXPORT", help="for `mixtures`")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--out", type=Path, help="the run folder, to be taken up where it stands")
    parser.add_argument("--export", type=Path, help="where the export stays (default: nowhere)")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.side:
        return print(measure_speed(*flags.side.split(","), flags.seed))
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, seed {flags.seed}"
    )
    with tempfile.TemporaryDirectory() as folder:
        flags.out = flags.out or Path(folder) / "run"
        if flags.what != "sampling":
            flags.export = flags.export or Path(folder) / "export"
        COMMANDS[flags.what](flags)


def ptb(flags: argparse.Namespace) -> None:
    """Prints the perplexities on test of all models."""
    metrics, version = train(PTB | {"epochs": flags.epochs or 14}, data_flags("ptb"), flags)
    print("| model | test perplexity |\n|---|---|")
    print(f"| recurrent | {metrics['test']['perplexity']:.2f} |", flush=True)
    for name, found in mixtures({"recurrent": version}).items():
        told = ", ".join(f"{weight:.2f}" for weight in found["weights"])
        print(f"| {name} ({told}) | {found['test']['perplexity']:.2f} |", flush=True)
    dynamic, model = export.read(LanguageModel, version, dynamic_rate=0.3)
    nats = dynamic.token_nats(model, dynamic.load()["test"])
    print(f"| recurrent, learning on | {np.exp(nats.mean()):.2f} |", flush=True)


def print_mixtures(flags: argparse.Namespace) -> None:
    """Prints what mixtures of the exports given come to, as JSON."""
    exports = dict(one.split("=", 1) for one in flags.exports)
    found = list(mixtures({name: Path(place) for name, place in exports.items()}).values())
    named = dict(zip(MIXTURES, found[:-1], strict=True))
    print(json.dumps({"metrics": found[-1], "decodings": named}))


def mixtures(exports: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """Measures n-grams of the Penn Treebank, and mixtures of them with exported models.

    Args:
        exports: Exported models by name.

    Returns:
        For the n-grams, the first model with them, all models and all with the n-grams: the weights
        that are best on valid, in this order, and the metrics on `dev` and `test`.
    """
    parts = {"dev": "valid", "test": "test"}
    ngrams = models.KneserNey(read_sentences("ptb.train"), order=5)
    counted = {
        split: np.concatenate(
            [ngrams.log_probabilities(sentence) for sentence in read_sentences(f"ptb.{part}")]
        )
        for split, part in parts.items()
    }
    learnt = {}
    for name, version in exports.items():
        task, model = export.read(LanguageModel, version)
        splits = task.load()
        learnt[name] = {split: -task.token_nats(model, splits[split]) for split in parts}
    first, every = next(iter(exports)), " and ".join(exports)
    mixed = {
        "Kneser-Ney, order 5": [counted],
        f"{first} and Kneser-Ney": [learnt[first], counted],
    }
    if len(exports) > 1:
        mixed |= {every: [*learnt.values()], f"{every} and Kneser-Ney": [*learnt.values(), counted]}
    return {name: mixture(scored) for name, scored in mixed.items()}


def mixture(scored: Sequence[Mapping[str, np.ndarray]]) -> dict[str, Any]:
    """Mixes models, of which the log-probabilities of all tokens are given by split."""
    weights = models.mixture_weights([one["dev"] for one in scored])
    found = {"weights": [round(float(weight), 3) for weight in weights]}
    for split in ("dev", "test"):
        mixed = models.mixture_log_probabilities([one[split] for one in scored], weights)
        found[split] = {"perplexity": float(np.exp(-mixed.mean()))}
    return found


def shakespeare(flags: argparse.Namespace) -> None:
    """Prints nats a character on the last 10% of the text."""
    data = [f"--data={file('tinyshakespeare')}"]
    metrics, _ = train(SHAKESPEARE | {"epochs": flags.epochs or 12}, data, flags)
    print(
        f"test: {metrics['test']['nats_per_token']:.4f} nats a character, "
        f"{metrics['test']['bits_per_character']:.4f} bits"
    )


def train(settings: dict, data: list[str], flags: argparse.Namespace) -> tuple[dict, Path]:
    """Trains, telling what it took; returns metrics and the export."""
    settings = settings | {"patience": settings["epochs"], "seed": flags.seed}
    run = training_run.train(SCRIPT, data, settings, flags.out, flags.export)
    print(f"{run}; dev perplexity {run.metrics['dev']['perplexity']:.2f}", flush=True)
    return run.metrics, run.version


def speed(flags: argparse.Namespace) -> None:
    """Prints tokens a second of both sides."""
    print("| model | rnnapps, tokens/s | stock Keras, tokens/s | ratio |\n|---|---|---|---|")
    for model in ("ptb", "shakespeare"):
        rates = {"rnnapps": [], "stock Keras": []}
        for side, of_side in 3 * list(rates.items()):  # by turns: the machine has its moods
            command = [sys.executable, __file__, "speed", f"--side={model},{side}"]
            command.append(f"--seed={flags.seed}")
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            of_side.append(float(done.stdout.strip()))
        ours, stock = map(np.median, rates.values())
        print(f"| {model} | {ours:,.0f} | {stock:,.0f} | {ours / stock:.2f} |", flush=True)


def measure_speed(name: str, side: str, seed: int) -> float:
    """Returns the tokens a second of one side's median step, after its compilation."""
    import keras
    import tensorflow as tf

    from rnnapps.learner import Learner

    settings, data = (
        (PTB, file("ptb.train")) if name == "ptb" else (SHAKESPEARE, file("tinyshakespeare"))
    )
    without = dict.fromkeys(("embedding_dropout", "dropout", "weight_dropout"), 0.0)
    config = LanguageModelConfig(data=data, seed=seed, **(settings | without))
    task = LanguageModel(config)
    train = task.load()["train"]
    task.adapt(train)
    taken = list(task.batches(task.encoded(train, training=True), epoch=0).take(SPEED_STEPS))
    batches = tf.data.Dataset.from_tensor_slices(
        tf.nest.map_structure(lambda *parts: tf.stack(parts), *taken)
    )
    ends = []
    if side == "rnnapps":
        learner = Learner(task, tf.distribute.get_strategy())

        def run():
            for values in learner.steps(batches):
                float(values[0])
                ends.append(time.monotonic())
    else:
        model = stock_keras(len(task.vocabulary), config)
        tell = keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda step, logs: ends.append(time.monotonic())
        )
        windows = batches.map(lambda inputs, targets, weights: (inputs["tokens"], targets))

        def run():
            model.fit(windows, callbacks=[tell], verbose=0)

    keras.utils.set_random_seed(seed)
    run()  # compiles
    ends.clear()
    run()
    return config.batch_size * config.window / float(np.median(np.diff(ends)))


def stock_keras(vocabulary_size: int, config):
    """Makes the peer: stock layers of the same sizes, with the same ties by hand."""
    import keras
    from keras import ops

    class Stock(keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding = keras.layers.Embedding(vocabulary_size, config.embedding_size)
            self.layers_of_time = [
                keras.layers.LSTM(config.units, return_sequences=True, stateful=True)
                for _ in range(config.num_layers)
            ]
            self.output_layer = keras.layers.Dense(vocabulary_size)
            if config.tied:
                self.output_layer = keras.layers.Dense(config.embedding_size, use_bias=False)
                self.bias = self.add_weight(shape=(vocabulary_size,), initializer="zeros")

        def call(self, ids):
            outputs = self.embedding(ids)
            for layer in self.layers_of_time:
                outputs = layer(outputs)
            outputs = self.output_layer(outputs)
            if not config.tied:
                return outputs
            return ops.matmul(outputs, ops.transpose(self.embedding.embeddings)) + self.bias

    model = Stock()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    adam = keras.optimizers.Adam(config.learning_rate, global_clipnorm=config.clip_norm)
    model.compile(adam, loss)
    return model


def sampling(flags: argparse.Namespace) -> None:
    """Prints characters a second of the export, and of the loop over `predict`."""
    import tensorflow as tf

    task, model = export.read(LanguageModel, flags.export)
    generate = tf.saved_model.load(flags.export).signatures["generate"]
    length, rates = 200, {}
    for prompts in (1, 64):
        options = {
            "prompt": tf.fill([prompts], "T"),
            "length": tf.constant(length),
            "temperature": tf.constant(1.0),
            "top_k": tf.constant(0),
            "top_p": tf.constant(1.0),
            "seed": tf.range(prompts, dtype=tf.int64),
        }
        generate(**options)
        seconds = []
        for _ in range(3):
            started = time.monotonic()
            written = generate(**options)["text"].numpy()
            seconds.append(time.monotonic() - started)
        rates[prompts] = sum(len(one.decode()) - 1 for one in written) / float(np.median(seconds))
        print(f"{prompts} prompts: {rates[prompts]:,.0f} characters/s", flush=True)
    ids, rng = [2, int(task.vocabulary.ids(tf.constant(["T"]))[0])], np.random.default_rng(0)
    steps, started = 50, None
    for step in range(steps + 1):
        if step == 1:
            started = time.monotonic()  # the first call compiles
        padded = np.array([ids + [0] * (steps + 2 - len(ids))])
        logits = model.predict(padded, verbose=0)[0, len(ids) - 1]
        chances = np.exp(logits - logits.max())
        ids.append(int(rng.choice(len(chances), p=chances / chances.sum())))
    rate = steps / (time.monotonic() - started)
    print(
        f"a loop of predict calls: {rate:,.0f} characters/s, 1 prompt {rates[1] / rate:.0f} times"
    )


def data_flags(corpus: str) -> list[str]:
    """The three files of a corpus, as flags."""
    names = {"data": "train", "dev_data": "valid", "test_data": "test"}
    return [f"--{flag}={file(f'{corpus}.{name}')}" for flag, name in names.items()]


def file(name: str) -> str:
    """A file of the real data."""
    return str(real_data.folder("lm") / f"{name}.txt.gz")


def read_sentences(name: str) -> list[list[str]]:
    """Reads a file of one sentence a line."""
    with gzip.open(file(name), "rt", encoding="utf-8") as handle:
        return [line.split() for line in handle]


COMMANDS = {
    "ptb": ptb,
    "shakespeare": shakespeare,
    "mixtures": print_mixtures,
    "speed": speed,
    "sampling": sampling,
}

if __name__ == "__main__":
    main()
