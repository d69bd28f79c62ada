"""A small world whose results read inputs of every kind: a paper, a sampler, a model and data.

``write`` makes the folder.  Everything trains in a second: six clients with eight samples each.
"""

import shutil

import h5py
import numpy as np
import pandas as pd
import yaml
from tests.shared import ROOT

CLIENTS, SAMPLES = 6, 8

PAPER = {
    "key": "small",
    "title": "A small paper",
    "authors": "First Author, Second Author",
    "year": 2020,
    "venue": "Journal",
    "url": "https://example.org/small",
    "summary": "It reads everything.",
    "choices": [{"name": "order", "value": "random", "why": "The paper does not say."}],
    "experiments": {
        "own_data": {
            "kind": "network",
            "title": "Own data",
            "dataset": {
                "name": "files",
                "path": "data/samples.csv",
                "client_info": "data/info.csv",
            },
            "inputs": "raw",
            "model": {"file": "mine/model.py", "name": "Net"},
            "delays": {"name": "recorded", "path": "data/delays.csv"},
            "work": {"steps": 1, "batch": 4, "step": 0.1},
            "samplers": {"mine": {"name": "mine"}, "here": {"name": "uniform", "m": 2}},
            "rounds": 4,
            "evaluation": {"every": 2},
            "seeds": 3,
            "quick": {"seeds": 2, "seed_block": 2},
        },
        "own_kind": {
            "kind": "small_kind",
            "title": "Own run kind",
            "scale": 1.0,
            "samplers": {"none": {"name": "none"}},
            "cases": {"one": {"scale": 1.0}, "two": {"scale": 2.0}},
            "seeds": 3,
            "seed_block": 3,
            "quick": {"seeds": 2},
        },
        "apart": {
            "kind": "small_kind",
            "title": "Apart",
            "scale": 3.0,
            "samplers": {"none": {"name": "none"}},
            "seeds": 2,
        },
    },
    "artefacts": {
        "curve": {
            "kind": "figure",
            "title": "A curve",
            "caption": "Of {rounds} rounds.",
            "experiments": ["own_data"],
        },
        "numbers": {
            "kind": "table",
            "title": "Numbers",
            "caption": "All files.",
            "experiments": ["own_kind"],
            "cases": ["one", "two"],
        },
        "theory": {"kind": "table", "title": "Theory", "caption": "None.", "experiments": []},
    },
    "claims": {
        "c1": {
            "statement": "It grows.",
            "topic": "growth",
            "artefact": "numbers",
            "experiments": ["own_kind"],
            "cases": ["one"],
            "reported": "1",
            "margin": 0.5,
            "unit": "units",
            "rule": "Above the margin.",
            "caveat": "Small.",
            "open_choices": ["order"],
            "declared": {"when": "before", "date": "2026-01-01", "why": "first"},
            "history": [{"date": "2026-01-02", "verdict": "inconclusive", "why": "once"}],
        },
        "c2": {
            "statement": "Another.",
            "artefact": "curve",
            "reported": "2",
            "margin": 0.1,
            "unit": "units",
            "rule": "Any.",
            "kind": "empirical",
        },
        "c3": {
            "statement": "By mathematics.",
            "artefact": "theory",
            "reported": "3",
            "margin": 0.0,
            "unit": "units",
            "rule": "Always.",
            "kind": "code check",
        },
    },
}

