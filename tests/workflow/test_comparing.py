"""`fedsampling compare`: a user's sampler in the cross matrix, with its ranks in the terminal."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from tests.processes import complaint_of

from fedsampling.cli import main
from fedsampling.experiments.papers import CROSS_MATRIX
from fedsampling.workflow import comparing
from fedsampling.workflow.comparing import Comparison, OwnProblem, check_entry, wins_and_losses

FEW = ("--on", "digit", "--against", "uniform,tifl")  # not all samplers, which take half a minute
SCHEME = '''"""Clients at random, with a factor on what they send."""
import numpy as np
from fedsampling import Scheme, Slots
from fedsampling.samplers.protocol.draws import distinct


class Mine(Scheme, name="mine_compared"):
    """m clients, each the same weight."""

    m: int
    factor: float = 1.0
    unbiased = False

    def select(self, state, view, rng):
        return Slots.stack(distinct(len(view.p), rng.uniforms("clients", self.m)))

    def weigh(self, state, slots, view, rng):
        return np.full(len(slots), self.factor / self.m)
'''


@pytest.fixture
def file(tmp_path, forget_own_files):
    path = tmp_path / "mine.py"
    path.write_text(SCHEME)
    return path


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A folder for all comparisons: the first trains the other samplers, the rest reuse them."""
    return tmp_path_factory.mktemp("shared")


def compare(file, folder, *options, status=0):
    command = ["compare", str(file), "--scale", "quick", "--results", str(folder / "results")]
    result = CliRunner().invoke(main, [*command, *options], catch_exceptions=False)
    assert result.exit_code == status, result.stderr
    return result


def test_each_entry_of_each_file_is_ranked_on_one_page_which_is_named(file, shared):
    second_file = file.with_name("other.py")
    second = SCHEME.replace("mine_compared", "other_compared").replace("factor", "size")
    second_file.write_text(second)
    result = compare(file, shared, str(second_file), "--set", "size=1,0.5", *FEW)
    lines = result.stdout.splitlines()
    page = Path(lines[-1].removeprefix("page: "))
    ranks = page.parent / "crossmatrix/bench_ranks/bench_ranks.csv"
    for label in ("mine_compared", "other_compared-size-1", "other_compared-size-0.5"):
        start = f"{label}, with speed-ups over MD"
        first = next(i for i, line in enumerate(lines) if line.startswith(start)) + 1
        header, *ranked = [line.split() for line in lines[first : first + 4]]
        assert header[:3] == ["cost", "rank", "of"]
        assert [line[0] for line in ranked] == ["rounds", "bits", "seconds"]
        assert label in ranks.read_text()
        row = label.replace("_", "-").replace(".", "-")
        assert f'<tr id="{row}" class="own"' in page.read_text()
    assert page.parent.parent.name == "mine_compared-other_compared"
    # The configuration's own summaries and artefacts are left as they are.
    assert not (shared / "results" / "summaries").exists()


@pytest.mark.parametrize(
    ("sets", "problem", "scale"),
    [
        ([], OwnProblem(), "paper"),
        (["bench_spam", "digit"], OwnProblem(), "reduced"),
        ([], OwnProblem(data=Path("clients.csv")), "reduced"),
    ],
)
def test_the_default_scale_has_finished_runs_of_the_other_samplers(sets, problem, scale):
    assert comparing.usual_scale(sets, problem) == scale


def test_m_may_exceed_the_population_of_the_check(monkeypatch):
    checked = []
    monkeypatch.setattr(comparing, "check_sampler", checked.append)
    for m in (20, 3):
        check_entry({"name": "md", "m": m}, {"m": 5})
    assert [scheme.m for scheme in checked] == [12, 3]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--set", "factor"), "--set factor: not a setting; write it as key=value"),
        (("--set", "factr=2"), "--set factr: unknown key; did you mean 'factor'?"),
        (("--against", "ort"), "--against ort: unknown; did you mean 'oort'?"),
        (("--data", "no.csv"), "--data: path: 'no.csv' does not exist; check the path"),
        (("--rounds", "20"), "--rounds: no effect without --data; add it, or remove --rounds"),
        (
            ("--model", "mlp", "--loss", "mine"),
            "--loss: no effect without --model FILE:NAME; add it, or remove --loss",
        ),
        (("--on", "digt"), "--on digt: no dataset at quick scale; did you mean 'digit'?"),
    ],
)
def test_errors_are_one_line(file, tmp_path, options, line):
    assert complaint_of(compare(file, tmp_path, *options, status=2)) == line


