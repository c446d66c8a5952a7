"""The generated sentences as a TensorFlow dataset."""

from collections.abc import Iterable, Iterator

import tensorflow_datasets as tfds

from rnnapps.data.datasets.sample_entities import grammar


class Builder(tfds.core.GeneratorBasedBuilder):
    """Generates the bundled sample of the named entity task, without a download.

    Each example holds `tokens`, the words and punctuation marks of one sentence, and `tags`, their
    IOB2 tags of the types PER, ORG, LOC and MISC. What decides them is explained in `grammar`. The
    splits `train`, `dev` and `test` share no sentence, and about half of the entities of `dev` and
    `test` hold a word that `train` does not.

    Example:

    >>> builder = Builder(data_dir="data")
    >>> builder.download_and_prepare()
    >>> sorted(next(iter(builder.as_dataset(split="train"))))
    ['tags', 'tokens']
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "First release."}

    def _info(self) -> tfds.core.DatasetInfo:
        return tfds.core.DatasetInfo(
            builder=self,
            description=(
                "Sentences with persons, organisations, places, nationalities, events and works, "
                "generated from a small grammar in which the same names stand for different "
                "things, so that only context can tell them apart."
            ),
            features=tfds.features.FeaturesDict(
                {
                    "tokens": tfds.features.Sequence(tfds.features.Text()),
                    "tags": tfds.features.Sequence(tfds.features.Text()),
                }
            ),
            supervised_keys=("tokens", "tags"),
        )

    def _split_generators(self, dl_manager: tfds.download.DownloadManager) -> dict[str, Iterator]:
        del dl_manager  # nothing is downloaded
        splits = grammar.splits()
        return {split: self._generate_examples(splits[split]) for split in splits}

    def _generate_examples(self, sentences: Iterable[grammar.Sentence]) -> Iterator[tuple]:
        for key, sentence in enumerate(sentences):
            yield key, {"tokens": sentence.tokens, "tags": sentence.tags}
