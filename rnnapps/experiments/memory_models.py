"""The networks that are compared by what they remember."""

from collections.abc import Sequence

import keras
import numpy as np

from rnnapps import models
from rnnapps.experiments import memory_texts

# The IRNN (Le et al. 2015) is an Elman network of rectifiers that starts as a sum of its inputs.
CELLS = {
    "Elman": ("elman", {}),
    "IRNN": ("elman", {"activation": "relu", "recurrent_initializer": "identity"}),
    "LSTM": ("lstm", {}),
    "GRU": ("gru", {}),
}
# Adam's; the gradient is clipped to length 1.
LEARNING_RATES = {"Elman": 0.003, "IRNN": 0.001, "LSTM": 0.01, "GRU": 0.01}
_BATCH, _TESTED = 32, 256


def acceptor(name: str, units: int, **options) -> models.Acceptor:
    """Makes a network that reads a memory text and says the language, ready for `fit`.

    Args:
        name: one of `CELLS`.
        units: units of its recurrent layer.
        **options: further arguments of the layer.
    """
    cell, own = CELLS[name]
    reader = models.SequenceEncoder(cell, units, bidirectional=False, **own, **options)
    encoder = models.TextEncoder(len(memory_texts.VOCABULARY), 16, reader)
    model = models.Acceptor(encoder, len(memory_texts.LANGUAGES), pooling="last")
    model.compile(
        keras.optimizers.Adam(LEARNING_RATES[name], global_clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return model


def fit(
    model: models.Acceptor,
    rng: np.random.Generator,
    longest: int,
    steps: int,
    shortest: int = memory_texts.SHORTEST_GAP,
) -> None:
    """Trains a network on texts of many gaps, 32 a step, each text seen once.

    Short gaps are as frequent as long ones by their logarithm.

    Args:
        model: what `acceptor` made.
        rng: what the texts are drawn from.
        longest: the longest gap.
        steps: the number of training steps.
        shortest: the shortest gap. Default: 4, the words of the question.
    """
    ends = np.log([shortest, longest + 1])
    gaps = np.exp(rng.uniform(*ends, steps * _BATCH)).astype(int)
    ids, answers = memory_texts.draw(rng, gaps, memory_texts.length(longest))
    model.fit(ids, answers, _BATCH, shuffle=False, verbose=0)


def accuracies(
    model: models.Acceptor, rng: np.random.Generator, gaps: Sequence[int], texts: int = _TESTED
) -> np.ndarray:
    """Measures a network on new texts: the share of right answers for each gap, `[gaps]`."""
    ids, answers = memory_texts.draw(rng, np.repeat(gaps, texts))
    right = model.predict(ids, texts, verbose=0).argmax(-1) == answers  # [gaps · texts]
    return right.reshape(len(gaps), texts).mean(axis=1)
