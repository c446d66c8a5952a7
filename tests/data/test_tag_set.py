"""Tags in the graph agree with the plain schemes."""

import hypothesis
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import strategies as st

from rnnapps.data.tag_set import TagSet
from rnnapps.data.tagging_schemes import Span, convert, tags_of

LENGTH = 7


def decoded(tensor):
    return [item.decode() for item in tensor.numpy().ravel()]


@st.composite
def sentences(draw):
    """Valid IOB2 tags of a sentence."""
    spans, start = [], 0
    while start < LENGTH:
        size = draw(st.integers(1, 3))
        kind = draw(st.sampled_from(["PER", "LOC", "a-b", None]))
        if kind:
            spans.append(Span(start, min(start + size, LENGTH), kind))
        start += size
    return tags_of(spans, LENGTH, "iob2")


@hypothesis.settings(max_examples=60, deadline=None)
@hypothesis.given(st.lists(sentences(), min_size=1, max_size=3))
@pytest.mark.parametrize("scheme", ["iob1", "iob2", "iobes"])
def test_there_and_back_are_the_schemes(scheme, rows):
    tags = TagSet.of(["O", "B-PER", "I-LOC", "B-a-b"], scheme)
    ids = tf.stack([tags.ids(tf.constant(row)) for row in rows])
    assert decoded(tags.labels.name_of(ids)) == sum((convert(r, "iob2", "iobes") for r in rows), [])
    assert decoded(tags.written(ids)) == sum((convert(row, "iob2", scheme) for row in rows), [])


def test_entities_have_every_tag_of_their_type():
    tags = TagSet.of(["B-Y", "O", "B-X", "I-X"], "iob2")
    assert tags.types == ["X", "Y"] and len(tags) == 9 and tags.labels.names[0] == "O"
    allowed = tags.allowed()
    names = list(tags.labels.names)
    assert not allowed.transitions[names.index("B-X"), names.index("E-Y")]
    assert tags.ids(tf.constant(["B-Z", "I-Z", "O"])).numpy().tolist() == [-1, -1, 0]


def test_tags_without_a_scheme_stay_as_they_are():
    tags = TagSet.of(["VB", "NN", "O", "B-52"], "none")
    assert tags.types == [] and tags.allowed() is None
    ids = tags.ids(tf.constant(["NN", "B-52", "O", "XX"]))
    assert ids.numpy().tolist() == [1, 0, 2, -1]
    assert decoded(tags.written(ids[None, :3])) == ["NN", "B-52", "O"]


def test_nothing_to_tag():
    for scheme in ("iob1", "iob2"):
        tags = TagSet.of(["B-X"], scheme)
        assert tags.ids(tf.zeros([0], tf.string)).shape == (0,)
        for shape in ([0, 4], [2, 0]):
            assert tags.written(tf.zeros(shape, tf.int32)).shape == shape


def test_a_file_brings_them_back(tmp_path):
    tags = TagSet.of(["B-X", "B-Y"], "iob1")
    (tmp_path / "tags.txt").write_bytes(tags.content())
    other = TagSet.load(tmp_path / "tags.txt", "iob1")
    ids = tf.constant([np.arange(9)])
    assert decoded(other.written(ids)) == decoded(tags.written(ids))
