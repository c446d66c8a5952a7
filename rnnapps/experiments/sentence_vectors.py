"""A sentence as a vector: what an encoder that judges texts puts side by side.

The reviews of the bundled sample are written so that no word tells praise from blame; what was
denied, outweighed or taken back does. An LSTM learns to tell them apart, and the vector from which
it judges is compared with a bag of words: do a review's nearest neighbours judge as it does?
"""

import dataclasses
import itertools
import re

import keras
import numpy as np

from rnnapps import models
from rnnapps.data.datasets.sample_reviews import grammar
from rnnapps.experiments.experiment import Result, rounded
from rnnapps.figures.plane import plane

_WORD = re.compile(r"\w+(?:'\w+)?|[^\w\s]")
_UNKNOWN = 1
_NEIGHBOURS = 5
_NAMED = 10


@dataclasses.dataclass(frozen=True)
class Size:
    """How large the experiment is.

    Args:
        reviews: training reviews.
        tests: unseen reviews that are compared.
        units: units of the LSTM in each direction.
        epochs: how often the training reviews are read.
        implementation: how the layers are run, as for every recurrent layer; small ones are done
            sooner without the engine, which compiles. Default: `"auto"`.
    """

    reviews: int = 4_000
    tests: int = 400
    units: int = 64
    epochs: int = 10
    implementation: str = "auto"


FULL = Size()
REDUCED = Size(reviews=2_500, tests=150, units=32, epochs=6, implementation="reference")


def run(size: Size = FULL, seed: int = 0) -> Result:
    """Trains the encoder and looks at the neighbours of unseen reviews."""
    reviews = list(itertools.islice(grammar.reviews(), size.reviews + size.tests))
    split = [_WORD.findall(review.text.lower()) for review in reviews]
    labels = np.array([review.label == "positive" for review in reviews], "int32")
    train, test = slice(None, size.reviews), slice(size.reviews, None)
    known = sorted(set(itertools.chain(*split[train])))
    ids = {word: i for i, word in enumerate(known, _UNKNOWN + 1)}
    padded = np.zeros((len(split), max(map(len, split))), "int32")  # [reviews, time]
    for row, words in zip(padded, split, strict=True):
        row[: len(words)] = [ids.get(word, _UNKNOWN) for word in words]

    keras.utils.set_random_seed(seed)
    encoder = models.TextEncoder(
        len(ids) + _UNKNOWN + 1,
        32,
        models.SequenceEncoder("lstm", size.units, implementation=size.implementation),
        dropout=0.2,
    )
    model = models.Acceptor(encoder, 2, dropout=0.2)
    rate = keras.optimizers.schedules.CosineDecay(0.01, size.epochs * size.reviews // 32)
    model.compile(
        keras.optimizers.Adam(rate, global_clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.fit(padded[train], labels[train], 32, size.epochs, verbose=0)
    vectors = np.array(model.encode(padded[test]))  # [tests, vector]
    guessed = model.predict(padded[test], size.tests, verbose=0).argmax(-1)
    counts = np.zeros((size.tests, len(ids) + _UNKNOWN + 1))  # [tests, words]
    for row, text in zip(counts, padded[test], strict=True):
        np.add.at(row, text[text > 0], 1)

    neighbours = {"LSTM": _nearest(vectors), "bag of words": _nearest(counts)}  # [tests, 5] each
    asked = labels[test]
    alike = {name: (asked[of] == asked[:, None]).mean() for name, of in neighbours.items()}
    claims = {
        "the LSTM's neighbours judge as a review does far more often than those by its words": bool(
            alike["LSTM"] > alike["bag of words"] + 0.15
        )
    }
    texts = [review.text for review in reviews[test]]
    numbers = {
        "accuracy_of_the_classifier": (guessed == asked).mean(),
        f"neighbours_of_{_NEIGHBOURS}_that_judge_alike": alike,
        "nearest": [
            {"review": texts[i], **{name: texts[of[i, 0]] for name, of in neighbours.items()}}
            for i in range(4)
        ],
    }
    centred = vectors - vectors.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    spread = sizes**2 / (sizes**2).sum()
    places = (left * sizes)[:, :2]  # [tests, 2]
    figure = plane(
        places,
        [grammar.LABELS[label] for label in asked],
        [
            (i, texts[i])
            for i in _apart(places, sorted(range(size.tests), key=lambda i: len(texts[i])))
        ],
        (
            f"first principal component ({spread[0]:.0%} of the variance)",
            f"second principal component ({spread[1]:.0%} of the variance)",
        ),
    )
    return Result(claims, rounded(numbers), {"sentence-vectors": figure})


def _nearest(vectors: np.ndarray) -> np.ndarray:
    """Returns the five nearest others of each vector by the cosine, `[vectors, 5]`."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.maximum(lengths, 1e-9)
    cosines = unit @ unit.T  # [vectors, vectors]
    np.fill_diagonal(cosines, -np.inf)
    return np.argsort(-cosines, axis=1, kind="stable")[:, :_NEIGHBOURS]


def _apart(places: np.ndarray, candidates: list[int]) -> list[int]:
    """Returns the first candidates that have room for a text beside them."""
    width, height = np.ptp(places, axis=0)
    chosen = []
    for i in candidates:
        off = np.abs(places[chosen] - places[i])  # [chosen, 2]
        if np.all((off[:, 0] > width / 3) | (off[:, 1] > height / 15)):
            chosen.append(i)
    return chosen[:_NAMED]
