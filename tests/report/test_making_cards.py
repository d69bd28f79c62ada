import json
from dataclasses import replace
from pathlib import Path

import pytest

from fedsampling.base.errors import InputError
from fedsampling.experiments.specs import DatasetUse
from fedsampling.report.data_cards import build, listing, overview, write

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
    uses = [
        replace(USE, settings=settings | changes, files=(), experiment=name)
        for name, changes in (
            ("one", {"noise": [0.01, 1]}),
            ("two", {"noise": [0.1, 0.1]}),
            ("three", {"noise": [0.01, 1], "samples": 7}),
        )
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
    assert partition.statistics["classes"]


@pytest.mark.parametrize(
    ("name", "files"), [("femnist", "nist_sd19"), ("tff_cifar100", "tff_cifar100")]
)
def test_dataset_that_no_experiment_uses_still_names_its_files(name, files):
    result = build(name, "official", Path("none"), None)
    assert {origin.dataset for origin in result.origins} == {files}
    assert all(origin.licence and origin.citation for origin in result.origins)
    assert (result.partitions, result.badges, result.notes) == ((), (), ())


def test_unknown_dataset_is_named():
    with pytest.raises(InputError, match="'ijcnn' is unknown; did you mean 'ijcnn1'"):
        build("ijcnn", "embedded", Path("none"), None)


def test_card_is_written_as_plain_data_in_its_order(embedded, tmp_path):
    path = write(embedded, tmp_path / "cards")
    plain = json.loads(path.read_text(encoding="utf-8"))
    assert list(plain["partitions"][0]["statistics"])[:2] == ["clients", "samples"]
    assert "here" not in plain["origins"][0]
    before = path.read_bytes()
    assert write(embedded, tmp_path / "cards").read_bytes() == before


def test_listing_says_where_files_lie_without_reading_them(tmp_path):
    folder = tmp_path / "mirror" / "ijcnn1"
    folder.mkdir(parents=True)
    (folder / "ijcnn1.tr.xz").write_bytes(b"")
    cache = tmp_path / "cache" / "qmnist"
    cache.mkdir(parents=True)
    for part in ("train", "test"):
        (cache / f"qmnist-{part}-labels-idx2-int.gz").write_bytes(b"")
    origins = overview(cache.parent, str(folder.parent))
    local = {(origin.dataset, origin.edition): origin.local for origin in origins}
    assert local["ijcnn1", ""] == "in part"
    assert local["qmnist", ""] == "cache"
    assert local["mnist", ""] == ""
    listed = listing(origins)
    assert "ijcnn1\n  provides: 35,000 training samples" in listed
    assert "uci_har (archive)" in listed
    assert "unknown size" in listed
