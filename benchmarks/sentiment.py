"""Sentiment against stock Keras written the usual way, in one run: accuracy and seconds.

    RNNAPPS_DATA=DIR python benchmarks/sentiment.py sst2 [--seed 0] [--peer_epochs 3]
    RNNAPPS_DATA=DIR python benchmarks/sentiment.py imdb [--seed 0]

`sst2` trains on phrases of SST-2 (GLUE's training file) and reports on GLUE's dev set, which
chooses nothing: the epoch is chosen, for both sides alike, on a slice of the training sentences
(`sst2_slice.py`). The peer is `TextVectorization`, `Embedding` without a mask, two bidirectional
LSTMs of 64 units, padded to 50 tokens. `imdb` trains on 25,000 long reviews and reports on 25,000
others; it measures peak memory, and how much a review's score depends on its batch. `peer` trains
the peer of SST-2 alone.

`DIR/sentiment` holds `sst2_train.tsv.gz`, `sst2_dev.tsv.gz`, `imdb_train.tsv.gz` and
`imdb_test.tsv.gz`.
"""

import argparse
import csv
import gzip
import json
import os
import platform
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import real_data
import training_run
from etils import epy
from sst2_slice import write_slice

with epy.lazy_imports():
    import keras
    import numpy as np
    import tensorflow as tf

    from rnnapps import folders, serving
    from rnnapps.data import text
    from rnnapps.metrics import classification

SCRIPT = Path(__file__).parents[1] / "pipelines" / "sentiment.py"
WITHOUT_MASKS = Path(__file__).with_name("without_masks.py")
# Of which an encoder starts that reads one way, as a language model does.
LANGUAGE_MODEL = {"embedding_size": 256, "units": 512}
STARTED = LANGUAGE_MODEL | {
    "affixes": False,
    "bidirectional": False,
    "learning_rate": 0.001,
    "embedding_dropout": 0.5,
}
IMDB_PARTS = (("data", "train"), ("test_data", "test"))
COLUMNS = (
    "| side | accuracy | macro F1 | log loss | parameters | seconds | seconds an epoch | epochs |"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", choices=["sst2", "imdb", "peer"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peer_epochs", type=int, default=3, help="0 leaves the peer out")
    parser.add_argument("--export", type=Path, help="where the export stays (default: nowhere)")
    flags = parser.parse_args()
    data = real_data.folder("sentiment")
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, seed {flags.seed}"
    )
    with tempfile.TemporaryDirectory() as folder:
        export = flags.export or Path(folder) / "export"
        {"sst2": sst2, "imdb": imdb, "peer": peer}[flags.data](data, Path(folder), export, flags)


def sst2(data: Path, folder: Path, export: Path, flags: argparse.Namespace) -> None:
    """Prints the table of both sides on SST-2."""
    test = data / "sst2_dev.tsv.gz"
    train, dev = write_slice(data / "sst2_train.tsv.gz", folder, seed=0)
    print(COLUMNS + "\n" + "|---" * 8 + "|")
    if flags.peer_epochs:
        started = time.monotonic()
        found = stock_keras(train, dev, test, flags.seed, flags.peer_epochs)
        seconds = found["curve"]["seconds"]
        print(
            row(
                "stock Keras",
                found["metrics"]["test"],
                found["parameters"],
                time.monotonic() - started,
                sum(seconds) / len(seconds),
                len(seconds),
            ),
            flush=True,
        )
    print(pipeline(sst2_flags(train, dev), folder, export, flags.seed))


def peer(data: Path, folder: Path, export: Path, flags: argparse.Namespace) -> None:
    """Prints what the peer alone reaches on SST-2, as JSON."""
    train, dev = write_slice(data / "sst2_train.tsv.gz", folder, seed=0)
    test = data / "sst2_dev.tsv.gz"
    print(json.dumps(stock_keras(train, dev, test, flags.seed, flags.peer_epochs)))


