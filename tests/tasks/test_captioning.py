"""Captioning: what is seen and read, honest scores, exports that stand alone."""

import dataclasses
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import keras
import keras_tuner
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from rnnapps import cli
from rnnapps.data.sources import from_lists
from rnnapps.errors import UserError
from rnnapps.learner import Learner
from rnnapps.tasks.captioning import Captioning, CaptioningConfig
from rnnapps.tasks.config import commented_yaml
from tests import server_requests
from tests.conftest import checking_here

COLORS = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200)}
SMALL = CaptioningConfig(data="toy.csv",
    units=8, embedding_size=6, batch_size=6, buckets=1, epochs=2, beam_width=2, image_size=32,
    min_count=1,
)  # fmt: skip


def picture(color, number=0, kind="PNG", size=(32, 32)):
    """An image of one color, its brightness by number."""
    value = tuple(min(part + 3 * number, 255) for part in COLORS[color])
    handle = io.BytesIO()
    Image.new("RGB", size, value).save(handle, kind)
    return handle.getvalue()


def captions(color):
    return [f"a {color} picture", f"It is {color}, all of it."]


def network():
    """A feature extractor that tells colors apart."""
    images = keras.Input((None, None, 3))
    features = keras.layers.Rescaling(1 / 127.5, offset=-1)(images)
    features = keras.layers.AveragePooling2D(4)(features)
    return keras.Model(images, keras.layers.Conv2D(16, 1, activation="relu")(features))


def splits(each=8):
    rows = [(color, number) for number in range(each) for color in COLORS]
    return from_lists(
        {
            "image": [picture(*row) for row in rows],
            "name": [f"{color}{number}.png" for color, number in rows],
            "captions": ["\n".join(captions(color)) for color, _ in rows],
        },
        key="name",
        splits="60/20/20",
    )


def adapted(given, **changes):
    task = Captioning(dataclasses.replace(SMALL, **changes))
    task.adapt(given["train"])
    return task


def spread(model):
    """Weights far from each other, so that a difference cannot hide in small numbers."""
    rng = np.random.default_rng(2)
    for weight in model.trainable_weights:
        weight.assign(rng.normal(size=weight.shape))
    return model


def test_each_caption_of_an_image_is_an_example():
    given = splits()
    task = adapted(given)
    examples = list(task.encoded(given["train"], training=True))
    assert len(examples) == 2 * len(given["train"])
    first = next(iter(given["train"]))
    for (inputs, following), text in zip(
        examples, first["captions"].numpy().decode().split("\n"), strict=False
    ):
        assert inputs["source"].dtype == tf.uint8 and inputs["source"].shape == (32, 32, 3)
        assert (inputs["source"] == tf.io.decode_png(first["image"])).numpy().all()
        assert inputs["target"].numpy().tolist() == [2, *following.numpy()[:-1]]
        assert following.numpy()[-1] == 2
        written = task.tokens.texts(following[None, :-1]).numpy()[0].decode()
        assert written == text.lower()


def test_perplexity_is_the_chain_rule_over_all_captions_whatever_the_batches():
    given = splits()
    task = adapted(given)
    model = spread(task.build())
    nats = tokens = 0
    for inputs, following in task.encoded(given["dev"]):
        scores = model.log_probabilities(
            inputs["source"][None], inputs["target"][None], following[None]
        )
        nats -= float(tf.reduce_sum(scores))
        tokens += following.shape[0]
    other = adapted(given, batch_size=4, beam_width=1)
    measured = other.evaluate(model, given["dev"]).metrics
    assert measured["perplexity"] == pytest.approx(math.exp(nats / tokens), rel=1e-4)
    assert measured["novel"] in (0, 1) or 0 < measured["novel"] < 1


@pytest.mark.parametrize(
    "changes",
    [
        {"attention": "none", "image_input": "first", "precision": "mixed_bfloat16"},
        {"input_feeding": True, "doubly_stochastic": 1.0, "level": "char", "resizing": "crop"},
    ],
    ids=str,
)
def test_options_learn_and_are_measured(changes):
    given = splits(each=4)
    task = adapted(given, **changes)
    learner = Learner(task, tf.distribute.get_strategy())
    batches = task.batches(task.encoded(given["train"], training=True), epoch=0)
    before = learner.model.get_weights()
    losses = [float(values[0]) for values in learner.steps(batches.take(2))]
    assert np.isfinite(losses).all()
    assert all((a != b).any() for a, b in zip(before, learner.model.get_weights(), strict=True))
    measured = task.evaluate(task.build(), given["dev"].take(2)).metrics
    assert np.isfinite(measured["perplexity"])


