"""The plan: its file, its targets, and the choice of experiments."""

import os
from dataclasses import replace

import pytest
from snakemake.cli import parse_config
from snakemake.settings.types import ConfigSettings
from tests.processes import run_python
from tests.shared import PAPERS, ROOT, line_of

from fedsampling.workflow import plan as workflow
from fedsampling.workflow import plan_file
from fedsampling.workflow.snakefile import (
    check_file,
    check_targets,
    is_stopped_by_user,
    open_project,
    select_experiments,
)

RIZK = "rizk2022importance"
JOB = f"{RIZK}/regression/base/fedavg/block-0"
QUICK = {"papers": [RIZK], "scale": "quick", "data": "embedded"}


def plan(**settings):
    return workflow.plan({**QUICK, **settings}, PAPERS)


def test_a_saved_plan_has_the_settings_of_each_world(tmp_path):
    name = "crossmatrix/bench_spam"
    settings = {"papers": ["crossmatrix"], "experiments": [name], "scale": "paper"}
    planned = workflow.plan({**settings, "data": "official"}, PAPERS)
    path = tmp_path / "plan.jsonl"
    plan_file.write_plan(path, "key", plan_file.Planned(planned, {}, {}))
    saved = plan_file.read_plan(path, "key", planned.config, PAPERS).plan
    runs = [run for job in saved.jobs.values() for run in job.runs]
    assert {run.settings["problem_seed"] == run.seed for run in runs} == {True}
    assert {run.hash == replace(run, hash="").hash for run in runs} == {True}


def test_every_file_that_the_report_reads_is_a_target():
    inputs = set(plan().report_inputs(RIZK))
    figure, table = (f"artefacts/{RIZK}/{name}" for name in ("figure1", "table1"))
    drawn = {f"{figure}/figure1.svg", f"{figure}/figure1.png", f"{table}/table1.html"}
    assert drawn | {f"{figure}/artefact.json"} <= inputs <= set(plan().targets())


class TestOneExperiment:
    def test_the_plan_has_only_the_experiment_with_its_artefacts_and_claims(self):
        planned = plan(papers=None, experiments=[f"{RIZK}/classification"])
        (paper,) = planned.papers.values()
        assert {*planned.experiments} == {f"{RIZK}/classification"}
        assert {job.experiment for job in planned.jobs.values()} == {"classification"}
        assert [*paper.artefacts] == ["figure2", "alternatives"]
        assert [*paper.claims] == ["c5"]
        assert not paper.left_out

    @pytest.mark.parametrize(
        ("experiment", "line"),
        [
            ("nothing", "'nothing' is invalid; must be paper/experiment"),
            (f"{RIZK}/fe", f"'{RIZK}/fe': no such experiment; did you mean 'few'?"),
            ("rizk2022/few", f"'rizk2022/few': unknown paper; did you mean '{RIZK}'?"),
        ],
    )
    def test_an_unknown_experiment_is_one_line(self, experiment, line):
        assert line_of(plan, papers=None, experiments=[experiment]) == f"experiments: {line}"

    def test_a_target_becomes_a_setting(self):
        config = {}
        named = select_experiments([RIZK, f"{RIZK}/few", "results/report"], config)
        assert named == config["experiments"] == [f"{RIZK}/few"]


def test_no_setting_of_the_user_is_in_a_cluster_jobs_command(tmp_path, monkeypatch):
    """SLURM's plugin passes this command to a shell, which would execute it."""
    monkeypatch.setattr("fedsampling.workflow.snakefile.RESULTS", tmp_path)
    monkeypatch.setenv("FEDSAMPLING_CALL", "")
    (file := tmp_path / "$(reboot).yaml").write_text("device: cpu")
    settings = ConfigSettings(configfiles=[file], config_args=["store='`reboot`"])
    open_project({**QUICK, "store": "'`reboot`"}, settings)
    assert settings.configfiles == []
    call = os.environ["FEDSAMPLING_CALL"]  # for the jobs of this machine
    assert settings.config_args == [f'_call=["results/config.json", "{call}"]']


