"""fs.train(checkpoint=…): a stopped training resumes to the bit, a finished one is read."""

import os
import signal
import sys
from importlib.util import module_from_spec, spec_from_file_location

import numpy as np
import pandas as pd
import pytest
from tests.processes import run_python
from torch import nn

import fedsampling as fs
from fedsampling.base.contents import content_of
from fedsampling.runs import store

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
OWNER = RNG.integers(0, 8, 300)
DATA = fs.federated(X, np.where(X[:, 0] > 0, "a", "b"), clients=OWNER, test_share=0.2)
WORK = {"steps": 2, "batch": 5, "step": 0.1, "rounds": 12, "seeds": 2, "by_client": True}


class Waiting(fs.Sampler, name="waiting_for_test"):
    """The clients that have waited longest: a sampler with memory."""

    m: int
    unbiased = False

    def prepare(self, setup):
        self.waited = np.zeros(len(setup.p))

    def select(self, view, rng):
        self.waited += rng.random(view.n)
        clients = np.argsort(-self.waited)[: self.m]
        self.waited[clients] = 0
        return clients


Waiting.named = ""


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """Register the sampler during the tests of this file only."""
    monkeypatch.setattr(Waiting, "named", "waiting_for_test")


class Net(nn.Sequential):
    """A network with buffers and random numbers."""

    def __init__(self, hidden=8):
        layers = [nn.Linear(4, hidden), nn.BatchNorm1d(hidden), nn.Dropout(0.2), nn.ReLU()]
        super().__init__(*layers, nn.Linear(hidden, 2))


class Interrupting:
    """A callback that sends Ctrl-C in one round of the first call."""

    def __init__(self, round):
        self.round, self.rounds = round, []

    def __call__(self, history):
        self.rounds.append(at := int(history["at"].max()))
        if at == self.round and self.rounds.count(at) == 1:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("model", [Net, "mlp"])
def test_a_training_stopped_by_ctrl_c_resumes_to_the_bit(model, tmp_path):
    work = {**WORK, "model": model, "server": "fedadam", "server_step": 0.01}
    expected = fs.train(DATA, Waiting(m=3), **work)
    started = []

    def train():
        pause = Interrupting(5)
        started.append(pause)
        return fs.train(DATA, Waiting(m=3), checkpoint=tmp_path, on_round=pause, **work)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match="stopped before round 6; the same call with check"):
        train()
    assert signal.getsignal(signal.SIGINT) is before
    assert len([*tmp_path.glob("checkpoints/*.npz")]) == 1
    pd.testing.assert_frame_equal(train(), expected, check_exact=True)
    assert started[1].rounds == [6, 7, 8, 9, 10, 11, 12]
    assert [*tmp_path.glob("checkpoints/*")] == []
    assert [*tmp_path.glob("*/*.parquet")] == []  # on_round could have ended it


def test_another_call_does_not_use_the_saved_one(tmp_path):
    class Wide(Net):
        def __init__(self):
            super().__init__(hidden=9)

    other = fs.federated(X + 0.1, np.where(X[:, 0] > 0, "a", "b"), clients=OWNER, test_share=0.2)
    base = {**WORK, "model": Net, "rounds": 2}
    calls = [
        (DATA, {}),
        (other, {}),
        (DATA, {"step": 0.2}),
        (DATA, {"seeds": [1, 0]}),
        (DATA, {"model": Wide}),
        (DATA, {"loss": nn.CrossEntropyLoss(reduction="none", label_smoothing=0.1)}),
        (DATA, {"loss": nn.CrossEntropyLoss(reduction="none", label_smoothing=0.2)}),
    ]
    for data, changes in calls:
        saved = fs.train(data, Waiting(m=3), checkpoint=tmp_path, **(base | changes))
        again = fs.train(data, Waiting(m=3), **(base | changes))
        pd.testing.assert_frame_equal(saved, again, check_exact=True)
    assert len([*tmp_path.glob("*/*.parquet")]) == 2 * len(calls)


def test_finished_samplers_of_a_comparison_are_not_trained_again(tmp_path, monkeypatch):
    samplers = {"waiting": Waiting(m=3), "md": fs.scheme("md", m=3)}
    work = {**WORK, "model": "softmax", "rounds": 3, "checkpoint": tmp_path}
    first = fs.compare(samplers, DATA, **work)
    monkeypatch.setattr("fedsampling.api.train.train_network", None)
    pd.testing.assert_frame_equal(fs.compare(samplers, DATA, **work), first)
    with pytest.raises(fs.InputError, match="'NoneType' object is not callable"):
        fs.compare(samplers, DATA, **(work | {"step": 0.2}))


SCALE = 2.0


def scaled(x):
    return SCALE * x


def outer(x):
    return [scaled(part) for part in x]


def test_the_content_of_users_code_covers_what_it_uses(monkeypatch):
    module = nn.Linear(2, 2)
    before = [content_of(value) for value in (scaled, outer, module)]
    assert before == [content_of(value) for value in (scaled, outer, module)]
    monkeypatch.setattr(f"{__name__}.SCALE", 3.0)
    nn.init.zeros_(module.bias)
    after = [content_of(value) for value in (scaled, outer, module)]
    assert all(first != second for first, second in zip(before, after, strict=True))


def test_the_content_is_the_same_in_another_process():
    code = "from tests.api import test_resuming as t\n"
    code += "from fedsampling.base.contents import content_of\n"
    code += "print(content_of([t.Waiting, t.Net, t.outer]))"
    outputs = {run_python("-c", code, PYTHONHASHSEED=seed) for seed in "01"}
    assert len(outputs) == 1


@pytest.mark.parametrize(
    "body",
    ["import {0}; return {0}.K", "from {0} import K; return K", "from . import {0}; return {0}.K"],
)
def test_the_content_covers_imports_in_a_body_and_what_they_import(body, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "users_package", raising=False)
    package = tmp_path / "users_package"
    package.mkdir()
    inner = package / "inner.py"
    (package / "__init__.py").write_text("")
    (package / "outer.py").write_text("from .inner import K\n")
    name = "outer" if "from . " in body else "users_package.outer"
    (package / "metrics.py").write_text(f"def metric():\n    {body.format(name)}\n")
    contents = []
    for value in (1, 2):
        inner.write_text(f"K = {value}\n")
        spec = spec_from_file_location("users_package.metrics", package / "metrics.py")
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        contents.append(content_of(module.metric))
    assert contents[0] != contents[1]


def test_a_saved_training_names_its_model_seed_and_data(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    work = {**WORK, "model": Net, "rounds": 1}
    fs.train(DATA, Waiting(m=3), checkpoint="~/saved", **work)
    files = (tmp_path / "saved").glob("*/*.parquet")
    specs = {spec["seed"]: spec for spec in (store.load(file).metadata["spec"] for file in files)}
    assert {*specs} == {0, 1}
    assert specs[0]["model"] == {"users": "Net"}
    assert specs[0]["dataset"]["clients"] == DATA.n_clients