def test_a_frozen_network_is_run_once_and_a_network_that_is_trained_on_is_not_kept(tmp_path):
    given = splits(each=4)
    network().save(tmp_path / "encoder.keras")
    changes = {
        "image_encoder": str(tmp_path / "encoder.keras"),
        "features": str(tmp_path / "features"),
    }
    frozen, tuned = adapted(given, **changes), adapted(given, **changes, fine_tune=True)
    for task in (frozen, tuned):
        learner = Learner(task, tf.distribute.get_strategy())
        before = learner.model.encoder.backbone.get_weights()
        batches = task.batches(task.encoded(given["train"], training=True), epoch=0)
        assert np.isfinite([float(values[0]) for values in learner.steps(batches.take(2))]).all()
        after = learner.model.encoder.backbone.get_weights()
        same = all((a == b).all() for a, b in zip(before, after, strict=True))
        assert same == (task is frozen)
        if task is frozen:
            files = list((tmp_path / "features").rglob("*.npy"))
            assert sum(len(np.load(file)) for file in files) == len(given["train"])
            # By what is kept, and by pixels, as the export does.
            image = tf.stack([example["image"] for example in given["train"].take(3)])
            kept, pixels = task._seen(image, task._training_features), task._pixels(image)[0]
            assert kept.shape == (3, 8, 8, 16)
            computed = task._backbone(tf.cast(pixels, tf.float32))
            assert kept.numpy() == pytest.approx(computed.numpy(), rel=1e-3, abs=1e-3)
            # Not by what an older decoder saw.
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr("rnnapps.data.images.version", lambda: "another")
                assert len(task._features_by(task._backbone)) == 0
    assert list((tmp_path / "features").rglob("*.npy")) == files


def test_images_are_fitted_into_the_one_size_that_a_network_takes(tmp_path):
    images = keras.Input((24, 24, 3))
    keras.Model(images, keras.layers.Conv2D(8, 3)(images)).save(tmp_path / "encoder.keras")
    encoder = {"image_encoder": str(tmp_path / "encoder.keras")}
    assert adapted(splits(), **encoder, image_size="auto").config.image_size == 24
    with pytest.raises(UserError, match="24 high and 24 wide"):
        adapted(splits(), **encoder).build()


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run and its export, of Flickr's form: a token file, two zips, a list of test images."""
    folder = tmp_path_factory.mktemp("trained")
    names = {}
    kinds = {"PNG": "png", "JPEG": "jpg", "BMP": "bmp"}
    with zipfile.ZipFile(folder / "a.zip", "w") as a, zipfile.ZipFile(folder / "b.zip", "w") as b:
        for number in range(9):
            for color, kind in zip(COLORS, kinds, strict=True):
                size = (32 + number, 40 - 3 * number)
                name = f"{color}{number}.{kinds[kind]}"
                names[name] = color
                (a if number % 2 else b).writestr(f"in/{name}", picture(color, number, kind, size))
        a.writestr("in/alone.png", picture("red"))
    lines = [
        f"{name}#{at}\t{caption}\n"
        for name, color in names.items()
        for at, caption in enumerate(captions(color))
    ]
    (folder / "tokens.txt").write_text("".join([*lines, "gone.jpg#0\ta picture\n"]))
    for part, numbers in (("dev", "67"), ("test", "8")):
        chosen = [name for name in names if name.split(".")[0][-1] in numbers]
        (folder / f"{part}.txt").write_text("\n".join(chosen))
    network().save(folder / "encoder.keras")
    argv = [
        "train", f"--data={folder}/tokens.txt", f"--images={folder}/a.zip,{folder}/b.zip",
        f"--dev_images={folder}/dev.txt", f"--test_images={folder}/test.txt",
        f"--image_encoder={folder}/encoder.keras", f"--features={folder}/features",
        f"--out={folder}/run", f"--export={folder}/versions", "--image_size=32", "--units=12",
        "--embedding_size=8", "--epochs=24", "--patience=24", "--learning_rate_decay=1",
        "--buckets=1", "--batch_size=6", "--min_count=1",
        "--learning_rate=0.01", "--weight_average=0.9", "--dropout=0",
        "--embedding_dropout=0", "--label_smoothing=0", "--beam_width=2",
    ]  # fmt: skip
    with checking_here():
        assert cli.main(Captioning, argv=argv) == 0
    return folder, folder / "versions" / "1"


