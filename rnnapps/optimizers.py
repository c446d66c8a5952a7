"""Optimisers that keep a running mean of the weights."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

# From so many values on a variable's step is compiled; smaller ones are not worth it.
LARGE = 2**18


# Its other base is one of Keras' optimisers.
_Optimizer: Any = object


class _Averaging(_Optimizer):
    """An optimiser's average of its iterates (Polyak & Juditsky, 1992), and its clipping.

    After each step t = 0, 1, …, with θ the weights and m the momentum,

        θ̄ ← m_t θ̄ + (1 - m_t) θ,   m_t = min(m, t / (t + 9))

    so that the window grows with the run and the first, random weights are soon forgotten. The
    average lies flatter than any of the weights that it is made of, and usually generalises better.
    (Keras' own `use_ema` has a fixed window, in which a short run never forgets its beginning.)

    The gradient is clipped by its global norm, which `gradient_norm` keeps as it was before. Under
    a `tf.distribute` strategy it must be that of the whole batch, as
    `rnnapps.devices.mean_over_replicas` gives it to every replica: clipped are not the parts of it,
    as in Keras, and nothing is added up here.
    """

    def __init__(
        self, learning_rate=0.001, momentum: float = 0.998, clip_norm: float = 0.0, **kwargs
    ):
        if not 0 <= momentum < 1:
            raise ValueError(f"`momentum` must be in [0, 1). Received: momentum={momentum}")
        if clip_norm < 0:
            raise ValueError(f"`clip_norm` must not be below 0. Received: clip_norm={clip_norm}")
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum
        self.clip_norm = clip_norm

    def build(self, variables):
        """Makes the averages of the variables, and the gradient's norm."""
        if self.built:
            return
        super().build(variables)
        self.averages = [
            self.add_variable_from_reference(variable, name="average") for variable in variables
        ]
        self.gradient_norm = self.add_variable(
            (), name="gradient_norm", aggregation="only_first_replica"
        )

    def apply(self, grads, trainable_variables=None):
        """Measures the gradient and takes a step."""
        if not self.built:
            self.build(list(trainable_variables))
        grads = [None if gradient is None else _merged(gradient) for gradient in grads]
        squares = [
            2 * tf.nn.l2_loss(_values(gradient)) for gradient in grads if gradient is not None
        ]
        self.gradient_norm.assign(ops.sqrt(sum(squares)))
        grads = [None if gradient is None else tf.convert_to_tensor(gradient) for gradient in grads]
        super().apply(grads, trainable_variables)

    def _all_reduce_sum_gradients(self, grads_and_vars):
        return grads_and_vars

    def _share(self, dtype):
        """Returns the share of the gradient that clipping leaves."""
        if not self.clip_norm:
            return ops.cast(1, dtype)
        return self.clip_norm / ops.maximum(ops.cast(self.gradient_norm, dtype), self.clip_norm)

    def _average_weight(self, dtype):
        """Returns 1 - m_t."""
        steps, momentum = (ops.cast(value, dtype) for value in (self.iterations, self.momentum))
        return 1 - ops.minimum(momentum, steps / (steps + 9))

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "momentum": self.momentum, "clip_norm": self.clip_norm}


@keras.saving.register_keras_serializable(package="rnnapps")
class AveragingSGD(_Averaging, keras.optimizers.Optimizer):
    """Gradient descent with an average of its iterates (ASGD; Polyak & Juditsky, 1992).

        θ ← θ - ηg

    The average and the clipping are those of `AveragingAdam`.

    Args:
        learning_rate: the step size η. Defaults to 0.001.
        momentum: how much the average keeps of itself, below 1; about 1 / (1 - momentum) steps are
            averaged. With 0 the average is the weights. Defaults to 0.998.
        clip_norm: the global norm to which a longer gradient is shortened; 0 for any. Defaults
            to 0.
        **kwargs: the further arguments of `keras.optimizers.Optimizer`.

    Raises:
        ValueError: `momentum` is not in [0, 1), or `clip_norm` is below 0.

    Example:
    >>> optimizer = AveragingSGD(1.0, momentum=0.99, clip_norm=0.25)
    """

    def update_step(self, gradient, variable, learning_rate):
        """Takes a step and moves the average after it."""
        rate, gradient = (ops.cast(value, variable.dtype) for value in (learning_rate, gradient))
        rate *= self._share(variable.dtype)
        stepped = tf.convert_to_tensor(variable) - rate * gradient
        average = self.averages[self._get_variable_index(variable)]
        kept = tf.convert_to_tensor(average)
        self.assign(variable, stepped)
        self.assign(average, kept + (stepped - kept) * self._average_weight(variable.dtype))


