"""The command line: what it prints, and how it answers mistakes."""

import errno
import io
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from rnnapps import cli, export, training
from rnnapps.errors import UserError
from rnnapps.tasks.config import read_config
from rnnapps.tasks.ner import Ner
from rnnapps.tasks.sentiment import Sentiment, SentimentConfig
from tests.conftest import SMALL

SCRIPT = Path(__file__).parents[1] / "pipelines" / "sentiment.py"
QUICK = [*SMALL, "--cell=elman", "--buckets=1"]  # little to compile


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Runs a command in an empty folder: (status, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def run(*argv):
        status = cli.main(Sentiment, argv=[str(argument) for argument in argv])
        return status, *capsys.readouterr()

    return run


def write(name: str, content: str | bytes) -> str:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return name


def rows(count: int = 40) -> list[str]:
    return [
        f"a {'good' if i % 2 else 'bad'} film number {i},{'pos' if i % 2 else 'neg'}"
        for i in range(count)
    ]


def table(lines: list[str], header: str = "text,label") -> str:
    return "\n".join([header, *lines]) + "\n"


def test_settings_at_their_bounds_train(run, reviews):
    bounds = ["--learning_rate_decay=1", "--weight_average=0", "--clip_norm=0", "--dropout=0"]
    bounds += ["--patience=0", "--decay_patience=0", "--recurrent_dropout=0.99", "--buckets=1"]
    assert run("train", f"--data={reviews}", *QUICK, *bounds)[0] == 0
    status, _, err = run("train", f"--data={reviews}", "--learning_rate=1e38", *QUICK)
    assert status == 2 and "lower learning_rate" in err


def test_a_kept_configuration_trains_the_same_model(run, trained, checked_here):
    config = f"--config={trained[0]}/config.yaml"
    status, out, _ = run("train", config, "--out=again", "--export=versions")
    assert status == 0
    one, two = (json.loads(Path(f, "metrics.json").read_text()) for f in (trained[0], "again"))
    assert one["test"] == two["test"]


def test_a_run_folder_holds_what_is_documented(trained):
    run, _ = trained
    names = {"config.yaml", "history.csv", "checkpoints", "tensorboard", "figures", "metrics.json"}
    assert names <= {child.name for child in run.iterdir()}
    assert {"curves.png", "confusion.png"} == {child.name for child in (run / "figures").iterdir()}
    metrics = json.loads((run / "metrics.json").read_text())
    assert set(metrics) == {"train", "dev", "test", "seconds", "examples", "parameters"}
    assert set(metrics["test"]) == {"accuracy", "macro_f1", "log_loss", "calibration_error"}
    assert sum(metrics["examples"].values()) == 400
    history = (run / "history.csv").read_text().splitlines()
    assert len(history) == 3 and "val_accuracy" in history[0]


def test_a_version_holds_what_is_documented(trained):
    run, version = trained
    assert (version / "metrics.json").read_text() == (run / "metrics.json").read_text()
    assert (version / "config.yaml").read_text() == (run / "config.yaml").read_text()
    card = (version / "MODEL_CARD.md").read_text()
    assert "by nobody; CC0." in card and "train --config" in card
    assert '["serving_default"](text=tf.constant([...]))' in card
    assert "`text`: string [?]" in card and "`vector`: float32 [?, 16]" in card
    assert [child.name for child in version.parent.iterdir()] == ["1"]


def test_a_mistake_of_thousands_of_letters_is_told_in_a_few(run):
    status, out, err = run("train", "--cell", "g" + 9_000 * "N")
    assert status == 2 and not out and err.startswith("error: --cell takes elman, lstm or gru")
    assert len(err) < 1_100 and err.endswith("characters)\n")


def test_a_finished_run_is_not_trained_again(run, trained):
    before = (trained[0] / "metrics.json").stat().st_mtime_ns
    status, out, err = run("train", f"--out={trained[0]}")
    assert status == 0 and "is finished" in out and not err
    status, out, err = run("train", f"--out={trained[0]}", "--units=9", "--batch_size=auto")
    assert status == 0 and "is finished" in out
    told = f"{trained[0]} was trained with other settings: units 8 then, 9 now."
    assert err == f"warning: {told} Another --out trains with these\n"
    assert run("train", f"--config={trained[0]}/config.yaml", f"--out={trained[0]}")[2] == ""
    assert (trained[0] / "metrics.json").stat().st_mtime_ns == before


def test_a_stopped_run_is_taken_up_and_exported(run, reviews, monkeypatch, checked_here):
    command = ["train", f"--data={reviews}", "--out=run", "--export=versions", "--cell=elman"]
    step, calls = training.Learner.step, itertools.count(1)

    def stopped(self, batch):
        if next(calls) == 12:
            raise KeyboardInterrupt  # as Ctrl-C does
        return step(self, batch)

    monkeypatch.setattr(training.Learner, "step", stopped)
    status, out, err = run(*command, *SMALL)
    assert (status, out) == (130, "") and err.splitlines()[-1] == (
        "stopped; `train --config run/config.yaml --out run` goes on from the last checkpoint"
    )
    status, out, err = run(*command, *SMALL, "--units=9", "--seed=5")
    assert (status, out) == (2, "") and len(err.splitlines()) == 2
    assert "seed 0 then, 5 now; units 8 then, 9 now" in err
    status, out, err = run("train", "--config=run/config.yaml", "--out=run", "--export=versions")
    assert status == 0 and "going on from the checkpoint after 1 epochs" in err
    assert "export: versions/1" in out and "training traced 1 graph and compiled" in err
    metrics = Path("run/metrics.json").stat().st_mtime_ns
    shutil.rmtree("versions")
    taken = next(calls)
    assert run(*command, *SMALL)[0] == 0 and Path("versions/1").is_dir()
    assert Path("run/metrics.json").stat().st_mtime_ns == metrics and next(calls) == taken + 1


def test_a_folder_of_other_things_is_not_touched(run, reviews):
    Path("run").mkdir()
    Path("run/notes.txt").write_text("mine")
    status, _, err = run("train", f"--data={reviews}", "--out=run", *SMALL)
    assert status == 2 and "run is not empty" in err
    assert [child.name for child in Path("run").iterdir()] == ["notes.txt"]


def test_evaluate_ends_with_the_metrics_of_the_run(run, trained, reviews):
    expected = json.loads((trained[0] / "metrics.json").read_text())
    for split in ("dev", "test"):
        status, out, _ = run("evaluate", f"--model={trained[1]}", f"--split={split}")
        assert status == 0
        measured = json.loads(out.splitlines()[-1])
        assert measured == pytest.approx(expected[split], abs=1e-6)
    status, out, _ = run("evaluate", f"--model={trained[1]}", "--split=all", f"--data={reviews}")
    counts = [int(line.split()[4]) for line in out.splitlines()[1:3]]
    assert status == 0 and sum(counts) == 400


def test_evaluate_reads_other_data_with_the_kept_columns(run, trained):
    data = write("few.csv", table(["a lovely film,positive", "a dull film,negative"]))
    status, out, _ = run("evaluate", f"--model={trained[1]}", f"--data={data}", "--split=all")
    assert status == 0 and json.loads(out.splitlines()[-1])["log_loss"] > 0
    status, _, err = run("evaluate", f"--model={trained[1]}", f"--data={data}")
    assert status == 2 and "`--split all` measures every row" in err
    write("few.csv", table(["a lovely film,positive", "a dull film,negative"], "review,label"))
    command = ["evaluate", f"--model={trained[1]}", f"--data={data}", "--split=all"]
    status, _, err = run(*command)
    assert status == 2 and "'text'" in err and "review, label" in err
    assert run(*command, "--text_column=review")[0] == 0
    write("few.csv", table(["a lovely film,splendid"]))
    status, _, err = run(*command)
    assert status == 2 and "'splendid'" in err and "negative, positive" in err


def test_predict_keeps_the_order_of_its_inputs(run, trained, monkeypatch):
    texts = [f"a {'lovely' if i % 3 else 'dull'} film " * (i % 5) for i in range(150)]
    file = write("texts.txt", "".join(f"{text}\n" for text in texts))
    model = f"--model={trained[1]}"
    _, given, _ = run("predict", model, "--json", *texts)
    _, read, err = run("predict", model, "--json", f"--input={file}", "--batch_size=7")
    assert not err  # no progress bar in a pipe
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path(file).read_bytes())))
    _, piped, _ = run("predict", model, "--json", "--input=-")
    marked = io.BytesIO(b"\xef\xbb\xbf" + Path(file).read_bytes())  # as Windows writes files
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(marked))
    assert run("predict", model, "--json", "--input=-")[1] == piped
    answers = [[json.loads(line) for line in out.splitlines()] for out in (given, read, piped)]
    for answer in answers:
        assert len(answer) == 150 and set(answer[0]) == {"label", "probabilities"}
        for one, other in zip(answer, answers[0], strict=True):
            assert one["label"] == other["label"]
            assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-6)


