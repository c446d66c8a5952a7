"""The models that ship with the repository, asked by a process that has nothing but TensorFlow.

python tests/test_saved_models.py          # records the answers anew, after a model has changed
"""

import base64
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests import server_requests

ROOT = Path(__file__).parents[1]
MODELS = ROOT / "saved_models"
ANSWERS = Path(__file__).with_name("saved_models.json")
# In megabytes; the last two are trained on real data.
LARGEST = dict.fromkeys(("sentiment", "ner", "language_model", "translation", "captioning"), 4) | {
    "translation-eng-fra": 12,
    "shakespeare": 12,
}
AWKWARD = ["", "   ", "!!!", "日本語 café \U0001f600", "word " * 40]

# What is asked, by the model's folder and signature. Images are base64 here.
QUESTIONS = {
    "sentiment/1": {
        "serving_default": {"text": ["A film to love.", "Nothing to like.", *AWKWARD]}
    },
    "ner/1": {"serving_default": {"text": ["Luke joined Google in May.", *AWKWARD]}},
    "language_model/1": {
        "serving_default": {"text": ["total = 3 + 4\n", *AWKWARD]},
        "generate": {
            "prompt": ["", "a = "], "length": 30, "temperature": 0.0, "top_k": 0, "top_p": 1.0,
            "seed": [1, 2],
        },
    },
    "translation/1": {"serving_default": {"text": ["Do you want to dance with me?", *AWKWARD]}},
    "captioning/1": {"serving_default": {"image": []}},
    "translation-eng-fra/1": {
        "serving_default": {"text": ["I am very happy.", "Where is the station?", *AWKWARD]}
    },
    "shakespeare/1": {
        "serving_default": {"text": ["To be, or not to be", *AWKWARD]},
        "generate": {
            "prompt": ["ROMEO:"], "length": 60, "temperature": 0.0, "top_k": 0, "top_p": 1.0,
            "seed": [1],
        },
    },
}  # fmt: skip

ASK = """
import base64, json, sys
sys.modules["rnnapps"] = sys.modules["keras"] = None
import numpy as np
import tensorflow as tf

def plain(values):
    if values.dtype == object:
        return np.vectorize(lambda text: text.decode(), otypes=[object])(values).tolist()
    return values.tolist()

answers = {}
for folder, signatures in json.load(sys.stdin).items():
    model = tf.saved_model.load(f"{sys.argv[1]}/{folder}")
    answers[folder] = {}
    for name, inputs in signatures.items():
        function = model.signatures[name]
        specs = function.structured_input_signature[1]
        if "image" in inputs:
            inputs["image"] = [base64.b64decode(image) for image in inputs["image"]]
        given = {key: tf.constant(value, specs[key].dtype) for key, value in inputs.items()}
        outputs = function(**given)
        answers[folder][name] = {key: plain(value.numpy()) for key, value in outputs.items()}
print(json.dumps(answers))
"""


def asked(folder: Path, questions: dict) -> dict:
    """Returns the answers of the models in a folder."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", ASK, folder],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_answers_are_those_recorded(tmp_path):
    recorded = json.loads(ANSWERS.read_text(encoding="utf-8"))
    moved = shutil.copytree(MODELS, tmp_path / "moved")
    questions = {
        folder: {name: entry["inputs"] for name, entry in signatures.items()}
        for folder, signatures in recorded.items()
    }
    answers = asked(moved, questions)
    for folder, signatures in recorded.items():
        for name, entry in signatures.items():
            for key, expected in entry["outputs"].items():
                got = np.array(answers[folder][name][key])
                if got.dtype.kind == "f":
                    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-4)
                else:
                    assert got.tolist() == expected, (folder, name, key)


@pytest.mark.parametrize("name", LARGEST)
def test_a_model_is_small_and_tells_what_it_is(name):
    version = MODELS / name / "1"
    size = sum(file.stat().st_size for file in version.rglob("*") if file.is_file())
    assert size <= LARGEST[name] * 1_000_000
    card = (version / "MODEL_CARD.md").read_text(encoding="utf-8")
    for part in ("Data: `", "icence", "train --config", "Seed ", "| test |", "## Limits"):
        assert part in card
    for table in re.findall(r"(?:^\|.*\n)+", card, re.MULTILINE):
        assert len({row.count("|") for row in table.splitlines()}) == 1, table
    metrics = json.loads((version / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["test"]


@pytest.mark.parametrize(
    "name", ["sentiment", "ner", "language_model", "translation", "captioning"]
)
def test_a_server_of_them_answers_as_the_page_shows(name):
    server_requests.check_answers(MODELS / name / "1", name)


def test_all_models_are_recorded_and_listed():
    listed = (MODELS / "README.md").read_text(encoding="utf-8")
    assert set(json.loads(ANSWERS.read_text(encoding="utf-8"))) == set(QUESTIONS)
    assert {folder.partition("/")[0] for folder in QUESTIONS} == set(LARGEST)
    for folder in QUESTIONS:
        (row,) = re.findall(rf'.*rnnapps.load\("saved_models/{folder}"\).*', listed)
        metrics = json.loads((MODELS / folder / "metrics.json").read_text(encoding="utf-8"))
        shown = re.findall(r"`(\w+)` ([\d.]+)", row)
        assert shown
        for name, value in shown:
            digits = len(value.partition(".")[2])
            assert f"{metrics['test'][name]:.{digits}f}" == value, (folder, name)


def record() -> None:
    """Writes the answers that the models give now."""
    from rnnapps.tasks.captioning import Captioning, CaptioningConfig

    examples = Captioning(CaptioningConfig()).load()["test"].take(2).as_numpy_iterator()
    images = [base64.b64encode(example["image"]).decode() for example in examples]
    broken = base64.b64encode(b"no image").decode()
    QUESTIONS["captioning/1"]["serving_default"]["image"] = [*images, broken]
    answers = asked(MODELS, QUESTIONS)
    recorded = {
        folder: {
            name: {"inputs": inputs, "outputs": answers[folder][name]}
            for name, inputs in signatures.items()
        }
        for folder, signatures in QUESTIONS.items()
    }
    text = json.dumps(recorded, indent=1, ensure_ascii=False)
    ANSWERS.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    record()
