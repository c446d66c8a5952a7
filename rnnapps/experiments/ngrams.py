"""Networks against n-grams on the same words, and both together (Mikolov et al. 2010).

The words are the tokens of generated programs. An n-gram sees n-1 of them; a recurrent network has
no such horizon, and needs none here either: the name that a program adds up into, or the number of
brackets that are open, may have come up long before. The n-grams are smoothed (interpolated
modified Kneser–Ney), and the weights of the mixture are found on text that neither has learnt from.
Models that learnt from few programs and from many are compared.
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
        programs: how many training programs there are, from few to many.
        held_out: programs for the mixture's weights, and as many for the test.
        orders: orders of the n-gram models.
        units: units of the LSTM.
        steps: its training steps of 16 programs, whatever there is to learn from.
        implementation: how the layers are run, as for every recurrent layer; small ones are done
            sooner without the engine, which compiles. Default: `"auto"`.
    """

    programs: tuple[int, ...] = (100, 200, 400, 800)
    held_out: int = 300
    orders: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    units: int = 96
    steps: int = 450
    implementation: str = "auto"


FULL = Size()
REDUCED = Size(programs=(320,), held_out=100, orders=(1, 3, 5), units=64, steps=300)


def run(size: Size = FULL, seed: int = 0) -> Result:
    """Trains the models and measures perplexity on the test programs, with their ends."""
    texts = itertools.islice(grammar.programs(), size.programs[-1] + 2 * size.held_out)
    programs = [_WORD.findall(text) for text in texts]
    dev, test = programs[: size.held_out], programs[size.held_out : 2 * size.held_out]
    rows = [_measured(programs[-amount:], dev, test, size, seed) for amount in size.programs]
    ngrams, alone, mixed, shares = (np.array(column) for column in zip(*rows, strict=True))
    best, together = ngrams.min(axis=1), mixed.min(axis=1)  # [amounts]
    claims = {
        "the network beats every n-gram, whatever there is to learn from": (alone < best).all(),
        "the best mixture beats both": (together < np.minimum(alone, best)).all(),
    }
    numbers = {
        "tokens": [sum(map(len, programs[-amount:])) for amount in size.programs],
        "programs": size.programs,
        "orders": size.orders,
        "perplexity_of_ngrams": ngrams,
        "perplexity_of_the_network": alone,
        "perplexity_of_mixtures": mixed,
        "share_of_the_network": shares,
    }
    most = f"{size.programs[-1]} programs to learn from"
    figure = lines(
        [
            Panel(
                size.orders,
                {"n-grams (Kneser–Ney)": ngrams[-1], "mixture": mixed[-1]},
                "order n",
                "perplexity per token",
                most,
                yscale="log",
                levels={"LSTM alone": alone[-1]},
            ),
            Panel(
                size.programs,
                {"best n-grams": best, "best mixture": together, "LSTM alone": alone},
                "training programs",
                "perplexity per token",
                "the best of each",
                xscale="log",
                yscale="log",
            ),
        ]
    )
    return Result(rounded(claims), rounded(numbers), {"ngrams": figure})


def _measured(train, dev, test, size: Size, seed: int) -> tuple:
    """Returns the perplexities on the test programs, and what of each mixture is the network.

    They are those of the n-grams by order, of the network, and of the mixtures by order.
    """
    network = _Network(train, dev, size, seed)
    recurrent = [network.log_probabilities(part) for part in (dev, test)]
    counted, mixed, shares = [], [], []
    for order in size.orders:
        model = models.KneserNey(train, order)
        found = [
            np.concatenate([model.log_probabilities(program) for program in part])
            for part in (dev, test)
        ]
        weights = models.mixture_weights([recurrent[0], found[0]])
        mixture = models.mixture_log_probabilities([recurrent[1], found[1]], weights)
        counted.append(np.exp(-found[1].mean()))
        mixed.append(np.exp(-mixture.mean()))
        shares.append(weights[0])
    return counted, np.exp(-recurrent[1].mean()), mixed, shares


class _Network:
    """A recurrent language model of programs, trained on being made."""

    def __init__(self, train: list[list[str]], dev: list[list[str]], size: Size, seed: int):
        keras.utils.set_random_seed(seed)
        words = tuple(dict.fromkeys(itertools.chain(*train)))
        # Id 0 is padding; a word that was not seen has the last id.
        self._ids = {word: i for i, word in enumerate(words, _BOUNDARY + 1)}
        reader = models.SequenceEncoder(
            "lstm", size.units, bidirectional=False, implementation=size.implementation
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
