"""Data sets of TFDS by name: its real builders, given small files in the place of downloads.

A builder's own code reads the files, and what it writes is loaded as any user's is.
"""

import io
import json
import tarfile

import pytest
import tensorflow as tf
import tensorflow_datasets as tfds
from PIL import Image

from rnnapps.errors import UserError
from rnnapps.tasks.captioning import Captioning
from rnnapps.tasks.language_model import LanguageModel
from rnnapps.tasks.ner import Ner
from rnnapps.tasks.sentiment import Sentiment
from rnnapps.tasks.translation import Translation


@pytest.fixture
def downloaded(monkeypatch, tmp_path):
    """Puts a file or folder in the place of all downloads, and lists what was asked for."""
    monkeypatch.setattr(tfds.core.constants, "DATA_DIR", str(tmp_path / "data"))
    asked = []

    def downloaded(path):
        def download(self, urls):
            asked.extend(tf.nest.flatten(urls))
            return tf.nest.map_structure(lambda url: path, urls)

        monkeypatch.setattr(tfds.download.DownloadManager, "download", download)
        monkeypatch.setattr(tfds.download.DownloadManager, "download_and_extract", download)
        return asked

    return downloaded


def rows(task, split):
    return [
        {name: value.numpy() for name, value in example.items()} for example in task.load()[split]
    ]


def test_imdb_reviews(downloaded, tmp_path):
    with tarfile.open(tmp_path / "aclImdb_v1.tar.gz", "w:gz") as archive:
        for part in ("train", "test"):
            for number in range(40):
                label = ("pos", "neg", "unsup")[number % 3]
                content = f"Film {number} of {part}.<br />".encode()
                info = tarfile.TarInfo(f"aclImdb/{part}/{label}/{number}_7.txt")
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    asked = downloaded(tmp_path / "aclImdb_v1.tar.gz")
    task = Sentiment(Sentiment.Config(data="tfds:imdb_reviews"))
    expected = [
        (f"Film {n} of test.<br />".encode(), (b"pos", b"neg")[n % 3])
        for n in range(40)
        if n % 3 < 2
    ]
    assert sorted((row["text"], row["label"]) for row in rows(task, "test")) == sorted(expected)
    assert len(rows(task, "train")) + len(rows(task, "dev")) == 27
    assert asked == ["http://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"]
    task.adapt(task.load()["train"])
    assert task.labels.names == ("neg", "pos")


def test_conll2003(downloaded, tmp_path):
    block = "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nsleeps VBZ B-VP O\n. . O O\n\n"
    for part, count in (("train", 3), ("valid", 2), ("test", 1)):
        (tmp_path / f"{part}.txt").write_text(block * count)
    downloaded(tmp_path)
    config = Ner.Config(data="tfds:conll2003", token_column="tokens", tag_column="ner")
    task = Ner(config)
    splits = {part: rows(task, part) for part in ("train", "dev", "test")}
    assert {part: len(found) for part, found in splits.items()} == {"train": 3, "dev": 2, "test": 1}
    for found in splits.values():
        assert {(row["tokens"], row["tags"]) for row in found} == {
            (b"EU\nsleeps\n.", b"B-ORG\nO\nO")
        }


def test_ted_hrlr_translate(downloaded, tmp_path):
    folder = tmp_path / "datasets" / "pt_to_en"
    folder.mkdir(parents=True)
    for part in ("train", "dev", "test"):
        (folder / f"pt.{part}").write_text(f"bom dia , {part} .\n\nfim .\n")
        (folder / f"en.{part}").write_text(f"good morning , {part} .\n\nthe end .\n")
    downloaded(tmp_path)
    task = Translation(
        Translation.Config(
            data="tfds:ted_hrlr_translate/pt_to_en", source_column="pt", target_column="en"
        )
    )
    for part in ("train", "dev", "test"):
        assert sorted((row["source"], row["target"]) for row in rows(task, part)) == [
            (f"bom dia , {part} .".encode(), f"good morning , {part} .".encode()),
            (b"fim .", b"the end ."),
        ]


def test_tiny_shakespeare(downloaded, tmp_path):
    text = "First Citizen:\nSpeak, speak.\n" * 20
    (tmp_path / "input.txt").write_text(text)
    downloaded(str(tmp_path / "input.txt"))
    task = LanguageModel(LanguageModel.Config(data="tfds:tiny_shakespeare"))
    parts = [b"".join(row["text"] for row in rows(task, part)) for part in ("train", "dev", "test")]
    assert b"".join(parts).decode() == text
    assert [len(part) for part in parts] == [522, 29, 29]


def test_coco_captions(downloaded, tmp_path):
    (tmp_path / "annotations").mkdir()
    captioned = []
    for part, numbers in (("train2014", range(6)), ("val2014", range(6, 12))):
        (tmp_path / part).mkdir()
        names = [f"COCO_{part}_{number}.jpg" for number in numbers]
        for number, name in zip(numbers, names, strict=True):
            Image.new("RGB", (6, 4), (20 * number, 0, 0)).save(tmp_path / part / name)
            sentences = [
                {"sentid": 10 * number + n, "raw": f"Picture {number}, told {n}."} for n in range(2)
            ]
            split = "train" if number < 6 else ("val", "test", "restval")[number % 3]
            captioned.append({"split": split, "filename": name, "sentences": sentences})
        infos = [
            {"id": number, "file_name": name, "height": 4, "width": 6}
            for number, name in zip(numbers, names, strict=True)
        ]
        categories = [{"id": number, "name": f"thing {number}"} for number in range(80)]
        instances = {"images": infos, "annotations": [], "categories": categories}
        file = tmp_path / "annotations" / f"instances_{part}.json"
        file.write_text(json.dumps(instances))
    (tmp_path / "dataset_coco.json").write_text(json.dumps({"images": captioned}))
    downloaded(str(tmp_path))
    data = "tfds:coco_captions"
    with pytest.raises(UserError, match="no feature 'captions' .* are: captions/id, captions/text"):
        Captioning(Captioning.Config(data=data)).load()
    task = Captioning(Captioning.Config(data=data, caption_column="captions/text"))
    found = rows(task, "train")
    assert len(found) == 6 and (len(rows(task, "dev")), len(rows(task, "test"))) == (2, 2)
    for row in found:
        first, second = row["captions"].decode().split("\n")
        number = int(first.split()[1].rstrip(","))
        assert (first, second) == tuple(f"Picture {number}, told {n}." for n in range(2))
        shade = int(tf.io.decode_jpeg(row["image"])[0, 0, 0])
        assert abs(shade - 20 * number) < 6
