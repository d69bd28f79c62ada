"""The configuration: defaults, errors, and where the mirror comes from."""

from pathlib import Path
from typing import Any

import pytest

from fedsampling.base.errors import InputError
from fedsampling.experiments import config


@pytest.fixture(autouse=True)
def _no_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(config.MIRROR_VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"scal": "quick"}, "scal: unknown key; did you mean 'scale'?"),
        ({"scale": "papr"}, "scale: 'papr' is not known; did you mean 'paper'?"),
        ({"scale": "huge"}, "scale: 'huge' is not known; known: best, paper, quick, reduced"),
        ({"data": "offical"}, "data: 'offical' is not known; did you mean 'official'?"),
        ({"papers": "rizk"}, "papers: 'rizk' is not right; give a list"),
        ({"papers": ["a", "a"]}, "papers: 'a' stands twice; remove one"),
        ({"papers": []}, "papers: no papers; give at least one, or null for all"),
        ({"mirror": 3}, "mirror: 3 is not right; give text"),
        ({"reuse": "shared"}, "reuse: 'shared' is not right; give a list"),
        (
            {"reuse": ["nowhere"]},
            "reuse: 'nowhere' is not a folder; give one that holds finished runs",
        ),
        (
            {"mirror": "nowhere"},
            "mirror: 'nowhere' is not a folder; "
            "give the folder or URL that holds the official files",
        ),
        (
            {"overrides": {"a": {"b": 3}}},
            "overrides.a.b: 3 is not right; give 'key: value' lines",
        ),
    ],
)
def test_an_error_is_one_line_that_begins_with_the_key(given: dict[str, Any], line: str) -> None:
    with pytest.raises(InputError) as caught:
        config.parse(given)
    assert caught.value.lines == (line,)


def test_all_errors_of_a_file_come_at_once(tmp_path: Path):
    (tmp_path / "mine.yaml").write_text("scale: fast\ndata: none\npapers: 3\nseeds: 1\n")
    with pytest.raises(InputError) as caught:
        config.load(tmp_path / "mine.yaml")
    keys = [line.split(": ")[0] for line in caught.value.lines]
    assert keys == ["scale", "data", "papers", "seeds"]


def test_a_line_about_a_key_names_where_it_is_said_last_and_deepest(tmp_path: Path):
    base, more = tmp_path / "base.yaml", tmp_path / "more.yaml"
    base.write_text("scale: quick\npapers: null\nwrong: 1\n")
    more.write_text("overrides: {a: {b: {rounds: 3}}}\nscale: fast\n")
    told = {"overrides": {"a": {"c": {"rounds": 0}}}}
    lines = [
        "scale: is wrong",
        "papers: 'a: b' is wrong",
        "wrong: unknown key",
        "overrides.a.b.rounds: 3 is wrong",
        "overrides.a.c.rounds: 0 is wrong",
        "store: is the default",
        "papers/a/paper.yaml: is no key",
    ]
    found = config.attributed(lines, base, more, tmp_path / "none.yaml", config=told)
    places = [more, base, base, more, "--config", "--config", ""]
    assert found == [
        f"{at}: {line}" if at else line for at, line in zip(places, lines, strict=True)
    ]


def test_an_empty_file_gives_the_defaults(tmp_path: Path):
    (tmp_path / "empty.yaml").touch()
    assert config.load(tmp_path / "empty.yaml") == config.Config()


def test_the_variable_stands_in_for_the_mirror_and_the_file_wins(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(config.MIRROR_VARIABLE, "http://from/variable")
    assert config.parse({}).mirror == "http://from/variable"
    assert config.parse({"mirror": "http://from/file"}).mirror == "http://from/file"
    monkeypatch.setenv(config.MIRROR_VARIABLE, "")
    assert config.parse({}).mirror is None


def test_a_report_shows_no_folder_of_this_machine():
    given = {"papers": ["/home/me/mine2026sampling", "rizk2022importance"], "store": "/scratch/me"}
    shown = config.parse(given).public()
    assert shown["papers"] == ["mine2026sampling", "rizk2022importance"]
    assert "/" not in str(shown)
