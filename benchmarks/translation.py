"""Translation: BLEU on Multi30k, tokens a second in training, sentences a second in decoding.

    RNNAPPS_DATA=DIR python benchmarks/translation.py multi30k [--seed 0] [--epochs N]
    RNNAPPS_DATA=DIR python benchmarks/translation.py speed [--seed 0]
    RNNAPPS_DATA=DIR python benchmarks/translation.py decoding --export DIR/VERSION
    python benchmarks/translation.py sample [--seed 0]

`multi30k` trains English to German with the default settings, once with attention and once with a
fixed vector, chooses the epoch on val, and reports test_2016_flickr by beam search and greedily,
with sacreBLEU's signatures; `--figure FILE` draws BLEU by the length of the source. `speed` trains
some steps with the sizes at which OpenNMT-tf 2.32 was measured on a machine of this size (words
seen twice, embeddings of 256, a bidirectional LSTM of 256, a decoder of 256 with attention, batches
of 64): 6,400 source and target tokens a second, and 24 s, start included, for 1,000 sentences with
a beam of 5. Its decoder feeds its input, which ours does not with the default settings; with
`--export`, the sentences are translated with that model, otherwise with one that was trained for a
few hundred steps. `decoding` translates test sentences with an export, and with a Python loop over
the same model's step, and says how many answers are the same. `sample` trains on the bundled
sample, with and without attention and reversal.

`DIR/translation` holds `multi30k.{train,val,test_2016_flickr}.{en,de}.gz`.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import real_data
import training_run

SCRIPT = Path(__file__).parents[1] / "pipelines" / "translation.py"
PEER = {
    "level": "word",
    "min_count": 2,
    "vocabulary_size": 50_000,
    "embedding_size": 256,
    "units": 256,
    "batch_size": 64,
    "tied": False,
}
PEER_TOKENS_A_SECOND, PEER_DECODING_SECONDS = 6_400, 24
SPEED_STEPS = 100
TATOEBA = {side: f"tatoeba_eng-ita.v2021-08-07.{side}.gz" for side in ("eng", "ita")}
FIXED_VECTOR = {"attention": "none"}
REVERSED = {"attention": "none", "bidirectional": "false", "reverse_source": "true"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["multi30k", "speed", "decoding", "sample"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--out", type=Path, help="run folders, to be taken up where they stand")
    parser.add_argument("--export", type=Path, help="an exported version, for `decoding`")
    parser.add_argument("--figure", type=Path, help="where the picture goes (default: nowhere)")
    flags = parser.parse_args()
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, seed {flags.seed}"
    )
    with tempfile.TemporaryDirectory() as folder:
        flags.out = flags.out or Path(folder)
        {"multi30k": multi30k, "speed": speed, "decoding": decoding, "sample": sample}[flags.what](
            flags
        )


def multi30k(flags: argparse.Namespace) -> None:
    """Prints a table of scores on test, and the signatures."""
    from rnnapps.figures import bleu_by_length
    from rnnapps.metrics import translation

    print("| model | decoding | BLEU | BLEU, lower case | chrF | perplexity |\n|" + "---|" * 6)
    groups = {}
    for name, settings in (("attention", {}), ("fixed vector", FIXED_VECTOR)):
        metrics, version = train(name, settings, data_flags(), flags)
        for decoded, changes in (("beam 5", {}), ("greedy", {"beam_width": 1})):
            evaluation = metrics["test"], None
            if changes or flags.figure:
                evaluation = evaluate(version, changes)
            found, by_length = evaluation
            groups.setdefault(name, by_length)
            values = (found[key] for key in ("bleu", "bleu_lc", "chrf", "perplexity"))
            scores = " | ".join(f"{value:.2f}" for value in values)
            print(f"| {name} | {decoded} | {scores} |", flush=True)
    for name, signature in translation.signatures().items():
        print(f"{name}: {signature}")
    if flags.figure:
        bleu_by_length.bleu_by_length(groups).savefig(flags.figure, dpi=100)


def sample(flags: argparse.Namespace) -> None:
    """Prints BLEU on the bundled sample's test split."""
    print("| model | BLEU on test | seconds |\n|---|---|---|")
    for name, settings in (
        ("attention", {}),
        ("fixed vector", FIXED_VECTOR),
        ("fixed vector, source reversed", REVERSED),
    ):
        metrics, _ = train(name, settings, [], flags)
        print(f"| {name} | {metrics['test']['bleu']:.2f} | {metrics['seconds']:.0f} |", flush=True)


