"""What the tests share: a few generated reviews, and one small model trained on them."""

import csv
import itertools
import os
from pathlib import Path

import pytest

# A GPU is shared by the processes of the tests and those that they start.
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")

SMALL = ["--units=8", "--embedding_size=8", "--epochs=2", "--batch_size=32"]


@pytest.fixture(autouse=True)
def seeded():
    """Makes weights and dropout the same in every run of a test."""
    import keras  # not above, because the process that hands out the tests needs no TensorFlow

    keras.utils.set_random_seed(0)


@pytest.fixture
def checked_here(monkeypatch):
    """Compares exports in this process: that a clean one loads such models too, others show."""
    import tensorflow as tf

    from rnnapps import export

    def check(module, version, probe):
        signatures = tf.saved_model.load(version).signatures
        for name, inputs in probe.items():
            served = signatures[name](**inputs)
            for key, value in module.functions[name](**inputs).items():
                export._compare(f"{name}: {key}", value.numpy(), served[key].numpy())

    monkeypatch.setattr(export, "_check", check)


@pytest.fixture(scope="session")
def reviews(tmp_path_factory) -> Path:
    """A CSV file of 400 generated reviews with the columns text and label."""
    from rnnapps.data.datasets.sample_reviews import grammar

    file = tmp_path_factory.mktemp("reviews") / "reviews.csv"
    with file.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["text", "label"])
        for review in itertools.islice(grammar.reviews(), 400):
            writer.writerow([review.text, review.label])
    return file


@pytest.fixture(scope="session")
def trained(reviews, tmp_path_factory) -> tuple[Path, Path]:
    """A run folder and the version exported from it, made by the command line."""
    # Not above, because the tests of the layers need nothing that a task does.
    from rnnapps import cli
    from rnnapps.tasks.sentiment import Sentiment

    folder = tmp_path_factory.mktemp("trained")
    argv = ["train", f"--data={reviews}", f"--out={folder}/run", f"--export={folder}/versions"]
    notice = "--data_notice=Four hundred sentences, by nobody; CC0."
    assert cli.main(Sentiment, argv=[*argv, *SMALL, notice]) == 0
    return folder / "run", folder / "versions" / "1"
