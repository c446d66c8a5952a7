"""Each padded shape is traced and compiled once, in training and in evaluation."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = str(Path(__file__).parents[1])

COUNTED = """
import dataclasses, sys
from pathlib import Path
import tensorflow as tf
from rnnapps.learner import Learner
from rnnapps.tasks.sentiment import Sentiment
from tests.test_training import CONFIG, small_splits

def programs():
    return len(list(Path(sys.argv[1]).glob("*before_optimizations.txt")))

def lengths(examples):
    return {ids.shape[1] for ids, *_ in task.batches(task.encoded(examples))}

splits = small_splits()
task = Sentiment(dataclasses.replace(CONFIG, buckets=3))
task.adapt(splits["train"])
encoded = task.encoded(splits["train"], training=True)
assert programs() == 0

learner = Learner(task, tf.distribute.get_strategy())
for epoch in range(2):
    list(learner.steps(task.batches(encoded, epoch)))
    # Three lengths, in each of which the last batch is filled up: a way forth and a way back.
    assert learner.num_shapes == task.plan.padding.num_shapes == 3
    assert 0 < programs() <= 2 * learner.num_shapes
    assert learner.num_traces == 1

model, trained = task.build(), programs()
for _ in range(2):
    for examples in splits.values():
        task.evaluate(model, examples)
    assert programs() - trained <= len(set.union(*map(lengths, splits.values())))
    # The first shape; any length.
    assert model.predict_function.experimental_get_tracing_count() <= 2
"""


def test_an_epoch_traces_and_compiles_each_shape_once(tmp_path):
    # In a process of its own, which writes down each program that XLA compiles.
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_dump_to={tmp_path}"
    environment = {**os.environ, "PYTHONPATH": ROOT, "XLA_FLAGS": flags}
    command = [sys.executable, "-c", COUNTED, tmp_path]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
