"""The README and the pages of docs/ say what is so: their code runs, and their flags are known.

A block of Python is run, in the order of the page and with its names, and a comment behind an
expression is what it must give, numbers to the digits shown. The README and the guide show what a
user's own model might answer, so that there only the form must be the same. A block of commands is
parsed by the scripts themselves, up to where they would begin to work.
"""

import argparse
import ast
import contextlib
import io
import re
import runpy
import shlex
import shutil
import sys
import tokenize

import numpy as np
import pytest

from tests.docs.markdown import ROOT, Block, blocks

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKING = [*PAGES, *(ROOT / name / "README.md" for name in ("benchmarks", "saved_models"))]
# Their first line says that these blocks are what there was, not what to write.
OTHERS = ("# TensorFlow Addons", "# OpenNMT-tf")
MODULES = ("pip", "pytest")
# Flags of TensorFlow Serving and gRPC.
OF_THE_SERVER = {
    "--batching_parameters_file",
    "--enable_batching",
    "--enable_model_warmup",
    "--grpc_channel_arguments",
}
# What these show is what a user's own model might answer.
OF_A_USER = ("README.md", "guide.md")


def of(page, *languages) -> list[Block]:
    """The blocks of a page that are to be run."""
    found = [block for block in blocks(page) if block.language in languages]
    return [block for block in found if not block.text.startswith(OTHERS)]


def names_given(page) -> dict:
    """What a page's blocks use without saying where it comes from."""
    import keras

    from rnnapps import models
    from rnnapps.tasks.sentiment import Sentiment, SentimentConfig

    if page.name in OF_A_USER:
        texts = [f"{word} film, {number}" for number in range(20) for word in ("good", "bad")]
        task = Sentiment(SentimentConfig(data="reviews.csv"))
        return {"task": task, "texts": texts, "labels": ["for", "against"] * 20}
    if page.name == "experiments.md":
        encoder = models.TextEncoder(9, 4, models.SequenceEncoder("lstm", 4))
        model = models.Acceptor(encoder, num_classes=2)
        ids = keras.ops.convert_to_tensor([[3, 4, 5]])
        model(ids)
        return {"model": model, "ids": ids, "tokens": ["a", "lovely", "film"]}
    return {}


def run(block: Block, names: dict, page, exact: bool) -> int:
    """Runs a block statement by statement; returns how many values it showed."""
    lines = block.text.splitlines()
    comments = {
        token.start[0]: token.string[1:].strip()
        for token in tokenize.generate_tokens(io.StringIO(block.text).readline)
        if token.type == tokenize.COMMENT
    }
    shown = 0
    for statement in ast.parse(block.text).body:
        place = f"{page.name}:{block.line + statement.lineno - 1}"
        code = "\n" * (statement.lineno - 1)
        code += "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
        if not isinstance(statement, ast.Expr):
            exec(compile(code, place, "exec"), names)
            continue
        value = eval(compile(ast.Expression(statement.value), place, "eval"), names)
        with contextlib.suppress(ValueError, SyntaxError, KeyError):
            expected = ast.literal_eval(comments[statement.end_lineno])
            shown += 1
            assert same(value, expected, exact), f"{place} shows {expected}, but it is {value}"
    return shown


