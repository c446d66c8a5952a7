"""The search: which trials it chooses, what it keeps, and that it ends the same when cut off.

Where a trial's outcome is all that counts, a closed form stands in for training.
"""

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import keras_tuner
import numpy as np
import pytest
import yaml

from rnnapps import cli, oracles, processes, training, tuning
from rnnapps.data.sources import from_lists
from rnnapps.errors import UserError
from rnnapps.tasks.config import from_mapping, read_config
from rnnapps.tasks.sentiment import Sentiment, SentimentConfig
from tests.test_processes import children, running, wait_for

TUNERS = ("random", "bayesian", "hyperband")


# What the closed form does not depend on; fewer dimensions make a Gaussian process faster.
IDLE = {"bidirectional", "embedding_size", "embedding_dropout", "recurrent_dropout"}
IDLE |= {"learning_rate", "batch_size", "clip_norm"}


def loss(config: dict) -> float:
    """A dev metric with one best configuration, which more epochs come nearer to."""
    return (
        0.3
        + 0.05 * (config["cell"] != "gru")
        + 0.04 * abs(config["num_layers"] - 2)
        + 0.03 * (config["pooling"] != "attention")
        + 0.02 * abs(np.log2(config["units"] / 256))
        + 0.1 * config["dropout"]
        + 0.5 / config["epochs"]
    )


@pytest.fixture
def trained(monkeypatch):
    """Lets a closed form answer instead of processes; lists what was asked."""
    asked = []

    def ask(question, messages, task_class, config, hold=(), run=None, splits=None):
        if question == "survey":
            return {"metric": "log_loss", "mode": "min", "data": config["data"]}
        asked.append(config)
        (Path(run) / "checkpoints").mkdir(parents=True, exist_ok=True)
        outcome = trained.outcome(config, len(asked))
        return {"score": None, "epochs": None, "error": None, "memory": 2**30} | outcome

    def trained():
        return asked

    trained.outcome = lambda config, number: {"score": loss(config), "epochs": config["epochs"]}
    monkeypatch.setattr(processes, "ask", ask)
    monkeypatch.setattr(tuning, "_draw", lambda *arguments: None)
    monkeypatch.setattr(oracles, "CANDIDATES", 100)
    return trained


def search(out, tuner="random", trials=10, fixed=(), **config):
    task = Sentiment(SentimentConfig(**config))
    return tuning.tune(task, out, tuner, trials, IDLE.union(fixed))


def in_order(found) -> list:
    return sorted(found.trials, key=lambda trial: trial.number)


@pytest.mark.parametrize("tuner", TUNERS)
def test_the_best_is_found_and_is_never_worse_than_the_start(trained, tmp_path, tuner):
    found = search(tmp_path, tuner, 12)
    first = in_order(found)[0]
    assert first.config == found.config == SentimentConfig()
    assert [trial.number for trial in in_order(found)] == list(range(1, 13))
    scores = [trial.score for trial in found.trials]
    assert scores == sorted(scores) and scores[0] < first.score
    assert all(trial.score == loss(dataclasses.asdict(trial.config)) for trial in found.trials)
    best = read_config(SentimentConfig, tmp_path / "best.yaml")
    assert best == dataclasses.replace(found.trials[0].config, epochs=20)


@pytest.mark.parametrize("tuner", TUNERS)
def test_a_seed_decides_the_trials(trained, tmp_path, tuner):
    one, same, other = (
        [trial.values for trial in in_order(search(tmp_path / name, tuner, 10, seed=seed))]
        for name, seed in (("one", 0), ("same", 0), ("other", 1))
    )
    assert one == same and one[0] == other[0] and one[1:] != other[1:]


@pytest.mark.parametrize("tuner", TUNERS)
def test_a_search_cut_off_in_any_trial_ends_as_it_would_have(trained, tmp_path, tuner):
    whole = search(tmp_path / "whole", tuner, 9)
    succeed = trained.outcome
    for cut in (1, 2, 6, 8, 9):
        out = tmp_path / str(cut)
        trained().clear()

        def stop(config, number, cut=cut):
            if number == cut:
                raise KeyboardInterrupt
            return succeed(config, number)

        trained.outcome = stop
        with pytest.raises(KeyboardInterrupt):
            search(out, tuner, 9)
        trained.outcome = succeed
        trained().clear()
        found = search(out, tuner, 9)
        assert len(trained()) == 10 - cut
        for one, other in zip(whole.trials, found.trials, strict=True):
            assert dataclasses.replace(one, seconds=0) == dataclasses.replace(other, seconds=0)
        assert (out / "best.yaml").read_text() == (tmp_path / "whole" / "best.yaml").read_text()


