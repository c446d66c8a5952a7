"""Mixtures of language models, as the benchmark measures them."""

import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import language_model  # noqa: E402

from rnnapps.models import KneserNey  # noqa: E402

SENTENCES = {
    "ptb.train": [["a", "b", "a"], ["b", "a"], ["a", "c"]] * 5,
    "ptb.valid": [["a", "b"]],
    "ptb.test": [["b", "a"], ["c"]],
}
# Probabilities of the tokens above, ends counted, by a model that knows and by one that does not.
NATS = {
    "good": {"dev": np.full(3, 0.1), "test": np.full(5, 0.2)},
    "bad": {"dev": np.full(3, 9.0), "test": np.full(5, 9.0)},
}


def test_mixtures_trust_the_better_model(monkeypatch, capsys):
    def read(task, version):
        told = types.SimpleNamespace(
            load=lambda: {"dev": "dev", "test": "test"},
            token_nats=lambda model, split: NATS[model][split],
        )
        return told, version.name

    monkeypatch.setattr(language_model, "read_sentences", SENTENCES.get)
    monkeypatch.setattr(language_model, "export", types.SimpleNamespace(read=read))
    exports = ["ptb-lstm=x/good", "ptb-gru=x/bad", "ptb-elman=x/bad"]
    language_model.print_mixtures(types.SimpleNamespace(exports=exports))
    found = json.loads(capsys.readouterr().out)
    named = found["decodings"]
    assert tuple(named) == language_model.MIXTURES
    ngrams = KneserNey(SENTENCES["ptb.train"], order=5)
    scored = np.concatenate([ngrams.log_probabilities(one) for one in SENTENCES["ptb.test"]])
    alone = named["Kneser-Ney of order 5 alone"]
    assert alone["test"]["perplexity"] == pytest.approx(np.exp(-scored.mean()))
    for one, number in (("LSTM and Kneser-Ney", 2), ("mix of the three", 3)):
        assert len(named[one]["weights"]) == number
        assert named[one]["test"]["perplexity"] == pytest.approx(np.exp(0.2), rel=0.01)
    assert found["metrics"]["weights"] == pytest.approx([1, 0, 0, 0], abs=0.01)
    assert found["metrics"]["dev"]["perplexity"] == pytest.approx(np.exp(0.1), rel=0.01)