@pytest.mark.parametrize(("rows", "share"), [(4, "test_share"), (5, "holdout")])
def test_clients_with_too_few_samples_are_an_error_before_training(file, tmp_path, rows, share):
    data = pd.DataFrame({"a": np.arange(12.0 * rows), "y": ["u", "v"] * (6 * rows)})
    data.assign(client=np.arange(12 * rows) // rows).to_csv(tmp_path / "few.csv", index=False)
    options = ("--data", str(tmp_path / "few.csv"), "--against", "uniform")
    line = complaint_of(compare(file, tmp_path, *options, status=2))
    assert f"{share}: 0.2 of a client's samples, at most 4, is less than one; increase it" in line


@pytest.fixture
def plans(monkeypatch):
    """The plans of comparisons, which stop before anything is trained."""
    plans = []
    stop = lambda jobs, project, report: plans.append(project.plan) or 3  # noqa: E731
    monkeypatch.setattr(comparing, "execute_all", stop)
    return plans


def test_the_benchmark_has_the_datasets_with_finished_runs_of_md(
    file, tmp_path, plans, monkeypatch
):
    monkeypatch.setattr(Comparison, "_unfinished", lambda *_: {"bench_dna": ["md"]})
    result = compare(file, tmp_path, "--scale", "paper", "--against", "uniform", status=3)
    assert "left out because their runs are not finished: bench_dna\n" in result.stdout
    jobs = plans[0].jobs.values()
    assert {job.sampler for job in jobs} == {"md", "uniform", "mine_compared"}
    experiments = {job.experiment for job in jobs}
    assert "bench_spam" in experiments  # the benchmark, and none of the other experiments
    assert not experiments & {"bench_dna", "tuning_bench_dna", "digit"}


def test_tuning_draws_the_settings_in_the_samplers_grid(file, tmp_path, plans):
    grid = '    grid = {"factor": (0.5, 0.8, "linear")}\n'
    file.write_text(SCHEME.replace("    unbiased", f"{grid}    unbiased"))
    spam = ("--scale", "paper", "--on", "bench_spam", "--against", "uniform")
    compare(file, tmp_path, *spam, status=3)
    trials = [job for name, job in plans[0].jobs.items() if "tuning_bench_spam" in name]
    mine = [job for job in trials if job.sampler == "mine_compared"]
    factors = {job.case: job.runs[0].settings["sampler"]["factor"] for job in mine}
    assert [factors.pop(case) for case in ("default", "small", "large", "largest")] == [1.0] * 4
    assert len(factors) == 5
    assert 0.5 <= min(factors.values()) == max(factors.values()) <= 0.8
    line = complaint_of(compare(file, tmp_path, "--set", "factor=2", status=2))
    assert line.startswith("--set factor: tuning chooses it, because the grid of mine_compared")


def test_a_sampler_that_fails_its_check_is_not_run(file, tmp_path):
    file.write_text(SCHEME.replace("    unbiased = False\n", ""))
    result = compare(file, tmp_path, "--set", "factor=3", status=2)
    assert "correct the weights, or set unbiased = False" in result.stderr
    assert not (tmp_path / "results" / "runs").exists()


@pytest.fixture
def problem(tmp_path):
    """Own samples of twelve clients, too few for the paper's m, and an own model."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(240, 3))
    arrays = {"x": x, "y": (x[:, 0] > 0).astype(int), "client": np.arange(240) % 12}
    np.savez(tmp_path / "mine.npz", **arrays)
    model = "from torch import nn\n\n\ndef net():\n    return nn.Linear(3, 2)\n"
    (tmp_path / "net.py").write_text(model)
    return "--data", str(tmp_path / "mine.npz"), "--model", f"{tmp_path / 'net.py'}:net"


def test_the_users_samples_and_model_replace_those_of_the_cross_matrix(file, tmp_path, problem):
    result = compare(file, tmp_path, *problem, "--against", "uniform")
    assert "on mine.npz" in result.stdout
    folder = tmp_path / "results" / "compare" / "mine_compared-mine-net-net"
    artefact = folder / "artefacts" / CROSS_MATRIX / "bench_matrix_rounds"
    table = pd.read_csv(artefact / "bench_matrix_rounds.csv")
    assert {*table["scheme"]} == {"mine_compared", "md", "uniform"}
    assert {*table["title"]} == {"mine.npz"}
    assert not {*table["differ"].dropna()} - {"labels"}


@pytest.mark.long
def test_rounds_seeds_and_learning_rates_can_be_set_for_the_users_samples(file, tmp_path, problem):
    net = tmp_path / "net.py"
    loss = "\n\ndef loss(z, y):\n    return nn.functional.cross_entropy(z, y, reduction='none')\n"
    net.write_text(net.read_text() + loss)
    size = ("--rounds", "12", "--seeds", "1", "--learning-rates", "0.05,0.5", "--loss", "loss")
    result = compare(file, tmp_path, *problem, *size, "--scale", "paper", "--against", "uniform")
    assert "  1 of 1" in result.stdout  # runs that reached the target
    folder = tmp_path / "results" / "compare" / "mine_compared-mine-net-net"
    grid = pd.read_csv(folder / "artefacts" / CROSS_MATRIX / "bench_tuning" / "bench_tuning.csv")
    assert {*grid["step"]} == {0.05, 0.5}
    assert "at the edge of the grid, which --learning-rates extends" in result.stdout


def test_samplers_that_do_not_fit_the_users_samples_are_left_out(file, tmp_path, problem, plans):
    numbers = np.load(tmp_path / "mine.npz")
    np.savez(tmp_path / "targets.npz", **{**numbers, "y": numbers["x"][:, 0]})

    def left_out(*options):
        result = compare(file, tmp_path, *options, status=3)
        lines = [line.split(": ") for line in result.stdout.splitlines()]
        return {line[1] for line in lines if line[0] == "left out"}

    assert left_out(*problem) == {"delayhet_sampling", "delayhet_submodular"}
    assert left_out("--data", str(tmp_path / "targets.npz")) == {
        "fedentopt",
        "fedgs",
        "hics",
        "target",
    }


def test_datasets_with_an_interval_on_one_side_of_one_are_named():
    rows = [("Synthetic, IID", 1.1, 1.3), ("DNA", 1.2, 1.4), ("Spam", 0.9, 1.1)]
    matrix = pd.DataFrame(rows, columns=["title", "speed_up_low", "speed_up_high"])
    assert wins_and_losses(matrix.assign(scheme="mine"), "mine") == [
        "  faster than MD in rounds: Synthetic, IID; DNA",
        "  slower than MD in rounds: on no dataset",
    ]
