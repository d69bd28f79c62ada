"""Errors in records are one line with dotted key, value and fix; families and merging."""

from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, field_validator
from tests.shared import line_of

from fedsampling.base import families
from fedsampling.base.errors import InputError, gathering
from fedsampling.base.families import Named, members_within
from fedsampling.base.records import Strict, check, distinct


class Shape(Named, package="tests.base"):
    """A family whose members stand in this module."""


class Circle(Shape, name="circle"):
    radius: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1


class Square(Shape, name="square"):
    side: int = 1


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    monkeypatch.setattr(families, "_import_all", lambda package: None)


class Drawing(Strict):
    colour: Literal["red", "green"] = "red"
    lines: Annotated[int, Field(ge=1, lt=10)] = 1
    visible: bool = True
    title: str = ""
    tags: list[str] = Field(default_factory=list)
    spread: tuple[int, int] = (0, 1)
    weights: tuple[float, ...] | None = None
    shape: Shape = Circle()
    named: dict[str, Shape] = Field(default_factory=dict)

    @field_validator("tags")
    @classmethod
    def _distinct(cls, tags):
        return distinct(tags)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"colur": "red"}, "colur: unknown key; did you mean 'colour'?"),
        ({"zzz": 1}, "zzz: unknown key; known: colour, lines, named, "),
        ({"colour": "gren"}, "colour: 'gren' is unknown; did you mean 'green'?"),
        ({"colour": False}, "colour: false is unknown; known: green, red (YAML reads no, off"),
        ({"lines": "3"}, "lines: '3' is invalid; must be a whole number"),
        ({"lines": 10**30}, f"lines: {10**30} is out of range; must be within ±{2**63 - 1}"),
        ({"lines": 10**5000}, "lines: a number of about 5001 digits is out of range"),
        ({"lines": -3}, "lines: -3 is out of range; must be at least 1"),
        ({"lines": 10}, "lines: 10 is out of range; must be less than 10"),
        ({"visible": 1}, "visible: 1 is invalid; must be true or false"),
        ({"title": ["x" * 99]}, f"title: ['{'x' * 27}...{'x' * 28}'] is invalid; must be text"),
        ({"tags": "a"}, "tags: 'a' is invalid; must be a list"),
        ({"tags": ["a", "b", "a"]}, "tags: duplicate 'a'; remove one"),
        ({"spread": 1}, "spread: 1 is invalid; must be a pair [low, high]"),
        ({"weights": 1}, "weights: 1 is invalid; must be a list"),
        ({"spread": [1]}, "spread.1: missing; add it"),
        ({"shape": "circle"}, "shape: 'circle' is invalid; must be 'key: value' lines"),
        ({"shape": {"name": "sqare"}}, "shape.name: 'sqare' is unknown; did you mean 'square'?"),
        ({"shape": {"name": "circle", "radius": 0}}, "shape.radius: 0 is out of range; must be mo"),
        ({"shape": {"name": "circle", "radius": float("nan")}}, "shape.radius: nan is invalid"),
        ({"named": {"a": {}}}, "named.a.name: missing; add it"),
    ],
)
def test_an_error_is_one_line_with_key_value_and_fix(settings, line):
    assert line_of(check, Drawing, settings, "file: ").startswith(f"file: {line}")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=80),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
        max_leaves=6,
    ),
    st.sampled_from([*Drawing.model_fields, "other"]),
)
def test_any_value_gives_a_record_or_one_line_errors(value, key):
    lines = []
    with gathering(lines):
        check(Drawing, {key: value}, "file: ")
    for line in lines:
        assert line.startswith(f"file: {key}")


def test_long_lists_are_searched_for_duplicates_in_linear_time():
    class Counted(int):
        comparisons = 0
        __hash__ = int.__hash__

        def __eq__(self, other):
            Counted.comparisons += 1
            return int(self) == int(other)

    distinct([Counted(number) for number in range(1000)])
    assert Counted.comparisons < 1000


def test_gathering_keeps_each_line_once_and_lets_other_errors_pass():
    lines = ["first"]
    with gathering(lines):
        raise InputError("second", "first", "second")
    assert lines == ["first", "second"]
    with pytest.raises(ValueError, match="bug"), gathering(lines):
        raise ValueError("bug")


def test_a_field_of_a_family_accepts_any_member_and_keeps_its_name():
    in_yaml = {"name": "circle", "radius": "1e-3"}  # which YAML reads as text
    assert check(Drawing, {"shape": in_yaml}, "").shape == Circle(radius=0.001)
    drawing = check(Drawing, {"shape": {"name": "square", "side": 3}}, "")
    assert drawing.shape == Square(side=3)
    assert drawing.model_dump(mode="json")["shape"] == {"name": "square", "side": 3}
    assert list(members_within(drawing)) == [drawing.shape]
    assert list(Shape.members()) == ["circle", "square"]


def test_an_intermediate_class_has_only_the_members_derived_from_it():
    class Round(Shape):
        pass

    class Ring(Round, name="ring"):
        hole: int = 1

    assert set(Round.members()) == {"ring"}
    assert "ring" in Shape.members()
    Ring.named = ""  # no longer found
