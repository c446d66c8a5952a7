"""Captions and their images: formats, folders and zips, and what has no counterpart."""

import functools
import gzip
import io
import json
import logging
import os
import struct
import zipfile

import pytest
from PIL import Image

from rnnapps.data import images, sources
from rnnapps.data.formats import image_files
from rnnapps.data.formats.captions import from_rows, read_captions
from rnnapps.data.formats.image_files import ImageFiles
from rnnapps.data.formats.rows import BadRow, whole
from rnnapps.errors import UserError


@functools.cache
def picture(shade, size=(4, 3), kind="JPEG"):
    stream = io.BytesIO()
    Image.new("RGB", size, (shade, 0, 0)).save(stream, kind)
    return stream.getvalue()


def folder(path, names, content=None):
    for number, name in enumerate(names):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(picture(number) if content is None else content)
    return str(path)


def archive(path, contents):
    with zipfile.ZipFile(path, "w") as members:
        for name, content in contents.items():
            members.writestr(name, content)
    return str(path)


def write(path, text):
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return str(path)


def rows(path, images, **columns):
    return [whole(row) for row in read_captions(path, ImageFiles(images), **columns)]


def bad(found):
    return [str(row) for row in found if isinstance(row, BadRow)]


CAPTIONS = {"a.jpg": ["A dog runs .", "Dog"], "b 2#.jpg": ["Two cats , in the sun ."]}
EXPECTED = [
    {"image": picture(0), "name": "a.jpg", "captions": "A dog runs .\nDog"},
    {"image": picture(1), "name": "b 2#.jpg", "captions": "Two cats , in the sun ."},
]


def flickr(path):
    lines = ["a.jpg#0\tA dog runs .", "b 2#.jpg#0  Two cats ,  in the sun .", "a.jpg#1\tDog", ""]
    return write(path, "\n".join(lines))


def coco(path):
    images = [{"id": number, "file_name": name} for number, name in enumerate(CAPTIONS)]
    annotations = [
        {"id": 9, "image_id": number, "caption": text}
        for number, texts in enumerate(CAPTIONS.values())
        for text in texts
    ]
    return write(path, json.dumps({"images": images, "annotations": annotations}))


def table(path):
    lines = [f'{name},1,"{text}"' for name, texts in CAPTIONS.items() for text in texts]
    return write(path, "\n".join(["image,stars,caption", *lines, ""]))


@pytest.mark.parametrize(
    "make, name",
    [(flickr, "x.token.txt"), (flickr, "x.txt.gz"), (coco, "x.json.gz"), (table, "x.csv")],
)
def test_formats(tmp_path, make, name):
    path = make(tmp_path / name)
    assert rows(path, folder(tmp_path / "images", CAPTIONS)) == EXPECTED
    # Deeper inside, and in two zips.
    assert rows(path, folder(tmp_path / "deep" / "er", CAPTIONS)) == EXPECTED
    zips = [
        archive(tmp_path / f"{number}.zip", {f"in/{name}": picture(number), ".x": b"", "y": b""})
        for number, name in enumerate(CAPTIONS)
    ]
    assert rows(path, ",".join(zips)) == EXPECTED


def test_columns_have_names(tmp_path):
    path = write(tmp_path / "x.tsv", "path\ttext\ntrain/a.jpg\tA dog .\nval/a.jpg\tA cat .\n")
    images = folder(tmp_path / "images", ["train/a.jpg", "val/a.jpg", "sub/train/b.jpg"])
    found = rows(path, images, image_column="path", caption_column="text")
    assert [row["image"] for row in found] == [picture(0), picture(1)]
    with pytest.raises(UserError, match="no column 'image' in .*x.tsv"):
        rows(path, images)


