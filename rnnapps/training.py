"""Training any task: from raw splits to a measured model in a run folder."""

import contextlib
import csv
import dataclasses
import hashlib
import json
import logging
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tqdm

from rnnapps import checkpoints, devices, workers
from rnnapps.errors import UserError
from rnnapps.figures.curves import curves
from rnnapps.folders import reading, replacing, require_writable, write_text
from rnnapps.learner import Learner, precision
from rnnapps.progress import Progress
from rnnapps.tasks.config import read_config, write_config
from rnnapps.tasks.task import Evaluation, Splits, Task

log = logging.getLogger("rnnapps")

# Steps between two looks at what they gave, for which the next step has to wait.
_STEPS_UNSEEN = 20


class Run:
    """The folder of one training run.

    Args:
        path: the folder; it need not exist yet.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.config = self.path / "config.yaml"
        self.state = self.path / "state"
        self.history = self.path / "history.csv"
        self.checkpoint = self.path / "checkpoints" / "last.npz"
        self.best_weights = self.path / "checkpoints" / "best.weights.h5"
        self.epochs = self.path / "checkpoints" / "epochs"
        self.tensorboard = self.path / "tensorboard"
        self.figures = self.path / "figures"
        self.metrics = self.path / "metrics.json"
        self._exported = self.path / "exported"

    @property
    def export(self) -> Path | None:
        """The export that finished the run, or None where there is none in its place."""
        if not self._exported.exists():
            return None
        export = Path(self._exported.read_text(encoding="utf-8").strip())
        return export if export.exists() else None

    def require_startable(self, config: Any) -> None:
        """Raises UserError where a run with these settings could not be started or taken up here.

        What is `auto` passes; `require_same` compares it when the task has settled it.
        """
        require_writable(self.path)
        if self.config.exists():
            self._require_same_settings(config, ignore="auto")
        elif self.path.exists() and any(self.path.iterdir()):
            raise UserError(f"{self.path} is not empty: give another folder, or remove it")

    def require_same(self, task: Task) -> None:
        """Raises UserError where the run was begun with another configuration or other data."""
        if not self.config.exists():
            return
        self._require_same_settings(task.config)
        for name, content in task.state().items():
            if (self.state / name).exists() and (self.state / name).read_bytes() != content:
                raise UserError(
                    f"{self.path} was begun on other data: what was learnt from it for {name} "
                    "differs. Give another --out, or remove the folder"
                )

    def differing(self, config: Any, ignore: str | None = None) -> dict[str, str]:
        """Tells by name how settings, but those that are `ignore`, differ from the run's."""
        kept = read_config(type(config), self.config)
        return {
            field.name: f"{field.name} {getattr(kept, field.name)} then, "
            f"{getattr(config, field.name)} now"
            for field in dataclasses.fields(config)
            if getattr(config, field.name) not in (ignore, getattr(kept, field.name))
        }

    def start(self, task: Task) -> None:
        """Makes the folder and writes what the adapted task is made of."""
        for folder in (self.checkpoint.parent, self.state, self.figures):
            folder.mkdir(parents=True, exist_ok=True)
        with replacing(self.config) as beside:
            write_config(task.config, beside)
        for name, content in task.state().items():
            with replacing(self.state / name) as beside:
                beside.write_bytes(content)

    @contextlib.contextmanager
    def stoppable(self) -> Iterator[None]:
        """Tells, where Ctrl-C stops what happens in this context, how to go on with it."""
        try:
            yield
        except KeyboardInterrupt:
            again = f"`train --config {self.config} --out {self.path}`"
            raise KeyboardInterrupt(f"stopped; {again} goes on from the last checkpoint") from None

    def finish(self, export: Path) -> None:
        """Notes the export of the run's model."""
        write_text(self._exported, f"{export.resolve()}\n")

    def read_metrics(self) -> dict[str, Any]:
        """Reads `metrics.json`."""
        with reading(self.metrics):
            return json.loads(self.metrics.read_text(encoding="utf-8"))

    def _require_same_settings(self, config: Any, ignore: str | None = None) -> None:
        if differing := self.differing(config, ignore):
            raise UserError(
                f"{self.path} was begun with other settings: {'; '.join(differing.values())}\n"
                f"Give another --out, or go on with `train --config {self.config}`"
            )