def test_a_finished_search_trains_nothing_and_can_be_given_more_trials(trained, tmp_path):
    for tuner in ("random", "bayesian"):
        whole = search(tmp_path / tuner / "whole", tuner, 9)
        assert search(tmp_path / tuner / "out", tuner, 6).trials != whole.trials
        trained().clear()
        search(tmp_path / tuner / "out", tuner, 6)
        assert not trained()
        found = search(tmp_path / tuner / "out", tuner, 9)
        assert len(trained()) == 3
        assert [t.values for t in found.trials] == [t.values for t in whole.trials]
        assert len(search(tmp_path / tuner / "out", tuner, 2).trials) == 9


def test_a_chief_with_a_gap_on_file_gives_the_missing_trial_away(trained, tmp_path, monkeypatch):
    """Of several processes the third trial may end before the second, and the chief be stopped."""
    search(tmp_path, trials=3)
    (tmp_path / "trials" / "2.json").unlink()
    given = []
    monkeypatch.setattr(oracles, "place", lambda: "chief")
    monkeypatch.setattr(oracles, "serve", lambda oracle, begun: given.extend(begun))
    assert [trial.number for trial in in_order(search(tmp_path, trials=1))] == [1, 3]
    assert [int(trial_id) + 1 for trial_id in given] == [2]


def test_hyperband_promotes_the_best(trained, tmp_path):
    trials = in_order(search(tmp_path, "hyperband", 10))
    assert [trial.config.epochs for trial in trials] == [20] + 6 * [7] + 3 * [20]
    few = sorted(trials[1:7], key=lambda trial: trial.score)
    for promoted, trial in zip(trials[7:9], few, strict=False):
        assert promoted.config == dataclasses.replace(trial.config, epochs=20)
    assert trials[9].config not in [trial.config for trial in trials[:9]]


@pytest.mark.parametrize(("trials", "epochs"), [(1, 20), (2, 20), (5, 3), (40, 9), (30, 1)])
def test_hyperband_runs_as_many_trials_as_it_is_given(trained, tmp_path, trials, epochs):
    found = search(tmp_path, "hyperband", trials, epochs=epochs)
    assert len(found.trials) == trials
    assert max(trial.config.epochs for trial in found.trials) == epochs


def test_bayesian_search_tries_nothing_twice_and_beats_chance(trained, tmp_path):
    best = {}
    for tuner in ("random", "bayesian"):
        found = [search(tmp_path / f"{tuner}{seed}", tuner, 20, seed=seed) for seed in range(3)]
        best[tuner] = np.mean([one.trials[0].score for one in found])
        for one in found:
            values = [tuple(trial.values.values()) for trial in one.trials]
            assert len(set(values)) == 20
    assert best["bayesian"] < best["random"]


def test_a_failed_trial_is_kept_with_its_reason_and_the_search_goes_on(trained, tmp_path):
    succeed = trained.outcome
    trained.outcome = lambda config, number: (
        {"error": "ResourceExhaustedError: OOM", "memory": None}
        if 2 <= number <= 6
        else succeed(config, number)
    )
    for tuner in TUNERS:
        trained().clear()
        found = search(tmp_path / tuner, tuner, 10)
        failed = found.trials[5:]
        assert len(found.trials) == 10 and [t.number for t in failed] == [2, 3, 4, 5, 6]
        assert {t.error for t in failed} == {"ResourceExhaustedError: OOM"}
        assert json.loads((tmp_path / tuner / "trials" / "2.json").read_text())["error"]
        assert "failed" in found.table().splitlines()[-1]
        trained().clear()
        assert search(tmp_path / tuner, tuner, 10).trials == found.trials and not trained()


