"""The configuration: defaults, errors, and the origin of the mirror."""

import math

import pytest

from fedsampling.base.errors import InputError
from fedsampling.experiments import config

FINITE = "is invalid; must be a finite number"
SHORTENED = f"'{'y' * 27}...{'y' * 28}'"  # 300 times y
TOO_LONG = f"{SHORTENED} is too long; must have at most 255 bytes between slashes and 4095 in all"
NO_MIRROR = "is not a folder; must be the folder or URL of the official files"
NAME = (
    "is invalid; must be 1 to 100 letters, digits, '-', '_' or '.', and begin with a letter or "
    "digit"
)


@pytest.fixture(autouse=True)
def _no_mirror(monkeypatch):
    monkeypatch.delenv(config.MIRROR_VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"papers": []}, "papers: no papers; name at least one, or write null for all"),
        (
            {"reuse": ["nowhere"]},
            "reuse: 'nowhere' is not a folder; must be a folder of finished runs",
        ),
        ({"mirror": "nowhere"}, f"mirror: 'nowhere' {NO_MIRROR}"),
        (
            {"mirror": "http://"},
            "mirror: 'http://' has no host; must be a URL such as https://example.org/data",
        ),
        ({"mirror": "~nobody-of-this-name/x"}, f"mirror: '~nobody-of-this-name/x' {NO_MIRROR}"),
        ({"schemes": ["a\0.py"]}, r"schemes.0: 'a\x00.py' is invalid; must be without NUL"),
        ({"reuse": ["y" * 300]}, f"reuse.0: {TOO_LONG}"),
        ({"mirror": "y" * 300}, f"mirror: {TOO_LONG}"),
        ({"store": "~/x"}, "store: '~/x': '~' is not expanded; write the folder's full path"),
        ({"store": "$X/s"}, "store: '$X/s': '$X' is not expanded; write the folder's full path"),
        ({"store": "/dev/null/x/y"}, "store: '/dev/null' is a file; must be a folder"),
        ({"run": "my try"}, f"run: 'my try' {NAME}"),
        ({"run": "my-try\n"}, rf"run: 'my-try\n' {NAME}"),
        *(
            ({"run": name}, f"run: '{name}' is reserved for results; use another name")
            for name in (
                *("config.json", "cards.log", "Data", "simulate"),
                *("artefacts", "recheck.json", "calibration.json"),
            )
        ),
        (
            {"scale": "paper", "data": "embedded"},
            "data: embedded data have no paper scale; use data: official, or scale: quick",
        ),
        ({"checkpoint_seconds": math.inf}, f"checkpoint_seconds: inf {FINITE}"),
        ({"cluster": {"margin": math.inf}}, f"cluster.margin: inf {FINITE}"),
        ({"cluster": {"grace": math.nan}}, f"cluster.grace: nan {FINITE}"),
        (
            {"cluster": {"gpu_partition": "long"}},
            "cluster.gpu_partition: no effect with gpu: none; set gpu to gpu or gres, or remove it",
        ),
        (
            {"cluster": {"cpu_partition": "a$(touch X)"}},
            "cluster.cpu_partition: 'a$(touch X)' is invalid; must consist of letters, "
            "digits and _ . , : + -",
        ),
    ],
)
def test_an_error_is_one_line_that_begins_with_the_key(settings, line):
    with pytest.raises(InputError) as caught:
        config.parse(settings)
    assert caught.value.lines == (line,)


def test_all_errors_of_a_file_come_at_once(tmp_path):
    (tmp_path / "mine.yaml").write_text("scale: fast\ndata: none\npapers: 3\nseeds: 1\n")
    with pytest.raises(InputError) as caught:
        config.load(tmp_path / "mine.yaml")
    keys = [line.split(": ")[0] for line in caught.value.lines]
    assert keys == ["scale", "data", "papers", "seeds"]


def test_an_error_line_names_the_file_or_option_that_sets_the_key(tmp_path):
    base, changed = tmp_path / "base.yaml", tmp_path / "more.yaml"
    base.write_text("scale: quick\npapers: null\nwrong: 1\n")
    changed.write_text("overrides: {a: {b: {rounds: 3}}}\nscale: fast\n")
    changes = {"overrides": {"a": {"c": {"rounds": 0}}}}
    lines = [
        "scale: is wrong",
        "papers: 'a: b' is wrong",
        "wrong: unknown key",
        "overrides.a.b.rounds: 3 is wrong",
        "overrides.a.c.rounds: 0 is wrong",
        "store: is the default",
        "papers/a/paper.yaml: is no key",
    ]
    result = config.with_origins(lines, base, changed, tmp_path / "none.yaml", config=changes)
    places = [changed, base, base, changed, "--config", "--config", ""]
    assert result == [
        f"{at}: {line}" if at else line for at, line in zip(places, lines, strict=True)
    ]


def test_an_empty_file_gives_the_defaults(tmp_path):
    (tmp_path / "empty.yaml").touch()
    assert config.load(tmp_path / "empty.yaml") == config.Config()


def test_the_environment_sets_the_mirror_unless_the_file_does(monkeypatch):
    monkeypatch.setenv(config.MIRROR_VARIABLE, "http://from/variable")
    assert config.parse({}).mirror == "http://from/variable"
    assert config.parse({"mirror": "http://from/file"}).mirror == "http://from/file"
    monkeypatch.setenv(config.MIRROR_VARIABLE, "")
    assert config.parse({}).mirror is None
    monkeypatch.setenv(config.MIRROR_VARIABLE, "y" * 300)
    with pytest.raises(InputError, match=r"^FEDSAMPLING_MIRROR: .* is not a folder"):
        config.parse({})


def test_a_report_shows_no_folder_of_this_machine():
    settings = {
        "papers": ["/home/me/mine2026sampling", "rizk2022importance"],
        "store": "/scratch/me",
    }
    public = config.parse(settings).public()
    assert public["papers"] == ["mine2026sampling", "rizk2022importance"]
    assert "/" not in str(public)
