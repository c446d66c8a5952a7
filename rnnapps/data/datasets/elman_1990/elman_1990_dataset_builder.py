"""Elman's simple sentences as a TensorFlow dataset."""

import itertools
from collections.abc import Iterable, Iterator

import tensorflow_datasets as tfds

from rnnapps.data.datasets.elman_1990 import grammar


class Builder(tfds.core.GeneratorBasedBuilder):
    """Generates the sentences of Elman's experiment on word classes, without a download.

    Each example holds `text`, two or three words separated by blanks. How they are drawn, and which
    words make a class, is told in `grammar`. There are only 252 sentences, so those of `dev` and
    `test` necessarily stand in `train` too: the splits are draws from the same distribution, on
    which perplexity can be compared with its lower bound.

    Example:

    >>> builder = Builder(data_dir="data")
    >>> builder.download_and_prepare()
    >>> sorted(next(iter(builder.as_dataset(split="train"))))
    ['text']
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "First release."}

    def _info(self) -> tfds.core.DatasetInfo:
        return tfds.core.DatasetInfo(
            builder=self,
            description=(
                "Sentences of two or three words, drawn from the templates with which Elman (1990) "
                "let a simple recurrent network discover classes of words."
            ),
            features=tfds.features.FeaturesDict({"text": tfds.features.Text()}),
        )

    def _split_generators(self, dl_manager: tfds.download.DownloadManager) -> dict[str, Iterator]:
        del dl_manager  # nothing is downloaded
        sentences = grammar.sentences()
        return {
            split: self._generate_examples(list(itertools.islice(sentences, size)))
            for split, size in grammar.SPLIT_SIZES.items()
        }

    def _generate_examples(self, sentences: Iterable[str]) -> Iterator[tuple[int, dict]]:
        for key, sentence in enumerate(sentences):
            yield key, {"text": sentence}
