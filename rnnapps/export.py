"""Writing a trained task as a SavedModel, and checking what was written."""

import dataclasses
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import rnnapps
from rnnapps import serving, warm_up
from rnnapps.errors import UserError
from rnnapps.folders import next_version, reading, task_of
from rnnapps.tasks.config import read_config, write_config
from rnnapps.tasks.task import Task

log = logging.getLogger("rnnapps")

# Runs in a process of its own that has nothing but TensorFlow, as a server would.
_RELOAD = """
import sys
sys.modules["keras"] = sys.modules["rnnapps"] = None
import tensorflow as tf

model, folder = sys.argv[1:]
loaded = tf.saved_model.load(model)
for name, function in loaded.signatures.items():
    inputs = {
        key: tf.io.parse_tensor(tf.io.read_file(f"{folder}/{name}.{key}"), spec.dtype)
        for key, spec in function.structured_input_signature[1].items()
    }
    for key, value in function(**inputs).items():
        tf.io.write_file(f"{folder}/{name}.{key}", tf.io.serialize_tensor(value))
"""


def write(
    task: Task,
    model: keras.Model,
    metrics: Mapping[str, Any],
    directory: str | Path,
) -> Path:
    """Writes the next version of a served model, complete or not at all.

    The version is built beside its place, loaded again in a clean process, compared with the model
    in memory on the task's probe, and only then renamed into place.

    Args:
        task: the adapted task.
        model: its trained model.
        metrics: what `metrics.json` of the run holds.
        directory: the folder of versions.

    Returns:
        The folder of the new version, `directory/<n>`.

    Raises:
        UserError: the folder cannot be written.
    """
    directory = Path(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".writing-", dir=directory) as scratch:
            version = Path(scratch) / "version"
            module = _save(task, model, version)
            write_config(task.config, version / "config.yaml")
            _write(version / "metrics.json", json.dumps(metrics, indent=2) + "\n")
            _write(version / "MODEL_CARD.md", _model_card(task, module, metrics))
            probe = task.probe()
            warm_up.write(version, task.name, probe)
            _check(module, version, probe)
            return _rename_to_next(version, directory)
    except OSError as error:
        raise UserError(f"cannot write the export to {directory}: {error.strerror}") from error
    except tf.errors.OpError as error:
        # TensorFlow's file system puts the reason after the temporary file's name.
        reason = error.message.rpartition("; ")[2].partition(" [Op:")[0]
        raise UserError(f"cannot write the export to {directory}: {reason}") from error


def read_task(task_class: type[Task], directory: Path, **changes: Any) -> Task:
    """Brings an adapted task back from an exported version.

    Args:
        task_class: the task.
        directory: the version's folder.
        **changes: configuration fields that take other values.

    Raises:
        UserError: the folder is not such an export, or is of another task, or is damaged.
    """
    config = directory / "config.yaml"
    if not config.exists():
        raise UserError(f"{directory} is not an exported {task_class.name} model: no config.yaml")
    if (directory / "MODEL_CARD.md").exists() and (name := task_of(directory)) != task_class.name:
        raise UserError(f"{directory} is a model of the task {name}, not of {task_class.name}")
    task = task_class(dataclasses.replace(read_config(task_class.Config, config), **changes))
    with reading(directory / "assets"):
        task.restore(directory / "assets")
    return task


def read(task_class: type[Task], directory: Path, **changes: Any) -> tuple[Task, keras.Model]:
    """Brings a task and its Keras model back from an exported version, as `read_task` does."""
    served = serving.load(directory)
    task = read_task(task_class, directory, **changes)
    model = task.build()
    with reading(directory):
        model.set_weights(served.weights)
    return task, model


def _save(task: Task, model: keras.Model, version: Path) -> tf.Module:
    with tempfile.TemporaryDirectory() as state:
        for name, content in task.state().items():
            (Path(state) / name).write_bytes(content)
        served = type(task)(task.config)
        served.restore(Path(state))
        module = tf.Module()
        module.weights = [weight.value for weight in model.weights]
        module.tables = [value for value in vars(served).values() if isinstance(value, tf.Module)]
        module.functions = served.signatures(model)
        tf.saved_model.save(module, version, signatures=module.functions)
        for name, content in task.state().items():
            (version / "assets" / name).write_bytes(content)
    return module


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


