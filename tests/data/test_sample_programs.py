import ast
import hashlib
import itertools
import os
import re
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator

import pytest

from rnnapps.data.datasets.sample_programs import grammar

DIGEST_OF_200 = "90ac77eca82e41f92fb5a9939229411899bd0ff2d42b873975e10da930b8b597"

BUILTINS = {"print", "range", "len", "sum", "max", "min"}

CHARACTERS = set('abcdefghijklmnopqrstuvwxyz0123456789 \n"()[]=!<>+-*/%.,:')


@pytest.fixture(scope="module")
def splits():
    programs = grammar.programs()
    return {
        split: list(itertools.islice(programs, size)) for split, size in grammar.SPLIT_SIZES.items()
    }


@pytest.fixture(scope="module")
def programs(splits):
    return list(itertools.chain.from_iterable(splits.values()))


def test_programs_are_the_same_whatever_the_hash_seed(programs):
    assert _digest(programs[:200]) == DIGEST_OF_200

    script = (
        "import itertools\n"
        "from rnnapps.data.datasets.sample_programs.grammar import programs\n"
        "print([*itertools.islice(programs(), 200)])"
    )
    printed = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", script],
        env=os.environ | {"PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    assert _digest(ast.literal_eval(printed)) == DIGEST_OF_200


def test_no_program_comes_twice(programs):
    assert len(programs) == len(set(programs)) == sum(grammar.SPLIT_SIZES.values())


def test_programs_have_the_documented_form(programs):
    assert set("".join(programs)) <= CHARACTERS and len(CHARACTERS) <= 60
    for program in programs:
        assert 40 <= len(program) <= 250
        lines = program.split("\n")
        assert 2 <= len(lines) <= 10
        for line in lines:
            assert line and line == line.rstrip()
            assert (len(line) - len(line.lstrip())) % 4 == 0 and "  " not in line.lstrip()


def test_nesting_is_as_deep_as_documented(programs):
    brackets = Counter(max(_open_brackets(program)) for program in programs)
    assert max(brackets) == 4
    assert brackets[3] > 500
    blocks = Counter(
        max(len(re.match(" *", line)[0]) // 4 for line in program.split("\n"))
        for program in programs
    )
    assert max(blocks) == 3
    assert blocks[3] > 300
    kinds = {type(node) for program in programs[:500] for node in ast.walk(ast.parse(program))}
    assert {ast.For, ast.While, ast.If, ast.FunctionDef, ast.Return, ast.List, ast.Call} <= kinds


def test_every_program_parses_and_assigns_variables_before_it_uses_them(programs):
    for program in programs:
        assert list(_unassigned(ast.parse(program).body, set(), {})) == [], program


@pytest.mark.parametrize(
    ("program", "unassigned"),
    [
        ("print(a)\na = 1", ["a"]),
        ("for x in [1]:\n    y = x\nprint(x, y)", ["x", "y"]),
        ("if 1 > 2:\n    a = 1\nelse:\n    b = 1\nprint(a)", ["a"]),
        ("def f(a):\n    return a + b\nb = 1\nprint(f(1), a)", ["b", "a"]),
        ("def f(a, b):\n    return a\nprint(f(1))", ["f/1"]),
        ("n = 3\nwhile n > 1:\n    n = n - 1\nprint(n)", []),
    ],
)
def test_a_use_before_assignment_is_found(program, unassigned):
    assert list(_unassigned(ast.parse(program).body, set(), {})) == unassigned


def test_programs_run_to_their_end(programs):
    """Nothing is undefined, divided by zero or out of range, and nothing goes on for ever."""
    for program in programs[::3]:
        _run(program)


@pytest.mark.parametrize("program", ["n = 1\nwhile n > 0:\n    n = n + 1", "print(1 // 0)"])
def test_a_program_that_does_not_end_well_is_found(program):
    with pytest.raises((TimeoutError, ZeroDivisionError)):
        _run(program)


def test_documented_example_is_a_program_of_the_grammar():
    indented = re.search(r"\n\n((?:    .*\n)+)", grammar.__doc__)[1]
    example = textwrap.dedent(indented).rstrip("\n")
    printed = _run(example)
    assert printed == [(75,)]
    shape = re.sub(r"\d+", "0", example)
    assert shape in {
        re.sub(r"\d+", "0", program) for program in itertools.islice(grammar.programs(), 3000)
    }


def test_builder_offers_the_same_programs(tmp_path, monkeypatch, programs):
    from rnnapps.data.datasets.sample_programs import sample_programs_dataset_builder as module

    monkeypatch.setattr(grammar, "SPLIT_SIZES", {"train": 40, "dev": 6, "test": 10})
    builder = module.Builder(data_dir=tmp_path)
    builder.download_and_prepare()
    assert builder.name == "sample_programs"
    assert str(builder.version) in builder.RELEASE_NOTES

    start = 0
    for split, size in grammar.SPLIT_SIZES.items():
        examples = builder.as_dataset(split=split).as_numpy_iterator()
        read = {example["text"].decode() for example in examples}
        assert read == set(programs[start : start + size])
        start += size


def _digest(programs: Iterable[str]) -> str:
    return hashlib.sha256("\n\n".join(programs).encode()).hexdigest()


def _open_brackets(program: str) -> Iterator[int]:
    changes = ((char in "([") - (char in ")]") for char in program)
    return itertools.accumulate(changes)


def _unassigned(body: list[ast.stmt], assigned: set[str], functions: dict) -> Iterator[str]:
    """Names used where no assignment is sure to have gone before, and calls of a wrong length.

    `assigned` is extended by what the body is sure to assign, `functions` by the numbers of
    parameters of those that it defines.
    """

    def used(node: ast.AST) -> Iterator[str]:
        known = assigned | functions.keys() | BUILTINS
        for part in ast.walk(node):
            match part:
                case ast.Name(name, ast.Load()) if name not in known:
                    yield name
                case ast.Call(ast.Name(name), arguments) if name in functions:
                    if len(arguments) != functions[name]:
                        yield f"{name}/{len(arguments)}"

    for statement in body:
        match statement:
            case ast.FunctionDef(name, parameters, inner):
                functions[name] = len(parameters.args)
                local = {parameter.arg for parameter in parameters.args}
                yield from _unassigned(inner, local, functions)
            case ast.If(test):
                yield from used(test)
                ways_on = []
                for branch in (statement.body, statement.orelse):
                    after = set(assigned)
                    yield from _unassigned(branch, after, functions)
                    if not (branch and isinstance(branch[-1], ast.Return)):
                        ways_on.append(after)
                assigned |= set.intersection(*ways_on) if ways_on else set()
            case ast.For(target, iterable, inner):
                yield from used(iterable)
                yield from _unassigned(inner, assigned | _names(target), functions)
            case ast.While(test, inner):
                yield from used(test)
                yield from _unassigned(inner, set(assigned), functions)
            case ast.Assign(targets, value):
                yield from used(value)
                assigned |= set.union(*map(_names, targets))
            case ast.Expr(value) | ast.Return(value):
                yield from used(value)
            case _:
                raise AssertionError(f"the grammar has no {type(statement).__name__}")


def _names(target: ast.expr) -> set[str]:
    return {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}


def _run(program: str) -> list[tuple]:
    """What a program prints; raises TimeoutError after 2,000 lines."""
    printed, lines = [], itertools.count()

    def trace(frame, event, argument):
        if next(lines) > 2000:
            raise TimeoutError(program)
        return trace

    code = compile(program, "program", "exec")
    former = sys.gettrace()
    sys.settrace(trace)
    try:
        exec(code, {"print": lambda *values: printed.append(values)})
    finally:
        sys.settrace(former)
    return printed
