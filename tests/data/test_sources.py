"""Data specs to splits: nothing lost, nothing twice, nothing on two sides."""

import contextlib
import functools
import importlib
import logging
import os
import sys
import textwrap
from collections import Counter

import pytest
import tensorflow as tf
import tensorflow_datasets as tfds
from hypothesis import given, settings
from hypothesis import strategies as st

from rnnapps.data import sources, tagged
from rnnapps.data.formats import parallel
from rnnapps.data.formats.conll import read_conll
from rnnapps.data.formats.labelled import read_labelled
from rnnapps.data.formats.rows import BadRow
from rnnapps.errors import UserError

FIELDS = {"text": "text", "label": "label"}
options = {"read": read_labelled, "sample": "sample_reviews", "fields": FIELDS}
load_splits = functools.partial(sources.load_splits, **options, key="text")
load_all = functools.partial(sources.load_all, **options)


def table(path, texts, header="text\tlabel\n"):
    path.write_text(header + "".join(f"{text}\tpos\n" for text in texts), encoding="utf-8")
    return str(path)


def films(count, start=0):
    return [f"film number {number}" for number in range(start, start + count)]


def texts_of(dataset):
    return [example["text"].numpy().decode() for example in dataset]


def test_each_row_falls_in_one_split_in_proportion(tmp_path):
    texts = films(3_000)
    splits = load_splits(table(tmp_path / "x.tsv", texts))
    found = {part: texts_of(dataset) for part, dataset in splits.items()}
    assert list(found) == ["train", "dev", "test"]
    assert Counter(sum(found.values(), [])) == Counter(texts)
    # Four standard deviations of a binomial count.
    assert len(found["train"]) == pytest.approx(2_400, abs=4 * (3_000 * 0.8 * 0.2) ** 0.5)
    assert len(found["dev"]) == pytest.approx(300, abs=4 * (3_000 * 0.1 * 0.9) ** 0.5)
    for part, dataset in splits.items():
        assert int(dataset.cardinality()) == len(found[part])
        assert texts_of(dataset) == found[part]
        assert found[part] == sorted(found[part], key=texts.index)
        assert dataset.element_spec == {name: tf.TensorSpec([], tf.string) for name in FIELDS}


def test_adding_rows_moves_none(tmp_path):
    before = load_splits(table(tmp_path / "x.tsv", films(200)))
    after = load_splits(table(tmp_path / "y.tsv", films(100, start=900) + films(200)))
    for part in sources.PARTS:
        assert set(texts_of(before[part])) <= set(texts_of(after[part]))


def test_another_seed_divides_otherwise_and_the_same_seed_the_same(tmp_path):
    path = table(tmp_path / "x.tsv", films(200))
    first, again, other = (texts_of(load_splits(path, seed=seed)["dev"]) for seed in (0, 0, 1))
    assert first == again != other


SHARES = sources.parse_shares("80/10/10")


@settings(deadline=None)
@given(st.text(), st.integers(0, 2**40))
def test_a_key_falls_where_its_variants_fall(key, seed):
    part = sources.hashed_part(key, SHARES, seed)
    assert part in sources.PARTS
    assert sources.hashed_part(f" {key}\n", SHARES, seed) == part
    assert sources.hashed_part(key.replace(" ", " \u3000\t"), SHARES, seed) == part


@pytest.mark.parametrize("number", range(20))
def test_case_width_and_white_space_do_not_count(number):
    plain = f"a film number {number}"
    wide = "".join(chr(ord(c) + 0xFEE0) if c != " " else "\u3000" for c in plain.upper())
    assert sources.hashed_part(wide, SHARES, 0) == sources.hashed_part(plain, SHARES, 0)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=5), st.integers(1, 20), st.integers(1, 20))
def test_a_larger_train_share_only_takes_more_in(key, smaller, more):
    shares = [sources.parse_shares(f"{train}/10/10") for train in (smaller, smaller + more)]
    if sources.hashed_part(key, shares[0], 0) == "train":
        assert sources.hashed_part(key, shares[1], 0) == "train"


