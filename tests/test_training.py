"""Training that can be relied on: taken up after any stop, stopped where it fails."""

import csv
import dataclasses
import itertools
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from rnnapps import checkpoints, training
from rnnapps.data.datasets.sample_reviews import grammar
from rnnapps.data.sources import from_lists
from rnnapps.errors import UserError
from rnnapps.learner import Learner
from rnnapps.tasks.sentiment import Sentiment, SentimentConfig
from rnnapps.tasks.task import Evaluation

ROOT = Path(__file__).parents[1]
CONFIG = SentimentConfig(
    cell="elman",
    units=4,
    bidirectional=False,
    embedding_size=4,
    max_length=32,
    epochs=3,
    batch_size=16,
    recurrent_dropout=0.2,
    patience=1,
    checkpoint_steps=3,
    average_checkpoints=2,
    learning_rate=0.01,
)


def small_task(**changes) -> Sentiment:
    return Sentiment(dataclasses.replace(CONFIG, **changes))


def small_splits() -> dict[str, tf.data.Dataset]:
    reviews = list(itertools.islice(grammar.reviews(), 200))
    lists = {"text": [r.text for r in reviews], "label": [r.label for r in reviews]}
    return from_lists(lists, key="text")


def history_of(run: training.Run) -> list[dict[str, str]]:
    with run.history.open() as file:
        rows = list(csv.DictReader(file))
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def require_same_runs(one: training.Run, other: training.Run) -> None:
    """Everything but the times is equal, bit for bit."""
    kept, state = checkpoints.read(one.checkpoint)
    kept_too, state_too = checkpoints.read(other.checkpoint)
    assert all(np.array_equal(a, b) for a, b in zip(state, state_too, strict=True))
    for progress in (kept, kept_too):
        assert progress.pop("seconds") > 0 and len(progress["history"].pop("seconds")) > 0
    assert kept == kept_too and history_of(one) == history_of(other)
    weights = [training.restore(Sentiment, run)[1].get_weights() for run in (one, other)]
    assert all((a == b).all() for a, b in zip(*weights, strict=True))


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The run that the others are to equal."""
    folder = tmp_path_factory.mktemp("uninterrupted") / "run"
    training.train(small_task(), folder, small_splits())
    return training.Run(folder)


KILLED = """
import os, signal, sys
import numpy as np
from rnnapps import checkpoints, training
from tests.test_training import small_splits, small_task

PLACES = {
    "step": (training.Learner, "step"),
    "checkpoint": (np, "savez"),
    "best": (training._Fitting, "_keep_weights"),
}

