"""Language models: honest scores, streams that go on, and text that is written."""

import dataclasses
import gzip
import itertools
import json
import math
import os
from pathlib import Path

import keras_tuner
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds

from rnnapps import cli, serving, training
from rnnapps.data.sources import from_lists
from rnnapps.errors import UserError
from rnnapps.learner import Learner
from rnnapps.models import mixture_log_probabilities, mixture_weights
from rnnapps.tasks.config import commented_yaml, read_config
from rnnapps.tasks.language_model import LanguageModel, LanguageModelConfig
from tests import server_requests
from tests.conftest import bare_command

SMALL = LanguageModelConfig(
    context="lines", units=6, embedding_size=4, batch_size=8, buckets=1, epochs=2, window=10
)
STREAM = dataclasses.replace(SMALL, context="stream", batch_size=4)
LINES = [f"{a} {b}s {c}" for a, b, c in itertools.product("abcd", "xyz", ["now", "then", "é"])]


def lines(texts=LINES):
    return from_lists({"text": texts}, key="text", splits="60/20/20", contiguous=True)


def text(repeats=2):
    given = [f"{line}\n" for line in LINES * repeats]
    return from_lists({"text": given}, key="text", splits="60/20/20", contiguous=True)


def adapted(config, splits):
    task = LanguageModel(config)
    task.adapt(splits["train"])
    return task


def spread(model):
    """Weights far from each other, so that a difference cannot hide in small numbers."""
    rng = np.random.default_rng(2)
    for weight in model.weights:
        if "seed" not in weight.path:
            weight.assign(rng.normal(size=weight.shape))
    return model


@pytest.mark.parametrize("level", ["char", "word"])
def test_lines_are_read_behind_their_beginning_and_predicted_with_their_end(level):
    task = adapted(dataclasses.replace(SMALL, level=level), lines())
    read, targets = task.encode({"text": tf.constant("a xs now")})
    tokens = [t.decode() for t in task.vocabulary.tokens_of(targets).numpy()]
    expected = [*"a xs now"] if level == "char" else ["a", "xs", "now"]
    assert tokens == [*expected, "<end>"]
    assert read.numpy().tolist() == [2, *targets.numpy()[:-1]]
    read, targets = task.encode({"text": tf.constant("")})
    assert read.numpy().tolist() == targets.numpy().tolist() == [2]


@pytest.mark.parametrize("level", ["char", "word"])
def test_perplexity_is_the_chain_rule_over_the_split_whatever_the_batches(level):
    splits = lines()
    task = adapted(dataclasses.replace(SMALL, level=level), splits)
    model = spread(task.build())
    nats = tokens = characters = 0
    for example in splits["dev"]:
        read, targets = task.encode(example)
        scores, _ = model.log_probabilities(read[None], targets[None])
        nats -= float(tf.reduce_sum(scores))
        tokens += targets.shape[0]
        characters += len(example["text"].numpy().decode()) + 1
    for batch_size in (8, 3):
        other = adapted(dataclasses.replace(SMALL, level=level, batch_size=batch_size), splits)
        measured = other.evaluate(model, splits["dev"]).metrics
        assert measured["perplexity"] == pytest.approx(math.exp(nats / tokens), rel=1e-5)
        assert measured["bits_per_character"] == pytest.approx(
            nats / characters / math.log(2), rel=1e-5
        )


@pytest.mark.parametrize("level", ["char", "word"])
def test_a_stream_is_scored_as_one_text(level):
    splits = text()
    task = adapted(dataclasses.replace(STREAM, level=level), splits)
    model = spread(task.build())
    whole = b"".join(example["text"].numpy() for example in splits["dev"]).decode()
    ids = task.vocabulary.ids(task._tokens(tf.constant([whole])))[0]
    read = tf.concat([[2], ids[:-1]], 0)
    scores, _ = model.log_probabilities(read[None], ids[None])
    nats = task.token_nats(model, splits["dev"])
    np.testing.assert_allclose(nats, -scores[0], atol=2e-5)
    measured = task.evaluate(model, splits["dev"]).metrics
    assert measured["bits_per_character"] == pytest.approx(
        nats.sum() / len(whole) / math.log(2), rel=1e-6
    )