def test_predict_for_a_reader(run, trained):
    status, out, _ = run("predict", f"--model={trained[1]}", "A lovely film!", "")
    assert status == 0
    for line in out.splitlines():
        label, probability = line.split()
        assert label in ("negative", "positive") and 0.5 <= float(probability) <= 1


def test_export_again_makes_the_next_version(run, trained, checked_here):
    shutil.copytree(trained[1], "versions/1")
    status, out, _ = run("export", f"--run={trained[0]}", "--export=versions")
    assert status == 0 and "export: versions/2" in out
    (trained[0] / "exported").write_text(f"{trained[1]}\n")
    assert run("train", f"--out={trained[0]}")[1].strip().endswith(f"its export is {trained[1]}")
    one, two = (
        tf.saved_model.load(version).signatures["serving_default"](text=tf.constant(["a film"]))
        for version in (trained[1], "versions/2")
    )
    assert (one["probabilities"].numpy() == two["probabilities"].numpy()).all()


def test_long_texts_are_cut_and_bad_rows_skipped_and_both_are_counted(run, trained, checked_here):
    long = "good " * 1_000_000
    texts = [f"{long}0", *(f"{'good ' * 50}{i}" for i in (1, 2))]
    bad = ["no label here", "nor here"]
    data = write("long.csv", table([*rows(40), *bad, *(f"{text},pos" for text in texts)]))
    command = ["train", f"--data={data}", "--max_length=50", "--on_bad_row=skip", *QUICK]
    status, _, err = run(*command)
    assert status == 0 and "warning: Skipped 2 bad rows" in err
    cut = [line for line in err.splitlines() if "longer than the model reads" in line]
    assert sum(int(line.split()[1]) for line in cut) == 3 and "max_length 50" in cut[0]
    file = write("long.txt", f"short\n{long}\n")
    status, out, err = run("predict", f"--model={trained[1]}", f"--input={file}")
    assert status == 0 and len(out.splitlines()) == 2
    assert err.startswith("warning: 1 of 2 inputs are longer than the model reads")


