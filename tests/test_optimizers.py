"""The averaging optimiser against the recurrence that it documents."""

import keras
import numpy as np
import pytest

from rnnapps.optimizers import AveragingAdam
from rnnapps.training import AveragedEpochs


def fitted(momentum: float, epochs: int = 2, **callbacks) -> keras.Model:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="dense")])
    model.compile(AveragingAdam(0.1, momentum=momentum), "mse")
    x = np.random.default_rng(0).normal(size=(32, 3)).astype("float32")
    model.fit(x, x[:, :2], batch_size=8, epochs=epochs, shuffle=False, verbose=0, **callbacks)
    return model


class Record(keras.callbacks.Callback):
    """Keeps the kernel after each step."""

    def __init__(self):
        super().__init__()
        self.kernels = []

    def on_train_batch_end(self, batch, logs=None):
        self.kernels.append(self.model.get_layer("dense").kernel.numpy())


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.998])
def test_the_average_follows_its_recurrence(momentum):
    record = Record()
    model = fitted(momentum, callbacks=[record])
    average = 0
    for t, kernel in enumerate(record.kernels):
        m = min(momentum, t / (t + 9))
        average = m * average + (1 - m) * kernel
    np.testing.assert_allclose(model.optimizer.averages[0], average, rtol=1e-5, atol=1e-6)
    if momentum == 0:
        np.testing.assert_array_equal(model.optimizer.averages[0], record.kernels[-1])


def test_the_steps_are_those_of_adam():
    averaging = fitted(0.9)
    keras.utils.set_random_seed(1)
    adam = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    adam.compile(keras.optimizers.Adam(0.1), "mse")
    x = np.random.default_rng(0).normal(size=(32, 3)).astype("float32")
    adam.fit(x, x[:, :2], batch_size=8, epochs=2, shuffle=False, verbose=0)
    np.testing.assert_array_equal(averaging.get_weights()[0], adam.get_weights()[0])


def test_between_epochs_the_model_has_the_averages():
    class Seen(Record):
        def on_epoch_end(self, epoch, logs=None):
            self.at_end = self.model.get_layer("dense").kernel.numpy()

    seen = Seen()
    with_swap = fitted(0.9, callbacks=[AveragedEpochs(), seen])
    without = fitted(0.9)
    np.testing.assert_array_equal(seen.at_end, without.optimizer.averages[0])
    with_swap.optimizer.swap()  # the last epoch left the averages in
    np.testing.assert_array_equal(with_swap.get_weights()[0], without.get_weights()[0])


def test_configuration_round_trip_and_bounds():
    optimizer = AveragingAdam(0.1, momentum=0.7, global_clipnorm=2.0)
    config = keras.optimizers.serialize(optimizer)
    again = keras.optimizers.deserialize(config)
    assert again.get_config() == optimizer.get_config() and again.momentum == 0.7
    with pytest.raises(ValueError, match="Received: momentum=1"):
        AveragingAdam(momentum=1)
