"""Taggers against stock Keras and simple counting: quality, seconds, and what serving costs.

    RNNAPPS_DATA=DIR python benchmarks/ner.py conll2003 [--seed 0] [--peer_epochs 6]
    RNNAPPS_DATA=DIR python benchmarks/ner.py pos [--seed 0]
    python benchmarks/ner.py crf

`conll2003` trains the default pipeline on the English CoNLL-2003 training file and reports entity
F1 on testb; testa chooses the epoch, and nothing else is chosen. The peer in the same run is the
usual Keras tagger: `Embedding`, two bidirectional LSTMs of 100 units, `TimeDistributed(Dense)`,
padded to 128 tokens; its epoch is chosen in the same way. `same sizes` is ours with its layers and
batch size, for the seconds. Then the export answers testb as raw text on one core. `peer` trains
the peer alone.

`pos` tags parts of speech, the second column of the same files; beside it stands the most frequent
tag of each word. `crf` needs no data: seconds of the CRF against the length of the sequences.

`DIR/ner` holds `conll2003.eng.train.gz`, `conll2003.eng.testa.gz` and `conll2003.eng.testb.gz`.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import real_data
import training_run

SCRIPT = Path(__file__).parents[1] / "pipelines" / "ner.py"
PEER_LENGTH = 128
PARTS_OF_SPEECH = {"tag_column": 1, "scheme": "none"}
SAME_SIZES = {
    "num_layers": 2,
    "units": 100,
    "embedding_size": 100,
    "character_filters": 0,
    "casing_size": 0,
    "use_crf": False,
    "batch_size": 32,
    "embedding_dropout": 0.0,
    "dropout": 0.0,
    "epochs": 3,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["conll2003", "peer", "pos", "crf"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peer_epochs", type=int, default=6, help="0 leaves the peer out")
    parser.add_argument("--export", type=Path, help="where the export stays (default: nowhere)")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.serve:
        return serve(flags.serve, read(files()["test"]))
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, seed {flags.seed}"
    )
    if flags.what == "crf":
        return crf()
    if flags.what == "peer":
        return print(json.dumps(stock_keras(flags.seed, flags.peer_epochs)))
    with tempfile.TemporaryDirectory() as folder:
        export = flags.export or Path(folder) / "export"
        (conll2003 if flags.what == "conll2003" else pos)(Path(folder), export, flags)


def conll2003(folder: Path, export: Path, flags: argparse.Namespace) -> None:
    """Prints the table of all sides, and what the export does in a second."""
    print("| side | F1 | precision | recall | parameters | seconds | epochs | sentences/s |")
    print("|---" * 8 + "|", flush=True)
    ours = pipeline("rnnapps", folder / "run", export, flags.seed, {})
    print(ours, flush=True)
    same = folder / "same", folder / "same_export"
    print(pipeline("same sizes", *same, flags.seed, SAME_SIZES))
    if flags.peer_epochs:
        started = time.monotonic()
        found = stock_keras(flags.seed, flags.peer_epochs)
        seconds = found["curve"]["seconds"]
        rates = [found["examples"]["train"] / taken for taken in seconds[1:] or seconds]
        print(
            row(
                "stock Keras",
                found["metrics"]["test"],
                found["parameters"],
                time.monotonic() - started,
                len(seconds),
                sum(rates) / len(rates),
            ),
            flush=True,
        )
    command = [sys.executable, __file__, "conll2003", f"--serve={export / '1'}"]
    # One core, before TensorFlow counts them.
    subprocess.run(command, check=True, preexec_fn=lambda: os.sched_setaffinity(0, {0}))


def pos(folder: Path, export: Path, flags: argparse.Namespace) -> None:
    """Prints the accuracy on testb of the pipeline and of the most frequent tag."""
    from rnnapps.metrics.entities import accuracy
    from rnnapps.models.majority_tagger import MajorityTagger

    train, test = (read(files()[part], tag_column=1) for part in ("train", "test"))
    baseline = MajorityTagger(train)
    found = accuracy([tags for _, tags in test], [baseline.tag(tokens) for tokens, _ in test])
    print(f"most frequent tag of each word: accuracy {100 * found:.2f}", flush=True)
    done = train_pipeline(folder / "run", export, flags.seed, PARTS_OF_SPEECH)
    print(
        f"rnnapps: accuracy {100 * done.metrics['test']['accuracy']:.2f}, {done.seconds:.0f} s, "
        f"{len(done.epochs)} epochs"
    )


def crf(rounds: int = 5) -> None:
    """Prints the median milliseconds of a batch of 32 sequences for each length."""
    import numpy as np
    import tensorflow as tf

    from rnnapps import layers

    print("| tags | steps | likelihood and gradient, ms | a step, µs | Viterbi, ms | a step, µs |")
    print("|---" * 6 + "|", flush=True)
    rng = np.random.default_rng(0)
    for num_tags in (9, 35):
        layer = layers.CRF(num_tags)
        layer.build((None, None, num_tags))
        specs = [tf.TensorSpec([32, None, num_tags]), tf.TensorSpec([32, None], tf.int32)]

        def likelihood(emissions, tags, layer=layer):
            with tf.GradientTape() as tape:
                tape.watch(emissions)
                loss = -tf.reduce_sum(layer.log_likelihood(emissions, tags))
            return loss, tape.gradient(loss, emissions)

        runs = [
            tf.function(likelihood, specs),
            tf.function(lambda emissions, _, layer=layer: layer.decode(emissions), specs),
        ]
        for time_steps in (10, 20, 40, 80, 160, 320, 640):
            emissions = tf.constant(rng.normal(size=(32, time_steps, num_tags)), tf.float32)
            tags = tf.constant(rng.integers(num_tags, size=(32, time_steps)), tf.int32)
            cells = []
            for run in runs:
                run(emissions, tags)
                seconds = []
                for _ in range(rounds):
                    started = time.monotonic()
                    run(emissions, tags)
                    seconds.append(time.monotonic() - started)
                median = float(np.median(seconds))
                cells += [f"{1e3 * median:.2f}", f"{1e6 * median / time_steps:.1f}"]
            print(f"| {num_tags} | {time_steps} | {' | '.join(cells)} |", flush=True)


def pipeline(side: str, run: Path, export: Path, seed: int, settings: dict) -> str:
    """Trains with the command line; returns a row of the table."""
    done = train_pipeline(run, export, seed, settings)
    metrics, epochs = done.metrics, done.epochs
    rates = [metrics["examples"]["train"] / float(epoch["seconds"]) for epoch in epochs[1:]]
    return row(
        side,
        metrics["test"],
        metrics["parameters"],
        done.seconds,
        len(epochs),
        sum(rates) / len(rates),
    )


def train_pipeline(run: Path, export: Path, seed: int, settings: dict) -> training_run.TrainingRun:
    """Trains on CoNLL-2003 with the command line."""
    return training_run.train(SCRIPT, data_flags(), {"seed": seed, **settings}, run, export)


def stock_keras(seed: int, epochs: int) -> dict[str, Any]:
    """Trains the peer and keeps the epoch that is best on testa; returns a log's parts."""
    import keras
    import numpy as np

    from rnnapps.metrics.entities import scores

    keras.utils.set_random_seed(seed)
    train, dev, test = (read(file) for file in files().values())
    words = sorted({token.lower() for tokens, _ in train for token in tokens})
    word_ids = {word: number for number, word in enumerate(words, 2)}
    names = sorted({tag for _, tags in train for tag in tags})
    tag_ids = {tag: number for number, tag in enumerate(names)}

    def padded(sentences):
        ids = np.zeros((len(sentences), PEER_LENGTH), "int32")
        targets = np.full((len(sentences), PEER_LENGTH), tag_ids["O"], "int32")
        for row, (tokens, tags) in enumerate(sentences):
            tokens, tags = tokens[:PEER_LENGTH], tags[:PEER_LENGTH]
            ids[row, : len(tokens)] = [word_ids.get(token.lower(), 1) for token in tokens]
            targets[row, : len(tags)] = [tag_ids[tag] for tag in tags]
        return ids, targets

    model = keras.Sequential(
        [
            keras.layers.Embedding(len(words) + 2, 100),
            keras.layers.Bidirectional(keras.layers.LSTM(100, return_sequences=True)),
            keras.layers.Bidirectional(keras.layers.LSTM(100, return_sequences=True)),
            keras.layers.TimeDistributed(keras.layers.Dense(len(names), activation="softmax")),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    inputs, targets = padded(train)
    kept = {part: padded(sentences)[0] for part, sentences in (("dev", dev), ("test", test))}

    def measure(part, sentences):
        ids = model.predict(kept[part], batch_size=64, verbose=0).argmax(-1)
        found = [
            [names[i] for i in row[: len(tags)]] + ["O"] * (len(tags) - PEER_LENGTH)
            for row, (_, tags) in zip(ids, sentences, strict=True)
        ]
        return scores([tags for _, tags in sentences], found)

    best, measured = {"f1": -1.0}, {}
    curve = {name: [] for name in ("epoch", "seconds", "cpu_seconds", "val_f1")}
    for epoch in range(epochs):
        started = time.monotonic()
        model.fit(inputs, targets, batch_size=32, verbose=0)
        curve["epoch"].append(epoch + 1)
        curve["seconds"].append(time.monotonic() - started)
        of_dev = measure("dev", dev)
        curve["val_f1"].append(of_dev["f1"])
        curve["cpu_seconds"].append(time.process_time())
        if of_dev["f1"] > best["f1"]:
            best, measured = of_dev, measure("test", test)
    return {
        "metrics": {"dev": best, "test": measured},
        "decodings": {},
        "examples": {"train": len(train)},
        "parameters": model.count_params(),
        "curve": curve,
    }


def serve(export: Path, sentences: list) -> None:
    """Answers raw sentences with TensorFlow alone; prints tokens a second and milliseconds."""
    sys.modules["keras"] = None
    import numpy as np
    import tensorflow as tf

    answer = tf.saved_model.load(export).signatures["serving_default"]
    texts = [" ".join(tokens) for tokens, _ in sentences]
    batches = [tf.constant(texts[start : start + 64]) for start in range(0, len(texts), 64)]
    num_tokens = sum(int(np.count_nonzero(answer(text=b)["tokens"].numpy())) for b in batches)
    started = time.monotonic()
    for batch in batches:
        answer(text=batch)
    rate = num_tokens / (time.monotonic() - started)
    milliseconds = []
    for text in texts[:: len(texts) // 200]:
        started = time.monotonic()
        answer(text=tf.constant([text]))
        milliseconds.append(1e3 * (time.monotonic() - started))
    print(
        f"serving on one core: {rate:,.0f} tokens/s in batches of 64; one sentence: "
        f"median {np.median(milliseconds):.1f} ms, slowest of {len(milliseconds)} "
        f"{max(milliseconds):.1f} ms"
    )


def files(corpus: str = "conll2003.eng") -> dict[str, str]:
    """The three files of CoNLL-2003, or of another shared task that names them in the same way."""
    data = real_data.folder("ner")
    names = {"train": "train", "dev": "testa", "test": "testb"}
    return {part: str(data / f"{corpus}.{name}.gz") for part, name in names.items()}


def data_flags(corpus: str = "conll2003.eng") -> list[str]:
    """The same files, as flags."""
    names = {"train": "data", "dev": "dev_data", "test": "test_data"}
    return [f"--{names[part]}={file}" for part, file in files(corpus).items()]


def wnut17_flags() -> list[str]:
    """WNUT17, as flags: its dev file is for the test, and a part of train becomes the dev split."""
    folder = real_data.folder("ner")
    return [f"--data={folder}/wnut17.train.conll.gz", f"--test_data={folder}/wnut17.dev.conll.gz"]


def read(file: str, tag_column: int = -1) -> list[tuple[list[str], list[str]]]:
    """Reads sentences as pairs of tokens and tags, in IOB2 where the tags have a scheme."""
    from rnnapps.data.formats.conll import read_conll

    rows = read_conll(file, tag_column=tag_column)
    return [(row["tokens"].split("\n"), row["tags"].split("\n")) for row in rows]


def row(
    side: str, measured: dict, parameters: int, seconds: float, epochs: int, rate: float
) -> str:
    """Writes one side's row of the table."""
    quality = " | ".join(f"{100 * measured[name]:.2f}" for name in ("f1", "precision", "recall"))
    return f"| {side} | {quality} | {parameters:,} | {seconds:.0f} | {epochs} | {rate:,.0f} |"


if __name__ == "__main__":
    main()
