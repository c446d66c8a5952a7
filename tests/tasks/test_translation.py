"""Translation: what is read and written, honest scores, exports that stand alone."""

import dataclasses
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import keras_tuner
import numpy as np
import pytest
import tensorflow as tf

from rnnapps import cli, training
from rnnapps.data.sources import from_lists
from rnnapps.errors import UserError
from rnnapps.learner import Learner
from rnnapps.tasks.config import commented_yaml
from rnnapps.tasks.translation import Translation, TranslationConfig
from tests import server_requests
from tests.conftest import checking_here

SMALL = TranslationConfig(
    level="word", units=6, embedding_size=4, batch_size=8, buckets=2, epochs=2, beam_width=3
)
NUMBERS = {"one": "uno", "two": "due", "three": "tre", "four": "quattro", "five": "cinque"}
PAIRS = [
    (f"{a} and {b}, {c}!", f"{NUMBERS[c]}: {NUMBERS[b]} e {NUMBERS[a]}.")
    for a in NUMBERS
    for b in NUMBERS
    for c in NUMBERS
]


def splits(pairs=PAIRS):
    source, target = zip(*pairs, strict=True)
    return from_lists({"source": source, "target": target}, key="source", splits="60/20/20")


def adapted(given=None, **changes):
    task = Translation(dataclasses.replace(SMALL, **changes))
    task.adapt((given or splits())["train"])
    return task


def spread(model):
    """Weights far from each other, so that a difference cannot hide in small numbers."""
    rng = np.random.default_rng(2)
    for weight in model.trainable_weights:
        weight.assign(rng.normal(size=weight.shape))
    return model


def test_what_is_read_and_what_follows():
    task = adapted()
    inputs, following = task.encode({"source": tf.constant("two!"), "target": tf.constant("due.")})
    two, mark = (int(task.source.ids(text)[0]) for text in ("two", "two!"[3:]))
    assert inputs["source"].numpy().tolist()[0] == two and inputs["source"].numpy()[-1] == 2
    assert inputs["target"].numpy().tolist() == [2, *following.numpy()[:-1]]
    assert following.numpy()[-1] == 2 and len(following) == 3
    reverse = adapted(reverse_source=True)
    inputs, _ = reverse.encode({"source": tf.constant("one two"), "target": tf.constant("")})
    assert inputs["source"].numpy().tolist() == [*reverse.source.ids("one two").numpy()[::-1], 2]
    assert mark != two


def test_long_and_unlike_pairs_are_left_out_of_training_and_counted(caplog):
    caplog.set_level("INFO", "rnnapps")
    pairs = [*PAIRS, ("one " * 70, "uno " * 70), ("two", "due " * 40)]
    source, target = zip(*pairs, strict=True)
    train = tf.data.Dataset.from_tensor_slices({"source": list(source), "target": list(target)})
    task = Translation(dataclasses.replace(SMALL, max_length=64))
    task.adapt(train)
    assert (
        f"{len(PAIRS)} training pairs; left out are 1 longer than 64 tokens, and 1" in caplog.text
    )
    encoded = list(task.encoded(train, training=True))
    assert len(encoded) == len(PAIRS)
    batches = task.batches(task.encoded(train, training=True), epoch=0)
    assert sum(inputs["source"].shape[0] for inputs, _, _ in batches) == len(PAIRS)
    with pytest.raises(UserError, match=r"all training pairs are longer .* max_length=1,"):
        adapted(max_length=1)


@pytest.mark.parametrize(
    ("level", "batch_sizes"), [("subword", [8]), ("word", [8, 3]), ("char", [3])]
)
def test_perplexity_is_the_chain_rule_over_the_split_whatever_the_batches(level, batch_sizes):
    """In batches of both sizes, and at every level, of which batching knows nothing."""
    given = splits()
    task = adapted(given, level=level)
    model = spread(task.build())
    nats = tokens = 0
    dev = given["dev"].take(5)
    for example in dev:
        inputs, following = task.encode(example)
        scores = model.log_probabilities(
            inputs["source"][None], inputs["target"][None], following[None]
        )
        nats -= float(tf.reduce_sum(scores))
        tokens += following.shape[0]
    for batch_size in batch_sizes:
        other = adapted(given, level=level, batch_size=batch_size, beam_width=1, buckets=1)
        measured = other.evaluate(model, dev).metrics
        assert measured["perplexity"] == pytest.approx(math.exp(nats / tokens), rel=1e-4)


@pytest.mark.parametrize("attention", ["none", "general"])
def test_scores_are_the_models_own(attention):
    task = adapted(attention=attention, length_penalty="average")
    model = spread(task.build())
    source = np.array([[5, 3, 7, 2], [4, 2, 0, 0]], "int32")
    found = task._search(model, tf.constant(source), model.encode(source, training=False), 3, 2)
    for row, place in np.ndindex(2, 2):
        length = int(found.lengths[row, place])
        written = found.tokens[row, place].numpy()[:length]
        read = np.concatenate([[2], written[:-1]])
        scores = model.log_probabilities(source[row : row + 1], read[None], written[None])
        expected = float(found.log_probabilities[row, place])
        assert float(tf.reduce_sum(scores)) == pytest.approx(expected, abs=1e-5 * length)


