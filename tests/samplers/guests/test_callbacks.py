"""Callbacks change no result, and their errors pass unchanged."""

import random

import numpy as np
import pytest
import torch
from tests.samplers.guests.hostile import MD, WORK, sampler

import fedsampling as fs
from fedsampling.base.errors import InputError

MISCHIEF = (
    "history.loc[:, 'value'] = 0",
    "history.drop(history.index, inplace=True)",
    "history.values[:] = 7",
    "kept.append(history); kept[0].iloc[:, 3] = 1",
    "np.random.seed(0); random.seed(0); torch.manual_seed(0)",
    "np.seterr(all='raise')",
    "torch.set_grad_enabled(False)",
    "torch.set_default_dtype(torch.float64)",
    "fs.train(data, 'full', **{**work, 'rounds': 1})",
    "metrics['other'] = max",
)


@pytest.mark.parametrize("statement", MISCHIEF)
def test_a_callback_changes_no_result(data, statement):
    kept, metrics = [], {"one": lambda *_: 1}

    def on_round(history):
        names = {"history": history, "kept": kept, "data": data, "work": WORK, "metrics": metrics}
        exec(statement, {"np": np, "random": random, "torch": torch, "fs": fs, **names})

    expected = fs.train(data, MD, metrics=metrics, **WORK)
    state = np.geterr(), torch.is_grad_enabled(), torch.get_default_dtype()
    try:
        history = fs.train(data, MD, metrics=metrics, on_round=on_round, **WORK)
    finally:
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
        np.seterr(**state[0])
    assert history.equals(expected)


@pytest.mark.parametrize("value", ["yes", 1, [], np.zeros(2)], ids=repr)
def test_a_callback_returns_a_truth_value(data, value):
    with pytest.raises(InputError, match=r"on_round: returned .*; must be True, False or None"):
        fs.train(data, MD, on_round=lambda history: value, **WORK)


def test_a_callback_is_told_that_selections_come_at_the_end(data):
    with pytest.raises(InputError, match="they are recorded when the training ends"):
        fs.train(data, MD, on_round=lambda history: history.selections(), **WORK)


def test_errors_of_a_callback_pass_unchanged(data):
    def on_round(history):
        raise KeyError("pruned")

    for own in (MD, sampler("one run")):
        with pytest.raises(KeyError, match="pruned"):
            fs.train(data, own, on_round=on_round, **WORK)
