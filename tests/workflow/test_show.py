"""`fedsampling show`: a run that is of no job of the configuration."""

from tests.shared import PAPERS, line_of

from fedsampling.experiments.config import parse
from fedsampling.runs.places import path_of
from fedsampling.workflow.project import Project
from fedsampling.workflow.show import show


def test_a_corrupt_run_of_no_job_is_one_line(tmp_path):
    run = 10 * "ab"
    path = path_of(tmp_path / "store", run, "0" * 16)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"not a run")
    project = Project(parse({"papers": ["rizk2022importance"], "shipped": False}), tmp_path, PAPERS)
    assert line_of(lambda: [*show(run, project)]).startswith(f"{run}: corrupt, and of no job")
