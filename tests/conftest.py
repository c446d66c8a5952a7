"""What the tests share: a few generated reviews, and one small model trained on them."""

import contextlib
import csv
import gc
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

# A GPU is shared by the processes of the tests and those that they start.
os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")

# Most of the tests' time would go into compiling. XLA does with a graph what it always does, but
# makes code of it the quick way; the commands that are run `as_users_do` make it the usual way.
QUICKLY = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
os.environ.setdefault("XLA_FLAGS", QUICKLY)

# A graph is made of so many objects that the collector would do little but look through them.
gc.set_threshold(200_000, 20, 100)

# Where single tests take longest. They come first, so that none of them is left for the end, when
# the other process has nothing to do.
LONG = (
    "::test_the_bare_command_",
    "tests/test_",
    "tests/tasks/",
    "tests/pipelines/",
    "tests/experiments/",
    "tests/demo/",
    "tests/docs/",
)

SMALL = ["--units=8", "--embedding_size=8", "--epochs=2", "--batch_size=32"]


def pytest_addoption(parser):
    parser.addoption(
        "--screenshots", type=Path, help="a folder for pictures of the demo, as a visitor sees it"
    )


def pytest_collection_modifyitems(items):
    """Puts the long tests first."""

    def place(item):
        return next((n for n, part in enumerate(LONG) if part in item.nodeid), len(LONG))

    items.sort(key=place)


def as_users_do(folder: Path) -> dict[str, str]:
    """The environment of a command that is run as users run it, and finds no data prepared."""
    environment = os.environ | {"TFDS_DATA_DIR": str(folder)}
    if environment["XLA_FLAGS"] == QUICKLY:
        del environment["XLA_FLAGS"]
    return environment


# Runs a pipeline's script as it is, but with fewer epochs.
_SHORTER = """
import dataclasses, runpy, sys
from rnnapps.tasks.task import Task
begin, epochs = Task.__init__, int(sys.argv[1])
Task.__init__ = lambda self, config: begin(self, dataclasses.replace(config, epochs=epochs))
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def bare_command(task: str, epochs: int, folder: Path) -> str:
    """Runs a task's script without arguments in a folder, as a newcomer does; returns its answer.

    The best epoch on dev is kept: what a model knows after a few, it keeps in the others.
    """
    script = Path(__file__).parents[1] / "pipelines" / f"{task}.py"
    done = subprocess.run(
        [sys.executable, "-c", _SHORTER, str(epochs), script],
        capture_output=True,
        text=True,
        cwd=folder,
        env=as_users_do(folder / "tfds"),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(autouse=True)
def seeded():
    """Makes weights and dropout the same in every run of a test."""
    import keras  # not above, because the process that hands out the tests needs no TensorFlow

    keras.utils.set_random_seed(0)


@contextlib.contextmanager
def checking_here():
    """Compares exports in this process: that a clean one loads such models too, others show."""
    import tensorflow as tf

    from rnnapps import export

    def check(module, version, probe):
        signatures = tf.saved_model.load(version).signatures
        for name, inputs in probe.items():
            served = signatures[name](**inputs)
            for key, value in module.functions[name](**inputs).items():
                export._compare(f"{name}: {key}", value.numpy(), served[key].numpy())

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(export, "_check", check)
        yield


@pytest.fixture
def checked_here():
    """Compares a test's exports in this process."""
    with checking_here():
        yield


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