@dataclasses.dataclass(frozen=True)
class Learnt:
    """What a fitted task is.

    Args:
        model: the model in float32, with the weights of the best epoch on the dev split.
        splits: the raw examples by split.
        history: the values of each epoch by name; those of the dev split under `val_<name>`.
        seconds: the time that it took, in all processes that worked on the run.
    """

    model: keras.Model
    splits: Splits
    history: dict[str, list[float]]
    seconds: float


def train(
    task: Task, out: str | Path, splits: Splits | None = None, progress: bool = False
) -> tuple[keras.Model, dict[str, Any]]:
    """Trains a task from raw examples and measures the best model on every split.

    A run that was stopped is taken up where its last checkpoint left it; what is there already is
    not made again.

    Args:
        task: a task with its configuration; it is adapted to the training split here.
        out: the run folder to write.
        splits: raw examples by split; by default those that the configuration names.
        progress: whether to show a progress bar.

    Returns:
        The model with the weights of the best epoch on the dev split, and what `metrics.json`
        holds.

    Raises:
        UserError: what is wrong with the data, the configuration or the folder, or a loss that is
            not a number any more.
    """
    run = Run(out)
    if run.metrics.exists():
        _name_data(task, splits)
        run.require_startable(task.config)
        return _restored(task, run), run.read_metrics()
    learnt = learn(task, out, splits, progress)
    started = time.monotonic()
    with run.stoppable(), devices.on_first(task.config.devices):
        evaluations = {
            name: task.evaluate(learnt.model, task.measured(name, examples))
            for name, examples in learnt.splits.items()
        }
        _draw(run, task, learnt, evaluations)
        metrics: dict[str, Any] = {name: ev.metrics for name, ev in evaluations.items()}
        metrics["test"] |= task.final_metrics(learnt.model)
        metrics["seconds"] = round(learnt.seconds + time.monotonic() - started, 1)
        metrics["examples"] = {name: int(s.cardinality()) for name, s in learnt.splits.items()}
        metrics["parameters"] = learnt.model.count_params()
        for name, evaluation in evaluations.items():
            if evaluation.errors:
                write_text(run.path / f"errors_{name}.txt", evaluation.errors)
        write_text(run.metrics, json.dumps(metrics, indent=2) + "\n")
    log.info("%s", evaluations["test"].report)
    return learnt.model, metrics


def learn(
    task: Task, out: str | Path, splits: Splits | None = None, progress: bool = False
) -> Learnt:
    """Adapts a task and fits its model, measuring nothing but the dev split.

    Args:
        task: a task with its configuration; it is adapted to the training split here.
        out: the run folder to write, or to take up where it is unfinished.
        splits: raw examples by split; by default those that the configuration names.
        progress: whether to show a progress bar.

    Returns:
        The model and how it came about.

    Raises:
        UserError: what is wrong with the data, the configuration or the folder, or a loss that is
            not a number any more.
    """
    started = time.monotonic()
    run = Run(out)
    _name_data(task, splits)
    run.require_startable(task.config)
    strategy = devices.strategy_for(task.config.devices, task.shares_batches)
    if workers.place().number > 1 and task.config.checkpoint_minutes:
        raise UserError(
            "several workers count steps, not minutes: give checkpoint_steps. Received: "
            f"checkpoint_minutes={task.config.checkpoint_minutes}"
        )
    if splits is None:
        splits = task.load()
    task.check(splits)
    task.adapt(splits["train"])
    run.require_same(task)
    for name, examples in splits.items():
        if name == "train" and not task.cuts_training:
            continue
        cut = sum(task.count_cut(batch) for batch in examples.batch(1024))
        task.warn_of_cuts(cut, int(examples.cardinality()), f"{name} examples")
    with workers.together():
        _require_same_as_chief(task)
        fitting = _Fitting(task, splits, run, strategy, started, progress)
        with run.stoppable():
            run.start(task)
            model, course = fitting.run()
    return Learnt(model, splits, course.history, course.seconds)


