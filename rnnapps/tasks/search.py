"""How the tasks that write a text about something search for the best one."""

import dataclasses
from typing import Any, Literal

from etils import epy
from jsonargparse.typing import NonNegativeFloat, NonNegativeInt, PositiveInt

with epy.lazy_imports():
    import tensorflow as tf

    from rnnapps import decoding, models

# What a text ends with, and what is read before its first token.
END = 2


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """How texts are searched for."""

    beam_width: PositiveInt = 5
    """Texts that are kept in decoding."""
    length_penalty: Literal["none", "average", "gnmt"] = "gnmt"
    """How texts of different lengths are compared: by log-probability as it is, by token, or
    divided by ((5 + length) / 6) ^ length_alpha (Wu et al. 2016)."""
    length_alpha: NonNegativeFloat = 1.0
    """The exponent of `gnmt`."""
    coverage_penalty: NonNegativeFloat = 0.0
    """How much it counts against a text that parts of the source were not looked at (Wu et al.
    2016)."""
    min_length: NonNegativeInt = 0
    """Tokens that a text has at least, its end among them."""
    no_repeat_ngram: NonNegativeInt = 0
    """No run of so many tokens is written twice; 0 allows it."""


def search(
    model: "models.EncoderDecoder",
    encoded: Any,
    config: SearchConfig,
    *,
    beam_width: "tf.Tensor",
    nbest: "tf.Tensor",
    length: "tf.Tensor",
    forbidden: tuple[int, ...],
    traced: bool = False,
) -> "decoding.Hypotheses":
    """Searches in the graph for the texts that a model would write.

    Args:
        model: the model.
        encoded: what its `encode` returned of the sources.
        config: how texts are compared.
        beam_width: how many are kept, an int32 scalar.
        nbest: how many are given, an int32 scalar of at most `beam_width`.
        length: the most tokens of a text, an int32 scalar or `[batch]`.
        forbidden: ids that are never written.
        traced: whether where each token looked is wanted. Default: `False`, it is not known.

    Returns:
        The best texts, `nbest` for each source.
    """
    memory, states = encoded
    # What is carried from step to step has its cost.
    traced = memory is not None and (traced or config.coverage_penalty > 0)

    def step(tokens, state, memory=None):
        logits, weights, states = model.decoder.step(tokens, state[0], memory)
        return logits, (states, weights) if traced else (states,)

    rows = tf.shape(states[0])[0]
    state, seeing = (states,), {}
    if traced:
        state = states, tf.zeros(tf.shape(memory.mask))
        seeing = {
            "attention": lambda state: state[1],
            "source_mask": memory.mask,
            "coverage_penalty": config.coverage_penalty,
        }
    return decoding.beam_search(
        step,
        tf.fill([rows], END),
        state,
        memory=memory,
        beam_width=beam_width,
        hypotheses=nbest,
        length=length,
        min_length=config.min_length,
        end=END,
        length_penalty=config.length_penalty,
        alpha=config.length_alpha,
        no_repeat_ngram=config.no_repeat_ngram,
        forbidden=forbidden,
        **seeing,
    )