def test_a_run_holds_what_it_should(trained):
    folder, version = trained
    metrics = json.loads((folder / "run" / "metrics.json").read_text())
    wanted = {
        "bleu1",
        "bleu2",
        "bleu3",
        "bleu4",
        "chrf",
        "cider",
        "perplexity",
        "distinct",
        "novel",
    }
    assert wanted <= set(metrics["test"]) and metrics["test"]["novel"] == 0
    assert metrics["examples"] == {"train": 18, "dev": 6, "test": 3}
    # Three colors, told apart.
    assert metrics["test"]["bleu4"] > 99 and metrics["test"]["distinct"] == 1
    for name in ("captions", "attention"):
        assert (folder / "run" / "figures" / f"{name}.png").exists()
    assert "kept" not in (version / "MODEL_CARD.md").read_text().split("Limits")[0]


ALONE = """
import pathlib, sys
sys.modules["keras"] = sys.modules["rnnapps"] = None
import numpy as np
import tensorflow as tf
served = tf.saved_model.load(sys.argv[1]).signatures
images = [file.read_bytes() for file in sorted(pathlib.Path(sys.argv[2]).iterdir())]
bad = [b"", b"no image", images[0][:40], images[1][: len(images[1]) // 2]]
given = [images[0], *bad, *images[1:]]
one, two = tf.constant(1), tf.constant(2)
together = served["decode"](image=tf.constant(given), beam=two, nbest=two)
assert together["caption"].shape == (len(given), 2)
assert together["caption"][1:5].numpy().tolist() == [[b""] * 2] * 4
assert (together["score"][1:5].numpy() == -np.inf).all()
for row, image in enumerate(given):
    alone = served["decode"](image=tf.constant([image]), beam=two, nbest=two)
    assert (alone["caption"][0] == together["caption"][row]).numpy().all(), row
default = served["serving_default"](image=tf.constant(given))
assert default["caption"].shape == (len(given), 1)
answers = [text.decode() for text in default["caption"][:, 0].numpy()]
seen = served["attention"](image=tf.constant(given), caption=default["caption"][:, 0])
assert seen["weights"].shape == (len(given), seen["tokens"].shape[1], 8, 8)
sums = tf.reduce_sum(seen["weights"], [2, 3]).numpy()
assert abs(sums[0, 0] - 1) < 1e-5 and (sums[1:5] == 0).all()
for name, more in (("serving_default", {}), ("decode", {"beam": two, "nbest": one}),
                   ("attention", {"caption": tf.constant([], tf.string)})):
    for value in served[name](image=tf.constant([], tf.string), **more).values():
        assert value.shape[0] == 0, name
print("\\n".join([answers[0], *answers[5:]]))
"""


