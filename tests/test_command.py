"""The `rnnapps` command, and what of the package is installed."""

import configparser
import contextlib
import importlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rnnapps
from rnnapps import __main__ as command
from rnnapps import cli

ROOT = Path(rnnapps.__file__).parents[1]
PIPELINES = ROOT / "pipelines"


def shown(*argv) -> tuple[int, str, str]:
    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as err,
    ):
        try:
            status = command.main(argv)
        except SystemExit as stop:
            status = stop.code
    return status, out.getvalue(), err.getvalue()


@pytest.fixture(autouse=True)
def own_name(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pytest"])


def test_every_script_is_a_command():
    assert {file.stem for file in PIPELINES.glob("*.py")} == {*command.TASKS, *command.OTHERS}
    status, out, _ = shown("--help")
    assert (status, out) == shown()[:2] and status == 0
    assert all(f"\n  {name} " in out for name in (*command.TASKS, *command.OTHERS))
    assert shown("--version")[1] == f"{rnnapps.__version__}\n"
    assert shown("sentimnet") == (
        2,
        "",
        "error: no command 'sentimnet'; there are "
        + ", ".join((*command.TASKS, *command.OTHERS))
        + "\n",
    )


@pytest.mark.parametrize("name", command.TASKS)
def test_a_task_is_its_script(name, monkeypatch):
    """The script hands the same class to the same function, and `--help` shows the same."""
    main = (PIPELINES / f"{name}.py").read_text(encoding="utf-8").rpartition("\n\n")[2]
    calls = []
    monkeypatch.setattr(cli, "main", lambda *given: calls.append(given) or 0)
    assert command.main([name, "train", "--epochs=2"]) == 0
    (task_class, arguments), *_ = calls
    assert task_class.name == name and arguments == ["train", "--epochs=2"]
    assert main == (f'if __name__ == "__main__":\n    sys.exit(main({task_class.__name__}))\n')


def test_help_is_that_of_the_script():
    script = [sys.executable, str(PIPELINES / "ner.py"), "--help"]
    of_script = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    status, out, _ = shown("ner", "--help")

    def words(text):  # the name is longer, so that lines break elsewhere
        return " ".join(text.replace("rnnapps ner", "ner.py").split())

    assert status == 0 and words(out) == words(of_script)


def test_the_experiments_are_a_command():
    status, out, _ = shown("experiments", "--help")
    assert status == 0 and out.startswith("usage: rnnapps experiments ") and "memory-gap" in out
    assert shown("experiments", "none")[0] == 2


def test_the_command_and_the_package_load_nothing_heavy():
    code = (
        "import sys\n"
        "import rnnapps\n"
        "alone = set(sys.modules)\n"
        "from rnnapps.__main__ import main\n"
        "assert main(['--help']) == 0\n"
        "heavy = {'tensorflow', 'keras', 'numpy', 'matplotlib', 'jsonargparse', 'yaml', 'etils'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "assert {m for m in alone if m.startswith('rnnapps')} == {'rnnapps'}, alone\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def metadata() -> configparser.ConfigParser:
    read = configparser.ConfigParser()
    read.read(ROOT / "setup.cfg", encoding="utf-8")
    return read


def test_the_entry_point_is_the_command():
    (line,) = metadata()["options.entry_points"]["console_scripts"].split("\n")[1:]
    name, module, function = re.fullmatch(r"(\w+) = ([\w.]+):(\w+)", line).groups()
    assert name == "rnnapps"
    assert getattr(importlib.import_module(module), function) is command.main


def test_every_file_of_the_package_is_installed():
    """Python files are, where each folder on the way is a package; others are listed."""
    listed = {
        file
        for package, globs in metadata()["options.package_data"].items()
        for glob in globs.split()
        for file in (ROOT / package.replace(".", "/")).glob(glob)
    }
    assert all(file.is_file() for file in listed) and ROOT / "rnnapps" / "py.typed" in listed
    for file in (ROOT / "rnnapps").rglob("*"):
        if file.is_dir() or "__pycache__" in file.parts:
            continue
        assert file in listed or file.suffix == ".py", f"{file} would not be installed"
        assert (file.parent / "__init__.py").exists(), f"{file.parent} is no package"
