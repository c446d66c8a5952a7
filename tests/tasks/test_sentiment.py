"""The sentiment task: what it learns, encodes and refuses, and that it learns to answer."""

import dataclasses
import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf

from rnnapps import training
from rnnapps.data.datasets.sample_reviews import grammar
from rnnapps.data.sources import from_lists
from rnnapps.errors import UserError
from rnnapps.tasks.language_model import LanguageModel, LanguageModelConfig
from rnnapps.tasks.sentiment import Sentiment, SentimentConfig


def splits(texts, labels):
    return from_lists({"text": texts, "label": labels}, key="text")


@pytest.fixture(scope="module")
def adapted():
    reviews = list(itertools.islice(grammar.reviews(), 200))
    task = Sentiment(SentimentConfig(units=4, embedding_size=4, batch_size=16))
    examples = splits([r.text for r in reviews], [r.label for r in reviews])
    task.adapt(examples["train"])
    return task, examples


def test_adapt_settles_what_is_auto():
    task = Sentiment(SentimentConfig())
    train = splits([f"{i} " + "word " * i for i in range(300)], ["a", "b"] * 150)["train"]
    task.adapt(train)
    longest = max(len(example["text"].numpy().split()) for example in train)
    assert task.config.max_length == longest
    short = splits([f"text {i}" for i in range(50)], ["a", "b"] * 25)["train"]
    task = Sentiment(SentimentConfig())
    task.adapt(short)
    assert task.config.max_length == 128 and task.plan.padded_lengths == [2, 128]
    task = Sentiment(SentimentConfig(max_length=1))
    task.adapt(short)
    assert task.config.max_length == 1 and task.plan.padded_lengths == [1]
    assert sum(task.count_cut(batch) for batch in short.batch(7)) == int(short.cardinality())


def test_state_brings_the_task_back(adapted, tmp_path):
    task, examples = adapted
    for name, content in task.state().items():
        (tmp_path / name).write_bytes(content)
    other = Sentiment(task.config)
    other.restore(tmp_path)
    assert other.state() == task.state() and other.plan.padded_lengths == task.plan.padded_lengths
    for example in examples["test"]:
        for one, same in zip(task.encode(example), other.encode(example), strict=True):
            assert one.numpy().tolist() == same.numpy().tolist()


@pytest.fixture(scope="module")
def language_model(tmp_path_factory):
    """Makes language models of words, and the folders of their runs."""

    @functools.cache
    def make(num_layers):
        texts = from_lists({"text": [f"a bad , bad film {i}" for i in range(40)]}, key="text")
        sizes = {"cell": "gru", "units": 3, "num_layers": num_layers, "embedding_size": 5}
        task = LanguageModel(LanguageModelConfig(level="word", context="lines", **sizes))
        task.adapt(texts["train"])
        run, model = training.Run(tmp_path_factory.mktemp("lm") / "run"), task.build()
        run.start(task)
        model.save_weights(run.best_weights)
        run.metrics.write_text("{}")
        return task, model, run, sizes

    return make


@pytest.mark.parametrize(("num_layers", "bidirectional"), [(1, True), (2, False)])
def test_an_encoder_starts_where_a_language_model_ended(
    adapted, language_model, num_layers, bidirectional, tmp_path
):
    before, model, run, sizes = language_model(num_layers)
    config = SentimentConfig(
        encoder_from=str(run.path), affixes=False, bidirectional=bidirectional, **sizes
    )
    task = Sentiment(config)
    task.adapt(adapted[1]["train"])
    built = task.build()
    ids = before.vocabulary.ids(tf.constant([["bad", "film", "unheard", "a"]]))
    expected, _ = model.decoder.encoder(ids, training=False)
    found, _ = built.encoder(task._padded_ids(tf.constant(["Bad film unheard a"])), training=False)
    np.testing.assert_allclose(found[..., : sizes["units"]], expected, rtol=1e-5, atol=1e-6)
    # What is kept of the run needs the language model no more.
    for name, content in task.state().items():
        (tmp_path / name).write_bytes(content)
    other = Sentiment(dataclasses.replace(task.config, encoder_from="nowhere"))
    other.restore(tmp_path)
    other.build().set_weights(built.get_weights())


def test_a_start_of_another_kind_or_size_is_refused(adapted, language_model, tmp_path):
    _, _, run, sizes = language_model(2)
    right = {"encoder_from": str(run.path), "affixes": False, "bidirectional": False, **sizes}
    for wrong, told in (
        ({"encoder_from": str(tmp_path)}, "not the folder of a trained language model"),
        ({"affixes": True}, "no vectors of affixes"),
        ({"bidirectional": True}, "num_layers=2, bidirectional=True"),
        ({"units": 7, "cell": "lstm"}, "cell gru there and lstm here, units 3 there and 7 here"),
        ({"tokens": "characters"}, "level word there and char here"),
    ):
        task = Sentiment(SentimentConfig(**right | wrong))
        with pytest.raises(UserError, match=told):
            task.adapt(adapted[1]["train"])


