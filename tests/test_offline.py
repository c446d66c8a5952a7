"""Nothing is fetched and nothing is unpickled: every task from its files to its answers.

All run in one process, which keeps account of what it was asked to refuse. Where the system can, it
has no network either.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rnnapps

ROOT = Path(rnnapps.__file__).parents[1]

# Python runs it before all else, in every process that the first one starts too. Hooks see what
# compiled code does as well, such as the unpickler in C; nobody can take them away.
REFUSING = """
import os, pickle, sys

def refuse(told):
    with open(os.environ["REFUSED"], "a") as account:
        account.write(told + "\\\\n")
    raise OSError(f"refused: {told}")

def watch(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        if arguments[0].family not in (1, 16):  # between processes, and with the system
            refuse(f"{event} {arguments[1]}")
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        refuse(f"{event} {arguments[0]}")
    elif event == "pickle.find_class":
        refuse(f"{event} {arguments}")

def unpickle(*arguments, **options):
    refuse("pickle")

class Unpickler(pickle.Unpickler):
    load = unpickle

sys.addaudithook(watch)
pickle.load = pickle.loads = pickle._load = pickle._loads = unpickle
pickle.Unpickler, pickle._Unpickler.load = Unpickler, unpickle
""".replace("\\\\n", "\\n")

RUN = '''
import functools, json, os, sys
from pathlib import Path

import numpy as np
import yaml

from rnnapps import cli, export, processes, serving
from rnnapps.tasks.captioning import Captioning
from rnnapps.tasks.language_model import LanguageModel
from rnnapps.tasks.ner import Ner
from rnnapps.tasks.sentiment import Sentiment
from rnnapps.tasks.translation import Translation

from sitecustomize import refuse


def load(*arguments, plain=np.load, **options):
    if options.get("allow_pickle"):
        refuse("allow_pickle")
    return plain(*arguments, **options)


def load_yaml(stream, Loader, plain=yaml.load):
    if not issubclass(Loader, (yaml.SafeLoader, yaml.CSafeLoader, yaml.BaseLoader)):
        refuse(f"yaml.load by {Loader}")
    return plain(stream, Loader)


np.load, yaml.load = load, load_yaml


def check(module, version, probe, clean=export._check):
    """Loads one export in a process of its own, as always; the others are loaded to predict."""
    if version.parents[1].name == "language_model":
        clean(module, version, probe)


def ask(question, messages, task_class, config, hold=(), run=None, splits=None):
    """Answers here what a search asks of other processes."""
    task = Sentiment(Sentiment.Config(**config))
    if question == "survey":
        return processes.survey(task, splits) | {"memory": 0, "warnings": []}
    return processes.learn(task, run, splits) | {"memory": 0, "warnings": []}


export._check, processes.ask = check, ask


def command(task, *argv):
    print(task.name, *argv, flush=True)
    status = cli.main(task, argv=[str(argument) for argument in argv])
    assert status == 0, (task.name, argv, status)


def write(name, lines):
    Path(name).write_text("".join(f"{line}\\n" for line in lines), encoding="utf-8")
    return name


def images(count):
    import tensorflow as tf

    os.mkdir("images")
    for number in range(count):
        shade = tf.fill([8, 8, 3], tf.cast(number, tf.uint8))
        tf.io.write_file(f"images/{number}.png", tf.io.encode_png(shade))


numbers = range(60)
images(60)
words = ["one", "two", "three", "four", "five"]
given = {
    Sentiment: write(
        "x.csv", ["text,label", *(f"a {words[n % 2]} film {n},{n % 2}" for n in numbers)]
    ),
    Ner: write("x.conll", [f"film{n} O\\nRome B-LOC\\n." + " O\\n" for n in numbers]),
    Translation: write("x.tsv", [f"{words[n % 5]} {n}\\t{n} {words[n % 5]}" for n in numbers]),
    LanguageModel: write("x.txt", [f"{words[n % 5]} and {words[n % 4]}" for n in numbers]),
    Captioning: write("x.token.txt", [f"{n}.png#0\\tpicture {words[n % 5]}" for n in numbers]),
}
common = ["--units=4", "--embedding_size=4", "--epochs=1", "--buckets=1", "--batch_size=8"]
special = {
    Sentiment: ["--cell=elman", "--bidirectional=false"],
    Ner: ["--cell=elman", "--character_size=3", "--character_filters=3", "--casing_size=2"],
    Translation: ["--level=word", "--beam_width=1"],
    LanguageModel: ["--cell=elman", "--context=lines", "--window=10"],
    Captioning: ["--images=images", "--image_size=8", "--min_count=1", "--beam_width=1"],
}
question = {Captioning: "images/0.png"}
samples = {Sentiment: 500, LanguageModel: 500}
for task, data in given.items():
    run, versions = f"runs/{task.name}", f"saved/{task.name}"
    Path("run.yaml").write_text("seed: 3\\n")
    train = ["train", f"--data={data}", "--config=run.yaml", f"--out={run}", f"--export={versions}"]
    command(task, *train, *common, *special[task])
    command(task, "evaluate", f"--model={versions}/1", "--split=dev")
    command(task, "predict", f"--model={versions}/1", question.get(task, "one film"), "--json")
    assert serving.load(f"{versions}/1").signatures
    if task in samples:
        config = task.Config(data="sample")
        assert len(task(config).load()["dev"]) == samples[task]
command(Sentiment, "export", "--run=runs/sentiment", "--export=saved/sentiment")
command(
    Sentiment, "tune", "--trials=2", f"--data={given[Sentiment]}", "--out=search", *common,
    *special[Sentiment],
)
assert Path("search/best.yaml").exists()
print("done")
'''


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    """Runs a script that is refused connections and pickles, and lists what it was refused."""
    folder = tmp_path_factory.mktemp("refusing")
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(REFUSING)
    # A network of its own, which nothing is connected to.
    alone = ["unshare", "--map-root-user", "--net"]
    try:
        alone = [] if subprocess.run([*alone, "true"], capture_output=True).returncode else alone
    except OSError:
        alone = []
    paths = [folder / "site", ROOT, os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "REFUSED": str(folder / "refused.txt"),
        "TFDS_DATA_DIR": str(folder / "tfds"),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }

    def run(script):
        (folder / "refused.txt").write_text("")
        work = folder / f"work{len(list(folder.iterdir()))}"
        work.mkdir()
        done = subprocess.run(
            [*alone, sys.executable, "-c", script],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
        )
        return done, (folder / "refused.txt").read_text().splitlines()

    return run


def test_what_is_to_be_refused_is_refused(refusing):
    done, refused = refusing("""
import _pickle, pickle, socket, urllib.request
import numpy as np
from contextlib import suppress
np.save("x.npy", np.array(["a"], object))
content = pickle.dumps(socket.socket)
for attempt in (
    lambda: socket.create_connection(("127.0.0.1", 9)),
    lambda: socket.socket().connect_ex(("127.0.0.1", 9)),
    lambda: urllib.request.urlopen("http://example.com"),
    lambda: pickle.loads(content),
    lambda: _pickle.loads(content),
    lambda: np.load("x.npy", allow_pickle=True),
):
    with suppress(OSError):
        attempt()
        print("not refused")
""")
    assert done.returncode == 0 and not done.stdout, done.stderr
    kinds = [told.split()[0] for told in refused]
    assert kinds == [
        "socket.getaddrinfo", "socket.connect", "socket.getaddrinfo",
        "pickle", "pickle.find_class", "pickle",
    ]  # fmt: skip


def test_every_task_runs_offline_and_unpickles_nothing(refusing):
    done, refused = refusing(RUN)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stderr[-3_000:]
    assert refused == []


def test_a_download_that_fails_says_so(refusing):
    done, refused = refusing("""
import sys
from rnnapps import cli
from rnnapps.tasks.sentiment import Sentiment
sys.exit(cli.main(Sentiment, argv=["train", "--data=tfds:imdb_reviews", "--out=run"]))
""")
    assert done.returncode == 2 and done.stdout == ""
    assert "Traceback" not in done.stderr
    first, second = done.stderr.splitlines()[-2:]  # behind TensorFlow's greetings
    assert first.startswith("error: tfds:imdb_reviews could not be downloaded: ")
    assert "ai.stanford.edu" in first
    assert "imdb_reviews/plain_text" in second and "give the data as files" in second
    assert refused and all("ai.stanford.edu" in told for told in refused)


def test_the_package_never_asks_for_pickles():
    """Neither the package nor what is run with it names what could unpickle."""
    words = ("pickle", "dill", "joblib", "shelve", "marshal", "yaml.load", "unsafe_load")
    words += ("full_load", "safe_mode=False", "enable_unsafe_deserialization")
    for folder in ("rnnapps", "pipelines"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            named = [word for word in words if word in file.read_text(encoding="utf-8")]
            assert not named, f"{file} names {named}"


def test_a_configuration_with_an_object_of_python_is_refused(tmp_path, capsys):
    from rnnapps import cli
    from rnnapps.tasks.sentiment import Sentiment

    file, made = tmp_path / "run.yaml", tmp_path / "made"
    for value in (
        f"!!python/object/apply:os.mkdir ['{made}']",
        "!!python/name:os.system",
        "!!python/object:rnnapps.errors.UserError {}",
        "!thing 3",
    ):
        file.write_text(f"# settings\nunits: {value}\n")
        assert cli.main(Sentiment, argv=["train", f"--config={file}"]) == 2
        told = capsys.readouterr().err
        assert told.startswith(f"error: {file}:2:8: settings are plain values. Received: ")
        assert len(told.splitlines()) == 1 and not made.exists()
