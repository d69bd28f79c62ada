import shutil

import pytest
from tests.helpers.fake_results import Results, add_cards, add_crossmatrix, add_views, make


@pytest.fixture(scope="session")
def drawn(built_once):
    """Return a tree with a paper at quick scale and one at paper scale on official data."""
    return built_once("drawn", make)


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
