"""Each documented claim holds, in an experiment of seconds."""

import importlib
import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from rnnapps import greetings
from rnnapps.experiments import NAMES, experiment

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = Path(__file__).parents[2] / "pipelines" / "experiments.py"


@pytest.mark.parametrize("name", NAMES)
def test_the_claims_hold(name, tmp_path):
    result = experiment.run(name, reduced=True)
    files = result.write(name, tmp_path)
    written = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert written == {"claims": dict(result.claims), "numbers": result.numbers}
    assert result.claims and result.figures
    assert all(type(held) is bool for held in result.claims.values())
    assert all(result.claims.values()), (result.claims, result.numbers)
    for file in files:
        assert file.stat().st_size > 0
        assert file.suffix != ".png" or file.read_bytes().startswith(b"\x89PNG")


def test_there_is_a_file_for_each_name_and_none_besides():
    folder = Path(experiment.__file__).parent
    runnable = {
        file.stem.replace("_", "-")
        for file in folder.glob("*.py")
        if "\ndef run(size" in file.read_text()
    }
    assert runnable == set(NAMES)
    for name in NAMES:
        module = importlib.import_module(f"rnnapps.experiments.{name.replace('-', '_')}")
        assert module.FULL == module.Size() != module.REDUCED


def test_the_command_writes_says_what_holds_and_ends_with_1_where_a_claim_does_not(
    tmp_path, monkeypatch, capsys
):
    def run(name, reduced, seed):
        assert (name, reduced, seed) == ("memory-gap", True, 7)
        claims = {"the sun shines": True, "it rains": False}
        return experiment.Result(claims, {"drops": 0}, {"sky": Figure()}, {"sky.html": "<p>"})

    quiet = []
    monkeypatch.setattr(greetings, "import_tensorflow", lambda: quiet.append(True))
    monkeypatch.setattr(experiment, "run", run)
    main = runpy.run_path(str(SCRIPT))["main"]
    assert main(["memory-gap", "--reduced", "--seed=7", f"--out={tmp_path}"]) == 1
    told, mistakes = capsys.readouterr()
    assert quiet and not mistakes
    assert "\nholds: the sun shines" in told and "\nDOES NOT HOLD: it rains" in told
    assert {file.name for file in tmp_path.iterdir()} == {"memory-gap.json", "sky.png", "sky.html"}


def test_the_command_knows_its_names_without_tensorflow():
    code = (
        "import runpy, sys\n"
        f"main = runpy.run_path({str(SCRIPT)!r})['main']\n"
        "for argv, status in ((['--help'], 0), (['nothing'], 2)):\n"
        "    try:\n"
        "        main(argv)\n"
        "    except SystemExit as end:\n"
        "        assert end.code == status\n"
        "assert 'tensorflow' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert all(name in done.stdout for name in NAMES)


def test_numbers_are_written_as_json_has_them():
    values = {1: np.array([[1.23456, 2.0]]), "a": (np.float32(0.5), True, "b"), "n": np.int64(3)}
    assert experiment.rounded(values) == {"1": [[1.235, 2.0]], "a": [0.5, True, "b"], "n": 3}


def test_the_page_has_each_command_and_its_pictures():
    page = (DOCS / "experiments.md").read_text(encoding="utf-8")
    for name in NAMES:
        assert f"python pipelines/experiments.py {name}\n" in page
    pictures = re.findall(r"\]\((\S+?\.png)\)", page)
    assert len(pictures) >= len(NAMES)
    for picture in pictures:
        assert (DOCS / picture).stat().st_size < 150_000
