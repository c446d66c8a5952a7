"""Reading programs and printing what they print (Zaremba & Sutskever 2014).

A sequence-to-sequence network sees a program character by character and writes its output. How hard
a program is, is the number of digits of its numbers (`length`) and the number of operations in each
other (`nesting`). What is drawn for training makes a curriculum:

========== ===========================================================
none       programs of the hardest kind only
naive      the easy kinds first, a harder one after each part of the training
combined   half of the programs from the naive curriculum's kind, half from any
========== ===========================================================

The second task is addition of two numbers, and nothing else.
"""

import dataclasses
import itertools
import random
from collections.abc import Callable

import keras
import numpy as np

from rnnapps import models
from rnnapps.experiments.experiment import Result, rounded
from rnnapps.figures.lines import Panel, lines
from rnnapps.layers import MultiplicativeAttention

CURRICULA = ("none", "naive", "combined")
_BOUNDARY = "$"  # what stands before what is written, and after it
# Id 0 is padding.
_CHARACTERS = ("", _BOUNDARY, *"0123456789+-*():=<>.abcdefghijklmnopqrstuvwxyz \n")
_IDS = {character: i for i, character in enumerate(_CHARACTERS)}
_PARTS = 12

Draw = Callable[[random.Random], tuple[str, str]]


@dataclasses.dataclass(frozen=True)
class Size:
    """How large the experiment is.

    Args:
        digits: digits of the numbers that are added.
        addition_steps: training steps of the adder; 0 leaves it out.
        lengths: the digits of the programs' numbers.
        nestings: the operations of the programs.
        steps: training steps for each curriculum; 0 leaves the programs out.
        batch_size: pairs of a training step, all new.
        units: units of encoder and decoder.
        tests: programs of each kind that are tested.
        implementation: how the layers are run, as for every recurrent layer; small ones are done
            sooner without the engine, which compiles. Default: `"auto"`.
    """

    digits: int = 3
    addition_steps: int = 8_000
    lengths: tuple[int, ...] = (1, 2, 3)
    nestings: tuple[int, ...] = (1, 2)
    steps: int = 2_000
    batch_size: int = 128
    units: int = 128
    tests: int = 200
    implementation: str = "auto"


FULL = Size()
REDUCED = Size(
    digits=1,
    addition_steps=400,
    lengths=(1,),
    nestings=(1,),
    steps=0,
    batch_size=64,
    units=64,
    tests=100,
    implementation="reference",
)


def run(size: Size = FULL, seed: int = 0) -> Result:
    """Trains the networks and measures what share of their characters and answers is right."""
    claims, numbers, panels = {}, {}, []
    if size.addition_steps:
        course, right = _learn_addition(size, seed)
        claims[f"of unseen sums of {size.digits} digits more than 97% are right to the last"] = (
            bool(right > 0.97)
        )
        numbers["addition"] = {**course, "whole_answers": right}
        panels.append(
            Panel(
                course["steps"],
                {"characters": course["characters"], "whole answers": course["answers"]},
                "training steps",
                "share that is right",
                f"adding two numbers of up to {size.digits} digits",
                ylim=(0, 1.05),
            )
        )
    if size.steps:
        kinds = list(itertools.product(size.nestings, size.lengths))
        accuracy = {name: _learn_programs(name, kinds, size, seed) for name in CURRICULA}
        answers = {name: of[:, 1] for name, of in accuracy.items()}  # [kinds] each
        claims["a combined curriculum is no worse than none on the hardest programs"] = bool(
            answers["combined"][-1] >= answers["none"][-1]
        )
        claims["with it, harder programs are answered less often than easy ones"] = bool(
            answers["combined"][0] > answers["combined"][-1]
        )
        numbers["programs"] = {
            "kinds": [f"length {length}, nesting {nesting}" for nesting, length in kinds],
            "characters": {name: of[:, 0] for name, of in accuracy.items()},
            "whole_answers": answers,
        }
        panels.append(
            Panel(
                [f"{length}/{nesting}" for nesting, length in kinds],
                answers,
                "digits / nesting of the programs",
                "whole answers that are right",
                "small programs, by curriculum",
                ylim=(0, 1.05),
            )
        )
    return Result(claims, rounded(numbers), {"learning-to-execute": lines(panels)})


def program(rng: random.Random, length: int, nesting: int) -> str:
    """Writes a program: sums, products with a small number, conditions, loops and variables.

    Args:
        rng: what is drawn from.
        length: digits of its numbers.
        nesting: operations that are put into each other.

    Returns:
        Lines of Python, of which the last prints a number.

    Example:

    >>> print(program(random.Random(7), length=2, nesting=2))
    f=60
    b=(f+19)
    for x in range(2):
      b=b-84
    print(b)
    """

    def number() -> int:
        return rng.randrange(10 ** (length - 1) if length > 1 else 0, 10**length)

    names = iter(rng.sample("abcdefgh", nesting))
    before, expression = [], str(number())
    for _ in range(nesting):
        operation = rng.choice(("add", "subtract", "multiply", "condition", "loop", "variable"))
        if operation == "variable":
            name = next(names)
            before.append(f"{name}={expression}")
            expression = f"({name}{rng.choice('+-')}{number()})"
        elif operation == "loop":
            name = next(names)
            before += [f"{name}={expression}", f"for x in range({rng.randrange(1, 10)}):"]
            before.append(f"  {name}={name}{rng.choice('+-')}{number()}")
            expression = name
        elif operation == "condition":
            test = f"{number()}{rng.choice('<>')}{number()}"
            expression = f"({expression} if {test} else {number()})"
        elif operation == "multiply":
            expression = f"({expression}*{rng.randrange(2, 10)})"
        else:
            expression = f"({expression}{'+' if operation == 'add' else '-'}{number()})"
    return "\n".join([*before, f"print({expression})"])