@pytest.mark.parametrize("splits", ["80/10", "80/10/10/0", "a/b/c", "-1/1/1", "0/1/1", "nan/1/1"])
def test_splits_of_another_form(splits):
    with pytest.raises(UserError, match=f"Received: splits='{splits}'"):
        sources.parse_shares(splits)


def test_shares_are_proportions():
    assert sources.parse_shares("8/1/1") == pytest.approx((0.8, 0.1, 0.1))


def test_given_parts_replace_the_hashed_ones_which_stay_in_train(tmp_path):
    texts = films(300)
    path = table(tmp_path / "x.tsv", texts)
    dev, test = table(tmp_path / "d.tsv", ["a dev"]), table(tmp_path / "t.tsv", ["a test"])
    plain = {part: texts_of(dataset) for part, dataset in load_splits(path).items()}
    splits = load_splits(path, dev_data=dev)
    assert texts_of(splits["dev"]) == ["a dev"]
    assert texts_of(splits["test"]) == plain["test"]
    assert set(texts_of(splits["train"])) == {*plain["train"], *plain["dev"]}
    splits = load_splits(path, dev_data=dev, test_data=test)
    assert texts_of(splits["train"]) == texts and texts_of(splits["test"]) == ["a test"]


def folder_of_splits(folder, *parts):
    for number, part in enumerate(parts):
        table(folder / f"{part}.tsv", films(100, start=100 * number))
    return str(folder)


def test_official_splits_are_kept_and_the_missing_one_carved_out_of_train(tmp_path, caplog):
    path = folder_of_splits(tmp_path, "train", "test")
    splits = load_splits(path)
    assert texts_of(splits["test"]) == films(100, start=100)
    assert sorted(texts_of(splits["train"]) + texts_of(splits["dev"])) == sorted(films(100))
    assert 0 < int(splits["dev"].cardinality()) < 40
    assert texts_of(load_all(path)) == films(200)
    assert not caplog.records


def test_an_official_split_that_is_replaced_is_left_out_with_a_warning(tmp_path, caplog):
    path = folder_of_splits(tmp_path, "train", "valid", "test")
    given = table(tmp_path / "given.tsv", ["another"])
    with caplog.at_level(logging.WARNING, "rnnapps"):
        splits = load_splits(path, test_data=given)
    assert texts_of(splits["train"]) == films(100)
    assert texts_of(splits["dev"]) == films(100, start=100)
    assert texts_of(splits["test"]) == ["another"]
    assert "test split" in caplog.text and given in caplog.text


def test_data_with_splits_of_its_own_gives_the_part_that_is_asked_for(tmp_path):
    path = table(tmp_path / "x.tsv", films(200, start=500))
    folder = tmp_path / "folder"
    folder.mkdir()
    official = folder_of_splits(folder, "train", "dev")
    assert texts_of(load_splits(path, dev_data=official)["dev"]) == films(100, start=100)
    with pytest.raises(UserError, match="has no test split; it has: dev, train"):
        load_splits(path, test_data=official)


def test_empty_split_says_which(tmp_path):
    with pytest.raises(UserError, match=r"falls into (dev|test) \(1 good rows\): give (dev|test)_"):
        load_splits(table(tmp_path / "x.tsv", films(1)))
    with pytest.raises(UserError, match="falls into test"):
        load_splits(table(tmp_path / "x.tsv", films(100)), splits="80/20/0")


def test_bad_rows_stop_with_the_first_five_and_their_count(tmp_path, caplog):
    path = table(tmp_path / "x.tsv", films(100) + [f"bad\t{n}" for n in range(1_200)])
    with pytest.raises(UserError) as raised:
        load_splits(path)
    count, named = str(raised.value).splitlines()
    assert count == "1,200 bad rows (on_bad_row=skip goes on without):"
    reasons = named.split("; ")
    assert reasons[:2] == [
        f"{path}:{line}: 3 columns where 2 columns are needed" for line in (102, 103)
    ]
    assert len(reasons) == 6 and reasons[-1] == "…"
    with pytest.raises(UserError, match="1,200 bad rows"):
        load_all(path)


