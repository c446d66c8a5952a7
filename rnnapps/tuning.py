"""Hyperparameter search for any task, with Keras Tuner over the task's search space.

Keras Tuner's oracles choose the trials; each trial is learnt in a process of its own. What a trial
came to is a file, `trials/<n>.json`, and nothing else is kept of the search's course: an oracle
chooses the same again when it is told the same, so that a search that was cut off is repeated from
its files to where it stood, and goes on from there.
"""

import contextlib
import dataclasses
import fcntl
import functools
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, Literal

import keras_tuner
from keras_tuner.engine import hyperparameters

from rnnapps import oracles, processes
from rnnapps.errors import UserError
from rnnapps.figures.search import search as draw
from rnnapps.folders import replacing, require_writable
from rnnapps.tasks.config import write_config
from rnnapps.tasks.task import Splits, Task

log = logging.getLogger("rnnapps")

_BEST = "best.yaml"
_SECONDS_TO_END = 10
_SECONDS_TO_BEGIN = 600


@dataclasses.dataclass(frozen=True)
class Trial:
    """One configuration, and what it came to.

    Args:
        number: its place in the order of the search, from 1.
        config: the configuration that was trained.
        values: Keras Tuner's hyperparameters by name.
        score: the best dev metric of its epochs, or None where it failed.
        epochs: the epochs that were trained.
        seconds: the time it took, with the start of its process.
        memory: the largest resident memory of its process, in bytes; None where it was killed.
        error: why it failed, or None.
    """

    number: int
    config: Any
    values: dict[str, Any]
    score: float | None = None
    epochs: int | None = None
    seconds: float = 0.0
    memory: int | None = None
    error: str | None = None


@dataclasses.dataclass(frozen=True)
class Search:
    """A finished search.

    Args:
        out: its folder.
        metric: the name of the dev metric.
        config: the configuration that it started from, which the first trial trained.
        trials: the trials, the best first and those that failed last.
        best: the file of the best configuration; None where the chief has it.
    """

    out: Path
    metric: str
    config: Any
    trials: list[Trial]
    best: Path | None

    def table(self) -> str:
        """Writes one line a trial: its dev metric, cost, and settings unlike the first trial's."""
        width = max(9, len(self.metric))
        lines = [f"trial  {self.metric:>{width}}  epochs  seconds  memory  settings"]
        for trial in self.trials:
            score = "failed" if trial.error else f"{trial.score:.4f}"
            memory = f"{trial.memory / 2**20:.0f}M" if trial.memory else "-"
            settings = " ".join(_differences(self.config, trial.config)) or "as given"
            reason = f"  ({trial.error})" if trial.error else ""
            lines.append(
                f"{trial.number:>5}  {score:>{width}}  {trial.epochs or '-':>6}  "
                f"{trial.seconds:>7.0f}  {memory:>6}  {settings}{reason}"
            )
        return "\n".join(lines)


