"""The generated reviews as a TensorFlow dataset."""

import itertools
from collections.abc import Iterable, Iterator

import tensorflow_datasets as tfds

from rnnapps.data.datasets.sample_reviews import grammar


class Builder(tfds.core.GeneratorBasedBuilder):
    """Generates the bundled sample of the sentiment task, without a download.

    Each example holds `text`, one short review, and `label`, "negative" or "positive". What decides
    the label is explained in `grammar`. The splits `train`, `dev` and `test` share no text.

    Example:

    >>> builder = Builder(data_dir="data")
    >>> builder.download_and_prepare()
    >>> sorted(next(iter(builder.as_dataset(split="train"))))
    ['label', 'text']
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "First release."}

    def _info(self) -> tfds.core.DatasetInfo:
        return tfds.core.DatasetInfo(
            builder=self,
            description=(
                "Short reviews of films, books, cafés, restaurants and hotels, generated from a "
                "small grammar in which negation, contrast and distance decide the label, so that "
                "counts of words cannot."
            ),
            features=tfds.features.FeaturesDict(
                {
                    "text": tfds.features.Text(),
                    "label": tfds.features.ClassLabel(names=list(grammar.LABELS)),
                }
            ),
            supervised_keys=("text", "label"),
        )

    def _split_generators(self, dl_manager: tfds.download.DownloadManager) -> dict[str, Iterator]:
        del dl_manager  # nothing is downloaded
        reviews = grammar.reviews()
        return {
            split: self._generate_examples(list(itertools.islice(reviews, size)))
            for split, size in grammar.SPLIT_SIZES.items()
        }

    def _generate_examples(self, reviews: Iterable[grammar.Review]) -> Iterator[tuple[int, dict]]:
        for key, review in enumerate(reviews):
            yield key, {"text": review.text, "label": review.label}