def test_training_batches_hold_every_example_once_in_few_shapes(adapted):
    task, examples = adapted
    encoded = task.encoded(examples["train"], training=True)
    orders = []
    for number in range(2):
        batches = task.batches(encoded, number)
        epoch = list(batches)
        assert len(epoch) == int(batches.cardinality())
        assert {ids.shape[1] for ids, _, _ in epoch} <= set(task.plan.padded_lengths)
        rows = [tuple(row[row > 0]) for ids, _, _ in epoch for row in ids.numpy()]
        assert len(rows) == int(examples["train"].cardinality())
        orders.append(rows)
    assert sorted(orders[0]) == sorted(orders[1]) and orders[0] != orders[1]
    encoded = task.encoded(examples["train"])
    again = [row for ids, _, _ in task.batches(encoded, 0) for row in ids.numpy()]
    assert [tuple(row[row > 0]) for row in again] == orders[0]


def test_evaluate_measures_what_the_model_says(adapted):
    task, examples = adapted
    model = task.build()
    evaluation = task.evaluate(model, examples["test"])
    right = total = nats = 0
    for example in examples["test"]:
        ids, label = task.encode(example)
        probabilities = tf.nn.softmax(model(ids[None], training=False))[0].numpy()
        right += probabilities.argmax() == label.numpy()
        nats -= np.log(probabilities[label.numpy()])
        total += 1
    assert evaluation.metrics["accuracy"] == pytest.approx(right / total)
    assert evaluation.metrics["log_loss"] == pytest.approx(nats / total, abs=1e-5)
    assert evaluation.outcomes.sum() == total


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (["good"] * 50, r"at least two classes. Received: 'good' \(rows: \d+\)"),
        (["good", "b\nad"] * 25, r"a label must be a line of text. Received: 'b\\nad'"),
        (["good", "  "] * 25, "a label must be a line of text. Received: '  '"),
    ],
)
def test_labels_that_cannot_be_learnt_are_refused(labels, told, tmp_path):
    with pytest.raises(UserError, match=told):
        task = Sentiment(SentimentConfig())
        training.train(task, tmp_path / "run", splits([f"text {i}" for i in range(50)], labels))
    assert not (tmp_path / "run").exists()


def test_a_label_that_only_one_split_has_is_refused_in_python_too(tmp_path):
    given = splits([f"text {i}" for i in range(50)], ["good", "bad"] * 25)
    given["test"] = given["test"].map(lambda example: example | {"label": tf.constant("odd")})
    with pytest.raises(UserError, match="'odd' .* in the test split is none of .*: bad, good"):
        training.train(Sentiment(SentimentConfig()), tmp_path / "run", given)


@pytest.mark.parametrize(
    "options",
    [
        {"cell": "gru", "pooling": "attention"},
        {"cell": "elman", "pooling": "mean", "hidden_units": 4, "bidirectional": False},
        {"pooling": "last", "num_layers": 2, "recurrent_dropout": 0.2},
        {"cell": "elman", "tokens": "characters", "max_length": 20, "lowercase": False},
    ],
)
def test_every_kind_of_model_trains_a_step_and_serves(adapted, options, tmp_path):
    base, examples = adapted
    task = Sentiment(dataclasses.replace(base.config, buckets=1, **options))
    task.adapt(examples["train"])
    model = task.build()
    model.compile("adam", functools.partial(task.objective().loss, model))
    before = [weight.numpy() for weight in model.trainable_weights]
    batches = task.batches(task.encoded(examples["train"]), epoch=0)
    model.fit(batches.take(2), shuffle=False, verbose=0)
    changed = [
        (old != new.numpy()).any() for old, new in zip(before, model.trainable_weights, strict=True)
    ]
    assert all(changed)
    serve = task.signatures(model)["serving_default"]
    probabilities = serve(tf.constant(["", "A lovely film"]))["probabilities"].numpy()
    assert np.allclose(probabilities.sum(-1), 1)


def test_two_lists_are_enough_and_a_seed_gives_the_same_model(tmp_path):
    """A few lines of Python train on texts and labels; the same seed gives the same bits."""
    texts = [f"{word} film number {i}" for i in range(40) for word in ("good", "bad")]
    labels = ["for", "against"] * 40
    config = SentimentConfig(units=8, embedding_size=8, epochs=4, batch_size=8, learning_rate=0.03)
    weights = []
    for name in ("one", "two"):
        task = Sentiment(config)
        model, metrics = training.train(task, tmp_path / name, splits(texts, labels))
        weights.append(model.get_weights())
    assert metrics["test"]["accuracy"] == 1.0
    assert all((one == two).all() for one, two in zip(*weights, strict=True))
    assert task.config.data == "in-memory"
    task, restored = training.restore(Sentiment, training.Run(tmp_path / "one"))
    assert all((a == b).all() for a, b in zip(restored.get_weights(), weights[0], strict=True))


def test_the_best_epoch_is_kept_though_training_goes_on(adapted, tmp_path, monkeypatch):
    task, examples = adapted
    task = Sentiment(dataclasses.replace(task.config, epochs=5, learning_rate=1e-3))
    losses, weights = iter([0.9, 0.2, 0.6, 0.2, 0.4]), []
    evaluate = Sentiment.evaluate

    def scripted(self, model, split):
        weights.append(model.get_weights())
        evaluation = evaluate(self, model, split)
        return dataclasses.replace(
            evaluation, metrics=evaluation.metrics | {"log_loss": next(losses)}
        )

    monkeypatch.setattr(Sentiment, "evaluate", scripted)
    learnt = training.learn(task, tmp_path / "run", examples)
    assert learnt.history["val_log_loss"] == [0.9, 0.2, 0.6, 0.2, 0.4]
    best = zip(learnt.model.get_weights(), weights[1], strict=True)
    assert all((one == other).all() for one, other in best)
