"""The doctor, on a processor and with a device that stands in for a GPU."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from fedsampling.cli import main
from fedsampling.experiments.config import parse
from fedsampling.learning.models.model import Model
from fedsampling.learning.models.networks import products
from fedsampling.learning.training.network import gpu
from fedsampling.runs.cluster.resources import Measured, key
from fedsampling.workflow import doctor
from fedsampling.workflow.project import Project

CPU = gpu.device("cpu")


def again(call, rewind):
    rewind()
    call()
    return call


def nothing(call, rewind):
    again(call, rewind)
    return lambda: None


def impossible(call, rewind):
    raise RuntimeError("operation not permitted when stream is capturing")


@pytest.mark.parametrize("name", sorted(doctor.networks()))
def test_every_network_is_checked_with_inputs_that_it_takes(name):
    made = doctor.learner(Model.members()[name](), "cpu")
    x, y = made.samples.gather(torch.arange(2)[None])
    theta = torch.zeros(1, made.network.dimension)
    outputs = made.network.outputs(theta, x)
    assert outputs.shape == (*y.shape, made.data.classes or 1)


@pytest.mark.parametrize("name", ["mlp", "linear", "lstm", "cifar_cnn"])
def test_networks_are_in_order_on_this_processor(name):
    check = doctor.check(name, CPU)
    assert not check.fix
    assert str(check).startswith(f"ok   {name}: ")
    assert " 0.0e+00 from a single slot" in check.text
    assert "captured" not in check.text


def test_captured_steps_are_compared_with_those_that_are_taken_one_by_one():
    check = doctor.check("mlp", replace(CPU, record=again))
    assert not check.fix
    assert ", 0.0e+00 from captured steps" in check.text
    assert doctor.check("mlp", replace(CPU, record=nothing)).fix == doctor.ON_CPU


def test_steps_that_cannot_be_captured_are_said_to_be_taken_one_by_one():
    with pytest.warns(RuntimeWarning, match="one by one"):
        check = doctor.check("mlp", replace(CPU, record=impossible))
    assert not check.fix
    assert "cannot be captured" in check.text


def test_more_memory_than_was_estimated_is_off():
    def greedy(call):
        call()
        return 2**40

    assert "more memory" in doctor.check("mlp", replace(CPU, peak=greedy)).fix


def test_wrong_products_are_off(monkeypatch):
    right = products._each
    wrong = 1.1  # in single precision alone

    def each(x, weight):
        return right(x, weight) * (wrong if x.dtype == torch.float32 else 1)

    monkeypatch.setattr(products, "_each", each)
    check = doctor.check("mlp", CPU)
    assert check.fix == doctor.PLAIN
    assert str(check).startswith("FAIL mlp: ")


def test_a_slot_that_depends_on_its_neighbours_is_off(monkeypatch):
    right = doctor.NetworkLearner.work

    def work(made, theta, slots, *others):
        return right(made, theta, slots, *others) * (1 + 1e-6 * len(slots))

    monkeypatch.setattr(doctor.NetworkLearner, "work", work)
    assert doctor.check("mlp", CPU).fix == doctor.PLAIN


@pytest.mark.skipif(not products._has_onednn(), reason="one library alone")
def test_the_line_that_chooses_a_clearly_faster_library_is_printed(monkeypatch):
    seconds = {"quick": 1.0, "slow": 2.0, "unsteady": 1.0}
    clock = {"now": 0.0, "calls": 0}

    def by(name):
        def way(x, weight):
            clock["calls"] += 1
            often = name == "unsteady" and clock["calls"] // (4 * doctor.PRODUCTS_IN_A_TURN) % 2
            clock["now"] += 3.0 if often else seconds[name]

        return way

    monkeypatch.setattr(doctor.time, "process_time", lambda: clock["now"])
    own = products.library()
    other = next(name for name in products.libraries() if name != own)
    for first, second, line in [
        ("slow", "quick", f"write 'products: {other.lower()}' into config.yaml"),
        ("quick", "slow", ""),
        ("slow", "unsteady", ""),  # faster in half of the turns
    ]:
        monkeypatch.setattr(
            products, "libraries", lambda a=first, b=second: {own: by(a), other: by(b)}
        )
        assert doctor.library().fix == line


def test_memory_of_a_call_is_seen():
    held = CPU.peak(lambda: torch.empty(2**20).fill_(1))
    assert 4 * 2**20 <= held < 5 * 2**20


def test_hours_are_those_of_the_plan_at_the_papers_size(tmp_path, monkeypatch):
    config = parse({"papers": ["fraboni2021clustered", "rizk2022importance"]})
    right = doctor.estimate

    def counted(project, seconds_limit):
        result = right(project, calibrate=False)
        lines = [
            replace(each, hours=1.0 + each.experiment.endswith("/mnist")) for each in result.lines
        ]
        lines[0] = replace(lines[0], hours=float("nan"))
        speeds = {key(job): Measured(0.0, 3.0 * len(job.runs)) for job in result.due}
        return replace(result, lines=tuple(lines), speeds=speeds)

    monkeypatch.setattr(doctor, "estimate", counted)
    papers = Path(__file__).parents[2] / "papers"
    clustered, importance = doctor.hours(Project(config, tmp_path, papers), 1e15)
    assert re.fullmatch(
        r"fraboni2021clustered: at least ([0-9]+)\.0 h, 1 of \1 experiments not measured; "
        r"mnist 3 s a round and seed, 0 % of the product's rate in steps",
        clustered,
    )
    assert importance.endswith(" 3 s a round and seed")


@pytest.mark.parametrize("fix", ["", "do something"])
def test_the_verb_fails_where_something_is_off(monkeypatch, tmp_path, fix):
    monkeypatch.setattr(doctor, "check", lambda name, device: doctor.Finding(name, fix))
    monkeypatch.setattr(doctor, "library", lambda: doctor.Finding("products"))
    (tmp_path / "config.yaml").write_text("device: cpu\n")
    done = CliRunner().invoke(
        main, ["doctor", "--no-speed", "--config", str(tmp_path / "config.yaml")]
    )
    assert done.exit_code == bool(fix)
    assert ("FAIL mlp: do something" in done.output) == bool(fix)
