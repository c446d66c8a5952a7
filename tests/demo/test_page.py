"""The demo as a visitor meets it, in a real browser.

To renew the pictures in docs/demo, of the models in saved_models:

    python -m pytest -n 0 tests/demo/test_page.py --screenshots docs/demo
"""

import contextlib
import io
import itertools
import json
import math
import os
import shutil
import socket
import time
import urllib.parse
from pathlib import Path

import pytest
import tensorflow as tf
from PIL import Image

from rnnapps import export, serving
from rnnapps.data.datasets.sample_entities import grammar as entities_grammar
from rnnapps.data.datasets.sample_reviews import grammar as reviews_grammar
from rnnapps.data.datasets.sample_scenes.drawing import render
from rnnapps.data.datasets.sample_scenes.scene import HELD_OUT
from rnnapps.data.datasets.sample_scenes.wording import captions
from rnnapps.data.sources import from_lists
from rnnapps.data.tagged import as_fields
from rnnapps.demo.found import find
from rnnapps.errors import UserError
from rnnapps.tasks.captioning import Captioning, CaptioningConfig
from rnnapps.tasks.language_model import LanguageModel, LanguageModelConfig
from rnnapps.tasks.ner import Ner, NerConfig
from rnnapps.tasks.sentiment import Sentiment, SentimentConfig
from rnnapps.tasks.translation import Translation, TranslationConfig

SHIPPED = Path(__file__).parents[2] / "saved_models"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
WIDTH, SHORTEST, LONGEST = 1200, 500, 1500  # of a screenshot, in pixels
PATIENCE = 180  # seconds that an answer may take on a busy machine

gradio = pytest.importorskip("gradio", reason="Gradio, the extra `demo`, is not installed")
webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is not installed")
exceptions = pytest.importorskip("selenium.common.exceptions")
if not CHROMIUM or not DRIVER:
    pytest.skip("no Chromium with its driver is installed", allow_module_level=True)

from rnnapps.demo import page as demo  # noqa: E402  (it needs Gradio)


def untrained():
    """Makes an adapted task of each kind, from a few examples."""
    sizes = {"units": 4, "embedding_size": 4, "batch_size": 8, "buckets": 1}
    reviews = list(itertools.islice(reviews_grammar.reviews(), 40))
    texts = {"text": [r.text for r in reviews], "label": [r.label for r in reviews]}
    yield Sentiment(SentimentConfig(**sizes)), from_lists(texts, key="text")
    sentences = list(itertools.islice(entities_grammar.splits()["train"], 40))
    fields = as_fields([s.tokens for s in sentences], [s.tags for s in sentences], "auto")
    ner = NerConfig(**sizes, character_size=3, character_filters=3, casing_size=2)
    yield Ner(ner), from_lists(fields, key="tokens")
    numbers = {"one": "uno", "two": "due", "three": "tre", "four": "quattro"}
    pairs = [(f"{a} and {b}!", f"{numbers[b]} e {numbers[a]}.") for a in numbers for b in numbers]
    sides = dict(zip(("source", "target"), zip(*pairs, strict=True), strict=True))
    translation = TranslationConfig(**sizes, level="word", beam_width=3)
    yield Translation(translation), from_lists(sides, key="source")
    images = {
        "image": [tf.io.encode_png(render(HELD_OUT, seed)).numpy() for seed in range(8)],
        "name": [f"{seed}.png" for seed in range(8)],
        "captions": ["\n".join(captions(HELD_OUT))] * 8,
    }
    captioning = CaptioningConfig(**sizes, beam_width=2, image_size=32, min_count=1)
    yield Captioning(captioning), from_lists(images, key="name")
    lines = [f"{a} = {b}" for a in "abcde" for b in range(8)]
    yield (
        LanguageModel(LanguageModelConfig(**sizes, context="lines")),
        from_lists({"text": lines}, key="text", contiguous=True),
    )


@pytest.fixture
def models(tmp_path, monkeypatch):
    """The models of saved_models, and of each task that has none there, one that learnt nothing."""
    with contextlib.suppress(UserError):
        for model in find(SHIPPED):
            (tmp_path / model.name).symlink_to(model.version.parent.resolve())
    monkeypatch.setattr(export, "_check", lambda *_: None)  # which the tests of the tasks do
    for task, splits in untrained():
        if not (tmp_path / task.name).exists():
            task.adapt(splits["train"])
            metrics = {"test": {}, "parameters": 0, "seconds": 0, "examples": {}}
            export.write(task, task.build(), metrics, tmp_path / task.name)
    return find(tmp_path)


