"""Texts whose first words decide their last: "I grew up in France … I speak fluent ___"."""

import numpy as np

LANGUAGES = {
    "France": "French",
    "Italy": "Italian",
    "Spain": "Spanish",
    "Germany": "German",
    "Poland": "Polish",
    "Turkey": "Turkish",
}
CHANCE = 1 / len(LANGUAGES)
_BEGINNING = ("I", "grew", "up", "in")
_QUESTION = (".", "I", "speak", "fluent")
_FILLING = (
    "and then we moved to a small town by the sea , where my father worked in the harbour"
).split()
# Id 0 is padding.
VOCABULARY = ("", *dict.fromkeys((*_BEGINNING, *_QUESTION, *_FILLING, *LANGUAGES)))
SHORTEST_GAP = len(_QUESTION)
_IDS = {word: i for i, word in enumerate(VOCABULARY)}


def length(gap):
    """Returns how many words a text of a gap, or of each of an array of gaps, has."""
    return len(_BEGINNING) + 1 + gap


def draw(
    rng: np.random.Generator, gaps: np.ndarray, words: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Draws texts; what stands between the country and the blank says nothing about either.

    Args:
        rng: what is drawn from.
        gaps: int array `[texts]`: the number of words from the country to the blank, both not
            counted; 4 or more, those of the question.
        words: how many words a text has with padding. Default: `None`, as many as the longest.

    Returns:
        Ids of `VOCABULARY`, int32 `[texts, words]`, and the languages, int32 `[texts]`.
    """
    country = len(_BEGINNING)
    lengths = length(gaps)  # [texts]
    words = words or int(lengths.max())
    answers = rng.integers(0, len(LANGUAGES), len(gaps))
    filling = np.array([_IDS[word] for word in _FILLING])
    ids = filling[rng.integers(0, len(filling), (len(gaps), words))]  # [texts, words]
    ids[:, :country] = [_IDS[word] for word in _BEGINNING]
    ids[:, country] = np.array([_IDS[word] for word in LANGUAGES])[answers]
    last = np.arange(len(_QUESTION)) - len(_QUESTION)
    rows = np.arange(len(gaps))[:, None]
    ids[rows, lengths[:, None] + last] = [_IDS[word] for word in _QUESTION]
    ids[np.arange(words) >= lengths[:, None]] = 0
    return ids.astype("int32"), answers.astype("int32")


def written(ids: np.ndarray) -> list[str]:
    """Returns a text's words, without padding."""
    return [VOCABULARY[i] for i in ids if i]
