"""The sentences with which Elman found classes of words in a network's states (Elman 1990).

Two or three words of 29 make a sentence: one of the 16 templates of the paper's table of templates
is drawn, then a word for each class in it, all with equal probability. Nothing marks what a word
is; that "cookie" is eaten and "glass" is broken can be learnt only from what stands beside it.

The paper's table of classes gives two examples of each class, and the figure of the clusters shows
all 29 words. The words that stand in the figure only ("boy", "girl", "dog", "lion", "car",
"sandwich", "exist" and "like") are put here into the class of their neighbours in the figure. For
food the table prints "cookie, break", taken for a misprint: the figure has "bread". Every noun has
one class; "break" and "see" have two.

There are 252 sentences, and no two templates share one, so the entropy of a sentence is
`ln 16 + mean ln(sentences of a template)` = 5.36 nats: a model that also says where a sentence ends
cannot get below a perplexity of 4.17 in the long run. The paper runs the sentences together without
any mark between them; here each is an example of its own.

The module needs only the standard library.
"""

import random
from collections.abc import Iterator, Sequence

SPLIT_SIZES = {"train": 10_000, "dev": 1_000, "test": 1_000}

CLASSES = {
    "NOUN-HUM": ("man", "woman", "boy", "girl"),
    "NOUN-ANIM": ("cat", "mouse", "dog"),
    "NOUN-INANIM": ("book", "rock", "car"),
    "NOUN-AGRESS": ("dragon", "monster", "lion"),
    "NOUN-FRAG": ("glass", "plate"),
    "NOUN-FOOD": ("cookie", "bread", "sandwich"),
    "VERB-INTRAN": ("think", "sleep", "exist"),
    "VERB-TRAN": ("see", "chase", "like"),
    "VERB-AGPAT": ("move", "break"),
    "VERB-PERCEPT": ("smell", "see"),
    "VERB-DESTROY": ("break", "smash"),
    "VERB-EAT": ("eat",),
}

TEMPLATES = (
    ("NOUN-HUM", "VERB-EAT", "NOUN-FOOD"),
    ("NOUN-HUM", "VERB-PERCEPT", "NOUN-INANIM"),
    ("NOUN-HUM", "VERB-DESTROY", "NOUN-FRAG"),
    ("NOUN-HUM", "VERB-INTRAN"),
    ("NOUN-HUM", "VERB-TRAN", "NOUN-HUM"),
    ("NOUN-HUM", "VERB-AGPAT", "NOUN-INANIM"),
    ("NOUN-HUM", "VERB-AGPAT"),
    ("NOUN-ANIM", "VERB-EAT", "NOUN-FOOD"),
    ("NOUN-ANIM", "VERB-TRAN", "NOUN-ANIM"),
    ("NOUN-ANIM", "VERB-AGPAT", "NOUN-INANIM"),
    ("NOUN-ANIM", "VERB-AGPAT"),
    ("NOUN-INANIM", "VERB-AGPAT"),
    ("NOUN-AGRESS", "VERB-DESTROY", "NOUN-FRAG"),
    ("NOUN-AGRESS", "VERB-EAT", "NOUN-HUM"),
    ("NOUN-AGRESS", "VERB-EAT", "NOUN-ANIM"),
    ("NOUN-AGRESS", "VERB-EAT", "NOUN-FOOD"),
)


def sentences() -> Iterator[str]:
    """Yields sentences without end, the same ones in the same order on every machine.

    Returns:
        Iterator of sentences, their words separated by blanks. Sentences repeat, as in the paper.

    Example:

    >>> next(sentences())
    'book break'
    """
    rng = random.Random("rnnapps elman 1990 1.0.0")

    def choose(options: Sequence):
        # Only `random()` is promised to give the same numbers in every version of Python.
        return options[int(rng.random() * len(options))]

    while True:
        yield " ".join(choose(CLASSES[name]) for name in choose(TEMPLATES))
