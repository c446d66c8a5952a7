"""What a server would be sent: the requests of docs/serving.md, and those that warm an export.

A body becomes tensors here by the rules of TensorFlow Serving's REST API: with `instances` each
element is a row of every input, with `inputs` each input is given whole; a list is as deep as its
tensor has dimensions, and an object `{"b64": …}` is bytes. Types are the signature's, and are not
converted: a whole number is no text, and a number with a fraction is no int32.
"""

import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from rnnapps import warm_up

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "serving.md"
_REST = re.compile(
    r"curl http://localhost:8501/v1/models/(\w+):predict -d @- <<END\n(.*?)\nEND\n```\n\n"
    r"```json\n(.*?)\n```",
    re.DOTALL,
)
_IMAGE = "docs/demo/scene.png"
_GRPC = re.compile(r"^ask\(.*?\)$", re.DOTALL | re.MULTILINE)


def check(version: Path, name: str, monkeypatch) -> None:
    """Asks an export all that the page asks such a model, and all that its warm-up file asks."""
    loaded = tf.saved_model.load(version)
    signatures = dict(loaded.signatures)
    asked_by_rest, asked_by_grpc = set(), set()
    for body, told in documented(name):
        signature = body.get("signature_name", "serving_default")
        asked_by_rest.add(signature)
        outputs = signatures[signature](**tensors(body, specs(signatures[signature])))
        answered = as_json(outputs, by_rows="instances" in body)
        assert answered.keys() == told.keys() and names(answered) == names(told)

    def ask(model, signature="serving_default", **inputs):
        if model == name:
            asked_by_grpc.add(signature)
            protos = {key: tf.make_tensor_proto(value) for key, value in inputs.items()}
            answer(signatures[signature], protos)

    monkeypatch.chdir(ROOT)  # where the page's image is
    for call in _GRPC.findall(PAGE.read_text(encoding="utf-8")):
        eval(call, {"ask": ask, "np": np, "Path": Path})
    assert asked_by_rest == asked_by_grpc == set(signatures)

    warm = warm_requests(version / warm_up.FILE)
    batched = {
        key
        for key, function in signatures.items()
        if all(spec.shape.rank for spec in specs(function).values())
    }
    assert {signature for _, signature, _ in warm} == batched
    for model, signature, inputs in warm:
        assert model == name
        for value in answer(signatures[signature], inputs).values():
            assert value.shape[0] == 1


def check_answers(version: Path, name: str) -> None:
    """Compares what the page shows of a model with what an export answers, to the digits shown.

    Of a long list the page may show the beginning.
    """
    signatures = tf.saved_model.load(version).signatures
    for body, told in documented(name):
        function = signatures[body.get("signature_name", "serving_default")]
        answered = as_json(function(**tensors(body, specs(function))), "instances" in body)
        assert shows(told, answered), f"{name} is shown {told}, but it answers {answered}"


def shows(told: Any, answered: Any) -> bool:
    """Whether an answer is the one that is told."""
    if isinstance(told, dict):
        return told.keys() == answered.keys() and all(shows(told[k], answered[k]) for k in told)
    if isinstance(told, list):
        return len(told) <= len(answered) and all(map(shows, told, answered))
    return abs(told - answered) < 0.0015 if isinstance(told, float) else told == answered