def evaluate(version: Path, changes: dict) -> tuple[dict, dict]:
    """Measures an export on test with other settings of decoding."""
    from rnnapps import export
    from rnnapps.tasks.translation import Translation

    task, model = export.read(Translation, version, **changes)
    evaluation = task.evaluate(model, task.load()["test"])
    return evaluation.metrics, evaluation.outcomes


def train(name: str, settings: dict, data: list[str], flags) -> tuple[dict, Path]:
    """Trains, telling what it took; returns metrics and the export."""
    out = flags.out / name.replace(", ", "-").replace(" ", "-")
    settings = settings | ({"epochs": flags.epochs} if flags.epochs else {})
    settings |= {"seed": flags.seed}
    run = training_run.train(SCRIPT, data, settings, out, Path(f"{out}-export"))
    told = f"{name}: {run}; dev BLEU {run.metrics['dev']['bleu']:.2f}"
    print(told, file=sys.stderr, flush=True)
    return run.metrics, run.version


def speed(flags: argparse.Namespace) -> None:
    """Prints tokens a second of training, and the seconds of decoding the test sentences."""
    import tensorflow as tf

    from rnnapps import export
    from rnnapps.learner import Learner
    from rnnapps.tasks.translation import Translation, TranslationConfig

    names = dict(flag.lstrip("-").split("=", 1) for flag in data_flags())
    task = Translation(TranslationConfig(seed=flags.seed, **names, **PEER))
    splits = task.load()
    task.adapt(splits["train"])
    encoded = task.encoded(splits["train"], training=True)
    batches = task.batches(encoded, epoch=0).take(SPEED_STEPS).cache()
    tokens = sum(
        int(tf.math.count_nonzero(inputs["source"][:, 1:]) + tf.math.count_nonzero(following))
        for inputs, following, _ in batches  # a source without its end
    )
    learner, rates = Learner(task, tf.distribute.get_strategy()), []
    for run in range(4):
        started = time.monotonic()
        list(map(float, (values[0] for values in learner.steps(batches))))
        if run:  # the first compiles
            rates.append(tokens / (time.monotonic() - started))
    rate = float(np.median(rates))
    print(
        f"training: {rate:,.0f} tokens/s (of three runs {min(rates):,.0f} to {max(rates):,.0f}), "
        f"{rate / PEER_TOKENS_A_SECOND:.2f} times OpenNMT-tf; {len(task.source):,} and "
        f"{len(task.target):,} words"
    )
    with tempfile.TemporaryDirectory() as folder:
        metrics = {"test": {}, "examples": {}, "parameters": 0, "seconds": 0}
        version = flags.export or export.write(task, learner.model, metrics, folder)
        file = Path(folder) / "test.en"
        texts = [example["source"].decode() for example in splits["test"].as_numpy_iterator()]
        file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        command = [sys.executable, SCRIPT, "predict", f"--model={version}", f"--input={file}"]
        started = time.monotonic()
        subprocess.run([*command, "--beam=5"], check=True, stdout=subprocess.DEVNULL)
        seconds = time.monotonic() - started
    print(
        f"decoding: {seconds:.1f} s for {len(texts):,} sentences with beam 5, start included; "
        f"OpenNMT-tf {PEER_DECODING_SECONDS} s"
    )


def decoding(flags: argparse.Namespace) -> None:
    """Prints sentences a second of an export, and of a Python loop over the model's step."""
    import tensorflow as tf

    from rnnapps import export
    from rnnapps.tasks.translation import Translation

    task, model = export.read(Translation, flags.export)
    texts = [example["source"] for example in task.load()["test"].as_numpy_iterator()]
    decode = tf.saved_model.load(flags.export).signatures["decode"]
    print("| beam | batch | export, sentences/s | Python loop | ratio | same |\n|" + "---|" * 6)
    for beam in (1, 5):
        loop = python_loop(task, model, beam)
        for size in (1, 16, 64):
            batches = [texts[at : at + size] for at in range(0, min(32 * size, 512), size)]
            options = {"beam": tf.constant(beam), "nbest": tf.constant(1)}

            def served(batch, options=options):
                return decode(text=tf.constant(batch), **options)["translation"][:, 0].numpy()

            written, rates = [], []
            for translate in (served, loop):
                translate(batches[0])
                started = time.monotonic()
                written.append([text for batch in batches for text in translate(batch)])
                rates.append(sum(map(len, batches)) / (time.monotonic() - started))
            (ours, peer), same = rates, np.mean([a == b for a, b in zip(*written, strict=True)])
            print(
                f"| {beam} | {size} | {ours:.1f} | {peer:.1f} | {ours / peer:.2f} | {same:.3f} |",
                flush=True,
            )


