import hashlib
import itertools
import math
import os
import re
import subprocess
import sys
from ast import literal_eval
from collections import Counter
from collections.abc import Iterable

import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from rnnapps.data.datasets.sample_reviews import grammar

TOKEN = r"n't|\w+?(?=n't)|\w+|[^\w\s]"

DOCUMENTED = {
    "The food is tasty and the staff is really helpful.": "positive",
    "There is nothing to enjoy in this novel.": "negative",
    "The bar was charming at first, but the waiters were rude.": "negative",
    "I was told that the plot is dull. I was told wrong.": "positive",
    "Once shabby, the hotel is now lovely.": "positive",
    "Nobody would say that the soup isn't tasty or that the service is bad.": "positive",
}

FURTHER = {
    "There is nothing to dislike in this film!": "positive",
    "There is plenty to hate in this film.": "negative",
    "I looked for something to fault in this hotel and found nothing": "positive",
    "The film is anything but a mess.": "positive",
    "The film is nothing but a mess.": "negative",
    "The staff was rude, although this café was cosy.": "negative",
    "Although the staff was rude, this café was cosy.": "positive",
    "My friends said that the play was funny, the music was lovely and the plot was clever. "
    "They were wrong.": "negative",
    "Who wouldn't love this book?": "positive",
    "How could anyone love this book?": "negative",
}

DIGEST_OF_500 = "2908fceca3f3756ad8e427ee2ac4db5af19c73ab6c8629acd4833af28b4e13b3"


@pytest.fixture(scope="module")
def splits():
    reviews = grammar.reviews()
    return {
        split: list(itertools.islice(reviews, size)) for split, size in grammar.SPLIT_SIZES.items()
    }


@pytest.fixture(scope="module")
def languages():
    return {label: _language(label) for label in grammar.LABELS}


def test_reviews_are_the_same_whatever_the_hash_seed():
    assert _digest(itertools.islice(grammar.reviews(), 500)) == DIGEST_OF_500

    script = (
        "import itertools\n"
        "from rnnapps.data.datasets.sample_reviews.grammar import reviews\n"
        "print([tuple(review) for review in itertools.islice(reviews(), 500)])"
    )
    for hash_seed in ("1", "2"):
        printed = subprocess.run(
            [sys.executable, "-X", "utf8", "-c", script],
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            encoding="utf-8",
            check=True,
        ).stdout
        assert _digest(itertools.starmap(grammar.Review, literal_eval(printed))) == DIGEST_OF_500


def test_no_text_comes_twice(splits):
    texts = [_words(review.text) for split in splits.values() for review in split]
    assert len(texts) == len(set(texts)) == sum(grammar.SPLIT_SIZES.values())


def test_held_out_examples_are_absent_but_in_the_language(splits, languages):
    texts = {_words(review.text) for split in splits.values() for review in split}
    vocabulary = {word for review in splits["train"] for word in _words(review.text).split()}
    for text, label in zip(grammar.HELD_OUT, ("positive", "negative"), strict=True):
        assert _words(text) not in texts
        assert vocabulary.issuperset(_words(text).split())
        assert _labels(text, languages) == [label]


def test_labels_are_balanced_in_every_split_and_every_kind(splits):
    for split in splits.values():
        assert Counter(review.label for review in split) == {
            label: len(split) // 2 for label in grammar.LABELS
        }
    kinds = Counter((review.kind, review.label) for review in splits["train"])
    for kind in {kind for kind, _ in kinds}:
        positive, negative = kinds[kind, "positive"], kinds[kind, "negative"]
        assert 0.45 < positive / (positive + negative) < 0.55


def test_no_word_gives_the_label_away(splits):
    counts = {label: Counter() for label in grammar.LABELS}
    for review in splits["train"]:
        counts[review.label].update(set(re.findall(TOKEN, review.text.casefold())))
    for token in set().union(*counts.values()):
        positive, negative = (counts[label][token] for label in ("positive", "negative"))
        # Four standard deviations of a fair coin.
        assert abs(positive - negative) <= 4 * math.sqrt(positive + negative), token


def test_every_word_is_frequent_enough_to_be_learnt(splits):
    words = Counter(word for review in splits["train"] for word in _words(review.text).split())
    assert min(words.values()) >= 10, words.most_common()[-5:]
    assert len(words) < 300


def test_praise_and_blame_have_as_many_words():
    for praise, blame in grammar.PRAISE_AND_BLAME.values():
        assert len(set(praise)) == len(set(blame)) == len(praise)
        assert not set(praise) & set(blame)