class Browser:
    """A browser at the page.

    Args:
        driver: Selenium's driver.
    """

    def __init__(self, driver):
        self.driver = driver

    def all(self, css):
        return self.driver.find_elements("css selector", css)

    def find(self, css):
        return self.until(lambda: self.all(css) or None)[0]

    def until(self, condition):
        """Waits for a value that is not None, and returns it.

        Meanwhile an element may be drawn anew, or lie below the sign that something is loading.
        """
        end = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(
                exceptions.StaleElementReferenceException,
                exceptions.ElementClickInterceptedException,
            ):
                if (value := condition()) is not None:
                    return value
            assert time.monotonic() < end, self.driver.find_element("css selector", "body").text
            time.sleep(0.05)

    def until_equal(self, expected, value):
        """Waits until something is as expected; says what it is where it does not become so."""
        seen = []

        def is_there():
            seen[:] = [value()]
            return True if seen == [expected] else None

        try:
            self.until(is_there)
        except AssertionError as error:
            raise AssertionError(f"{seen} in place of {expected!r}") from error

    def press(self, element):
        """Clicks what a function finds, as soon as nothing lies above it."""
        self.until(lambda: (element().click(), True))

    def text(self, css):
        """The text of an element, hidden parts too; None where there is no such element."""
        found = self.all(css)
        return found[0].get_property("textContent") if found else None

    def value(self, css):
        found = self.all(css)
        return found[0].get_property("value") if found else None

    def open_tab(self, name):
        def tab():
            return next((tab for tab in self.all("[role=tab]") if tab.text == name), None)

        self.until(tab)
        self.press(tab)

    def type(self, css, text):
        """Puts a text in the place of what stands in a field."""
        field = self.find(css)
        self.driver.execute_script(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input'))",
            field,
            text,
        )

    def click(self, css):
        self.press(lambda: self.find(css))

    def hosts(self):
        """Returns the hosts that were asked for anything since the last call."""
        asked = set()
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                given = message["params"]
                url = urllib.parse.urlsplit(given.get("url") or given["request"]["url"])
                if url.scheme not in ("data", "blob", "about", "chrome"):
                    asked.add(url.netloc)
        return asked


@pytest.fixture
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    flags = "headless=new no-sandbox disable-dev-shm-usage disable-background-networking"
    for flag in [*flags.split(), "hide-scrollbars", f"window-size={WIDTH},1000"]:
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield Browser(driver)
    driver.quit()


@pytest.fixture
def asked_hosts(monkeypatch):
    """The names of the hosts that this process asks for."""
    asked, look_up = set(), socket.getaddrinfo

    def recorded(host, *others, **more):
        asked.add(host)
        return look_up(host, *others, **more)

    monkeypatch.setattr(socket, "getaddrinfo", recorded)
    return asked


def free_port():
    with socket.socket() as probe:
        probe.bind((demo.ADDRESS, 0))
        return probe.getsockname()[1]


def sentiment(browser, model, served):
    here = f"#{model.name}"
    text = "A lovely film, but the end was bad."
    browser.type(f"{here}-text textarea", text)
    browser.click(f"{here}-answer")
    (whole, without) = served.predict([text, text.replace("lovely", "")])
    browser.until_equal(whole["label"], lambda: (browser.text(f"{here}-label h2") or "").strip())
    marked = f"{here}-words pre"
    browser.until_equal(text, lambda: browser.text(marked))
    chosen = model.asset_lines("labels.txt").index(whole["label"])
    one, other = (answer["probabilities"][chosen] for answer in (whole, without))
    bits = math.log2(one / (1 - one)) - math.log2(other / (1 - other))
    (word,) = [e for e in browser.all(f"{marked} span") if e.text == "lovely"]
    assert float(word.get_attribute("title")) == pytest.approx(bits, abs=0.011)
    # What cannot be answered is said in words, and no old answer stays.
    browser.type(f"{here}-text textarea", "long " * 300)
    browser.click(f"{here}-answer")
    told = "The text is too long: at most 1,000 characters are taken. Received: 1,500."
    browser.until_equal(told, lambda: browser.text(f"{here}-mistake [role=alert]"))
    assert not browser.text(marked)
    browser.click(f"{here}-examples button, {here}-examples .gallery-item")
    browser.until_equal(None, lambda: browser.text(f"{here}-mistake [role=alert]"))
    assert browser.text(marked) == browser.value(f"{here}-text textarea")


def ner(browser, model, served):
    here = f"#{model.name}"
    text = "Anna Weber left Google in Rome."
    browser.type(f"{here}-text textarea", text)
    browser.click(f"{here}-answer")
    (answer,) = served.predict([text])
    kinds = [tag[2:] for tag in answer["tags"] if tag[0] in "BS"]
    listed = f"{here}-list tbody td:nth-child(2)"
    browser.until_equal(kinds, lambda: [cell.text for cell in browser.all(listed)])
    marked = browser.text(
        f"{here}-entities .textfield, {here}-entities [data-testid=highlighted-text]"
    )
    assert all(word in marked for word in ("Anna", "Weber", "Google", "Rome"))


def translation(browser, model, served):
    here = f"#{model.name}"
    text = "one and two!"
    browser.type(f"{here}-text textarea", text)
    browser.click(f"{here}-answer")
    beam = model.config["beam_width"]
    found = served.call("decode", text=[text], beam=beam, nbest=min(3, beam))
    best, *others = dict.fromkeys(found["translation"][0])
    browser.until_equal(best, lambda: browser.value(f"{here}-translation textarea"))
    pictured(browser, f"{here}-attention")
    choose_last(browser, here, 1 + len(others))


