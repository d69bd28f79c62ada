"""`fedsampling compare`: a user's sampler in the cross matrix, with its ranks in the terminal."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from tests.processes import complaint_of

from fedsampling.base.errors import InputError
from fedsampling.cli import main
from fedsampling.experiments.cross_matrix import CROSS_MATRIX
from fedsampling.workflow.comparing import OwnProblem, command, entries
from fedsampling.workflow.comparing import by_dataset as running
from fedsampling.workflow.comparing.by_dataset import ByDataset
from fedsampling.workflow.comparing.entries import check_entry
from fedsampling.workflow.comparing.schedule import schedule
from fedsampling.workflow.comparing.selection import Competition, usual_scale
from fedsampling.workflow.plan import plan

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

FLEXIBLE = """import fedsampling as fs


class Flexible(fs.Sampler, name="flexible_compared"):
    m: int
    unbiased = False
    intermittent = True

    def select(self, view, rng):
        return rng.choice(view.offered, min(self.m, len(view.offered)), replace=False)
"""


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
    assert usual_scale(sets, problem) == scale


def test_snakemake_expects_the_page_of_all_samplers_of_a_file(file, shared):
    second = SCHEME.replace("mine_compared", "second_compared").replace("Mine", "Second")
    file.write_text(SCHEME + second.partition("distinct\n")[2])
    page = Path(compare(file, shared, *FEW).stdout.splitlines()[-1].removeprefix("page: "))
    config = {"scale": "quick", "data": "embedded", "papers": [CROSS_MATRIX]}
    (name,) = plan({**config, "schemes": [str(file)]}).users_samplers
    assert page.parent.parent.name == name == "mine_compared-second_compared"


def test_m_may_exceed_the_population_of_the_check(monkeypatch):
    checked = []
    monkeypatch.setattr(entries, "check_sampler", checked.append)
    for m in (20, 3):
        check_entry({"name": "md", "m": m}, {"m": 5})
    assert [scheme.m for scheme in checked] == [12, 3]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--set", "factor"), "--set factor: not a setting; write it as key=value"),
        (("--set", "factr=2"), "--set factr: unknown key; did you mean 'factor'?"),
        (("--set", "name=md"), "--set name=md: your files name the samplers; remove it"),
        (("--target", "y"), "--target: no effect without --data; add it, or remove --target"),
        (("--client", "c"), "--client: no effect without --data; add it, or remove --client"),
        (
            ("--data", "mine.csv", "--learning-rates", ","),
            "--learning-rates ,: invalid; must be positive numbers, such as 0.1,0.3,1",
        ),
        (("--against", "ort"), "--against ort: unknown; did you mean 'oort'?"),
        (("--data", "no.csv"), "--data: path: 'no.csv' does not exist; check the path"),
        (
            ("--failures", "0.2"),
            "--failures: no effect without --data; add it, or remove --failures",
        ),
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

    def by_dataset(comparison, is_benchmark):
        of_all, run, echo = comparison.comparison, comparison.run, comparison.echo
        plans.append(of_all.training(run, is_benchmark, echo).plan)
        return 3

    monkeypatch.setattr(command, "execute_all", stop)
    monkeypatch.setattr(ByDataset, "train_and_rank", by_dataset)
    return plans


def test_the_benchmark_has_the_datasets_with_finished_runs_of_md(
    file, tmp_path, plans, monkeypatch
):
    unfinished = lambda self, _: ({name: set() for name in self.datasets}, {"bench_dna": ["md"]})  # noqa: E731
    monkeypatch.setattr(Competition, "_unfinished", unfinished)
    result = compare(file, tmp_path, "--scale", "paper", status=3)
    assert "without bench_dna: nobody has published runs of md there" in result.stdout
    jobs = plans[0].jobs.values()
    # Training reads no run of another sampler; these are looked for when the entries are ranked.
    assert {job.sampler for job in jobs} == {"md", "mine_compared"}
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
    assert {*table["title"]} == {*table["family"]} == {"mine.npz"}
    assert table["differ"].isna().all()


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


def test_m_failures_and_availability_can_be_set_for_the_users_samples(
    file, tmp_path, problem, plans
):
    data, away = problem[:2], ("--availability", "{name: bernoulli, rate: [0.7, 0.9]}")
    clients = ("--m", "3", "--failures", "{probability: 0.2, deadline: 60}")
    compare(file, tmp_path, *data, *clients, "--against", "uniform", status=3)
    for job in plans[0].jobs.values():  # trials and comparison
        settings = job.runs[0].settings
        assert settings["sampler"]["m"] == 3
        assert settings["failures"] == {
            "probability": [0.2],
            "reports": None,
            "deadline": 60,
            "first": None,
        }
    result = compare(file, tmp_path, *data, *away, "--against", "clustered_size", status=2)
    refused = "mine_compared: requires every client to be available in every round; set "
    assert complaint_of(result).startswith(refused)
    flexible = file.with_name("flexible.py")
    flexible.write_text(FLEXIBLE)
    result = compare(
        flexible, tmp_path, *data, *away, "--against", "uniform,clustered_size", status=3
    )
    assert "left out: clustered_size: requires every client" in result.stdout
    settings = [job.runs[0].settings for job in plans[1].jobs.values()]
    assert all(each["availability"]["rate"] == [0.7, 0.9] for each in settings)
    line = complaint_of(compare(file, tmp_path, *data, "--m", "13", status=2))
    assert line == "--m 13: invalid; must be at most 12, the number of clients"
    line = complaint_of(compare(file, tmp_path, *data, "--failures", "{probabilty: 0.2}", status=2))
    assert line.startswith("--failures: probabilty: unknown key; did you mean 'probability'?")


def test_samplers_are_compared_on_clients_that_fail_and_come_and_go(file, tmp_path, problem):
    flexible = file.with_name("flexible.py")
    flexible.write_text(FLEXIBLE)
    away = ("--availability", "{name: bernoulli, rate: [0.5, 0.9]}")
    clients = ("--m", "3", "--failures", "{probability: 0.3, deadline: 60}", *away)
    result = compare(flexible, tmp_path, *problem[:2], *clients, "--against", "uniform")
    assert "on mine.npz (12 clients, m = 3)" in result.stdout
    assert "intervals over seeds:" in result.stdout
    folder = tmp_path / "results" / "compare" / "flexible_compared-mine"
    runs = pd.read_parquet(folder / "summaries" / CROSS_MATRIX / "digit.parquet")
    totals = runs[runs["at"] >= 0].groupby(["sampler", "metric"])["value"].sum().unstack()
    assert {*totals.index} == {"flexible_compared", "md", "uniform"}
    assert (totals[["failed", "wasted_bits", "wasted_seconds"]] > 0).all(axis=None)
    ranks = pd.read_csv(folder / "artefacts" / CROSS_MATRIX / "bench_ranks" / "bench_ranks.csv")
    assert {*ranks["scheme"]} == {*totals.index}


SETS = ("bench_synthetic_00", "bench_spam", "bench_quadratic")


def test_data_on_hand_and_cheap_datasets_come_first(file, tmp_path, plans):
    compare(file, tmp_path, "--scale", "paper", "--on", ",".join(SETS), status=3)
    works = schedule(plans_project(plans, tmp_path), ["mine_compared"], SETS)
    assert [work.name for work in works][-1] == "bench_spam"  # nothing is downloaded in tests
    assert [work.is_on_hand for work in works] == [True, True, False]
    assert [work.seconds for work in works[:2]] == sorted(work.seconds for work in works[:2])
    # Nine trials with two seeds on a holdout, then one of them in ten worlds.
    assert {work.runs for work in works} == {28}


def plans_project(plans, folder):
    """Return something with the plan, folders and configuration of a comparison."""

    class Planned:
        plan, config, data = plans[0], plans[0].config, folder / "data"

    return Planned


def test_minutes_need_the_benchmark(file, tmp_path):
    line = complaint_of(compare(file, tmp_path, "--minutes", "1", status=2))
    assert line == "--minutes: no effect at this scale or with your data; remove it"


@pytest.mark.long
def test_each_dataset_trains_only_the_best_trial_in_all_worlds(file, tmp_path):
    """On generated data; the ranking has an interval over worlds, and a second call trains none."""
    options = ("--scale", "paper", "--on", "bench_quadratic", "--cores", "1")
    first = compare(file, tmp_path, *options)
    assert "28 runs of mine_compared on 1 dataset" in first.stdout
    assert "intervals over worlds:" in first.stdout
    store = tmp_path / "results" / "store"
    runs = {path: path.stat().st_mtime_ns for path in store.rglob("*.parquet")}
    assert len(runs) == 28
    second = compare(file, tmp_path, *options)
    assert runs == {path: path.stat().st_mtime_ns for path in store.rglob("*.parquet")}
    assert first.stdout.splitlines()[-8:] == second.stdout.splitlines()[-8:]


def test_samplers_that_can_run_on_no_dataset_are_refused_before_training(monkeypatch):
    plan = SimpleNamespace(experiments={"crossmatrix/bench_away"})
    comparison = SimpleNamespace(
        training=lambda *_: SimpleNamespace(plan=plan), entries=["mine"], datasets=["bench_away"]
    )
    monkeypatch.setattr(running, "schedule", lambda *_: [])
    with pytest.raises(InputError, match="mine: cannot run on bench_away; set intermittent"):
        ByDataset(comparison, "compare", 2, None, print).train_and_rank(is_benchmark=False)
