"""Two users of one store, on the same cluster and at the same time."""

import shutil

import pandas as pd
import pytest


@pytest.fixture
def store(project, user):
    """Return a folder in which the users' group may write, as docs/cluster.md makes it."""
    folder = project("store-owner").root.with_name("store")
    folder.mkdir()
    shutil.chown(folder, group=user.name)
    folder.chmod(0o2775)
    return folder


@pytest.mark.long
def test_two_users_compute_each_run_once_and_get_the_same_results(project, store, user, colleague):
    copies = [project("store-one", who=user), project("store-two", who=colleague)]
    for copy in copies:
        copy.play({"full": {"rounds": 40}, "md": {"rounds": 40}}, store=str(store))
    for started in [copy.started() for copy in copies]:
        assert started.end() == 0, started.output[-6000:]
    assert sorted(copies[0].computed() + copies[1].computed()) == [
        (name, seed, t) for name in ("full", "md") for seed in [0] for t in range(40)
    ]
    assert copies[0].made_files() == copies[1].made_files()
    stored = [path for path in store.rglob("*") if path.is_file()]
    assert len(stored) == 2  # no lock, nothing half-written
    assert all(len(pd.read_parquet(path)) == 40 for path in stored)