def output(text: str) -> str:
    """Returns what a program of `program` prints, as Python runs it."""
    printed = []
    exec(text, {"print": lambda value: printed.append(str(value)), "range": range})  # noqa: S102
    return printed[-1]


def _sum_of(digits: int) -> Draw:
    """Draws sums of two numbers of up to so many digits."""

    def draw(rng: random.Random) -> tuple[str, str]:
        a, b = (rng.randrange(10**digits) for _ in range(2))
        return f"{a}+{b}", str(a + b)

    return draw


def _programs_of(kinds: list[tuple[int, int]]) -> Draw:
    """Draws programs, of each kind as many."""

    def draw(rng: random.Random) -> tuple[str, str]:
        nesting, length = rng.choice(kinds)
        text = program(rng, length, nesting)
        return text, output(text)

    return draw


def _learn_addition(size: Size, seed: int) -> tuple[dict, float]:
    """Returns the course of training, and the share of unseen sums that are right at its end."""
    draw = _sum_of(size.digits)
    rng = random.Random(seed)
    tests = [draw(rng) for _ in range(min(1_000, 10 ** (2 * size.digits - 1)))]
    learner = _Learner(tests, 2 * size.digits + 1, size.digits + 2, size.addition_steps, size, seed)
    steps = size.addition_steps // _PARTS
    measured = []
    for _ in range(_PARTS):
        learner.learn(draw, steps)
        measured.append(learner.measure(tests))
    characters, answers = zip(*measured, strict=True)
    course = {
        "steps": steps * np.arange(1, _PARTS + 1),
        "characters": characters,
        "answers": answers,
    }
    return course, answers[-1]


def _learn_programs(
    curriculum: str, kinds: list[tuple[int, int]], size: Size, seed: int
) -> np.ndarray:
    """Trains by a curriculum; returns the right characters and answers by kind, `[kinds, 2]`."""
    rng = random.Random(seed)
    tests = {kind: [_programs_of([kind])(rng) for _ in range(size.tests)] for kind in kinds}
    everything = list(itertools.chain(*tests.values()))
    longest = max(len(text) for text, _ in everything) + 8
    learner = _Learner(everything, longest, 8, size.steps, size, seed)
    for part in range(_PARTS):
        easy = kinds[: part * len(kinds) // _PARTS + 1]
        drawn = {
            "none": [kinds[-1]],
            "naive": [easy[-1]],
            "combined": [*[easy[-1]] * len(kinds), *kinds],
        }[curriculum]
        learner.learn(_programs_of(drawn), size.steps // _PARTS)
    return np.array([learner.measure(tests[kind]) for kind in kinds])


class _Learner:
    """A sequence-to-sequence network, and pairs that it must never learn from.

    Args:
        tests: those pairs.
        source: the most characters that it reads; a longer pair is not drawn.
        target: the most that it writes, with the end.
        steps: all training steps, at whose end the learning rate is 0.
        size: the experiment's size.
        seed: what the weights and the pairs are drawn from.
    """

    def __init__(self, tests, source: int, target: int, steps: int, size: Size, seed: int):
        keras.utils.set_random_seed(seed)
        self._held_out = {text for text, _ in tests}
        self._shape = source, target
        self._batch_size = size.batch_size
        self._rng = random.Random(f"training {seed}")
        reading, writing = (
            models.TextEncoder(
                len(_CHARACTERS),
                32,
                models.SequenceEncoder(
                    "lstm", units, bidirectional=both, implementation=size.implementation
                ),
            )
            for units, both in ((size.units // 2, True), (size.units, False))
        )
        decoder = models.Decoder(writing, MultiplicativeAttention())
        self._model = models.EncoderDecoder(reading, decoder)
        rate = keras.optimizers.schedules.CosineDecay(0.006, steps)
        self._model.compile(
            keras.optimizers.Adam(rate, global_clipnorm=1.0),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )

    def learn(self, draw: Draw, steps: int) -> None:
        """Takes training steps on new pairs."""
        pairs = []
        while len(pairs) < steps * self._batch_size:
            text, answer = draw(self._rng)
            fits = len(text) <= self._shape[0] and len(answer) < self._shape[1]
            if fits and text not in self._held_out:
                pairs.append((text, answer))
        inputs, following = self._encoded(pairs)
        weights = (following != 0).astype("float32")
        self._model.fit(
            inputs, following, self._batch_size, sample_weight=weights, shuffle=False, verbose=0
        )

    def measure(self, pairs: list[tuple[str, str]]) -> tuple[float, float]:
        """Returns the share of characters, after the right ones before them, and of whole answers.

        An answer all of whose characters are right after the right ones before them is what the
        network writes by itself, the likeliest character each time.
        """
        inputs, following = self._encoded(pairs)
        written = self._model.predict(inputs, self._batch_size, verbose=0).argmax(-1)
        right, there = written == following, following != 0  # [pairs, target]
        return float(right[there].mean()), float((right | ~there).all(axis=1).mean())

    def _encoded(self, pairs: list[tuple[str, str]]) -> tuple[dict[str, np.ndarray], np.ndarray]:
        source, target = (np.zeros((len(pairs), width), "int32") for width in self._shape)
        following = np.zeros_like(target)
        for row, (text, answer) in enumerate(pairs):
            source[row, : len(text)] = [_IDS[character] for character in text]
            ids = [_IDS[character] for character in answer]
            target[row, : len(ids) + 1] = [_IDS[_BOUNDARY], *ids]
            following[row, : len(ids) + 1] = [*ids, _IDS[_BOUNDARY]]
        return {"source": source, "target": target}, following