def chief_says(task: Task, fact: bool) -> bool:
    """Joins the workers, if there are several, and returns what the chief holds of a matter."""
    if workers.place().number > 1:
        devices.strategy_for(task.config.devices, task.shares_batches)
    with workers.together():
        return workers.from_chief(b"yes" if fact else b"") == b"yes"


def assist(task: Task, progress: bool = False) -> None:
    """Takes the steps of a run of which another worker is the chief, and keeps nothing of it.

    Args:
        task: a task with the chief's configuration.
        progress: whether to show a progress bar.

    Raises:
        UserError: as for `learn`; or a worker is gone, or has other settings or data.
    """
    with tempfile.TemporaryDirectory() as folder:
        learn(task, folder, progress=progress)


def _require_same_as_chief(task: Task) -> None:
    """Raises UserError where this worker was started in another way than the chief."""
    made_of = {"config": json.dumps(dataclasses.asdict(task.config)).encode(), **task.state()}
    own = {name: hashlib.sha256(content).hexdigest() for name, content in made_of.items()}
    chiefs = json.loads(workers.from_chief(json.dumps(own).encode()))
    if differing := [name for name in own if chiefs[name] != own[name]]:
        raise UserError(
            "this worker was started with other settings or other data than the chief. "
            f"Differing: {', '.join(differing)}"
        )


def restore(task_class: type[Task], run: Run) -> tuple[Task, keras.Model]:
    """Brings a task and its best model back from a run folder, without its data."""
    if not run.metrics.exists():
        raise UserError(f"{run.path} is not the folder of a trained run: it has no metrics.json")
    task = task_class(read_config(task_class.Config, run.config))
    return task, _restored(task, run)


def _restored(task: Task, run: Run) -> keras.Model:
    task.config = read_config(type(task.config), run.config)
    with reading(run.state):
        task.restore(run.state)
    model = task.build()
    with reading(run.best_weights):
        model.load_weights(run.best_weights)
    return model


def _name_data(task: Task, splits: Splits | None) -> None:
    if splits is not None:
        task.config = dataclasses.replace(
            task.config, data="in-memory", dev_data=None, test_data=None
        )


