"""Run kinds that a paper's folder defines."""

import json
from shutil import copytree

import pytest
from tests.shared import PAPERS

from fedsampling.base.errors import InputError
from fedsampling.experiments.config import Config
from fedsampling.experiments.selecting import load_papers
from fedsampling.experiments.specs import jobs

KIND = """
from fedsampling.base.records import Positive
from fedsampling.experiments.simulations.simulation import NoSampler, Simulation, tidy

from .shared import FACTOR


class Doubling(Simulation, name="doubling"):
    size: Positive
    sampler: NoSampler

    def table(self, seed, progress):
        return tidy({"value": ([0], [FACTOR * self.size])})
"""


@pytest.fixture
def folder(tmp_path, forget_own_files):
    """A paper of one experiment, whose run kind stands beside it."""
    folder = tmp_path / "mine"
    texts = dict.fromkeys(("title", "authors", "venue", "url", "summary"), "")
    samplers = {"none": {"name": "none"}}
    experiment = {"kind": "doubling", "title": "", "size": 3, "samplers": samplers, "seeds": 1}
    content = {"key": "mine", "year": 2020, **texts, "experiments": {"one": experiment}}
    folder.mkdir()
    (folder / "paper.yaml").write_text(json.dumps(content | {"artefacts": {}, "claims": {}}))
    (folder / "simulations.py").write_text(KIND)
    (folder / "shared.py").write_text("FACTOR = 2\n")
    return folder


def planned_jobs(*folders):
    config = Config(scale="paper", papers=[str(folder) for folder in folders])
    papers = load_papers(config, PAPERS)
    return [job for paper in papers.values() for job in jobs(paper, config)]


def test_a_run_kind_works_wherever_its_papers_folder_is(folder):
    (job,) = planned_jobs(folder)
    table = job.simulation.table(0, lambda progress: None)
    assert table["value"].tolist() == [6]


def test_code_and_imports_of_a_run_kind_are_part_of_the_jobs_code(folder, forget_own_files):
    codes, hashes = set(), set()
    edits = [("shared", f"FACTOR = {factor}\n") for factor in (2, 3)]
    for number, (name, text) in enumerate([*edits, ("simulations", KIND + "X = 1\n")]):
        forget_own_files()
        folder = copytree(folder, folder.parent / f"copy{number}" / "mine")
        (folder / f"{name}.py").write_text(text)
        (job,) = planned_jobs(folder)
        codes.add(job.code)
        hashes.add(job.runs[0].hash)
    assert (len(codes), len(hashes)) == (3, 1)


def test_a_run_kind_of_another_paper_is_refused(folder):
    other = copytree(folder, folder.parent / "other")
    (other / "simulations.py").unlink()
    content = (other / "paper.yaml").read_text().replace('"key": "mine"', '"key": "other"')
    (other / "paper.yaml").write_text(content)
    with pytest.raises(InputError, match=r"^other.one.kind: 'doubling' belongs to mine; use a"):
        planned_jobs(folder, other)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (KIND.replace('"doubling"', '"network"'), "kind 'network' is already used by fedsam"),
        (KIND + "1 / 0\n", r"\d+: ZeroDivisionError: division by zero; fix the file"),
    ],
)
def test_an_unusable_file_is_one_line_and_can_be_fixed_in_the_same_process(folder, text, line):
    (folder / "simulations.py").write_text(text)
    with pytest.raises(InputError, match=rf"simulations\.py: ?{line}"):
        planned_jobs(folder)
    (folder / "simulations.py").write_text(KIND)
    assert planned_jobs(folder)