def tune(
    task: Task,
    out: str | Path,
    tuner: Literal["hyperband", "bayesian", "random"] = "bayesian",
    trials: int = 10,
    fixed: Collection[str] = (),
    splits: Splits | None = None,
) -> Search:
    """Searches a task's search space for the configuration with the best dev metric.

    The first trial is the task's configuration as it is, so the best is never worse on dev. The
    test split is not used. A search in a folder that holds the same search, finished or not, goes
    on where that one stopped, and ends as it would have without the stop.

    Several processes share a search, in a folder that all of them see, where Keras Tuner's
    environment variables name a chief and workers: the chief chooses the trials, the workers train
    them, and what is chosen depends on which of them ends first.

    - `random` draws each trial independently.
    - `bayesian` (Snoek et al., 2012) draws five, and then what a Gaussian process holds likely to
      be better than those.
    - `hyperband` (Li et al., 2018) trains many for a few epochs and the best of them again for
      more. A trial is one training, so `trials` counts a configuration as often as it is trained;
      successive halving starts with the largest bracket that this number completes.

    Args:
        task: a task with its configuration; `config.seed` seeds the search too.
        out: the search's folder. It gets `best.yaml`, a configuration for `train --config`;
            `trials/`, with each trial's outcome, messages and run folder, of which only the best
            keeps its checkpoints; and `search.png`, the dev metric over each hyperparameter.
        tuner: how the trials are chosen.
        trials: the number of trials. `random` and `bayesian` can be given more later.
        fixed: the names of configuration fields that are not searched.
        splits: raw examples by split; by default those that the configuration names. They are
            written to a temporary folder for the trials to read.

    Returns:
        The trials, the best first; of a worker, its own.

    Raises:
        UserError: what is wrong with the data, the configuration or the folder; the folder holds
            another search; or every trial failed.

    Example:
    >>> from rnnapps.tasks.sentiment import Sentiment, SentimentConfig
    >>> task = Sentiment(SentimentConfig(data="reviews.csv"))
    >>> search = tune(task, "runs/search", trials=3)
    >>> len(search.trials), search.best
    (3, PosixPath('runs/search/best.yaml'))
    """
    out = Path(out)
    require_writable(out)
    file = out / "search.json"
    if not file.exists() and any(out.glob("[!.]*")):
        raise UserError(f"{out} is not empty: give another folder, or remove it")
    with contextlib.ExitStack() as stack:
        folder = None
        if splits is not None:
            task.config = dataclasses.replace(
                task.config, data="in-memory", dev_data=None, test_data=None
            )
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            for name, examples in splits.items():
                examples.save(f"{folder}/{name}")
        space = _space(task, fixed)
        plan = {
            "task": processes.name_of(type(task)),
            "tuner": tuner,
            "config": dataclasses.asdict(task.config),
            "space": space.get_config()["space"],
        }
        if tuner == "hyperband":
            plan["trials"] = trials
        _require_same(file, plan)
        found = _survey(task, folder)
        plan |= {name: found[name] for name in ("metric", "mode", "data")}
        hold = ()
        if oracles.place() == "worker":
            _wait_for(file)
            _require_same(file, plan)
        else:
            out.mkdir(parents=True, exist_ok=True)
            hold = (stack.enter_context(_alone(out)),)
            _require_same(file, plan)
            _write_json(plan, file)
        learn = functools.partial(
            processes.ask, "learn", hold=hold, task_class=plan["task"], splits=folder
        )
        done = _search(task, out, plan, trials, space, learn)
    if oracles.place() == "worker":
        return Search(out, found["metric"], task.config, done, None)
    if len(done) < trials:
        log.info("the search space holds no more than these %d trials", len(done))
    if done[0].error:
        raise UserError(
            f"every trial failed, the first one because: {done[0].error}\n"
            f"Their messages are in {out / 'trials'}."
        )
    _draw(done, space, found["metric"], out / "search.png")
    return Search(out, found["metric"], task.config, done, out / _BEST)


def _space(task: Task, fixed: Collection[str]) -> keras_tuner.HyperParameters:
    """Finds a task's search space; its values are the defaults."""
    whole = keras_tuner.HyperParameters()
    if task.search_space(whole) != task.config:
        raise ValueError(
            "a search space must start from the task's configuration: that is what its defaults "
            f"must give. Received: {task.search_space(keras_tuner.HyperParameters())}"
        )
    space = keras_tuner.HyperParameters()
    for hp in whole.space:
        if hp.name in fixed:
            value = getattr(task.config, hp.name)
            hp = hyperparameters.Fixed(hp.name, value, conditions=hp.conditions)
        space.merge([hp])
    if not _searched(space):
        raise UserError(f"nothing is left to search. Received: fixed={sorted(fixed)}")
    return space


def _searched(space: keras_tuner.HyperParameters) -> list[str]:
    names = [hp.name for hp in space.space if not isinstance(hp, hyperparameters.Fixed)]
    return list(dict.fromkeys(names))


