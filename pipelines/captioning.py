"""Captioning: what is there to see? (one-to-many)

    python pipelines/captioning.py                                  # bundled sample, offline
    python pipelines/captioning.py train --data captions.csv --images photos/
    python pipelines/captioning.py train --data Flickr8k.token.txt --images photos.zip \\
        --train_images train.txt --dev_images dev.txt --test_images test.txt \\
        --image_encoder EfficientNetV2B0
    python pipelines/captioning.py evaluate --model saved_models/captioning/1
    python pipelines/captioning.py predict --model saved_models/captioning/1 dog.jpg holidays/
    python pipelines/captioning.py tune --data captions.csv --images photos/ --trials 10
    python pipelines/captioning.py export --run runs/captioning/1

Image → convolutional network → regions → decoder with attention, which writes word after word →
beam search → text. `captioning.yaml` beside this file lists every setting; `train --config FILE`
reads such a file.
"""

import sys

from rnnapps.cli import main
from rnnapps.tasks.captioning import Captioning

if __name__ == "__main__":
    sys.exit(main(Captioning))