def test_the_export_stands_alone_and_gives_the_captions_of_the_training_path(trained, tmp_path):
    folder, version = trained
    test = (folder / "test.txt").read_text().split("\n")
    encoded = []
    for archive in ("a.zip", "b.zip"):
        with zipfile.ZipFile(folder / archive) as opened:
            encoded += [opened.read(f"in/{n}") for n in test if f"in/{n}" in opened.namelist()]
    # Another size, a GIF, a tiny one, and one of grey.
    encoded += [picture("blue", size=(200, 50)), picture("green", kind="GIF")]
    encoded.append(picture("red", size=(1, 1)))
    (tmp_path / "images").mkdir()
    for number, content in enumerate(encoded):
        (tmp_path / "images" / f"{number:03d}").write_bytes(content)
    moved = shutil.copytree(version, tmp_path / "moved")
    done = subprocess.run(
        [sys.executable, "-P", "-c", ALONE, moved, tmp_path / "images"],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    from rnnapps import export

    task, model = export.read(Captioning, version)
    image = tf.stack([example["image"] for example in task.load()["test"]])
    features, _, describe = task._functions(model)
    texts, _ = describe(task._seen(image, features), 2, 1)
    assert done.stdout.split("\n")[: len(test)] == [text.decode() for text in texts[:, 0].numpy()]


def test_predict_reads_files_and_folders_and_draws_attention(trained, tmp_path, capsys):
    _, version = trained
    photos = tmp_path / "photos"
    photos.mkdir()
    with zipfile.ZipFile(trained[0] / "a.zip") as archive:
        for name in ("red1.png", "green1.jpg", "blue1.bmp"):
            (photos / name).write_bytes(archive.read(f"in/{name}"))
    (photos / "notes.txt").write_text("no image")
    (photos / "._red1.png").write_text("what another system keeps beside a file")
    base = ["predict", f"--model={version}"]
    assert cli.main(Captioning, argv=[*base, str(photos), f"{photos}/red1.png"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [Path(file).stem for file, _ in lines] == ["blue1", "green1", "red1", "red1"]
    assert all(Path(file).stem[:-1] in text for file, text in lines)
    argv = [*base, f"{photos}/blue1.bmp", "--json", "--nbest=2", f"--attention={tmp_path}/map.png"]
    assert cli.main(Captioning, argv=argv) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["image"] == f"{photos}/blue1.bmp" and len(answer["caption"]) == 2
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    (tmp_path / "none").mkdir()
    for wrong, told in (
        ([f"{photos}/notes.txt"], "notes.txt: not a JPEG, PNG, BMP or GIF image"),
        ([f"{photos}/gone.png"], "No such file or directory: "),
        ([str(tmp_path / "none")], "none holds no image"),
        ([""], "an image is a file or a folder of them. Received: ''"),
        ([f"{photos}/red1.png", "--nbest=5"], "nbest is at most beam. Received: nbest=5, beam=2"),
        ([str(photos), "--attention=x.png"], "attention is drawn for one image"),
        ([str(photos), f"--attention={tmp_path}/x.png", "--batch_size=1"], "for one image"),
        ([f"{photos}/red1.png", f"--attention={tmp_path}/no/x.png"], "cannot write "),
    ):
        assert cli.main(Captioning, argv=[*base, *wrong]) == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert error.startswith("error: ") and told in error


def test_evaluate_measures_the_export_as_the_run_did(trained, tmp_path, capsys):
    folder, version = trained
    assert cli.main(Captioning, argv=["evaluate", f"--model={version}"]) == 0
    measured = json.loads(capsys.readouterr().out.splitlines()[-1])
    of_run = json.loads((folder / "run" / "metrics.json").read_text())["test"]
    assert measured == pytest.approx(of_run, rel=1e-3)
    # Other data: what was said about splits of the training data is void.
    rows = "".join(f'red1.png,"{text}"\n' for text in captions("red"))
    (tmp_path / "t.csv").write_text(f"image,caption\n{rows}")
    argv = ["evaluate", f"--model={version}", f"--data={tmp_path}/t.csv", "--split=all"]
    assert cli.main(Captioning, argv=[*argv, f"--images={folder}/a.zip"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["bleu1"] == pytest.approx(100)


def test_bad_data_ends_with_a_line_and_leaves_nothing(trained, tmp_path, capsys):
    folder, _ = trained
    os.makedirs(tmp_path / "in")
    good = [f"{color}{number}.png" for color in COLORS for number in range(8)]
    for name in good:
        (tmp_path / "in" / name).write_bytes(picture(re.match("[a-z]+", name)[0]))
    (tmp_path / "in" / "cut.jpg").write_bytes(picture("red", kind="JPEG")[:-200])
    (tmp_path / "in" / "text.jpg").write_text("hello")
    huge = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (12_000).to_bytes(4, "big") * 2 + b"\x08\x02\0\0\0"
    (tmp_path / "in" / "huge.png").write_bytes(huge)
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass

    def run(names, *more):
        table = "".join(f"{name},a {name.split('.')[0]}\n" for name in names)
        (tmp_path / "t.csv").write_text(f"image,caption\n{table}")
        argv = ["train", f"--data={tmp_path}/t.csv", f"--images={tmp_path}/in", *more]
        argv += [f"--out={tmp_path}/run", f"--export={tmp_path}/versions", "--epochs=1"]
        return cli.main(Captioning, argv=argv), capsys.readouterr().err

    for names, more, told in (
        (["cut.jpg", *good], [], "in/cut.jpg: a corrupt or truncated image"),
        (["text.jpg", *good], [], "in/text.jpg: not a JPEG, PNG, BMP or GIF image"),
        (["huge.png", *good], [], "in/huge.png: more than 50,000,000 pixels"),
        (["../out.png", *good], [], "is no path within"),
        (["gone.png"], [], "none of the 1 images"),
        (good, [f"--images={tmp_path}/empty.zip"], "empty.zip holds no images"),
        (good, ["--image_encoder=NoSuchNet"], "no network of that name"),
        (good, [f"--image_encoder={tmp_path}/no.keras"], "no.keras: no such file"),
        (good, ["--image_encoder=MobileNetV3Small"], "ImageNet weights of MobileNetV3Small cannot"),
        (good, [f"--test_images={tmp_path}/no.txt"], "no such file or folder"),
        (good, ["--max_length=2"], "all training captions are longer than max_length"),
        (good, ["--min_count=100"], "no token of the training captions is known"),
        (good, ["--attention=none", "--input_feeding=true"], "input_feeding needs an attention"),
        (good, ["--attention=none", "--doubly_stochastic=1"], "doubly_stochastic needs an"),
    ):
        status, error = run(names, *more)
        assert status == 2 and told in error, told
        assert not (tmp_path / "run").exists() and not (tmp_path / "versions").exists()
    with pytest.raises(UserError, match="the images of .*t.csv are missing: name their folder"):
        Captioning(CaptioningConfig(data=str(tmp_path / "t.csv"))).load()


def test_bad_images_are_skipped_and_counted(tmp_path, caplog):
    caplog.set_level("INFO", "rnnapps")
    for number in range(12):
        (tmp_path / f"{number}.png").write_bytes(picture("red", number))
    (tmp_path / "bad.png").write_text("hello")
    (tmp_path / "alone.png").write_bytes(picture("blue"))
    rows = "".join(f"{name}.png,red\n" for name in [*range(12), "bad", "gone"])
    (tmp_path / "t.csv").write_text(f"image,caption\n{rows}")
    config = dataclasses.replace(
        SMALL, data=str(tmp_path / "t.csv"), images=str(tmp_path), on_bad_row="skip"
    )
    task = Captioning(config)
    loaded = task.load()
    task.check(loaded)
    assert sum(len(split) for split in loaded.values()) == 12
    assert "1 bad row" in caplog.text and "not a JPEG, PNG, BMP or GIF image" in caplog.text
    assert "14 images, 1 of them without captions; 1 captions of 1 images that are" in caplog.text
    task.adapt(loaded["train"])  # captions of one word
    assert len(task.tokens) == 4


def test_the_sample_is_what_the_default_reads():
    task = Captioning(CaptioningConfig())
    loaded = task.load()
    sizes = {name: len(split) for name, split in loaded.items()}
    assert sizes == {"train": 12_000, "dev": 300, "test": 500}
    task.adapt(loaded["train"].take(200))
    evaluation = task.evaluate(task.build(), loaded["test"].take(20))
    assert evaluation.metrics["attributes"] == 0  # nothing has been learnt


def test_the_seed_draws_all_weights_those_of_the_small_network_too():
    given, drawn = splits(each=5), []
    for _ in range(2):
        task = adapted(given, image_encoder="cnn")
        keras.utils.set_random_seed(7)
        drawn.append(task.build().get_weights())
    for one, other in zip(*drawn, strict=True):
        np.testing.assert_array_equal(one, other)


def test_search_space_starts_from_the_configuration():
    hp = keras_tuner.HyperParameters()
    assert Captioning(SMALL).search_space(hp) == SMALL
    assert len(hp.values) > 5


def test_the_yaml_beside_the_script_lists_every_setting():
    file = Path(__file__).parents[2] / "pipelines" / "captioning.yaml"
    assert file.read_text(encoding="utf-8") == commented_yaml(CaptioningConfig)


def test_a_server_is_asked_as_the_page_says(trained, monkeypatch):
    server_requests.check(trained[1], "captioning", monkeypatch)
