"""The requests that warm a server, beyond what the tests of the tasks ask of their exports."""

import numpy as np
import pytest
import tensorflow as tf

from rnnapps import warm_up
from tests import server_requests

INPUTS = {
    "serving_default": {"text": tf.constant(["a", "b"])},
    "decode": {"text": tf.constant(["a" * 300, ""]), "beam": tf.constant(3)},
}


def arrays(inputs):
    return {name: tf.make_ndarray(value).tolist() for name, value in inputs.items()}


@pytest.mark.parametrize("every_signature", [False, True])
def test_the_first_rows_are_asked(every_signature, tmp_path):
    warm_up.write(tmp_path, "model", INPUTS)
    warm_up.write(tmp_path, "model", INPUTS, every_signature)  # in the place of the others
    first, *others = server_requests.warm_requests(tmp_path / warm_up.FILE)
    assert first[:2] == ("model", "serving_default") and arrays(first[2]) == {"text": [b"a"]}
    assert [arrays(inputs) for _, _, inputs in others] == (
        [{"text": [b"a" * 300], "beam": 3}] if every_signature else []
    )


@pytest.mark.parametrize("length", [1, 127, 128, 16_383, 16_384, 2**21 + 1])
def test_fields_of_any_length_are_read_back(length, tmp_path):
    inputs = {"image": tf.constant([b"x" * length]), "seed": tf.constant([2**40], tf.int64)}
    (tmp_path / "assets.extra").mkdir()
    with tf.io.TFRecordWriter(str(tmp_path / warm_up.FILE)) as writer:
        writer.write(warm_up.request("m" * length, "s", inputs))
    ((model, signature, found),) = server_requests.warm_requests(tmp_path / warm_up.FILE)
    assert (model, signature) == ("m" * length, "s")
    assert {name: tf.make_ndarray(value).dtype for name, value in found.items()} == {
        "image": np.dtype(object),
        "seed": np.dtype(np.int64),
    }
    assert arrays(found) == {"image": [b"x" * length], "seed": [2**40]}
