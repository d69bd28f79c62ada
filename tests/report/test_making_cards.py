import json
from dataclasses import replace
from pathlib import Path

import pytest

from fedsampling.experiments.dataset_uses import DatasetUse
from fedsampling.report.data_cards import build, listing, overview

SETTINGS = {"agents": 100, "smallest": 79, "largest": 688, "alpha": 0.5}
USE = DatasetUse(
    paper="rizk2022importance",
    experiment="classification",
    cases=("base",),
    settings=SETTINGS,
    data="embedded",
    seed=0,
    files=("ijcnn1",),
    code=("fedsampling.data.datasets.ijcnn1",),
)


@pytest.fixture(scope="module")
def embedded():
    return build("ijcnn1", "embedded", Path("none"), None, [USE])


def test_card_of_the_stand_in_says_so_names_the_source_and_counts(embedded):
    assert embedded.badges == ("embedded data",)
    assert embedded.papers == ("rizk2022importance",)
    (origin,) = embedded.origins
    assert (origin.files, origin.local) == (3, "")
    assert origin.urls[0].endswith("/ijcnn1.tr.bz2")
    assert "LIBSVM" in origin.page or "libsvm" in origin.page
    (partition,) = embedded.partitions
    assert partition.statistics["clients"] == 100


def test_without_the_official_files_the_card_is_of_the_stand_in(tmp_path, embedded):
    result = build("ijcnn1", "official", tmp_path / "cache", str(tmp_path / "mirror"), [USE])
    assert result.data == "embedded"
    assert result.badges == ("embedded data",)
    assert result.partitions == embedded.partitions
    assert "are not available" in result.notes[0]
    assert str(tmp_path) not in json.dumps(result.plain)  # nor any path of this machine


def test_official_card_has_the_published_counts(mirror, tmp_path):
    result = build("ijcnn1", "official", tmp_path, mirror, [USE])
    assert (result.data, result.badges) == ("official", ())
    (partition,) = result.partitions
    assert partition.statistics["samples"] == 35_000
    assert partition.statistics["test samples"] == 91_701
    assert sorted(result.inputs) == ["ijcnn1.t", "ijcnn1.tr"]


def test_unverified_copy_bears_its_badge(mirror, tmp_path):
    use = replace(USE, settings={}, files=("nycmesh",), experiment="delays")
    result = build("nycmesh", "official", tmp_path, mirror, [use])
    assert result.badges == ("unverified copy",)
    assert result.partitions[0].statistics["clients"] == 188


def test_generated_data_needs_no_files_and_bears_no_badge():
    settings = {"agents": 4, "samples": 6, "dimension": 2, "eigenvalues": [1, 2]}
    changes = {"one": {"noise": [0.01, 1]}, "two": {"noise": [0.1, 0.1]}}
    changes["three"] = {"noise": [0.01, 1], "samples": 7}
    uses = [
        replace(USE, settings=settings | changed, files=(), experiment=name)
        for name, changed in changes.items()
    ]
    result = build("regression", "official", Path("none"), None, uses)
    assert (result.data, result.badges, result.origins) == ("generated", (), ())
    # What gives clients of the same kind is shown once.
    assert [partition.users for partition in result.partitions] == [
        ("rizk2022importance/one: base", "rizk2022importance/two: base"),
        ("rizk2022importance/three: base",),
    ]


def test_dataset_with_the_name_of_a_delay_model_is_described_as_data():
    use = replace(USE, settings={"alpha": 1.0, "beta": 1.0, "clients": 5}, files=())
    (partition,) = build("synthetic", "official", Path("none"), None, [use]).partitions
    assert partition.statistics["clients"] == 5


def test_listing_says_where_files_lie_without_reading_them(tmp_path):
    for name in ("mirror/ijcnn1/ijcnn1.tr.xz", "cache/ijcnn1/ijcnn1.t"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    origins = overview(tmp_path / "cache", str(tmp_path / "mirror"))
    local = {origin.dataset: origin.local for origin in origins}
    assert (local["ijcnn1"], local["mnist"]) == ("in part", "")
    assert "ijcnn1\n  provides: 35,000 training samples" in listing(origins)
