"""The networks that are compared by what they remember."""

from typing import Any

import keras
import numpy as np

from rnnapps import models
from rnnapps.experiments import memory_texts

# The IRNN (Le et al. 2015) is an Elman network of rectifiers that starts as a sum of its inputs.
CELLS: dict[str, tuple[str, dict[str, Any]]] = {
    "Elman": ("elman", {}),
    "IRNN": ("elman", {"activation": "relu", "recurrent_initializer": "identity"}),
    "LSTM": ("lstm", {}),
    "GRU": ("gru", {}),
}
# Adam's; the gradient is clipped to length 1.
LEARNING_RATES = {"Elman": 0.003, "IRNN": 0.0005, "LSTM": 0.01, "GRU": 0.01}
_BATCH, _TESTED = 32, 256


def slow_gates(name: str, units: int, bias: float = 5.0) -> dict:
    """Returns options of a layer whose state changes little from step to step at the start.

    A state should last as long as a text (Tallec & Ollivier 2018): the LSTM's `b_f` starts at the
    bias and `b_i` at its negative, the GRU's `b_u` at the bias. At 5 a gate starts at 0.993, so
    that a state lasts for some 150 steps. An Elman network has no such gate.

    Args:
        name: one of `CELLS`.
        units: units of the layer.
        bias: where the biases start. Default: 5.
    """
    if name == "LSTM":
        others = keras.initializers.Constant([-bias] * units + [0.0] * 3 * units)
        return {"unit_forget_bias": bias, "bias_initializer": others}
    if name == "GRU":
        return {"bias_initializer": keras.initializers.Constant([bias] * units + [0.0] * 2 * units)}
    return {}


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
    model.build((None, None))
    model.compile(
        keras.optimizers.Adam(LEARNING_RATES[name], global_clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.optimizer.build(model.trainable_variables)
    return model


def restart(model: models.Acceptor, like: models.Acceptor) -> None:
    """Puts a network in the place of a new one of its kind: what was compiled for it serves again.

    Args:
        model: a network.
        like: the new one.
    """
    model.set_weights(like.get_weights())
    for own, new in zip(model.optimizer.variables, like.optimizer.variables, strict=True):
        own.assign(new)


def fit(
    model: models.Acceptor,
    rng: np.random.Generator,
    gap: int,
    steps: int,
    shortest: int | None = None,
) -> None:
    """Trains a network, 32 texts a step, each text seen once.

    Args:
        model: what `acceptor` made.
        rng: what the texts are drawn from.
        gap: the gap of the texts.
        steps: the number of training steps.
        shortest: the shortest gap, if there are texts of all gaps from it on; short ones are then
            as frequent as long ones by their logarithm. Default: `None`, all gaps are the same.
    """
    low, high = np.log([gap if shortest is None else shortest, gap + 1])
    gaps = np.minimum(np.exp(rng.uniform(low, high, steps * _BATCH)).astype(int), gap)
    ids, answers = memory_texts.draw(rng, gaps, memory_texts.length(gap))
    model.fit(ids, answers, _BATCH, shuffle=False, verbose=0)


def accuracy(model: models.Acceptor, rng: np.random.Generator, gap: int) -> float:
    """Returns the share of right answers to 256 new texts of a gap."""
    ids, answers = memory_texts.draw(rng, np.full(_TESTED, gap))
    return float((model.predict(ids, _TESTED, verbose=0).argmax(-1) == answers).mean())