@pytest.mark.parametrize("window", [10, 100])
def test_pieces_and_windows_do_not_change_the_score(window, monkeypatch):
    from rnnapps.tasks import language_model

    splits = text(repeats=6)
    task = adapted(STREAM, splits)
    model = spread(task.build())
    exact = task.token_nats(model, splits["train"])
    for name, value in (("_PIECE", 300), ("_WARM_UP", 200), ("_READ_AT_ONCE", window)):
        monkeypatch.setattr(language_model, name, value)
    monkeypatch.setattr(language_model, "_PIECES_AT_ONCE", 3)
    in_pieces = task.token_nats(model, splits["train"])
    assert exact.size > 1000
    np.testing.assert_allclose(in_pieces, exact, atol=1e-4)


def test_a_streams_batches_go_on_and_begin_anew_with_the_epoch():
    splits = text()
    task = adapted(dataclasses.replace(STREAM, window_overlap=3), splits)
    learner = Learner(task, tf.distribute.get_strategy())
    encoded = task.encoded(splits["train"], training=True)
    batches = task.batches(encoded, epoch=0)
    first = next(iter(batches))
    assert first[0]["tokens"].shape == (4, 13) and first[0]["reset"].numpy().all()
    assert first[2].numpy()[:, :3].sum() == 0 and first[2].numpy()[:, 3:].all()
    losses = [float(values[0]) for values in learner.steps(batches)]
    assert len(losses) == int(batches.cardinality()) and np.isfinite(losses).all()
    carried = [state.numpy() for state in learner._trained.states]
    assert all(np.abs(state).max() > 0 for state in carried)
    other = Learner(task, tf.distribute.get_strategy())
    other.restore(learner.state())
    one, same = (next(each.steps(batches.skip(1))) for each in (learner, other))
    assert (one.numpy() == same.numpy()).all()


@pytest.mark.parametrize(
    "options",
    [
        {"cell": "gru", "tied": True, "optimizer": "sgd", "learning_rate": 1.0},
        {"cell": "elman", "num_layers": 2, "dropout": 0.2, "embedding_dropout": 0.2},
        {"weight_dropout": 0.3, "word_dropout": 0.2, "activation_regularization": 2.0},
        {"temporal_regularization": 1.0, "precision": "mixed_bfloat16", "level": "word"},
        {"precision": "mixed_float16"},
    ],
)
@pytest.mark.parametrize("base", [SMALL, STREAM], ids=["lines", "stream"])
def test_every_kind_of_model_takes_steps(base, options):
    splits = lines() if base is SMALL else text()
    task = adapted(dataclasses.replace(base, **options), splits)
    learner = Learner(task, tf.distribute.get_strategy())
    batches = task.batches(task.encoded(splits["train"], training=True), epoch=0).take(2)
    assert np.isfinite([float(values[0]) for values in learner.steps(batches)]).all()
    assert all(
        weight.dtype == "float32" for weight in learner.model.weights if "seed" not in weight.path
    )


def test_hello_is_learnt_to_zero_errors_and_spelt(tmp_path):
    splits = {name: lines(["hello"] * 40)["train"] for name in ("train", "dev", "test")}
    config = dataclasses.replace(SMALL, units=16, learning_rate=0.05, epochs=15, weight_average=0.5)
    task = LanguageModel(config)
    model, metrics = training.train(task, tmp_path / "run", splits)
    assert metrics["test"]["perplexity"] < 1.05
    generate = task.signatures(model)["generate"]
    greedy = {"length": 10, "temperature": 0.0, "top_k": 0, "top_p": 1.0}
    options = {name: tf.constant(value) for name, value in greedy.items()}
    written = generate(
        prompt=tf.constant(["h", "", "hel"]), seed=tf.zeros([3], tf.int64), **options
    )
    assert written["text"].numpy().tolist() == [b"hello"] * 3


