"""How training grows with workers: one process on one core, and two on a core each.

    python benchmarks/workers.py [TASK ...] [--epochs 5] [--seed 0]

Each task trains on its bundled sample with its default settings. Two workers share the batches of
one, so that they take the same steps, and then have as many rows each as one has (what Gustafson
1988 asks for, in place of Amdahl). A process has one core to itself. The seconds are the median
over the epochs but the first, which compiles, of the steps alone. Speed-up is in examples a second,
efficiency the speed-up over the number of workers.

Then it says where more hosts would stop paying, by a simple model: a step of n hosts takes

    t / n + 2 (n - 1) / n · 4 p / w + 2 (n - 1) l

where t is what a step of one process takes here, p the number of parameters, each a float32 that a
ring all-reduce (Patarasuk & Yuan 2009) sends twice around, w the network's bytes a second, and l
its latency. For every number of hosts the batch is the same.
"""

import argparse
import importlib
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

BATCH_SIZE = 128
# Workers, and rows of the batch of all.
RUNS = ((1, BATCH_SIZE), (2, BATCH_SIZE), (2, 2 * BATCH_SIZE))
TASKS = {
    "sentiment": "Sentiment",
    "ner": "Ner",
}
NETWORKS = {"1 Gbit/s": 1e9 / 8, "10 Gbit/s": 1e10 / 8, "25 Gbit/s": 2.5e10 / 8}
LATENCY = 50e-6
HOSTS = (2, 4, 8, 16, 32, 64)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(TASKS))
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=int, metavar="BATCH_SIZE", help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.work:
        (task,) = flags.tasks
        return work(task, flags.work, flags.epochs, flags.seed)
    print(f"{platform.machine()}, seed {flags.seed}\n")
    head = ("task", "parameters", "workers", "batch", "examples/s", "speed-up", "efficiency")
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    measured = {}
    for task in flags.tasks or TASKS:
        for workers, batch_size in RUNS:
            found = run(task, workers, batch_size, flags)
            alone = measured.setdefault(task, found)
            speed_up = alone["seconds"] / found["seconds"]
            print(
                f"| {task} | {found['parameters']:,} | {workers} | {batch_size} "
                f"| {found['examples'] / found['seconds']:,.0f} | {speed_up:.2f} "
                f"| {speed_up / workers:.2f} |",
                flush=True,
            )
    print("\n| task | network | bytes a step | " + " | ".join(f"{n} hosts" for n in HOSTS) + " |")
    print("|---" * (3 + len(HOSTS)) + "|")
    for task, alone in measured.items():
        for name, speed in NETWORKS.items():
            gained = [step_seconds(alone, 1, speed) / step_seconds(alone, n, speed) for n in HOSTS]
            told = " | ".join(f"{gain:.1f}" for gain in gained)
            print(f"| {task} | {name} | {8 * alone['parameters']:,} | {told} |")


def step_seconds(alone: dict, hosts: int, speed: float) -> float:
    """The seconds of a step of so many hosts, by the model."""
    sent = 2 * (hosts - 1) / hosts * 4 * alone["parameters"] / speed
    return alone["seconds"] / alone["steps"] / hosts + sent + 2 * (hosts - 1) * LATENCY


def run(task: str, workers: int, batch_size: int, flags: argparse.Namespace) -> dict:
    """Trains with so many processes; returns what the chief measured."""
    command = [sys.executable, __file__, task, f"--work={batch_size}"]
    command += [f"--epochs={flags.epochs}", f"--seed={flags.seed}"]
    addresses, processes = [f"127.0.0.1:{port}" for port in free_ports(workers)], []
    for index in range(workers):
        environment = os.environ | {
            "TF_NUM_INTRAOP_THREADS": "1",
            "TF_NUM_INTEROP_THREADS": "2",  # one may wait for the others
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        if workers > 1:
            place = {"type": "worker", "index": index}
            config = {"cluster": {"worker": addresses}, "task": place}
            environment["TF_CONFIG"] = json.dumps(config)
        processes.append(
            subprocess.Popen(
                command,
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
                preexec_fn=lambda core=index: os.sched_setaffinity(0, {core}),
            )
        )
    told = [process.communicate()[0] for process in processes]
    if any(process.returncode for process in processes):
        sys.exit(f"{task}: a worker failed")
    return json.loads(told[0].strip().splitlines()[-1])


def free_ports(number: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def work(name: str, batch_size: int, epochs: int, seed: int) -> None:
    """Trains as one of the workers, and prints what an epoch's steps took."""
    from rnnapps import training

    module = importlib.import_module(f"rnnapps.tasks.{name}")
    task_class = getattr(module, TASKS[name])
    settings = {"epochs": epochs, "patience": epochs, "seed": seed}
    task = task_class(task_class.Config(batch_size=batch_size, **settings))
    with tempfile.TemporaryDirectory() as folder:
        learnt = training.learn(task, Path(folder) / "run")
    found = {
        "seconds": float(np.median(learnt.history["seconds"][1:])),
        "examples": int(learnt.splits["train"].cardinality()),
        "steps": task.plan.padding.num_batches,
        "parameters": learnt.model.count_params(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
