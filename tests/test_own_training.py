"""Own metrics, callbacks and server optimisers of the library."""

import numpy as np
import pandas as pd
import pytest
import torch

import fedsampling as fs

WORK = {"model": "mlp", "steps": 2, "batch": 5, "step": 0.1, "rounds": 4}


@pytest.fixture(scope="module")
def data():
    return fs.load("mnist", "by_digit", data="embedded")


def test_a_callback_sees_the_history_and_may_stop(data):
    seen = []

    def stop(history):
        seen.append(int(history["at"].max()))
        return np.array(seen)[-1] == 2  # as comparisons of tables give it

    stopped = fs.train(data, fs.scheme("md", m=4), on_round=stop, seeds=2, **WORK)
    assert seen == [0, 1, 2]
    full = fs.train(data, fs.scheme("md", m=4), seeds=2, **WORK)
    early = full[full["at"] <= 2].reset_index(drop=True)
    pd.testing.assert_frame_equal(stopped, early)


def test_server_optimisers_are_chosen_by_name(data):
    plain = fs.train(data, fs.scheme("md", m=4), **WORK)
    none = fs.train(data, fs.scheme("md", m=4), server={"name": "fedavgm", "momentum": 0}, **WORK)
    pd.testing.assert_frame_equal(plain, none, rtol=1e-4)
    adam = fs.train(data, fs.scheme("md", m=4), server="fedadam", server_step=0.01, **WORK)
    assert not np.allclose(adam["value"], plain["value"], equal_nan=True)


def test_clients_optimisers_and_schedules_are_chosen_by_keyword(data):
    plain = fs.train(data, fs.scheme("md", m=4), **WORK)
    off = fs.train(data, fs.scheme("md", m=4), momentum=0, clip=None, schedule=None, **WORK)
    pd.testing.assert_frame_equal(plain, off)
    for keywords in ({"momentum": 0.9}, {"clip": 0.01}, {"schedule": "cosine"}):
        changed = fs.train(data, fs.scheme("md", m=4), **keywords, **WORK)
        assert not np.allclose(changed["value"], plain["value"], equal_nan=True), keywords


def test_progress_is_shown_where_asked_and_logged(data, capsys, caplog):
    with caplog.at_level("INFO", logger="fedsampling"):
        fs.train(data, fs.scheme("md", m=4), **WORK)
    assert capsys.readouterr().err == ""  # not a terminal
    assert caplog.messages[0].endswith(": 4 rounds, seeds 0")
    fs.train(data, fs.scheme("md", m=4), progress=True, **WORK)
    printed = capsys.readouterr().err
    assert "md: 4 of 4 (100 %), 0 s left" in printed
    assert printed.endswith("\r")


@pytest.mark.parametrize(
    ("keywords", "line"),
    [
        ({"metrics": {"mine": lambda model, x, y: model(x)}}, "metrics.mine: ValueError: only one"),
        (
            {"schedule": "stairs"},
            "schedule: every: required if name is 'stairs', otherwise invalid",
        ),
        ({"metrics": {"accuracy": lambda model, x, y: 0.0}}, "metrics: the history already has 'a"),
        ({"metrics": {"reports": lambda model, x, y: 0.0}}, "metrics: the history already has 're"),
        ({"metrics": ["f1"]}, "metrics: an object of list is invalid; must map names to functions"),
        ({"checkpoint": 3}, "checkpoint: 3 is invalid; must be a folder"),
        ({"on_round": "stop"}, "on_round: 'stop' is invalid; must be a function"),
        ({"server": "fedadm"}, "server.name: 'fedadm' is unknown; did you mean 'fedadam'?"),
    ],
)
def test_mistakes_get_one_line(keywords, line, data):
    with pytest.raises(fs.InputError) as error:
        fs.train(data, fs.scheme("md", m=4), **keywords, **WORK)
    assert [text[: len(line)] for text in error.value.lines] == [line]


def test_training_uses_one_thread_unless_told_otherwise(data, monkeypatch):
    before = torch.get_num_threads()
    seen = []
    watch = {"on_round": lambda history: seen.append(torch.get_num_threads())}
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    fs.train(data, "full", **WORK | {"rounds": 1}, **watch)
    fs.train(data, "full", threads=2, **WORK | {"rounds": 1}, **watch)
    monkeypatch.setenv("OMP_NUM_THREADS", str(before))
    fs.train(data, "full", **WORK | {"rounds": 1}, **watch)
    assert seen == [1, 2, before]
    assert torch.get_num_threads() == before
