"""What docs/migration.md says of TensorFlow Addons' equations holds, by their own definitions."""

import itertools
import re

import numpy as np
import tensorflow as tf
from scipy.special import expit, logsumexp

from rnnapps import layers
from rnnapps.layers import crf
from tests.docs.markdown import ROOT

# What the two packages have for recurrent models, as their `__init__` files and the catalogue list.
RNN = "NASCell LayerNormLSTMCell LayerNormSimpleRNNCell ESNCell PeepholeLSTMCell ESN CRF"
TEXT = """crf_binary_score crf_constrained_decode crf_decode crf_decode_backward crf_decode_forward
crf_filtered_inputs crf_forward crf_log_likelihood crf_log_norm crf_multitag_sequence_score
crf_sequence_score crf_unary_score viterbi_decode CrfDecodeForwardRnnCell CRFModelWrapper"""
SEQ2SEQ = """AttentionMechanism AttentionWrapper AttentionWrapperState BahdanauAttention
BahdanauMonotonicAttention LuongAttention LuongMonotonicAttention hardmax monotonic_attention
safe_cumprod BasicDecoder BasicDecoderOutput BeamSearchDecoder gather_tree gather_tree_from_array
tile_batch BaseDecoder Decoder dynamic_decode SequenceLoss sequence_loss CustomSampler
GreedyEmbeddingSampler InferenceSampler SampleEmbeddingSampler Sampler
ScheduledEmbeddingTrainingSampler ScheduledOutputTrainingSampler TrainingSampler"""
OPENNMT = """RNNEncoder LSTMEncoder GNMTEncoder RNMTPlusEncoder PyramidalRNNEncoder RNNDecoder
AttentionalRNNDecoder RNMTPlusDecoder CopyBridge ZeroBridge DenseBridge SequenceToSequence
SequenceTagger SequenceClassifier LanguageModel ListenAttendSpell LuongAttention NMTBigV1
NMTMediumV1 NMTSmallV1 LstmCnnCrfTagger WordEmbedder CharConvEmbedder CharRNNEmbedder
MixedInputter ParallelInputter SequenceRecordInputter train eval infer export score
average_checkpoints update_vocab"""


def test_every_part_is_named_in_a_table():
    page = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")
    rows = [row.split("|")[1] for row in re.findall(r"^\|.*", page, re.MULTILINE)]
    named = {name for row in rows for name in re.findall(r"\w+", row)}
    assert set(f"{RNN} {TEXT} {SEQ2SEQ} {OPENNMT}".split()) <= named


def test_peephole_weights_go_over():
    """The Addons cell, written out with its seven arrays, gives what the layer gives."""
    random = np.random.default_rng(0)
    kernel, recurrent, bias = (random.normal(size=s) for s in ((3, 16), (4, 16), (16,)))
    p_i, p_f, p_o = random.normal(size=(3, 4))
    x = random.normal(size=(2, 5, 3))
    h = c = np.zeros((2, 4))
    expected = []
    for t in range(5):
        i, f, g, o = np.split(x[:, t] @ kernel + h @ recurrent + bias, 4, axis=1)
        i, f = expit(i + p_i * c), expit(f + p_f * c)
        c = f * c + i * np.tanh(g)
        h = expit(o + p_o * c) * np.tanh(c)
        expected.append(h)
    layer = layers.LSTM(4, peephole=True, return_sequences=True)
    layer.build((None, None, 3))
    layer.set_weights([kernel, recurrent, bias, np.concatenate([p_i, p_f, p_o])])
    np.testing.assert_allclose(layer(x), np.stack(expected, axis=1), atol=1e-5)


def test_crf_functions_are_those_of_the_addons():
    """All sequences of a length, one by one, give the numbers that the page shows."""
    emissions = np.array([[[1, 0], [0, 2], [0, 1]], [[1, 0], [0, 0], [0, 0]]], "float32")
    transitions, tags = np.array([[0, 0.5], [0, 0]], "float32"), np.array([[0, 1, 1], [0, 0, 0]])
    bitmap = np.array([[[True, True], [True, False], [True, True]]] * 2)
    mask = tf.sequence_mask([3, 1], 3)
    allowed = tf.where(bitmap, emissions, -np.inf)
    found = crf.log_likelihood(emissions, tags, transitions, mask=mask).numpy()
    multitag = crf.log_partition(allowed, transitions, mask=mask).numpy()
    for row, length in enumerate([3, 1]):

        def score(y, row=row):
            unary = sum(emissions[row, t, tag] for t, tag in enumerate(y))
            return unary + sum(transitions[pair] for pair in itertools.pairwise(y))

        every = list(itertools.product(range(2), repeat=length))
        log_norm = logsumexp([score(y) for y in every])
        given = score(tuple(tags[row, :length]))
        np.testing.assert_allclose(found[row], given - log_norm, atol=1e-5)
        kept = [y for y in every if all(bitmap[row, t, tag] for t, tag in enumerate(y))]
        np.testing.assert_allclose(multitag[row], logsumexp([score(y) for y in kept]), atol=1e-5)


def test_attention_weights_go_over():
    random = np.random.default_rng(0)
    query_layer, memory_layer, v = (random.normal(size=s) for s in ((4, 8), (3, 8), (8,)))
    query, memory = random.normal(size=(2, 4)), random.normal(size=(2, 5, 3))
    scores = (np.tanh((query @ query_layer)[:, None] + memory @ memory_layer) * v).sum(-1)
    expected = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    layer = layers.AdditiveAttention(8)
    layer(query[:, None], memory)
    layer.query_kernel.assign(query_layer)
    layer.value_kernel.assign(memory_layer)
    layer.score.assign(v[:, None])
    np.testing.assert_allclose(layer(query[:, None], memory)[1][:, 0], expected, atol=1e-5)

    kernel = random.normal(size=(3, 4))
    scores = np.einsum("bq,bsq->bs", query, memory @ kernel)
    layer = layers.MultiplicativeAttention()
    layer(query[:, None], memory)
    layer.kernel.assign(kernel)
    expected = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(layer(query[:, None], memory)[1][:, 0], expected, atol=1e-5)
