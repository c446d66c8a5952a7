"""The exported models on a page of this machine, to be asked in the browser.

    python -m pip install '.[demo]'
    python pipelines/demo.py                                        # http://127.0.0.1:7860
    python pipelines/demo.py --models saved_models --port 7861

Every model in `saved_models` has a tab, its newest version. The page is served on 127.0.0.1 only,
and nothing on it comes from anywhere else.
"""

import sys

from rnnapps.demo.command import main

if __name__ == "__main__":
    sys.exit(main())
