"""Which words of a text moved a classifier: each is left out in turn."""

import dataclasses
import re
from collections.abc import Callable, Sequence

import numpy as np

# A word with the parts that an apostrophe or a hyphen ties to it.
_WORD = re.compile(r"\w+(?:['\u2019-]\w+)*")
# Of a probability of 0 or 1 in float32 the odds would have no end.
_LEAST = 1e-7


@dataclasses.dataclass(frozen=True)
class Occlusion:
    """A classifier's answers to a text, and to it without each of its words.

    Args:
        text: the text.
        spans: where in it each word begins and ends, in characters.
        whole: the probabilities of the classes for the whole text, `[classes]`.
        without: those for the text without each word, `[words, classes]`.
    """

    text: str
    spans: list[tuple[int, int]]
    whole: np.ndarray
    without: np.ndarray

    def evidence(self, label: int) -> np.ndarray:
        """Weighs each word's evidence for a class (Robnik-Šikonja & Kononenko 2008).

        `log2 odds(label | text) - log2 odds(label | text without the word)`: with one bit more, the
        odds are twice what they were.

        Args:
            label: the number of the class.

        Returns:
            Bits, float array `[words]`; below 0 for a word that speaks against the class.
        """
        return _log_odds(self.whole[label]) - _log_odds(self.without[:, label])

    def by_character(self, values: Sequence[float] | np.ndarray) -> np.ndarray:
        """Spreads a value a word over its characters, as `figures.coloured_text` takes them.

        Args:
            values: float array `[words]`.

        Returns:
            Float array `[characters]`, 0 between words.
        """
        spread = np.zeros(len(self.text))
        for (start, end), value in zip(self.spans, values, strict=True):
            spread[start:end] = value
        return spread


def occlusion(probabilities: Callable[[list[str]], Sequence], text: str) -> Occlusion:
    """Asks a classifier about a text and about it without each of its words, in one batch.

    Where two words say the same, neither is missed much: what one word moves is not all that it
    means.

    Args:
        probabilities: gives the classes' probabilities `[texts, classes]` of a list of texts.
        text: the text.

    Example:

    >>> def happy(texts):
    ...     return [[0.9, 0.1] if "good" in text else [0.5, 0.5] for text in texts]
    >>> found = occlusion(happy, "All good.")
    >>> found.spans, found.evidence(0).round(2).tolist()
    ([(0, 3), (4, 8)], [0.0, 3.17])
    """
    spans = [match.span() for match in _WORD.finditer(text)]
    texts = [text, *(text[:start] + text[end:] for start, end in spans)]
    answers = np.asarray(probabilities(texts), float)  # [1 + words, classes]
    return Occlusion(text, spans, answers[0], answers[1:])


def _log_odds(probabilities: np.ndarray) -> np.ndarray:
    kept = np.clip(probabilities, _LEAST, 1 - _LEAST)
    return np.log2(kept) - np.log2(1 - kept)
