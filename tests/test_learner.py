"""A learner's step against Keras' `fit`, its precision, and what its state holds."""

import dataclasses
import functools
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

from rnnapps.data.datasets.sample_reviews import grammar
from rnnapps.data.sources import from_lists
from rnnapps.learner import Learner
from rnnapps.tasks.sentiment import Sentiment, SentimentConfig

WITHOUT_DROPOUT = {"dropout": 0.0, "embedding_dropout": 0.0, "recurrent_dropout": 0.0}
ONE = tf.distribute.get_strategy()


@pytest.fixture(scope="module")
def adapted():
    """A task and its batches of one epoch: ten, the last of which are smaller."""
    reviews = list(itertools.islice(grammar.reviews(), 170))
    lists = {"text": [r.text for r in reviews], "label": [r.label for r in reviews]}
    task = Sentiment(SentimentConfig(units=4, embedding_size=4, batch_size=16, cell="gru"))
    train = from_lists(lists, key="text")["train"]
    task.adapt(train)
    return task, task.batches(task.encoded(train), epoch=0)


def configured(adapted, **changes):
    task, _ = adapted
    changed = Sentiment(dataclasses.replace(task.config, **changes))
    changed.labels, changed.vocabulary = task.labels, task.vocabulary
    changed.plan = task.plan
    return changed


def test_an_epoch_is_that_of_keras(adapted):
    task, batches = configured(adapted, **WITHOUT_DROPOUT), adapted[1]
    learner = Learner(task, ONE)
    model, objective, config = task.build(), task.objective(), task.config
    model.set_weights(learner.model.get_weights())
    adam = keras.optimizers.Adam(config.learning_rate, global_clipnorm=config.clip_norm)
    model.compile(
        adam,
        functools.partial(objective.loss, model),
        weighted_metrics=objective.step_metrics,
        jit_compile=False,
    )
    history = model.fit(batches, shuffle=False, verbose=0).history
    assert len(list(learner.steps(batches))) == len(batches)
    results = learner.results()
    assert results["loss"] == pytest.approx(history["loss"][0], rel=1e-5)
    assert results["accuracy"] == pytest.approx(history["accuracy"][0], rel=1e-6)
    for one, other in zip(learner.model.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, atol=5e-4)  # Adam magnifies what is tiny


def test_the_logged_norm_is_the_mean_of_the_steps(adapted):
    learner = Learner(adapted[0], ONE)
    values = np.array([value.numpy() for value in learner.steps(adapted[1].take(4))])
    assert learner.results()["gradient_norm"] == pytest.approx(values[:, 1].mean(), rel=1e-6)
    learner.reset()
    ((loss, norm),) = np.array(list(learner.steps(adapted[1].take(1))))
    results = learner.results()
    assert (results["loss"], results["gradient_norm"]) == pytest.approx((loss, norm))


@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_a_state_brings_everything_back(adapted, precision):
    task = configured(adapted, precision=precision, recurrent_dropout=0.2)
    learner, other = Learner(task, ONE), Learner(task, ONE)
    assert len(list(learner.steps(adapted[1].take(2)))) == 2
    learner.decay(0.5)
    other.restore(learner.state())
    (one,), (same,) = (list(each.steps(adapted[1].skip(2).take(1))) for each in (learner, other))
    assert (one.numpy() == same.numpy()).all()
    for one, same in zip(learner.state(), other.state(), strict=True):
        assert np.array_equal(one, same)
    assert learner.results() == other.results()


@pytest.mark.parametrize("precision", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_is_for_the_layers_alone(adapted, precision):
    task = configured(adapted, precision=precision, pooling="attention", hidden_units=3)
    objective, seen = task.objective(), set()

    def watched(model, targets, outputs):
        losses = objective.loss(model, targets, outputs)
        seen.add((outputs.dtype, losses.dtype))
        return losses

    task.objective = lambda: dataclasses.replace(objective, loss=watched)
    learner = Learner(task, ONE)
    assert keras.config.dtype_policy().name == "float32"
    model = learner.model
    assert model.encoder.encoder.compute_dtype == precision.removeprefix("mixed_")
    assert model.hidden_layer.compute_dtype == precision.removeprefix("mixed_")
    assert model.output_layer.compute_dtype == "float32"
    before = model.get_weights()
    for values in learner.steps(adapted[1].take(2)):
        assert np.isfinite(values.numpy()).all()
    assert seen == {(tf.float32, tf.float32)}
    for old, new in zip(before, model.get_weights(), strict=True):
        assert new.dtype == "float32" and (old != new).any()


def test_a_step_that_loss_scaling_skips_does_not_count(adapted):
    learner = Learner(configured(adapted, precision="mixed_float16"), ONE)
    ((_, norm),) = np.array(list(learner.steps(adapted[1].take(1))))
    learner._optimizer.dynamic_scale.assign(np.finfo("float32").max)
    before = learner.model.get_weights()
    ((loss, skipped),) = np.array(list(learner.steps(adapted[1].skip(1).take(1))))
    assert np.isfinite(loss) and np.isnan(skipped)
    assert all((a == b).all() for a, b in zip(before, learner.model.get_weights(), strict=True))
    assert learner.results()["gradient_norm"] == pytest.approx(norm)


def test_another_model_is_given_the_averages(adapted):
    task, batches = adapted
    learner, model = Learner(task, ONE), task.build()
    assert len(list(learner.steps(batches.take(2)))) == 2
    learner.give_averages(model)
    pairs = zip(model.trainable_weights, learner._averaging.averages, strict=True)
    assert all((weight.numpy() == average.numpy()).all() for weight, average in pairs)
    assert not (model.get_weights()[0] == learner.model.get_weights()[0]).all()
