"""Classes of words that nobody named: Elman's experiment (1990, "Finding structure in time").

A network of 150 units reads 10,000 short sentences, run together without a mark between them, and
predicts each next word. What it needs for that it must keep in its state: the mean state behind
each word, over all places where the word stands, is a vector of what the word is used like, and a
hierarchical clustering of these vectors finds verbs and nouns, and classes of nouns.

As in the paper the state is carried on and the text read six times, and the error goes back no
further than the word itself: the state before it is taken as given. What becomes of the tree when
it goes back further is measured too.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
from scipy.cluster import hierarchy

from rnnapps import models
from rnnapps.data.datasets.elman_1990 import grammar
from rnnapps.experiments.experiment import Result, rounded
from rnnapps.figures.tree import tree

_STREAMS = 16
_LONGEST_WINDOW = 24
# Each noun has one class, two verbs have two: these are in their first.
CLASSES = {word: name for name, words in reversed(grammar.CLASSES.items()) for word in words}


@dataclasses.dataclass(frozen=True)
class Size:
    """How large the experiment is.

    Args:
        sentences: sentences of the training text.
        units: units of the Elman network.
        epochs: how often the text is read.
        windows: over how many words the error goes back; the first is the experiment.
        implementation: how the layers are run, as for every recurrent layer; small ones are done
            sooner without the engine, which compiles. Default: `"auto"`.
    """

    sentences: int = 10_000
    units: int = 150
    epochs: int = 6
    windows: tuple[int, ...] = (1, _LONGEST_WINDOW)
    implementation: str = "auto"


FULL = Size()
REDUCED = Size(sentences=4_000, epochs=4, windows=(1,), implementation="reference")


def run(size: Size = FULL, seed: int = 0) -> Result:
    """Trains the network, averages its states by word and clusters them."""
    words = sorted(CLASSES)
    classes = np.array([CLASSES[word] for word in words])
    is_noun = np.char.startswith(classes, "NOUN")
    trees: dict[int, np.ndarray] = {}
    numbers: dict[str, dict[str, Any]] = {}
    for window in size.windows:
        means, perplexity = _mean_states(words, size, window, seed)  # [words, units]
        trees[window] = hierarchy.linkage(means, "average")
        top = hierarchy.fcluster(trees[window], 2, "maxclust")  # [words]
        nouns = hierarchy.fcluster(hierarchy.linkage(means[is_noun], "average"), 6, "maxclust")
        numbers[f"window of {window}"] = {
            "perplexity": perplexity,
            "first_split": _groups(top, words),
            "noun_clusters": _groups(nouns, np.array(words)[is_noun]),
            "purity_of_six_noun_clusters": purity(nouns, classes[is_noun]),
            "nouns_and_verbs_are_the_first_split": len(set(top[is_noun])) == 1
            and len(set(top[~is_noun])) == 1,
        }
    found = numbers[f"window of {size.windows[0]}"]
    claims = {
        "the first split of all words is that of nouns and verbs": found[
            "nouns_and_verbs_are_the_first_split"
        ],
        "six clusters of the nouns are the six classes of the grammar, or nearly": found[
            "purity_of_six_noun_clusters"
        ]
        > 0.85,
    }
    figure = tree(trees[size.windows[0]], words, classes, "distance of the mean states")
    return Result(rounded(claims), rounded(numbers), {"word-classes": figure})


def _mean_states(words: list[str], size: Size, window: int, seed: int) -> tuple[np.ndarray, float]:
    """Trains a network; returns its mean state behind each word, and its perplexity."""
    ids = {word: i for i, word in enumerate(words, 1)}
    sentences = itertools.islice(grammar.sentences(), size.sentences)
    text = np.array([ids[word] for sentence in sentences for word in sentence.split()])
    length = (len(text) - 1) // _STREAMS // _LONGEST_WINDOW * _LONGEST_WINDOW
    inputs, following = (
        text[start : start + _STREAMS * length].reshape(_STREAMS, length) for start in (0, 1)
    )
    keras.utils.set_random_seed(seed)
    model = _model(len(words), size.units, stateful=True, implementation=size.implementation)
    model.build((_STREAMS, window))
    model.compile(
        keras.optimizers.Adam(0.003),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    course = model.fit(
        _in_windows(inputs, window),
        _in_windows(following, window),
        _STREAMS,
        size.epochs,
        shuffle=False,
        verbose=0,
    )
    reader = _model(len(words), size.units)
    reader.build((None, None))
    for own, trained in zip(reader.trainable_weights, model.trainable_weights, strict=True):
        own.assign(trained)
    states = np.array(reader.hidden(inputs))  # [streams, time, units]
    means = np.stack([states[inputs == ids[word]].mean(axis=0) for word in words])
    return means, float(np.exp(course.history["loss"][-1]))


def _model(words: int, units: int, **options) -> models.LanguageModel:
    reader = models.SequenceEncoder("elman", units, bidirectional=False, **options)
    return models.LanguageModel(models.Decoder(models.TextEncoder(words + 1, 32, reader)))


def _in_windows(streams: np.ndarray, window: int) -> np.ndarray:
    """Cuts `[streams, time]` into batches in a row, `[streams · time / window, window]`."""
    cut = streams.reshape(len(streams), -1, window)  # [streams, windows, window]
    return cut.swapaxes(0, 1).reshape(-1, window)


def _groups(clusters: np.ndarray, words: Sequence[str] | np.ndarray) -> list[str]:
    """Returns the words of each cluster in a line."""
    return [" ".join(np.array(words)[clusters == cluster]) for cluster in sorted(set(clusters))]


def purity(clusters: np.ndarray, classes: Sequence[str] | np.ndarray) -> float:
    """Returns the share of words whose class is the most frequent one of their cluster."""
    classes = np.array(classes)
    most = [np.unique(classes[clusters == c], return_counts=True)[1].max() for c in set(clusters)]
    return sum(most) / len(classes)