def train_and_be_killed(place, count):
    owner, name = PLACES[place]
    original, calls = getattr(owner, name), 0

    def killed(first, *args, **kwargs):
        nonlocal calls
        calls += 1
        if calls < count:
            return original(first, *args, **kwargs)
        if place == "checkpoint":  # half of it is on disk
            original(first, *args, **kwargs)
            os.truncate(first, os.path.getsize(first) // 2)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(owner, name, killed)
    training.learn(small_task(), sys.argv[1], small_splits())

for moment in (("step", 10), ("best", 1), ("checkpoint", 4)):
    child = os.fork()  # TensorFlow has been imported, but does not run yet
    if not child:
        train_and_be_killed(*moment)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    progress, _ = checkpoints.read(training.Run(sys.argv[1]).checkpoint)
    print(progress["epoch"], progress["step"])
"""


def test_a_run_killed_three_times_ends_as_if_it_had_not_been(uninterrupted, tmp_path):
    """Before the last, smaller batch of an epoch, before the best weights, in a checkpoint."""
    out = tmp_path / "run"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", KILLED, out]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["0 9", "1 0", "1 6"], done.stderr
    assert (out / "checkpoints" / "writing-last.npz").exists()
    training.train(small_task(), out, small_splits())
    require_same_runs(training.Run(out), uninterrupted)
    assert not (out / "checkpoints" / "writing-last.npz").exists()


@pytest.mark.parametrize(
    ("averaged", "scores", "epochs", "is_kept"),
    [
        ("best", [0.6, 0.5, 0.7, 0.8], [0, 2], True),
        ("last", [0.6, 0.5, 0.7, 0.8], [1, 2], True),
        ("last", [0.6, 0.5, 0.7, 0.6], [1, 2], False),
    ],
)
def test_the_mean_of_epochs_is_kept_where_it_is_better(
    averaged, scores, epochs, is_kept, tmp_path, monkeypatch
):
    evaluations = iter(scores)

    def evaluate(self, model, examples):
        accuracy = next(evaluations)
        return Evaluation({"accuracy": accuracy, "log_loss": 1 - accuracy}, "")

    monkeypatch.setattr(Sentiment, "evaluate", evaluate)
    task = small_task(averaged=averaged, patience=3)
    learnt = training.learn(task, tmp_path / "run", small_splits())
    folder = training.Run(tmp_path / "run").epochs
    assert sorted(int(file.stem) for file in folder.iterdir()) == epochs
    kept = [checkpoints.read(folder / f"{epoch}.npz")[1] for epoch in epochs]
    assert any((one != other).any() for one, other in zip(*kept, strict=True))
    if not is_kept:
        kept = [kept[-1]] * 2  # the best epoch alone
    for weight, *values in zip(learnt.model.get_weights(), *kept, strict=True):
        np.testing.assert_allclose(weight, np.mean(values, axis=0), rtol=1e-6, atol=1e-8)
    restored = training._restored(task, training.Run(tmp_path / "run"))
    for one, other in zip(restored.get_weights(), learnt.model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_control_c_keeps_the_checkpoint_and_says_how_to_go_on(uninterrupted, tmp_path, monkeypatch):
    step, calls = Learner.step, itertools.count(1)

    def stopped(self, batch):
        values = step(self, batch)
        if next(calls) == 12:
            raise KeyboardInterrupt  # as Ctrl-C does
        return values

    out = tmp_path / "run"
    monkeypatch.setattr(Learner, "step", stopped)
    told = rf"stopped; `train --config {out}/config.yaml --out {out}` goes on"
    with pytest.raises(KeyboardInterrupt, match=told):
        training.train(small_task(), out, small_splits())
    training.train(small_task(), out, small_splits())
    require_same_runs(training.Run(out), uninterrupted)


def test_what_is_missing_is_made_without_training_again(uninterrupted, tmp_path, monkeypatch):
    def refuse(*args):
        raise AssertionError("trained again")

    monkeypatch.setattr(Learner, "step", refuse)
    before, metrics = uninterrupted.checkpoint.read_bytes(), uninterrupted.read_metrics()
    _, again = training.train(small_task(), uninterrupted.path, small_splits())
    assert again == metrics
    uninterrupted.metrics.unlink()
    _, again = training.train(small_task(), uninterrupted.path, small_splits())
    assert again["test"] == metrics["test"] and uninterrupted.metrics.exists()
    assert uninterrupted.checkpoint.read_bytes() == before


def test_other_settings_or_data_are_refused_by_name(uninterrupted):
    out, splits = uninterrupted.path, small_splits()
    told = r"was begun with other settings: seed 0 then, 3 now; cell elman then, gru now\n"
    with pytest.raises(UserError, match=told):
        training.train(small_task(seed=3, cell="gru"), out, splits)
    with pytest.raises(UserError, match="batch_size 16 then, 64 now"):
        training.learn(small_task(batch_size="auto"), out, splits)
    settled = training.learn(small_task(patience=1), out, splits)
    losses = [str(value) for value in settled.history["loss"]]
    assert losses == [row["loss"] for row in history_of(uninterrupted)]
    shorter = {**splits, "train": splits["train"].take(100)}
    with pytest.raises(UserError, match="was begun on other data"):
        training.learn(small_task(), out, shorter)


def test_checkpoints_by_the_clock(tmp_path, monkeypatch):
    written = []
    original = checkpoints.write

    def noted(file, progress, arrays):
        written.append((progress["epoch"], progress["step"]))
        original(file, progress, arrays)

    monkeypatch.setattr(checkpoints, "write", noted)
    hurried = small_task(
        epochs=1, checkpoint_steps=0, checkpoint_minutes=1e-9, average_checkpoints=1
    )
    training.learn(hurried, tmp_path / "hurried", small_splits())
    steps = len(written) - 1
    assert written == [*((0, step + 1) for step in range(steps)), (1, 0)] and steps == 10


class Spoilt(Sentiment):
    """Reviews with a marked text have a loss that is not a number."""

    marked = b""

    def encode(self, example):
        ids, label = super().encode(example)
        return ids, tf.where(example["text"] == self.marked, tf.cast(7, label.dtype), label)

    def objective(self):
        objective = super().objective()

        def loss(model, targets, outputs):
            losses = objective.loss(model, tf.minimum(targets, 1), outputs)
            return losses * tf.where(targets == 7, np.nan, 1)

        return dataclasses.replace(objective, loss=loss)


@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_a_loss_that_is_not_finite_is_named_and_spoils_nothing(tmp_path, precision):
    splits, out = small_splits(), tmp_path / "run"
    place = 57
    Spoilt.marked = list(splits["train"])[place]["text"]
    task = Spoilt(dataclasses.replace(CONFIG, epochs=1, precision=precision, checkpoint_steps=1))
    task.adapt(splits["train"])
    batches = enumerate(task.batches(task.encoded(splits["train"]), epoch=0), 1)
    ((step, size),) = [(n, len(labels)) for n, (_, labels, _) in batches if 7 in labels]
    with pytest.raises(UserError) as told:
        training.learn(Spoilt(task.config), out, splits)
    what, _, places = str(told.value).partition("\n")
    assert what.startswith(f"the loss of step {step} in epoch 1 is nan (gradient norm nan): lower")
    places = [int(number) for number in places.rpartition("from 0: ")[2].split(", ")]
    assert place in places and len(set(places)) == size
    progress, state = checkpoints.read(training.Run(out).checkpoint)
    assert progress["step"] == step - 1 > 0
    assert all(np.isfinite(array).all() for array in state)
    Spoilt.marked = b""
    training.learn(Spoilt(task.config), out, splits)
    assert len(history_of(training.Run(out))) == 1


def test_a_gradient_that_is_not_finite_stops_before_it_is_kept(tmp_path):
    class Steep(Sentiment):
        def objective(self):
            objective = super().objective()

            def loss(model, targets, outputs):  # finite at its end, but not its slope
                return tf.sqrt(tf.stop_gradient(outputs[:, 0]) - outputs[:, 0]) + 1

            return dataclasses.replace(objective, loss=loss)

    with pytest.raises(UserError, match="the gradient of step 1 in epoch 1 is (nan|inf)"):
        training.learn(Steep(CONFIG), tmp_path / "run", small_splits())
    assert not training.Run(tmp_path / "run").checkpoint.exists()


def test_what_is_logged(uninterrupted):
    rows = history_of(uninterrupted)
    assert [row["epoch"] for row in rows] == [str(n) for n in range(len(rows))]
    assert all(0 < float(row["gradient_norm"]) < 100 for row in rows)
    written = {
        part: {
            value.tag
            for file in (uninterrupted.tensorboard / part).iterdir()
            for event in tf.compat.v1.train.summary_iterator(str(file))
            for value in event.summary.value
        }
        for part in ("train", "dev")
    }
    assert {"loss", "accuracy", "gradient_norm", "learning_rate"} <= written["train"]
    assert {"log_loss", "accuracy"} <= written["dev"]


def test_half_precision_stays_in_training(tmp_path, capsys):
    task = small_task(precision="mixed_float16", epochs=1)
    learnt = training.learn(task, tmp_path / "run", small_splits(), progress=True)
    shown = capsys.readouterr().err
    assert "10/10" in shown and "\nepoch 1: accuracy 0." in shown and "val_log_loss" in shown
    assert keras.config.dtype_policy().name == "float32"
    assert learnt.model.encoder.compute_dtype == "float32"
    assert np.isfinite(learnt.history["loss"]).all() and learnt.history["gradient_norm"][0] > 0
    _, state = checkpoints.read(training.Run(tmp_path / "run").checkpoint)
    again = Learner(task, tf.distribute.get_strategy())
    again.restore(state)
    again.give_averages(other := task.build())
    for one, same in zip(other.get_weights(), learnt.model.get_weights(), strict=True):
        assert (one == same).all()  # the only epoch is the best
