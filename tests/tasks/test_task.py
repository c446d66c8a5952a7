"""What a task does that fills in nothing more than it must."""

import keras_tuner

from rnnapps.tasks.config import TrainingConfig
from rnnapps.tasks.task import Evaluation, Task


def test_what_every_task_has_is_searched_and_nothing_is_drawn():
    task = Task(TrainingConfig(learning_rate=0.01, batch_size=32))
    space = keras_tuner.HyperParameters()
    assert task.search_space(space) == task.config
    assert {hp.name: tuple(hp.values) for hp in space.space} == {
        "learning_rate": (0.0015, 0.003, 0.006, 0.01),
        "batch_size": ("32", "auto"),
        "clip_norm": (1.0, 5.0),
    }
    assert task.figures(None, None, Evaluation({}, "")) == {}