def test_bad_rows_are_skipped_with_a_warning(tmp_path, caplog):
    path = table(tmp_path / "x.tsv", films(50) + ["bad\trow"] + films(50, start=50))
    with caplog.at_level(logging.WARNING, "rnnapps"):
        splits = load_splits(path, on_bad_row="skip")
    assert sorted(sum(map(texts_of, splits.values()), [])) == sorted(films(100))
    assert [record.getMessage() for record in caplog.records] == [
        f"Skipped 1 bad row: {path}:52: 3 columns where 2 columns are needed"
    ]
    assert texts_of(load_all(path, on_bad_row="skip")) == films(100)


def test_nothing_but_bad_rows(tmp_path):
    path = table(tmp_path / "x.tsv", ["bad\trow"])
    with pytest.raises(UserError, match="no example of .* falls into train"):
        load_splits(path, on_bad_row="skip")
    with pytest.raises(UserError, match="holds no examples"):
        load_all(path, on_bad_row="skip")


def test_bad_option_and_missing_file(tmp_path):
    with pytest.raises(UserError, match="Received: on_bad_row='ignore'"):
        load_splits(table(tmp_path / "x.tsv", films(9)), on_bad_row="ignore")
    with pytest.raises(UserError, match="no such file or folder: nowhere.csv"):
        load_splits("nowhere.csv")
    with pytest.raises(UserError, match="no such file or folder: nowhere.csv"):
        load_splits(table(tmp_path / "x.tsv", films(9)), test_data="nowhere.csv")


def test_chunks_of_rows_and_of_long_texts(tmp_path, monkeypatch):
    texts = films(25) + ["long " * 50] * 3 + ["\u2028\x85é", ""]
    path = table(tmp_path / "x.tsv", texts)
    monkeypatch.setattr(sources, "CHUNK_ROWS", 10)
    monkeypatch.setattr(sources, "CHUNK_CHARACTERS", 200)
    assert texts_of(load_all(path)) == texts


def test_data_is_read_anew_in_each_iteration(tmp_path):
    path = table(tmp_path / "x.tsv", ["first"])
    dataset = load_all(path)
    assert texts_of(dataset) == ["first"]
    table(tmp_path / "x.tsv", ["second"])
    assert texts_of(dataset) == ["second"]


def test_lists_are_split_as_a_file_is(tmp_path):
    texts = films(200)
    from_file = load_splits(table(tmp_path / "x.tsv", texts))
    splits = sources.from_lists({"text": texts, "label": [1] * 200}, key="text")
    for part in sources.PARTS:
        assert texts_of(splits[part]) == texts_of(from_file[part])
        assert {example["label"].numpy() for example in splits[part]} == {b"1"}


def test_bytes_of_lists_are_left_as_they_are():
    images = [bytes([255, number]) for number in range(60)]
    splits = sources.from_lists({"image": images, "name": list(range(60))}, key="name")
    for split in splits.values():
        for example in split.as_numpy_iterator():
            assert example["image"] == bytes([255, int(example["name"])])


def test_lists_that_cannot_be_examples():
    with pytest.raises(UserError, match="'text': 2, 'label': 1"):
        sources.from_lists({"text": ["a", "b"], "label": ["pos"]}, key="text")
    with pytest.raises(UserError, match="the given lists:2: half of a surrogate pair"):
        sources.from_lists({"text": ["a", "\ud800"]}, key="text")


def listed(tmp_path, **parts):
    files = {}
    for part, texts in parts.items():
        files[part] = str(tmp_path / f"{part}.txt")
        with open(files[part], "w") as file:
            file.write("".join(f"{text}\n" for text in texts))
    return files


