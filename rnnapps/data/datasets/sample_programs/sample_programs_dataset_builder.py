"""The generated programs as a TensorFlow dataset."""

import itertools
from collections.abc import Iterable, Iterator

import tensorflow_datasets as tfds

from rnnapps.data.datasets.sample_programs import grammar


class Builder(tfds.core.GeneratorBasedBuilder):
    """Generates the bundled sample for language models of characters, without a download.

    Each example holds `text`, one short program in Python. What the programs are made of is
    explained in `grammar`. The splits `train`, `dev` and `test` share no program.

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
                "Short Python programs such as beginners write, generated from a small grammar: a "
                "model of characters that has learnt it writes programs that Python can parse."
            ),
            features=tfds.features.FeaturesDict({"text": tfds.features.Text()}),
        )

    def _split_generators(self, dl_manager: tfds.download.DownloadManager) -> dict[str, Iterator]:
        del dl_manager  # nothing is downloaded
        programs = grammar.programs()
        return {
            split: self._generate_examples(list(itertools.islice(programs, size)))
            for split, size in grammar.SPLIT_SIZES.items()
        }

    def _generate_examples(self, programs: Iterable[str]) -> Iterator[tuple[int, dict]]:
        for key, program in enumerate(programs):
            yield key, {"text": program}
