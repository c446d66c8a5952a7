"""The tab of a captioning model: captions, and where it looked for each word."""

import tempfile
from pathlib import Path
from typing import Any

import gradio as gr
import numpy as np
import sklearn.datasets
import tensorflow as tf
from gradio.utils import get_upload_folder
from matplotlib import cbook

from rnnapps.data import images
from rnnapps.data.datasets.sample_scenes.drawing import render
from rnnapps.data.datasets.sample_scenes.scene import HELD_OUT, Animals, splits
from rnnapps.data.printable import printable
from rnnapps.data.segmentation import labels
from rnnapps.demo.candidates import Candidates
from rnnapps.demo.tab import Tab, facts_line, panel, picture
from rnnapps.errors import UserError
from rnnapps.figures.image_attention import image_attention

MOST_BYTES = 10_000_000

_ANIMALS, _SHAPES = 2, 3
# A small image is drawn from more pixels than the model sees.
_LEAST_SIDE = 256


class CaptioningTab(Tab):
    """Describes an image, and draws the attention of the caption that is chosen."""

    title = "Captions"
    headline = ("bleu4", "cider")

    def lay_out(self) -> None:
        self._candidates = Candidates(self, "caption")
        examples = _scenes() if self.model.is_of_sample else _photographs()
        first = Path(examples[0]).read_bytes()
        found = self._candidates.find(
            self._candidates.beam_width, self._candidates.shown, image=first
        )
        best = next(iter(found), "")
        self.introduce(
            "What is there to see? A beam search writes several captions; of the one that is "
            "chosen the picture shows where it looked when it wrote each word."
        )
        answered = gr.State(examples[0])
        with gr.Row():
            with gr.Column(scale=5):
                image = gr.Image(
                    examples[0],
                    type="filepath",
                    sources=["upload", "clipboard"],
                    label="Image",
                    height=280,
                    buttons=[],
                    elem_id=self.id_of("image"),
                    elem_classes="fitted",
                )
                # What is wrong with an image the model's own decoder says, in place of Gradio's.
                image.preprocess = lambda payload: payload and payload.path
                button = gr.Button("Describe", variant="primary", elem_id=self.id_of("answer"))
                mistake = self.mistakes()
                clicked = self.examples(image, examples)
            with gr.Column(scale=6):
                caption = gr.Textbox(
                    best,
                    label="Caption",
                    interactive=False,
                    buttons=["copy"],
                    elem_id=self.id_of("caption"),
                )
                chosen = self._candidates.choice("Candidates, best first", found)
                with gr.Accordion("Settings of the search", open=False):
                    settings = self._candidates.settings()
        seen = gr.HTML(
            self._look(first, best), elem_id=self.id_of("attention"), elem_classes="plain"
        )
        self.connect(
            self._answer,
            [image, *settings],
            [caption, chosen, answered, seen],
            mistake,
            [button.click, image.upload, clicked.load_input_event.then],
        )
        self.connect(self._look_again, [answered, chosen], [seen], mistake, [chosen.input])
        self.tell_limits()

    def _answer(self, file: str | None, beam: int, nbest: int) -> tuple[str, Any, str | None, str]:
        encoded = _read(file)
        found = self._candidates.find(beam, nbest, image=encoded)
        best = next(iter(found), "")
        chosen = gr.Radio(**self._candidates.chosen(found))
        return printable(best), chosen, file, self._look(encoded, best)

    def _look_again(self, file: str, caption: str) -> tuple[str]:
        return (self._look(_read(file), caption),)

    def _look(self, encoded: bytes, caption: str) -> str:
        if "attention" not in self.served.signatures:
            return panel("Attention", facts_line("This model has no attention to draw."))
        seen = self.served.call("attention", image=[encoded], caption=[caption])
        config = self.model.config
        side = max(config["image_size"], _LEAST_SIDE)
        pixels, _ = images.decode(tf.constant(encoded), side, config["resizing"])
        drawn = image_attention(
            np.round(pixels.numpy()).astype("uint8"),
            labels(seen["tokens"][0]),
            np.array(seen["weights"][0]),
        )
        meaning = "The image once for each word; the brighter, the more it was looked at there."
        return panel("Attention", picture(drawn, meaning))


def _read(file: str | None) -> bytes:
    """Reads an image that can be described, or raises UserError."""
    if file is None:
        raise UserError("there is nothing to describe: choose an image")
    encoded = Path(file).read_bytes()
    if len(encoded) > MOST_BYTES:
        raise UserError(
            f"the image is too large: at most {MOST_BYTES:,} bytes are taken. "
            f"Received: {len(encoded):,}"
        )
    if fault := images.fault(encoded):
        raise UserError(f"the image cannot be read: {fault}")
    return encoded


def _scenes() -> list[str]:
    """Draws scenes that the sample's model has never seen; returns the files."""
    folder = Path(get_upload_folder())
    folder.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=folder))
    unseen = splits()["test"]
    animals = [scene for scene in unseen if isinstance(scene, Animals) and scene != HELD_OUT]
    shapes = [scene for scene in unseen if not isinstance(scene, Animals)]
    files = []
    for number, scene in enumerate([HELD_OUT, *animals[:_ANIMALS], *shapes[:_SHAPES]]):
        files.append(folder / f"scene-{number}.png")
        files[-1].write_bytes(tf.io.encode_png(render(scene, seed=number)).numpy())
    return list(map(str, files))


def _photographs() -> list[str]:
    """Returns the files of photographs that come with packages that this one needs anyway."""
    folder = Path(sklearn.datasets.__file__).parent / "images"
    grace_hopper = cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)
    return [str(folder / "china.jpg"), str(folder / "flower.jpg"), str(grace_hopper)]
