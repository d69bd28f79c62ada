"""Reading YAML: any file gives plain data or one line."""

import pytest
from tests.shared import line_of, lines_of
from yaml.constructor import SafeConstructor

from fedsampling.base.yaml_reading import parse_yaml, read_yaml


class TestReadYaml:
    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("a: [1, 2\n", " line 2: is not YAML ("),
            ("a: !!python/object:os.system x\n", " line 1: is not YAML (could not determine"),
            ("? [a]\n: 1\n", " line 1: is not YAML (found unhashable key); fix that line"),
            ("word\n", " contains a str; must consist of 'key: value' lines"),
        ],
    )
    def test_other_content_than_a_mapping_is_one_line(self, tmp_path, text, complaint):
        path = tmp_path / "file.yaml"
        path.write_text(text)
        line = line_of(read_yaml, path)
        assert line.startswith(f"{path}:{complaint}")
        assert "\n" not in line

    def test_an_empty_file_is_a_mapping_and_an_unreadable_one_is_one_line(self, tmp_path):
        (tmp_path / "file.yaml").write_text("# nothing\n")
        assert read_yaml(tmp_path / "file.yaml") == {}
        (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
        for name, complaint in {
            "none.yaml": "no such file; check the path",
            ".": "cannot be read (Is a directory); must be a YAML file",
            "latin.yaml": "cannot be read (not UTF-8 text); must be a YAML file",
            "latin.yaml/below.yaml": "cannot be read (Not a directory); must be a YAML file",
        }.items():
            assert line_of(read_yaml, tmp_path / name) == f"{tmp_path / name}: {complaint}"


def test_a_duplicate_key_is_rejected_at_any_depth_but_merged_keys_are_not(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text("a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\nc: [{<<: *a, y: 4}, *a]\n")
    assert read_yaml(path)["b"] == {"x": 3, "y": 2}
    path.write_text("a: 1\nb:\n  - {x: 1, x: 2}\na: 2\n")
    assert lines_of(read_yaml, path) == [
        f"{path}: line 3: duplicate key 'x'; remove one",
        f"{path}: line 4: duplicate key 'a'; remove one",
    ]


def test_the_first_of_several_merged_mappings_wins_in_any_version_of_pyyaml(monkeypatch):
    def merge_nothing(loader, node):
        assert not [key for key, _ in node.value if key.value == "<<"]

    monkeypatch.setattr(SafeConstructor, "flatten_mapping", merge_nothing)
    text = """
a: &a {run: a, seeds: a, only: a}
b: &b {run: b, seeds: b, last: b}
list: {<<: [&nested {<<: *a, seeds: own}, *b], run: own}
again: {<<: [*nested, *b]}
"""
    merged = {"run": "a", "seeds": "own", "last": "b", "only": "a"}
    content = parse_yaml(text, "file")
    assert content["again"] == merged
    assert content["list"] == merged | {"run": "own"}
    assert [*content["again"]] == [*merged]  # also the order: jobs are listed in it


def test_merging_something_else_than_mappings_is_one_line():
    for value in ("3", "[1]"):
        line = line_of(parse_yaml, f"a: {{<<: {value}}}", "file")
        assert line == "file: line 1: is not YAML (<< merges mappings only); fix that line"


@pytest.mark.parametrize("value", ["9" * 5000, "2026-13-01", "!!bool x", "!!int ''"])
def test_a_value_that_its_type_rejects_is_one_line(value):
    line = line_of(parse_yaml, f"a: {value}", "file")
    assert line.startswith("file: is not YAML (")
    assert line.endswith("); fix or quote the value")
