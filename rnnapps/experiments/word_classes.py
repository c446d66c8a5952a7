"""Classes of words that nobody named: Elman's experiment (1990, "Finding structure in time").

A network of 150 units reads 10,000 short sentences, run together without a mark between them, and
predicts each next word. What it needs for that it must keep in its state: the mean state behind
each word, over all places where the word stands, is a vector of what the word is used like, and a
hierarchical clustering of these vectors finds verbs and nouns, and classes of nouns.
"""

import dataclasses
import itertools

import keras
import numpy as np
from scipy.cluster import hierarchy

from rnnapps import models
from rnnapps.data.datasets.elman_1990 import grammar
from rnnapps.experiments.experiment import Result, rounded
from rnnapps.figures.tree import tree

_WINDOW = 24
# Each noun has one class, two verbs have two: these are in their first.
CLASSES = {word: name for name, words in reversed(grammar.CLASSES.items()) for word in words}


@dataclasses.dataclass(frozen=True)
class Size:
    """How large the experiment is.

    Args:
        sentences: sentences of the training text.
        units: units of the Elman network.
        epochs: how often the text is read.
    """

    sentences: int = 10_000
    units: int = 150
    epochs: int = 12


FULL = Size()
REDUCED = Size(sentences=4_000, units=50, epochs=8)


def run(size: Size = FULL, seed: int = 0) -> Result:
    """Trains the network, averages its states by word and clusters them."""
    words = sorted(CLASSES)
    ids = {word: i for i, word in enumerate(words, 1)}
    sentences = itertools.islice(grammar.sentences(), size.sentences)
    stream = np.array([ids[word] for sentence in sentences for word in sentence.split()])
    keras.utils.set_random_seed(seed)
    reader = models.SequenceEncoder("elman", size.units, bidirectional=False)
    model = models.LanguageModel(models.Decoder(models.TextEncoder(len(words) + 1, 16, reader)))
    model.compile(
        keras.optimizers.Adam(0.003, global_clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    windows = (len(stream) - 1) // _WINDOW
    inputs, targets = (
        stream[start : start + windows * _WINDOW].reshape(windows, _WINDOW) for start in (0, 1)
    )
    history = model.fit(inputs, targets, 32, size.epochs, verbose=0)

    states = np.array(model.hidden(inputs))  # [windows, _WINDOW, units]
    means = np.stack([states[inputs == ids[word]].mean(axis=0) for word in words])  # [words, units]
    linkage = hierarchy.linkage(means, "average")
    top = hierarchy.fcluster(linkage, 2, "maxclust")  # [words]
    is_noun = np.array([CLASSES[word].startswith("NOUN") for word in words])
    nouns = [word for word in words if CLASSES[word].startswith("NOUN")]
    named = [CLASSES[word] for word in nouns]
    found = hierarchy.fcluster(hierarchy.linkage(means[is_noun], "average"), 6, "maxclust")
    pure = purity(found, named)
    claims = {
        "the first split of all words is that of nouns and verbs": bool(
            len(set(top[is_noun])) == len(set(top[~is_noun])) == 1
        ),
        "six clusters of the nouns are nearly the six classes of the grammar": bool(pure > 0.8),
    }
    groups = {
        cluster: [w for w, c in zip(nouns, found, strict=True) if c == cluster]
        for cluster in sorted(set(found))
    }
    numbers = {
        "words_of_text": len(stream),
        "perplexity": np.exp(history.history["loss"][-1]),
        "purity_of_six_noun_clusters": pure,
        "noun_clusters": [" ".join(group) for group in groups.values()],
    }
    figure = tree(linkage, words, [CLASSES[word] for word in words], "distance of the mean states")
    return Result(claims, rounded(numbers), {"word-classes": figure})


def purity(clusters: np.ndarray, classes: list[str]) -> float:
    """Returns the share of words whose class is the most frequent one of their cluster."""
    classes = np.array(classes)
    most = [np.unique(classes[clusters == c], return_counts=True)[1].max() for c in set(clusters)]
    return sum(most) / len(classes)
