"""Stands in for a simulation in a test's copy of the sources: it goes wrong in a stated way.

What a job does is said by ``toy.json``: {sampler: behaviour}.  Every round that a job computes is a
line of ``toy.log``.
"""

import json
import os
import time
from pathlib import Path
from typing import ClassVar

import numpy as np

from fedsampling.base.records import Strict
from fedsampling.base.stopping import Stopped
from fedsampling.base.streams import stream
from fedsampling.experiments.simulations.simulation import Simulated, Simulation, tidy

ROUND = float(os.environ.get("TOY_SECONDS", "0.5"))


class ToyScheme(Strict):
    name: str


class Toy(Simulation, name="weights"):
    gpu: ClassVar[bool] = False

    clients: int
    m: int
    importance: str
    draws: int
    sampler: ToyScheme

    def simulate(self, data, seeds, where, progress=lambda done: None):
        name = self.sampler.name
        behaviour = json.loads(Path("toy.json").read_text()).get(name, {})
        if behaviour.get("once") and _first(name):
            if behaviour["once"] == "fail":
                raise RuntimeError("fails once, as it was told to")
            held = np.ones(behaviour.get("mb", 0) * 2**17)
            time.sleep(600)
            del held
        return Simulated([_run(seed, name, behaviour, where, progress) for seed in seeds])


def _run(seed, name, behaviour, where, progress):
    at, values = 0, []
    if behaviour.get("checkpoints") and where.checkpoint.path.is_file():
        values = np.load(where.checkpoint.path).tolist()
        at = len(values)
    for t in range(at, behaviour.get("rounds", 2)):
        if behaviour.get("checkpoints") and where.checkpoint.stop():
            where.checkpoint.path.parent.mkdir(parents=True, exist_ok=True)
            np.save(where.checkpoint.path.with_suffix(".npy"), np.array(values))
            where.checkpoint.path.with_suffix(".npy").rename(where.checkpoint.path)
            raise Stopped(f"stopped before round {t}")
        time.sleep(ROUND)
        values.append(stream(seed, "toy", t).random())
        with Path("toy.log").open("a") as file:
            file.write(f"{name} {seed} {t} {os.environ.get('SLURM_JOB_ID', 'local')}\n")
        progress(t)
    rounds = np.arange(len(values))
    return tidy({"toy": (rounds, np.cumsum(values))})


def _first(name):
    try:
        Path(f"toy-{name}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
