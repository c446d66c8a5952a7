"""The sentiment script and the configuration file beside it."""

import json
import subprocess
import sys
from pathlib import Path

import yaml

from rnnapps.tasks.config import commented_yaml, read_config
from rnnapps.tasks.sentiment import SentimentConfig
from tests.conftest import as_users_do

PIPELINES = Path(__file__).parents[2] / "pipelines"


def test_the_commented_configuration_is_the_dataclass():
    """To renew it: print(commented_yaml(SentimentConfig)) into the file."""
    file = PIPELINES / "sentiment.yaml"
    assert file.read_text(encoding="utf-8") == commented_yaml(SentimentConfig)
    assert read_config(SentimentConfig, file) == SentimentConfig()
    assert "TODO" not in file.read_text() and len(yaml.safe_load(file.read_text())) > 30


def test_the_script_prints_the_configuration_that_it_would_use(tmp_path):
    script = [sys.executable, PIPELINES / "sentiment.py", "train"]
    config = tmp_path / "run.yaml"
    config.write_text("units: 7\ncolumns: a,b\n")
    shown = subprocess.run(
        [*script, f"--config={config}", "--pooling=mean", "--print_config"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    ).stdout
    shown = yaml.safe_load(shown)
    assert (shown["units"], shown["columns"], shown["pooling"]) == (7, "a,b", "mean")
    assert list(tmp_path.iterdir()) == [config]


def test_the_bare_command_trains_exports_and_answers_the_documents_examples(tmp_path):
    """The default model on the bundled sample, as a newcomer first meets it."""
    done = subprocess.run(
        [sys.executable, PIPELINES / "sentiment.py"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=as_users_do(tmp_path / "tfds"),
    )
    version = tmp_path / "saved_models" / "sentiment" / "1"
    metrics = json.loads((version / "metrics.json").read_text())
    assert metrics["test"]["accuracy"] >= 0.98
    shown = done.stdout.splitlines()[-5:]
    assert shown[0].startswith("This café is great") and shown[1].split()[0] == "positive"
    assert shown[3].startswith("There is nothing to like") and shown[4].split()[0] == "negative"
    assert (tmp_path / "runs" / "sentiment" / "1" / "figures" / "confusion.png").exists()
