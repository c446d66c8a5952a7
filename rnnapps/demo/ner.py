"""The tab of a tagger: a text with its entities marked."""

from collections.abc import Mapping
from typing import Any

import gradio as gr

from rnnapps.data.entities import Entity, entities
from rnnapps.demo.tab import Tab, facts_line, panel, require_text, table
from rnnapps.figures.styles import STYLES

_MOST_CHARACTERS = 2_000


class NerTab(Tab):
    """Marks the entities of a text, or the tag of each token where the tags have no scheme."""

    title = "Named entities"
    headline = ("f1", "accuracy")

    _examples = (
        "Luke joined Google as a data scientist in Mountain View.",
        "In March Maria Rossi left Siemens in Munich for a small firm in Lisbon.",
        "The Italian team beat France in Rome, said Anna Weber of the Red Cross.",
        "Paris Hilton spoke in Paris about the University of Oxford.",
    )

    def lay_out(self) -> None:
        marked, listed = self._answer(self._examples[0])
        self.introduce("Who, where and what is spoken of? Each entity is marked with its type.")
        with gr.Row():
            with gr.Column(scale=5):
                text = gr.Textbox(
                    self._examples[0], label="Text", lines=4, elem_id=self.id_of("text")
                )
                button = gr.Button("Answer", variant="primary", elem_id=self.id_of("answer"))
                mistake = self.mistakes()
                examples = self.examples(text, self._examples)
            with gr.Column(scale=6):
                outputs = [
                    gr.HighlightedText(
                        marked,
                        label="Entities",
                        color_map=self._colours(),
                        elem_id=self.id_of("entities"),
                    ),
                    gr.HTML(listed, elem_id=self.id_of("list"), elem_classes="plain"),
                ]
        triggers = [button.click, text.submit, examples.load_input_event.then]
        self.connect(self._answer, [text], outputs, mistake, triggers)
        self.tell_limits()

    def _answer(self, text: str) -> tuple[list[tuple[str, str | None]], str]:
        (answer,) = self.served.predict([require_text(text, _MOST_CHARACTERS)])
        found = self._entities(text, answer)
        marked, position = [], 0
        for entity in found:
            marked += [(text[position : entity.start], None), (entity.text, entity.type)]
            position = entity.end
        marked.append((text[position:], None))
        return [(part, kind) for part, kind in marked if part], _listed(found)

    def _entities(self, text: str, answer: Mapping[str, Any]) -> list[Entity]:
        if self._scheme != "none":
            return entities(text, answer, self._scheme)
        # Every token is marked, as if it were an entity of its own.
        alone = {**answer, "tags": [f"B-{tag}" if tag else "" for tag in answer["tags"]]}
        return entities(text, alone, "iob2")

    def _colours(self) -> dict[str, str]:
        kinds = self.model.asset_lines("tags.txt")
        if self._scheme != "none":
            kinds = sorted({tag[2:] for tag in kinds if tag != "O"})
        return {kind: STYLES[i % len(STYLES)]["color"] for i, kind in enumerate(kinds)}

    @property
    def _scheme(self) -> str:
        return self.model.asset_lines("scheme.txt")[0]


def _listed(found: list[Entity]) -> str:
    if not found:
        return panel("Found", facts_line("The model finds no entity in this text."))
    rows = [
        (entity.text, entity.type, f"{entity.confidence:.1%}", f"{entity.start}–{entity.end}")
        for entity in found
    ]
    return panel("Found", table(("Entity", "Type", "Confidence", "Characters"), rows))
