"""The tab of a language model: a text that goes on from a prompt."""

import html

import gradio as gr

from rnnapps.data.printable import printable
from rnnapps.demo.tab import Tab, panel, require_short
from rnnapps.errors import UserError

_MOST_CHARACTERS = 2_000
_MOST_TOKENS = 2_000
_TEMPERATURE, _LENGTH = 0.7, {"char": 500, "word": 100}
_LARGEST_SEED = 2**31 - 1


class LanguageModelTab(Tab):
    """Goes on with a prompt, as surprisingly as the temperature says."""

    title = "Text generation"
    headline = ("perplexity", "bits_per_character")

    @property
    def _examples(self) -> tuple[str, ...]:
        if self.model.is_of_sample:
            return ("def f(a, b):\n", "x = 7\n", "for i in range(3):\n", "print(")
        return ("To be, or not to be", "The king ", "My lord, ", "O ")

    def lay_out(self) -> None:
        config = self.model.config
        tokens = "characters" if config["level"] == "char" else "words"
        length = min(_LENGTH[config["level"]], config["max_length"])
        first = self._examples[0]
        self.introduce(
            "What comes next? The model goes on with the prompt, token after token. At a low "
            "temperature it writes what is likeliest, at a high one what is surprising."
        )
        with gr.Row():
            with gr.Column(scale=5):
                prompt = gr.Textbox(first, label="Prompt", lines=4, elem_id=self.id_of("text"))
                temperature = gr.Slider(
                    *(0, 2, _TEMPERATURE),
                    step=0.05,
                    label="Temperature",
                    info="0 writes the likeliest token at each step",
                    elem_id=self.id_of("temperature"),
                )
                with gr.Row():
                    button = gr.Button("Write", variant="primary", elem_id=self.id_of("answer"))
                    again = gr.Button("Another", elem_id=self.id_of("another"))
                mistake = self.mistakes()
                examples = self.examples(prompt, self._examples)
                with gr.Accordion("More settings", open=False):
                    most = gr.Slider(
                        *(1, min(_MOST_TOKENS, config["max_length"]), length),
                        step=1,
                        label="Length",
                        info=f"The largest number of new {tokens}",
                        elem_id=self.id_of("length"),
                    )
                    top_k = gr.Slider(
                        *(0, 50, 0),
                        step=1,
                        label="Top k",
                        info="Draws from the k likeliest tokens; 0 for all",
                        elem_id=self.id_of("top-k"),
                    )
                    top_p = gr.Slider(
                        *(0.05, 1, 1),
                        step=0.05,
                        label="Top p",
                        info="Draws from the fewest tokens that have this probability; 1 for all",
                        elem_id=self.id_of("top-p"),
                    )
                    seed = gr.Number(
                        0,
                        precision=0,
                        label="Seed",
                        info="Another seed draws another text",
                        elem_id=self.id_of("seed"),
                    )
            with gr.Column(scale=6):
                (written,) = self._answer(first, _TEMPERATURE, length, 0, 1.0, 0)
                written = gr.HTML(written, elem_id=self.id_of("written"), elem_classes="plain")
        inputs = [prompt, temperature, most, top_k, top_p, seed]
        triggers = [button.click, examples.load_input_event.then]
        self.connect(self._answer, inputs, [written], mistake, triggers)
        self.connect(self._another, inputs, [written, seed], mistake, [again.click])
        self.tell_limits()

    def _answer(
        self,
        prompt: str,
        temperature: float,
        length: int,
        top_k: int,
        top_p: float,
        seed: int | None,
    ) -> tuple[str]:
        require_short(prompt, _MOST_CHARACTERS)
        if seed is None or not 0 <= seed <= _LARGEST_SEED:
            raise UserError(
                f"a seed is a whole number from 0 to {_LARGEST_SEED:,}. Received: {seed}"
            )
        written = self.served.call(
            "generate",
            prompt=[prompt],
            length=int(length),
            temperature=temperature,
            top_k=int(top_k),
            top_p=top_p,
            seed=[int(seed)],
        )["text"][0]
        given, new = (
            html.escape(printable(part, keep="\n\t"))
            for part in (written[: len(prompt)], written[len(prompt) :])
        )
        return (panel("Written", f"<pre class='written'><b>{given}</b>{new}</pre>"),)

    def _another(
        self,
        prompt: str,
        temperature: float,
        length: int,
        top_k: int,
        top_p: float,
        seed: int | None,
    ) -> tuple[str, int]:
        seed = 0 if seed is None else int(seed) + 1
        (written,) = self._answer(prompt, temperature, length, top_k, top_p, seed)
        return written, seed
