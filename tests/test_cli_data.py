"""The commands `fedsampling data …`."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from fedsampling.base.files import sha256
from fedsampling.cli import main
from fedsampling.data.sources.sources import official_datasets

PAPERS = Path(__file__).parents[1] / "papers"
SETTINGS = {"scale": "quick", "data": "embedded", "papers": ["rizk2022importance"]}


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.delenv("FEDSAMPLING_MIRROR", raising=False)

    def called(command, *arguments, **config):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(SETTINGS | config))
        where = ["--config", path, "--results", tmp_path / "results", "--papers", PAPERS]
        return CliRunner().invoke(main, ["data", command, *arguments, *map(str, where)])

    return called


@pytest.fixture
def mesh(mirror, tmp_path):
    shutil.copytree(Path(mirror, "nycmesh"), tmp_path / "mirror" / "nycmesh")
    return tmp_path / "mirror"


def test_list_shows_every_dataset_without_local_files(call):
    result = call("list")
    assert result.exit_code == 0
    titles = {line.split(" (")[0] for line in result.stdout.splitlines() if line[:1].isalpha()}
    assert titles == set(official_datasets())


def test_fetched_files_pass_verification(call, mesh, tmp_path):
    result = call("fetch", "nycmesh", mirror=str(mesh))
    assert result.exit_code == 0, result.stderr
    paths = [Path(line) for line in result.stdout.splitlines()]
    assert [path.name for path in paths] == ["nodes.csv", "links.csv"]
    digests = json.loads(paths[0].parent.with_name("nycmesh.json").read_text())
    assert digests == {path.name: sha256(path) for path in paths}
    result = call("verify", "nycmesh")
    assert result.exit_code == 0, result.stderr
    assert "  cache: nodes.csv: OK: sha256 compared with the copy" in result.stdout
    paths[0].write_bytes(b"id\n")
    result = call("verify", "nycmesh")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("fedsampling: cache: nycmesh/nodes.csv: it has 3 bytes, ")


def test_card_is_printed_or_written_for_the_report(call, tmp_path):
    result = call("card", "ijcnn1")
    assert result.exit_code == 0, result.stderr
    assert "  clients: 100" in result.stdout.splitlines()
    assert "rizk2022importance/classification: base" in result.stdout
    path = Path(call("card", "ijcnn1", "--json").stdout.strip())
    assert path == tmp_path / "results" / "cards" / "ijcnn1.json"
    assert json.loads(path.read_text())["badges"] == ["embedded data"]
    paths = call("card", "ijcnn1", "regression", "--json").stdout.split()
    assert paths == [str(path), str(path.with_name("regression.json"))]
