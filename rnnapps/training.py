"""Training any task: from raw splits to a measured model in a run folder."""

import dataclasses
import json
import logging
import time
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from rnnapps.errors import UserError
from rnnapps.figures.curves import curves
from rnnapps.folders import require_writable
from rnnapps.optimizers import AveragingAdam
from rnnapps.tasks.config import read_config, write_config
from rnnapps.tasks.task import Evaluation, Splits, Task

log = logging.getLogger("rnnapps")


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
        self.best_weights = self.path / "checkpoints" / "best.weights.h5"
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

    def require_new(self) -> None:
        """Raises UserError where a run could not be started in this folder."""
        require_writable(self.path)
        if self.metrics.exists():
            raise UserError(
                f"{self.path} holds a trained model without its export: "
                f"`export --run {self.path}` makes it again"
            )
        if self.path.exists() and any(self.path.iterdir()):
            raise UserError(f"{self.path} is not empty: give another folder, or remove it")

    def start(self, task: Task) -> None:
        """Makes the folder and writes what the adapted task is made of."""
        for folder in (self.best_weights.parent, self.state, self.figures):
            folder.mkdir(parents=True, exist_ok=True)
        write_config(task.config, self.config)
        for name, content in task.state().items():
            (self.state / name).write_bytes(content)

    def finish(self, export: Path) -> None:
        """Notes the export of the run's model."""
        self._exported.write_text(f"{export.resolve()}\n", encoding="utf-8")

    def read_metrics(self) -> dict[str, Any]:
        """Reads `metrics.json`."""
        return json.loads(self.metrics.read_text(encoding="utf-8"))


@dataclasses.dataclass(frozen=True)
class Learnt:
    """What `learn` leaves behind.

    Args:
        model: the model with the weights of the best epoch on the dev split.
        splits: the raw examples by split.
        history: the values of each epoch by name.
    """

    model: keras.Model
    splits: Splits
    history: dict[str, list[float]]


def learn(
    task: Task, out: str | Path, splits: Splits | None = None, progress: bool = False
) -> Learnt:
    """Trains a task from raw examples; nothing but the dev split is measured.

    Args:
        task: a task with its configuration; it is adapted to the training split here.
        out: the run folder to write.
        splits: raw examples by split; by default those that the configuration names.
        progress: whether to show a progress bar.

    Returns:
        The model with the weights of the best epoch on the dev split, its examples and its history.

    Raises:
        UserError: what is wrong with the data, the configuration or the folder.
    """
    run = Run(out)
    run.require_new()
    if splits is None:
        splits = task.load()
    else:
        task.config = dataclasses.replace(
            task.config, data="in-memory", dev_data=None, test_data=None
        )
    task.check(splits)
    task.adapt(splits["train"])
    for name, examples in splits.items():
        cut = sum(task.count_cut(batch) for batch in examples.batch(1024))
        task.warn_of_cuts(cut, int(examples.cardinality()), f"{name} examples")
    model = compiled(task)
    run.start(task)
    return Learnt(model, splits, fit(model, task, splits, run, progress))


def train(
    task: Task, out: str | Path, splits: Splits | None = None, progress: bool = False
) -> tuple[keras.Model, dict[str, Any]]:
    """Trains a task from raw examples and measures the best model on every split.

    Args:
        task: a task with its configuration; it is adapted to the training split here.
        out: the run folder to write.
        splits: raw examples by split; by default those that the configuration names.
        progress: whether to show a progress bar.

    Returns:
        The model with the weights of the best epoch on the dev split, and what `metrics.json`
        holds.

    Raises:
        UserError: what is wrong with the data, the configuration or the folder.
    """
    started = time.monotonic()
    learnt = learn(task, out, splits, progress)
    run, model, splits = Run(out), learnt.model, learnt.splits
    evaluations = {name: task.evaluate(model, examples) for name, examples in splits.items()}
    metrics: dict[str, Any] = {name: ev.metrics for name, ev in evaluations.items()}
    metrics["seconds"] = round(time.monotonic() - started, 1)
    metrics["examples"] = {name: int(split.cardinality()) for name, split in splits.items()}
    metrics["parameters"] = model.count_params()
    run.metrics.write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    log.info("%s", evaluations["test"].report)
    _draw(run, task, model, splits, evaluations, learnt.history)
    return model, metrics