def test_an_unknown_word_is_the_one_looked_at():
    task = adapted()
    model = spread(task.build())
    # Whatever it reads, it writes an unknown word, and then the end.
    model.decoder.bias.assign([-99.0, 60.0, 50.0, *[-99.0] * (len(task.target) - 3)])
    text = tf.constant(["Zanzibar"])
    texts, _ = task._translate(model, text, task._read(model, text), 1, 1)
    assert set(texts.numpy()[0, 0].decode().split()) <= {"Zanzibar"}
    without = adapted(replace_unknown=False)
    texts, _ = without._translate(model, text, without._read(model, text), 1, 1)
    assert texts.numpy()[0, 0] == b""


@pytest.mark.parametrize(
    "changes",
    [
        {"attention": "additive", "scheduled_sampling": 0.5, "precision": "mixed_bfloat16"},
        {"input_feeding": True, "num_layers": 2, "precision": "mixed_bfloat16"},
    ],
    ids=str,
)
def test_options_learn_and_are_measured(changes):
    given = splits()
    task = adapted(given, buckets=1, beam_width=2, **changes)
    learner = Learner(task, tf.distribute.get_strategy())
    batches = task.batches(task.encoded(given["train"], training=True), epoch=0)
    before = learner.model.get_weights()
    losses = [float(values[0]) for values in learner.steps(batches.take(2))]
    assert np.isfinite(losses).all()
    assert all((a != b).any() for a, b in zip(before, learner.model.get_weights(), strict=True))
    model = task.build()
    measured = task.evaluate(model, given["dev"].take(2)).metrics
    assert np.isfinite(measured["perplexity"])
    seen = task.signatures(model)["attention"](
        text=tf.constant(["one"]), translation=tf.constant(["uno"])
    )
    assert float(tf.reduce_sum(seen["weights"][0, 0])) == pytest.approx(1, abs=1e-5)


def test_a_language_without_blanks_is_measured_by_characters():
    chinese = dict(zip(NUMBERS, "\u4e00\u4e8c\u4e09\u56db\u4e94", strict=True))
    pairs = [
        (f"{a} and {b}", f"{chinese[a]}\u548c{chinese[b]}\u3002") for a in NUMBERS for b in NUMBERS
    ]
    for level in ("char", "subword"):
        task = adapted(splits(pairs * 2), level=level)
        assert task.objective().monitor == "chrf"
        there = task.target.texts(task.target.ids(pairs[3][1])[None]).numpy()[0].decode()
        assert there == pairs[3][1]
    back = adapted(splits([(target, source) for source, target in pairs * 2]), level="char")
    # As long as the longest training pair needs, and no longer.
    assert back.config.max_growth == pytest.approx(1, abs=0.5)
    assert back.objective().monitor == "bleu"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run folder and the version exported from it, of files in two languages."""
    folder = tmp_path_factory.mktemp("trained")
    for side, name in enumerate(("en", "it")):
        text = "".join(f"{pair[side]}\n" for pair in PAIRS)
        (folder / f"pairs.{name}").write_text(text, encoding="utf-8")
    settings = ["--units=16", "--embedding_size=8", "--epochs=2", "--buckets=1", "--beam_width=2"]
    argv = ["train", f"--data={folder}/pairs.en,{folder}/pairs.it", f"--out={folder}/run"]
    argv += [f"--export={folder}/versions", "--vocabulary_size=300", *settings]
    with checking_here():
        assert cli.main(Translation, argv=argv) == 0
    return folder / "run", folder / "versions" / "1"


def test_a_run_holds_what_it_should(trained):
    run, version = trained
    metrics = json.loads((run / "metrics.json").read_text())
    assert {"bleu", "bleu_lc", "chrf", "perplexity", "length_ratio"} <= set(metrics["test"])
    assert (run / "figures" / "bleu_by_length.png").exists()
    assert "reference" in (run / "errors_test.txt").read_text()
    assert (version / "assets" / "source.txt").exists()


ALONE = """
import sys
sys.modules["keras"] = sys.modules["rnnapps"] = None
import tensorflow as tf
served = tf.saved_model.load(sys.argv[1]).signatures
texts = ["one and two, three!", "", "   ", "?!", "日本語 café 😀 مرحبا", "one " * 3000]
one, two = tf.constant(2), tf.constant(3)
together = served["decode"](text=tf.constant(texts), beam=two, nbest=one)
assert together["translation"][1:3].numpy().tolist() == [[b""] * 2] * 2  # blank texts
assert together["score"][1:3, 0].numpy().tolist() == [0, 0]
for row, text in enumerate(texts):
    alone = served["decode"](text=tf.constant([text]), beam=two, nbest=one)
    assert (alone["translation"][0] == together["translation"][row]).numpy().all(), text
    close = abs(alone["score"][0] - together["score"][row]) / (1 + abs(alone["score"][0]))
    assert float(tf.reduce_max(tf.where(tf.math.is_finite(close), close, 0))) < 1e-5, text
