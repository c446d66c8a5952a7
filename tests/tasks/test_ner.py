"""The tagging task: what it learns, encodes, reports and refuses, and that it learns to answer."""

import dataclasses
import gzip
import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import keras_tuner
import numpy as np
import pytest
import tensorflow as tf

from rnnapps import cli, serving, training
from rnnapps.data.datasets.sample_entities import grammar
from rnnapps.data.sources import from_lists
from rnnapps.data.tagged import as_fields
from rnnapps.data.tagging_schemes import convert
from rnnapps.errors import UserError
from rnnapps.learner import Learner
from rnnapps.tasks.config import commented_yaml, read_config
from rnnapps.tasks.ner import Ner, NerConfig
from tests import server_requests
from tests.conftest import bare_command, checking_here

SMALL = NerConfig(
    units=4,
    embedding_size=4,
    character_size=3,
    character_filters=3,
    casing_size=2,
    batch_size=16,
    buckets=1,
    epochs=2,
)


def splits(tokens, tags, scheme="auto"):
    return from_lists(as_fields(tokens, tags, scheme), key="tokens")


def sentences(count):
    generated = itertools.islice(grammar.splits()["train"], count)
    return zip(*((s.tokens, s.tags) for s in generated), strict=True)


@pytest.fixture(scope="module")
def adapted():
    task = Ner(SMALL)
    examples = splits(*sentences(200))
    task.adapt(examples["train"])
    return task, examples


@pytest.fixture(scope="module")
def conll(tmp_path_factory):
    """A file in CoNLL's columns and IOB1, with a column of other tags."""
    file = tmp_path_factory.mktemp("conll") / "train.conll.gz"
    with gzip.open(file, "wt", encoding="utf-8") as handle:
        handle.write("-DOCSTART- -X- O\n\n")
        for tokens, tags in zip(*sentences(250), strict=True):
            for token, tag in zip(tokens, convert(tags, "iob2", "iob1"), strict=True):
                handle.write(f"{token} {'CAP' if token[0].isupper() else 'low'} {tag}\n")
            handle.write("\n")
    return file


def test_state_brings_the_task_back(adapted, tmp_path):
    task, examples = adapted
    for name, content in task.state().items():
        (tmp_path / name).write_bytes(content)
    other = Ner(task.config)
    other.restore(tmp_path)
    assert other.state() == task.state()
    assert other.plan.padded_lengths == task.plan.padded_lengths
    for example in examples["test"]:
        inputs, tags = task.encode(example)
        same, same_tags = other.encode(example)
        assert tags.numpy().tolist() == same_tags.numpy().tolist()
        for name, values in inputs.items():
            assert values.numpy().tolist() == same[name].numpy().tolist()


def test_batches_hold_every_sentence_once(adapted):
    task, examples = adapted
    batches = list(task.batches(task.encoded(examples["train"], training=True), 0))
    rows = []
    for inputs, tags, _ in batches:
        there = inputs["words"].numpy() > 0  # [batch, time]
        assert inputs["words"].shape[1] in task.plan.padded_lengths
        assert (inputs["casing"].numpy() > 0).tolist() == there.tolist()
        assert (inputs["characters"].numpy()[..., 0] > 0).tolist() == there.tolist()
        rows += [tuple(row[:n]) for row, n in zip(tags.numpy(), there.sum(1), strict=True)]
    names = task.tags.labels.names
    expected = [
        tuple(
            names.index(tag) for tag in convert(e["tags"].numpy().decode().split(), "iob2", "iobes")
        )
        for e in examples["train"]
    ]
    assert sorted(rows) == sorted(expected)


def test_the_loss_is_the_likelihood_of_the_tags_and_padding_is_not_counted(adapted):
    task, examples = adapted
    model, loss = task.build(), task.objective().loss
    rng = np.random.default_rng(0)
    for weight in model.crf.weights:
        weight.assign(rng.normal(size=weight.shape))
    for inputs, tags, _ in task.batches(task.encoded(examples["dev"])):
        losses = loss(model, tags, model(inputs)).numpy()
        for row, length in enumerate((inputs["words"].numpy() > 0).sum(1)):
            alone = {name: values[row : row + 1, :length] for name, values in inputs.items()}
            likelihood = model.crf.log_likelihood(model(alone), tags[row : row + 1, :length])
            assert losses[row] == pytest.approx(-float(likelihood[0]), rel=1e-4)


