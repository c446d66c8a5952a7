"""One model in training: its step on all devices, and everything that a checkpoint must hold."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from rnnapps import workers
from rnnapps.data.batching import full_batches
from rnnapps.devices import mean_over_replicas, shared_out
from rnnapps.memory import keep_freed_memory
from rnnapps.optimizers import OPTIMIZERS
from rnnapps.tasks.task import Task


class Learner:
    """A new model of an adapted task with its optimiser, its random state and its metrics.

    The loss of a batch is the mean of its examples' losses by their weights, whatever the number of
    devices that share it. The metrics run over the steps of an epoch: `loss`, weighted in the same
    way; the task's own; and `gradient_norm`, the mean over the steps of the gradient's global norm
    before clipping, without those steps that loss scaling skipped.

    Args:
        task: the adapted task.
        strategy: where to train.

    Example:
    >>> from rnnapps.data.sources import from_lists
    >>> from rnnapps.tasks.sentiment import Sentiment, SentimentConfig
    >>> task = Sentiment(SentimentConfig(cell="elman", units=4, embedding_size=4, buckets=1))
    >>> texts = [f"{word} film {number}" for number in range(20) for word in ("good", "bad")]
    >>> train = from_lists({"text": texts, "label": ["for", "against"] * 20}, key="text")["train"]
    >>> task.adapt(train)
    >>> learner = Learner(task, tf.distribute.get_strategy())
    >>> for loss, gradient_norm in learner.steps(task.batches(task.encoded(train), epoch=0)):
    ...     print(float(loss) > 0, float(gradient_norm) > 0)
    True True
    """

    def __init__(self, task: Task, strategy: tf.distribute.Strategy):
        config = task.config
        self._strategy = strategy
        replicas = strategy.num_replicas_in_sync
        self._batch_size = -(-config.batch_size // replicas) * replicas
        keep_freed_memory()
        keras.utils.set_random_seed(config.seed)
        with strategy.scope():
            with precision(config.precision):
                self.model = task.build()
                self._trained = task.trained(self.model)
            self._part_random_states()
            objective = task.objective()
            self._averaging = OPTIMIZERS[config.optimizer](
                config.learning_rate, config.weight_average, config.clip_norm
            )
            # Gradients of float16 would vanish without it; bfloat16 has the range of float32.
            self.scales_loss = config.precision == "mixed_float16"
            scaling = keras.optimizers.LossScaleOptimizer
            self._optimizer = scaling(self._averaging) if self.scales_loss else self._averaging
            self._optimizer.build(self.model.trainable_variables)
            self._loss = keras.metrics.Mean(name="loss")
            self._norm = keras.metrics.Mean(name="gradient_norm")
        self._losses_of, self._step_metrics = objective.loss, objective.step_metrics
        self._metrics = [self._loss, *self._step_metrics, self._norm]
        self._run: Any = None
        self._shapes = set()

    def steps(self, batches: tf.data.Dataset) -> Iterator[tf.Tensor]:
        """Takes a step for each batch, all devices together.

        Args:
            batches: batches `(inputs, targets, weights)`; each call has them of the same kind.

        Yields:
            The batch's loss and the global norm of its gradient, float32 `[2]`; where loss scaling
            skipped the step, the norm is NaN. Nothing waits for the values.
        """
        shared = shared_out(full_batches(batches, self._batch_size), self._strategy)
        if self._run is None:
            # One graph for all shapes. If it grew with those that come along, a step would be
            # rounded in another way in a run that had been stopped before.
            signature = [shared.element_spec]
            self._run = tf.function(self._run_step, signature, autograph=False)
        yield from map(self.step, shared)

    def step(self, batch: Any) -> tf.Tensor:
        """Takes one of the `steps`."""
        whole = tf.nest.flatten(self._strategy.experimental_local_results(batch))
        self._shapes.add(tuple(tuple(part.shape) for part in whole))
        return self._run(batch)

    def results(self) -> dict[str, float]:
        """Returns the metrics of the steps since the last `reset`, and the learning rate."""
        values = {metric.name: float(metric.result()) for metric in self._metrics}
        return values | {"learning_rate": float(self._averaging.learning_rate.numpy())}

    def reset(self) -> None:
        """Begins the metrics anew."""
        for metric in self._metrics:
            metric.reset_state()

    def decay(self, factor: float) -> None:
        """Multiplies the learning rate."""
        self._averaging.learning_rate = float(self._averaging.learning_rate.numpy()) * factor

    def give_averages(self, model: keras.Model) -> None:
        """Gives another model of the same task the running means of the weights."""
        for weight, average in zip(model.trainable_weights, self._averaging.averages, strict=True):
            weight.assign(average.numpy())
        for weight, own in zip(
            model.non_trainable_weights, self.model.non_trainable_weights, strict=True
        ):
            weight.assign(own.numpy())

    def state(self) -> list[np.ndarray]:
        """Returns the weights, the random state, the optimiser and the running metrics."""
        return [variable.numpy() for variable in self._variables]

    def restore(self, state: Sequence[np.ndarray]) -> None:
        """Takes the place of the learner whose `state` this is."""
        for variable, value in zip(self._variables, state, strict=True):
            variable.assign(value)
        self._part_random_states()

    @property
    def num_traces(self) -> int:
        """How often the step has been traced."""
        return self._run.experimental_get_tracing_count() if self._run else 0

    @property
    def num_shapes(self) -> int:
        """How many shapes of batches the step has met."""
        return len(self._shapes)

    @property
    def _variables(self) -> list[keras.Variable]:
        running = [variable for metric in self._metrics for variable in metric.variables]
        return [*self._trained.variables, *self._optimizer.variables, *running]

    def _part_random_states(self):
        """Lets each replica draw dropout of its own; `state` holds what the first draws from."""
        for variable in self._trained.variables:
            if variable.name == "seed_generator_state":
                parts = self._strategy.experimental_local_results(variable.value)
                first = workers.place().index * len(parts)
                for replica, part in enumerate(parts):
                    part.assign_add([first + replica, 0])

    def _run_step(self, batch):
        self._averaging.gradient_norm.assign(float("nan"))
        losses = self._strategy.run(self._replica_step, args=batch)
        loss = self._strategy.experimental_local_results(losses)[0]  # the same of all
        return tf.stack([loss, tf.convert_to_tensor(self._averaging.gradient_norm)])  # [2]

    def _replica_step(self, inputs, targets, weights):
        context = tf.distribute.get_replica_context()
        weight = tf.reduce_sum(weights)
        with tf.GradientTape() as tape:
            outputs = _in_float32(self._trained(inputs, training=True))
            losses = self._losses_of(self.model, targets, outputs)  # as `weights`
            loss = tf.math.divide_no_nan(tf.reduce_sum(losses * weights), weight)
            for penalty in self._trained.losses:
                loss += tf.cast(penalty, loss.dtype)
            scaled = self._optimizer.scale_loss(loss)
        variables = self.model.trainable_variables
        found = [loss, *tape.gradient(scaled, variables)]
        shapes = [(), *(variable.shape for variable in variables)]
        loss, *gradients = mean_over_replicas(found, shapes, weight)
        self._optimizer.apply(gradients, variables)
        self._loss.update_state(losses, weights)
        for metric in self._step_metrics:
            metric.update_state(targets, outputs, weights)
        norm = tf.convert_to_tensor(self._averaging.gradient_norm)
        taken = tf.math.is_finite(norm)
        share = tf.cast(taken, norm.dtype) / context.num_replicas_in_sync
        self._norm.update_state(tf.where(taken, norm, 0), share)
        return loss


@contextlib.contextmanager
def precision(policy: str) -> Iterator[None]:
    """Lets layers that are made in this context follow a dtype policy, and no others."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def _in_float32(outputs):
    return tf.nest.map_structure(
        lambda v: tf.cast(v, tf.float32) if v.dtype.is_floating else v, outputs
    )
