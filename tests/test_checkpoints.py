"""A checkpoint back from its file."""

import numpy as np

from rnnapps import checkpoints


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path):
    arrays = [np.float32([[0.1, np.pi]]), np.int64(7), np.uint32([5, 0]), *np.eye(12)]
    progress = {"epoch": 3, "best": 0.1 + 0.2, "history": {"loss": [0.1]}, "plateau": None}
    checkpoints.write(tmp_path / "last.npz", progress, arrays)
    kept, again = checkpoints.read(tmp_path / "last.npz")
    assert kept == progress and len(again) == len(arrays)
    for one, other in zip(arrays, again, strict=True):
        assert one.dtype == other.dtype and np.array_equal(one, other)
    assert [file.name for file in tmp_path.iterdir()] == ["last.npz"]
