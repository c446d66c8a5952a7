"""Named entities: who, where and what is spoken of? (many-to-many, in lockstep)

    python pipelines/ner.py                                         # bundled sample, offline
    python pipelines/ner.py train --data train.conll --dev_data dev.conll --test_data test.conll
    python pipelines/ner.py evaluate --model saved_models/ner/1
    python pipelines/ner.py predict --model saved_models/ner/1 "Luke joined Google in May."
    python pipelines/ner.py tune --data train.conll --trials 10
    python pipelines/ner.py export --run runs/ner/1

Text → tokens → word, character and casing embeddings → dropout → bidirectional recurrent layers →
CRF. `ner.yaml` beside this file lists every setting; `train --config FILE` reads such a file. Other
tags, such as parts of speech, are another column: `--tag_column 1`.
"""

import sys

from rnnapps.cli import main
from rnnapps.tasks.ner import Ner

if __name__ == "__main__":
    sys.exit(main(Ner))
