"""Training any task: from raw splits to a measured model in a run folder."""

import json
import logging
import time
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from rnnapps.errors import UserError
from rnnapps.figures.curves import curves
from rnnapps.optimizers import AveragedEpochs, AveragingAdam
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
        """The export that finished the run, or None while there is none."""
        if not self._exported.exists():
            return None
        return Path(self._exported.read_text(encoding="utf-8").strip())

    def start(self, task: Task) -> None:
        """Makes the folder and writes what the adapted task is made of."""
        if self.path.exists() and any(self.path.iterdir()):
            raise UserError(f"{self.path} is not empty: give another folder, or remove it")
        for folder in (self.best_weights.parent, self.state, self.figures):
            folder.mkdir(parents=True)
        write_config(task.config, self.config)
        for name, content in task.state().items():
            (self.state / name).write_bytes(content)

    def finish(self, export: Path) -> None:
        """Notes the export of the run's model."""
        self._exported.write_text(f"{export}\n", encoding="utf-8")

    def read_metrics(self) -> dict[str, Any]:
        """Reads `metrics.json`."""
        return json.loads(self.metrics.read_text(encoding="utf-8"))


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
    run = Run(out)
    splits = task.load() if splits is None else splits
    task.adapt(splits["train"])
    run.start(task)
    for name, examples in splits.items():
        task.warn_of_cuts(task.count_cut(examples), int(examples.cardinality()), f"{name} examples")
    model, history = fit(task, splits, run, progress)
    evaluations = {name: task.evaluate(model, examples) for name, examples in splits.items()}
    metrics: dict[str, Any] = {name: ev.metrics for name, ev in evaluations.items()}
    metrics["seconds"] = round(time.monotonic() - started, 1)
    metrics["examples"] = {name: int(split.cardinality()) for name, split in splits.items()}
    metrics["parameters"] = model.count_params()
    run.metrics.write_text(json.dumps(metrics, indent=2) + "\n", encoding="utf-8")
    _draw(run, task, model, splits, evaluations, history)
    log.info("%s", evaluations["test"].report)
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


def fit(
    task: Task, splits: Splits, run: Run, progress: bool = False
) -> tuple[keras.Model, dict[str, list[float]]]:
    """Fits a new model of an adapted task.

    Args:
        task: the adapted task.
        splits: raw examples; `train` and `dev` are used.
        run: the run folder, started.
        progress: whether to show a progress bar.

    Returns:
        The model with the weights of the best epoch, and the values of each epoch by name.
    """
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
    monitor = {"monitor": f"val_{objective.monitor}", "mode": objective.mode}
    history = model.fit(
        task.batches(splits["train"], training=True),
        epochs=config.epochs,
        shuffle=False,  # the batches bring their own order
        verbose=1 if progress else 0,
        callbacks=[
            AveragedEpochs(),
            DevEvaluation(task, splits["dev"]),
            keras.callbacks.ModelCheckpoint(
                run.best_weights, save_best_only=True, save_weights_only=True, **monitor
            ),
            keras.callbacks.ReduceLROnPlateau(
                factor=config.learning_rate_decay, patience=config.decay_patience, **monitor
            ),
            keras.callbacks.EarlyStopping(patience=config.patience, **monitor),
            keras.callbacks.CSVLogger(run.history),
            keras.callbacks.TensorBoard(run.tensorboard, write_graph=False),
        ],
    )
    model.load_weights(run.best_weights)
    return model, history.history


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
        self._task, self._examples = task, examples

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
