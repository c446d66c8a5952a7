"""How benchmarks train: through the command line, and what they take from it."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from training_run import train  # noqa: E402

SCRIPT = """
import json, pathlib, sys
flags = dict(flag[2:].split("=", 1) for flag in sys.argv[2:])
out = pathlib.Path(flags["out"])
again = out.exists()
out.mkdir(exist_ok=True)
metrics = {"parameters": 1234, "seconds": 5.4, "argv": sys.argv[1:]}
(out / "metrics.json").write_text(json.dumps(metrics))
(out / "history.csv").write_text("epoch,seconds\\n1,3\\n2,4\\n")
version = flags["export"] + "/1"
print(f"{out} is finished; its export is {version}" if again else f"run: {out}\\nexport: {version}")
sys.exit(flags.get("units") == "0")
"""


def test_a_training_is_told_by_what_it_leaves(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    out, export = tmp_path / "a run", tmp_path / "an export"
    for settings in ({"seed": 3, "tied": False}, {}):
        run = train(tmp_path / "script.py", ["--data=x.csv"], settings, out, export)
        assert run.version == export / "1"
        assert run.metrics["argv"] == [
            "train",
            "--data=x.csv",
            *(f"--{name}={value}" for name, value in settings.items()),
            f"--out={out}",
            f"--export={export}",
        ]
        assert run.epochs[1] == {"epoch": "2", "seconds": "4"}
        told = f"1,234 parameters, {run.seconds:.0f} s from start to export, 5 s of training in all"
        assert str(run) == told
    with pytest.raises(subprocess.CalledProcessError):
        train(tmp_path / "script.py", [], {"units": 0}, out, export)
