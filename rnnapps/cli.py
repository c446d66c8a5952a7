"""The command line that all pipelines share.

TensorFlow and everything that needs it is imported when a command first uses it, so that `--help`
and a mistyped flag are answered at once.
"""

import contextlib
import dataclasses
import itertools
import json
import logging
import os
import re
import sys
import textwrap
import types
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import jsonargparse
from etils import epy
from jsonargparse.typing import PositiveInt

from rnnapps import folders, greetings
from rnnapps.errors import UserError
from rnnapps.tasks.config import from_mapping, meanings, settings_text
from rnnapps.tasks.task import Task

with epy.lazy_imports():
    import tqdm

    from rnnapps import export, oracles, serving, training, tuning, workers
    from rnnapps.data.formats import rows

log = logging.getLogger("rnnapps")

_LONGEST_MESSAGE = 1000


def main(task_class: type[Task], argv: Sequence[str] | None = None) -> int:
    """Runs a task's pipeline.

    Args:
        task_class: the task.
        argv: the arguments. Defaults to those of the process.

    Returns:
        The exit status: 0, or 2 after a mistake of the user's.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    commands = {
        "train": _train,
        "evaluate": _evaluate,
        "predict": _predict,
        "tune": _tune,
        "export": _export,
    }
    with _plain_messages():
        try:
            parsed = _parsed(task_class, argv or ["train"])
            flags = parsed[parsed.subcommand]
            flags.given = {flag[2:].partition("=")[0] for flag in argv if flag.startswith("--")}
            greetings.import_tensorflow()
            result = commands[parsed.subcommand](task_class, flags)
            if not argv and result is not None:
                _answer(task_class, result)
        except SystemExit as stop:  # --help and --print_config
            return int(stop.code or 0)
        except UserError as error:
            print(f"error: {_cut(str(error))}", file=sys.stderr)
            return 2
        except BrokenPipeError:  # whoever read the answers has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as error:
            place = f": {error.filename}" if error.filename else ""
            print(f"error: {_cut(f'{error.strerror or error}{place}')}", file=sys.stderr)
            return 2
        except KeyboardInterrupt as stop:
            print(str(stop) or "stopped", file=sys.stderr)
            return 130
    return 0


def _train(task_class: type[Task], flags: jsonargparse.Namespace) -> Path | None:
    """Trains, evaluates and exports; returns the new version's folder, where this is the chief."""
    runs, versions = Path("runs") / task_class.name, Path(flags.export)
    out = Path(flags.out) if flags.out else folders.next_version(runs)
    run = training.Run(out)
    task = task_class(_config(task_class.Config, flags))
    is_finished = training.chief_says(task, run.export is not None)
    if not workers.place().is_chief:
        if not is_finished:
            training.assist(task, progress=sys.stderr.isatty())
        return None
    if is_finished:
        differing = run.differing(task.config, ignore="auto").items()
        if given := [both for name, both in differing if {name, "config"} & flags.given]:
            told = "%s was trained with other settings: %s. Another --out trains with these"
            log.warning(told, out, "; ".join(given))
        print(f"{out} is finished; its export is {run.export}")
        return run.export
    folders.require_writable(versions)
    model, metrics = training.train(task, out, progress=sys.stderr.isatty())
    return _finish(task, model, metrics, run, versions)


def _export(task_class: type[Task], flags: jsonargparse.Namespace) -> Path:
    """Exports a finished run again; returns the new version's folder."""
    run = training.Run(flags.run)
    task, model = training.restore(task_class, run)
    return _finish(task, model, run.read_metrics(), run, Path(flags.export))


def _finish(task, model, metrics, run, versions: Path) -> Path:
    try:
        version = export.write(task, model, metrics, versions)
    except UserError as error:
        again = f"The trained run is whole: `export --run {run.path}` exports it."
        raise UserError(f"{error}\n{again}") from error
    run.finish(version)
    test = ", ".join(f"{name} {value:.4f}" for name, value in metrics["test"].items())
    print(f"test: {test}\nrun: {run.path}\nexport: {version}")
    return version


def _evaluate(task_class: type[Task], flags: jsonargparse.Namespace) -> None:
    """Measures an export; the last line is one JSON object of metrics."""
    task, model = export.read(task_class, Path(flags.model), **_given(task_class, flags))
    try:
        examples = task.load_all() if flags.split == "all" else task.load()[flags.split]
        task.check({flags.split: examples})
    except UserError as error:
        if flags.data is None:
            raise UserError(f"{error}\n`--data` names other data than the model's own.") from error
        if flags.split != "all":
            raise UserError(f"{error}\n`--split all` measures every row.") from error
        raise
    evaluation = task.evaluate(model, examples)
    _print(evaluation.report)
    print(json.dumps(evaluation.metrics))


