"""Verification of data files: errors are found, and nothing is downloaded or written."""

import lzma
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from fedsampling.base.errors import InputError
from fedsampling.data.sources.sources import SOURCES, official_datasets
from fedsampling.workflow.data_files import fetch_each, verify_dataset, verify_each

MESH = ("nodes.csv", "links.csv")


@pytest.fixture
def copy(mirror, tmp_path):
    """A mirror of one's own, with the small tables of NYC Mesh."""
    folder = tmp_path / "mirror" / "nycmesh"
    folder.mkdir(parents=True)
    for name in MESH:
        shutil.copyfile(Path(mirror, "nycmesh", name), folder / name)
    return tmp_path / "mirror"


@pytest.mark.parametrize(
    ("dataset", "files", "phrase"),
    [
        ("mnist", 4, "60,000 training samples"),
        ("fashion_mnist", 4, "test samples per class"),
        ("qmnist", 2, "539 writers of the training images"),
        ("ijcnn1", 3, "35,000 samples in ijcnn1.tr"),
        ("shakespeare", 1, "4,226,206 samples"),
        ("nycmesh", 2, "201 lines in nodes"),
        ("async_hfl_delays", 4, "184 lines in comp1"),
    ],
)
def test_files_of_the_mirror_have_the_published_checksums_and_contents(
    mirror, tmp_path, dataset, files, phrase
):
    lines, faults = verify_dataset(dataset, tmp_path, mirror)
    assert faults == []
    checks = [line for line in lines if line.startswith("  mirror: ")]
    assert len(checks) == files
    assert any(phrase in line for line in lines if line.startswith("  contents"))
    assert list(tmp_path.iterdir()) == []
    if dataset in ("mnist", "fashion_mnist"):
        by_publisher = "OK: sha256 and md5 compared with the checksum that the publisher gives"
        assert all(line.endswith(by_publisher) for line in checks)


def test_a_changed_file_is_an_error_and_is_not_read(copy, tmp_path):
    path = copy / "nycmesh" / "nodes.csv"
    path.write_bytes(path.read_bytes().replace(b"40.71", b"40.72", 1))
    lines, (fault,) = verify_dataset("nycmesh", tmp_path / "cache", str(copy))
    assert fault.startswith("mirror: nycmesh/nodes.csv: it has sha256 ")
    assert "contents" not in "".join(lines)
    assert "  mirror: nodes.csv: not the published file" in lines


def test_both_cache_and_mirror_are_verified(copy, tmp_path):
    cache = tmp_path / "cache"
    shutil.copytree(copy, cache)
    (cache / "nycmesh" / "links.csv").write_bytes(b"id\n")
    lines, _ = verify_dataset("nycmesh", cache, str(copy))
    assert [line.partition(" compared")[0] for line in lines[1:5]] == [
        "  cache: nodes.csv: OK: sha256",
        "  mirror: nodes.csv: OK: sha256",
        "  cache: links.csv: not the published file",
        "  mirror: links.csv: OK: sha256",
    ]


def test_a_packed_file_is_unpacked_outside_the_mirror(copy, tmp_path):
    path = copy / "nycmesh" / "nodes.csv"
    Path(f"{path}.xz").write_bytes(lzma.compress(path.read_bytes()))
    path.unlink()
    before = sorted(copy.rglob("*"))
    lines, faults = verify_dataset("nycmesh", tmp_path / "cache", str(copy))
    assert faults == []
    assert lines[-1] == "  contents (tables): 201 lines in nodes, 290 lines in links"
    assert sorted(copy.rglob("*")) == before
    assert not (tmp_path / "cache").exists()


def test_contents_are_compared_even_without_a_checksum(copy, tmp_path, monkeypatch):
    short = replace(SOURCES["nycmesh/nodes.csv"], checksum=None, size=None, verified="content")
    monkeypatch.setitem(SOURCES, "nycmesh/nodes.csv", short)
    (copy / "nycmesh" / "nodes.csv").write_text("id,lon,lat,roof\n2,-73.99,40.71,0\n")
    _, (fault,) = verify_dataset("nycmesh", tmp_path, str(copy))
    assert "nycmesh: the files do not have 201 lines in nodes as published" in fault


def test_incomplete_editions_and_mirrors_at_a_url_are_no_errors(copy, tmp_path):
    (copy / "nycmesh" / "links.csv").unlink()
    lines, faults = verify_dataset("nycmesh", tmp_path, str(copy))
    assert (faults, "contents" in "".join(lines)) == ([], False)
    away = verify_dataset("nycmesh", tmp_path, "https://mirror.invalid")
    assert away == (["nycmesh: no local files"], [])


def test_qmnist_is_not_compared_without_the_files_of_mnist(mirror, tmp_path):
    shutil.copytree(Path(mirror, "qmnist"), tmp_path / "mirror" / "qmnist")
    lines, faults = verify_dataset("qmnist", tmp_path / "cache", str(tmp_path / "mirror"))
    assert faults == []
    assert lines[-1] == "  contents: not compared: needs the files of mnist, which are missing"


def test_all_lines_are_printed_before_the_errors(copy, tmp_path):
    lines = verify_each(["nycmesh", "mnist"], tmp_path, str(copy))
    text = [next(lines) for _ in range(5)]
    assert text[0] == "nycmesh: 2 local files"
    assert text[4] == "mnist: no local files"
    with pytest.raises(InputError, match="mnist: no local files; run 'fedsampling data fetch"):
        next(lines)


def test_missing_files_are_an_error_only_for_named_datasets(tmp_path):
    lines = list(verify_each([], tmp_path, None))
    assert lines == [f"{name}: no local files" for name in official_datasets()]


def test_an_unknown_dataset_is_an_error_before_any_download(tmp_path):
    with pytest.raises(InputError, match="'mnis' has no official files; did you mean 'mnist'"):
        list(fetch_each(["mnist", "mnis"], tmp_path, "https://mirror.invalid"))
    with pytest.raises(InputError, match="did you mean 'mnist'"):
        verify_dataset("mnis", tmp_path, None)