def test_evaluate_counts_whole_entities(adapted):
    task, examples = adapted
    model = task.build()
    evaluation = task.evaluate(model, examples["test"])
    serve = task.signatures(model)["tag_tokens"]
    right = found = there = 0
    for example in examples["test"]:
        tokens = example["tokens"].numpy().decode().split("\n")
        predicted = [tag.decode() for tag in serve(tf.constant([tokens]))["tags"].numpy()[0]]
        ours, true = (entities_of(t) for t in (predicted, example["tags"].numpy().decode().split()))
        right, found, there = right + len(ours & true), found + len(ours), there + len(true)
    assert evaluation.metrics["precision"] == pytest.approx(right / max(found, 1))
    assert evaluation.metrics["recall"] == pytest.approx(right / there)
    counts, names = evaluation.outcomes
    assert counts.shape == (len(names),) * 2 and counts[:-1].sum() == there
    assert evaluation.errors.startswith("times")


def entities_of(tags):
    """Entities of valid IOB2 tags, counted in another way than the package does."""
    starts = [place for place, tag in enumerate(tags) if tag[0] == "B"]
    ends = []
    for start in starts:
        rest = itertools.takewhile(lambda tag: tag[0] == "I", tags[start + 1 :])
        ends.append(start + 1 + len(list(rest)))
    return {(s, e, tags[s][2:]) for s, e in zip(starts, ends, strict=True)}


@pytest.mark.parametrize(
    "options",
    [
        {"cell": "gru", "use_crf": False, "character_units": 2},
        {"character_filters": 0, "casing_size": 0, "constrain_training": True},
        {"precision": "mixed_bfloat16", "num_layers": 2, "recurrent_dropout": 0.2},
        {"precision": "mixed_float16", "lowercase": False, "zero_digits": False},
    ],
)
def test_every_kind_of_model_trains_and_serves(adapted, options):
    task = Ner(dataclasses.replace(SMALL, **options))
    task.adapt(adapted[1]["train"])
    learner = Learner(task, tf.distribute.get_strategy())
    batches = task.batches(task.encoded(adapted[1]["train"]), epoch=0).take(2)
    before = [weight.numpy() for weight in learner.model.trainable_weights]
    assert all(np.isfinite(float(loss)) for loss, _ in learner.steps(batches))
    after = [weight.numpy() for weight in learner.model.trainable_weights]
    # The first steps in float16 only look for a scale of the loss that does not overflow.
    if options.get("precision") != "mixed_float16":
        assert all((one != other).any() for one, other in zip(before, after, strict=True))
    model = task.build()
    answer = task.signatures(model)["serving_default"](tf.constant(["", "In Rome."]))
    assert answer["tokens"].numpy().tolist() == [[b""] * 3, [b"In", b"Rome", b"."]]
    assert (answer["confidences"].numpy() > 0).tolist() == [[False] * 3, [True] * 3]


def test_what_only_other_splits_have_is_told_and_counts_as_missed(tmp_path, caplog):
    given = splits([[f"w{i}", "Rome"] for i in range(60)], [["O", "B-LOC"]] * 60)
    given["test"] = given["test"].map(lambda e: e | {"tags": tf.constant("B-GOD\nB-LOC")})
    config = dataclasses.replace(SMALL, epochs=5, learning_rate=0.05)
    caplog.set_level("WARNING", "rnnapps")
    _, metrics = training.train(Ner(config), tmp_path / "run", given)
    told = [text for text in caplog.messages if "GOD" in text]
    assert len(told) == 1 and "in the test split) is not in the training data" in told[0]
    assert metrics["dev"]["f1"] == 1 and metrics["test"]["recall"] == 0.5
    assert "none" in (tmp_path / "run" / "errors_test.txt").read_text()


def test_data_that_cannot_be_learnt_is_refused(adapted, tmp_path):
    task, examples = adapted
    nothing = splits([[f"w{i}", "x"] for i in range(99)], [["O", "O"]] * 99)
    with pytest.raises(UserError, match="no entity in the train split. Received: O for every"):
        training.train(Ner(SMALL), tmp_path / "run", nothing)
    plain = splits([[f"w{i}", "x"] for i in range(99)], [["NN", "VB"]] * 99)
    with pytest.raises(UserError, match="same kind. Received: train entities, .* test plain tags"):
        training.train(Ner(SMALL), tmp_path / "run", examples | {"test": plain["test"]})
    bilou = splits(
        [[f"w{i}", "x"] for i in range(99)],
        [["U-PER", "O"], ["L-ORG", "B-ORG"]] * 49 + [["O", "U-PER"]],
    )
    with pytest.raises(UserError, match="look like BILOU, .* Received: B-ORG, L-ORG, U-PER"):
        training.train(Ner(SMALL), tmp_path / "run", bilou)
    # Tags of entities may be taken as they are.
    Ner(SMALL).check(splits([[f"w{i}", "x"] for i in range(99)], [["B-ORG", "I-ORG"]] * 99, "none"))
    with pytest.raises(UserError, match="Received: test plain tags, training entities"):
        task.check({"test": plain["test"]})
    assert not (tmp_path / "run").exists()


