"""The averaging optimiser against the recurrence that it documents, and loss scaling."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rnnapps import optimizers
from rnnapps.optimizers import AveragingAdam, AveragingSGD


def fitted(optimizer, epochs: int = 2, **callbacks) -> keras.Model:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="dense")])
    model.compile(optimizer, "mse")
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


@pytest.fixture(params=["plain", "compiled"])
def either_way(request, monkeypatch):
    """Lets every variable take its step in the one way or the other."""
    monkeypatch.setattr(optimizers, "LARGE", 0 if request.param == "compiled" else np.inf)


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.998])
def test_the_average_follows_its_recurrence(momentum):
    record = Record()
    model = fitted(AveragingAdam(0.1, momentum=momentum), callbacks=[record])
    average = 0
    for t, kernel in enumerate(record.kernels):
        m = min(momentum, t / (t + 9))
        average = m * average + (1 - m) * kernel
    np.testing.assert_allclose(model.optimizer.averages[0], average, rtol=1e-5, atol=1e-6)
    if momentum == 0:
        np.testing.assert_array_equal(model.optimizer.averages[0], record.kernels[-1])


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("clip_norm", [0.0, 0.5])
def test_the_steps_are_those_of_adam(clip_norm):
    averaging = fitted(AveragingAdam(0.1, 0.9, clip_norm))
    adam = fitted(keras.optimizers.Adam(0.1, global_clipnorm=clip_norm or None))
    for one, other in zip(averaging.get_weights(), adam.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_plain_descent_is_that_of_keras_with_the_same_average():
    record = Record()
    averaging = fitted(AveragingSGD(0.1, 0.5, clip_norm=0.5), callbacks=[record])
    plain = fitted(keras.optimizers.SGD(0.1, global_clipnorm=0.5))
    for one, other in zip(averaging.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    average = 0
    for t, kernel in enumerate(record.kernels):
        m = min(0.5, t / (t + 9))
        average = m * average + (1 - m) * kernel
    np.testing.assert_allclose(averaging.optimizer.averages[0], average, rtol=1e-5, atol=1e-6)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(averaging.optimizer))
    assert again.get_config() == averaging.optimizer.get_config()


@pytest.mark.filterwarnings("ignore:Gradients do not exist")
@pytest.mark.parametrize(("clip_norm", "length"), [(0.0, 13.0), (6.5, 6.5), (20.0, 13.0)])
def test_the_norm_is_kept_as_it_was_before_clipping(clip_norm, length):
    optimizer = AveragingAdam(0.1, clip_norm=clip_norm)
    variables = [keras.Variable([0.0, 0.0, 0.0]), keras.Variable([0.0]), keras.Variable([0.0])]
    slices = tf.IndexedSlices(tf.constant([1.0, 2.0]), tf.constant([2, 2]), tf.constant([3]))
    optimizer.apply([slices, None, tf.constant([160.0**0.5])], variables)
    assert float(optimizer.gradient_norm) == pytest.approx(13.0)
    first = [momentum.numpy() / (1 - optimizer.beta_1) for momentum in optimizer._momentums]
    assert np.linalg.norm(np.concatenate(first)) == pytest.approx(length, rel=1e-5)


def test_configuration_round_trip_and_bounds():
    optimizer = AveragingAdam(0.1, momentum=0.7, clip_norm=2.0)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert again.get_config() == optimizer.get_config()
    assert (again.momentum, again.clip_norm) == (0.7, 2.0)
    with pytest.raises(ValueError, match="Received: momentum=1"):
        AveragingAdam(momentum=1)
    with pytest.raises(ValueError, match="Received: amsgrad=True"):
        AveragingAdam(amsgrad=True)
    with pytest.raises(ValueError, match="Received: clip_norm=-1"):
        AveragingAdam(clip_norm=-1)


def test_a_gradient_that_overflows_is_skipped_and_the_scale_halved():
    inner = AveragingAdam(0.1)
    optimizer, variable = (
        keras.optimizers.LossScaleOptimizer(inner, 4.0),
        keras.Variable([1.0, 2.0]),
    )
    optimizer.apply([tf.constant([np.inf, 0.0])], [variable])
    assert variable.numpy().tolist() == [1, 2] and float(optimizer.dynamic_scale) == 2
    optimizer.apply([tf.constant([6.0, 8.0])], [variable])
    assert float(inner.gradient_norm) == pytest.approx(5) and int(inner.iterations) == 1
    assert (variable.numpy() < [1, 2]).all() and float(optimizer.dynamic_scale) == 2
