"""Published runs: their consistency, and how finished runs are added."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from tests.shared import PAPERS, ROOT

from fedsampling.base.errors import InputError
from fedsampling.base.files import read_record, write_record
from fedsampling.data.sources.sources import SOURCES
from fedsampling.experiments.config import parse
from fedsampling.experiments.specs import RunSpec
from fedsampling.report import data_cards
from fedsampling.runs import places, store
from fedsampling.runs.execute import execute
from fedsampling.runs.places import CARDS, INDEX, published_runs
from fedsampling.runs.rows import digest, rows_of
from fedsampling.workflow import plan as workflow
from fedsampling.workflow.project import Project
from fedsampling.workflow.publish import publish_runs

SHIPPED = ROOT / "published_runs"
RIZK = "rizk2022importance"
MAX_BYTES = 24_000_000
NOTHING = ["no run added: the others are published, unfinished, or of other code"]


@pytest.fixture(scope="module")
def files():
    """The spec of every shipped run by hash, by ``paper/experiment``."""
    specs = {}
    for path in SHIPPED.glob("*/*.parquet"):
        table = pq.read_table(path, columns=["metadata"])
        runs = map(json.loads, table["metadata"].to_pylist())
        listed = {run["hash"]: RunSpec(**run["spec"]) for run in runs}
        specs[f"{path.parent.name}/{path.stem}"] = listed
    return specs


def test_published_runs_match_their_hashes_and_use_no_embedded_data(files):
    for runs in files.values():
        assert {run: spec.hash for run, spec in runs.items()} == dict(zip(runs, runs, strict=True))
        assert "embedded" not in {spec.data for spec in runs.values()}


@pytest.mark.long
def test_tables_of_published_runs_match_their_digests(files):
    for name, runs in files.items():
        assert store.load_together(SHIPPED / f"{name}.parquet").keys() == runs.keys()


def test_the_index_names_every_run_once_and_the_folder_is_small(files):
    listed = read_record(SHIPPED / INDEX)
    assert listed == {name: sorted(files[name]) for name in sorted(files)}
    assert len(published_runs(SHIPPED)) == sum(map(len, files.values()))
    assert sum(path.stat().st_size for path in SHIPPED.rglob("*")) < MAX_BYTES


def test_official_data_have_published_cards_of_the_runs_that_use_them(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    plan = workflow.plan({}, PAPERS, tmp_path)
    cards = {name for name in plan.cards if plan.published_card(name)}
    assert cards == {path.stem for path in CARDS.glob("*.json")} >= {"mnist", "cifar10", "nycmesh"}
    for card in data_cards.load(CARDS, list(plan.papers), cards):
        assert card.data == "official"
        assert plan.card_files(card.dataset) == []  # nothing is fetched for it
        uses = plan.cards[card.dataset]
        assert {user for partition in card.partitions for user in partition.users} == {
            f"{use.paper}/{use.experiment}: {', '.join(use.cases)}" for use in uses
        }
        settings = [use.settings for use in uses]
        assert all(partition.settings in settings for partition in card.partitions)
        for origin in card.origins:
            sources = [source for source in SOURCES.values() if source.dataset == origin.dataset]
            sums = {source.file: source.checksum or "" for source in sources}
            assert origin.checksums.items() <= sums.items()


@pytest.fixture
def published(tmp_path):
    """Publish what is finished of some names; two seeds of an experiment are."""
    overrides = {  # none of which the project ships
        "inclusion": {"draws": 50, "seeds": [0, 1], "seed_block": 2},
        "regression": {"rounds": 7},
    }
    settings = {"scale": "paper", "data": "official", "papers": [RIZK]}
    settings["overrides"] = {RIZK: overrides}

    def publish(*names, finished=None, **changes):
        project = Project(parse({**settings, **changes}), tmp_path, PAPERS)
        for job in project.plan.jobs_of(f"{RIZK}/inclusion")[:finished]:
            execute([job], project.config, tmp_path, lambda *_: None)
        return publish_runs(names, project, tmp_path / "shipped")

    return publish


def test_finished_runs_are_added_and_found_again(published, tmp_path):
    folder = tmp_path / "shipped"
    name = f"{RIZK}/inclusion"
    assert published(name, finished=1) == [f"{name}: 2 runs added"]
    assert published(name) == [f"{name}: {len(published_runs(folder)) - 2} runs added"]
    assert published(name) == NOTHING
    runs = [store.load(path) for path in (tmp_path / "store").rglob("*.parquet")]
    stored = {run.metadata["hash"]: run for run in runs}
    assert stored.keys() == published_runs(folder).keys()
    for run, result in stored.items():
        loaded = store.find([folder], run, None)
        assert loaded.metadata == result.metadata
        pd.testing.assert_frame_equal(loaded.table, result.table, check_dtype=False)
        assert store.find([folder], run, "f" * 16) is None
        assert store.find([folder, tmp_path / "store"], run, result.metadata["code"])


def test_publishing_goes_on_after_an_interruption_before_the_index(published, tmp_path):
    folder, name = tmp_path / "shipped", f"{RIZK}/inclusion"
    published(name, finished=1)
    write_record(folder / INDEX, {name: []})  # as it was before
    published(name)
    file = folder / f"{name}.parquet"
    assert store.load_together(file).keys() == published_runs(folder).keys()


def test_only_named_experiments_are_added(published):
    assert published(f"{RIZK}/regression") == NOTHING
    with pytest.raises(InputError, match="'inclusions' is unknown"):
        published("inclusions", finished=0)


def test_scale_best_publishes_runs_of_the_paper_s_scale(published):
    assert published(f"{RIZK}/regression") == NOTHING  # runs the experiment `inclusion`, too
    (line,) = published(f"{RIZK}/inclusion", finished=0, scale="best")
    assert line.endswith("runs added")


def test_quick_scale_cannot_be_published(published):
    with pytest.raises(InputError, match="use scale=reduced, paper or best, and data=official"):
        published(finished=0, scale="quick")


def test_a_corrupt_file_is_ignored_and_a_corrupt_index_is_one_line(published, tmp_path):
    published(f"{RIZK}/inclusion")
    folder = tmp_path / "shipped"
    run, path = next(iter(published_runs(folder).items()))
    path.write_bytes(path.read_bytes()[:-200])
    assert store.find([folder], run, None) is None
    with pytest.raises(InputError, match=r"inclusion\.parquet: missing or corrupt"):
        store.load_together(path)
    index = (folder / INDEX).read_text()
    for damaged in ("{", "[]", index.replace(run, run[:-1] + "x"), index.replace("/incl", "/excl")):
        (folder / INDEX).write_text(damaged)
        with pytest.raises(InputError, match=r"shipped/index\.json: corrupt; restore it"):
            published_runs(folder)
        places._index.cache_clear()


@pytest.mark.parametrize("name", ["../a/b", "/b", "a/..", "../b", "a", "a/b/c", "a/b\0"])
def test_an_index_that_leads_out_of_its_folder_is_corrupt(tmp_path, name):
    write_record(tmp_path / INDEX, {name: ["0" * 20]})
    with pytest.raises(InputError, match=r"index\.json: corrupt"):
        published_runs(tmp_path)


def test_only_values_of_training_are_rounded():
    table = pd.DataFrame({"at": [0, 1], "metric": "accuracy", "value": [1 / 3, 0.83]})
    for kind, third in (("network", float(np.float32(1 / 3))), ("weights", 1 / 3)):
        noted = {"spec": {"settings": {"kind": kind}}, "digest": digest(table)}
        run = store.as_published(store.Result(rows_of(table), noted))
        assert run.table["value"].tolist() == [third, 0.83]
        assert run.metadata["digest"] == digest(run.table)