@keras.saving.register_keras_serializable(package="rnnapps")
class AveragingAdam(_Averaging, keras.optimizers.Adam):
    """Adam (Kingma & Ba, 2015) with an average of its iterates (Polyak & Juditsky, 1992).

    After each step t = 0, 1, …, with θ the weights and m the momentum,

        θ̄ ← m_t θ̄ + (1 - m_t) θ,   m_t = min(m, t / (t + 9))

    The gradient is clipped by its global norm, which `gradient_norm` keeps as it was before.

    Args:
        learning_rate: the step size. Defaults to 0.001.
        momentum: m, below 1; about 1 / (1 - m) steps are averaged. With 0 the average is the
            weights. Defaults to 0.998.
        clip_norm: the global norm to which a longer gradient is shortened; 0 for any. Defaults
            to 0.
        **kwargs: the further arguments of `keras.optimizers.Adam`, except for `amsgrad`.

    Raises:
        ValueError: `momentum` is not in [0, 1), `clip_norm` is below 0, or `amsgrad` is asked for.

    Example:
    >>> optimizer = AveragingAdam(0.01, momentum=0.9, clip_norm=1.0)
    """

    def __init__(
        self, learning_rate=0.001, momentum: float = 0.998, clip_norm: float = 0.0, **kwargs
    ):
        if kwargs.get("amsgrad"):
            raise ValueError("`amsgrad` is not offered. Received: amsgrad=True")
        super().__init__(learning_rate, momentum, clip_norm, **kwargs)

    def update_step(self, gradient, variable, learning_rate):
        """Takes Adam's step and moves the average after it."""
        index = self._get_variable_index(variable)
        kept = (variable, self._momentums[index], self._velocities[index], self.averages[index])
        steps, rate, *decays = (
            ops.cast(value, variable.dtype)
            for value in (self.iterations, learning_rate, self.beta_1, self.beta_2)
        )
        powers = [decay ** (steps + 1) for decay in decays]
        rate = rate * ops.sqrt(1 - powers[1]) / (1 - powers[0])
        share, weight = self._share(variable.dtype), self._average_weight(variable.dtype)
        values = map(tf.convert_to_tensor, (*kept, ops.cast(gradient, variable.dtype)))
        step = _compiled_step if np.prod(variable.shape) >= LARGE else _step
        stepped = step(*values, share, rate, weight, self.beta_1, self.beta_2, self.epsilon)
        for one, value in zip(kept, stepped, strict=True):
            self.assign(one, value)


OPTIMIZERS = {"adam": AveragingAdam, "sgd": AveragingSGD}


def _step(
    variable,
    momentum,
    velocity,
    average,
    gradient,
    share,
    rate,
    weight,
    beta_1,
    beta_2,
    epsilon,
):
    """Returns a variable and what is kept of it after a step."""
    gradient *= share
    momentum += (gradient - momentum) * (1 - beta_1)
    velocity += (tf.square(gradient) - velocity) * (1 - beta_2)
    variable -= rate * momentum / (tf.sqrt(velocity) + epsilon)
    average += (variable - average) * weight
    return variable, momentum, velocity, average


_compiled_step = tf.function(_step, jit_compile=True, autograph=False)  # one pass over the values


def _merged(gradient):
    """Adds up the rows of a sparse gradient that belong together."""
    if not isinstance(gradient, tf.IndexedSlices):
        return tf.convert_to_tensor(gradient)
    indices, places = tf.unique(gradient.indices)
    values = tf.math.unsorted_segment_sum(gradient.values, places, tf.size(indices))
    return tf.IndexedSlices(values, indices, gradient.dense_shape)


def _values(gradient):
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
