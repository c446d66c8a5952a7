"""Imports between the rooms point one way."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rnnapps

PACKAGE = Path(rnnapps.__file__).parent
RANKS = {
    "cli": 5,
    "demo": 5,
    "training": 4,
    "tuning": 4,
    "processes": 4,
    "export": 4,
    "serving": 4,
    "learner": 4,
    "experiments": 4,
    "tasks": 3,
    "models": 2,
    "data": 2,
    "decoding": 2,
    "metrics": 2,
    "figures": 2,
    "inspection": 2,
    "layers": 1,
    "optimizers": 1,
    "devices": 1,
    "workers": 1,
    "memory": 1,
    "checkpoints": 1,
    "progress": 1,
    "oracles": 1,
    "folders": 1,
    "greetings": 1,
    "warm_up": 1,
    "errors": 0,
}
NEIGHBOURS = {
    ("export", "serving"),
    ("training", "learner"),
    ("checkpoints", "folders"),
    ("devices", "workers"),
    ("tuning", "processes"),
    ("processes", "training"),
}


def imported_rooms(file: Path) -> set[str]:
    """The names under `rnnapps` that a module imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module == "rnnapps":
            names |= {f"rnnapps.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"a relative import in {file}"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.startswith("rnnapps.")}


MODULES = sorted(
    file for file in PACKAGE.rglob("*.py") if file.parent != PACKAGE or file.stem[0] != "_"
)


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_point_one_way(file):
    room = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for name in imported_rooms(file):
        other = name.split(".")[1]
        allowed = room == other or RANKS[other] < RANKS[room] or (room, other) in NEIGHBOURS
        assert allowed, f"{file} imports {name}"
        if RANKS[room] > RANKS["tasks"] and other == "tasks":
            assert name.split(".")[2] in ("task", "config"), f"{file} knows a task by name: {name}"


def test_the_command_line_answers_without_tensorflow():
    code = (
        "import sys, rnnapps.cli, rnnapps.tasks.sentiment as s\n"
        "assert rnnapps.cli.main(s.Sentiment, argv=['--help']) == 0\n"
        "assert rnnapps.cli.main(s.Sentiment, argv=['train', '--help']) == 0\n"
        "assert rnnapps.cli.main(s.Sentiment, argv=['tune', '--help']) == 0\n"
        "assert rnnapps.cli.main(s.Sentiment, argv=['train', '--cell', 'no']) == 2\n"
        "heavy = {'tensorflow', 'keras', 'tensorflow_datasets', 'keras_tuner', 'matplotlib'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
