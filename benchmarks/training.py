"""How fast the sentiment pipeline trains on SST-2, against stock Keras written the usual way.

    RNNAPPS_DATA=DIR python benchmarks/training.py [SIDE ...] [--epochs 3] [--seed 0]
    RNNAPPS_DATA=DIR python benchmarks/training.py search [--trials 10] [--seed 0]

Each side trains on the same rows (`sst2_slice.py`) in a process of its own, one after the other:

- `defaults`: the pipeline as it comes;
- `same_sizes`: the pipeline with the peer's vocabulary, embedding, layers and batch size;
- `without_engine`: the defaults, with the cell called at each step (`implementation="reference"`);
- `peer`: the stock Keras model of `sentiment.py`, padded to 50 tokens.

The seconds are those of an epoch's steps alone, without measuring the dev split: of the first
epoch, which compiles, and the median of the others. A token is a word between spaces, so that both
sides have the same. The memory is the peak resident of the process. What was traced and compiled
is what the run reports; of the peer, the traces of its training function.

`search` runs `tune` on every tenth of the rows and prints its table, in which the first trial has
the defaults; only when it is named, because it takes about as long as all the sides.

`DIR/sentiment` holds `sst2_train.tsv.gz`.
"""

import argparse
import dataclasses
import logging
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import keras
import numpy as np
import real_data
from sentiment import SCRIPT, peer_model, read_phrases
from sst2_slice import write_slice

from rnnapps import layers, training
from rnnapps.tasks.sentiment import Sentiment, SentimentConfig

OURS = {
    "defaults": {},
    "same_sizes": {
        "affixes": False,
        "vocabulary_size": 20_000,
        "embedding_size": 128,
        "units": 64,
        "num_layers": 2,
        "pooling": "last",
        "batch_size": 32,
        "embedding_dropout": 0.0,
        "dropout": 0.0,
    },
    "without_engine": {},
}
SIDES = [*OURS, "peer"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sides", nargs="*", metavar="SIDE", help=", ".join(SIDES))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=10, help="of the search")
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.rows:
        (side,) = flags.sides
        return print(measure(side, flags.rows, flags.epochs, flags.seed))
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, seed {flags.seed}, {flags.epochs} epochs\n"
    )
    data = real_data.folder("sentiment") / "sst2_train.tsv.gz"
    with tempfile.TemporaryDirectory() as folder:
        write_slice(data, folder, seed=0)
        if flags.sides == ["search"]:
            return search(Path(folder), flags.trials, flags.seed)
        print("| side | first epoch, s | epoch, s | sentences/s | tokens/s | MiB | compiled |")
        print("|---" * 7 + "|", flush=True)
        for side in flags.sides or SIDES:
            command = [sys.executable, __file__, side, f"--rows={folder}"]
            command += [f"--epochs={flags.epochs}", f"--seed={flags.seed}"]
            answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            print(answer.strip(), flush=True)


def measure(side: str, rows: Path, epochs: int, seed: int) -> str:
    """Trains one side in this process; returns its row of the table."""
    texts, labels = read_phrases(rows / "train.tsv")
    tokens = sum(len(text.split()) for text in texts.numpy())
    if side == "peer":
        seconds, compiled = train_peer(texts, labels, epochs, seed)
    else:
        if side == "without_engine":
            layers.LSTM._obstacle = lambda layer: "it is left out"
        seconds, compiled = train_ours(rows, OURS[side], epochs, seed)
    first, later = seconds[0], float(np.median(seconds[1:]))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"| {side} | {first:.1f} | {later:.1f} | {len(labels) / later:,.0f} "
        f"| {tokens / later:,.0f} | {memory:.0f} | {compiled} |"
    )


def train_ours(rows: Path, sizes: dict, epochs: int, seed: int) -> tuple[list[float], str]:
    """Returns the seconds of each epoch, and what the run says was compiled."""
    config = SentimentConfig(
        data=str(rows / "train.tsv"),
        dev_data=str(rows / "dev.tsv"),
        test_data=str(rows / "dev.tsv"),
        text_column="sentence",
        epochs=epochs,
        patience=epochs,
        seed=seed,
    )
    messages = Messages()
    logging.getLogger("rnnapps").addHandler(messages)
    logging.getLogger("rnnapps").setLevel(logging.INFO)
    with tempfile.TemporaryDirectory() as folder:
        learnt = training.learn(Sentiment(dataclasses.replace(config, **sizes)), f"{folder}/run")
    (compiled,) = [text for text in messages.texts if "traced" in text]
    return learnt.history["seconds"], compiled


def train_peer(texts, labels, epochs: int, seed: int) -> tuple[list[float], str]:
    """Returns the seconds of each epoch, and how often the training function was traced."""
    keras.utils.set_random_seed(seed)
    vectorise, model = peer_model(texts)
    step, traces = model.train_step, []

    def traced_step(data):
        traces.append(data)
        return step(data)

    model.train_step = traced_step
    seconds = []
    for _ in range(epochs):
        started = time.monotonic()
        model.fit(vectorise(texts), labels, batch_size=32, verbose=0)
        seconds.append(time.monotonic() - started)
    return seconds, f"traced {len(traces)} graphs"


def search(rows: Path, trials: int, seed: int) -> None:
    """Searches on a tenth of the rows."""
    header, *lines = (rows / "train.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    tenth = rows / "tenth.tsv"
    tenth.write_text(header + "".join(lines[::10]), encoding="utf-8")
    command = [sys.executable, SCRIPT, "tune", f"--data={tenth}", f"--dev_data={rows / 'dev.tsv'}"]
    command += [f"--test_data={rows / 'dev.tsv'}", "--text_column=sentence", f"--seed={seed}"]
    subprocess.run([*command, f"--trials={trials}", f"--out={rows / 'search'}"], check=True)


class Messages(logging.Handler):
    """Keeps what the package tells."""

    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


if __name__ == "__main__":
    main()