def restore(task_class: type[Task], run: Run) -> tuple[Task, keras.Model]:
    """Brings a task and its best model back from a run folder, without its data."""
    if not run.metrics.exists():
        raise UserError(f"{run.path} is not the folder of a trained run: it has no metrics.json")
    task = task_class(read_config(task_class.Config, run.config))
    task.restore(run.state)
    model = task.build()
    model.load_weights(run.best_weights)
    return task, model


def compiled(task: Task) -> keras.Model:
    """Builds and compiles a new model of an adapted task, from the configured seed."""
    config, objective = task.config, task.objective()
    keras.utils.set_random_seed(config.seed)
    model = task.build()
    model.compile(
        optimizer=AveragingAdam(
            config.learning_rate, config.weight_average, global_clipnorm=config.clip_norm or None
        ),
        loss=objective.loss,
        weighted_metrics=objective.step_metrics,
        jit_compile=False,
    )
    return model


def fit(
    model: keras.Model, task: Task, splits: Splits, run: Run, progress: bool = False
) -> dict[str, list[float]]:
    """Fits a compiled model, and leaves it with the weights of the best epoch on the dev split.

    Args:
        model: the model.
        task: the adapted task.
        splits: raw examples; `train` and `dev` are used.
        run: the run folder, started.
        progress: whether to show a progress bar.

    Returns:
        The values of each epoch by name.
    """
    config, objective = task.config, task.objective()
    monitor = {"monitor": f"val_{objective.monitor}", "mode": objective.mode}
    callbacks = [
        AveragedEpochs(),
        DevEvaluation(task, splits["dev"]),
        keras.callbacks.ModelCheckpoint(
            run.best_weights, save_best_only=True, save_weights_only=True, **monitor
        ),
        keras.callbacks.EarlyStopping(patience=config.patience, **monitor),
        keras.callbacks.CSVLogger(run.history),
        keras.callbacks.TensorBoard(run.tensorboard, write_graph=False),
    ]
    if config.learning_rate_decay < 1:
        decay = {"factor": config.learning_rate_decay, "patience": config.decay_patience}
        callbacks.append(keras.callbacks.ReduceLROnPlateau(**decay, **monitor))
    history = model.fit(
        task.batches(splits["train"], training=True),
        epochs=config.epochs,
        shuffle=False,  # the batches bring their own order
        verbose=1 if progress else 0,
        callbacks=callbacks,
    )
    model.load_weights(run.best_weights)
    return history.history


class AveragedEpochs(keras.callbacks.Callback):
    """Puts the averages of `AveragingAdam` in the weights' place between epochs.

    Callbacks that come after it measure and save the averages; training goes on with the weights.
    """

    def on_epoch_end(self, epoch, logs=None):
        """Swaps the averages in."""
        self.model.optimizer.swap()

    def on_epoch_begin(self, epoch, logs=None):
        """Swaps the weights back in."""
        if epoch > 0:
            self.model.optimizer.swap()


class DevEvaluation(keras.callbacks.Callback):
    """Measures the dev split after each epoch and adds its metrics to the epoch's logs.

    The metrics are those of `Task.evaluate` under `val_<name>`, so that what chooses the best
    epoch is measured exactly as it is reported. The epoch's training time goes under `seconds`.

    Args:
        task: the adapted task.
        examples: the raw examples of the dev split.
    """

    def __init__(self, task: Task, examples: tf.data.Dataset):
        super().__init__()
        self._task = task
        # Read once where that costs little memory: a carved split is found by reading all the data.
        self._examples = examples.cache() if examples.cardinality() <= 20_000 else examples

    def on_epoch_begin(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        self._started = time.monotonic()

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        logs["seconds"] = round(time.monotonic() - self._started, 3)
        evaluation = self._task.evaluate(self.model, self._examples)
        logs.update({f"val_{name}": value for name, value in evaluation.metrics.items()})


def _draw(
    run: Run,
    task: Task,
    model: keras.Model,
    splits: Splits,
    evaluations: dict[str, Evaluation],
    history: dict[str, list[float]],
) -> None:
    objective = task.objective()
    pictures = {"curves": curves(history, objective.panels, objective.monitor, objective.mode)}
    pictures |= task.figures(model, splits["test"], evaluations["test"])
    for name, picture in pictures.items():
        picture.savefig(run.figures / f"{name}.png", dpi=120)
