"""Labels: names to ids and back, in memory and from a file."""

import tensorflow as tf

from rnnapps.data.labels import Labels


def test_labels(tmp_path):
    given = Labels(["negative", "neither nor", "positive"])
    file = tmp_path / "labels.txt"
    file.write_bytes(given.content())
    for labels in (given, Labels.load(file)):
        assert len(labels) == 3 and labels.names == given.names
        assert labels.ids(tf.constant(["positive", "negative", "odd"])).numpy().tolist() == [
            2,
            0,
            -1,
        ]
        assert labels.name_of(tf.constant([1, 2])).numpy().tolist() == [b"neither nor", b"positive"]