MISTAKES = {
    "missing file": (lambda: "none.csv", "no such file or folder: none.csv"),
    "empty file": (lambda: write("bad.csv", ""), "bad.csv"),
    "header only": (lambda: write("bad.csv", "text,label\n"), "bad.csv"),
    "missing column": (lambda: write("bad.csv", table(rows(), "review,label")), "review, label"),
    "a single class": (
        lambda: write("bad.csv", table([f"film number {i},pos" for i in range(40)])),
        "at least two classes",
    ),
    "not UTF-8": (
        lambda: write("bad.csv", table(rows()).encode().replace(b"number 7", b"n\xfcmber 7")),
        "bad.csv:9",
    ),
    "too few columns": (
        lambda: write("bad.csv", table([*rows(), "no label here"])),
        "bad.csv:42",
    ),
    "NUL byte": (
        lambda: write("bad.csv", table(rows()).encode().replace(b"number 7", b"n\0mber 7")),
        "bad.csv:9",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_bad_data_is_named_and_leaves_nothing_behind(run, mistake):
    data, told = MISTAKES[mistake][0], MISTAKES[mistake][1]
    status, out, err = run("train", f"--data={data()}", *SMALL)
    assert (status, out) == (2, "")
    assert err.startswith("error: ") and told in err and len(err.splitlines()) <= 2, err
    assert not Path("runs").exists() and not list(Path("saved_models").glob("*/*"))


def test_texts_of_which_no_token_is_known_are_refused(run, reviews):
    status, _, err = run("train", f"--data={reviews}", "--min_count=1000", *SMALL)
    assert status == 2 and err.startswith("error: no token of the training texts is known.")
    assert not Path("runs").exists()


def test_a_label_that_only_test_has_is_refused(run):
    data = write("train.csv", table(rows()))
    test = write("test.csv", table(["a fair film,neutral"]))
    status, _, err = run("train", f"--data={data}", f"--test_data={test}", *SMALL)
    assert status == 2 and len(err.splitlines()) == 1
    assert "'neutral' (rows: 1) in the test split" in err and "neg, pos" in err


@pytest.mark.parametrize("flag", ["--out", "--export"])
def test_an_output_folder_that_cannot_be_written(run, reviews, flag):
    write("file", "not a folder")
    status, _, err = run("train", f"--data={reviews}", f"{flag}=file/folder", *SMALL)
    assert status == 2 and err.splitlines()[-1].startswith("error: ") and "file/folder" in err
    assert Path("file").read_text() == "not a folder"


FULL = (
    ("write_config", OSError(errno.ENOSPC, "No space left on device")),
    (
        "_save",
        tf.errors.ResourceExhaustedError(None, None, "{{node}} /a/b.tmp; No space left on device"),
    ),
)


@pytest.mark.parametrize(("function", "error"), FULL)
def test_disk_full_while_exporting(run, trained, monkeypatch, function, error):
    def full(*args, **kwargs):
        raise error

    monkeypatch.setattr(export, function, full)
    status, _, err = run("export", f"--run={trained[0]}", "--export=versions")
    assert status == 2 and "No space left on device" in err and len(err.splitlines()) == 2
    assert f"export --run {trained[0]}" in err
    assert list(Path("versions").iterdir()) == []
    assert (trained[0] / "metrics.json").exists()


def cut_in_half(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    os.truncate(file, 0)


@pytest.mark.parametrize(
    ("name", "damage", "told"),
    [
        ("metrics.json", cut_in_half, "metrics.json is damaged: JSONDecodeError: "),
        ("state/vocabulary.txt", cut_in_half, "best.weights.h5 is damaged: ValueError: "),
        ("state/labels.txt", Path.unlink, "state is damaged: FileNotFoundError: "),
        ("state/length_counts.txt", empty, "state is damaged: ValueError: "),
        ("checkpoints/best.weights.h5", cut_in_half, "best.weights.h5 is damaged: OSError: "),
    ],
)
def test_a_run_that_is_damaged_is_not_exported(run, trained, name, damage, told):
    shutil.copytree(trained[0], "run")
    damage(Path("run", name))
    status, out, err = run("export", "--run=run", "--export=versions")
    assert (status, out) == (2, "") and err.startswith("error: run/") and told in err
    assert len(err.splitlines()) == 1 and not Path("versions").exists()


def test_a_checkpoint_that_is_damaged_is_named(run, trained, reviews):
    shutil.copytree(trained[0], "run")
    for name in ("metrics.json", "exported"):
        Path("run", name).unlink()
    cut_in_half(Path("run/checkpoints/last.npz"))
    status, out, err = run("train", "--config=run/config.yaml", "--out=run")
    assert (status, out) == (2, "")
    told = "error: run/checkpoints/last.npz is damaged: BadZipFile: File is not a zip file"
    assert err.splitlines()[-1] == told


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("saved_model.pb", empty),
        ("variables/variables.data-00000-of-00001", cut_in_half),
        ("variables/variables.index", Path.unlink),
        ("assets/labels.txt", empty),
    ],
)
def test_an_export_that_is_damaged_does_not_answer(run, trained, name, damage):
    shutil.copytree(trained[1], "model")
    damage(Path("model", name))
    for command in (["predict", "--model=model", "hi"], ["evaluate", "--model=model"]):
        status, out, err = run(*command)
        assert (status, out) == (2, "") and err.startswith("error: model is damaged: ")
        assert len(err.splitlines()) == 1 and len(err) < 300


def test_an_export_with_settings_of_another_does_not_answer(run, trained):
    shutil.copytree(trained[1], "model")
    config = Path("model/config.yaml")
    config.write_text(config.read_text().replace("units: 8", "units: 9"))
    status, _, err = run("evaluate", "--model=model")
    assert status == 2 and err.startswith("error: model is damaged: ValueError: ")


def test_an_export_that_answers_differently_is_not_put_into_place(run, trained, monkeypatch):
    monkeypatch.setattr(export, "_RELOAD", export._RELOAD.replace("(value)", "(value[::-1])"))
    with pytest.raises(RuntimeError, match="differs from the model in memory"):
        run("export", f"--run={trained[0]}", "--export=versions")
    assert list(Path("versions").iterdir()) == []


def test_a_configuration_that_cannot_be_read(run):
    config = write("run.yaml", "units: [1\nfoo")
    status, _, err = run("train", f"--config={config}")
    assert status == 2 and err.startswith("error: run.yaml:2:4: ")
    write("run.yaml", "unit: 3\n")
    status, _, err = run("train", f"--config={config}")
    assert status == 2 and "'unit'" in err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"units: 3\ndata: \xff", ":2: not UTF-8 text"),
        (b"units: \x1b3", ": unacceptable character #x001b"),
        (b"units: [3, 4]", ":1:8: a setting has one plain value. Received: a sequence"),
        (b"a: &a [x]\nunits: [*a, *a]", ":1:4: a setting has one plain value. Received: a"),
        (b"# units: 3\n", " holds no settings: each is a name, a colon and a value"),
        (b"- units", " holds no settings: each is a name, a colon and a value"),
        (b"[" * 5_000, ": values within values"),
        (b"#" * 2**16 + b"\n", ": settings of more than 65,536 bytes"),
    ],
    ids=["bytes", "control", "list", "aliases", "nothing", "no mapping", "depth", "size"],
)
def test_a_configuration_that_holds_more_than_settings(run, content, told):
    config = write("run.yaml", content)
    for status, out, err in (run("train", f"--config={config}"), run("tune", "--config", config)):
        assert (status, out) == (2, "") and err.startswith(f"error: run.yaml{told}")
        assert len(err.splitlines()) == 1
    os.makedirs("run", exist_ok=True)
    write("run/config.yaml", content)
    with pytest.raises(UserError, match=f"run/config.yaml{re.escape(told)}"):
        read_config(SentimentConfig, Path("run/config.yaml"))