def test_vectors_are_where_the_words_begin(adapted, tmp_path, caplog):
    file = tmp_path / "vectors.txt"
    file.write_text("washington 1 2 3\nzanzibar 4 5 6\n", encoding="utf-8")
    caplog.set_level("INFO", "rnnapps")
    task = Ner(dataclasses.replace(SMALL, vectors=str(file), embedding_size="auto"))
    task.adapt(adapted[1]["train"])
    assert task.config.embedding_size == 3
    assert any("has vectors of 1 of the" in text for text in caplog.messages)
    table = task.build().encoder.embedding.embeddings.numpy()
    for word, vector in (("washington", [1, 2, 3]), ("zanzibar", [4, 5, 6])):
        assert table[task.vocabulary.tokens.index(word)].tolist() == vector
    frozen = Ner(dataclasses.replace(task.config, train_vectors=False))
    frozen.adapt(adapted[1]["train"])
    assert not frozen.build().encoder.embedding.trainable_weights
    wrong = Ner(dataclasses.replace(task.config, embedding_size=7))
    with pytest.raises(UserError, match="vectors of the wrong width: .* has 3 .* 7 are wanted"):
        wrong.adapt(adapted[1]["train"])


def test_rare_words_and_only_they_may_be_unknown(adapted):
    task, examples = adapted
    layer = task.build().unknown_words
    counts = {}
    for example in examples["train"]:
        for token in example["tokens"].numpy().decode().lower().split("\n"):
            word = "".join("0" if c.isdigit() else c for c in token)
            counts[word] = counts.get(word, 0) + 1
    for number, token in enumerate(task.vocabulary.tokens):
        if token in counts:
            assert (number >= layer.first_rare) == (counts[token] == 1)


def run(*argv):
    assert cli.main(Ner, argv=[str(part) for part in argv]) == 0


ARGUMENTS = [
    f"--{f}={getattr(SMALL, f)}" for f in ("units", "embedding_size", "batch_size", "epochs")
]


@pytest.fixture(scope="module")
def exported(conll, tmp_path_factory):
    """A run folder and the version exported from it, made by the command line."""
    out, versions = (tmp_path_factory.mktemp("ner") / name for name in ("run", "versions"))
    with checking_here():
        run("train", f"--data={conll}", f"--out={out}", f"--export={versions}", *ARGUMENTS)
    return out, versions / "1"


def test_a_conll_file_to_a_served_model(exported, capsys):
    out, version = exported
    assert (version / "assets" / "scheme.txt").read_text() == "iob1\n"
    metrics = json.loads((version / "metrics.json").read_text())
    assert set(metrics["test"]) >= {"f1", "precision", "recall", "strict_f1", "accuracy"}
    assert sum(metrics["examples"].values()) == 250
    capsys.readouterr()
    run("evaluate", f"--model={version}")
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == metrics["test"]
    text = "  Zoë\u00a0met Ann in S\u00e3o Paulo"
    run("predict", f"--model={version}", "--json", text, "")
    answer, empty = map(json.loads, capsys.readouterr().out.splitlines())
    for token, start, end in zip(answer["tokens"], answer["starts"], answer["ends"], strict=True):
        assert text.encode()[start:end].decode() == token
    for entity in answer["entities"]:
        assert text[entity["start"] : entity["end"]] == entity["text"]
    assert answer["tokens"][0] == "Zoë" and set("".join(answer["tags"])) <= set("IOB-PERLOCMISG")
    assert empty["tokens"] == empty["entities"] == []
    run("predict", f"--model={version}", text)
    assert "Zoë" in capsys.readouterr().out


