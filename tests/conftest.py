"""What several test files share: real files, and one paper's pipeline at a size of seconds."""

import gc
import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import settings

from fedsampling.base import code
from fedsampling.base.families import OWN_FILE, Named
from fedsampling.evidence.summaries import load as load_summary
from fedsampling.experiments.config import Config
from fedsampling.workflow.project import CALL

PAPER = "rizk2022importance"
SMALL = {"agents": 20, "samples": 12}
SHORT = {"rounds": 20, "seeds": 3, "seed_block": 3}
FEW = SHORT | {"dataset": SMALL}
FALL = {"dataset": SMALL, "rounds": 40, "seeds": 4, "seed_block": 4}
STEADY = FALL | {"rounds": 60, "every": 5}
OVERRIDES = {
    **dict.fromkeys(("regression", "standard"), FALL),
    **dict.fromkeys(("steady", "longer", "steady_standard"), STEADY),
    **dict.fromkeys(("few_steady", "few_steady_more", "few_steady_standard"), STEADY),
    **dict.fromkeys(("sensitivity", "uncorrected", "few", "few_standard"), FEW),
    "classification": SHORT,
    "gradient": {"dataset": SMALL, "draws": 200},
    "inclusion": {"draws": 2000},
}

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# In a parallel run these files start first, so that no process is left with one of them at the end.
SLOW_FILES = [
    "workflow/test_snakemake.py",
    "samplers/test_check.py",
    "papers/test_published_results.py",
    "test_docs.py",
    "workflow/test_publishing.py",
    "workflow/test_comparing.py",
    "test_cli.py",
    "report/test_browser.py",
    "report/test_which_sampler.py",
    "experiments/test_pinned_hashes.py",
    "test_kernels.py",
]


@dataclass(frozen=True)
class Pipeline:
    """Where a finished pipeline's inputs and results are."""

    config: Path
    results: Path
    papers: Path

    @property
    def summaries(self):
        folder = self.results / "summaries" / PAPER
        return {name: load_summary(folder / f"{name}.parquet") for name in OVERRIDES}


def pytest_addoption(parser):
    parser.addoption("--ci", action="store_true", help="of the long tests, only those for CI")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--ci"):
        marks = [(item, item.get_closest_marker("long")) for item in items]
        items[:] = [item for item, mark in marks if not mark or mark.kwargs.get("ci")]
    if in_parallel(config):
        rank = {Path(__file__).parent / name: n for n, name in enumerate(SLOW_FILES)}
        items.sort(key=lambda item: rank.get(item.path, len(rank)))


def pytest_collection_finish():
    """The garbage collector need not search the libraries and the tests again and again."""
    gc.collect()
    gc.freeze()


def in_parallel(config):
    """Whether this is one of the processes of pytest-xdist."""
    return hasattr(config, "workerinput")


@pytest.fixture(autouse=True)
def no_call():
    """End the Snakemake call that a test has opened in this process; load users' files again."""
    yield
    os.environ.pop(CALL, None)
    code.allow(True)


@pytest.fixture(scope="session", autouse=True)
def machines_mirror():
    """The mirror that this machine's environment names; no test sees it unless it asks for it."""
    return os.environ.pop("FEDSAMPLING_MIRROR", None)


@pytest.fixture(scope="session")
def mirror(machines_mirror):
    """The folder of real files, where this machine has one."""
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    folder = machines_mirror or str(beside)
    missing = [name for name in ("ijcnn1", "mnist", "nycmesh") if not Path(folder, name).is_dir()]
    if missing:
        pytest.skip(f"no real data: neither FEDSAMPLING_MIRROR nor {beside} holds {missing[0]}/")
    return folder


@pytest.fixture(scope="session")
def built_once(tmp_path_factory, request):
    """Build a folder in one process of a parallel test run; the others wait and read it."""
    base = tmp_path_factory.getbasetemp()
    if in_parallel(request.config):
        base = base.parent

    def build_once(name, build):
        folder, complete = base / name, base / f"{name}.complete"
        with FileLock(base / f"{name}.lock"):
            if not complete.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                build(folder)
                complete.touch()
        return folder

    return build_once


@pytest.fixture(scope="session")
def pipeline(built_once):
    """Results of every job and stage of one paper, tiny; read them, do not change them."""
    return pipeline_in(built_once("pipeline", build_pipeline))


def pipeline_in(root):
    return Pipeline(root / "config.json", root / "results", Path(__file__).parents[1] / "papers")


def build_pipeline(root):
    from fedsampling.runs.execute import execute
    from fedsampling.workflow import draw, report
    from fedsampling.workflow.project import Project

    paths = pipeline_in(root)
    config = Config(scale="quick", data="embedded", papers=[PAPER], overrides={PAPER: OVERRIDES})
    paths.config.write_text(json.dumps(config.model_dump(mode="json")))
    project = Project.open(paths.config, paths.results, paths.papers)
    for job in project.plan.jobs.values():
        execute([job], config, paths.results, lambda *_: None)
    assert draw.draw(PAPER, project) == 0
    report.build_report(project)


@pytest.fixture
def forget_own_files():
    """Unload users' files of schemes and papers' modules, as a new process.

    At the end, users' files are unloaded again, and papers' modules are what they were.
    """
    before = {name: module for name, module in sys.modules.items() if name.startswith("papers.")}
    named = [(member, member.named) for member in own_members() if is_of_paper(member)]

    def forget():
        for member in own_members():
            member.named = ""
        for name in [name for name in sys.modules if name.startswith(OWN)]:
            del sys.modules[name]

    forget()
    yield forget
    forget()
    sys.modules.update(before)
    for name, module in before.items():
        parent, _, key = name.rpartition(".")
        setattr(sys.modules[parent], key, module)
    for member, name in named:
        member.named = name


OWN = (OWN_FILE, "papers.")  # prefixes of the modules of users' files and of papers


def own_members(family=Named):
    """Yield what such modules define that is found by name, also if they are unloaded already."""
    for member in family.__subclasses__():
        yield from own_members(member)
        if member.__module__.startswith(OWN):
            yield member


def is_of_paper(member):
    return member.__module__.startswith("papers.")