@pytest.mark.parametrize("line", ["units: 2000-99-99", "seed: " + "9" * 5_000, "1: 2\nunit: 3"])
def test_a_kept_configuration_that_is_damaged(tmp_path, line):
    (tmp_path / "config.yaml").write_text(f"{line}\n")
    with pytest.raises(UserError, match="config.yaml"):
        read_config(SentimentConfig, tmp_path / "config.yaml")


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["predict", "--model=none", "hi"], "none is not an exported model"),
        (["evaluate", "--model=none"], "none is not an exported model"),
        (["export", "--run=none"], "none is not the folder of a trained run"),
        (
            ["train", "--cell=transformer"],
            "elman, lstm or gru. Received: transformer",
        ),
        (["train", "--units=-3"], "--units takes a whole number >0. Received: -3"),
        (["train", "--epochs=many"], "--epochs takes a whole number >0. Received: 'many'"),
        (["train", "--dropout=1.5"], "--dropout takes a number"),
        (["train", "--unit=3"], "unrecognized arguments: --unit=3"),
        (["train", "--config=none.yaml"], "error: --config: File does not exist: "),
        (["train", "--splits=1/2"], "80/10/10"),
        (["train", f"--seed={'9' * 5_000}"], "Exceeds the limit (4300 digits)"),
        (["train", "--weight_average=1"], "--weight_average takes a number"),
        (["train", "--seed=-1"], "--seed takes a whole number"),
        (["train", "--precision=float16"], "float32, mixed_bfloat16 or mixed_float16"),
        (["train", "--devices=gpu:97"], "devices: there is no gpu:97 here. GPUs: "),
        (["train", "--devices=tpu"], "devices takes auto, cpu or gpu:0,1. Received: tpu"),
        (["train", "--checkpoint_steps=-1"], "--checkpoint_steps takes a whole number"),
        (["predict", "--model=none", "--batch_size=0"], "--batch_size takes a whole number >0"),
        (["predict", "hi"], "required: --model"),
        (["train", "--data=tfds:no_such_data_set"], "no_such_data_set"),
        (["tune", "--tuner=grid"], "hyperband, bayesian or random. Received: grid"),
        (["tune", "--trials=0"], "--trials takes a whole number >0. Received: 0"),
        (["fly"], "'fly'"),
    ],
)
def test_mistakes_in_flags(run, argv, told):
    status, out, err = run(*argv)
    assert (status, out) == (2, "")
    assert err.startswith("error: ") and told in err and len(err.splitlines()) == 1