default = served["serving_default"](text=tf.constant(texts))
assert default["translation"].shape == (6, 1) and default["score"].shape == (6, 1)
seen = served["attention"](text=tf.constant(texts), translation=default["translation"][:, 0])
assert abs(float(tf.reduce_sum(seen["weights"][0, 0])) - 1) < 1e-5
assert seen["weights"].shape == (6, seen["target"].shape[1], seen["source"].shape[1])
assert served["encode"](text=tf.constant(texts))["vector"].shape == (6, 32)
for name, more in (("serving_default", {}), ("decode", {"beam": two, "nbest": one}), ("encode", {}),
                   ("attention", {"translation": tf.constant([], tf.string)})):
    for value in served[name](text=tf.constant([], tf.string), **more).values():
        assert value.shape[0] == 0, name
"""


def test_the_export_stands_alone_in_a_moved_folder(trained, tmp_path):
    moved = shutil.copytree(trained[1], tmp_path / "moved")
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", ALONE, moved],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_predict_gives_n_best_and_draws_attention(trained, tmp_path, capsys):
    _, version = trained
    base = ["predict", f"--model={version}", "--beam=4", "--nbest=2", "one and two, three!"]
    assert cli.main(Translation, argv=[*base, "--json", f"--attention={tmp_path}/map.png"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["translation"]) == 2 and answer["score"][0] > -np.inf
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    assert cli.main(Translation, argv=base) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("\t")[2] for line in lines] == answer["translation"]
    for wrong, told in (
        (["--nbest=5"], "nbest is at most beam. Received: nbest=5, beam=4"),
        (["two", "--attention=x.png"], "attention is drawn for one sentence"),
        ([f"--attention={tmp_path}/no/map.png"], "cannot write"),
    ):
        assert cli.main(Translation, argv=[*base[:3], base[4], *wrong]) == 2
        assert told in capsys.readouterr().err


def test_evaluate_measures_the_export_as_the_run_did(trained, capsys):
    run, version = trained
    assert cli.main(Translation, argv=["evaluate", f"--model={version}"]) == 0
    measured = json.loads(capsys.readouterr().out.splitlines()[-1])
    of_run = json.loads((run / "metrics.json").read_text())["test"]
    assert measured == pytest.approx(of_run, rel=1e-5)


def test_one_pair_can_be_learnt(tmp_path):
    pair = {"source": ["Do you want to dance with me?"], "target": ["Vuoi ballare con me?"]}
    one = tf.data.Dataset.from_tensor_slices(pair)
    config = dataclasses.replace(
        SMALL, units=24, embedding_size=16, buckets=1, epochs=8, learning_rate=0.02,
        weight_average=0.9, embedding_dropout=0.0, dropout=0.0,
    )  # fmt: skip
    task = Translation(config)
    learnt = training.learn(task, tmp_path / "run", {"train": one.repeat(128), "dev": one})
    text = tf.constant(pair["source"])
    texts, _ = task._translate(learnt.model, text, task._read(learnt.model, text), 3, 1)
    assert [text.decode() for text in texts[0].numpy()] == pair["target"]


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--attention=none", "--input_feeding=true"], "input_feeding needs an attention"),
        (["--attention=dot"], "attention=dot needs an encoder that reads one way"),
    ],
)
def test_settings_that_do_not_go_together_are_told_before_data_is_read(flags, told, capsys):
    assert cli.main(Translation, argv=["train", "--data=none.tsv", *flags]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"error: {told}") and len(err.splitlines()) == 1


def test_both_counts_of_files_that_do_not_fit_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.en").write_text("one\ntwo\nthree\n")
    (tmp_path / "a.it").write_text("uno\ndue\n")
    argv = ["train", "--data=a.en,a.it", "--out=run", "--export=versions"]
    assert cli.main(Translation, argv=argv) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.splitlines()[-1] == (
        "error: aligned files must have as many lines. Received: a.en with 3, a.it with 2"
    )
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.en", "a.it"]


def test_search_space_starts_from_the_configuration():
    hp = keras_tuner.HyperParameters()
    assert Translation(SMALL).search_space(hp) == SMALL
    assert len(hp.values) > 5


def test_the_yaml_beside_the_script_lists_every_setting():
    file = Path(__file__).parents[2] / "pipelines" / "translation.yaml"
    assert file.read_text(encoding="utf-8") == commented_yaml(TranslationConfig)


def test_a_server_is_asked_as_the_page_says(trained, monkeypatch):
    server_requests.check(trained[1], "translation", monkeypatch)
