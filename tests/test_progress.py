"""The decisions of a run against the Keras callbacks that they follow."""

import dataclasses
import json

import keras
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnapps.progress import Progress

# Steps of a tenth are notable for the learning rate; some of a hundred-thousandth are not.
some_values = st.lists(
    st.integers(0, 9).map(lambda n: n / 10) | st.integers(0, 9).map(lambda n: 0.5 + n * 1e-5),
    min_size=1,
    max_size=25,
)


class Model:
    """What the callbacks need of a model."""

    def __init__(self):
        self.optimizer = keras.optimizers.SGD(1.0)
        self.stop_training = False
        self.metrics = []


def by_keras(values, mode, patience, decay_patience):
    """The learning rate of each epoch, the best epoch and the number of epochs."""
    model = Model()
    stopping = keras.callbacks.EarlyStopping("val_x", patience=patience, mode=mode)
    plateau = keras.callbacks.ReduceLROnPlateau(
        "val_x", factor=0.5, patience=decay_patience, mode=mode
    )
    for callback in (stopping, plateau):
        callback.set_model(model)
        callback.on_train_begin()
    rates = []
    for epoch, value in enumerate(values):
        rates.append(float(model.optimizer.learning_rate))
        for callback in (stopping, plateau):
            callback.on_epoch_end(epoch, {"val_x": value})
        if model.stop_training:
            break
    return rates, stopping.best_epoch, epoch + 1


@settings(max_examples=60, deadline=None)
@given(some_values, st.sampled_from(["max", "min"]), st.integers(0, 4), st.integers(0, 4))
def test_the_decisions_are_those_of_the_callbacks(values, mode, patience, decay_patience):
    progress, rate, rates = Progress(), 1.0, []
    while not progress.is_over(len(values), patience):
        rates.append(rate)
        progress.complete_epoch({"val_x": values[progress.epoch]}, "val_x", mode)
        if progress.takes_decay(decay_patience):
            rate /= 2
        # As it comes back from a checkpoint.
        progress = Progress(**json.loads(json.dumps(dataclasses.asdict(progress))))
    expected = by_keras(values, mode, patience, decay_patience)
    assert (rates, progress.best_epoch, progress.epoch) == expected
    assert progress.history["val_x"] == values[: progress.epoch]
    assert progress.best == values[progress.best_epoch]


def test_an_epoch_begins_without_steps():
    progress = Progress(epoch=1, step=7, epoch_seconds=2.0, best=0.5, best_epoch=0)
    progress.complete_epoch({"val_x": 0.6, "loss": 1.0}, "val_x", "max")
    assert (progress.epoch, progress.step, progress.epoch_seconds) == (2, 0, 0)
    assert progress.is_best and progress.best == pytest.approx(0.6)
