"""The generated pictures and their captions as a TensorFlow dataset."""

import itertools
from collections.abc import Iterable, Iterator

import tensorflow as tf
import tensorflow_datasets as tfds

from rnnapps.data.datasets.sample_scenes.canvas import SIZE
from rnnapps.data.datasets.sample_scenes.drawing import render
from rnnapps.data.datasets.sample_scenes.scene import Scene, splits
from rnnapps.data.datasets.sample_scenes.wording import captions


class Builder(tfds.core.GeneratorBasedBuilder):
    """Generates the bundled sample of the captioning task, without a download.

    Each example holds `image`, a picture of 64 by 64 pixels kept as PNG, `name`, that of its file,
    and `captions`, five sentences that each tell all that the picture shows. What there is to see
    is explained in `scene`, what is said of it in `wording`. The splits `train`, `dev` and `test`
    share no scene: those of `dev` and `test` are new combinations.

    Example:

    >>> builder = Builder(data_dir="data")
    >>> builder.download_and_prepare()
    >>> sorted(next(iter(builder.as_dataset(split="train"))))
    ['captions', 'image', 'name']
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "First release."}

    def _info(self) -> tfds.core.DatasetInfo:
        return tfds.core.DatasetInfo(
            builder=self,
            description=(
                "Pictures of small scenes and five captions of each, generated: shapes of several "
                "colours, sizes and numbers, one beside or above another, and dogs, cats and "
                "horses that run, sit, stand and jump in several places by day and by night, some "
                "with a ball."
            ),
            features=tfds.features.FeaturesDict(
                {
                    "image": tfds.features.Image(shape=(SIZE, SIZE, 3), encoding_format="png"),
                    "name": tfds.features.Text(),
                    "captions": tfds.features.Sequence(tfds.features.Text()),
                }
            ),
            supervised_keys=("image", "captions"),
        )

    def _split_generators(self, dl_manager: tfds.download.DownloadManager) -> dict[str, Iterator]:
        del dl_manager  # nothing is downloaded
        numbers = itertools.count()
        return {
            split: self._generate_examples([(next(numbers), scene) for scene in scenes])
            for split, scenes in splits().items()
        }

    def _generate_examples(self, scenes: Iterable[tuple[int, Scene]]) -> Iterator[tuple]:
        for number, scene in scenes:
            name = f"scene-{number:06d}.png"
            image = tf.io.encode_png(render(scene, seed=number)).numpy()
            yield name, {"image": image, "name": name, "captions": captions(scene)}
