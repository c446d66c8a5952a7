"""Which exports become LiteRT or ONNX files, what these need, and whether they answer the same.

    python benchmarks/conversion.py [FOLDER] [--tasks TASK ...] [--only NAME ...]
        [--interpreter PYTHON]

FOLDER (default: saved_models) holds `<task>/<version>/`; the newest version of each task is tried.
A row is a signature, or `network`: the Keras model alone with one row of 64 steps, without what
makes ids of texts and texts of ids. LiteRT is tried with its own operations, then with those of
TensorFlow that its Flex delegate runs. An answer is compared with the SavedModel's, on the inputs
with which the export was checked.

ONNX needs tf2onnx and onnxruntime, which this package does not ask for. LiteRT files are run by
ai-edge-litert where it is installed, otherwise by TensorFlow; `--interpreter` runs them by another
Python, such as one whose TensorFlow has the Flex delegate.
"""

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from rnnapps import export
from rnnapps.tasks.captioning import Captioning
from rnnapps.tasks.language_model import LanguageModel
from rnnapps.tasks.ner import Ner
from rnnapps.tasks.sentiment import Sentiment
from rnnapps.tasks.translation import Translation

TASKS = {task.name: task for task in (Sentiment, Ner, LanguageModel, Translation, Captioning)}
STEPS = 64
OPSET = "18"
# What a message means, where it does not say so.
MEANINGS = {
    "hashtable need to be initialized": "tables are empty",
    "couldn't find scan output index": "the loop with a mask",  # as earlier exports hold it
    "input1->type != input2->type": "a sum of two types",
    "INVALID_GRAPH": "an invalid graph",
    "'utf-8' codec can't decode": "a constant that is no UTF-8",
}

_RUN = """
import sys
import numpy as np
try:
    from ai_edge_litert.interpreter import Interpreter
except ImportError:
    import tensorflow as tf

    Interpreter = tf.lite.Interpreter
file, signature, folder = sys.argv[1:]
with np.load(f"{folder}/inputs.npz") as inputs:
    run = Interpreter(file).get_signature_runner(signature)
    np.savez(f"{folder}/outputs.npz", **run(**inputs))
"""


class Case(NamedTuple):
    """Something to convert."""

    name: str
    saved_model: Path
    signature: str
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("saved_models"))
    parser.add_argument("--tasks", nargs="*", choices=TASKS, default=list(TASKS))
    parser.add_argument("--only", nargs="*", help="signatures, or network (default: all)")
    parser.add_argument("--interpreter", default=sys.executable, help="the Python that runs LiteRT")
    flags = parser.parse_args()
    print("| task | what | LiteRT needs | kB | LiteRT answers | ONNX |")
    print("|---" * 6 + "|")
    for task in flags.tasks:
        versions = flags.folder.glob(f"{task}/[0-9]*")
        version = max(versions, key=lambda folder: int(folder.name), default=None)
        if version is None:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            for case in cases(task, version, Path(scratch), flags.only):
                row = [task, f"`{case.name}`", *litert(case, flags.interpreter), onnx(case)]
                print("| " + " | ".join(row) + " |", flush=True)


def cases(name: str, version: Path, scratch: Path, only: Sequence[str] | None) -> Iterator[Case]:
    """Gives each signature of an export, and its network, or only those that are named."""
    task, model = export.read(TASKS[name], version)
    loaded = tf.saved_model.load(version)
    for signature, inputs in task.probe().items():
        if not only or signature in only:
            yield case(signature, version, loaded, signature, inputs)
    shapes = model.get_build_config()["input_shape"]
    shapes = shapes if isinstance(shapes, dict) else {"ids": shapes}
    if only and "network" not in only:
        return
    # Of a text's token the ids are as many as take up its memory.
    widths = 1, STEPS, task.bytes_a_step // 4
    specs = {
        name: tf.TensorSpec(
            [known or width for known, width in zip(shape, widths + shape[3:], strict=False)],
            tf.float32 if len(shape) == 4 else tf.int32,  # images, or ids
            name,
        )
        for name, shape in shapes.items()
    }

    @tf.function(input_signature=list(specs.values()), autograph=False)
    def network(*given):
        given = dict(zip(specs, given, strict=True))
        outputs = model(given.get("ids", given), training=False)
        return {f"output_{i}": value for i, value in enumerate(tf.nest.flatten(outputs))}

    module = tf.Module()
    module.weights = [weight.value for weight in model.weights]
    module.network = network
    tf.saved_model.save(module, scratch / "network", signatures={"network": network})
    rng = np.random.default_rng(0)
    inputs = {
        name: tf.constant(rng.integers(1, 4, spec.shape), spec.dtype)
        for name, spec in specs.items()
    }
    loaded = tf.saved_model.load(scratch / "network")
    yield case("network", scratch / "network", loaded, "network", inputs)


