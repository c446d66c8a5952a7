"""How good written sentences are, by what people wrote in their place (sacreBLEU)."""

from collections.abc import Mapping, Sequence

from sacrebleu.metrics import BLEU, CHRF


def scores(written: Sequence[str], references: Sequence[str]) -> dict[str, float]:
    """Measures translations against one reference each.

    Args:
        written: the translations.
        references: what they should be, as many.

    Returns:
        `bleu` and `bleu_lc`, BLEU (Papineni et al. 2002) of the text as it is and in small letters,
        and `chrf` and `chrf_lc` (Popović 2015), all from 0 to 100; and `length_ratio`, the words of
        the translations by those of the references.
    """
    measured = {
        name: metric.corpus_score(written, [references]) for name, metric in _metrics().items()
    }
    found = {name: float(score.score) for name, score in measured.items()}
    return found | {"length_ratio": measured["bleu"].sys_len / max(measured["bleu"].ref_len, 1)}


def signatures() -> dict[str, str]:
    """Returns the signature of each of the `scores`, which says exactly what was computed."""
    metrics = _metrics()
    for metric in metrics.values():
        metric.corpus_score(["a"], [["a"]])  # tells the number of references
    return {name: str(metric.get_signature()) for name, metric in metrics.items()}


def bleu_by_length(
    written: Sequence[str],
    references: Sequence[str],
    lengths: Sequence[int],
    num_groups: int = 6,
) -> Mapping[str, float]:
    """Measures groups of sentences of similar length, which are as large as each other.

    Args:
        written: the translations.
        references: what they should be.
        lengths: the length of what was translated, one for each.
        num_groups: the largest number of groups; a length is in one of them only.

    Returns:
        BLEU by a name of the lengths of the group, such as `"5-8"`, from short to long.

    Example:
    >>> written = ["the dog runs through the water", "a cat"]
    >>> found = bleu_by_length(written, ["the dog runs through the water", "the dog"], [6, 2])
    >>> {length: round(bleu) for length, bleu in found.items()}
    {'2': 0, '6': 100}
    """
    order = sorted(range(len(lengths)), key=lambda n: lengths[n])
    groups, begin = {}, 0
    for group in range(1, num_groups + 1):
        end = len(order) * group // num_groups
        # All of a length go together.
        while 0 < end < len(order) and lengths[order[end - 1]] == lengths[order[end]]:
            end += 1
        members, begin = order[begin:end], max(begin, end)
        if not members:
            continue
        first, last = lengths[members[0]], lengths[members[-1]]
        score = BLEU().corpus_score(
            [written[n] for n in members], [[references[n] for n in members]]
        )
        groups[str(first) if first == last else f"{first}-{last}"] = float(score.score)
    return groups


def worst(
    sources: Sequence[str], references: Sequence[str], written: Sequence[str], number: int
) -> str:
    """Writes down the sentences whose translations are least like their references, by chrF.

    Args:
        sources: what was translated.
        references: what the translations should be.
        written: the translations.
        number: how many at most.

    Returns:
        A text for people, worst first; empty where all is as it should be.
    """
    chrf = CHRF()
    scored = sorted(
        (chrf.sentence_score(one, [other]).score, place)
        for place, (one, other) in enumerate(zip(written, references, strict=True))
        if one != other
    )
    return "\n".join(
        f"chrF {score:.1f}\n  source     {sources[place]}\n  reference  {references[place]}\n"
        f"  written    {written[place]}\n"
        for score, place in scored[:number]
    )


def _metrics() -> dict[str, BLEU | CHRF]:
    return {
        "bleu": BLEU(),
        "bleu_lc": BLEU(lowercase=True),
        "chrf": CHRF(),
        "chrf_lc": CHRF(lowercase=True),
    }