def test_dynamic_evaluation_learns_behind_what_it_scores_and_leaves_the_model_as_it_was(
    monkeypatch,
):
    from rnnapps.tasks import language_model

    splits = text(repeats=6)
    task = adapted(dataclasses.replace(STREAM, num_layers=2), splits)
    model = task.build()
    before = model.get_weights()
    fixed = task.token_nats(model, splits["test"])
    # The engine has met batches of several rows before it meets the one that is learnt from.
    monkeypatch.setattr(language_model, "_PIECE", 100)
    task.token_nats(model, splits["train"])
    task.config = dataclasses.replace(task.config, dynamic_rate=0.5)
    learning = task.token_nats(model, splits["test"])
    window = task.config.window
    np.testing.assert_allclose(learning[:window], fixed[:window], atol=1e-5)
    assert (learning[window : 2 * window] != fixed[window : 2 * window]).all()
    assert learning.mean() < fixed.mean() - 0.05
    assert all((a == b).all() for a, b in zip(before, model.get_weights(), strict=True))
    with pytest.raises(UserError, match="from a stream only. Received: dynamic_rate=0.5"):
        dataclasses.replace(SMALL, dynamic_rate=0.5)


def test_three_models_are_mixed_token_by_token():
    splits = lines()
    task = adapted(SMALL, splits)
    scores = {"dev": [], "test": []}
    for seed in range(3):
        model = spread(task.build())
        noise = np.random.default_rng(seed).normal(size=len(task.vocabulary))
        model.decoder.output_layer.bias.assign(noise)
        for split, of_models in scores.items():
            of_models.append(-task.token_nats(model, splits[split]))
    weights = mixture_weights(scores["dev"])
    assert sum(weights) == pytest.approx(1)
    mixed = -mixture_log_probabilities(scores["dev"], weights).mean()
    assert mixed < min(-of_model.mean() for of_model in scores["dev"])
    expected = np.log(sum(w * np.exp(s) for w, s in zip(weights, scores["test"], strict=True)))
    found = mixture_log_probabilities(scores["test"], weights)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.skipif("RNNAPPS_DATA" not in os.environ, reason="RNNAPPS_DATA names no real data")
def test_tiny_shakespeare_of_tfds(tmp_path, monkeypatch):
    """The real builder, whose download is in its cache already."""
    from tensorflow_datasets.core.download import resource

    builder = tfds.builder("tiny_shakespeare", data_dir=tmp_path)
    ((url, info),) = builder.url_infos.items()
    cached = tmp_path / "downloads" / resource.get_dl_fname(url, info.checksum)
    cached.parent.mkdir()
    given = Path(os.environ["RNNAPPS_DATA"]) / "lm" / "tinyshakespeare.txt.gz"
    cached.write_bytes(gzip.decompress(given.read_bytes()))
    resource.write_info_file(url, cached, "tiny_shakespeare", "input.txt", info)
    monkeypatch.setattr(tfds, "builder", lambda name: builder)
    task = LanguageModel(dataclasses.replace(STREAM, data="tfds:tiny_shakespeare"))
    splits = task.load()
    texts = [b"".join(row["text"].numpy() for row in splits[split]) for split in splits]
    assert b"".join(texts) == cached.read_bytes()
    assert [len(text) for text in texts] == [1_003_854, 55_770, 55_770]
    task.adapt(splits["train"])
    assert len(task.vocabulary) == 68  # 65 characters and three tokens of no text