def test_bad_captions_are_named(tmp_path):
    images = folder(tmp_path / "images", CAPTIONS)
    path = write(
        tmp_path / "x.txt", "a.jpg#0\t \na.jpg\tA dog .\na.jpg#1\na.jpg#2\tDog\na.jpg#3\tx\0\n"
    )
    assert bad(rows(path, images)) == [
        f"{path}:1: an empty caption of a.jpg",
        f"{path}:2: not an image, #, a number, a tab and a caption (a table is named .csv)",
        f"{path}:3: an empty caption of a.jpg",
        f"{path}:5: a NUL byte in the text",
    ]
    assert rows(path, images)[-1]["captions"] == "Dog"
    path = write(tmp_path / "x.csv", "image,caption\na.jpg,\n,Dog\na.jpg,Dog\n")
    assert bad(rows(path, images)) == [f"{path}:2: no 'caption'", f"{path}:3: no 'image'"]
    annotations = [
        {"id": 5, "image_id": 0, "caption": " "},
        {"id": 6, "image_id": 0},
        {"id": 7, "image_id": 0, "caption": 3},
        "Dog",
        {"image_id": 0, "caption": "\ud800"},
        {"image_id": 0, "caption": "Dog"},
    ]
    corpus = {"images": [{"id": 0, "file_name": "a.jpg"}], "annotations": annotations}
    path = write(tmp_path / "x.json", json.dumps(corpus))
    assert bad(rows(path, images)) == [
        f"{path}: an empty caption of a.jpg",
        f"{path}: annotation 6 has no 'caption'",
        f"{path}: annotation 7 is no text of an image",
        f"{path}: annotation 4 is no text of an image",
        f"{path}: annotation 5 is no text of an image",
    ]
    assert rows(path, images)[-1]["captions"] == "Dog"


def test_files_that_cannot_be_read(tmp_path):
    images = folder(tmp_path / "images", CAPTIONS)
    for name, text, reason in [
        ("x.txt", "", "holds no captions"),
        ("x.json", '{"images": [],\n x', "x.json:2: not JSON"),
        ("x.json", '{"images": []}', "not of COCO's form"),
        ("x.json", "[1]", "not of COCO's form"),
        ("x.json", '{"images": [], "annotations": []}', "holds no captions"),
        ("x.txt", "c.jpg#0\tA dog", "none of the 1 images .* Received: c.jpg"),
    ]:
        with pytest.raises(UserError, match=reason):
            rows(write(tmp_path / name, text), images)
    with pytest.raises(UserError, match="is a folder without train"):
        rows(str(tmp_path), images)
    path = flickr(tmp_path / "x.txt")
    (tmp_path / "empty").mkdir()
    for places, reason in [
        (archive(tmp_path / "empty.zip", {}), "empty.zip holds no images"),
        (archive(tmp_path / "text.zip", {"a.txt": b""}), "text.zip holds no images"),
        (str(tmp_path / "empty"), "empty holds no images"),
        (f"{images},{tmp_path / 'nowhere'}", "no such file or folder: .*nowhere"),
        (path, "x.txt is neither a folder nor a whole zip file"),
    ]:
        with pytest.raises(UserError, match=reason):
            rows(path, places)


def test_paths_that_leave_or_are_not_one(tmp_path):
    folder(tmp_path, ["secret.jpg"])
    names = ["../secret.jpg", str(tmp_path / "secret.jpg"), "x/../../secret.jpg", "c:\\a.jpg"]
    names += ["twice.jpg", "./in/../a.jpg"]
    path = write(tmp_path / "x.csv", "\n".join(["image,caption", *(f"{n},Dog" for n in names), ""]))
    inside = ["1/twice.jpg", "2/twice.jpg", "a.jpg", "b/a.jpg"]
    images = folder(tmp_path / "images", inside)
    found = rows(path, images)
    assert bad(found) == [
        *(f"{path}: the image {name!r} is no path within {images}" for name in names[:4]),
        f"{path}: the image 'twice.jpg' is both {images}/1/twice.jpg and {images}/2/twice.jpg",
    ]
    assert found[-1]["image"] == picture(2)
    members = {"../out.jpg": picture(0), "/abs.jpg": picture(0), "a.jpg": picture(0)}
    images = archive(tmp_path / "x.zip", members)
    path = write(tmp_path / "x.txt", "out.jpg#0 Dog\nabs.jpg#0 Dog\na.jpg#0 Dog\n")
    found = rows(path, images)
    assert bad(found) == [
        f"{path}: the image 'out.jpg' has a path that leaves its zip: {images}/../out.jpg",
        f"{path}: the image 'abs.jpg' has a path that leaves its zip: /abs.jpg",
    ]
    assert found[-1]["name"] == "a.jpg"


def large():
    at = picture(0).index(b"\xff\xc0") + 5
    return picture(0)[:at] + struct.pack(">HH", 12_000, 12_000) + picture(0)[at + 4 :]