def _predict(task_class: type[Task], flags: jsonargparse.Namespace) -> None:
    """Answers inputs in order, as they are read."""
    options = _config(task_class.PredictOptions, flags)
    model = serving.load(flags.model)
    task = export.read_task(task_class, Path(flags.model))
    total = cut = 0
    quiet = not sys.stderr.isatty() or sys.stdout.isatty()
    with tqdm.tqdm(disable=quiet) as progress:
        for batch in _batches(task.expand(_inputs(flags)), flags.batch_size):
            for given, answer in zip(batch, task.answer(model, batch, options), strict=True):
                meant = task.interpret(given, answer)
                as_json = json.dumps(meant, ensure_ascii=False) if flags.json else None
                _print(as_json or task.present(given, meant, options))
            total += len(batch)
            cut += task.count_cut_inputs(batch, options)
            progress.update(len(batch))
    task.warn_of_cuts(cut, total, "inputs")


def _tune(task_class: type[Task], flags: jsonargparse.Namespace) -> None:
    """Searches the task's search space; fields given as flags stay as they are given."""
    if oracles.place() != "alone" and not flags.out:
        raise UserError("a search of several processes needs --out, a folder that all of them see")
    out = Path(flags.out) if flags.out else folders.next_version(Path("runs") / task_class.name)
    task = task_class(_config(task_class.Config, flags))
    search = tuning.tune(task, out, flags.tuner, flags.trials, flags.given)
    print(f"{search.table()}\nsearch: {out}")
    if search.best is not None:
        print(f"best: {search.best}")


def _answer(task_class: type[Task], version: Path) -> None:
    """Shows the answers to the task's examples, each under its input."""
    task = export.read_task(task_class, version)
    options = task_class.PredictOptions()
    answers = task.answer(serving.load(version), task.examples, options)
    for example, answer in zip(task.examples, answers, strict=True):
        meant = task.interpret(example, answer)
        shown = textwrap.indent(task.present(example, meant, options), "  ")
        _print(f"\n{example}\n{shown}")


def _print(text: str) -> None:
    try:
        print(text)
    except UnicodeEncodeError as error:
        raise UserError(
            f"standard output is {error.encoding}, which has no {text[error.start]!r}: "
            "set PYTHONIOENCODING=utf-8"
        ) from None


def _parsed(task_class: type[Task], argv: Sequence[str]) -> jsonargparse.Namespace:
    try:
        return _parser(task_class).parse_args(argv)
    except UserError:
        raise
    except ValueError as error:  # of YAML, at a number of thousands of digits
        raise UserError(f"a value that cannot be read: {error}") from None


def _parser(task_class: type[Task]) -> jsonargparse.ArgumentParser:
    jsonargparse.set_parsing_settings(docstring_parse_attribute_docstrings=True)
    name = task_class.name
    model: dict[str, Any] = {
        "required": True,
        "help": f"an exported version, such as saved_models/{name}/1",
    }
    versions: dict[str, Any] = {
        "default": f"saved_models/{name}",
        "help": "the folder of exported versions",
    }

    train = _Parser(description=f"Train, evaluate and export a {name} model.", allow_abbrev=False)
    train.add_argument("--config", action="config", help="a YAML file of these settings")
    train.add_argument(
        "--out", type=str, help=f"the run folder (default: the next one in runs/{name})"
    )
    train.add_argument("--export", type=str, **versions)
    train.add_class_arguments(task_class.Config, as_group=False)

    evaluate = _Parser(description="Measure an exported model.", allow_abbrev=False)
    evaluate.add_argument("--model", type=str, **model)
    evaluate.add_argument(
        "--split",
        type=Literal["train", "dev", "test", "all"],
        default="test",
        help="what to measure it on; `all` is every row of the data",
    )
    evaluate.add_class_arguments(task_class.Data, as_group=False)
    evaluate.set_defaults({field.name: None for field in dataclasses.fields(task_class.Data)})

    predict = _Parser(description="Answer inputs with an exported model.", allow_abbrev=False)
    predict.add_argument("inputs", nargs="*", help="inputs to answer")
    predict.add_argument("--model", type=str, **model)
    predict.add_argument("--input", type=str, help="a file of one input a line, or - for stdin")
    predict.add_argument("--json", action="store_true", help="print one JSON object a line")
    predict.add_argument(
        "--batch_size", type=PositiveInt, default=64, help="inputs answered at once"
    )
    options = task_class.PredictOptions
    switches = {field.name for field in dataclasses.fields(options) if field.type is bool}
    for name, meaning in meanings(options).items():
        if name in switches:
            predict.add_argument(f"--{name}", action="store_true", help=meaning)
    predict.add_class_arguments(options, as_group=False, skip=switches)

    tune = _Parser(
        description=f"Search for the configuration of a {name} model that does best on dev. A "
        "field given as a flag stays as given; of a --config file the search only starts.",
        allow_abbrev=False,
    )
    tune.add_argument("--config", action="config", help="a YAML file of these settings")
    tune.add_argument(
        "--tuner",
        type=Literal["hyperband", "bayesian", "random"],
        default="bayesian",
        help="how trials are chosen",
    )
    tune.add_argument("--trials", type=PositiveInt, default=10, help="the number of trials")
    tune.add_argument(
        "--out", type=str, help=f"the search's folder (default: the next one in runs/{name})"
    )
    tune.add_class_arguments(task_class.Config, as_group=False)

    again = _Parser(description="Export a finished run again.", allow_abbrev=False)
    again.add_argument("--run", type=str, required=True, help="the run folder")
    again.add_argument("--export", type=str, **versions)

    what = (task_class.__doc__ or "").partition("\n")[0]
    parser = _Parser(
        description=f"{what} Without a command: train on the bundled sample, evaluate, export, and "
        "answer a few examples.",
        allow_abbrev=False,
    )
    # Without one, `main` trains; so it is not called required.
    commands = parser.add_subcommands(required=False)
    commands.add_subcommand("train", train, help="train, evaluate and export")
    commands.add_subcommand("evaluate", evaluate, help="measure an exported model")
    commands.add_subcommand("predict", predict, help="answer inputs with an exported model")
    commands.add_subcommand("tune", tune, help="search for the best settings")
    commands.add_subcommand("export", again, help="export a finished run again")
    return parser


