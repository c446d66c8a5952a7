"""Networks against n-grams on the same words, and both together (Mikolov et al. 2010).

The words are the tokens of generated programs. An n-gram sees n-1 of them; a recurrent network has
no such horizon, and needs none here either: the name that a program adds up into, or the number of
brackets that are open, may have come up long before. The n-grams are smoothed (interpolated
modified Kneser–Ney), and the weights of the mixture are found on text that neither has learnt from.
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
        units: units of the LSTM.
        epochs: how often it reads the training programs.
        implementation: how the layers are run, as for every recurrent layer; small ones are done
            sooner without the engine, which compiles. Default: `"auto"`.
    """

    programs: int = 700
    held_out: int = 400
    orders: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    units: int = 96
    epochs: int = 10
    implementation: str = "auto"


FULL = Size()
REDUCED = Size(programs=700, held_out=100, orders=(1, 3, 5), units=64, implementation="reference")


def run(size: Size = FULL, seed: int = 0) -> Result:
    """Trains the models and measures perplexity on the test programs, with their ends."""
    texts = itertools.islice(grammar.programs(), size.programs + 2 * size.held_out)
    programs = [_WORD.findall(text) for text in texts]
    train, dev, test = (
        programs[: size.programs],
        programs[size.programs : -size.held_out],
        programs[-size.held_out :],
    )
    words = dict.fromkeys(itertools.chain(*train))
    ngrams = {order: models.KneserNey(train, order) for order in size.orders}
    network = _Network(train, tuple(words), size, seed)

    def nats(of) -> tuple[np.ndarray, np.ndarray]:
        """Returns the log-probabilities of all tokens of the dev and of the test programs."""
        return tuple(np.concatenate([of(program) for program in part]) for part in (dev, test))

    recurrent = tuple(network.log_probabilities(part) for part in (dev, test))
    perplexity, mixed, shares = {}, {}, {}
    for order, model in ngrams.items():
        counted = nats(model.log_probabilities)
        weights = models.mixture_weights([recurrent[0], counted[0]])
        mixture = models.mixture_log_probabilities([recurrent[1], counted[1]], weights)
        perplexity[order] = np.exp(-counted[1].mean())
        mixed[order] = np.exp(-mixture.mean())
        shares[order] = weights[0]
    alone = np.exp(-recurrent[1].mean())
    best = min(perplexity.values())
    claims = {
        "the network beats every n-gram": bool(alone < best),
        "with the best n-gram it is better than alone": bool(min(mixed.values()) < alone),
    }
    numbers = {
        "tokens": {"train": sum(map(len, train)), "test": len(recurrent[1])},
        "different_tokens": len(words),
        "perplexity_of_ngrams": perplexity,
        "perplexity_of_the_network": alone,
        "perplexity_of_mixtures": mixed,
        "share_of_the_network": shares,
    }
    panel = Panel(
        size.orders,
        {"n-grams (Kneser–Ney)": list(perplexity.values()), "mixture": list(mixed.values())},
        "order n",
        "perplexity per token",
        yscale="log",
        levels={"LSTM alone": alone},
    )
    return Result(claims, rounded(numbers), {"ngrams": lines([panel])})


class _Network:
    """A recurrent language model of programs, trained on being made."""

    def __init__(self, train: list[list[str]], words: tuple[str, ...], size: Size, seed: int):
        keras.utils.set_random_seed(seed)
        # Id 0 is padding; a word that was not seen has the last id.
        self._ids = {word: i for i, word in enumerate(words, _BOUNDARY + 1)}
        reader = models.SequenceEncoder(
            "lstm", size.units, bidirectional=False, implementation=size.implementation
        )
        encoder = models.TextEncoder(len(words) + _BOUNDARY + 2, 64, reader)
        self._model = models.LanguageModel(models.Decoder(encoder, dropout=0.2))
        rate = keras.optimizers.schedules.CosineDecay(0.01, size.epochs * len(train) // _BATCH)
        self._model.compile(
            keras.optimizers.Adam(rate, global_clipnorm=1.0),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        self._longest = max(map(len, train)) + 1
        inputs, targets = self._padded(train)
        weights = (targets != 0).astype("float32")
        self._model.fit(inputs, targets, _BATCH, size.epochs, sample_weight=weights, verbose=0)

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
