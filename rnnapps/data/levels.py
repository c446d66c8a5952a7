"""What the tokens of a text may be."""

from rnnapps.data.segmentation import Characters, Segmentation, Words
from rnnapps.data.subwords import Subwords

LEVELS: dict[str, type[Segmentation]] = {"word": Words, "char": Characters, "subword": Subwords}
