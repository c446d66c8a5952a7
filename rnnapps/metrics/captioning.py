"""How good captions are, by what people wrote about the same images."""

import collections
import hashlib
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sacrebleu.metrics import BLEU, CHRF

_LONGEST_NGRAM = 4
_CIDER_SIGMA = 6.0  # of the lengths' difference, in words

# A number, a word with its hyphens, or what English hangs on to one.
_WORD = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+(?:-[^\W_]+)*|'(?:s|re|ve|ll|d|m|t)\b")


def words(caption: str) -> list[str]:
    """Splits a caption into words as captions are compared: small letters, no punctuation.

    This is what the COCO tools do, of whose tokeniser it is the part that captions need.

    Args:
        caption: The text.

    Returns:
        The words.

    Example:

    >>> words("A man's T-shirt, 2.5 feet long .")
    ['a', 'man', "'s", 't-shirt', '2.5', 'feet', 'long']
    """
    return _WORD.findall(caption.lower().replace("’", "'"))


def scores(
    written: Sequence[str],
    references: Sequence[Sequence[str]],
    learnt: np.ndarray | None = None,
) -> dict[str, float]:
    """Measures captions against all references of their images, by their `words`.

    Args:
        written: The captions, one an image.
        references: What people wrote, at least one for each image.
        learnt: The `fingerprints` of the captions that were learnt from. Default: `None`, not
            known.

    Returns:
        `bleu1` to `bleu4`, BLEU (Papineni et al. 2002) of so many words in a row, and `chrf`
        (Popović 2015), from 0 to 100; `cider`, see `cider`; `caption_length`, words in the mean;
        `vocabulary`, how many different words; `distinct`, the different captions by all; and
        where `learnt` is given, `novel`, the share of captions that are not among those.

    Raises:
        ValueError: If the numbers of captions and lists differ, or a list is empty.

    Example:

    >>> learnt = fingerprints(["a dog sits"])
    >>> found = scores(["A dog runs ."], [["a dog runs", "the dog is running"]], learnt)
    >>> round(found["bleu1"], 6), found["caption_length"], found["novel"]
    (100.0, 3.0, 1.0)
    """
    if len(written) != len(references) or not all(references):
        raise ValueError(
            f"Each caption needs references. Received: {len(written)} captions and "
            f"{len(references)} lists, {sum(not some for some in references)} of them empty"
        )
    captions = [words(caption) for caption in written]
    expected = [[words(reference) for reference in some] for some in references]
    texts = [" ".join(caption) for caption in captions]
    most = max(map(len, references), default=0)
    # sacreBLEU takes None for a reference that is not there, which its annotation leaves out.
    streams: list[Any] = [
        [" ".join(some[n]) if n < len(some) else None for some in expected] for n in range(most)
    ]
    found = {
        name: float(metric.corpus_score(texts, streams).score) if texts else 0.0
        for name, metric in _metrics().items()
    }
    number = max(len(texts), 1)
    found |= {
        "cider": cider(captions, expected),
        "caption_length": sum(map(len, captions)) / number,
        "vocabulary": float(len({word for caption in captions for word in caption})),
        "distinct": len(set(texts)) / number,
    }
    if learnt is not None:
        known = np.isin([_fingerprint(caption) for caption in captions], learnt)
        found["novel"] = float(np.sum(~known)) / number
    return found


def fingerprints(captions: Iterable[str]) -> np.ndarray:
    """Returns what tells captions apart by their `words`, in little room.

    Args:
        captions: The texts.

    Returns:
        Rising uint64 numbers, one for each different caption; two of a million captions have the
        same with a chance of 3 in 100 million.
    """
    return np.unique([_fingerprint(words(caption)) for caption in captions]).astype("uint64")


def _fingerprint(caption: Sequence[str]) -> np.uint64:
    hashed = hashlib.blake2b(" ".join(caption).encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(hashed, "little"))


def signatures(references: int = 5) -> dict[str, str]:
    """Returns the signature of each of the `scores`, which says exactly what was computed.

    Args:
        references: How many references an image has. Default: 5.
    """
    metrics = _metrics()
    for metric in metrics.values():
        metric.corpus_score(["a"], [["a"]] * references)  # tells their number
    told = {name: str(metric.get_signature()) for name, metric in metrics.items()}
    told["cider"] = (
        f"nrefs:{references}|CIDEr-D|n:{_LONGEST_NGRAM}|sigma:{_CIDER_SIGMA:g}|df:references"
    )
    return {
        name: f"{signature}|words:small-letters,no-punctuation" for name, signature in told.items()
    }


def cider(written: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]) -> float:
    """Measures what captions say of what people say only of the same image (CIDEr-D).

        g_n(c) = tf(n-gram, c) · log(images / images that have the n-gram in a reference)
        CIDEr-D_n(c, R) = 10 / |R| Σ_r exp(-(|c| - |r|)² / 2σ²) ·
                          min(g_n(c), g_n(r)) · g_n(r) / (‖g_n(c)‖ ‖g_n(r)‖)

    of Vedantam et al. (2015), with σ = 6, in the mean over n from 1 to 4 and over the images.

    Args:
        written: The captions' words, one caption an image.
        references: The words of what people wrote about each image.

    Returns:
        The score, from 0 to 10, as the COCO tools print it (about 0.5 for a fair model). It is 0
        for a single image, which tells nothing of what is said of that image only.

    Example:

    >>> round(cider([["a", "dog"], ["a", "cat"]], [[["a", "dog"]], [["a", "cat"]]]), 6)
    5.0
    """
    # How many images have it in a reference.
    images = collections.Counter()
    for some in references:
        images.update({ngram for reference in some for ngram in _ngrams(reference)})
    total = 0.0
    for caption, some in zip(written, references, strict=True):
        own, of_caption = _weighted(caption, images, len(references))
        for reference in some:
            other, of_reference = _weighted(reference, images, len(references))
            products = [0.0] * _LONGEST_NGRAM
            for ngram, weight in own.items():
                if ngram in other:
                    products[len(ngram) - 1] += min(weight, other[ngram]) * other[ngram]
            cosines = [
                product / (one * another) if one and another else 0.0
                for product, one, another in zip(products, of_caption, of_reference, strict=True)
            ]
            closeness = math.exp(-((len(caption) - len(reference)) ** 2) / (2 * _CIDER_SIGMA**2))
            total += closeness * sum(cosines) / _LONGEST_NGRAM / len(some)
    return 10 * total / max(len(written), 1)


def _ngrams(caption: Sequence[str]) -> collections.Counter:
    """Counts runs of one to four words."""
    return collections.Counter(
        tuple(caption[begin : begin + size])
        for size in range(1, _LONGEST_NGRAM + 1)
        for begin in range(len(caption) - size + 1)
    )


def _weighted(caption, images, number) -> tuple[dict[tuple[str, ...], float], list[float]]:
    """Returns the weight of each of a caption's runs of words, and the norm for each length."""
    weights = {
        ngram: count * math.log(number / max(images[ngram], 1))
        for ngram, count in _ngrams(caption).items()
    }
    squares = [0.0] * _LONGEST_NGRAM
    for ngram, weight in weights.items():
        squares[len(ngram) - 1] += weight**2
    return weights, [math.sqrt(square) for square in squares]


def _metrics() -> dict[str, BLEU | CHRF]:
    """Returns the metrics of sacreBLEU, for text whose words are already told apart."""
    bleus = {
        f"bleu{size}": BLEU(max_ngram_order=size, tokenize="none", force=True)
        for size in range(1, _LONGEST_NGRAM + 1)
    }
    return bleus | {"chrf": CHRF()}