def _check(module: tf.Module, version: Path, probe: Mapping[str, Mapping[str, tf.Tensor]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, inputs in probe.items():
            for key, value in inputs.items():
                tf.io.write_file(f"{folder}/{name}.{key}", tf.io.serialize_tensor(value))
        clean = subprocess.run(
            [sys.executable, "-P", "-c", _RELOAD, str(version.resolve()), folder],
            cwd=folder,
            env=os.environ | {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            text=True,
        )
        if clean.returncode:
            raise RuntimeError(f"the export does not load in a clean process:\n{clean.stderr}")
        for name, inputs in probe.items():
            for key, value in module.functions[name](**inputs).items():
                written = tf.io.read_file(f"{folder}/{name}.{key}")
                served = tf.io.parse_tensor(written, value.dtype)
                _compare(f"{name}: {key}", value.numpy(), served.numpy())


def _compare(name: str, expected: np.ndarray, served: np.ndarray) -> None:
    if expected.dtype == object:
        same = np.array_equal(expected, served)
    else:
        same = np.allclose(expected, served, rtol=1e-5, atol=1e-5)
    if not same:
        raise RuntimeError(
            f"the export's {name!r} differs from the model in memory. "
            f"Received: {served!r} in place of {expected!r}"
        )


def _rename_to_next(version: Path, directory: Path) -> Path:
    while True:
        final = next_version(directory)
        try:
            return version.rename(final)
        except OSError:
            if not final.exists():
                raise


def _model_card(task: Task, module: tf.Module, metrics: Mapping[str, Any]) -> str:
    config, lines = task.config, [f"# {task.name}", ""]
    asked = [f"{name}=tf.constant([...])" for name in _inputs(module.functions["serving_default"])]
    lines += [
        f"A model of the task `{task.name}`, trained with rnnapps {rnnapps.__version__}, "
        f"TensorFlow {tf.__version__} and Keras {keras.__version__}.",
        "",
        "## Use",
        "",
        "```python",
        "import tensorflow as tf",
        "",
        'model = tf.saved_model.load("this/folder")',
        f'answer = model.signatures["serving_default"]({", ".join(asked)})',
        "```",
        "",
        "`?` is any size; the first is the number of rows.",
        "",
        "| signature | inputs | outputs |",
        "|---|---|---|",
    ]
    for name, function in module.functions.items():
        outputs = function.get_concrete_function().structured_outputs
        lines.append(f"| `{name}` | {_tensors(_inputs(function))} | {_tensors(outputs)} |")
    lines += [
        "",
        "## Training",
        "",
        f"Data: `{config.data}`. {_data_notice(config)}",
        "",
        f"Seed {config.seed}; {metrics['parameters']:,} parameters; {metrics['seconds']} seconds. "
        "All settings are in `config.yaml` of this folder, with which it is trained again by",
        "",
        "```sh",
        f"python pipelines/{task.name}.py train --config this/folder/config.yaml",
        "```",
        "",
        "| split | examples | " + " | ".join(metrics["test"]) + " |",
        "|---" * (2 + len(metrics["test"])) + "|",
    ]
    for split, count in metrics["examples"].items():
        found = (metrics[split].get(name) for name in metrics["test"])
        values = " | ".join("" if value is None else f"{value:.4f}" for value in found)
        lines.append(f"| {split} | {count:,} | {values} |")
    lines += ["", "## Limits", "", task.limits(), ""]
    return "\n".join(lines)


def _inputs(function: tf.types.experimental.PolymorphicFunction) -> dict[str, tf.TensorSpec]:
    specs = function.get_concrete_function().structured_input_signature[0]
    return {spec.name: spec for spec in specs}


def _data_notice(config: Any) -> str:
    if config.data_notice:
        return config.data_notice
    if config.data == "sample":
        return "rnnapps generates it; it holds nothing of others, and has the licence of rnnapps."
    return "Nothing was said of its authors and its licence; ask them before passing the model on."


def _tensors(specs: Mapping[str, tf.TensorSpec]) -> str:
    def shape(spec):
        return ", ".join("?" if size is None else str(size) for size in spec.shape)

    return ", ".join(f"`{name}`: {spec.dtype.name} [{shape(spec)}]" for name, spec in specs.items())
