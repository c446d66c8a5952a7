"""How well entities were found: counted whole, by type, and what they were taken for."""

import collections
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from seqeval import metrics as seqeval_metrics
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB2

_MOST_ERRORS = 100

Tags = Sequence[Sequence[str]]


class Found(NamedTuple):
    """An entity: its tokens from the `start`-th to before the `end`-th, and its type."""

    start: int
    end: int
    type: str


class Pair(NamedTuple):
    """An entity and what it was taken for; None where one of them has no counterpart."""

    true: Found | None
    predicted: Found | None


def scores(true: Tags, predicted: Tags) -> dict[str, float]:
    """Measures tags against the true ones by whole entities, as conlleval does (seqeval).

    Args:
        true: the tags of each sentence, in IOB2.
        predicted: the same of a tagger; they need not be valid.

    Returns:
        `f1`, `precision` and `recall` over all entities, where an `I-` that follows nothing of its
        type begins an entity; `strict_f1`, where it does not; and the `accuracy` of the tags. All
        from 0 to 1.
    """
    precision, recall, f1 = _measures(true, predicted, average="micro")
    strict = {"mode": "strict", "scheme": IOB2, "zero_division": 0}
    return {
        "f1": float(f1),
        "precision": float(precision),
        "recall": float(recall),
        "strict_f1": float(seqeval_metrics.f1_score(*_as_lists(true, predicted), **strict)),
        "accuracy": accuracy(true, predicted),
    }


def accuracy(true: Tags, predicted: Tags) -> float:
    """Measures the share of tokens with the right tag."""
    right = total = 0
    for tags, others in zip(true, predicted, strict=True):
        right += sum(one == other for one, other in zip(tags, others, strict=True))
        total += len(tags)
    return right / max(total, 1)


def report(true: Tags, predicted: Tags) -> str:
    """Writes precision, recall and F1 by type with the counts behind them, as a table."""
    pairs = [pair for sentence in pairs_of(true, predicted) for pair in sentence]
    types = sorted({entity.type for pair in pairs for entity in pair if entity})
    width = max(len("type"), *map(len, types), 0)
    rows = [f"{'type':{width}}  precision  recall      f1  entities  predicted  right"]
    if not types:
        return rows[0]
    counts = confusion([pairs], types)  # [types + 1, types + 1]
    precision, recall, f1 = _measures(true, predicted, average=None)
    for i, name in enumerate(types):
        rows.append(
            f"{name:{width}}  {precision[i]:9.4f}  {recall[i]:6.4f}  {f1[i]:6.4f}"
            f"  {counts[i].sum():8d}  {counts[:, i].sum():9d}  {counts[i, i]:5d}"
        )
    return "\n".join(rows)


def pairs_of(true: Tags, predicted: Tags) -> list[list[Pair]]:
    """Pairs the entities of each sentence: those of the same tokens, or else those that overlap.

    Args:
        true: the tags of each sentence, in IOB2.
        predicted: the same of a tagger.

    Returns:
        For each sentence every true and every predicted entity once.
    """
    return [
        list(_paired(_entities(tags), _entities(others)))
        for tags, others in zip(true, predicted, strict=True)
    ]


def confusion(pairs: Sequence[Sequence[Pair]], types: Sequence[str]) -> np.ndarray:
    """Counts entities by true and predicted type.

    Args:
        pairs: what `pairs_of` gives.
        types: the types that occur.

    Returns:
        An int array `[types + 1, types + 1]`, true types in rows. Last is what has no counterpart
        of the same tokens: in the last column it was missed, in the last row made up.
    """
    place_of = {name: place for place, name in enumerate(types)}
    counts = np.zeros([len(types) + 1] * 2, int)
    for true, predicted in (pair for sentence in pairs for pair in sentence):
        if true and predicted and true[:2] == predicted[:2]:
            counts[place_of[true.type], place_of[predicted.type]] += 1
            continue
        if true:
            counts[place_of[true.type], -1] += 1
        if predicted:
            counts[-1, place_of[predicted.type]] += 1
    return counts


def frequent_errors(tokens: Sequence[Sequence[str]], pairs: Sequence[Sequence[Pair]]) -> str:
    """Lists the most frequent errors, one a line: how often, what was true, what was predicted.

    Args:
        tokens: the tokens of each sentence.
        pairs: what `pairs_of` gives for them.
    """

    def written(words, entity):
        return f"{entity.type} {' '.join(words[entity.start : entity.end])!r}" if entity else "none"

    return most_frequent(
        (written(words, true), written(words, predicted))
        for words, sentence in zip(tokens, pairs, strict=True)
        for true, predicted in sentence
        if true != predicted
    )


def most_frequent(errors: Iterator[tuple[Any, Any]]) -> str:
    """Lists pairs of what was true and what was predicted, the most frequent first."""
    counts = collections.Counter(errors)
    frequent = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    lines = ["times  true -> predicted"]
    lines += [f"{count:5d}  {true} -> {other}" for (true, other), count in frequent[:_MOST_ERRORS]]
    if len(frequent) > _MOST_ERRORS:
        lines.append(f"and {len(frequent) - _MOST_ERRORS:,} more")
    return "\n".join(lines) + "\n"


def _measures(true: Tags, predicted: Tags, average: str | None) -> list[Any]:
    """Precision, recall and F1 of seqeval."""
    scorers = (
        seqeval_metrics.precision_score,
        seqeval_metrics.recall_score,
        seqeval_metrics.f1_score,
    )
    given = _as_lists(true, predicted)
    return [scorer(*given, average=average, zero_division=0) for scorer in scorers]


def _as_lists(*corpora: Tags) -> list[list[list[str]]]:
    return [[list(tags) for tags in sentences] for sentences in corpora]


def _entities(tags: Sequence[str]) -> list[Found]:
    return [Found(start, end + 1, kind) for kind, start, end in get_entities(list(tags))]


def _paired(true: Sequence[Found], predicted: Sequence[Found]) -> Iterator[Pair]:
    left = {entity[:2]: entity for entity in predicted}
    others = []
    for entity in true:
        same = left.pop(entity[:2], None)
        if same:
            yield Pair(entity, same)
        else:
            others.append(entity)
    for entity in others:
        near = (o for o in left.values() if o.start < entity.end and entity.start < o.end)
        found = next(near, None)
        if found:
            del left[found[:2]]
        yield Pair(entity, found)
    for entity in left.values():
        yield Pair(None, entity)
