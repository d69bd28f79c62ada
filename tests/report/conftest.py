import shutil

import pytest
from tests.helpers.fake_results import Results, add_cards, add_crossmatrix, add_views, make
from tests.shared import PAPERS, ROOT

from fedsampling.experiments.config import Config
from fedsampling.report import site
from fedsampling.workflow import draw
from fedsampling.workflow.project import Project


@pytest.fixture(scope="session")
def drawn(built_once):
    """Return a tree with a paper at quick scale and one at paper scale on official data."""
    return built_once("drawn", make)


@pytest.fixture(scope="session")
def everything(built_once):
    """Results of all papers from the published runs, and their report; takes minutes."""

    def build(folder):
        project = Project(Config(), folder, PAPERS)
        for key in project.plan.papers:
            assert draw.draw(key, project) == 0
        config = project.config.public()
        papers = project.plan.papers
        site.build(folder, papers, folder / "report", project=ROOT, config=config)

    return built_once("everything", build)


@pytest.fixture
def results(drawn, tmp_path):
    """Return a copy of the tree, free to be changed."""
    shutil.copytree(drawn, tmp_path, dirs_exist_ok=True)
    return Results(tmp_path)


@pytest.fixture(scope="session")
def report(drawn, tmp_path_factory):
    """Return one built report, for tests that only read it."""
    root = tmp_path_factory.mktemp("project")
    shutil.copytree(drawn, root, dirs_exist_ok=True)
    for add in (add_cards, add_views, add_crossmatrix):
        add(root)
    return Results(root).build()
