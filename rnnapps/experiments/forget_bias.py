"""Where an LSTM's forget gate should start (Gers et al. 2000; Jozefowicz et al. 2015).

With a bias of 0 the gate starts half open: each step halves the cell and the error that goes back
along it, and a fact of long ago has no say in what is learnt first. The bias is all that differs
between the networks here, which are trained on texts of one gap only.
"""

import dataclasses

import keras
import numpy as np

from rnnapps.experiments import memory_models, memory_texts
from rnnapps.experiments.experiment import Result, rounded
from rnnapps.figures.lines import Panel, lines


@dataclasses.dataclass(frozen=True)
class Size:
    """How large the experiment is.

    Args:
        biases: where the forget gate's bias starts.
        gap: the gap of the texts.
        seeds: how often each network is trained.
        units: units of the LSTM.
        parts: how often it is tested in the course of training.
        steps: training steps of 32 texts before each test.
        implementation: how the layers are run, as for every recurrent layer; small ones are done
            sooner without the engine, which compiles. Default: `"auto"`.
    """

    biases: tuple[float, ...] = (0.0, 1.0, 2.0)
    gap: int = 30
    seeds: int = 3
    units: int = 32
    parts: int = 12
    steps: int = 40
    implementation: str = "auto"


FULL = Size()
REDUCED = Size(
    biases=(0.0, 2.0), gap=25, seeds=1, units=24, parts=4, steps=40, implementation="reference"
)


def run(size: Size = FULL, seed: int = 0) -> Result:
    """Trains the networks and tests them on the way."""
    names = {bias: f"bias {bias:g}" for bias in size.biases}
    course = {names[bias]: _course(bias, size, seed) for bias in size.biases}  # [seeds, parts]
    steps = np.arange(1, size.parts + 1) * size.steps
    first, last = names[size.biases[0]], names[size.biases[-1]]
    mean = {name: accuracy.mean() for name, accuracy in course.items()}
    claims = {
        "the higher the forget gate's bias starts, the sooner the gap is learnt": bool(
            np.all(np.diff(list(mean.values())) > 0)
        ),
        "with the lowest less than half of that is learnt in the same time": bool(
            mean[first] - memory_texts.CHANCE < (mean[last] - memory_texts.CHANCE) / 2
        ),
    }
    numbers = {
        "gap": size.gap,
        "chance": memory_texts.CHANCE,
        "steps": steps,
        "accuracy": course,
        "mean_over_training": mean,
    }
    panel = Panel(
        steps,
        course,
        "training steps",
        "accuracy",
        f"LSTM, a gap of {size.gap} words",
        ylim=(0, 1.05),
        levels={"chance": memory_texts.CHANCE},
    )
    return Result(claims, rounded(numbers), {"forget-bias": lines([panel])})


def _course(bias: float, size: Size, seed: int) -> np.ndarray:
    """Returns the share of right answers in the course of training, `[seeds, parts]`."""
    right = np.zeros((size.seeds, size.parts))
    options = {"unit_forget_bias": bias, "implementation": size.implementation}
    model = memory_models.acceptor("LSTM", size.units, **options)
    for repeat in range(size.seeds):
        keras.utils.set_random_seed(seed + repeat)
        rng = np.random.default_rng(seed + repeat)
        fresh = memory_models.acceptor("LSTM", size.units, **options)
        memory_models.restart(model, fresh)
        for part in range(size.parts):
            memory_models.fit(model, rng, size.gap, size.steps)
            right[repeat, part] = memory_models.accuracy(model, rng, size.gap)
    return right
