"""Fixtures that several tests of the workflow share."""

import shutil

import pytest
from tests.shared import PAPERS

from fedsampling.experiments.config import parse
from fedsampling.runs import places
from fedsampling.workflow.project import Project

RIZK = "rizk2022importance"


@pytest.fixture
def opened(tmp_path, monkeypatch, forget_own_files):
    """Return projects of one folder, with a copy of a paper; none of its runs is published."""
    monkeypatch.setattr(places, "PUBLISHED", tmp_path / "published")
    shutil.copytree(PAPERS / RIZK, tmp_path / "papers" / RIZK)

    def open_(**settings):
        config = parse({"papers": [RIZK], "scale": "quick", "data": "embedded", **settings})
        return Project(config, tmp_path / "results", tmp_path / "papers", writes=True)

    return open_