def same(value, expected, exact: bool) -> bool:
    """Whether a value is the one shown; if not `exact`, whether it is one such."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(expected, dict):
        alike = isinstance(value, dict) and value.keys() == expected.keys()
        return alike and all(same(value[key], expected[key], exact) for key in expected)
    if isinstance(expected, list | tuple):
        alike = isinstance(value, type(expected)) and len(value) == len(expected)
        return alike and all(same(*both, exact) for both in zip(value, expected, strict=True))
    if not exact:
        return isinstance(value, type(expected))
    if isinstance(expected, float):
        digits = len(str(expected).partition(".")[2])
        return abs(value - expected) <= 0.51 * 10**-digits
    return value == expected


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_runs_and_gives_what_is_shown(page, workplace, little_work, checked_here, request):
    if page.name == "extending.md":
        pytest.skip("its blocks are parts of files, which test_extending.py puts together")
    python = of(page, "python")
    if page.name == "serving.md":
        for task in ("sentiment", "translation"):
            shutil.copytree(ROOT / "saved_models" / task / "1", f"saved_models/{task}/1")
        # What is asked of a server is asked of each task's export in the tests of the tasks.
        python = [block for block in python if "import grpc" not in block.text]
    elif any("saved_models/" in block.text for block in python):
        request.getfixturevalue("exported")
    names = names_given(page)
    shown = [run(block, names, page, page.name not in OF_A_USER) for block in python]
    if page.name == "migration.md":
        # Each has its result, but for the imports.
        assert all(shown[1:]) and len(shown) > 15


@pytest.mark.parametrize("page", LINKING, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("http"):
            continue
        path, _, heading = target.partition("#")
        linked = page.parent / path if path else page
        assert linked.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.*)", linked.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}
            assert heading in anchors, target


def test_what_there_was_is_python_too():
    page = ROOT / "docs" / "migration.md"
    before = [block for block in blocks(page) if block.text.startswith(OTHERS)]
    for block in before:
        if block.language == "python":
            ast.parse(block.text, f"{page.name}:{block.line}")
    assert len(before) > 15


def test_values_are_compared():
    assert same(np.float32(1.234567), 1.2346, exact=True)
    assert not same(1.2344, 1.2346, exact=True)
    assert not same([1, 2], [1, 3], exact=True) and same([1, 2], [1, 3], exact=False)
    assert not same({"a": 1}, {"b": 1}, exact=False) and not same([1], [1, 2], exact=False)
    with pytest.raises(AssertionError, match="page:2 shows 3, but it is 2"):
        page = argparse.Namespace(name="page")
        run(Block("python", "x = 1\nx + 1  # 3\n", "", 1), {}, page, exact=True)


def commands(text: str) -> list[list[str]]:
    """The commands of a block for the shell, without what is put before and between them."""
    found, line = [], ""
    for part in text.splitlines():
        line += part
        if line.endswith("\\"):
            line = line[:-1]
            continue
        try:
            words = shlex.split(line, comments=True)
        except ValueError:  # within a quotation
            line += "\n"
            continue
        line, command = "", []
        for word in [*words, "&"]:
            if word in ("|", "&", "&&"):
                found += [command] if command else []
                command = []
            elif command or not re.match(r"[A-Z_]+=", word):
                command.append(word)
    return found


class ParsedError(Exception):
    """Raised where a script would begin to work."""


@pytest.fixture
def parse(tmp_path, monkeypatch, capsys):
    """Returns a function that lets a script parse its arguments, and fails where it refuses."""
    from rnnapps import cli
    from rnnapps.tasks.config import commented_yaml

    def stop(*args):
        raise ParsedError

    parse_args = argparse.ArgumentParser.parse_args

    def parse_and_stop(self, *args, **kwargs):
        flags = parse_args(self, *args, **kwargs)
        return stop() if type(self) is argparse.ArgumentParser else flags

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.greetings, "import_tensorflow", stop)
    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_and_stop)

    def parse(command):
        program, *rest = command
        if program in ("export", "cat"):
            return
        assert program == "python", command
        if rest[0] == "-m":
            assert rest[1] in MODULES, command
            return
        script, arguments = ROOT / rest[0], rest[1:]
        for flag, value in zip(arguments, arguments[1:], strict=False):
            if flag == "--config":  # a file of settings, which must be there to be read
                task = importlib_task(script)
                (tmp_path / value).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / value).write_text(commented_yaml(task.Config), encoding="utf-8")
        monkeypatch.setattr(sys, "argv", [str(script), *arguments])
        monkeypatch.syspath_prepend(script.parent)
        with pytest.raises(ParsedError):
            try:
                runpy.run_path(str(script), run_name="__main__")
            except SystemExit:
                pytest.fail(f"{shlex.join(command)}\n{capsys.readouterr().err}")

    return parse


def importlib_task(script):
    """The task of a pipeline's script."""
    from rnnapps.tasks.task import Task

    names = runpy.run_path(str(script)).values()
    return next(name for name in names if isinstance(name, type) and issubclass(name, Task))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_are_understood(page, parse):
    text = page.read_text(encoding="utf-8")
    shell = [" ".join(span.split()) for span in re.findall(r"`(python [^`]+)`", text)]
    # Other tests run the blocks of extending.md; those of serving.md start a server and ask it.
    if page.name not in ("extending.md", "serving.md"):
        shell += [block.text for block in of(page, "sh")]
    for command in [command for part in shell for command in commands(part)]:
        parse(["memory-gap" if word == "NAME" else word for word in command])


@pytest.mark.parametrize(
    "command",
    [
        "pipelines/sentiment.py train --unit 8",
        "pipelines/ner.py evaluate --model a --split most",
        "pipelines/experiments.py memory-gap --reduce",
        "benchmarks/layers.py --turns 3",
    ],
)
def test_an_unknown_flag_is_refused(command, parse):
    with pytest.raises(pytest.fail.Exception, match=command.partition(" ")[0]):
        parse(["python", *command.split()])


def known_flags() -> set[str]:
    """The flags of all scripts."""
    from rnnapps import cli

    flags = set()
    for script in (ROOT / "pipelines").glob("*.py"):
        if script.stem not in ("experiments", "demo"):
            for command in cli._parser(importlib_task(script))._subcommands_action.choices.values():
                flags |= {flag for action in command._actions for flag in action.option_strings}
    others = [ROOT / "pipelines" / "experiments.py", ROOT / "rnnapps" / "demo" / "command.py"]
    others.append(ROOT / "tests" / "data" / "mutations.py")
    for script in [*(ROOT / "benchmarks").glob("*.py"), *others]:
        flags |= set(re.findall(r'add_argument\(\s*"(--\w+)"', script.read_text(encoding="utf-8")))
    return flags


def test_every_flag_that_the_text_names_is_known():
    known = known_flags()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in blocks(page):
            text = text.replace(block.text, "")
        if page.name == "migration.md":  # the first column of its tables is what there was
            text = re.sub(r"^\|[^|]*\|", "|", text, flags=re.MULTILINE)
        spans = re.findall("`([^`]*)`", text)
        named = {flag for span in spans for flag in re.findall(r"(?<![\w-])--\w+", span)}
        named -= OF_THE_SERVER if page.name == "serving.md" else set()
        assert named <= known, (page.name, named - known)
