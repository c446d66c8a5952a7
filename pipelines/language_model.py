"""Language modelling: what comes next? (many-to-many, causal)

    python pipelines/language_model.py                              # bundled sample, offline
    python pipelines/language_model.py train --data book.txt --level char
    python pipelines/language_model.py evaluate --model saved_models/language_model/1
    python pipelines/language_model.py predict --model saved_models/language_model/1 "x = "
    python pipelines/language_model.py predict --model saved_models/language_model/1 --score "x = 1"
    python pipelines/language_model.py tune --data book.txt --trials 10
    python pipelines/language_model.py export --run runs/language_model/1

Text → tokens → embedding → dropout → recurrent layers → dropout → softmax over the next token.
`language_model.yaml` beside this file lists every setting; `train --config FILE` reads such a file.
The sample is small programs; the command without arguments ends with one that the model wrote.
"""

import sys

from rnnapps.cli import main
from rnnapps.tasks.language_model import LanguageModel

if __name__ == "__main__":
    sys.exit(main(LanguageModel))
