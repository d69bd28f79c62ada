"""`fedsampling data …`: files are fetched and verified; verification changes nothing."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.processes import complaint_of

from fedsampling.base.errors import InputError
from fedsampling.base.files import sha256
from fedsampling.cli import main
from fedsampling.data.sources.sources import SOURCES, official_datasets
from fedsampling.workflow.fetch_data import fetch_each
from fedsampling.workflow.verify_data import verify_dataset, verify_each

PAPERS = Path(__file__).parents[2] / "papers"
SETTINGS = {"scale": "quick", "data": "embedded", "papers": ["rizk2022importance"]}


@pytest.fixture
def copy(mirror, tmp_path):
    """A mirror of one's own, with the small tables of NYC Mesh."""
    shutil.copytree(Path(mirror, "nycmesh"), tmp_path / "mirror" / "nycmesh")
    return tmp_path / "mirror"


FILES = {"mnist": 4, "fashion_mnist": 4, "qmnist": 2, "ijcnn1": 3, "shakespeare": 1, "nycmesh": 2}


@pytest.mark.parametrize(("dataset", "files"), [*FILES.items(), ("async_hfl_delays", 4)])
def test_files_of_the_mirror_have_the_published_checksums(mirror, tmp_path, dataset, files):
    lines, faults = verify_dataset(dataset, tmp_path, mirror)
    assert faults == []
    checks = [line for line in lines if line.startswith("  mirror: ")]
    assert len(checks) == files
    assert list(tmp_path.iterdir()) == []
    if dataset in ("mnist", "fashion_mnist"):
        by_publisher = "OK: sha256 and md5 compared with the checksum that the publisher gives"
        assert all(line.endswith(by_publisher) for line in checks)


def test_a_changed_file_is_an_error(copy, tmp_path):
    path = copy / "nycmesh" / "nodes.csv"
    path.write_bytes(path.read_bytes().replace(b"40.71", b"40.72", 1))
    lines, (fault,) = verify_dataset("nycmesh", tmp_path / "cache", str(copy))
    assert fault.startswith("mirror: nycmesh/nodes.csv: it has sha256 ")
    assert "  mirror: nodes.csv: not the published file" in lines


def test_a_file_without_a_checksum_is_not_called_verified(copy, tmp_path, monkeypatch):
    unknown = replace(SOURCES["nycmesh/nodes.csv"], checksum=None, size=None, verified="content")
    monkeypatch.setitem(SOURCES, "nycmesh/nodes.csv", unknown)
    lines, faults = verify_dataset("nycmesh", tmp_path, str(copy))
    assert faults == []
    assert lines[1].startswith("  mirror: nodes.csv: not verified: no checksum is known; counts")


def test_missing_files_are_an_error_only_for_named_datasets(tmp_path):
    lines = list(verify_each([], tmp_path, None))
    assert lines == [f"{name}: no local files" for name in official_datasets()]
    with pytest.raises(InputError, match="mnist: no local files; run 'fedsampling data fetch"):
        list(verify_each(["mnist"], tmp_path, None))


def test_an_unknown_dataset_is_an_error_before_any_download(tmp_path):
    with pytest.raises(InputError, match="'mnis' has no official files; did you mean 'mnist'"):
        list(fetch_each(["mnist", "mnis"], tmp_path, None))
    with pytest.raises(InputError, match="did you mean 'mnist'"):
        verify_dataset("mnis", tmp_path, None)


@pytest.fixture
def call(tmp_path):
    def called(command, *arguments, status=0, **config):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(SETTINGS | config))
        where = ["--config", path, "--results", tmp_path / "results", "--papers", PAPERS]
        result = CliRunner().invoke(main, ["data", command, *arguments, *map(str, where)])
        assert result.exit_code == status, result.stderr
        return result

    return called


def test_fetched_files_pass_verification_until_they_change(call, copy):
    result = call("fetch", "nycmesh", mirror=str(copy))
    paths = [Path(line) for line in result.stdout.splitlines()]
    assert [path.name for path in paths] == ["nodes.csv", "links.csv"]
    digests = json.loads(paths[0].parent.with_name("nycmesh.json").read_text())
    assert digests == {path.name: sha256(path) for path in paths}
    verified = "  cache: nodes.csv: OK: sha256 compared with the copy"
    assert verified in call("verify", "nycmesh").stdout
    paths[0].write_bytes(b"id\n")
    line = complaint_of(call("verify", "nycmesh", status=2))
    assert line.startswith("cache: nycmesh/nodes.csv: it has 3 bytes, ")


def test_card_is_printed_or_written_for_the_report(call, tmp_path):
    card = call("card", "ijcnn1").stdout
    assert "  clients: 100" in card.splitlines()
    assert "rizk2022importance/classification: base" in card
    path = Path(call("card", "ijcnn1", "--json").stdout.strip())
    assert path == tmp_path / "results" / "cards" / "ijcnn1.json"
    assert json.loads(path.read_text())["badges"] == ["embedded data"]
    paths = call("card", "ijcnn1", "regression", "--json").stdout.split()
    assert paths == [str(path), str(path.with_name("regression.json"))]
