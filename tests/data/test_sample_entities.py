import functools
import hashlib
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

import pytest

from rnnapps.data.datasets.sample_entities import grammar
from rnnapps.data.tagging_schemes import spans

DIGEST = "8ddab8afac3a6e44dd3f51b62d064beb5d7a7a72153d39f9cd7fabc98f75598c"

SHOWS_ITS_TYPE = {"nationality", "people", "agency"}
PARTICLES = r"(?:(?:de|di|da|du|la|van|von|der) )*"
CAPITALS = "".join(chr(code) for code in range(0x250) if chr(code).isupper())
NAME = rf"[{CAPITALS}]['\w-]*"


@pytest.fixture(scope="module")
def splits():
    return grammar.splits()


def test_sentences_are_the_same_whatever_the_hash_seed(splits):
    lines = [" ".join((split, *s.tokens, *s.tags)) for split in splits for s in splits[split]]
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == DIGEST

    script = (
        "import hashlib\n"
        "from rnnapps.data.datasets.sample_entities.grammar import splits\n"
        "lines = [' '.join((split, *s.tokens, *s.tags)) for split, sentences in splits().items()"
        " for s in sentences]\n"
        "print(hashlib.sha256('\\n'.join(lines).encode()).hexdigest())"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed.strip() == DIGEST


def test_no_sentence_comes_twice(splits):
    assert {split: len(splits[split]) for split in splits} == grammar.SPLIT_SIZES
    keys = [_words(s.tokens) for split in splits.values() for s in split]
    assert len(set(keys)) == len(keys)
    assert _words(grammar.HELD_OUT.split()) not in keys


def test_tags_are_iob2_of_four_types(splits):
    for split in splits.values():
        types = Counter(span.type for s in split for span in spans(s.tags, "iob2"))
        assert set(types) == set(grammar.TYPES)
        assert min(types.values()) > 0.05 * sum(types.values())


def test_sentences_are_tokenised_as_in_conll(splits):
    for sentence in (sentence for split in splits.values() for sentence in split):
        assert len(sentence.tokens) == len(sentence.tags)
        assert 3 <= len(sentence.tokens) <= 35, sentence.tokens
        for token in sentence.tokens:
            assert re.fullmatch(
                r"[^\W\d_](['-]?[^\W\d_])*"  # words
                r"|[A-Z]\.|(?i:inc|ltd|corp|co|dr)\.|(?i:'s)"  # abbreviations, the genitive
                r"|\d+([-,.:/]\d+)*"  # numbers, scores, times, dates
                r"|[.,:;?!()&$'\"-]",
                token,
            ), (token, sentence)
        text = " ".join(sentence.tokens)
        assert not re.search(r"\b[Aa] [aeioAEIO]|\b[Aa]n [^aeiouAEIOU]", text), text
        assert text[0] == text[0].upper()


def test_registers_and_templates_are_many(splits):
    templates = [t for templates in grammar.SENTENCES.values() for t in templates]
    assert len(set(templates)) >= 200
    assert {s.register for s in splits["test"]} == set(grammar.SENTENCES)
    endings = Counter(s.tokens[-1] in ".?!" for s in splits["train"])
    assert endings[False] > 0.1 * endings.total()


def test_half_of_the_entities_of_dev_and_test_are_new(splits):
    known = {token.casefold() for s in splits["train"] for token in s.tokens}
    for split in ("dev", "test"):
        entities = [entity.casefold().split() for _, entity in _entities(splits[split])]
        new = sum(not known.issuperset(entity) for entity in entities)
        assert 0.45 < new / len(entities) < 0.55
    for pool in grammar.POOLS.values():
        assert not any(known.issuperset(n.casefold().split("_")) for n in pool.unseen)


def test_many_names_are_of_several_types(splits):
    tags = _tag_counts(splits["train"])
    types = {token: {tag[2:] for tag in found} for token, found in tags.items()}
    assert sum(len(found - {""}) >= 2 for found in types.values()) > 500
    assert types["Washington"] & types["Chelsea"] & types["Houston"] == {"PER", "LOC", "ORG"}
    assert {"B-PER", "I-PER", "B-LOC"} <= set(tags["Jordan"])
    for token in ("Will", "Mark", "May", "Hope", "Rose", "Frank", "Grant", "Reading", "Bath"):
        assert types[token] > {""}, token


def test_both_kinds_of_neighbours_come_without_a_word_between(splits):
    neighbours = {
        (before.type, after.type)
        for s in splits["train"]
        for before, after in zip(spans(s.tags, "iob2"), spans(s.tags, "iob2")[1:], strict=False)
        if before.end == after.start
    }
    assert neighbours >= {("PER", "LOC"), ("MISC", "PER"), ("PER", "PER")}


def test_the_most_frequent_tag_of_each_word_fails(splits):
    train, test = _tag_counts(splits["train"]), _tag_counts(splits["test"])
    # Where two tags are as frequent, the one that is more often right.
    tag_of = {
        token: max(train[token], key=lambda tag: (train[token][tag], test[token][tag]))
        for token in train
    }
    num_right = num_found = num_true = 0
    for sentence in splits["test"]:
        # Read as IOB1, tags may follow each other in any order.
        found = set(spans([tag_of.get(token, "O") for token in sentence.tokens], "iob1"))
        true = set(spans(sentence.tags, "iob2"))
        num_right += len(found & true)
        num_found += len(found)
        num_true += len(true)
    assert 0.2 < 2 * num_right / (num_found + num_true) < 0.6


def test_no_sentence_could_have_other_tags(splits):
    """Context decides completely: whoever knows the grammar, but no name, makes no mistake."""
    reader = _Reader()
    for sentence in splits["test"]:
        assert reader.readings(sentence.tokens) == {sentence.tags}, sentence


def test_documented_examples_have_their_tags_and_no_other():
    reader = _Reader()
    assert reader.readings(grammar.HELD_OUT.split()) == {tuple(grammar.HELD_OUT_TAGS.split())}
    table = re.split("=+ =+\n", grammar.__doc__)[2]
    for line in table.splitlines():
        sentence, types = re.split("  +|(?<=[.?]) ", line)
        (tags,) = reader.readings(sentence.split())
        assert [span.type for span in spans(tags, "iob2")] == types.split(", "), line


def test_builder_offers_the_same_sentences(tmp_path, monkeypatch, splits):
    from rnnapps.data.datasets.sample_entities import sample_entities_dataset_builder as module

    monkeypatch.setattr(grammar, "SPLIT_SIZES", {"train": 40, "dev": 6, "test": 10})
    builder = module.Builder(data_dir=tmp_path)
    builder.download_and_prepare()
    assert builder.name == "sample_entities"
    assert str(builder.version) in builder.RELEASE_NOTES
    for split, size in grammar.SPLIT_SIZES.items():
        read = {
            tuple(tuple(text.decode() for text in example[key]) for key in ("tokens", "tags"))
            for example in builder.as_dataset(split=split).as_numpy_iterator()
        }
        assert read == {(s.tokens, s.tags) for s in splits[split][:size]}


class _Reader:
    """Finds every way in which the grammar could have written and tagged a sentence.

    It knows no name: any word with a capital may be of any person, place, company, club or work.
    Only nationalities and agencies it takes for nothing else but what they are.
    """

    def __init__(self):
        self._templates = defaultdict(list)
        for register, templates in grammar.SENTENCES.items():
            for template in dict.fromkeys(templates):
                words = template.split()
                literal = {w.casefold() for w in words if not re.search(r"[{#]|^[Aa]$", w)}
                self._templates[register == "headline"].append((literal, words))

    def readings(self, tokens: Sequence[str]) -> set[tuple[str, ...]]:
        tokens = [*tokens]
        folded = {token.casefold() for token in tokens}
        found = set()
        for literal, words in self._templates[" ".join(tokens).isupper()]:
            if literal <= folded:
                beginnings = [words, *(["{city}", *d.split(), *words] for d in grammar.DATELINES)]
                for beginning in beginnings:
                    found |= {t for end, t in _read(beginning, tokens, 0) if end == len(tokens)}
        return found


def _read(words: list[str], tokens: list[str], at: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yields where the words of a template may end that begin at a token, and their tags."""
    if not words:
        yield at, ()
        return
    for middle, tags in _read_one(words[0], tokens, at):
        for end, others in _read(words[1:], tokens, middle):
            yield end, tags + others


def _read_one(word: str, tokens: list[str], at: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    slot = grammar.SLOT.fullmatch(word)
    if not slot:
        pattern = re.escape(word).replace(r"\#", "[2-9]") + ("n?" if word in "aA" else "")
        if at < len(tokens) and re.fullmatch(pattern, tokens[at], re.IGNORECASE):
            yield at + 1, ("O",)
    elif slot[1] in grammar.ENTITIES:
        kind, *forms = grammar.ENTITIES[slot[1]]
        text = " ".join(tokens[at : at + 6])
        for end in {end for form in forms for end in _ends(_name_pattern(form), text)}:
            yield at + end, (f"B-{kind}", *(f"I-{kind}",) * (end - 1))
    else:
        for choice in (grammar.CLAUSES | grammar.PRONOUNS | grammar.WORDS)[slot[1]]:
            yield from _read(choice.split(), tokens, at)


def _ends(pattern: re.Pattern, text: str) -> Iterator[int]:
    """Yields how many of the first words match."""
    words = text.split()
    for end in range(1, len(words) + 1):
        if pattern.fullmatch(" ".join(words[:end])):
            yield end


@functools.cache
def _name_pattern(form: str) -> re.Pattern:
    def part(slot: re.Match) -> str:
        if slot[1] in grammar.PARTS:
            return _any_of(grammar.PARTS[slot[1]])
        pool = grammar.POOLS.get(slot[1])
        listed = [name.replace("_", " ") for names in pool or () for name in names]
        if slot[1] in SHOWS_ITS_TYPE:
            return _any_of(listed)
        several = [name for name in listed if not re.fullmatch(PARTICLES + NAME, name)]
        return _any_of([*several, ""])[:-1] + f"{PARTICLES}(?-i:{NAME}))"

    return re.compile(grammar.SLOT.sub(part, form.replace(".", r"\.")), re.IGNORECASE)


def _any_of(options: Iterable[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, options))})"


def _entities(sentences: Iterable[grammar.Sentence]) -> Iterator[tuple[str, str]]:
    for sentence in sentences:
        for start, end, kind in spans(sentence.tags, "iob2"):
            yield kind, " ".join(sentence.tokens[start:end])


def _tag_counts(sentences: Iterable[grammar.Sentence]) -> defaultdict[str, Counter[str]]:
    counts = defaultdict(Counter)
    for sentence in sentences:
        for token, tag in zip(sentence.tokens, sentence.tags, strict=True):
            counts[token][tag] += 1
    return counts


def _words(tokens: Sequence[str]) -> str:
    return " ".join(re.findall(r"\w+", " ".join(tokens).casefold()))
