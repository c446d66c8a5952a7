"""The tagger that looks at nothing but the word: what every other one must beat."""

import collections
from collections.abc import Iterable, Sequence


class MajorityTagger:
    """Gives each word the tag that it has most often in training.

    A new word gets the tag that is most frequent among the words seen once, which it is most like.

    Args:
        sentences: the training sentences, as pairs of tokens and tags.

    Example:
    >>> tagger = MajorityTagger([(["in", "Rome"], ["O", "B-LOC"]), (["in", "May"], ["O", "O"])])
    >>> tagger.tag(["Rome", "in", "June"])
    ['B-LOC', 'O', 'B-LOC']
    """

    def __init__(self, sentences: Iterable[tuple[Sequence[str], Sequence[str]]]):
        counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
        for tokens, tags in sentences:
            for token, tag in zip(tokens, tags, strict=True):
                counts[token][tag] += 1
        once = [of_word for of_word in counts.values() if of_word.total() == 1]
        self._unknown = _most_frequent(sum(once or counts.values(), collections.Counter()))
        self._tags = {word: _most_frequent(of_word) for word, of_word in counts.items()}

    def tag(self, tokens: Sequence[str]) -> list[str]:
        """Tags a sentence."""
        return [self._tags.get(token, self._unknown) for token in tokens]


def _most_frequent(counts: collections.Counter) -> str:
    return min(counts, key=lambda tag: (-counts[tag], tag))
