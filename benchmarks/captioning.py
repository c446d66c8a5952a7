"""Captioning: BLEU and CIDEr on Flickr8k images, seconds of keeping features, images a second.

    RNNAPPS_DATA=DIR python benchmarks/captioning.py flickr8k [--seed 0] [--epochs N] [--out DIR]
    RNNAPPS_DATA=DIR python benchmarks/captioning.py speed --export DIR/VERSION
    python benchmarks/captioning.py sample [--seed 0]

`flickr8k` computes the features of a frozen network, EfficientNet-Lite0 with weights from ImageNet,
trains a decoder on them, once with attention and once with the image as one vector, chooses the
epoch on dev, and reports test by beam search and greedily, over five references an image. The
images are the first 3,900, 500 and 1,000 of the official splits (Hodosh et al. 2013), of 160
pixels. `speed` asks an export of it for the captions of test images, a batch at a time. `sample`
trains on the bundled sample.

`DIR/captioning` holds `Flickr8k.token.txt.gz`, `Flickr_8k.{train,dev,test}Images.txt`,
`flickr8k_160px_{train,dev,test}.zip` and `weights/efficientnet_lite0_imagenet.keras`.
"""

import argparse
import os
import platform
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import numpy as np
import real_data
import training_run

SCRIPT = Path(__file__).parents[1] / "pipelines" / "captioning.py"
ENCODER = "weights/efficientnet_lite0_imagenet.keras"
PARTS = ("train", "dev", "test")
FILES = (
    "Flickr8k.token.txt.gz",
    *(f"flickr8k_160px_{part}.zip" for part in PARTS),
    *(f"Flickr_8k.{part}Images.txt" for part in PARTS),
    ENCODER,
)
ONE_VECTOR = {"attention": "none"}
SHOWN = ("bleu1", "bleu2", "bleu3", "bleu4", "cider", "chrf", "distinct", "novel")
SPEED_IMAGES = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["flickr8k", "speed", "sample"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--out", type=Path, help="run folders, to be taken up where they stand")
    parser.add_argument("--export", type=Path, help="an exported version, for `speed`")
    flags = parser.parse_args()
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, seed {flags.seed}"
    )
    with tempfile.TemporaryDirectory() as folder:
        flags.out = flags.out or Path(folder)
        {"flickr8k": flickr8k, "speed": speed, "sample": sample}[flags.what](flags)


def flickr8k(flags: argparse.Namespace) -> None:
    """Prints the seconds that features take, and a table of scores on test."""
    from rnnapps import export
    from rnnapps.metrics import captioning
    from rnnapps.tasks.captioning import Captioning

    features = flags.out / "features"
    keep_features(features)
    print(f"| model | decoding | {' | '.join(SHOWN)} |\n|" + "---|" * (len(SHOWN) + 2))
    for name, settings in (("attention", {}), ("one vector", ONE_VECTOR)):
        metrics, version = train(name, settings, [*data_flags(), f"--features={features}"], flags)
        for decoded, changes in (("beam 5", {}), ("greedy", {"beam_width": 1})):
            found = metrics["test"]
            if changes:
                task, model = export.read(Captioning, version, **changes)
                found = task.evaluate(model, task.load()["test"]).metrics
            scores = " | ".join(f"{found[key]:.4g}" for key in SHOWN)
            print(f"| {name} | {decoded} | {scores} |", flush=True)
        print_speed(version)
    for name, signature in captioning.signatures(5).items():
        print(f"{name}: {signature}")


def keep_features(folder: Path) -> None:
    """Computes the features of all images, with nothing else."""
    from rnnapps.tasks.captioning import Captioning, CaptioningConfig

    given = dict(flag.lstrip("-").split("=", 1) for flag in data_flags())
    started = time.monotonic()
    task = Captioning(CaptioningConfig(**given, features=str(folder)))
    splits = task.load()
    task.adapt(splits["train"])
    images = 0
    for split in splits.values():
        task.encoded(split)
        images += len(split)
    print(f"{images:,} images read, and their features kept, in {time.monotonic() - started:.0f} s")


def train(name: str, settings: dict, data: list[str], flags) -> tuple[dict, Path]:
    """Trains, telling what it took; returns metrics and the export."""
    out = flags.out / name.replace(" ", "-")
    settings = settings | ({"epochs": flags.epochs} if flags.epochs else {})
    settings |= {"seed": flags.seed}
    run = training_run.train(SCRIPT, data, settings, out, Path(f"{out}-export"))
    told = f"{name}: {run}; dev CIDEr {run.metrics['dev']['cider']:.4f}"
    print(told, file=sys.stderr, flush=True)
    return run.metrics, run.version


def sample(flags: argparse.Namespace) -> None:
    """Prints what the bundled sample's test split gives."""
    metrics, version = train("sample", {}, [], flags)
    test = metrics["test"]
    print(
        f"BLEU-4 {test['bleu4']:.2f}, all attributes right in {100 * test['attributes']:.1f}% of "
        f"the captions, {metrics['seconds']:.0f} s of training"
    )


def speed(flags: argparse.Namespace) -> None:
    """Prints images a second of an export."""
    print_speed(flags.export)


def print_speed(version: Path) -> None:
    import tensorflow as tf

    with zipfile.ZipFile(real_data.folder("captioning") / "flickr8k_160px_test.zip") as archive:
        images = [archive.read(name) for name in sorted(archive.namelist())[:SPEED_IMAGES]]
    serve = tf.saved_model.load(version).signatures["serving_default"]
    for size in (1, 16):
        batches = [images[at : at + size] for at in range(0, len(images), size)]
        seconds = []
        serve(image=tf.constant(batches[0]))
        for batch in batches:
            started = time.monotonic()
            serve(image=tf.constant(batch))["caption"].numpy()
            seconds.append(time.monotonic() - started)
        print(
            f"export, batches of {size}: {len(images) / sum(seconds):.0f} images/s; a batch in "
            f"{1000 * np.median(seconds):.1f} ms (median), {1000 * max(seconds):.1f} at most"
        )


def data_flags() -> list[str]:
    """The files of Flickr8k and the frozen network, as flags."""
    folder = real_data.folder("captioning")
    zips = ",".join(f"{folder}/flickr8k_160px_{part}.zip" for part in PARTS)
    lists = [f"--{part}_images={folder}/Flickr_8k.{part}Images.txt" for part in PARTS]
    return [
        f"--data={folder}/Flickr8k.token.txt.gz",
        f"--images={zips}",
        *lists,
        f"--image_encoder={folder}/{ENCODER}",
    ]


if __name__ == "__main__":
    main()