def documented(model: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The page's bodies of requests to a model, and its answers."""
    image = base64.b64encode((ROOT / _IMAGE).read_bytes()).decode()
    page = PAGE.read_text(encoding="utf-8").replace(f"$(base64 -w0 {_IMAGE})", image)
    return [
        (json.loads(body), json.loads(answer))
        for name, body, answer in _REST.findall(page)
        if name == model
    ]


def specs(function) -> dict[str, tf.TensorSpec]:
    """The inputs of a signature by name."""
    return function.structured_input_signature[1]


def tensors(body: Mapping[str, Any], inputs: Mapping[str, tf.TensorSpec]) -> dict[str, tf.Tensor]:
    """Makes the tensors of a body, as the REST API does."""
    given = body.get("instances", body.get("inputs"))
    if "instances" in body:
        assert "inputs" not in body and given
        rows = [row if is_object(row) else {next(iter(inputs)): row} for row in given]
        assert all(row.keys() == inputs.keys() for row in rows), "a row names every input"
        given = {name: [row[name] for row in rows] for name in inputs}
    elif not is_object(given):
        given = {next(iter(inputs)): given}
    assert given.keys() == inputs.keys()
    made = {}
    for name, spec in inputs.items():
        value = np.array(leaves(given[name], spec.dtype))
        made[name] = tf.constant(value.tolist(), spec.dtype, value.shape)
        assert spec.shape.is_compatible_with(made[name].shape)
    return made


def is_object(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() != {"b64"}


def leaves(value: Any, dtype: tf.DType) -> Any:
    """Decodes bytes, and refuses what is not of the tensor's type."""
    if isinstance(value, list):
        return [leaves(child, dtype) for child in value]
    if isinstance(value, dict):
        assert dtype == tf.string
        return base64.b64decode(value["b64"], validate=True)
    kinds = {tf.string: str, tf.float32: int | float, tf.int32: int, tf.int64: int}
    assert isinstance(value, kinds[dtype]) and not isinstance(value, bool)
    return value.encode() if dtype == tf.string else value


def as_json(outputs: Mapping[str, tf.Tensor], by_rows: bool) -> dict[str, Any]:
    """Makes the body of an answer, as the REST API does."""

    def plain(value):
        if isinstance(value, list):
            return [plain(child) for child in value]
        return value.decode() if isinstance(value, bytes) else value

    values = {name: plain(value.numpy().tolist()) for name, value in sorted(outputs.items())}
    if not by_rows:
        return {"outputs": values if len(values) > 1 else next(iter(values.values()))}
    rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    return {"predictions": rows if len(values) > 1 else next(iter(values.values()))}


def names(answer: Mapping[str, Any]) -> list[str]:
    """The names of the outputs in an answer; none where there is one output."""
    (value,) = answer.values()
    told = value[0] if isinstance(value, list) else value
    return sorted(told) if isinstance(told, dict) else []


def answer(function, protos: Mapping[str, Any]) -> dict[str, tf.Tensor]:
    """Calls a signature with the protos of its inputs, whose types and ranks must be its own."""
    inputs = {}
    for name, spec in specs(function).items():
        value = tf.constant(tf.make_ndarray(protos[name]))
        assert value.dtype == spec.dtype and spec.shape.is_compatible_with(value.shape), name
        inputs[name] = value
    assert protos.keys() == inputs.keys()
    return function(**inputs)


def warm_requests(file: Path) -> list[tuple[str, str, dict[str, Any]]]:
    """Reads a warm-up file by a protocol buffer of its own: model, signature, inputs by name."""
    log = _prediction_log()
    found = []
    for record in tf.data.TFRecordDataset(str(file)).as_numpy_iterator():
        message = log.FromString(record)
        assert message.SerializeToString() == record
        asked = message.predict_log.request
        inputs = {entry.key: entry.value for entry in asked.inputs}
        protos = {key: tf.make_tensor_proto(0) for key in inputs}
        for key, value in inputs.items():
            protos[key].ParseFromString(value)
        found.append((asked.model_spec.name, asked.model_spec.signature_name, protos))
    return found


def _prediction_log():
    """Declares the server's messages, as far as a request to predict needs them."""
    fields = {
        "ModelSpec": [("name", 1, "TYPE_STRING"), ("signature_name", 3, "TYPE_STRING")],
        "Entry": [("key", 1, "TYPE_STRING"), ("value", 2, "TYPE_BYTES")],
        "PredictRequest": [("model_spec", 1, "ModelSpec"), ("inputs", 2, "Entry")],
        "PredictLog": [("request", 1, "PredictRequest")],
        "PredictionLog": [("predict_log", 6, "PredictLog")],
    }
    file = descriptor_pb2.FileDescriptorProto(name="prediction_log.proto", syntax="proto3")
    for message, parts in fields.items():
        declared = file.message_type.add(name=message)
        for name, number, kind in parts:
            field = declared.field.add(name=name, number=number)
            field.label = field.LABEL_REPEATED if name == "inputs" else field.LABEL_OPTIONAL
            if kind.startswith("TYPE_"):
                field.type = field.Type.Value(kind)
            else:
                field.type, field.type_name = field.TYPE_MESSAGE, f".{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("PredictionLog"))