class _Fitting:
    """The epochs of a run, from its last checkpoint on.

    Two models share the work: the learner's, in the configured precision on the configured devices,
    and one in float32 on one device, which takes the running means of the weights and is measured,
    kept and exported.
    """

    def __init__(self, task, splits, run, strategy, started, show):
        self._task, self._run, self._show = task, run, show
        self._learner = Learner(task, strategy)
        with devices.on_first(task.config.devices), precision("float32"):
            self._model = task.build()
        self._train = task.encoded(splits["train"], training=True)
        dev = splits["dev"]
        # Read once where that costs little memory: a carved split is found by reading all the data.
        self._dev = dev.cache() if dev.cardinality() <= 20_000 else dev
        self._progress = Progress()
        self._clock = started
        self._unseen = []
        self._writers = {}

    def run(self) -> tuple[keras.Model, Progress]:
        """Trains what is left to train; returns the best model and the whole course."""
        config, run, progress = self._task.config, self._run, self._progress
        self._take_the_chiefs_checkpoint()
        if run.checkpoint.exists():
            progress = self._take_up()
        while not progress.is_over(config.epochs, config.patience):
            self._train_epoch()
            self._complete_epoch()
        for writer in self._writers.values():
            writer.close()
        if not workers.place().is_chief:
            return self._model, progress
        self._model.load_weights(run.best_weights)
        if config.average_checkpoints > 1:
            self._try_mean()
        self._count_seconds()
        if self._learner.num_traces:
            log.info(
                "training traced %d graph and compiled it for %d shapes of batches",
                self._learner.num_traces,
                self._learner.num_shapes,
            )
        return self._model, progress

    def _take_the_chiefs_checkpoint(self) -> None:
        """Gives every worker the checkpoint that the chief goes on from, if there is one."""
        file, own = self._run.checkpoint, b""
        if workers.place().is_chief and file.exists():
            own = file.read_bytes()
        content = workers.from_chief(own)
        if content and not workers.place().is_chief:
            with replacing(file) as beside:
                beside.write_bytes(content)

    def _take_up(self) -> Progress:
        kept, state = checkpoints.read(self._run.checkpoint)
        progress = self._progress = Progress(**kept)
        self._learner.restore(state)
        # What follows a checkpoint may be missing.
        self._write_history()
        if progress.step == 0:
            self._learner.give_averages(self._model)
            self._keep_weights()
        config = self._task.config
        if not progress.is_over(config.epochs, config.patience):
            log.info(
                "going on from the checkpoint after %d epochs and %d steps",
                progress.epoch,
                progress.step,
            )
        return progress

    def _train_epoch(self) -> None:
        """Takes the steps that are left of an epoch."""
        config, learner, progress = self._task.config, self._learner, self._progress
        batches = self._task.batches(self._train, progress.epoch)
        self._count_seconds()
        saved = time.monotonic()
        with tqdm.tqdm(
            desc=f"epoch {progress.epoch + 1}",
            initial=progress.step,
            total=max(int(batches.cardinality()), 0) or None,
            unit="step",
            disable=not self._show,
        ) as bar:
            for values in learner.steps(batches.skip(progress.step)):
                progress.step += 1
                self._unseen.append((progress.step, values))
                bar.update()
                if len(self._unseen) == _STEPS_UNSEEN:
                    bar.set_postfix(loss=f"{self._require_finite():.4f}", refresh=False)
                every, minutes = config.checkpoint_steps, config.checkpoint_minutes
                if (every and progress.step % every == 0) or (
                    minutes and time.monotonic() - saved >= 60 * minutes
                ):
                    self._require_finite()
                    self._count_seconds(of_steps=True)
                    self._write_checkpoint()
                    saved = time.monotonic()
        self._require_finite()
        self._count_seconds(of_steps=True)

    def _complete_epoch(self) -> None:
        """Measures an epoch, decides what follows from it, and keeps all that."""
        task, learner, progress = self._task, self._learner, self._progress
        config, objective = task.config, task.objective()
        values = learner.results()
        learner.reset()
        values["seconds"] = round(progress.epoch_seconds, 3)
        measured = {}
        with devices.on_first(config.devices):
            learner.give_averages(self._model)
            if workers.place().is_chief:
                measured = task.evaluate(self._model, self._dev).metrics
        measured = json.loads(workers.from_chief(json.dumps(measured).encode()))
        values |= {f"val_{name}": float(value) for name, value in measured.items()}
        if not np.isfinite(values[f"val_{objective.monitor}"]):
            raise UserError(
                f"{objective.monitor} on dev after epoch {progress.epoch + 1} is "
                f"{measured[objective.monitor]}: lower learning_rate"
            )
        progress.complete_epoch(values, f"val_{objective.monitor}", objective.mode)
        if progress.takes_decay(config.decay_patience):
            learner.decay(config.learning_rate_decay)
        if self._show:
            shown = ", ".join(f"{name} {value:.4g}" for name, value in sorted(values.items()))
            print(f"epoch {progress.epoch}: {shown}", file=sys.stderr)
        self._write_summaries(values)
        self._count_seconds()
        self._write_checkpoint()
        self._keep_weights()
        self._write_history()

    def _require_finite(self) -> float:
        """Returns the last loss, or stops the run where one was not finite."""
        loss = float("nan")
        for step, values in self._unseen:
            loss, norm = (float(value) for value in values)
            if not np.isfinite(loss):
                self._stop("loss", loss, step, norm)
            if not np.isfinite(norm) and not self._learner.scales_loss:
                self._stop("gradient", norm, step, norm)
        self._unseen.clear()
        return loss

    def _stop(self, what: str, value: float, step: int, norm: float) -> None:
        """Raises the UserError that names a step, after finding its batch once more."""
        epoch = self._progress.epoch
        numbered = self._train.enumerate().map(lambda n, example: (example[0], (example[1], n)))
        batches = self._task.batches(numbered, epoch).skip(step - 1)
        _, (_, numbers), _ = next(iter(batches))
        raise UserError(
            f"the {what} of step {step} in epoch {epoch + 1} is {value} (gradient norm {norm:.4g}):"
            " lower learning_rate, or look at the examples of its batch\n"
            f"by their place in the training split, from 0: {', '.join(map(str, numbers.numpy()))}"
        )

    def _write_checkpoint(self) -> None:
        progress = dataclasses.asdict(self._progress)
        checkpoints.write(self._run.checkpoint, progress, self._learner.state())

    def _keep_weights(self) -> None:
        """Keeps the weights of the last complete epoch, where they are wanted."""
        run, progress = self._run, self._progress
        if progress.is_best:
            with replacing(run.best_weights) as beside:
                self._model.save_weights(beside)
        if self._task.config.average_checkpoints == 1:
            return
        run.epochs.mkdir(exist_ok=True)
        wanted, last = self._averaged_epochs(), progress.epoch - 1
        if last in wanted:
            weights = [weight.numpy() for weight in self._model.weights]
            checkpoints.write(run.epochs / f"{last}.npz", {}, weights)
        for file in run.epochs.glob("*.npz"):
            if int(file.stem) not in wanted:
                file.unlink()

    def _averaged_epochs(self) -> list[int]:
        """Returns the epochs whose weights the mean would be of, if these were all."""
        config, objective = self._task.config, self._task.objective()
        number, progress = config.average_checkpoints, self._progress
        if config.averaged == "last":
            return list(range(max(progress.epoch - number, 0), progress.epoch))
        return progress.leading(number, f"val_{objective.monitor}", objective.mode)

    def _try_mean(self) -> None:
        """Gives the model the mean of some epochs' weights, where that is better on dev."""
        run, objective, best = self._run, self._task.objective(), self._progress.best
        epochs = self._averaged_epochs()
        kept = [checkpoints.read(run.epochs / f"{epoch}.npz")[1] for epoch in epochs]
        for weight, *values in zip(self._model.weights, *kept, strict=True):
            weight.assign(np.mean(values, axis=0, dtype=float).astype(values[0].dtype))
        with devices.on_first(self._task.config.devices):
            score = self._task.evaluate(self._model, self._dev).metrics[objective.monitor]
        is_better = score > best if objective.mode == "max" else score < best
        log.info(
            "the mean of the weights of epochs %s has %s %.4g on dev, the best epoch alone %.4g: "
            "%s is kept",
            ", ".join(str(epoch + 1) for epoch in epochs),
            objective.monitor,
            score,
            best,
            "the mean" if is_better else "the best epoch",
        )
        if is_better:
            with replacing(run.best_weights) as beside:
                self._model.save_weights(beside)
        else:
            self._model.load_weights(run.best_weights)

    def _write_history(self) -> None:
        history = self._progress.history
        table = {"epoch": range(self._progress.epoch)} | dict(sorted(history.items()))
        with (
            replacing(self._run.history) as beside,
            beside.open("w", newline="") as file,
        ):
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(table)
            writer.writerows(zip(*table.values(), strict=True))

    def _write_summaries(self, values: dict[str, float]) -> None:
        for part, prefix in (("train", ""), ("dev", "val_")):
            if part not in self._writers:
                folder = str(self._run.tensorboard / part)
                self._writers[part] = tf.summary.create_file_writer(folder)
            with self._writers[part].as_default(step=self._progress.epoch - 1):
                for name, value in values.items():
                    if name.startswith("val_") == bool(prefix):
                        tf.summary.scalar(name.removeprefix(prefix), value)
            self._writers[part].flush()

    def _count_seconds(self, of_steps: bool = False) -> None:
        """Adds the time since the last call to that of the run, and to that of the steps."""
        now = time.monotonic()
        self._progress.seconds += now - self._clock
        if of_steps:
            self._progress.epoch_seconds += now - self._clock
        self._clock = now


def _draw(run: Run, task: Task, learnt: Learnt, evaluations: dict[str, Evaluation]) -> None:
    objective = task.objective()
    history = learnt.history
    pictures = {"curves": curves(history, objective.panels, objective.monitor, objective.mode)}
    pictures |= task.figures(learnt.model, learnt.splits["test"], evaluations["test"])
    for name, picture in pictures.items():
        picture.savefig(run.figures / f"{name}.png", dpi=120)