class _Parser(jsonargparse.ArgumentParser):
    """A parser whose errors are one plain line, and whose configuration files are looked at."""

    def parse_path(self, path: str | os.PathLike, **options: Any) -> jsonargparse.Namespace:
        """Parses a configuration file of plain values, read once; another is refused unparsed."""
        return self.parse_string(settings_text(Path(path)), os.path.basename(path), **options)

    def error(self, message: str, ex: Exception | None = None) -> typing.NoReturn:
        key = re.search(r'Parser key "([^"]+)"', message)
        if key:
            flag = key[1].rpartition(".")[2]
            takes = next(
                (
                    _kind(a._typehint)
                    for a in self._actions
                    if a.dest == flag and hasattr(a, "_typehint")
                ),
                None,
            )
            value = re.search(
                r"(?:Given value|Got value): (.*)|(?:base 10|to float): (.*)|: (\S+) does", message
            )
            if takes and value:
                message = f"--{flag} takes {takes}. Received: {next(filter(None, value.groups()))}"
        message = message.replace('"<unicode string>"', "the --config file")
        message = re.sub(r'^Parser key "(\w+)": ', r"--\1: ", message)
        message = re.sub(r"required: \w+\.(\w+)", r"required: --\1", message)
        raise UserError(" ".join(message.split()))


def _cut(message: str) -> str:
    """Keeps a message short that tells what was received: a value may have thousands of letters."""
    if len(message) <= _LONGEST_MESSAGE:
        return message
    return f"{message[:_LONGEST_MESSAGE]}… ({len(message):,} characters)"


def _kind(hint: Any) -> str:
    """Says in words what a type hint accepts."""
    if typing.get_origin(hint) is Literal:
        *others, last = map(str, typing.get_args(hint))
        return f"{', '.join(others)} or {last}" if others else last
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return " or ".join(map(_kind, typing.get_args(hint)))
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
    restricted = f"{hint.__doc__}".replace("int restricted to be", "a whole number")
    return words.get(hint) or restricted.replace("float restricted to be", "a number")


def _config(config_class: type, flags: jsonargparse.Namespace) -> Any:
    names = [field.name for field in dataclasses.fields(config_class)]
    return from_mapping(config_class, {name: flags[name] for name in names})


def _given(task_class: type[Task], flags: jsonargparse.Namespace) -> dict[str, Any]:
    """The fields that the command line names; new data drops the kept dev and test data."""
    names = [field.name for field in dataclasses.fields(task_class.Data)]
    given = {name: flags[name] for name in names if flags[name] is not None}
    return dict.fromkeys(task_class.named_with_data) | given if "data" in given else given


def _inputs(flags: jsonargparse.Namespace) -> Iterator[str]:
    """Reads the inputs: arguments, the lines of a file, or those of standard input."""
    if flags.inputs and flags.input:
        raise UserError("give inputs as arguments or in a file, not both")
    if flags.inputs:
        lines, source = enumerate(map(os.fsencode, flags.inputs), 1), "input"
    elif flags.input in (None, "-"):
        if flags.input is None and sys.stdin.isatty():
            raise UserError("nothing to answer: give inputs, --input FILE or --input -")
        source = "standard input"
        lines = rows.numbered_lines(sys.stdin.buffer, source)
    else:
        lines, source = rows.read_lines(flags.input), flags.input
    for number, raw in lines:
        text, reason = rows.decode(raw.removesuffix(b"\n").removesuffix(b"\r"))
        if reason is not None:
            raise UserError(f"{source}:{number}: {reason}")
        yield text


def _batches(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while batch := list(itertools.islice(items, size)):
        yield batch


class _ToStandardError(logging.Handler):
    """Prints the package's messages as plain lines."""

    def emit(self, record: logging.LogRecord) -> None:
        prefix = "warning: " if record.levelno >= logging.WARNING else ""
        print(prefix + record.getMessage(), file=sys.stderr)


@contextlib.contextmanager
def _plain_messages() -> Iterator[None]:
    handler = _ToStandardError()
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False  # absl, which TensorFlow brings, would print each message again
    try:
        yield
    finally:
        log.removeHandler(handler)