def test_the_export_answers_anything_with_tensorflow_alone(exported, tmp_path):
    moved = shutil.copytree(exported[1], tmp_path / "elsewhere")
    script = f"""
import sys
sys.modules["keras"] = sys.modules["rnnapps"] = None
import numpy as np, tensorflow as tf
serve = tf.saved_model.load({str(moved)!r}).signatures
texts = ["", "  ", "?!", "\\u65e5\\u672c caf\\u00e9", b"\\xff bad \\x00 bytes", "In Rome."]
texts.append("word " * 5000)
together = serve["serving_default"](text=tf.constant(texts))
for row, text in enumerate(texts):
    alone = serve["serving_default"](text=tf.constant([text]))
    count = int(np.sum(alone["tokens"][0] != b""))
    raw = text if isinstance(text, bytes) else text.encode()
    for name in alone:
        one, other = alone[name][0, :count].numpy(), together[name][row, :count].numpy()
        close = np.allclose(one, other, atol=1e-5) if name == "confidences" else (one == other)
        assert np.all(close)
    places = (alone[name][0, :count].numpy() for name in ("tokens", "starts", "ends"))
    assert all(raw[start:end] == token for token, start, end in zip(*places))
assert together["tokens"].shape[1] <= 2048
assert serve["serving_default"](text=tf.constant([], tf.string))["tags"].shape[0] == 0
tagged = serve["tag_tokens"](tokens=tf.constant([["In", "Rome"], ["Rome", ""]]))
assert (tagged["tags"].numpy() != b"").tolist() == [[True, True], [True, False]]
assert serve["tag_tokens"](tokens=tf.zeros([0, 3], tf.string))["tags"].shape == (0, 3)
assert serve["tag_tokens"](tokens=tf.zeros([2, 0], tf.string))["tags"].shape == (2, 0)
print("answered")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.stdout == "answered\n", done.stderr
    served = serving.load(moved)
    (alone,) = served.predict(["In Rome."])
    assert alone["tokens"] == ["In", "Rome", "."]


def test_parts_of_speech_are_another_column(conll, tmp_path, capsys, checked_here):
    versions = tmp_path / "versions"
    run("train", f"--data={conll}", "--tag_column=1", f"--out={tmp_path / 'run'}",
        f"--export={versions}", "--learning_rate=0.02", *ARGUMENTS)  # fmt: skip
    metrics = json.loads((versions / "1" / "metrics.json").read_text())
    assert set(metrics["test"]) == {"accuracy"} and metrics["test"]["accuracy"] > 0.9
    capsys.readouterr()
    run("predict", f"--model={versions / '1'}", "In Rome")
    assert capsys.readouterr().out == "In/CAP Rome/CAP\n"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("Rome\n", "bad.conll:1: "),
        ("in O\nRome\n", "bad.conll:2: "),
        ("in O\nRome B-LOC\n\nRome X-LOC\n", "bad.conll:4: "),
        ("a B-X\n\na E-X\n", "bad.conll:"),
        ("a B-X\nb O\nc B-X\n\na I-X\n", "bad.conll:"),
        ("a O\n" * 20_000, "bad.conll:1: "),
        ("", "bad.conll is empty"),
    ],
)
def test_bad_files_are_one_plain_message(content, told, tmp_path, capsys):
    file = tmp_path / "bad.conll"
    file.write_text(content)
    argv = ["train", f"--data={file}", f"--out={tmp_path / 'run'}", f"--export={tmp_path / 'v'}"]
    assert cli.main(Ner, argv=argv) == 2
    message = capsys.readouterr().err
    assert told in message and len(message.splitlines()) <= 7 and "Traceback" not in message
    assert not (tmp_path / "run").exists()


def test_line_ends_of_windows_and_a_byte_order_mark_are_accepted(tmp_path, adapted):
    file = tmp_path / "windows.conll"
    lines = [f"{token} {tag}" for tokens, tags in zip(*sentences(60), strict=True)
             for token, tag in [*zip(tokens, tags, strict=True), ("", "")]]  # fmt: skip
    file.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    loaded = Ner(dataclasses.replace(SMALL, data=str(file))).load()
    assert sum(int(part.cardinality()) for part in loaded.values()) == 60
    assert all("\r" not in e["tags"].numpy().decode() for e in loaded["train"])


def test_the_bare_command_finds_the_documents_entities(tmp_path):
    """The default model on the bundled sample, as a newcomer first meets it."""
    out = bare_command("ner", 4, tmp_path)
    metrics = json.loads((tmp_path / "saved_models" / "ner" / "1" / "metrics.json").read_text())
    assert metrics["test"]["f1"] >= 0.9
    assert out.splitlines()[-1] == (
        "  [Luke PER] joined [Google ORG] as a data scientist in [Mountain View LOC]"
    )
    assert (tmp_path / "runs" / "ner" / "1" / "figures" / "confusion.png").exists()


def test_a_search_begins_with_the_configuration():
    config = NerConfig(units=77, batch_size=10)
    assert Ner(config).search_space(keras_tuner.HyperParameters()) == config


def test_the_commented_configuration_is_the_dataclass():
    """To renew it: print(commented_yaml(NerConfig)) into the file."""
    file = Path(__file__).parents[2] / "pipelines" / "ner.yaml"
    assert file.read_text(encoding="utf-8") == commented_yaml(NerConfig)
    assert read_config(NerConfig, file) == NerConfig()


def test_a_server_is_asked_as_the_page_says(exported, monkeypatch):
    server_requests.check(exported[1], "ner", monkeypatch)