def _survey(task: Task, splits: str | None) -> dict[str, Any]:
    """Has the data checked before anything is written."""
    with tempfile.TemporaryFile() as messages:
        found = processes.ask(
            "survey",
            messages,
            task_class=processes.name_of(type(task)),
            config=dataclasses.asdict(task.config),
            splits=splits,
        )
        for warning in found.get("warnings", ()):
            log.warning("%s", warning)
        if found.get("mistake"):
            raise UserError(found["error"])
        if "error" in found:
            messages.seek(0)
            printed = messages.read().decode(errors="replace")
            raise RuntimeError(f"the data could not be read: {found['error']}\n{printed}")
    return found


def _search(
    task: Task,
    out: Path,
    plan: dict[str, Any],
    trials: int,
    space: keras_tuner.HyperParameters,
    learn: Callable[..., dict[str, Any]],
) -> list[Trial]:
    """Asks an oracle for trials and tells it what they came to, which may be on file already."""
    folder = out / "trials"
    folder.mkdir(exist_ok=True)
    # Of several processes the last trial may be on file before one in front of it.
    trials = max([trials, *(int(file.stem) for file in folder.glob("*.json"))])
    metric, mode = plan["metric"], plan["mode"]
    oracle = oracles.choose(
        plan["tuner"],
        trials,
        space,
        keras_tuner.Objective(metric, mode),
        task.config.seed,
        task.config.epochs,
    )
    place = oracles.place()
    if place == "worker":
        oracle = oracles.of_chief(oracle)
    if place == "chief":
        _have_searched(oracle, folder)
        done = [_on_file(task, space, file) for file in folder.glob("*.json")]
        done.sort(key=lambda trial: _rank(trial, mode))
        _keep_best(done, task.config, out)
        return done
    done = []
    while (asked := oracles.ask(oracle)) is not None:
        number = oracles.number(asked)
        file = folder / f"{number}.json"
        if is_new := not file.exists():
            values = dict(asked.hyperparameters.values)
            config = _config(task, asked.hyperparameters, values)
            trial = _run(Trial(number, config, values), folder, learn)
            record = dataclasses.asdict(trial)
            del record["number"], record["config"]
            _write_json(record, file)
        trial = _on_file(task, space, file)
        asked.hyperparameters.values = dict(trial.values)
        oracles.tell(oracle, asked, trial.score, trial.error)
        done.append(trial)
        done.sort(key=lambda trial: _rank(trial, mode))
        if is_new and place == "alone":
            _keep_best(done, task.config, out)
    if place == "alone":
        _keep_best(done, task.config, out)
    return done


def _have_searched(oracle: keras_tuner.Oracle, folder: Path) -> None:
    """Tells an oracle what is on file, and lets workers train the other trials."""
    there = [int(file.stem) for file in folder.glob("*.json")]
    begun = []
    for number in range(1, max(there, default=0) + 1):
        asked = oracles.ask(oracle)
        if asked is None:
            break
        if number not in there:
            begun.append(oracles.put_off(oracle, asked))
            continue
        kept = json.loads((folder / f"{number}.json").read_text(encoding="utf-8"))
        asked.hyperparameters.values = dict(kept["values"])
        oracles.tell(oracle, asked, kept["score"], kept["error"])
    oracles.serve(oracle, begun)


def _on_file(task: Task, space: keras_tuner.HyperParameters, file: Path) -> Trial:
    kept = json.loads(file.read_text(encoding="utf-8"))
    chosen = space.copy()
    chosen.values = dict(kept["values"])
    return Trial(int(file.stem), _config(task, chosen, kept["values"]), **kept)


def _config(task: Task, chosen: keras_tuner.HyperParameters, values: dict[str, Any]) -> Any:
    """The configuration of a trial; hyperband says how many epochs it has."""
    config = task.search_space(chosen)
    return dataclasses.replace(config, epochs=values.get("tuner/epochs", config.epochs))


def _run(trial: Trial, folder: Path, learn: Callable[..., dict[str, Any]]) -> Trial:
    """Trains a trial in a process of its own."""
    started = time.monotonic()
    run = folder / str(trial.number)  # of a trial that was cut off, it is taken up
    with run.with_suffix(".log").open("wb") as messages:
        found = learn(messages, config=dataclasses.asdict(trial.config), run=str(run))
    outcome: dict[str, Any] = {
        key: found.get(key) for key in ("score", "epochs", "memory", "error")
    }
    trial = dataclasses.replace(trial, seconds=round(time.monotonic() - started, 1), **outcome)
    if trial.error:
        log.warning("trial %d failed: %s", trial.number, trial.error)
    else:
        log.info("trial %d: %.4f on dev, %.0f s", trial.number, trial.score, trial.seconds)
    return trial


