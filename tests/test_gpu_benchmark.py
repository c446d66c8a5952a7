"""The benchmark of GPUs, with the CPU standing in: it sees what it is there to see."""

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import gpu  # noqa: E402


def test_operations_on_another_device_are_counted():
    for device, expected in (("gpu:0", 1), ("cpu:0", 0)):
        graph = tf.function(lambda x: tf.tanh(x) + tf.cumsum(x))
        found = gpu.on_other_devices(lambda graph=graph: graph(tf.ones((3, 2))), device)
        assert found["Tanh"] == found["Cumsum"] == expected
        assert bool(found) == bool(expected)


def test_results_that_differ_are_seen(monkeypatch):
    none, padded, with_empty = gpu.masks()
    assert padded.sum(axis=1).min() == 1 and with_empty.sum(axis=1).min() == 0
    assert gpu.difference("Elman", "float32", with_empty, "cpu:0") <= 1e-6
    step, factors = gpu.training_step, iter([1, 1.5])

    def wrong_the_second_time(*arguments):
        run, factor = step(*arguments), next(factors)
        return lambda x: [np.array(v) * factor for v in run(x)]

    monkeypatch.setattr(gpu, "training_step", wrong_the_second_time)
    assert gpu.difference("Elman", "float32", none, "cpu:0") > 0.1
