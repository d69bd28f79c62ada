"""Reading YAML: any file gives plain data or one line, and quickly."""

import time

import pytest

from fedsampling.base.errors import InputError
from fedsampling.base.yaml_reading import MAX_DEPTH, parse_yaml, read_yaml


class TestReadYaml:
    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("a: [1, 2\n", " line 2: is not YAML ("),
            ("a: !!python/object:os.system x\n", " line 1: is not YAML (could not determine"),
            ("word\n", " contains a str; must consist of 'key: value' lines"),
        ],
    )
    def test_other_content_than_a_mapping_is_one_line(self, tmp_path, text, complaint):
        path = tmp_path / "file.yaml"
        path.write_text(text)
        with pytest.raises(InputError) as caught:
            read_yaml(path)
        assert str(caught.value).startswith(f"{path}:{complaint}")
        assert "\n" not in str(caught.value)

    def test_an_empty_file_is_an_empty_mapping_and_an_unreadable_one_is_one_line(self, tmp_path):
        (tmp_path / "file.yaml").write_text("# nothing\n")
        assert read_yaml(tmp_path / "file.yaml") == {}
        (tmp_path / "latin.yaml").write_bytes(b"a: \xe9\n")
        for name, complaint in {
            "none.yaml": "no such file; check the path",
            ".": "cannot be read (Is a directory); must be a YAML file",
            "latin.yaml": "cannot be read (not UTF-8 text); must be a YAML file",
            "latin.yaml/below.yaml": "cannot be read (Not a directory); must be a YAML file",
        }.items():
            with pytest.raises(InputError) as caught:
                read_yaml(tmp_path / name)
            assert str(caught.value) == f"{tmp_path / name}: {complaint}"


def test_a_duplicate_key_is_rejected_at_any_depth_and_merged_keys_are_accepted(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text("a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\nc: [{<<: *a, y: 4}, *a]\n")
    assert read_yaml(path)["b"] == {"x": 3, "y": 2}
    path.write_text("a: 1\nb:\n  - {x: 1, x: 2}\na: 2\n")
    with pytest.raises(InputError) as error:
        read_yaml(path)
    assert error.value.lines == (
        f"{path}: line 3: duplicate key 'x'; remove one",
        f"{path}: line 4: duplicate key 'a'; remove one",
    )


def complaint(text):
    """Return the one line with which a text is refused, within a second."""
    before = time.perf_counter()
    with pytest.raises(InputError) as caught:
        parse_yaml(text, "file")
    assert time.perf_counter() - before < 5
    (line,) = caught.value.lines
    assert len(line) < 200
    return line


class TestBounds:
    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("a: &a [*a]", "file: line 1: '*a' refers to itself; write it out"),
            ("[" * 100_000, "file: line 1: more than 50 levels of nesting; use fewer"),
            ("a:\n  - " + "{b: " * 3000, "file: line 2: more than 50 levels of nesting; use fewer"),
            ("a: " + "9" * 5000, "file: line 1: not a valid int; fix or quote it"),
            ("b: 1\na: 2026-13-01", "file: line 2: not a valid timestamp; fix or quote it"),
            ("a: !!bool x", "file: line 1: not a valid bool; fix or quote it"),
            ("? [a]\n: 1", "file: line 1: is not YAML (found unhashable key); fix that line"),
            ("a: *no", "file: line 1: is not YAML (found undefined alias"),
            ('a: ["b\\0.py"]', "file: line 1: a text with a NUL or half a character; remove it"),
            ("a: \udc80", "file: not UTF-8 text; save it as UTF-8"),
        ],
    )
    def test_yaml_beyond_the_limits_is_refused_at_once_in_one_line(self, text, line):
        assert complaint(text).startswith(line)

    def test_nesting_within_the_limit_is_read(self):
        assert parse_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH, "file")