def captioning(browser, model, served):
    here = f"#{model.name}"
    folder = Path(os.environ["GRADIO_TEMP_DIR"])
    content = tf.io.encode_png(render(HELD_OUT, seed=5)).numpy()
    (folder / "given.png").write_bytes(content)
    upload(browser, here, folder / "given.png")
    beam = model.config["beam_width"]
    found = served.call("decode", image=[content], beam=beam, nbest=min(3, beam))
    best, *others = dict.fromkeys(found["caption"][0])
    browser.until_equal(best, lambda: browser.value(f"{here}-caption :is(textarea, input)"))
    pictured(browser, f"{here}-attention")
    choose_last(browser, here, 1 + len(others))
    (folder / "broken.png").write_bytes(content[:100])
    upload(browser, here, folder / "broken.png")
    told = "The image cannot be read: a corrupt or truncated image."
    browser.until_equal(told, lambda: browser.text(f"{here}-mistake [role=alert]"))
    assert not browser.text(f"{here}-attention").strip()
    assert not browser.all(f"{here}-candidates label")


def upload(browser, here, file):
    for button in browser.all(f"{here}-image button[aria-label='Remove Image']"):
        button.click()
    browser.find(f"{here}-image input[type=file]").send_keys(str(file))


def pictured(browser, panel):
    """Waits for a picture that the browser can show."""
    shown = browser.until(lambda: next(iter(browser.all(f"{panel} img")), None))
    browser.until(lambda: int(shown.get_property("naturalWidth")) or None)
    return shown.get_attribute("src")


def choose_last(browser, here, count):
    """Chooses the last candidate, of which another picture is drawn if it is not the first."""
    before = pictured(browser, f"{here}-attention")
    labels = browser.until(
        lambda: (found := browser.all(f"{here}-candidates label")) and found or None
    )
    assert len(labels) == count
    if count > 1:
        browser.press(lambda: browser.all(f"{here}-candidates label")[-1])
        browser.until(lambda: pictured(browser, f"{here}-attention") != before or None)


def language_model(browser, model, served):
    here = f"#{model.name}"
    prompt = "a = "
    browser.type(f"{here}-text textarea", prompt)
    browser.type(f"{here}-temperature input[type=number]", "0")
    browser.click(f"{here}-answer")
    length = min(500 if model.config["level"] == "char" else 100, model.config["max_length"])
    settings = {"length": length, "top_k": 0, "top_p": 1.0, "seed": [0]}
    (written,) = served.call("generate", prompt=[prompt], temperature=0.0, **settings)["text"]
    browser.until_equal(written, lambda: browser.text(f"{here}-written pre"))


def shoot(browser, folder, name):
    """Keeps a picture of the open tab."""
    driver = browser.driver
    frame = driver.execute_script("return window.outerHeight - window.innerHeight")
    driver.set_window_size(WIDTH, SHORTEST)
    time.sleep(1)  # in which moving things come to rest
    height = driver.execute_script("return document.querySelector('gradio-app').scrollHeight")
    driver.set_window_size(WIDTH, min(height, LONGEST) + frame)
    time.sleep(0.5)
    folder.mkdir(parents=True, exist_ok=True)
    picture = Image.open(io.BytesIO(driver.get_screenshot_as_png()))
    picture.convert("RGB").save(folder / f"{name}.webp", quality=88, method=6)


CHECKS = {
    "sentiment": ("Sentiment", sentiment),
    "ner": ("Named entities", ner),
    "translation": ("Translation", translation),
    "captioning": ("Captions", captioning),
    "language_model": ("Text generation", language_model),
}


def test_each_tab_answers_what_its_model_does(models, browser, asked_hosts, monkeypatch, request):
    served, load = {}, serving.load

    def keep(version):
        served[version] = load(version)
        return served[version]

    monkeypatch.setattr(serving, "load", keep)
    tabs = {}
    for model in models:
        title, check = CHECKS[model.task]
        variant = model.name.removeprefix(model.task).lstrip("-")
        tabs[f"{title}: {variant}" if variant else title] = model, check
    assert {check for _, check in CHECKS.values()} == {check for _, check in tabs.values()}
    with demo.opened(models, free_port()) as address:
        browser.driver.get(address)
        for label, (model, _) in tabs.items():
            browser.open_tab(label)
            if folder := request.config.getoption("--screenshots"):
                shoot(browser, folder, model.name)
        for label, (model, check) in tabs.items():
            browser.open_tab(label)
            check(browser, model, served[model.version])
        assert browser.hosts() == {urllib.parse.urlsplit(address).netloc}
        assert asked_hosts <= {demo.ADDRESS, "localhost", None}
        with pytest.raises(UserError, match="--port"), demo.opened(models[:1], _port_of(address)):
            pass


def _port_of(address):
    return urllib.parse.urlsplit(address).port