def python_loop(task, model, beam: int):
    """Makes the peer: tokenising and each step are calls of traced functions, and NumPy chooses."""
    import tensorflow as tf

    config, end = task.config, 2
    limit, alpha = config.max_length, config.length_alpha

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def encode(text):
        source = task._source_ids(text, limit).to_tensor()
        return model.encode(source, training=False), tf.math.count_nonzero(source, 1)

    texts_of = tf.function(
        task.target.texts, input_signature=[tf.TensorSpec([None, None], tf.int32)]
    )

    @tf.function(reduce_retracing=True)
    def step(tokens, states, memory):
        logits, _, states = model.decoder.step(tokens, states, memory)
        return tf.nn.log_softmax(logits), states

    def translate(batch):
        (memory, states), read = encode(tf.constant(batch))
        longest = np.minimum(np.ceil(config.max_growth * read.numpy()).astype(int) + 10, limit)
        rows = len(batch)
        states = [tf.repeat(state, beam, axis=0) for state in states]
        scores = np.full((rows, beam), -np.inf)
        scores[:, 0] = 0
        written = np.full((rows, beam, 1), end)
        found = [[] for _ in range(rows)]
        for length in range(1, int(longest.max()) + 1):
            tokens = tf.constant(written[:, :, -1].reshape(-1), tf.int32)
            logp, states = step(tokens, states, memory)
            logp = logp.numpy().reshape(rows, beam, -1)
            logp[:, :, :2] = -np.inf
            total = (scores[:, :, None] + logp).reshape(rows, -1)
            best = np.argpartition(-total, 2 * beam, axis=1)[:, : 2 * beam]
            best = np.take_along_axis(
                best, np.argsort(-np.take_along_axis(total, best, 1), axis=1), 1
            )
            parents, chosen = np.divmod(best, logp.shape[2])
            kept = np.zeros((rows, beam), int)
            for row in range(rows):
                ended = chosen[row] == end
                for place in np.flatnonzero(ended[:beam]):
                    text = written[row, parents[row, place], 1:]
                    penalty = ((5 + length) / 6) ** alpha
                    found[row].append((total[row, best[row, place]] / penalty, text))
                kept[row] = np.flatnonzero(~ended)[:beam]
            parents, chosen, best = (
                np.take_along_axis(values, kept, 1) for values in (parents, chosen, best)
            )
            scores = np.take_along_axis(total, best, 1)
            written = np.take_along_axis(written, parents[:, :, None], 1)
            written = np.concatenate([written, chosen[:, :, None]], axis=2)
            moved = (parents + beam * np.arange(rows)[:, None]).reshape(-1)
            states = [tf.gather(state, moved) for state in states]
            bound = scores[:, 0] / ((5 + longest) / 6) ** alpha
            if all(
                length >= longest[row]
                or (found[row] and max(score for score, _ in found[row]) >= bound[row])
                for row in range(rows)
            ):
                break
        best = [max(of_row, key=lambda pair: pair[0])[1] if of_row else [] for of_row in found]
        padded = np.zeros((rows, max(map(len, best)) or 1), np.int32)
        for row, text in enumerate(best):
            padded[row, : len(text)] = text
        return texts_of(tf.constant(padded)).numpy()

    return translate


def data_flags(source: str = "en", target: str = "de") -> list[str]:
    """The files of Multi30k in two of its languages, as flags."""
    folder = real_data.folder("translation")
    return [
        f"--{split}=" + ",".join(f"{folder}/multi30k.{name}.{side}.gz" for side in (source, target))
        for split, name in (
            ("data", "train"),
            ("dev_data", "val"),
            ("test_data", "test_2016_flickr"),
        )
    ]


def tatoeba_flags() -> list[str]:
    """The two files of Tatoeba, as flags; the splits are drawn by the English sentence."""
    folder = real_data.folder("translation")
    return [f"--data={','.join(f'{folder}/{name}' for name in TATOEBA.values())}"]


if __name__ == "__main__":
    main()
