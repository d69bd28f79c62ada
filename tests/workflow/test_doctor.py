"""The doctor's report of this machine."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from fedsampling.cli import main
from fedsampling.experiments.config import parse
from fedsampling.learning.models.networks import products
from fedsampling.learning.training.network import gpu
from fedsampling.runs.cluster.resources import Measured, measurement_key
from fedsampling.workflow.machine import doctor
from fedsampling.workflow.project import Project

CPU = gpu.device("cpu")


@pytest.mark.skipif(not products._has_onednn(), reason="one library alone")
def test_a_clearly_faster_library_is_recommended(monkeypatch):
    seconds = {"quick": 1.0, "slow": 2.0, "unsteady": 1.0}
    clock = {"now": 0.0, "calls": 0}

    def by(name):
        def product(x, weight):
            clock["calls"] += 1
            often = name == "unsteady" and clock["calls"] // (4 * doctor.PRODUCTS_IN_A_TURN) % 2
            clock["now"] += 3.0 if often else seconds[name]

        return product

    monkeypatch.setattr(doctor.time, "process_time", lambda: clock["now"])
    usual = products.library()
    alternative = next(name for name in products.libraries() if name != usual)
    for first, second, line in [
        ("slow", "quick", f"write 'products: {alternative.lower()}' into config.yaml"),
        ("quick", "slow", ""),
        ("slow", "unsteady", ""),  # faster in half of the turns
    ]:
        monkeypatch.setattr(
            products, "libraries", lambda a=first, b=second: {usual: by(a), alternative: by(b)}
        )
        assert doctor.product_library().fix == line


def test_training_times_are_those_of_the_plan_at_the_papers_size(tmp_path, monkeypatch):
    config = parse({"papers": ["fraboni2021clustered", "rizk2022importance"]})
    estimate = doctor.estimate

    def counted(project, seconds_limit):
        result = estimate(project, measures=False)
        lines = [
            replace(line, hours=1.0 + line.experiment.endswith("/mnist"))
            for line in result.experiments
        ]
        lines[0] = replace(lines[0], hours=float("nan"))
        speeds = {
            measurement_key(job): Measured(0.0, 3.0 * len(job.runs)) for job in result.unfinished
        }
        return replace(result, experiments=tuple(lines), measurements=speeds)

    monkeypatch.setattr(doctor, "estimate", counted)
    papers = Path(__file__).parents[2] / "papers"
    clustered, importance = doctor.training_times(Project(config, tmp_path, papers), 1e15)
    assert re.fullmatch(
        r"fraboni2021clustered: at least ([0-9]+)\.0 h, 1 of \1 experiments not measured; "
        r"mnist 3 s a round and seed, 0 % of the product's rate in steps",
        clustered,
    )
    assert importance.endswith(" 3 s a round and seed")


@pytest.mark.parametrize("fix", ["", "do something"])
def test_the_command_fails_if_a_check_fails(monkeypatch, tmp_path, fix):
    monkeypatch.setattr(doctor, "check_network", lambda name, device: doctor.Finding(name, fix))
    monkeypatch.setattr(doctor, "product_library", lambda: doctor.Finding("products"))
    (tmp_path / "config.yaml").write_text("device: cpu\n")
    result = CliRunner().invoke(
        main, ["doctor", "--no-speed", "--config", str(tmp_path / "config.yaml")]
    )
    assert result.exit_code == bool(fix)
    assert ("FAIL mlp: do something" in result.output) == bool(fix)
