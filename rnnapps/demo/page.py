"""The page: a tab for each model, on this machine alone."""

import contextlib
import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import gradio as gr

from rnnapps import serving
from rnnapps.demo.captioning import MOST_BYTES, CaptioningTab
from rnnapps.demo.found import Found
from rnnapps.demo.language_model import LanguageModelTab
from rnnapps.demo.ner import NerTab
from rnnapps.demo.sentiment import SentimentTab
from rnnapps.demo.tab import Tab
from rnnapps.demo.translation import TranslationTab
from rnnapps.errors import UserError

log = logging.getLogger("rnnapps")

ADDRESS = "127.0.0.1"

TABS: dict[str, type[Tab]] = {
    "sentiment": SentimentTab,
    "ner": NerTab,
    "translation": TranslationTab,
    "captioning": CaptioningTab,
    "language_model": LanguageModelTab,
}
"""The tab of each task, by the name on its model cards."""

_STYLE = Path(__file__).with_name("page.css")


@contextlib.contextmanager
def opened(models: Sequence[Found], port: int) -> Iterator[str]:
    """Serves the page, until the block ends.

    Args:
        models: the models, of which those of tasks in `TABS` get a tab, in the tasks' order.
        port: where on 127.0.0.1 it is served.

    Returns:
        The page's address.

    Raises:
        UserError: there is no such model, or the port is taken.
    """
    models = _in_order(models)
    with tempfile.TemporaryDirectory(prefix="rnnapps-demo-") as uploads:
        os.environ["GRADIO_TEMP_DIR"] = uploads  # what is uploaded goes when the page does
        # Gradio asks its own server whether it is there, which no proxy could tell.
        others = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
        os.environ["no_proxy"] = f"{others},{ADDRESS}" if others else ADDRESS
        tabs = []
        for model in models:
            log.info("loading %s", model.version)
            tabs.append(TABS[model.task](model, serving.load(model.version)))
        page = _page(tabs)
        try:
            _, address, _ = page.launch(
                server_name=ADDRESS,
                server_port=port,
                share=False,
                prevent_thread_lock=True,
                quiet=True,
                max_file_size=MOST_BYTES,
                footer_links=[],
                run_history=False,
                enable_monitoring=False,
                ssr_mode=False,
                mcp_server=False,
                pwa=False,
                theme=_theme(),
                css_paths=[_STYLE],
            )
        except OSError as error:
            raise UserError(f"port {port} is taken: choose another with --port") from error
        try:
            yield address
        finally:
            page.close(verbose=False)


def _theme() -> gr.themes.Base:
    # Gradio brings these fonts; of the weight that it would take some letters are missing.
    return gr.themes.Default(
        primary_hue="blue",
        neutral_hue="slate",
        font=[gr.themes.LocalFont("Source Sans Pro", weights=(400, 700)), "sans-serif"],
        font_mono=[gr.themes.LocalFont("IBM Plex Mono", weights=(400, 700)), "monospace"],
    )


def _in_order(models: Sequence[Found]) -> list[Found]:
    for model in models:
        if model.task not in TABS:
            log.warning("%s has no tab: its task is %r", model.version, model.task)
    ordered = [model for task in TABS for model in models if model.task == task]
    if not ordered:
        raise UserError("there is no model to show")
    return ordered


def _page(tabs: Sequence[Tab]) -> gr.Blocks:
    with gr.Blocks(title="rnnapps", analytics_enabled=False) as page:
        gr.HTML(
            "<h1>rnnapps</h1><p>Recurrent networks, trained from scratch and answering on this "
            "machine.</p>",
            elem_id="heading",
            elem_classes="plain",
        )
        with gr.Tabs():
            for tab in tabs:
                with gr.Tab(tab.label, elem_id=tab.id_of("tab")):
                    tab.lay_out()
    return page