@pytest.mark.parametrize("base", [SMALL, STREAM], ids=["lines", "stream"])
@pytest.mark.parametrize("level", ["char", "word"])
def test_what_is_written_depends_on_seed_and_prompt_alone(base, level):
    splits = lines() if base is SMALL else text()
    task = adapted(dataclasses.replace(base, level=level), splits)
    generate = task.signatures(spread(task.build()))["generate"]
    options = {
        "length": tf.constant(12),
        "temperature": tf.constant(1.0),
        "top_k": tf.constant(0),
        "top_p": tf.constant(1.0),
    }
    prompts = ["a xs", "", "b\n    c ", "\u65e5\u672c unseen", "a xs"]
    seeds = [1, 2, 3, 4, 5]
    together = generate(prompt=tf.constant(prompts), seed=tf.constant(seeds, tf.int64), **options)[
        "text"
    ].numpy()
    for prompt, seed, expected in zip(prompts, seeds, together, strict=True):
        (alone,) = generate(
            prompt=tf.constant([prompt]), seed=tf.constant([seed], tf.int64), **options
        )["text"].numpy()
        assert alone == expected and alone.startswith(prompt.encode())
        assert level == "char" or b"  " not in alone[len(prompt.encode()) :]
        for special in (b"<end>", b"<unk>", b"<pad>", "\u2424".encode()):
            assert special not in alone
    assert together[0] != together[4]
    none = generate(prompt=tf.zeros([0], tf.string), seed=tf.zeros([0], tf.int64), **options)
    assert none["text"].shape == (0,)
    options["length"] = tf.constant(0)
    kept = generate(prompt=tf.constant(prompts), seed=tf.constant(seeds, tf.int64), **options)
    assert [one.decode() for one in kept["text"].numpy()] == prompts


def test_scores_served_are_those_of_evaluation():
    splits = lines()
    task = adapted(SMALL, splits)
    model = spread(task.build())
    texts = [example["text"].numpy().decode() for example in splits["test"]]
    served = task.signatures(model)["serving_default"](tf.constant([*texts, ""]))
    nats = task.token_nats(model, splits["test"])
    assert served["nats"].numpy()[:-1].sum() == pytest.approx(nats.sum(), rel=1e-5)
    assert served["tokens"].numpy().tolist() == [len(one) + 1 for one in texts] + [1]
    long = tf.constant(["a xs now " * 40, "a"])
    together = task.signatures(model)["serving_default"](long)
    alone = task.signatures(model)["serving_default"](long[1:])
    assert float(together["nats"][1]) == pytest.approx(float(alone["nats"][0]), rel=1e-5)


def run(*argv):
    assert cli.main(LanguageModel, argv=[str(part) for part in argv]) == 0


def test_a_text_file_to_a_served_model(tmp_path, capsys, monkeypatch, checked_here):
    file = tmp_path / "book.txt"
    file.write_bytes("\r\n".join(LINES * 3).encode())
    run(
        "train", f"--data={file}", f"--out={tmp_path / 'run'}", f"--export={tmp_path / 'v'}",
        "--units=6", "--embedding_size=4", "--batch_size=4", "--window=16", "--epochs=2",
    )  # fmt: skip
    version = tmp_path / "v" / "1"
    metrics = json.loads((version / "metrics.json").read_text())
    assert set(metrics["test"]) == {"perplexity", "nats_per_token", "bits_per_character"}
    assert "context: stream" in (version / "config.yaml").read_text()
    capsys.readouterr()
    run("evaluate", f"--model={version}", "--split=test")
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == pytest.approx(metrics["test"])
    run("predict", f"--model={version}", "--length=5", "a xs", "b")
    assert capsys.readouterr().out.startswith("a xs")
    run("predict", f"--model={version}", "--score", "a xs", "")
    first, empty = capsys.readouterr().out.splitlines()
    assert " 4 tokens  perplexity " in first and " 0 tokens " in empty
    (answer,) = serving.load(version).predict(["a xs"])
    assert set(answer) == {"nats", "tokens"} and answer["tokens"] == 4
    server_requests.check(version, "language_model", monkeypatch)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a\nb\nc\nd\n" * 5, "shorter than 1 rows of a window of 64 tokens"),
        (b"a" * 1000, "falls into"),
        (b"good\n\xff\xfe\n", "book.txt:2: not UTF-8 text"),
        (b"", "book.txt is empty"),
    ],
)
def test_bad_texts_are_one_plain_message(content, told, tmp_path, capsys):
    file = tmp_path / "book.txt"
    file.write_bytes(content)
    argv = ["train", f"--data={file}", f"--out={tmp_path / 'run'}", f"--export={tmp_path / 'v'}"]
    assert cli.main(LanguageModel, argv=argv) == 2
    message = capsys.readouterr().err
    assert told in message and len(message.splitlines()) <= 3 and "Traceback" not in message
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("base", [SMALL, STREAM], ids=["lines", "stream"])
def test_blank_lines_have_no_word_to_score(base):
    splits = lines() if base is SMALL else text()
    task = adapted(dataclasses.replace(base, level="word"), splits)
    blank = tf.data.Dataset.from_tensor_slices({"text": ["", "\n", "\n"]})
    with pytest.raises(UserError, match="no word to score. Received: blank lines only"):
        task.evaluate(task.build(), blank)


