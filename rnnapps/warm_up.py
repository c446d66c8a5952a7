"""The requests that TensorFlow Serving replays, so that the first one of a user finds it warm.

It reads them from `assets.extra/tf_serving_warmup_requests` of a version, a TFRecord file of
`PredictionLog` messages, before it answers anything. The file is written without the server's own
package, of which it needs these fields (their numbers are from the server's `.proto` files):

    PredictionLog   6: predict_log
    PredictLog      1: request
    PredictRequest  1: model_spec   2: inputs, a map to TensorProto
    ModelSpec       1: name         3: signature_name
"""

from collections.abc import Mapping
from pathlib import Path

import tensorflow as tf

FILE = Path("assets.extra") / "tf_serving_warmup_requests"


def write(
    version: Path,
    name: str,
    inputs: Mapping[str, Mapping[str, tf.Tensor]],
    every_signature: bool = False,
) -> None:
    """Writes a version's requests, in the place of those that it has.

    Args:
        version: the version's folder.
        name: the model's name.
        inputs: tensors by signature and name; the first row of each is asked. It is one row because
            a server may have been told to take no more at once.
        every_signature: whether those with a number for the whole batch, such as `decode`, are
            asked too. A server that batches refuses such a request, and then the whole version.
            Default: `False`.
    """
    file = version / FILE
    file.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(file)) as writer:
        for signature, tensors in inputs.items():
            if every_signature or all(tensor.shape.rank for tensor in tensors.values()):
                first = {
                    key: value[:1] if value.shape.rank else value for key, value in tensors.items()
                }
                writer.write(request(name, signature, first))


def request(name: str, signature: str, inputs: Mapping[str, tf.Tensor]) -> bytes:
    """Makes the record of one request.

    Args:
        name: the model's name.
        signature: the signature's name.
        inputs: its inputs by name.

    Returns:
        A serialised `PredictionLog`.
    """
    model_spec = _field(1, name.encode()) + _field(3, signature.encode())
    predict_request = _field(1, model_spec)
    for key, value in inputs.items():
        tensor = tf.make_tensor_proto(value.numpy()).SerializeToString()
        predict_request += _field(2, _field(1, key.encode()) + _field(2, tensor))
    return _field(6, _field(1, predict_request))


def _field(number: int, content: bytes) -> bytes:
    """Writes a field of bytes, a text or a message, as protocol buffers do."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Writes a number, seven bits a byte, the lowest first; all but the last have the high bit."""
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + _varint(rest) if rest else bytes([low])