def imdb(data: Path, folder: Path, export: Path, flags: argparse.Namespace) -> None:
    """Prints the row of IMDB, the peak memory and the batch invariance of the export."""
    test = data / "imdb_test.tsv.gz"
    print(COLUMNS + "\n" + "|---" * 8 + "|")
    print(pipeline(imdb_flags(), folder, export, flags.seed))
    kibibytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"peak resident memory of training, evaluation and export: {kibibytes / 2**20:.2f} GiB")
    with gzip.open(test, "rt", encoding="utf-8", newline="\n") as file:
        reviews = [line.rstrip("\n").split("\t")[3] for line in file]
    mixed = sorted(reviews, key=len)[:: len(reviews) // 200][:200]
    rng = np.random.default_rng(0)
    mixed = [mixed[i] for i in rng.permutation(len(mixed))]
    model = serving.load(export / "1")
    together = np.array([answer["probabilities"] for answer in model.predict(mixed, 200)])
    alone = np.array([answer["probabilities"] for answer in model.predict(mixed, 1)])
    difference = np.max(np.abs(together - alone) / np.maximum(1, np.abs(alone)))
    print(f"200 test reviews of mixed length, alone and in one batch: differ by {difference:.1e}")


def sst2_flags(train: Path, dev: Path) -> list[str]:
    """The rows of a slice of SST-2, and GLUE's dev set for the test, as flags."""
    test = real_data.folder("sentiment") / "sst2_dev.tsv.gz"
    files = [f"--data={train}", f"--dev_data={dev}", f"--test_data={test}"]
    return [*files, "--text_column=sentence"]


def kept_slice(folder: Path) -> tuple[Path, Path]:
    """Writes the slice of SST-2 where it is not there yet, so that runs can be taken up."""
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
            write_slice(
                real_data.folder("sentiment") / "sst2_train.tsv.gz", Path(beside) / "slice", seed=0
            )
            (Path(beside) / "slice").rename(folder)
    return folder / "train.tsv", folder / "dev.tsv"


def mr_flags() -> list[str]:
    """The two files of MR, as flags; a tenth of the sentences becomes dev, another test."""
    files = (f"{real_data.folder('sentiment')}/rt-polarity.{label}.gz" for label in ("pos", "neg"))
    return [f"--data={','.join(files)}"]


def imdb_flags() -> list[str]:
    """The files of IMDB, as flags; a part of the training file becomes the dev split."""
    files = [
        f"--{name}={real_data.folder('sentiment')}/imdb_{part}.tsv.gz" for name, part in IMDB_PARTS
    ]
    return [*files, "--columns=id,stars,label,text"]


def imdb_language_model_flags(folder: Path) -> list[str]:
    """The words of IMDB's training reviews for a language model, as flags.

    The file is written where it is not there yet: a review a line, words as the sentiment model
    reads them, in an order drawn once, because those of a class stand together. The last tenth is
    for dev and test.
    """
    words = folder / "imdb_words.txt"
    if not words.exists():
        with gzip.open(real_data.folder("sentiment") / "imdb_train.tsv.gz", "rb") as file:
            reviews = [line.rstrip(b"\n").split(b"\t")[3] for line in file]
        np.random.default_rng(0).shuffle(reviews)
        folder.mkdir(parents=True, exist_ok=True)
        with folders.replacing(words) as beside, beside.open("wb") as file:
            for start in range(0, len(reviews), 1000):
                tokens = text.words(text.normalise(tf.constant(reviews[start : start + 1000])))
                lines = tf.strings.reduce_join(tokens, axis=-1, separator=" ").numpy()
                file.writelines(line + b"\n" for line in lines)
    return [f"--data={words}", "--splits=90/5/5"]


def pipeline(data: list[str], folder: Path, export: Path, seed: int) -> str:
    """Trains with the command line and its defaults; returns a row of the table."""
    run = training_run.train(SCRIPT, data, {"seed": seed}, folder / "run", export)
    metrics, epochs = run.metrics, run.epochs
    per_epoch = sum(float(epoch["seconds"]) for epoch in epochs) / len(epochs)
    return row(
        "rnnapps", metrics["test"], metrics["parameters"], run.seconds, per_epoch, len(epochs)
    )


def stock_keras(train: Path, dev: Path, test: Path, seed: int, epochs: int) -> dict[str, Any]:
    """Trains the peer and keeps the epoch that is best on the slice; returns a log's parts."""
    keras.utils.set_random_seed(seed)
    (texts, labels), *held_out = (read_phrases(file) for file in (train, dev, test))
    vectorise, model = peer_model(texts)
    best, probabilities = -1.0, []
    curve = {name: [] for name in ("epoch", "seconds", "cpu_seconds", "val_accuracy")}
    for epoch in range(epochs):
        started = time.monotonic()
        model.fit(vectorise(texts), labels, batch_size=32, verbose=0)
        curve["epoch"].append(epoch + 1)
        curve["seconds"].append(time.monotonic() - started)
        (dev_texts, dev_labels), (test_texts, test_labels) = held_out
        dev_accuracy = float(
            np.mean((model.predict(vectorise(dev_texts), verbose=0)[:, 0] > 0.5) == dev_labels)
        )
        curve["val_accuracy"].append(dev_accuracy)
        curve["cpu_seconds"].append(time.process_time())
        if dev_accuracy > best:
            best, probabilities = dev_accuracy, model.predict(vectorise(test_texts), verbose=0)
    measured = classification.scores(
        test_labels, np.concatenate([1 - probabilities, probabilities], axis=-1)
    )
    return {
        "metrics": {"dev": {"accuracy": best}, "test": measured},
        "decodings": {},
        "parameters": model.count_params(),
        "curve": curve,
    }


def peer_model(texts: "tf.Tensor") -> "tuple[keras.layers.Layer, keras.Model]":
    """Makes the peer: what turns texts into tokens, and the compiled model."""
    vectorise = keras.layers.TextVectorization(max_tokens=20_000, output_sequence_length=50)
    vectorise.adapt(texts)
    model = keras.Sequential(
        [
            keras.layers.Embedding(20_000, 128),
            keras.layers.Bidirectional(keras.layers.LSTM(64, return_sequences=True)),
            keras.layers.Bidirectional(keras.layers.LSTM(64)),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile("adam", "binary_crossentropy")
    return vectorise, model


def read_phrases(file: Path) -> "tuple[tf.Tensor, np.ndarray]":
    """Reads the sentences and labels of a file of SST-2."""
    opener = gzip.open if file.suffix == ".gz" else open
    with opener(file, "rt", encoding="utf-8", newline="\n") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE))
    return tf.constant([r["sentence"] for r in rows]), np.array([int(r["label"]) for r in rows])


def row(
    side: str, measured: dict, parameters: int, seconds: float, per_epoch: float, epochs: int
) -> str:
    """Writes one side's row of the table."""
    return (
        f"| {side} | {100 * measured['accuracy']:.2f} | {100 * measured['macro_f1']:.2f} "
        f"| {measured['log_loss']:.3f} | {parameters:,} | {seconds:.0f} | {per_epoch:.1f} "
        f"| {epochs} |"
    )


if __name__ == "__main__":
    main()