def test_a_line_that_is_cut_has_no_end(tmp_path):
    splits = lines([f"{'ab' * 9}{i}" for i in range(40)])
    task = adapted(dataclasses.replace(SMALL, max_length=5), splits)
    read, targets = task.encode({"text": tf.constant("ababab")})
    assert read.shape == targets.shape == (5,) and 2 not in targets.numpy()
    model = task.build()
    measured = task.evaluate(model, splits["test"]).metrics
    bits = measured["nats_per_token"] / math.log(2)
    assert measured["bits_per_character"] == pytest.approx(bits)
    served = task.signatures(model)["serving_default"](tf.constant(["ababab", "ab"]))
    assert served["tokens"].numpy().tolist() == [5, 3]


@pytest.mark.parametrize("base", [SMALL, STREAM], ids=["lines", "stream"])
def test_inputs_of_which_only_a_part_is_read_are_counted(base):
    splits = lines() if base is SMALL else text()
    task = adapted(dataclasses.replace(base, max_length=5), splits)
    functions = task.signatures(task.build())
    texts = ["a" * length for length in range(9)]
    scored = functions["serving_default"](tf.constant(texts))["tokens"].numpy()
    whole = np.arange(9) + (base is SMALL)  # the end of a line is scored, too
    score, write = (task.PredictOptions(score=score) for score in (True, False))
    assert task.count_cut_inputs(texts, score) == np.count_nonzero(scored < whole) > 2
    assert task.count_cut_inputs(texts, write) == 3


def test_special_tokens_in_the_data_are_words_that_nobody_knows():
    splits = lines([f"a <pad> b <unk> {i}" for i in range(40)])
    task = adapted(dataclasses.replace(SMALL, level="word"), splits)
    assert task.vocabulary.tokens.count("<pad>") == task.vocabulary.tokens.count("<unk>") == 1
    _, targets = task.encode({"text": tf.constant("a <pad> b")})
    assert targets.numpy()[1] == 1 and task.token_nats(task.build(), splits["test"]).size == 48


def test_the_commented_configuration_is_the_dataclass():
    """To renew it: print(commented_yaml(LanguageModelConfig)) into the file."""
    file = Path(__file__).parents[2] / "pipelines" / "language_model.yaml"
    assert file.read_text(encoding="utf-8") == commented_yaml(LanguageModelConfig)
    assert read_config(LanguageModelConfig, file) == LanguageModelConfig()


def test_a_search_begins_with_the_configuration():
    config = LanguageModelConfig(units=77, dropout=0.1)
    assert LanguageModel(config).search_space(keras_tuner.HyperParameters()) == config


def test_one_character_alone_cannot_be_learnt(tmp_path):
    same = {name: lines(["aaa"] * 40)["train"] for name in ("train", "dev", "test")}
    with pytest.raises(UserError, match="two different tokens. Received: 'a'"):
        training.train(LanguageModel(SMALL), tmp_path / "run", same)


def test_the_bare_command_writes_a_program(tmp_path):
    """The default model on the bundled sample, as a newcomer first meets it."""
    out = bare_command("language_model", 3, tmp_path)
    version = tmp_path / "saved_models" / "language_model" / "1"
    assert json.loads((version / "metrics.json").read_text())["test"]["parse_rate"] >= 0.4
    assert "print(" in out
