"""The protocol between a task and everything that is generic over tasks."""

import dataclasses
import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from etils import epy

from rnnapps.tasks.config import DataConfig, TrainingConfig

with epy.lazy_imports():
    import keras
    import keras_tuner
    import tensorflow as tf
    from matplotlib import figure

    from rnnapps.data import batching, sources

log = logging.getLogger("rnnapps")

Splits = dict[str, "tf.data.Dataset"]


def once_a_model(make: "Callable[[Any, keras.Model], Any]") -> "Callable[[Any, keras.Model], Any]":
    """Lets a task's method keep what it makes of a model, as long as it gets the same one.

    What is traced for a model is thus traced once, not in each epoch.
    """
    name = f"_kept{make.__name__}"

    @functools.wraps(make)
    def kept(task: "Task", model: "keras.Model") -> Any:
        before, made = getattr(task, name, (None, None))
        if before is not model:
            made = make(task, model)
            setattr(task, name, (model, made))
        return made

    return kept


@dataclasses.dataclass(frozen=True)
class Objective:
    """What training minimises, and what chooses the best epoch.

    Args:
        loss: the loss of each example (or of each of its steps, as the batches' weights are), from
            the model, the targets and its outputs in float32; training minimises its weighted mean.
        step_metrics: cheap metrics of the training steps, from the same and the weights.
        monitor: the name, among `Task.evaluate`'s, of the dev metric that chooses.
        mode: whether the larger (`max`) or the smaller (`min`) value is better.
        panels: what the training curves show together: names of training metrics, and of dev
            metrics with `val_` before them.
    """

    loss: "Callable[[keras.Model, Any, Any], tf.Tensor]"
    step_metrics: "list[keras.metrics.Metric]"
    monitor: str
    mode: Literal["max", "min"]
    panels: tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What a model was measured to do on one split.

    Args:
        metrics: the task's metrics by name.
        report: what lies behind them, for a terminal: counts, classes.
        errors: the most frequent errors, which the run folder keeps; a text of any length.
        outcomes: what the task's figures are drawn from.
    """

    metrics: dict[str, float]
    report: str
    errors: str = ""
    outcomes: Any = None


@dataclasses.dataclass(frozen=True)
class NoOptions:
    """A task whose `predict` takes no further flags."""


class Task:
    """One task, from raw example to served answer; subclasses fill in what has no default.

    A task begins with its configuration alone. `adapt` learns from training examples what is not
    weights, and settles every `auto` field of `config`; `restore` reads the same back from files.
    Only then can it encode, build, evaluate and serve.

    Args:
        config: an instance of `Config`.
    """

    name: ClassVar[str]
    """The task's name in paths and on the command line."""
    key: ClassVar[str]
    """The field of a raw example that decides which split it falls into."""
    Config: ClassVar[type[TrainingConfig]]
    """The configuration: a frozen dataclass of `Data`, model and `TrainingConfig` fields."""
    Data: ClassVar[type[DataConfig]]
    """The part of `Config` that says where examples come from and how to read them."""
    examples: ClassVar[tuple[Any, ...]] = ()
    """Inputs whose answers the command without arguments shows at its end."""
    PredictOptions: ClassVar[type] = NoOptions
    """A frozen dataclass: further flags of `predict`."""

    plan: "batching.Plan"
    """How the examples become batches; `adapt` and `restore` make it."""
    bytes_a_step: int = 4
    """What a step of an encoded example takes in memory; by default one id."""

    named_with_data: tuple[str, ...] = ("dev_data", "test_data")
    """The settings of `Data` that other `data` makes void."""

    cuts_training: bool = True
    """Whether training reads the beginning of what is too long; if not, it leaves it out."""

    shares_batches: bool = True
    """Whether several devices may each take a part of a batch."""

    def __init__(self, config: Any):
        self.config = config

    def reading(self) -> dict[str, Any]:
        """Returns how the data is read: the arguments of `sources.load_all` but for the spec."""
        raise NotImplementedError

    def load(self, **options: Any) -> Splits:
        """Reads the configured data: raw examples (dicts of scalars and strings) by split.

        The options are further arguments of `sources.load_splits`.
        """
        config = self.config
        return sources.load_splits(
            config.data,
            **self.reading(),
            **options,
            key=self.key,
            dev_data=config.dev_data,
            test_data=config.test_data,
            splits=config.splits,
            seed=config.split_seed,
        )

    def load_all(self) -> "tf.data.Dataset":
        """Reads every example of the configured `data`, whatever its splits."""
        return sources.load_all(self.config.data, **self.reading())

    def check(self, splits: Splits) -> None:
        """Raises UserError where splits do not fit each other, or not the adapted task."""

    def expand(self, inputs: Iterator[Any]) -> Iterator[Any]:
        """Puts what `predict` answers in the place of what it was given: files, of a folder."""
        return inputs

    def as_examples(self, inputs: Sequence[Any]) -> "dict[str, tf.Tensor]":
        """Makes a batch of raw examples, without targets, of what `predict` was given."""
        raise NotImplementedError

    def adapt(self, train: "tf.data.Dataset") -> None:
        """Learns from the training split what is not weights: vocabularies, labels, lengths."""
        raise NotImplementedError

    def state(self) -> Mapping[str, bytes]:
        """Returns what `adapt` learnt, as contents by file name."""
        raise NotImplementedError

    def restore(self, directory: Path) -> None:
        """Reads the files of `state` back from a directory, in place of `adapt`."""
        raise NotImplementedError

    def encode(self, example: Mapping[str, "tf.Tensor"]) -> tuple[Any, Any]:
        """Turns one raw example into unbatched (inputs, targets), in TensorFlow operations only."""
        raise NotImplementedError

    def encoded(self, examples: "tf.data.Dataset", training: bool = False) -> "tf.data.Dataset":
        """Encodes raw examples; those for training stay in memory if they are few enough."""
        encoded = examples.map(self.encode, num_parallel_calls=tf.data.AUTOTUNE)
        small = training and batching.fits_in_memory(self.plan.num_steps * self.bytes_a_step)
        return encoded.cache() if small else encoded

    def num_steps(self, inputs: Any) -> "tf.Tensor":
        """Counts the steps of the inputs of an encoded example, which `batches` pads.

        By default they are one tensor, with the steps first.
        """
        return tf.shape(inputs)[0]

    def batches(self, encoded: "tf.data.Dataset", epoch: int | None = None) -> "tf.data.Dataset":
        """Turns encoded examples into bucketed, padded batches of (inputs, targets, weights).

        The order of a training epoch is a function of the configured seed and the epoch, so that a
        run can be taken up anywhere in it. Without an epoch the order is that of the examples.
        Targets are passed through, whatever they are; the weights are ones, one an example.
        """
        seed = None if epoch is None else (self.config.seed, epoch)
        return self.plan.batches(encoded, self.num_steps, shuffle_seed=seed)

    def count_cut(self, batch: "Mapping[str, tf.Tensor]") -> int:
        """Counts the raw examples of a batch of which the model reads only the beginning."""
        return 0

    def count_cut_inputs(self, inputs: Sequence[Any], options: Any) -> int:
        """Counts those of `predict`'s inputs of which the model reads only a part."""
        return self.count_cut(self.as_examples(inputs))

    def measured(self, split: str, examples: "tf.data.Dataset") -> "tf.data.Dataset":
        """Returns the raw examples of a split on which a finished run is measured; all of them."""
        return examples

    def warn_of_cuts(self, cut: int, total: int, name: str) -> None:
        """Logs that of so many examples, called `name`, only a part is read."""
        if cut:
            log.warning(
                "%s of %s %s are longer than the model reads (max_length %d): the rest of each is "
                "ignored",
                f"{cut:,}",
                f"{total:,}",
                name,
                self.config.max_length,
            )

    def limits(self) -> str:
        """Tells, for a model card, what the adapted task cannot do."""
        raise NotImplementedError

    def build(self) -> "keras.Model":
        """Returns a new, uncompiled model."""
        raise NotImplementedError

    def trained(self, model: "keras.Model") -> "keras.Model":
        """Returns what is trained in place of a new model, and holds it; by default the model.

        It takes the inputs of `batches` and gives what the loss takes, but only the model is
        evaluated, kept and exported.
        """
        return model

    def objective(self) -> Objective:
        """Returns the loss, the step metrics and the dev metric with its direction."""
        raise NotImplementedError

    def evaluate(self, model: "keras.Model", examples: "tf.data.Dataset") -> Evaluation:
        """Measures a model on raw examples."""
        raise NotImplementedError

    def final_metrics(self, model: "keras.Model") -> dict[str, float]:
        """Measures what is measured once, of the finished model and on no split."""
        return {}

    def signatures(
        self, model: "keras.Model"
    ) -> "dict[str, tf.types.experimental.GenericFunction]":
        """Returns the functions that the export serves, with their input signatures."""
        raise NotImplementedError

    def probe(self) -> "dict[str, dict[str, tf.Tensor]]":
        """Returns inputs to check an export on, by signature: likely and awkward ones."""
        raise NotImplementedError

    def answer(self, served: Any, inputs: Sequence[Any], options: Any) -> list[dict[str, Any]]:
        """Lets an export answer a batch of inputs for `predict`."""
        return served.predict(inputs, len(inputs))

    def interpret(self, given: Any, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Says what an answer means for the input, as `predict` returns it.

        Both are plain Python objects. By default it is the answer as it is.
        """
        return dict(answer)

    def present(self, given: Any, answer: Mapping[str, Any], options: Any) -> str:
        """Writes what `interpret` returned for a terminal, or for a pipe."""
        raise NotImplementedError

    def search_space(self, hp: "keras_tuner.HyperParameters") -> Any:
        """Returns the configuration of one trial, its fields drawn from Keras Tuner's `hp`.

        It starts from `config`, and a hyperparameter has the name of the field that it sets and
        the field's value as its default. By default what is searched is what every task has.
        """
        return dataclasses.replace(
            self.config,
            learning_rate=self.choice(hp, "learning_rate", 0.0015, 0.003, 0.006),
            batch_size=self.choice(hp, "batch_size", 32, "auto"),
            clip_norm=self.choice(hp, "clip_norm", 1.0, 5.0),
        )

    def choice(self, hp: "keras_tuner.HyperParameters", field: str, *values: Any) -> Any:
        """Draws a field of `search_space` from some values and the configured one.

        Args:
            hp: Keras Tuner's hyperparameters.
            field: the name of the field.
            *values: what it may be, numbers in order. The configured value, which is the default,
                may be among them.
        """
        kept = getattr(self.config, field)
        if isinstance(kept, bool):
            return hp.Boolean(field, default=kept)
        values = values if kept in values else (*values, kept)
        if all(isinstance(value, int | float) for value in values):
            kind = float if any(isinstance(value, float) for value in values) else int
            return hp.Choice(field, sorted(map(kind, values)), default=kind(kept))
        # Keras Tuner takes values of one type only, and `auto` stands beside numbers.
        named = {str(value): value for value in values}
        return named[str(hp.Choice(field, list(named), default=str(kept)))]

    def plan_sizes(self) -> dict[str, int]:
        """Returns what a `batching.Plan` needs to know besides the lengths of the examples."""
        config = self.config
        return {
            "max_length": config.max_length,
            "num_buckets": config.buckets,
            "batch_size": config.batch_size,
        }

    def figures(
        self, model: "keras.Model", examples: "tf.data.Dataset", evaluation: Evaluation
    ) -> "dict[str, figure.Figure]":
        """Draws the task's pictures of a model evaluated on raw examples, by file stem.

        By default there are none.
        """
        return {}