def test_no_trial_that_succeeds(trained, tmp_path):
    trained.outcome = lambda config, number: {"error": f"out of memory {number}"}
    with pytest.raises(UserError, match="every trial failed, .*: out of memory 1\n"):
        search(tmp_path, trials=4)
    assert not (tmp_path / "best.yaml").exists() and len(trained()) == 4


def test_only_the_best_checkpoint_is_kept(trained, tmp_path):
    succeed, there = trained.outcome, []

    def outcome(config, number):
        there.append(len(list(tmp_path.glob("trials/*/checkpoints"))))
        return succeed(config, number)

    trained.outcome = outcome
    found = search(tmp_path)
    assert max(there) == 2  # the best so far, and the one that is being trained
    (kept,) = tmp_path.glob("trials/*/checkpoints")
    assert kept.parent.name == str(found.trials[0].number)


CHANGES = {
    "a field": (dict(max_length=7), "max_length is auto there and 7 here"),
    "the seed": (dict(seed=3), "seed is 0 there and 3 here"),
    "the data": (dict(data="other.csv"), "data is sample there and other.csv here"),
    "the tuner": (dict(tuner="bayesian"), "tuner is random there and bayesian here"),
    "fewer choices": (dict(fixed=["units"]), "units is searched otherwise"),
    "other choices": (dict(units=100), "units is 128 there and 100 here"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_search_in_the_same_folder_is_refused(trained, tmp_path, change):
    search(tmp_path, trials=2)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    changed, told = CHANGES[change]
    with pytest.raises(UserError, match=told) as refused:
        search(tmp_path, trials=2, **changed)
    assert len(str(refused.value).splitlines()) == 2
    assert before == {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}


def test_other_examples_under_the_same_name_are_refused(trained, tmp_path, monkeypatch):
    search(tmp_path, trials=2)
    ask = processes.ask
    monkeypatch.setattr(processes, "ask", lambda *a, **k: ask(*a, **k) | {"data": "changed"})
    with pytest.raises(UserError, match="the examples are others"):
        search(tmp_path, trials=2)


def test_folders_that_a_search_cannot_use(trained, tmp_path, monkeypatch):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(UserError, match="is not empty"):
        search(tmp_path)
    monkeypatch.setattr(tuning, "_SECONDS_TO_END", 0)
    (tmp_path / "out").mkdir()
    with tuning._alone(tmp_path / "out"):
        with pytest.raises(UserError, match="another search is running in"):
            search(tmp_path / "out")
    assert len(search(tmp_path / "out", trials=2).trials) == 2


def test_a_space_with_few_points_or_none(trained, tmp_path):
    names = [hp.name for hp in space(Sentiment(SentimentConfig())).space]
    found = search(tmp_path / "two", fixed=[name for name in names if name != "cell"])
    assert [trial.config.cell for trial in found.trials] == ["gru", "lstm"]
    with pytest.raises(UserError, match="nothing is left to search"):
        search(tmp_path / "none", fixed=names)


def test_a_fixed_field_stays_as_it_is(trained, tmp_path):
    found = search(tmp_path, fixed=["units", "batch_size", "data"], units=77, batch_size=9)
    assert {(trial.config.units, trial.config.batch_size) for trial in found.trials} == {(77, 9)}
    assert len({trial.config.cell for trial in found.trials}) == 2


def space(task) -> keras_tuner.HyperParameters:
    hp = keras_tuner.HyperParameters()
    task.search_space(hp)
    return hp


def test_the_search_space_starts_from_any_configuration():
    odd = SentimentConfig(
        cell="elman", units=100, num_layers=3, pooling="last", batch_size=7, clip_norm=0, dropout=0
    )
    for config in (SentimentConfig(), odd):
        task = Sentiment(config)
        hp = space(task)
        assert task.search_space(keras_tuner.HyperParameters()) == config
        assert {hp.name for hp in hp.space} >= {"cell", "units", "batch_size", "learning_rate"}
        for seed in range(30):
            drawn = keras_tuner.HyperParameters.from_config(hp.get_config())
            drawn.values = {p.name: p.random_sample(31 * seed + i) for i, p in enumerate(hp.space)}
            values = dataclasses.asdict(task.search_space(drawn))
            assert values != dataclasses.asdict(config)
            assert from_mapping(SentimentConfig, values).batch_size in (
                32,
                "auto",
                config.batch_size,
            )


def test_a_search_space_that_starts_elsewhere_is_a_mistake_in_the_task(trained, tmp_path):
    class Elsewhere(Sentiment):
        def search_space(self, hp):
            return dataclasses.replace(self.config, units=hp.Choice("units", [1, 2]))

    with pytest.raises(ValueError, match="start from the task's configuration"):
        tuning.tune(Elsewhere(SentimentConfig()), tmp_path)


def test_a_killed_search_goes_on_to_a_configuration_that_train_accepts(reviews, tmp_path, capsys):
    """The command line as a user meets it: killed in the second trial, started again."""
    out, script = tmp_path / "search", Path(__file__).parents[1] / "pipelines" / "sentiment.py"
    start = tmp_path / "start.yaml"
    start.write_text("learning_rate: 5.0\n")  # whatever else the second trial draws is better
    argv = ["tune", f"--config={start}", f"--data={reviews}", f"--out={out}", "--tuner=random"]
    argv += ["--trials=2", "--units=8", "--num_layers=1", "--recurrent_dropout=0", "--epochs=2"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, script, *argv], env=environment) as killed:
        wait_for((out / "trials" / "2" / "config.yaml").exists)
        (child,) = children(killed.pid)
        killed.kill()
    assert killed.returncode == -signal.SIGKILL and not (out / "trials" / "2.json").exists()
    wait_for(lambda: not running(child))
    first = (out / "trials" / "1.json").read_bytes()

    assert cli.main(Sentiment, argv=argv) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == ["trial", "log_loss", "epochs", "seconds", "memory", "settings"]
    assert [line.split()[0] for line in table[1:3]] == ["2", "1"]
    assert (out / "trials" / "1.json").read_bytes() == first
    assert (out / "search.png").stat().st_size > 10_000
    one, two = (json.loads((out / "trials" / f"{n}.json").read_text()) for n in (1, 2))
    assert two["memory"] < 1.2 * one["memory"]

    accepted = ["train", f"--config={out / 'best.yaml'}", "--print_config"]
    assert cli.main(Sentiment, argv=accepted) == 0
    values = yaml.safe_load(capsys.readouterr().out)
    config = from_mapping(
        SentimentConfig, {k: v for k, v in values.items() if k not in ("out", "export")}
    )
    learnt = training.learn(Sentiment(config), tmp_path / "run")
    assert min(learnt.history["val_log_loss"]) == pytest.approx(two["score"], rel=1e-6)


def test_splits_in_memory_are_handed_to_the_processes(tmp_path, monkeypatch):
    def ask(question, messages, task_class, config, splits, **arguments):
        task = Sentiment(from_mapping(SentimentConfig, config))
        if question == "survey":
            return processes.survey(task, splits)
        parts = {name: len(list(part)) for name, part in processes._splits(task, splits).items()}
        return {"score": parts["train"], "epochs": parts["dev"]}

    def splits(number):
        texts = [f"a {'good' if i % 2 else 'bad'} film number {i}" for i in range(number)]
        labels = [i % 2 for i in range(number)]
        return from_lists({"text": texts, "label": labels}, key="text")

    monkeypatch.setattr(processes, "ask", ask)
    task = Sentiment(SentimentConfig())
    found = tuning.tune(task, tmp_path, trials=1, splits=splits(60))
    sizes = {name: int(part.cardinality()) for name, part in splits(60).items()}
    assert (found.trials[0].score, found.trials[0].epochs) == (sizes["train"], sizes["dev"])
    assert found.config.data == "in-memory"
    with pytest.raises(UserError, match="the examples are others"):
        tuning.tune(task, tmp_path, trials=1, splits=splits(90))


def test_bad_data_is_named_before_anything_is_written(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("bad.csv").write_text("text,label\nfine,pos\nno label\n")
    assert cli.main(Sentiment, argv=["tune", "--data=bad.csv", "--out=search"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "bad.csv:3" in err and len(err.splitlines()) <= 2
    assert not Path("search").exists()
