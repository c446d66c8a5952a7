"""The export, loaded by a process that has nothing but TensorFlow."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import rnnapps
from rnnapps import export
from rnnapps.tasks.sentiment import Sentiment
from tests import server_requests

TEXTS = ["A lovely film!", "", "   ", "!!!", "日本語 été \U0001f600", "dull " * 5000, "\x00\x01"]

CLEAN = """
import json, sys
sys.modules["rnnapps"] = sys.modules["keras"] = None
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
serve, encode = model.signatures["serving_default"], model.signatures["encode"]
texts = json.loads(sys.argv[2])
def answer(batch):
    batch = tf.constant(batch, tf.string, [len(batch)])
    served, vector = serve(text=batch), encode(text=batch)["vector"]
    return [served["label"].numpy().astype(str).tolist(), served["probabilities"].numpy().tolist(),
            vector.numpy().tolist()]
spec = serve.structured_input_signature[1]["text"]
print(json.dumps({"together": answer(texts), "alone": [answer([t]) for t in texts],
                  "none": answer([]), "input": [spec.dtype.name, spec.shape.as_list()]}))
"""


@pytest.fixture(scope="module")
def clean(trained, tmp_path_factory):
    """The answers of a clean process to the export in another folder."""
    moved = shutil.copytree(trained[1], tmp_path_factory.mktemp("elsewhere") / "model")
    done = subprocess.run(
        [sys.executable, "-I", "-c", CLEAN, moved, json.dumps(TEXTS)],
        capture_output=True,
        text=True,
        cwd=moved.parent,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_text_is_answered(clean):
    labels, probabilities, vectors = clean["together"]
    assert set(labels) <= {"negative", "positive"} and len(labels) == len(TEXTS)
    assert np.allclose(np.sum(probabilities, axis=1), 1) and np.isfinite(vectors).all()
    assert clean["input"] == ["string", [None]]


def test_no_texts_give_no_answers_of_the_right_shape(clean):
    assert clean["none"] == [[], [], []]


def test_an_answer_does_not_depend_on_its_batch(clean):
    for i, (label, probabilities, vector) in enumerate(clean["alone"]):
        assert label == [clean["together"][0][i]]
        assert np.allclose(probabilities, clean["together"][1][i], rtol=0, atol=1e-6)
        assert np.allclose(vector, clean["together"][2][i], rtol=0, atol=1e-6)


def test_the_clean_process_agrees_with_keras(clean, trained):
    task, model = export.read(Sentiment, trained[1])
    logits = model(task._padded_ids(tf.constant(TEXTS)), training=False)
    assert np.allclose(tf.nn.softmax(logits), clean["together"][1], rtol=0, atol=1e-6)


def test_predict_takes_and_gives_plain_python(clean, trained):
    model = rnnapps.load(trained[1])
    answers = model.predict(TEXTS, batch_size=3)
    assert [answer["label"] for answer in answers] == clean["together"][0]
    assert all(type(p) is float for answer in answers for p in answer["probabilities"])
    assert model.predict([]) == []
    with pytest.raises(TypeError, match="Received: 'A lovely film!'"):
        model.predict("A lovely film!")
    vectors = model.call("encode", text=TEXTS)["vector"]
    assert np.allclose(vectors, clean["together"][2], rtol=0, atol=1e-6)
    assert model.call("encode", text=[]) == {"vector": []}


def test_assets_hold_the_vocabulary_and_the_labels(trained):
    assets = trained[1] / "assets"
    assert (assets / "labels.txt").read_text() == "negative\npositive\n"
    assert (assets / "vocabulary.txt").read_text().startswith("<pad>\n<unk>\n")


def test_next_version_counts_on_from_the_largest(tmp_path):
    assert export.next_version(tmp_path).name == "1"
    for name in ("2", "10", "notes"):
        (tmp_path / name).mkdir()
    assert export.next_version(tmp_path).name == "11"


def test_a_server_is_asked_as_the_page_says(trained, monkeypatch):
    server_requests.check(trained[1], "sentiment", monkeypatch)