@pytest.mark.parametrize("is_zip", [False, True])
def test_bad_images_are_named_once_and_skipped(tmp_path, is_zip, monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    contents = {f"{number}.jpg": picture(number) for number in range(60)} | {
        "1.jpg": picture(1)[:-40],
        "2.jpg": b"not a picture",
        "3.jpg": large(),
        "4.jpg": b"",
        "5.jpg": picture(5, (1, 1), "PNG"),
        "6.jpg": picture(6)[:-2] + b"x" * 4_000,
    }
    if is_zip:
        images = archive(tmp_path / "x.zip", contents)
    else:
        images = str(tmp_path / "images")
        for name, content in contents.items():
            folder(tmp_path / "images", [name], content)
    lines = [f"{number}.jpg#{n}\tDog {n}" for number in range(7, 70) for n in range(5)]
    lines += [f"{number}.jpg#0\tDog" for number in range(6)]
    path = write(tmp_path / "x.txt", "\n".join(lines))
    monkeypatch.setattr(image_files, "MAX_BYTES", 3_000)
    looked = []
    fault = image_files.images.fault
    monkeypatch.setattr(image_files.images, "fault", lambda c: looked.append(c) or fault(c))

    def load(**options):
        files = ImageFiles(images)
        return files, sources.load_splits(
            path,
            read=functools.partial(read_captions, files=files),
            sample="",
            fields=dict.fromkeys(("image", "name", "captions")),
            key="name",
            **options,
        )

    with pytest.raises(UserError) as raised:
        load()
    assert str(raised.value).splitlines()[1].split("; ") == [
        f"{images}/1.jpg: a corrupt or truncated image",
        f"{images}/2.jpg: not a JPEG, PNG, BMP or GIF image",
        f"{images}/3.jpg: more than 50,000,000 pixels",
        f"{images}/4.jpg: not a JPEG, PNG, BMP or GIF image",
    ]
    looked.clear()
    files, splits = load(on_bad_row="skip")
    assert "Skipped 4 bad rows" in caplog.text
    assert len(looked) == 59
    examples = [example for split in splits.values() for example in split.as_numpy_iterator()]
    assert sorted(examples, key=lambda example: int(example["name"][:-4])) == [
        {
            "image": contents[f"{number}.jpg"],
            "name": f"{number}.jpg".encode(),
            "captions": b"Dog" if number < 7 else b"Dog 0\nDog 1\nDog 2\nDog 3\nDog 4",
        }
        for number in (0, 5, *range(7, 60))
    ]
    assert len(looked) == 59
    assert files.report() == (
        "60 images, 1 of them without captions; 50 captions of 10 images that are not there"
    )


def test_images_that_cannot_be_read_are_bad(tmp_path, monkeypatch):
    images = archive(tmp_path / "x.zip", {"a.jpg": picture(0), "b 2#.jpg": picture(1)})
    content = bytearray((tmp_path / "x.zip").read_bytes())
    content[content.index(picture(0)) + 30] ^= 1
    (tmp_path / "x.zip").write_bytes(content)
    path = flickr(tmp_path / "x.txt")
    found = rows(path, images)
    assert bad(found) == [f"{images}/a.jpg: cannot be read: Bad CRC-32 for file 'a.jpg'"]
    assert found[1:] == EXPECTED[1:]
    monkeypatch.setattr(image_files, "MAX_BYTES", 10)
    assert f"{images}/a.jpg: more than 10 bytes" in bad(rows(path, images))


def test_train_and_dev_in_two_files_share_the_images(tmp_path):
    images = [
        folder(tmp_path / part, [f"{part}{number}.jpg" for number in range(count)])
        for part, count in (("train", 40), ("val", 9))
    ]
    paths = [
        write(tmp_path / f"{part}.txt", "".join(f"{part}{n}.jpg#0 Dog {n}\n" for n in range(count)))
        for part, count in (("train", 40), ("val", 9))
    ]
    files = ImageFiles(",".join(images))
    splits = sources.load_splits(
        paths[0],
        dev_data=paths[1],
        read=functools.partial(read_captions, files=files),
        sample="",
        fields=dict.fromkeys(("image", "name", "captions")),
        key="name",
    )
    sizes = {part: int(dataset.cardinality()) for part, dataset in splits.items()}
    assert sizes["dev"] == 9 and sizes["train"] + sizes["test"] == 40
    assert files.report().startswith("49 images, 0 of them without captions; 0 captions of 0 ")


def test_rows_of_tfds_data_are_those_of_files_and_named_by_their_number(monkeypatch):
    given = [
        {"image": picture(1), "captions": "A  dog .\n a cat"},
        BadRow("tfds:toy train", 2, "an empty item (number 1 of 1)"),
        {"image": picture(3)[:-40], "captions": "rain"},
        {"image": picture(4), "captions": "rain"},
    ]
    expected = [
        {"image": picture(1), "name": "tfds:toy train:1", "captions": "A dog .\na cat"},
        given[1],
        BadRow("tfds:toy train", 3, "a corrupt or truncated image"),
        {"image": picture(4), "name": "tfds:toy train:4", "captions": "rain"},
    ]
    faults = {}
    assert list(from_rows(lambda: iter(given), "tfds:toy train", faults)) == expected
    monkeypatch.setattr(images, "fault", None)  # each is looked at once, the sample's never
    assert list(from_rows(lambda: iter(given), "tfds:toy train", faults)) == expected
    assert len(list(from_rows(lambda: iter(given), "sample train", {}))) == 4


def test_a_line_of_nothing_but_blanks_takes_no_time(tmp_path):
    images = folder(tmp_path / "images", CAPTIONS)
    path = write(tmp_path / "x.txt", " " * 100_000 + "\na.jpg#0\tDog\n")
    found = rows(path, images)
    assert bad(found)[0].startswith(f"{path}:1: not an image") and found[1]["captions"] == "Dog"


def test_a_number_without_end_in_json(tmp_path):
    images = folder(tmp_path / "images", CAPTIONS)
    path = write(tmp_path / "x.json", '{"images": [{"id": ' + "9" * 5_000 + ', "file_name": ""}]}')
    with pytest.raises(UserError, match="not of COCO's form"):
        rows(path, images)


def test_more_json_than_is_taken_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("rnnapps.data.formats.captions.LARGEST_CORPUS", 1_000)
    path = write(tmp_path / "x.json.gz", " " * 1_001)
    with pytest.raises(UserError, match="more than 1,000 bytes of JSON"):
        rows(path, folder(tmp_path / "images", CAPTIONS))


def test_the_image_that_is_told_of_does_no_harm(tmp_path):
    images = folder(tmp_path / "images", CAPTIONS)
    path = write(tmp_path / "x.txt", f"\x1b[31m{'x' * 999}#0\tDog\n")
    with pytest.raises(UserError, match="Received: \ufffd\\[31mx{94}…, …$"):
        rows(path, images)


def test_what_is_no_file_in_a_folder_of_images(tmp_path):
    images = folder(tmp_path / "images", ["b 2#.jpg"])
    os.mkfifo(tmp_path / "images" / "a.jpg")
    assert bad(rows(flickr(tmp_path / "x.txt"), images)) == [
        f"{images}/a.jpg: cannot be read: a pipe, a device or a link to nothing"
    ]


@pytest.mark.parametrize("damage", ["version", "name", "lzma", "place", "link"])
def test_zips_that_are_damaged_or_made_to_harm(tmp_path, damage):
    """Of each kind of damage zipfile raises another error."""
    path, told = tmp_path / "x.zip", None
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as members:
        for name in ("a.jpg", "\u00e9.jpg"):
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_LZMA
            info.external_attr = 0o120777 << 16 if damage == "link" else 0
            members.writestr(info, "../../etc/passwd" if damage == "link" else picture(0))
    content = bytearray(path.read_bytes())
    first, last = content.index(b"PK\1\2"), content.rindex(b"PK\1\2")
    if damage == "version":
        content[first + 6], told = 99, "neither a folder nor a whole zip file: zip file version 9"
    elif damage == "name":
        content[last + 46], told = 0xFF, "neither a folder nor a whole zip file: 'utf-8' codec"
    elif damage == "place":
        content[first + 42 : first + 46], told = b"\xff\xff\xff\x7f", "a.jpg: cannot be read: "
    elif damage == "lzma":
        content[50:60], told = bytes(10), "a.jpg: cannot be read: "
    else:
        told = "a.jpg: not a JPEG, PNG, BMP or GIF image"  # a link is never followed
    path.write_bytes(content)
    try:
        (found,) = bad(rows(write(tmp_path / "x.txt", "a.jpg#0\tDog\n"), str(path)))
    except UserError as error:
        found = str(error)
    assert told in found


def test_zip_members_with_paths_of_any_system_that_leave(tmp_path):
    leaving = ["c:\\a.jpg", "\\\\host\\a.jpg", "..\\a.jpg", "x\\..\\..\\a.jpg", "x/../../a.jpg"]
    for name in leaving:
        images = archive(tmp_path / "x.zip", {name: picture(0), "b.jpg": picture(1)})
        asked = "a.jpg" if "/" in name else name
        path = write(tmp_path / "x.csv", f"image,caption\n{asked},Dog\nb.jpg,Dog\n")
        found = rows(path, images)
        assert len(bad(found)) == 1 and found[-1]["name"] == "b.jpg", name
