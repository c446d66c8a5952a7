"""Networks against n-grams on the same words, and both together (Mikolov et al. 2010).

The words are the tokens of generated programs. An n-gram sees n-1 of them; a recurrent network has
no such horizon, and needs none here either: the name that a program adds up into, or the number of
brackets that are open, may have come up long before. The n-grams are smoothed (interpolated
modified Kneser–Ney), and the weights of the mixture are found on text that neither has learnt from.
Networks of different sizes are compared, from one that is worse than the n-grams on.
"""

import dataclasses
import itertools
import re

import keras
import numpy as np

from rnnapps import models
from rnnapps.data.datasets.sample_programs import grammar
from rnnapps.experiments.experiment import Result, rounded
from rnnapps.figures.lines import Panel, lines

_BATCH = 16
# A new line goes with its indentation.
_WORD = re.compile(r"\n *|\w+|[^\w\s]")
_BOUNDARY = 1  # the id of what stands before the first token and after the last


@dataclasses.dataclass(frozen=True)
class Size:
    """How large the experiment is.

    Args:
        programs: training programs.
        held_out: programs for the mixture's weights, and as many for the test.
        orders: orders of the n-gram models.
        units: units of the LSTMs, from few to many.
        steps: their training steps of 16 programs.
        implementation: how the layers are run, as for every recurrent layer; small ones are done
            sooner without the engine, which compiles. Default: `"auto"`.
    """

    programs: int = 800
    held_out: int = 300
    orders: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    units: tuple[int, ...] = (16, 32, 48, 64, 96)
    steps: int = 450
    implementation: str = "auto"


FULL = Size()
REDUCED = Size(programs=320, held_out=100, orders=(1, 3, 5), units=(64,), steps=300)


def run(size: Size = FULL, seed: int = 0) -> Result:
    """Trains the models and measures perplexity on the test programs, with their ends."""
    texts = itertools.islice(grammar.programs(), size.programs + 2 * size.held_out)
    programs = [_WORD.findall(text) for text in texts]
    train, dev, test = (
        programs[: size.programs],
        programs[size.programs : -size.held_out],
        programs[-size.held_out :],
    )
    counted = [_log_probabilities(models.KneserNey(train, n), dev, test) for n in size.orders]
    ngrams = np.array([_perplexity(found[1]) for found in counted])  # [orders]
    alone, mixed, shares = [], [], []
    for units in size.units:
        network = _Network(train, dev, units, size, seed)
        recurrent = [network.log_probabilities(part) for part in (dev, test)]
        alone.append(_perplexity(recurrent[1]))
        weights = [models.mixture_weights([recurrent[0], found[0]]) for found in counted]
        mixtures = [
            models.mixture_log_probabilities([recurrent[1], found[1]], of)
            for of, found in zip(weights, counted, strict=True)
        ]
        mixed.append([_perplexity(mixture) for mixture in mixtures])
        shares.append([of[0] for of in weights])
    alone, mixed = np.array(alone), np.array(mixed)  # [units], [units, orders]
    best, together = ngrams.min(), mixed.min(axis=1)
    even = np.abs(np.log(alone / best)).argmin()
    claims = {
        "the largest network beats every n-gram": alone[-1] < best,
        "where network and n-grams are nearest to each other, a mixture beats both by 2%": (
            together[even] < 0.98 * min(alone[even], best)
        ),
    }
    numbers = {
        "tokens": {"train": sum(map(len, train)), "test": len(counted[0][1])},
        "orders": size.orders,
        "perplexity_of_ngrams": ngrams,
        "units": size.units,
        "perplexity_of_networks": alone,
        "perplexity_of_mixtures": mixed,
        "share_of_the_network": shares,
    }
    figure = lines(
        [
            Panel(
                size.orders,
                {
                    "n-grams (Kneser–Ney)": ngrams,
                    f"with the LSTM of {size.units[even]}": mixed[even],
                },
                "order n",
                "perplexity per token",
                yscale="log",
                levels={f"LSTM of {size.units[even]} alone": alone[even]},
            ),
            Panel(
                size.units,
                {"LSTM": alone, "best mixture": together},
                "units of the LSTM",
                "perplexity per token",
                xscale="log",
                yscale="log",
                levels={"best n-gram": best},
            ),
        ]
    )
    return Result(rounded(claims), rounded(numbers), {"ngrams": figure})


def _perplexity(log_probabilities: np.ndarray) -> float:
    return float(np.exp(-log_probabilities.mean()))


def _log_probabilities(model: models.KneserNey, *parts: list[list[str]]) -> list[np.ndarray]:
    """Measures all tokens of programs, one after the other, and their ends."""
    return [np.concatenate([model.log_probabilities(text) for text in part]) for part in parts]


class _Network:
    """A recurrent language model of programs, trained on being made."""

    def __init__(
        self, train: list[list[str]], dev: list[list[str]], units: int, size: Size, seed: int
    ):
        keras.utils.set_random_seed(seed)
        words = tuple(dict.fromkeys(itertools.chain(*train)))
        # Id 0 is padding; a word that was not seen has the last id.
        self._ids = {word: i for i, word in enumerate(words, _BOUNDARY + 1)}
        reader = models.SequenceEncoder(
            "lstm", units, bidirectional=False, implementation=size.implementation
        )
        encoder = models.TextEncoder(len(words) + _BOUNDARY + 2, 64, reader)
        self._model = models.LanguageModel(models.Decoder(encoder, dropout=0.2))
        rate = keras.optimizers.schedules.CosineDecay(0.01, size.steps)
        self._model.compile(
            keras.optimizers.Adam(rate, global_clipnorm=1.0),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        self._longest = max(map(len, itertools.chain(train, dev))) + 1
        (inputs, targets), unseen = self._padded(train), self._padded(dev)
        batches = len(train) // _BATCH
        used = slice(batches * _BATCH)
        self._model.fit(
            inputs[used],
            targets[used],
            _BATCH,
            -(-size.steps // batches),
            sample_weight=(targets[used] != 0).astype("float32"),
            validation_data=(*unseen, (unseen[1] != 0).astype("float32")),
            validation_batch_size=100,
            # What it learnt by heart is undone.
            callbacks=[keras.callbacks.EarlyStopping(patience=10, restore_best_weights=True)],
            verbose=0,
        )

    def log_probabilities(self, programs: list[list[str]]) -> np.ndarray:
        """Measures all tokens and ends of programs, one after the other, in nats."""
        inputs, targets = self._padded(programs)
        found, _ = self._model.log_probabilities(inputs, targets)
        return np.array(found, "float64")[targets != 0]

    def _padded(self, programs: list[list[str]]) -> tuple[np.ndarray, np.ndarray]:
        longest = max(self._longest, max(map(len, programs)) + 1)
        ids = np.zeros((len(programs), longest + 1), "int32")  # [programs, time + 1]
        unseen = len(self._ids) + _BOUNDARY + 1
        for row, program in zip(ids, programs, strict=True):
            row[0] = row[len(program) + 1] = _BOUNDARY
            row[1 : len(program) + 1] = [self._ids.get(word, unseen) for word in program]
        inputs = ids[:, :-1] * (ids[:, 1:] != 0)  # nothing is read behind the last that is asked
        return inputs, ids[:, 1:]