FIGURES = '''"""Figures that read every kind of file in every way."""

import csv
import importlib
import json
import os
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import toylib
import yaml
from fedsampling.report.drawing.artefacts import Artefact
from fedsampling.report.drawing.curves import learning_curves
from fedsampling.report.drawing.style import BLUE, ORANGE, Line, panels

from . import near
from .deep.deeper import far
from .deep.deeper.deepest import farthest

by_name = importlib.import_module(__name__.replace("figures", "named"))
LEVEL = os.environ.get("LEVEL_AT_IMPORT", "none")
LINES = {"mine": Line("mine", BLUE), "here": Line("here", ORANGE)}


def curve(summaries, paper):
    curves = summaries["own_data"].curves
    with panels(1, 1, width=4.6) as (figure, (axes,)):
        learning_curves(axes, curves, LINES, "loss")
        axes.axhline(paper.claims["c1"].margin)
        axes.axhline(paper.reported("final"))
        axes.set(xlabel="rounds", ylabel=paper.title + near.WORD)
    return Artefact(curves[curves["metric"] == "loss"], figure, alt="A curve.")


def numbers(summaries, paper):
    here = paper.folder
    later = importlib.import_module("papers.small.later")
    with open(here / "plain.csv") as file:
        plain = [row[0] for row in csv.reader(file)]
    with h5py.File(here / "cube.h5") as file:
        cube = float(file["x"][0])
    extra = Path("extra")
    rows = {
        "near": near.WORD,
        "far": far.VALUE,
        "farthest": farthest.VALUE,
        "by_name": by_name.VALUE,
        "later": later.VALUE,
        "level": LEVEL,
        "now": os.getenv("LEVEL_NOW", "none"),
        "plain": plain,
        "frame": pd.read_csv(here / "frame.csv").x.tolist(),
        "json": json.loads((here / "deep" / "values.json").read_text()),
        "txt": np.loadtxt(here / "values.txt").tolist(),
        "dat": (here / "values.dat").read_bytes().hex(),
        "npy": np.load(here / "values.npy").tolist(),
        "npz": np.load(here / "values.npz")["x"].tolist(),
        "parquet": pd.read_parquet(here / "values.parquet").x.tolist(),
        "cube": cube,
        "yaml": yaml.safe_load((here / "more.yaml").read_text()),
        "large": len((here / "large.bin").read_bytes().strip(b"0")),
        "names": sorted(path.name for path in (here / "listed").iterdir()),
        "extra": json.loads((extra / "values.json").read_text()),
        "extra_npy": np.load(extra / "values.npy").tolist(),
        "extra_names": sorted(os.listdir(extra / "listed")),
        "toylib": toylib.VALUE,
        "choices": [(choice.name, choice.value) for choice in paper.choices],
        "other": paper.claims["c2"].margin,
        "mean": summaries["own_kind"].rows.value.mean(),
        "cases": sorted(summaries["own_kind"].rows.case.unique()),
    }
    return Artefact(pd.DataFrame({"name": list(rows), "value": [str(v) for v in rows.values()]}))


def theory(summaries, paper):
    return Artefact(pd.DataFrame({"year": [paper.year], "kind": [paper.claims["c3"].kind]}))
'''

CLAIMS = '''"""Claims."""

from fedsampling.evidence.verdicts import Finding

from .rules import judging


def c1(summaries, claim, paper):
    mean = summaries["own_kind"].rows.value.mean()
    word = "reproduced" if mean > claim.margin + judging.SHIFT else "contradicted"
    return Finding(word, f"{mean:.3f}", f"It is {paper.claims['c2'].margin}.")


def c2(summaries, claim, paper):
    last = summaries["own_data"].per_seed("mine", "loss").mean()
    return Finding("inconclusive", f"{last:.4f}", f"Margin {claim.margin}.")


def c3(summaries, claim, paper):
    return Finding("reproduced", "3", "By mathematics.")
'''

SIMULATIONS = '''"""A run kind that reads files of the paper."""

import importlib
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
from fedsampling.experiments.simulations.simulation import NoSampler, Simulated, Simulation


from .kinds import formula


class Small(Simulation, name="small_kind"):
    """It adds what it reads."""

    scale: float
    sampler: NoSampler

    def simulate(self, data, seeds, where, progress=lambda _: None):
        added = json.loads((Path(__file__).parent / "kind.json").read_text())
        added += importlib.import_module("papers.small." + "_".join(["by", "words"])).VALUE
        added += float(os.environ.get("LEVEL_OF_KIND", "0")) + formula.SHIFT
        progress(0)
        tables = [
            pd.DataFrame({"at": [0, 1], "metric": "value", "value": [self.scale * s + added, s]})
            for s in seeds
        ]
        return Simulated(tables)
'''

SAMPLER = '''"""A sampler with helpers."""

import importlib
import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import numpy as np
from fedsampling import Sampler

import first_help
from pack.inner import inner_help

literal = importlib.import_module("literal_help")
computed = importlib.import_module("_".join(["computed", "help"]))
AT_LOAD = json.loads((HERE / "at_load.json").read_text())
LEVEL = int(os.environ.get("LEVEL_OF_SAMPLER", "0"))


class Mine(Sampler, name="mine"):
    """It selects two clients."""


    unbiased = False

    def select(self, view, rng):
        import lazy_help

        late = importlib.import_module("_".join(["late", "help"]))
        shift = first_help.VALUE + inner_help.VALUE + literal.VALUE + computed.VALUE + AT_LOAD
        shift += LEVEL + lazy_help.VALUE + late.VALUE + int(np.loadtxt(HERE / "at_run.txt"))
        shift += int(os.environ.get("LEVEL_AT_RUN", "0")) + len(os.listdir(HERE / "listed"))
        offered = np.arange(view.n)
        return offered[[shift % len(offered), (shift + 1) % len(offered)]]
'''

MODEL = '''"""A model with helpers."""

import json
import sys
from pathlib import Path

import torch
from torch import nn

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import model_help

SCALE = json.loads((HERE / "model.json").read_text())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return model_help.SCALE * SCALE * self.layer(x)
'''

CONFIG = {
    "scale": "quick",
    "data": "official",
    "papers": ["small"],
    "schemes": ["mine/sampler.py"],
    "shipped": False,
}


