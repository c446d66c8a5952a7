"""What a task does that fills in nothing more than it must."""

import keras_tuner

from rnnapps.tasks.config import TrainingConfig
from rnnapps.tasks.task import Evaluation, Task, once_a_model


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


def test_what_is_made_of_a_model_is_made_once():
    class Counting:
        made = 0

        @once_a_model
        def _function(self, model):
            self.made += 1
            return f"{model} {self.made}"

    task, other = Counting(), Counting()
    one, two = "MODEL", "ANOTHER"
    assert [task._function(one), task._function(one)] == ["MODEL 1"] * 2
    assert [other._function(one), task._function(two)] == ["MODEL 1", "ANOTHER 2"]
    assert task._function(one) == "MODEL 3"  # which alone was kept last