def case(name, folder, loaded, signature, inputs: Mapping[str, tf.Tensor]) -> Case:
    """Asks a loaded SavedModel for the answers to be had."""
    outputs = loaded.signatures[signature](**inputs)
    given, answers = ({k: v.numpy() for k, v in values.items()} for values in (inputs, outputs))
    return Case(name, folder, signature, given, answers)


def litert(case: Case, interpreter: str) -> tuple[str, str, str]:
    """Returns what a LiteRT file needs or why there is none, its size, and how it answers."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.tflite"
        needs = apart(convert, case.saved_model, case.signature, file)
        if not file.exists():
            return f"no: {needs}", "", ""
        np.savez(Path(folder) / "inputs.npz", **{k: _fixed(v) for k, v in case.inputs.items()})
        return needs, f"{file.stat().st_size // 1000:,}", run(interpreter, file, case, folder)


def convert(saved_model: Path, signature: str, file: Path) -> str:
    """Writes a LiteRT file that needs as little as can be; returns what, or why there is none."""
    for needs, others in {"nothing else": [], "Flex": [tf.lite.OpsSet.SELECT_TF_OPS]}.items():
        converter = tf.lite.TFLiteConverter.from_saved_model(
            str(saved_model), signature_keys=[signature]
        )
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, *others]
        try:
            file.write_bytes(converter.convert())
            return needs
        except Exception as error:  # of many kinds
            fault = str(error) or type(error).__name__
    return reason(fault)


def run(interpreter: str, file: Path, case: Case, folder: str) -> str:
    """Lets a LiteRT file answer, in a process that may be another Python's."""
    command = [interpreter, "-c", _RUN, str(file), case.signature, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode < 0:
        return f"no: the process died ({done.returncode})"
    if "Flex delegate" in done.stderr:
        return "not run: this interpreter has no Flex"
    if done.returncode:
        return f"no: {reason(done.stderr.strip().splitlines()[-1])}"
    with np.load(f"{folder}/outputs.npz", allow_pickle=True) as outputs:
        return compare(case.outputs, outputs)


def onnx(case: Case) -> str:
    """Tells whether an ONNX file can be made, and answers the same."""
    if not all(map(importlib.util.find_spec, ("tf2onnx", "onnxruntime"))):
        return "not tried"
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/model.onnx"
        command = [sys.executable, "-m", "tf2onnx.convert", "--saved-model", str(case.saved_model)]
        command += ["--signature_def", case.signature, "--output", file, "--opset", OPSET]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            missing = re.search(r"Unsupported ops: Counter\((.*)\)", done.stderr)
            names = re.findall(r"'(\w+)'", missing[1]) if missing else ()
            last = done.stderr.strip().splitlines()[-1]
            return f"no: {', '.join(sorted(names)) or reason(last)}"
        import onnxruntime

        try:
            session = onnxruntime.InferenceSession(file)
            names = [output.name for output in session.get_outputs()]
            answers = session.run(names, dict(case.inputs))
        except Exception as error:  # onnxruntime has a class for each status
            return f"written, but does not run: {reason(str(error))}"
        return compare(case.outputs, dict(zip(names, answers, strict=True)))


def compare(expected: Mapping[str, np.ndarray], received: Mapping[str, np.ndarray]) -> str:
    """Tells whether answers are the same, numbers but for rounding."""
    worst = 0.0
    for name, value in expected.items():
        if value.dtype == object:
            if not np.array_equal(value, received[name]):
                return f"another `{name}`"
        elif value.size:
            worst = max(worst, float(np.abs(value - received[name]).max()))
    return f"the same, to {worst:.0e}" if worst < 1e-4 else f"others: {worst:.0e} away"


def apart(function, *arguments) -> str:
    """Calls a function in a process of its own, which a fault in C++ may end."""
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=_quiet) as pool:
        try:
            return pool.submit(function, *arguments).result()
        except BrokenProcessPool:
            return "the process died"


def reason(fault: str) -> str:
    """Shortens a message to what fits a table."""
    for told, meaning in MEANINGS.items():
        if told in fault:
            return meaning
    lists = re.search(r"(?:Custom|TF Select) ops: (.*)", fault)
    if lists:
        return lists[1]
    told = re.search(r"error: (?:loc\(.*\)\): )?(.*)", fault) or re.search(r"(.*)", fault)
    return " ".join(told[1].replace("|", "/").split())[:160]


def _fixed(value: np.ndarray) -> np.ndarray:
    """Makes texts an array of fixed width, which another version of NumPy reads."""
    return np.array(value.tolist(), "S") if value.dtype == object else value


def _quiet() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


if __name__ == "__main__":
    main()