def write(root):
    """Write the world into a folder."""
    for name in ("Snakefile", "CITATION.cff", "pyproject.toml"):
        shutil.copy(ROOT / name, root / name)
    for name in ("workflow", "profiles", "envs"):
        shutil.copytree(ROOT / name, root / name)
    value = "VALUE = 1\n"
    texts = {
        "config.yaml": yaml.safe_dump(CONFIG),
        "papers/small/paper.yaml": yaml.safe_dump(PAPER, sort_keys=False),
        "papers/small/reported.csv": "id,artefact,claim,quantity,value,unit,where\n"
        "final,curve,c1,final loss,0.5,,Table 1\n",
        "papers/small/paper.bib": "@misc{small, title = {Small}, year = {2020}}\n",
        "papers/small/findings.md": "## What we found\n\nNothing.\n",
        "papers/small/figures.py": FIGURES,
        "papers/small/claims.py": CLAIMS,
        "papers/small/simulations.py": SIMULATIONS,
        "papers/small/near.py": "from .deep import second\n\nWORD = f'word {second.VALUE}'\n",
        "papers/small/deep/second.py": "from .deeper import third\n\nVALUE = third.VALUE\n",
        "papers/small/deep/deeper/third.py": value,
        "papers/small/deep/deeper/far.py": value,
        "papers/small/deep/deeper/deepest/farthest.py": value,
        "papers/small/named.py": value,
        "papers/small/later.py": value,
        "papers/small/rules/judging.py": "SHIFT = 0\n",
        "papers/small/kinds/formula.py": "from .constants import SHIFT\n",
        "papers/small/kinds/constants.py": "SHIFT = 0.25\n",
        "papers/small/by_words.py": value,
        "papers/small/kind.json": "1.5",
        "papers/small/plain.csv": "1\n2\n",
        "papers/small/frame.csv": "x\n1\n2\n",
        "papers/small/deep/values.json": "[1, 2]",
        "papers/small/values.txt": "1 2\n",
        "papers/small/values.dat": "abc",
        "papers/small/more.yaml": "a: 1\n",
        "papers/small/large.bin": "1" * 2_000_000,
        "papers/small/listed/one.txt": "",
        "extra/values.json": "[3]",
        "extra/listed/one.txt": "",
        "site-packages/toylib/__init__.py": value,
        "site-packages/toylib-1.0.dist-info/METADATA": "Name: toylib\nVersion: 1.0\n",
        "site-packages/toylib-1.0.dist-info/top_level.txt": "toylib\n",
        "mine/sampler.py": SAMPLER,
        "mine/model.py": MODEL,
        "mine/first_help.py": "import second_help\n\nVALUE = second_help.VALUE\n",
        "mine/second_help.py": "def f():\n    return 1\n\n\nfrom third_help import VALUE\n",
        "mine/third_help.py": value,
        "mine/pack/__init__.py": "",
        "mine/pack/inner/__init__.py": "",
        "mine/pack/inner/inner_help.py": "from ..sibling import VALUE\n",
        "mine/pack/sibling.py": value,
        "mine/literal_help.py": value,
        "mine/computed_help.py": value,
        "mine/lazy_help.py": value,
        "mine/late_help.py": value,
        "mine/at_load.json": "1",
        "mine/at_run.txt": "1\n",
        "mine/listed/one.txt": "",
        "mine/model_help.py": "from model_second import SCALE\n",
        "mine/model_second.py": "SCALE = 1.0\n",
        "mine/model.json": "1.0",
    }
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    paper, values = root / "papers" / "small", np.array([1.0, 2.0])
    np.save(paper / "values.npy", values)
    np.savez(paper / "values.npz", x=values)
    pd.DataFrame({"x": values}).to_parquet(paper / "values.parquet")
    with h5py.File(paper / "cube.h5", "w") as file:
        file["x"] = values
    np.save(root / "extra" / "values.npy", values)
    tables(root / "data")


def tables(folder):
    """Write the clients' samples, properties, delays and availability."""
    folder.mkdir()
    rng, clients = np.random.default_rng(0), np.arange(CLIENTS)
    client = clients.repeat(SAMPLES)
    columns = {f"x{k}": rng.normal(size=len(client)).round(3) for k in range(3)}
    frame = pd.DataFrame({"client": client, **columns, "y": rng.integers(2, size=len(client))})
    frame.to_csv(folder / "samples.csv", index=False)
    pd.DataFrame({"client": clients, "speed": clients + 1.5}).to_csv(
        folder / "info.csv", index=False
    )
    pd.DataFrame({"client": clients, "seconds": clients + 1.0}).to_csv(
        folder / "delays.csv", index=False
    )
    pd.DataFrame({"client": clients, "from": 0, "to": 9}).to_csv(folder / "trace.csv", index=False)
