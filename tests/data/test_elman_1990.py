import hashlib
import itertools
import math
from collections import Counter

import pytest

from rnnapps.data.datasets.elman_1990 import grammar

# The two examples that the table of classes gives, with its "break" for food read as "bread".
PUBLISHED_EXAMPLES = {
    "NOUN-HUM": {"man", "woman"},
    "NOUN-ANIM": {"cat", "mouse"},
    "NOUN-INANIM": {"book", "rock"},
    "NOUN-AGRESS": {"dragon", "monster"},
    "NOUN-FRAG": {"glass", "plate"},
    "NOUN-FOOD": {"cookie", "bread"},
    "VERB-INTRAN": {"think", "sleep"},
    "VERB-TRAN": {"see", "chase"},
    "VERB-AGPAT": {"move", "break"},
    "VERB-PERCEPT": {"smell", "see"},
    "VERB-DESTROY": {"break", "smash"},
    "VERB-EAT": {"eat"},
}

DIGEST_OF_TRAIN = "3bac18001a9cbad641cb398020ee852008ba987363e40550c06d3f275cc967d4"


@pytest.fixture(scope="module")
def splits():
    sentences = grammar.sentences()
    return {
        split: list(itertools.islice(sentences, size))
        for split, size in grammar.SPLIT_SIZES.items()
    }


@pytest.fixture(scope="module")
def language():
    """The templates of every sentence that there can be."""
    templates = {}
    for template in grammar.TEMPLATES:
        for words in itertools.product(*(grammar.CLASSES[name] for name in template)):
            templates.setdefault(" ".join(words), []).append(template)
    return templates


def test_sentences_are_the_same_on_every_machine(splits):
    text = "\n".join(splits["train"])
    assert hashlib.sha256(text.encode()).hexdigest() == DIGEST_OF_TRAIN


def test_classes_are_those_of_the_paper():
    assert grammar.CLASSES.keys() == PUBLISHED_EXAMPLES.keys()
    for name, words in PUBLISHED_EXAMPLES.items():
        assert words <= set(grammar.CLASSES[name])
    classes = Counter(word for words in grammar.CLASSES.values() for word in words)
    assert len(classes) == 29
    assert {word for word, number in classes.items() if number > 1} == {"break", "see"}


def test_there_are_sixteen_templates_of_two_or_three_classes():
    assert len(set(grammar.TEMPLATES)) == len(grammar.TEMPLATES) == 16
    assert Counter(map(len, grammar.TEMPLATES)) == {2: 4, 3: 12}
    assert {name for template in grammar.TEMPLATES for name in template} == set(grammar.CLASSES)


def test_every_sentence_has_one_template_and_the_templates_are_equally_frequent(splits, language):
    counts = Counter()
    for sentence in itertools.chain.from_iterable(splits.values()):
        (template,) = language[sentence]
        counts[template] += 1
    mean = sum(grammar.SPLIT_SIZES.values()) / 16
    assert all(abs(counts[template] - mean) < 4 * math.sqrt(mean) for template in grammar.TEMPLATES)


def test_every_sentence_of_the_language_is_drawn(splits, language):
    assert set(splits["train"]) == set(language)
    # The paper's 10,000 sentences have 27,534 words.
    assert abs(sum(len(sentence.split()) for sentence in splits["train"]) - 27_534) < 200


def test_documented_entropy_is_that_of_the_language(language):
    sizes = Counter(template for (template,) in language.values())
    entropy = 0.0
    for (template,) in language.values():
        probability = 1 / 16 / sizes[template]
        entropy -= probability * math.log(probability)
    symbols = sum(len(template) + 1 for template in grammar.TEMPLATES) / 16
    perplexity = math.exp(entropy / symbols)
    documentation = " ".join(grammar.__doc__.split())
    assert f"There are {len(language)} sentences" in documentation
    assert f"= {entropy:.2f} nats" in documentation
    assert f"a perplexity of {perplexity:.2f}" in documentation


def test_builder_offers_the_same_sentences(tmp_path, monkeypatch, splits):
    from rnnapps.data.datasets.elman_1990 import elman_1990_dataset_builder as module

    monkeypatch.setattr(grammar, "SPLIT_SIZES", {"train": 30, "dev": 5, "test": 5})
    builder = module.Builder(data_dir=tmp_path)
    builder.download_and_prepare()
    assert builder.name == "elman_1990"
    assert str(builder.version) in builder.RELEASE_NOTES

    start = 0
    for split, size in grammar.SPLIT_SIZES.items():
        read = [
            example["text"].decode()
            for example in builder.as_dataset(split=split).as_numpy_iterator()
        ]
        assert sorted(read) == sorted(splits["train"][start : start + size])
        start += size