def _rank(trial: Trial, mode: str) -> tuple[bool, float, int]:
    score = trial.score or 0.0
    return trial.error is not None, -score if mode == "max" else score, trial.number


def _keep_best(done: list[Trial], start: Any, out: Path) -> None:
    """Writes the best configuration, and removes the other trials' checkpoints."""
    best, *others = done
    for trial in others:
        shutil.rmtree(out / "trials" / str(trial.number) / "checkpoints", ignore_errors=True)
    if best.error is None:
        # A trial of few epochs shows how its configuration does; more can only be as good or
        # better, since the best epoch on dev is kept.
        with replacing(out / _BEST) as file:
            write_config(dataclasses.replace(best.config, epochs=start.epochs), file)


def _draw(done: list[Trial], space: keras_tuner.HyperParameters, metric: str, file: Path) -> None:
    trials = sorted(done, key=lambda trial: trial.number)
    names = _searched(space)
    if len({trial.config.epochs for trial in trials}) > 1:
        names = ["epochs", *names]
    values = {name: [getattr(trial.config, name) for trial in trials] for name in names}
    scores = [trial.score for trial in trials]
    with replacing(file) as beside:
        draw(values, scores, metric, best=done[0].number - 1).savefig(beside, dpi=120)


def _require_same(file: Path, plan: dict[str, Any]) -> None:
    """Raises UserError where a folder holds a search that differs from the plan, as far as that."""
    if not file.exists():
        return
    there, here = json.loads(file.read_text(encoding="utf-8")), json.loads(json.dumps(plan))
    config, others = there.pop("config"), here.pop("config")
    different = [name for name in others if config.get(name) != others[name]]
    told = [f"{name} is {config.get(name)} there and {others[name]} here" for name in different]
    space = [entry["config"]["name"] for entry in _unlike(there.pop("space"), here.pop("space"))]
    told += [
        f"{name} is searched otherwise" for name in dict.fromkeys(space) if name not in different
    ]
    if here.pop("data", there["data"]) != there["data"]:
        told.append("the examples are others")
    told += [
        f"{key} is {there.get(key)} there and {value} here"
        for key, value in here.items()
        if there.get(key) != value
    ]
    if told:
        raise UserError(
            f"{file.parent} holds another search: {'; '.join(told)}\n"
            f"Give another folder, or the settings in {file}."
        )


def _unlike(some: list, others: list) -> list:
    return [entry for entry in some if entry not in others] + [
        entry for entry in others if entry not in some
    ]


def _wait_for(file: Path) -> None:
    """Waits until the chief has begun the search."""
    deadline = time.monotonic() + _SECONDS_TO_BEGIN
    while not file.exists():
        if time.monotonic() > deadline:
            raise UserError(
                f"the chief has not begun the search within {_SECONDS_TO_BEGIN // 60} minutes: "
                f"there is no {file}"
            )
        time.sleep(1)


@contextlib.contextmanager
def _alone(out: Path) -> Iterator[int]:
    """Keeps others out of a folder; yields a descriptor that does so for as long as it is open."""
    descriptor = os.open(out, os.O_RDONLY)
    try:
        # A search that was killed may have a trial that is still about to end.
        deadline = time.monotonic() + _SECONDS_TO_END
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise UserError(f"another search is running in {out}") from None
                time.sleep(0.1)
        yield descriptor
    finally:
        os.close(descriptor)


def _differences(start: Any, config: Any) -> list[str]:
    pairs = zip(vars(start).items(), vars(config).values(), strict=True)
    return [f"{name}={value}" for (name, old), value in pairs if value != old]


def _write_json(content: dict[str, Any], file: Path) -> None:
    with replacing(file) as beside:
        beside.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
