"""Adam that keeps a running mean of the weights beside the weights themselves."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="rnnapps")
class AveragingAdam(keras.optimizers.Adam):
    """Adam (Kingma & Ba, 2015) with an average of its iterates (Polyak & Juditsky, 1992).

    After each step t = 0, 1, …, with θ the weights and m the momentum,

        θ̄ ← m_t θ̄ + (1 - m_t) θ,   m_t = min(m, t / (t + 9))

    so that the window grows with the run and the first, random weights are soon forgotten. The
    average lies flatter than any of the weights that it is made of, and usually generalises better.
    (Keras' own `use_ema` has a fixed window, in which a short run never forgets its beginning.)

    Args:
        learning_rate: the step size. Defaults to 0.001.
        momentum: m, below 1; about 1 / (1 - m) steps are averaged. With 0 the average is the
            weights. Defaults to 0.998.
        **kwargs: the further arguments of `keras.optimizers.Adam`.

    Raises:
        ValueError: `momentum` is not in [0, 1).

    Example:
    >>> optimizer = AveragingAdam(0.01, momentum=0.9, global_clipnorm=1.0)
    """

    def __init__(self, learning_rate=0.001, momentum: float = 0.998, **kwargs):
        if not 0 <= momentum < 1:
            raise ValueError(f"`momentum` must be in [0, 1). Received: momentum={momentum}")
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum = momentum

    def build(self, variables):
        """Makes the averages of the variables."""
        if self.built:
            return
        super().build(variables)
        self.averages = [
            self.add_variable_from_reference(variable, name="average") for variable in variables
        ]

    def update_step(self, gradient, variable, learning_rate):
        """Takes Adam's step and moves the average after it."""
        super().update_step(gradient, variable, learning_rate)
        average = self.averages[self._get_variable_index(variable)]
        step = ops.cast(self.iterations, variable.dtype)
        weight = 1 - ops.minimum(ops.cast(self.momentum, variable.dtype), step / (step + 9))
        self.assign_add(average, ops.multiply(ops.subtract(variable, average), weight))

    def swap(self):
        """Exchanges the weights and their averages."""
        for variable, average in zip(self._trainable_variables, self.averages, strict=True):
            weights = ops.copy(variable)
            variable.assign(average)
            average.assign(weights)

    def get_config(self) -> dict:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "momentum": self.momentum}
