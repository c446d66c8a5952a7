"""Translation: how do others say it? (many-to-many, encoder-decoder)

    python pipelines/translation.py                                 # bundled sample, offline
    python pipelines/translation.py train --data pairs.tsv
    python pipelines/translation.py train --data train.en,train.de --dev_data val.en,val.de
    python pipelines/translation.py evaluate --model saved_models/translation/1
    python pipelines/translation.py predict --model saved_models/translation/1 --beam 5 --nbest 3 \\
        --attention attention.png "Do you want to dance with me?"
    python pipelines/translation.py tune --data pairs.tsv --trials 10
    python pipelines/translation.py export --run runs/translation/1

Text → subwords → embedding → bidirectional recurrent layers → decoder with attention, which writes
subword after subword → beam search → text. `translation.yaml` beside this file lists every setting;
`train --config FILE` reads such a file.
"""

import sys

from rnnapps.cli import main
from rnnapps.tasks.translation import Translation

if __name__ == "__main__":
    sys.exit(main(Translation))