@pytest.mark.parametrize("vectoriser", [CountVectorizer, TfidfVectorizer])
def test_a_linear_model_on_unigrams_and_bigrams_fails(splits, vectoriser):
    train, test = splits["train"], splits["test"]
    features = vectoriser(ngram_range=(1, 2), token_pattern=TOKEN)
    train_features = features.fit_transform([review.text for review in train])
    test_features = features.transform([review.text for review in test])
    accuracies = [
        LogisticRegression(C=strength, max_iter=1000)
        .fit(train_features, [review.label for review in train])
        .score(test_features, [review.label for review in test])
        for strength in (0.1, 1.0, 10.0, 100.0)
    ]
    assert max(accuracies) < 0.75


@pytest.mark.parametrize(("text", "label"), (DOCUMENTED | FURTHER).items())
def test_examples_have_their_label_and_no_other(text, label, languages):
    assert _labels(text, languages) == [label]


def test_documented_examples_stand_in_the_docstring():
    documentation = " ".join(grammar.__doc__.split())
    for text in DOCUMENTED:
        assert text in documentation


def test_no_review_could_have_the_other_label(splits, languages):
    """Structure decides the label completely: a perfect reader makes no mistake."""
    for review in splits["test"]:
        assert _labels(review.text, languages) == [review.label], review


def test_reviews_read_like_sentences(splits):
    for review in itertools.chain.from_iterable(splits.values()):
        assert re.fullmatch(r"[\wé',:.?! ]+", review.text), review
        assert "  " not in review.text and not re.search(r" [,:.?!]", review.text), review
        assert not re.search(r"\b[Aa] [aeiou]|\b[Aa]n [^aeiou]", review.text), review


def test_builder_offers_the_same_reviews(tmp_path, monkeypatch, splits):
    from rnnapps.data.datasets.sample_reviews import sample_reviews_dataset_builder as module

    monkeypatch.setattr(grammar, "SPLIT_SIZES", {"train": 40, "dev": 6, "test": 10})
    builder = module.Builder(data_dir=tmp_path)
    builder.download_and_prepare()
    assert builder.name == "sample_reviews"
    assert builder.info.features["label"].names == ["negative", "positive"]
    assert str(builder.version) in builder.RELEASE_NOTES

    start = 0
    for split, size in grammar.SPLIT_SIZES.items():
        examples = builder.as_dataset(split=split).as_numpy_iterator()
        read = {
            (example["text"].decode(), grammar.LABELS[example["label"]]) for example in examples
        }
        written = splits["train"][start : start + size]
        assert read == {(review.text, review.label) for review in written}
        start += size


def _digest(reviews: Iterable[grammar.Review]) -> str:
    lines = "".join(f"{review.label} {review.text}\n" for review in reviews)
    return hashlib.sha256(lines.encode()).hexdigest()


def _words(text: str) -> str:
    return " ".join(re.findall(r"[\w']+", text.casefold()))


def _labels(text: str, languages: dict[str, re.Pattern]) -> list[str]:
    return [label for label, language in languages.items() if language.fullmatch(text)]


def _language(label: str) -> re.Pattern:
    """Every review that the grammar can write for a label, as one regular expression.

    Agreement between the words of a sentence is not kept, so the language is somewhat too wide.
    """
    openings = "|".join(itertools.chain.from_iterable(grammar.OPENINGS.values()))
    review = _pattern("review", 1 if label == "positive" else -1)
    return re.compile(f"(?:(?:{openings})\\. )?{review}[.!?]?", re.IGNORECASE)


def _pattern(symbol: str, sign: int) -> str:
    def slot_pattern(slot: re.Match) -> str:
        name, slot_sign = slot[1], -sign if slot[2] == "-" else sign
        if name in grammar.GRAMMAR:
            return _pattern(name, slot_sign)
        return f"(?:{'|'.join(sorted(_terminals(name, slot_sign)))})"

    templates = (
        re.sub(r"\ba (?=\{)", "an? ", template.replace(".", r"\.").replace("?", r"\?"))
        for template in dict.fromkeys(grammar.GRAMMAR[symbol])
    )
    return f"(?:{'|'.join(grammar.SLOT.sub(slot_pattern, template) for template in templates)})"


def _terminals(slot: str, sign: int) -> set[str]:
    return {
        word
        for topic in grammar.TOPICS
        for subject in (*topic.names, *topic.aspects)
        for past in (False, True)
        for word in grammar.terminals(slot, sign, topic, subject, past)
    }
