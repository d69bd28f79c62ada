"""The configuration: defaults, errors, and the origin of the mirror."""

import math

import pytest
from tests.shared import line_of

from fedsampling.base.errors import InputError
from fedsampling.experiments import config


@pytest.fixture(autouse=True)
def _no_mirror(monkeypatch):
    monkeypatch.delenv(config.MIRROR_VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"papers": []}, "papers: no papers; name at least one, or write null for all"),
        ({"reuse": ["nowhere"]}, "reuse: 'nowhere' is not a folder"),
        ({"mirror": "http://example.org"}, "mirror: 'http://example.org' is not a folder; must"),
        ({"mirror": "y" * 300}, f"mirror: '{'y' * 27}...{'y' * 28}' is too long"),
        ({"schemes": ["a\0.py"]}, r"schemes.0: 'a\x00.py' is invalid; must be without NUL"),
        ({"store": "/dev/null/x/y"}, "store: '/dev/null' is a file; must be a folder"),
        ({"run": "my-try\n"}, r"run: 'my-try\n' is invalid"),
        ({"run": "Data"}, "run: 'Data' is reserved for results"),
        ({"scale": "paper", "data": "embedded"}, "data: embedded data are too small"),
        ({"cluster": {"margin": math.inf}}, "cluster.margin: inf is invalid"),
        ({"cluster": {"gpu_model": "a100"}}, "cluster: gpu_model: has no effect with gpu: none"),
        (
            {"cluster": {"gpu": "gres", "gpu_model": "a-40"}},
            "cluster: gpu_model: 'a-40' is invalid",
        ),
        ({"cluster": {"gpu": "shard"}}, "cluster: jobs_per_gpu: must be the number of shards"),
        ({"cluster": {"cpu_partition": "a$(touch X)"}}, "cluster.cpu_partition: 'a$(touch X)'"),
    ],
)
def test_an_error_is_one_line_that_begins_with_the_key(settings, line):
    assert line_of(config.parse, settings).startswith(line)


def test_the_environment_sets_the_mirror_unless_the_file_does(monkeypatch, tmp_path):
    by_variable, by_file = str(tmp_path), str(tmp_path.parent)
    monkeypatch.setenv(config.MIRROR_VARIABLE, by_variable)
    assert config.parse({}).mirror == by_variable
    assert config.parse({"mirror": by_file}).mirror == by_file
    monkeypatch.setenv(config.MIRROR_VARIABLE, "")
    assert config.parse({}).mirror is None
    monkeypatch.setenv(config.MIRROR_VARIABLE, "y" * 300)
    with pytest.raises(InputError, match=r"^FEDSAMPLING_MIRROR: .* is not a folder"):
        config.parse({})


def test_a_report_shows_no_folder_of_this_machine():
    papers = ["/home/me/mine2026sampling", "rizk2022importance"]
    settings = {"papers": papers, "store": "/scratch/me"}
    public = config.parse(settings).public()
    assert public["papers"] == ["mine2026sampling", "rizk2022importance"]
    assert "/" not in str(public)
