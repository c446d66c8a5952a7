"""What both sides are good for: "I am ___ hungry, and I can eat half a pig".

What belongs into the blank is told before it in half of the texts and after it in the other half.
A network that reads forwards knows the one, a network that reads backwards the other, and a
bidirectional one (Schuster & Paliwal 1997) both.
"""

import dataclasses
import itertools

import keras
import numpy as np

from rnnapps import models
from rnnapps.experiments.experiment import Result, rounded
from rnnapps.figures.bars import bars

FILLINGS = ("very", "hardly", "not")
_SUBJECTS = ("I am", "we are", "you are", "they are", "my friends are", "the children are")
# What a subject did, by what it is, and how much so.
_EVIDENCE = {
    "hungry": {
        "very": ("can eat half a pig", "ordered pizza for three", "emptied the whole fridge"),
        "hardly": ("will share a small salad", "took one biscuit", "had half a bowl of soup"),
        "not": ("ate an hour ago", "left the plates full", "will have nothing at all"),
    },
    "tired": {
        "very": ("fell asleep on the stairs", "slept through the concert", "cannot lift an arm"),
        "hardly": ("sat down for a minute", "yawned only once", "closed one eye for a while"),
        "not": ("danced until the morning", "went for another run", "slept for ten hours"),
    },
    "cold": {
        "very": ("put on three coats", "cannot feel a finger", "lit the stove and stayed there"),
        "hardly": ("took a thin scarf", "closed one of the windows", "rubbed both hands once"),
        "not": ("swim in the river", "opened all windows", "sit in the sun in shirts"),
    },
}
_BLANK = "___"


@dataclasses.dataclass(frozen=True)
class Size:
    """How large the experiment is.

    Args:
        seeds: how often each network is trained.
        units: units of an LSTM in each direction.
        epochs: how often the training texts are read.
        implementation: how the layers are run, as for every recurrent layer; small ones are done
            sooner without the engine, which compiles. Default: `"auto"`.
    """

    seeds: int = 3
    units: int = 24
    epochs: int = 20
    implementation: str = "auto"


FULL = Size()
REDUCED = Size(seeds=1, epochs=8, implementation="reference")


def run(size: Size = FULL, seed: int = 0) -> Result:
    """Trains readers of one side, of the other and of both."""
    readers = {
        "forward": {"bidirectional": False, "reversed_texts": False},
        "backward": {"bidirectional": False, "reversed_texts": True},
        "bidirectional": {"bidirectional": True, "reversed_texts": False},
    }
    accuracy = {
        name: np.stack([_accuracies(size, seed + repeat, **how) for repeat in range(size.seeds)])
        for name, how in readers.items()
    }  # [seeds, sides] each
    mean = {name: of.mean(axis=0) for name, of in accuracy.items()}
    chance = 1 / len(FILLINGS)
    claims = {
        "forwards, what comes after the blank is of no use": bool(
            mean["forward"][1] < chance + 0.15 and mean["forward"][0] > 0.9
        ),
        "backwards, what comes before it is of no use": bool(
            mean["backward"][0] < chance + 0.15 and mean["backward"][1] > 0.9
        ),
        "a bidirectional reader knows both": bool(mean["bidirectional"].min() > 0.9),
    }
    sides = ("told before the blank", "told after the blank")
    numbers = {
        "chance": chance,
        "accuracy": {
            name: dict(zip(sides, of.T.tolist(), strict=True)) for name, of in accuracy.items()
        },
    }
    figure = bars(accuracy, sides, "accuracy", ylim=(0, 1.05), levels={"chance": chance})
    return Result(claims, rounded(numbers), {"both-sides": figure})


def texts() -> list[tuple[list[str], int, int, int]]:
    """Makes all texts.

    Returns:
        For each text its words; what belongs into its blank, the index in `FILLINGS`; the side
        where that is told, 0 before the blank and 1 after it; and the number of its subject and
        state, whose texts ask for each filling equally often.
    """
    made = []
    pairs = itertools.product(_SUBJECTS, _EVIDENCE.items())
    for pair, (subject, (state, evidence)) in enumerate(pairs):
        who = subject.rsplit(" ", 1)[0]
        for answer, filling in enumerate(FILLINGS):
            for told in evidence[filling]:
                before = f"{who} {told} , so {subject} {_BLANK} {state} ."
                after = f"{subject} {_BLANK} {state} , and {who} {told} ."
                made += [(before.split(), answer, 0, pair), (after.split(), answer, 1, pair)]
    return made


def _accuracies(
    size: Size, seed: int, bidirectional: bool, reversed_texts: bool
) -> tuple[float, float]:
    """Returns the share of right fillings on unseen texts, told before the blank and after it."""
    keras.utils.set_random_seed(seed)
    sentences, *others = zip(*texts(), strict=True)
    answers, sides, pairs = (np.array(numbers) for numbers in others)  # [texts] each
    vocabulary = {word: i for i, word in enumerate(sorted(set(itertools.chain(*sentences))), 1)}
    ids = np.zeros((len(sentences), max(map(len, sentences))), "int32")  # [texts, time]
    for row, sentence in zip(ids, sentences, strict=True):
        row[: len(sentence)] = [vocabulary[word] for word in sentence]
    if reversed_texts:
        ids = ids[:, ::-1]
    blank = ids == vocabulary[_BLANK]  # [texts, time]
    reader = models.SequenceEncoder(
        "lstm", size.units, bidirectional=bidirectional, implementation=size.implementation
    )
    encoder = models.TextEncoder(len(vocabulary) + 1, 16, reader, dropout=0.2)
    model = models.Tagger(encoder, len(FILLINGS), use_crf=False)
    model.compile(
        keras.optimizers.Adam(0.01),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    targets = np.where(blank, answers[:, None], 0)  # [texts, time]
    # Of four pairs of subject and state nothing is seen, so that some of their texts are no hint at
    # what belongs into the others.
    unseen = np.isin(pairs, np.random.default_rng(seed).permutation(pairs.max() + 1)[:4])
    seen = ~unseen
    model.fit(
        ids[seen],
        targets[seen],
        32,
        size.epochs,
        sample_weight=blank[seen].astype("float32"),
        verbose=0,
    )
    filled = model.predict(ids[unseen], len(ids), verbose=0).argmax(-1)[blank[unseen]]  # [texts]
    right = filled == answers[unseen]
    return tuple(right[sides[unseen] == side].mean() for side in (0, 1))