def test_a_folder_of_versions_is_not_a_version(run, trained):
    status, _, err = run("predict", f"--model={trained[1].parent}", "hi")
    assert status == 2 and f"did you mean {trained[1]}?" in err
    status, _, err = run("evaluate", f"--model={trained[1].parent / '9'}")
    assert status == 2 and f"there is no such folder; did you mean {trained[1]}?" in err


def test_a_version_of_another_task_is_named(trained):
    with pytest.raises(UserError, match="a model of the task sentiment, not of ner$"):
        export.read_task(Ner, trained[1])


def test_a_line_of_input_that_is_not_text(run, trained):
    file = write("texts.txt", b"fine\nnot \xff fine\n")
    status, _, err = run("predict", f"--model={trained[1]}", f"--input={file}")
    assert status == 2 and err == "error: texts.txt:2: not UTF-8 text (byte 0xff)\n"


def test_an_answer_that_standard_output_cannot_show(run, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "latin-1"))
    cli._print("café")
    with pytest.raises(UserError, match="standard output is latin-1, which has no '茶': set"):
        cli._print("café 茶")


def test_a_mistake_in_a_process_of_its_own(tmp_path):
    """Nothing but the message, also with TensorFlow's own log level untouched."""
    command = [sys.executable, SCRIPT, "train", "--data", "none.csv"]
    quiet = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=quiet)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == "error: no such file or folder: none.csv\n"
