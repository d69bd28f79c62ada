"""Users' samplers: in the configuration, in the hashes of their runs, and in jobs."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.shared import PAPERS, ROOT

from fedsampling.cli import main
from fedsampling.experiments import config
from fedsampling.workflow.plan import plan
from fedsampling.workflow.project import Project

SETTINGS = {"experiments": ["crossmatrix/digit"], "scale": "quick", "data": "embedded"}
SCHEME = """import numpy as np
from fedsampling.samplers.basic import Full


class Mine(Full, name="mine_of_a_test"):
    def weigh(self, state, slots, view, rng):
        return view.p[slots.client]
"""


@pytest.fixture(autouse=True)
def _forgotten(forget_own_files):
    """Each test begins and ends without users' files."""


@pytest.fixture
def jobs(tmp_path, forget_own_files):
    """Jobs of the cross matrix by sampler, beside a file with some text."""

    def jobs_with(text):
        forget_own_files()
        path = tmp_path / f"{abs(hash(text))}" / "mine.py"
        path.parent.mkdir()
        path.write_text(text)
        planned = plan({**SETTINGS, "schemes": [str(path)]}, PAPERS)
        values = {job.sampler: job for job in planned.jobs.values()}
        assert all(job.code for job in values.values())  # read while the file is loaded
        return values

    return jobs_with


def test_the_files_code_is_part_of_the_hash_of_its_samplers_runs_only(jobs, forget_own_files):
    mine, first = "mine_of_a_test", jobs(SCHEME)
    commented = jobs(SCHEME.replace("import numpy", "# Fast.\nimport numpy"))[mine]
    changed = jobs(SCHEME.replace("view.p[slots.client]", "2 * view.p[slots.client]"))[mine]
    importing = "from fedsampling.samplers.divfl import DivFL\nimport numpy"
    assert (first[mine].runs, first[mine].code) == (commented.runs, commented.code)
    assert first[mine].runs[0].hash != changed.runs[0].hash
    codes = {changed.code, jobs(SCHEME.replace("import numpy", importing))[mine].code}
    assert len(codes - {first[mine].code}) == 2
    forget_own_files()
    before = {job.sampler: job for job in plan(SETTINGS, PAPERS).jobs.values()}
    assert before
    assert first.keys() - before.keys() == {mine}
    for name, job in before.items():
        assert (first[name].runs, first[name].code) == (job.runs, job.code)


def test_rewording_the_file_changes_no_run(jobs):
    written = SCHEME.replace("import numpy as np", "from pydantic import Field").replace(
        "    def weigh(self, state, slots, view, rng):\n",
        '    """All clients."""\n\n'
        "    least: float = Field(0, description='of a weight')\n\n"
        "    def weigh(self, state, slots, view, rng):\n"
        '        """Return the importances."""\n'
        "        if view.p.min() < self.least:\n"
        "            raise ValueError('an importance is too small')\n",
    )
    reworded = (
        written.replace("All clients.", "Every client.")
        .replace("of a weight", "smallest weight")
        .replace("Return the importances.", "Weigh by importance.")
        .replace("an importance is too small", "small importance")
    )
    changed = written.replace("Field(0,", "Field(-1,")
    first, again, other = (jobs(text)["mine_of_a_test"] for text in (written, reworded, changed))
    assert (first.runs, first.code) == (again.runs, again.code)
    assert first.runs[0].hash != other.runs[0].hash


def test_a_job_of_the_workflow_runs_the_users_sampler(tmp_path, monkeypatch, forget_own_files):
    (tmp_path / "mine.py").write_text(SCHEME)
    settings = {**SETTINGS, "schemes": [str(tmp_path / "mine.py")]}
    project = Project(config.parse(settings), tmp_path / "results", Path("papers"))
    monkeypatch.chdir(ROOT)
    project.write()
    jobs = project.plan.jobs
    (name,) = [name for name in jobs if "/mine_of_a_test/" in name]
    forget_own_files()  # as in the job's own process
    folders = ["--config", str(project.config_file), "--results", str(tmp_path / "results")]
    result = CliRunner().invoke(main, ["run", name, *folders], catch_exceptions=False)
    manifest = json.loads(Path(result.stdout.strip()).read_text(encoding="utf-8"))
    assert [run["hash"] for run in manifest["runs"]] == [run.hash for run in jobs[name].runs]