def test_lists_say_which_row_is_which_part(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    texts = films(60)
    data = table(tmp_path / "x.tsv", texts)
    parts = {"train": texts[5:40], "dev": texts[40:50], "test": [*texts[50:55], "film unknown"]}
    splits = load_splits(data, lists=listed(tmp_path, **parts))
    found = {part: texts_of(dataset) for part, dataset in splits.items()}
    assert found == parts | {"test": texts[50:55]}
    assert "10 examples of " in caplog.text and "in none of the lists" in caplog.text
    # Without a list of its own train is the rest, of which the hash decides what has no list.
    lists = listed(tmp_path, dev=texts[40:50], test=texts[50:55])
    rest = texts[:40] + texts[55:]
    assert texts_of(load_splits(data, lists=lists)["train"]) == rest
    only_test = load_splits(data, lists={"test": lists["test"], "dev": None})
    hashed = load_splits(data)
    assert texts_of(only_test["test"]) == texts[50:55]
    assert texts_of(only_test["dev"]) == [
        text for text in texts_of(hashed["dev"]) if text not in texts[50:55]
    ]
    only_train = load_splits(data, lists={"train": listed(tmp_path, train=texts[:50])["train"]})
    for part in sources.PARTS:
        assert texts_of(only_train[part]) == [
            text for text in texts_of(hashed[part]) if text in texts[:50]
        ]
    other = table(tmp_path / "y.tsv", films(9, start=100))
    assert texts_of(load_splits(data, dev_data=other, lists={"test": lists["test"]})["dev"]) == (
        films(9, start=100)
    )


def test_lists_that_do_not_fit(tmp_path):
    data = table(tmp_path / "x.tsv", films(60))
    lists = listed(tmp_path, dev=films(3), test=["no film"])
    with pytest.raises(UserError, match="none of the names in .*test.txt is an example of .*x.tsv"):
        load_splits(data, lists=lists)
    with pytest.raises(UserError, match="dev is given twice"):
        load_splits(data, lists=lists, dev_data=data)
    with pytest.raises(UserError, match="test.txt:1: film number 2 is in .*dev.txt too"):
        load_splits(data, lists=listed(tmp_path, dev=films(3), test=films(3, start=2)))
    with pytest.raises(UserError, match="no such file or folder: nowhere"):
        load_splits(data, lists={"dev": "nowhere"})
    os.rename(data, tmp_path / "train.tsv")
    table(tmp_path / "dev.tsv", films(9))
    lists = listed(tmp_path, test=films(3))
    with pytest.raises(UserError, match="has its own splits: dev, test, train"):
        load_splits(str(tmp_path), lists=lists)


def test_fields_that_are_functions_are_read_for_their_own_part_alone(caplog):
    reads = Counter()

    def read(path):
        def content(number):
            reads[number] += 1
            return BadRow(f"{number}.png", None, "torn") if number == 7 else bytes([number, 0])

        for number in range(40):
            yield {"image": functools.partial(content, number), "name": str(number)}

    load = functools.partial(
        sources.load_splits, "x", read=read, sample="", fields={"image": None, "name": None}
    )
    with pytest.raises(UserError, match="1 bad row .*\n7.png: torn"):
        load(key="name")
    reads.clear()
    splits = load(key="name", on_bad_row="skip")
    assert reads == dict.fromkeys(range(40), 1) and "7.png: torn" in caplog.text
    for dataset in splits.values():
        reads.clear()
        examples = list(dataset.as_numpy_iterator())
        assert len(examples) == int(dataset.cardinality())
        assert all(image["image"] == bytes([int(image["name"]), 0]) for image in examples)
        assert set(reads) - {7} == {int(image["name"]) for image in examples}


BUILDER = '''
    """A builder with a class label, numbers, a part without labels, and no dev split."""
    import tensorflow_datasets as tfds
    import numpy as np

    class Builder(tfds.core.GeneratorBasedBuilder):
        """Toy."""
        VERSION = tfds.core.Version("1.0.0")

        def _info(self):
            return self.dataset_info_from_configs(features=tfds.features.FeaturesDict({
                "review": tfds.features.Text(),
                "sentiment": tfds.features.ClassLabel(names=["bad", "good"]),
                "stars": np.int64,
                "vector": tfds.features.Tensor(shape=(2,), dtype=np.float32),
            }))

        def _split_generators(self, dl_manager):
            return {"train": self.examples(0, 200), "test": self.examples(200, 230),
                    "unsupervised": self.examples(300, 310)}

        def _generate_examples(self):
            raise NotImplementedError

        def examples(self, start, end):
            for n in range(start, end):
                label = -1 if n == 225 else n % 2
                yield n, {"review": f"film number {n} \\u2028", "sentiment": label, "stars": n % 5,
                          "vector": [0.0, 1.0]}
'''


TAGGED_BUILDER = '''
    """A builder of tagged sentences: IOB1 in train, some bad ones in dev, a mix in test."""
    import numpy as np
    import tensorflow_datasets as tfds

    class Builder(tfds.core.GeneratorBasedBuilder):
        """Toy."""
        VERSION = tfds.core.Version("1.0.0")

        def _info(self):
            return self.dataset_info_from_configs(features=tfds.features.FeaturesDict({
                "words": tfds.features.Sequence(tfds.features.Text()),
                "ner": tfds.features.Sequence(tfds.features.ClassLabel(names=["O", "I-X", "B-X"])),
                "pos": tfds.features.Sequence(tfds.features.Text()),
                "number": np.int64,
            }), disable_shuffling=True)

        def _split_generators(self, dl_manager):
            good = [(["a", "EU", "EU"], ["O", "I-X", "B-X"])] * 3 + [([], [])]
            return {
                "train": self.examples(good),
                "validation": self.examples([
                    (["a", "EU"], ["O", "B-X"]), (["b", ""], ["O", "O"]), (["b\\nc"], ["O"]),
                    (["b", "c"], ["O"]), (["a", "EU"], ["O", "I-X"]), (["d"], [-1]),
                ] + [(["EU"], ["B-X"])] * 99),
                "test": self.examples([(["EU"], ["B-X"]), (["a", "EU"], ["O", "I-X"])]),
            }

        def _generate_examples(self):
            raise NotImplementedError

        def examples(self, sentences):
            for number, (words, tags) in enumerate(sentences):
                yield number, {
                    "words": words, "ner": tags, "pos": ["NN"] * len(words), "number": 0
                }
'''


PARALLEL_BUILDER = '''
    """A builder of translations, as those of WMT and OPUS are; some of them lack a side."""
    import tensorflow_datasets as tfds

    class Builder(tfds.core.GeneratorBasedBuilder):
        """Toy."""
        VERSION = tfds.core.Version("1.0.0")

        def _info(self):
            features = tfds.features.Translation(languages=["de", "en"])
            return self.dataset_info_from_configs(features=features, disable_shuffling=True)

        def _split_generators(self, dl_manager):
            return {"train": self._generate_examples([("one", "eins"), ("", ""), ("two", "")]),
                    "validation": self._generate_examples([("three", "drei")]),
                    "test": self._generate_examples([("four", "vier \\u2028")])}

        def _generate_examples(self, pairs):
            for number, (en, de) in enumerate(pairs):
                yield number, {"en": en, "de": de}
'''


CAPTIONS_BUILDER = '''
    """A builder of images with captions."""
    import numpy as np
    import tensorflow_datasets as tfds

    class Builder(tfds.core.GeneratorBasedBuilder):
        """Toy."""
        VERSION = tfds.core.Version("1.0.0")

        def _info(self):
            return self.dataset_info_from_configs(features=tfds.features.FeaturesDict({
                "image": tfds.features.Image(shape=(None, None, 3)),
                "name": tfds.features.Text(),
                "captions": tfds.features.Sequence(tfds.features.Text()),
            }), disable_shuffling=True)

        def _split_generators(self, dl_manager):
            return {"train": self._generate_examples(40)}

        def _generate_examples(self, count):
            for number in range(count):
                yield number, {
                    "image": np.full([3, 2 + number % 2, 3], number, np.uint8),
                    "name": f"{number}.png", "captions": [f"Picture {number} .", "\\u2028 ."],
                }
'''


@pytest.fixture(scope="module")
def toy_builders(tmp_path_factory):
    """A folder of TFDS builders that TFDS knows by their names."""
    folder = tmp_path_factory.mktemp("builders")
    with contextlib.ExitStack() as undo:
        patch = pytest.MonkeyPatch()
        undo.callback(patch.undo)
        patch.setattr(sys, "path", [str(folder), *sys.path])
        patch.setattr(tfds.core.constants, "DATA_DIR", str(folder / "data"))
        for name, code in (
            ("toy_reviews", BUILDER),
            ("toy_entities", TAGGED_BUILDER),
            ("toy_translations", PARALLEL_BUILDER),
            ("toy_captions", CAPTIONS_BUILDER),
        ):
            package = folder / f"rnnapps_{name}"
            package.mkdir()
            (package / "__init__.py").touch()
            module = f"rnnapps_{name}_dataset_builder"
            (package / f"{module}.py").write_text(textwrap.dedent(code))
            importlib.import_module(f"rnnapps_{name}.{module}")
        yield folder


@pytest.fixture
def toy_reviews(toy_builders):
    return "tfds:rnnapps_toy_reviews"


@pytest.fixture
def toy_entities(toy_builders):
    return "tfds:rnnapps_toy_entities"


def test_tfds_keeps_its_splits_and_names_its_classes(toy_reviews, caplog, capsys):
    fields = {"text": "review", "label": "sentiment"}
    with pytest.raises(UserError, match=r"1 bad row .*\n.* test:\d+: no label"):
        load_splits(toy_reviews, fields=fields)
    splits = load_splits(toy_reviews, fields=fields, on_bad_row="skip")
    assert {part: int(dataset.cardinality()) for part, dataset in splits.items()}["test"] == 29
    held = {part: texts_of(dataset) for part, dataset in splits.items()}
    assert sorted(held["train"] + held["dev"]) == sorted(f"{film} \u2028" for film in films(200))
    assert held["dev"] and held["train"]
    for dataset in splits.values():
        for example in dataset:
            number = int(example["text"].numpy().split()[2])
            assert example["label"] == ("bad", "good")[number % 2]
    assert capsys.readouterr().out == ""


def test_tfds_numbers_are_labels_too(toy_reviews):
    splits = load_splits(toy_reviews, fields={"text": "review", "label": "stars"})
    labels = {example["label"].numpy() for example in splits["train"]}
    assert labels == {b"0", b"1", b"2", b"3", b"4"}


def test_tfds_features_that_are_not_there(toy_reviews):
    with pytest.raises(UserError, match="no feature 'text' in .* are: review, sentiment, stars, v"):
        load_splits(toy_reviews)
    with pytest.raises(UserError, match="feature 'vector' of .* is not a text or a label"):
        load_splits(toy_reviews, fields={"text": "review", "label": "vector"})


def test_tfds_names_that_are_not_known():
    with pytest.raises(UserError, match="knows no 'rnnapps_no_such_set'"):
        load_splits("tfds:rnnapps_no_such_set")


TAGGED = {"tokens": "words", "tags": "ner", "scheme": None}
tagged_options = {
    "read": read_conll,
    "sample": "sample_entities",
    "fields": TAGGED,
    "sequences": ("tokens", "tags"),
    "convert": tagged.from_rows,
}


def rows_of(dataset):
    names = ("tokens", "tags", "scheme")
    return [
        tuple(example[name].numpy().decode().replace("\n", " ") for name in names)
        for example in dataset
    ]


def test_tfds_sequences_are_read_as_a_file_of_them_is(tmp_path, toy_entities):
    path = tmp_path / "train.conll"
    path.write_text("a O\nEU I-X\nEU B-X\n\n" * 3)
    given = {"dev_data": str(path), "test_data": str(path)}
    expected = [("a EU EU", "O B-X B-X", "iob1")] * 3
    for data in (toy_entities, str(path)):
        splits = sources.load_splits(data, key="tokens", **tagged_options, **given)
        for dataset in splits.values():
            assert rows_of(dataset) == expected
            assert dataset.element_spec == {name: tf.TensorSpec([], tf.string) for name in TAGGED}
    (tmp_path / "test.conll").write_text("EU B-X\n")
    everything = sources.load_all(str(tmp_path), **tagged_options)
    assert rows_of(everything) == [*expected, ("EU", "B-X", "iob2")]


def test_bad_tfds_sequences_are_named_and_mixed_schemes_are_refused(tmp_path, toy_entities, caplog):
    path = tmp_path / "x.conll"
    path.write_text("EU B-X\n")
    load = functools.partial(
        sources.load_splits, toy_entities, key="tokens", test_data=str(path), **tagged_options
    )
    with pytest.raises(UserError) as raised:
        load()
    count, named = str(raised.value).splitlines()
    assert count.startswith("5 bad rows")
    reasons = [
        "2: an empty item (number 2 of 2)",
        "3: a line feed in the item 'b\\nc'",
        "4: 2 tokens with 1 tags",
        "5: not iob2: 'I-X', which cannot follow 'O'; scheme=iob1 takes it for a beginning",
        "6: no label",
    ]
    assert named == "; ".join(f"{toy_entities} validation:{reason}" for reason in reasons)
    dev = rows_of(load(on_bad_row="skip")["dev"])
    assert sorted(dev) == [("EU", "B-X", "iob2")] * 99 + [("a EU", "O B-X", "iob2")]
    with pytest.raises(UserError, match=f"{toy_entities} test:2: 'I-X' .* {toy_entities} test:1: "):
        sources.load_all(toy_entities, **tagged_options)
    explicit = {**tagged_options, "convert": functools.partial(tagged.from_rows, scheme="iob1")}
    everything = sources.load_all(toy_entities, on_bad_row="skip", **explicit)
    assert rows_of(everything)[-1][2] == "iob1"


def test_tfds_sequences_need_no_scheme(toy_entities):
    fields = {"tokens": "words", "tags": "pos"}
    options = {**tagged_options, "fields": fields, "convert": None}
    rows = sources.load_all(toy_entities, on_bad_row="skip", **options)
    held = {(row["tokens"].numpy(), row["tags"].numpy()) for row in rows}
    assert (b"a\nEU\nEU", b"NN\nNN\nNN") in held and (b"", b"") in held


def test_a_tfds_feature_is_a_sequence_where_one_is_needed_and_only_there(toy_entities):
    with pytest.raises(UserError, match="feature 'ner' of .* is not a text or a label"):
        load_splits(toy_entities, fields={"text": "ner"})
    options = {**tagged_options, "fields": {"tokens": "words", "tags": "number"}}
    with pytest.raises(UserError, match="'number' of .* is not a sequence of texts or labels"):
        sources.load_all(toy_entities, **options)


def test_tfds_images_stay_encoded(toy_builders):
    names = ("image", "name", "captions")
    splits = sources.load_splits(
        "tfds:rnnapps_toy_captions",
        read=None,
        fields={name: name for name in names},
        sequences=("captions",),
        key="name",
    )
    examples = [example for split in splits.values() for example in split.as_numpy_iterator()]
    assert len(examples) == 40
    for example in examples:
        number = int(example["name"].removesuffix(b".png"))
        assert example["captions"].decode() == f"Picture {number} .\n\u2028 ."
        pixels = tf.io.decode_png(example["image"]).numpy()
        assert pixels.shape == (3, 2 + number % 2, 3) and (pixels == number).all()


def test_tfds_translations_are_read_as_a_file_of_them_is(tmp_path, toy_builders):
    path = tmp_path / "test.tsv"
    path.write_text("four\tvier \u2028\n", encoding="utf-8")
    load = functools.partial(
        sources.load_splits,
        "tfds:rnnapps_toy_translations",
        read=parallel.read_parallel,
        sample="sample_translation",
        fields={"source": "en", "target": "de"},
        key="source",
        convert=parallel.from_rows,
    )
    with pytest.raises(UserError, match="1 bad row .*\n.*_translations train:3: an empty target"):
        load()
    for splits in (load(on_bad_row="skip"), load(on_bad_row="skip", test_data=str(path))):
        found = {
            part: [(row["source"].numpy().decode(), row["target"].numpy().decode()) for row in rows]
            for part, rows in splits.items()
        }
        assert found == {
            "train": [("one", "eins")],
            "dev": [("three", "drei")],
            "test": [("four", "vier \u2028")],
        }


def test_tagged_sentences_in_memory_are_split_as_a_file_is(tmp_path):
    tokens = [["film", f"number{n}"] for n in range(100)]
    path = tmp_path / "x.conll"
    path.write_text("".join(f"{a} O\n{b} I-X\n\n" for a, b in tokens))
    from_file = sources.load_splits(str(path), key="tokens", **tagged_options)
    fields = tagged.as_fields(tokens, [["O", "I-X"]] * 100)
    splits = sources.from_lists(fields, key="tokens")
    for part in sources.PARTS:
        assert rows_of(splits[part]) == rows_of(from_file[part])


@pytest.mark.parametrize(
    ("tokens", "tags", "message"),
    [
        ([["a"]], [], "tokens and tags must be of as many .* Received: 1 and 0 sentences"),
        ([["a"], ["b", "c"]], [["O"], ["O"]], "the given lists:2: 2 tokens with 1 tags"),
        ([["a", " "]], [["O", "O"]], r"the given lists:1: an empty item \(number 2 of 2\)"),
        ([["a\nb"]], [["O"]], "the given lists:1: a line feed in the item"),
        ([["a"]], [["B-X"]], "the given lists:1: not iobes: 'B-X', which the sentence cannot end"),
    ],
)
def test_lists_that_cannot_be_tagged_sentences(tokens, tags, message):
    with pytest.raises(UserError, match=message):
        tagged.as_fields(tokens, tags, "iobes")


def test_a_task_without_a_sample_asks_for_data():
    options = {"read": None, "fields": {"text": None}}
    with pytest.raises(UserError, match="no bundled sample: name your own data with --data"):
        sources.load_all("sample", **options)
    with pytest.raises(UserError, match="no bundled sample"):
        sources.load_splits("sample", key="text", **options)


def test_sample_is_the_bundled_builder(monkeypatch, tmp_path):
    monkeypatch.setattr(tfds.core.constants, "DATA_DIR", str(tmp_path))
    splits = load_splits("sample", fields={"text": "other", "label": "names"})
    for dataset in splits.values():
        example = next(iter(dataset))
        assert set(example) == {"text", "label"}
        assert example["label"].numpy() in (b"negative", b"positive")


@pytest.mark.skipif("RNNAPPS_DATA" not in os.environ, reason="RNNAPPS_DATA names no real data")
def test_no_phrase_of_sst2_straddles_its_splits():
    path = os.path.join(os.environ["RNNAPPS_DATA"], "sentiment", "sst2_train.tsv.gz")
    read = functools.partial(read_labelled, text_column="sentence")
    splits = load_splits(path, read=read)
    keys = {
        part: {text.lower() for batch in dataset.batch(4_096) for text in batch["text"].numpy()}
        for part, dataset in splits.items()
    }
    assert sum(int(dataset.cardinality()) for dataset in splits.values()) == 67_349
    assert (
        not keys["train"] & keys["dev"] | keys["train"] & keys["test"] | keys["dev"] & keys["test"]
    )


def test_a_text_that_goes_on_is_split_by_place():
    lines = [f"{number:03d} {'x' * (number % 7)}\n" for number in range(200)]
    parts = sources.from_lists({"text": lines}, key="text", splits="70/10/20", contiguous=True)
    found = {
        name: [example["text"].numpy().decode() for example in part] for name, part in parts.items()
    }
    assert found["train"] + found["dev"] + found["test"] == lines
    sizes = {name: sum(map(len, rows)) for name, rows in found.items()}
    for name, share in (("train", 0.7), ("dev", 0.1), ("test", 0.2)):
        assert sizes[name] / sum(sizes.values()) == pytest.approx(share, abs=0.01)
