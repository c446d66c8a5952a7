"""How far back networks remember: "I grew up in France … I speak fluent ___".

Bengio, Simard & Frasconi (1994) asked it first: a fact at the beginning decides the answer at the
end, and what stands between says nothing. For each gap a network is trained on texts of that gap
and no other, so that it must find the one word that counts among all, from the error at the end.
The gates of LSTM and GRU start such that a state lasts as long as the texts (`slow_gates`). The
adding problem (Hochreiter & Schmidhuber 1997) is the same question for numbers: two of a row are
marked, and their sum is asked for at the end.
"""

import dataclasses

import keras
import numpy as np

from rnnapps import models
from rnnapps.experiments import memory_models, memory_texts
from rnnapps.experiments.experiment import Result, rounded
from rnnapps.figures.lines import Panel, lines


@dataclasses.dataclass(frozen=True)
class Size:
    """How large the experiment is.

    Args:
        cells: which networks take part.
        gaps: the gaps of the texts.
        seeds: how often each network is trained.
        units: units of the recurrent layer.
        steps: training steps of 32 texts.
        numbers: length of the rows of the adding problem; 0 leaves it out.
        adding_steps: its training steps of 32 rows.
        implementation: how the layers are run, as for every recurrent layer; small ones are done
            sooner without the engine, which compiles. Default: `"auto"`.
    """

    cells: tuple[str, ...] = tuple(memory_models.CELLS)
    gaps: tuple[int, ...] = (5, 10, 20, 50, 100, 200)
    seeds: int = 3
    units: int = 32
    steps: int = 300
    numbers: int = 50
    adding_steps: int = 600
    implementation: str = "auto"


FULL = Size()
REDUCED = Size(
    cells=("Elman", "LSTM"),
    gaps=(5, 100),
    seeds=1,
    units=24,
    steps=120,
    numbers=0,
    adding_steps=0,
    implementation="reference",
)


def run(size: Size = FULL, seed: int = 0) -> Result:
    """Trains the networks and measures what they remember."""
    remembered = {name: _remembered(name, size, seed) for name in size.cells}  # [seeds, gaps]
    claims = {
        "the LSTM holds 95% at every gap": bool(np.min(remembered["LSTM"].mean(axis=0)) >= 0.95),
        "the Elman network is at chance at the longest gap": bool(
            remembered["Elman"].mean(axis=0)[-1] <= memory_texts.CHANCE + 0.1
        ),
    }
    numbers = {
        "gaps": size.gaps,
        "chance": memory_texts.CHANCE,
        "accuracy": remembered,
    }
    panels = [
        Panel(
            size.gaps,
            remembered,
            "gap (words)",
            "accuracy",
            "a fact, and much later a question",
            xscale="log",
            ylim=(0, 1.05),
            levels={"chance": memory_texts.CHANCE},
        )
    ]
    if size.numbers:
        errors = {name: _adding_errors(name, size, seed) for name in size.cells}  # [points]
        steps = np.arange(1, len(errors["LSTM"]) + 1) * size.adding_steps // len(errors["LSTM"])
        guess = 1 / 6  # the variance of the sum of two numbers between 0 and 1
        numbers["adding"] = {
            "steps": steps,
            "mean_squared_error": errors,
            "guess": guess,
        }
        claims["the LSTM learns to add, the Elman network guesses"] = bool(
            errors["LSTM"][-1] < 0.1 * guess and errors["Elman"][-1] > 0.5 * guess
        )
        panels.append(
            Panel(
                steps,
                errors,
                "training steps",
                "mean squared error",
                f"adding two of {size.numbers} numbers",
                yscale="log",
                levels={"a guess": guess},
            )
        )
    return Result(claims, rounded(numbers), {"memory-gap": lines(panels)})


def _remembered(name: str, size: Size, seed: int) -> np.ndarray:
    """Returns the share of right answers, `[seeds, gaps]`."""
    right = np.zeros((size.seeds, len(size.gaps)))
    options = memory_models.slow_gates(name, size.units)
    options["implementation"] = size.implementation
    for place, gap in enumerate(size.gaps):
        model = memory_models.acceptor(name, size.units, **options)
        for repeat in range(size.seeds):
            keras.utils.set_random_seed(seed + repeat)
            rng = np.random.default_rng(seed + repeat)
            memory_models.restart(model, memory_models.acceptor(name, size.units, **options))
            memory_models.fit(model, rng, gap, size.steps)
            right[repeat, place] = memory_models.accuracy(model, rng, gap)
    return right


def _adding_errors(name: str, size: Size, seed: int) -> np.ndarray:
    """Returns the mean squared error on new rows in the course of training, `[points]`."""
    keras.utils.set_random_seed(seed)
    rng = np.random.default_rng(seed)
    cell, own = memory_models.CELLS[name]
    options = {**own, **memory_models.slow_gates(name, size.units)}
    options["implementation"] = size.implementation
    reader = models.SequenceEncoder(cell, size.units, bidirectional=False, **options)
    model = models.Acceptor(reader, num_classes=1, pooling="last")
    model.compile(
        keras.optimizers.Adam(memory_models.LEARNING_RATES[name], global_clipnorm=1.0), "mse"
    )
    points = 12
    train = rows_to_add(rng, size.adding_steps * 32, size.numbers)
    test = rows_to_add(rng, 512, size.numbers)
    errors = []
    for part in np.array_split(np.arange(len(train[0])), points):
        model.fit(train[0][part], train[1][part], 32, shuffle=False, verbose=0)
        errors.append(np.mean((model.predict(test[0], 512, verbose=0) - test[1]) ** 2))
    return np.array(errors)


def rows_to_add(rng: np.random.Generator, rows: int, numbers: int) -> tuple[np.ndarray, np.ndarray]:
    """Draws rows of the adding problem: `[rows, numbers, 2]`, and the sums `[rows, 1]`."""
    values = rng.random((rows, numbers))
    marks = np.zeros((rows, numbers))
    half = numbers // 2
    for first, places in ((0, half), (half, numbers - half)):
        marks[np.arange(rows), first + rng.integers(0, places, rows)] = 1
    sums = (values * marks).sum(axis=1, keepdims=True)
    return np.stack([values, marks], axis=-1).astype("float32"), sums.astype("float32")
