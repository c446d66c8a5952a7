"""The generated sentences and their translations as a TensorFlow dataset."""

from collections.abc import Iterable, Iterator

import tensorflow_datasets as tfds

from rnnapps.data.datasets.sample_translation import grammar


class Builder(tfds.core.GeneratorBasedBuilder):
    """Generates the bundled sample of the translation task, without a download.

    Each example holds `source`, an English sentence, and `target`, its Italian translation. What
    they are made of is explained in `grammar`. The splits `train`, `dev` and `test` share no
    source; `dev` and `test` are new sentences of words that are frequent in `train`.

    Example:

    >>> builder = Builder(data_dir="data")
    >>> builder.download_and_prepare()
    >>> sorted(next(iter(builder.as_dataset(split="train"))))
    ['source', 'target']
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "First release."}

    def _info(self) -> tfds.core.DatasetInfo:
        return tfds.core.DatasetInfo(
            builder=self,
            description=(
                "English sentences and their Italian translations, generated from a small "
                "synchronous grammar: agreement, articles, clitic pronouns, subjects left out, and "
                "the choice of tenses and auxiliaries are what a translator has to learn."
            ),
            features=tfds.features.FeaturesDict(
                {"source": tfds.features.Text(), "target": tfds.features.Text()}
            ),
            supervised_keys=("source", "target"),
        )

    def _split_generators(self, dl_manager: tfds.download.DownloadManager) -> dict[str, Iterator]:
        del dl_manager  # nothing is downloaded
        splits = grammar.splits()
        return {split: self._generate_examples(splits[split]) for split in splits}

    def _generate_examples(self, pairs: Iterable[grammar.Pair]) -> Iterator[tuple[int, dict]]:
        for key, pair in enumerate(pairs):
            yield key, pair._asdict()