def test_every_error_is_printed_as_a_line_and_ends_the_process(capsys):
    overrides = {RIZK: {"regression": {"rounds": 0}, "gradient": {"draws": 0}}}
    with pytest.raises(SystemExit) as caught:
        open_project({"papers": [RIZK], "scale": "quick", "overrides": overrides}, ConfigSettings())
    assert caught.value.code == 2
    assert capsys.readouterr().err.splitlines() == [
        f"fedsampling: overrides.{RIZK}.{key}: 0 is out of range; must be at least 1"
        for key in ("regression.rounds", "gradient.draws")
    ]


def test_values_of_the_command_line_are_read_as_in_a_file(capsys):
    """Snakemake makes text of all that is within braces."""
    text = parse_config([f"overrides={{{RIZK}: {{regression: {{seeds: 3}}, gradient: null}}}}"])
    assert text["overrides"][RIZK] == {"regression": {"seeds": "3"}, "gradient": "null"}
    result = open_project({**QUICK, **text}, ConfigSettings(config=text)).plan
    assert len(result.jobs[JOB].runs) == 3
    assert not result.jobs_of(f"{RIZK}/gradient")
    with pytest.raises(SystemExit):
        open_project({"scale": "quik"}, ConfigSettings(config={"scale": "quik"}))
    assert capsys.readouterr().err.startswith("fedsampling: config.yaml, --config: scale: 'quik'")


@pytest.mark.parametrize(
    "read", [check_file, lambda path: open_project({}, ConfigSettings(configfiles=[path]))]
)
def test_a_file_with_a_duplicate_key_is_one_line(tmp_path, capsys, read):
    path = tmp_path / "twice.yaml"
    path.write_text("scale: quick\nscale: paper\n")
    with pytest.raises(SystemExit):
        read(path)
    line = f"fedsampling: {path}: line 2: duplicate key 'scale'; remove one\n"
    assert capsys.readouterr().err.endswith(line)


def test_an_unwritable_results_folder_is_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "results").touch()
    monkeypatch.setattr("fedsampling.workflow.snakefile.RESULTS", tmp_path / "results")
    with pytest.raises(SystemExit):
        open_project(QUICK, ConfigSettings())
    line = f"fedsampling: {tmp_path}/results: cannot be written ("
    assert capsys.readouterr().err.startswith(line)


def test_a_dry_run_updates_only_an_outdated_plan_of_the_same_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "papers").symlink_to(PAPERS)
    path = tmp_path / "results" / "plan.jsonl"
    project = open_project(QUICK, ConfigSettings())
    assert not path.exists()
    project.write()
    path.write_text("outdated")
    open_project({**QUICK, "device": "cuda"}, ConfigSettings())
    assert path.read_text() == "outdated"
    open_project(QUICK, ConfigSettings())
    assert path.read_text() != "outdated"


def test_compare_without_a_sampler_explains_how_to_add_one(capsys):
    with pytest.raises(SystemExit):
        check_targets(["compare"], ["compare"], open_project(QUICK, ConfigSettings()))
    assert capsys.readouterr().err.endswith("; add --config schemes='[my_sampler.py]'\n")


def test_the_log_of_snakemake_shows_whether_the_user_stopped_it(tmp_path):
    failed, stopped = tmp_path / "failed.log", tmp_path / "stopped.log"
    failed.write_text("Error in rule fetch")
    stopped.write_text("Terminating processes on user request, this might take some time.")
    assert not is_stopped_by_user([str(failed)])
    assert is_stopped_by_user([str(failed), str(stopped)])


def test_planning_imports_no_heavy_library():
    """Every cluster job parses the Snakefile again."""
    code = (
        "import sys; from fedsampling.workflow.snakefile import open_project; "
        "from fedsampling.runs.rule_resources import RuleResources; "
        "from snakemake.settings.types import ConfigSettings; "
        "open_project({'scale': 'quick', 'data': 'embedded'}, ConfigSettings()).digests; "
        "heavy = {'torch', 'pandas', 'matplotlib', 'pyarrow'}; "
        "print(*sorted(heavy & set(sys.modules)))"
    )
    assert run_python("-c", code, cwd=ROOT) == "\n"
