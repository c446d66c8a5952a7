"""Several devices train like one: the same weights, losses and metrics."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from rnnapps import devices
from rnnapps.errors import UserError

ROOT = str(Path(__file__).parents[1])

TWO = """
import dataclasses, sys
import keras
import numpy as np
import tensorflow as tf

(cpu,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)

from rnnapps import devices, training
from rnnapps.data.batching import full_batches
from rnnapps.learner import Learner
from rnnapps.optimizers import AveragingAdam
from tests.test_training import CONFIG, small_splits
from rnnapps.tasks.sentiment import Sentiment

one = tf.distribute.get_strategy()
two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
splits = small_splits()
dropout = {"dropout": 0.0, "embedding_dropout": 0.0, "recurrent_dropout": 0.0}
task = Sentiment(dataclasses.replace(CONFIG, batch_size=7, epochs=1, **dropout))
task.adapt(splits["train"])
encoded = task.encoded(splits["train"], training=True)

# Batches are filled up to an even size, and what they are filled with has no weight.
odd = task.batches(encoded, epoch=0)
sizes = [len(weights) for *_, weights in odd]
even = devices.shared_out(full_batches(odd, 8), two)
shared = [two.experimental_local_results(batch[2]) for batch in even]
assert [int(sum(map(np.sum, parts))) for parts in shared] == sizes and set(sizes) > {7}
assert all(len(parts[0]) == len(parts[1]) == 4 for parts in shared)

# An epoch of more than twenty steps.
learners, values = [Learner(task, strategy) for strategy in (one, two)], []
for learner in learners:
    values.append([value.numpy() for value in learner.steps(task.batches(encoded, epoch=0))])
assert len(values[0]) == len(sizes) > 20
np.testing.assert_allclose(*values, atol=1e-5)
for single, mirrored in zip(*(learner.state() for learner in learners), strict=True):
    np.testing.assert_allclose(single, mirrored, rtol=1e-6, atol=1e-5)
results = [learner.results() for learner in learners]
assert results[0].keys() == results[1].keys() and results[0]["accuracy"] == results[1]["accuracy"]
np.testing.assert_allclose(*(list(r.values()) for r in results), rtol=1e-6)

# The engine is compiled in the replicas' threads.
graph = learners[1]._run.get_concrete_function().graph.as_graph_def()
assert sum(f.attr["_XlaMustCompile"].b for f in graph.library.function) >= 2

# The same epoch as a run that was stopped in the middle.
devices.strategy_for = lambda *_: two
step, left = Learner.step, 5

def stopped(self, batch):
    global left
    left -= 1
    if left < 0:
        raise KeyboardInterrupt
    return step(self, batch)

Learner.step = stopped
try:
    training.learn(Sentiment(task.config), sys.argv[1], splits)
except KeyboardInterrupt:
    Learner.step = step
history = training.learn(Sentiment(task.config), sys.argv[1], splits).history
for name, value in results[0].items():
    np.testing.assert_allclose(history[name], value, rtol=1e-5)

# With dropout the replicas draw their own, also after a restart.
noisy = Sentiment(dataclasses.replace(task.config, recurrent_dropout=0.2, dropout=0.2))
noisy.restore(training.Run(sys.argv[1]).state)
learner, again = Learner(noisy, two), Learner(noisy, two)
batches = task.batches(encoded, epoch=0)
list(learner.steps(batches.take(1)))
again.restore(learner.state())
(value,), (same,) = (list(each.steps(batches.skip(1).take(1))) for each in (learner, again))
assert (value.numpy() == same.numpy()).all()
states = [v for v in again.model.variables if v.name == "seed_generator_state"]
for state in states:
    (first, count), (second, same) = (part.numpy() for part in state.value.values)
    assert second == first + 1 and count == same
assert len(states) >= 3 and count > 0

# Both replicas skip a step in which one of them overflows, and take the same mean of the others.
with two.scope():
    variable, unused = (keras.Variable(values) for values in ([1.0, 2.0], [3.0]))
    scaling = keras.optimizers.LossScaleOptimizer(AveragingAdam(0.1))
    scaling.build([variable, unused])

@tf.function
def step(bad):
    def replica():
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        rows = tf.fill([3], (2 + tf.cast(number, tf.float32)) * 2.0**13)
        rows = tf.where(number == bad, np.inf, rows)
        # The first row of an embedding twice, the other once.
        found = [None, tf.IndexedSlices(rows, tf.constant([0, 1, 0]), tf.constant([2]))]
        means = devices.mean_over_replicas(found, [(1,), (2,)], tf.constant([1.0, 3.0])[number])
        assert means[0] is None
        scaling.apply(means[::-1], [variable, unused])
        return means[1]
    return two.experimental_local_results(two.run(replica))

for bad in (0, 1):
    step(bad)
    assert variable.numpy().tolist() == [1, 2]
for mean in step(2):
    np.testing.assert_allclose(mean, [5.5 * 2**13, 2.75 * 2**13], rtol=1e-6)
for part in variable.value.values:
    np.testing.assert_allclose(part, [0.9, 1.9], atol=1e-6)
norm = scaling.inner_optimizer.gradient_norm.numpy()
np.testing.assert_allclose(norm, np.hypot(5.5, 2.75), rtol=1e-6)
"""


def test_two_devices_train_like_one(tmp_path):
    # In a process of its own, because the devices are fixed once they have been used.
    environment = {**os.environ, "PYTHONPATH": ROOT}
    command = [sys.executable, "-c", TWO, tmp_path / "run"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_devices_takes():
    assert devices.strategy_for("cpu").num_replicas_in_sync == 1
    with pytest.raises(UserError, match="takes auto, cpu or gpu:0,1. Received: gpu"):
        devices.strategy_for("gpu")


def test_a_missing_gpu_is_named(monkeypatch):
    gpus = [tf.config.LogicalDevice(f"/device:GPU:{n}", "GPU") for n in range(2)]
    monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: gpus)
    for names in ("gpu:1,3", "gpu:3"):
        with pytest.raises(UserError, match="no gpu:3 here. GPUs: gpu:0, gpu:1"):
            devices.strategy_for(names)
    with pytest.raises(UserError, match="no gpu:2, gpu:7 here"):
        devices.on_first("gpu:7,0,2")
    with pytest.raises(UserError, match="on one device, .* Received: devices=gpu:0,1"):
        devices.strategy_for("gpu:0,1", shares_batches=False)
    assert devices.strategy_for("auto", shares_batches=False).num_replicas_in_sync == 1
