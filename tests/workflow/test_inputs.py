"""Whatever a step read is an input of it: after any change, results equal those rebuilt."""

import random

import pytest
from tests.workflow.mutations import applying
from tests.workflow.mutations.table import TABLE

SAMPLE = (
    "paper.yaml claims.c1.margin",
    "seeds of the paper's size",
    "deep/deeper/deepest/farthest.py",
    "mine/third_help.py",
    "by_words.py",
    "truncated: results/artefacts/small/curve/curve.png",
)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Return a finished folder."""
    applying.warm()
    root = tmp_path_factory.mktemp("world") / "base"
    applying.built(root)
    return root


@pytest.mark.parametrize("name", SAMPLE)
def test_after_a_change_results_equal_those_of_a_rebuild(base, tmp_path, name):
    stale, ran = applying.outcome(name, base, tmp_path)
    assert stale == []
    assert ran[-1] == "report"


@pytest.mark.long  # what other tests load in the same process counts as an input, too
def test_without_a_change_nothing_runs(base, tmp_path):
    assert applying.outcome("nothing", base, tmp_path) == ([], [])


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("mine/late_help.py", ["run small/own_data/base/mine/block-0"]),
        ("paper.yaml title", []),
    ],
)
def test_only_runs_that_read_it_are_computed_again(base, tmp_path, name, runs):
    _, ran = applying.outcome(name, base, tmp_path)
    assert [step for step in ran if step.startswith("run ")] == runs


@pytest.mark.long
def test_the_whole_table_of_changes(base, tmp_path):
    names = [*TABLE]
    random.Random(0).shuffle(names)
    assert {n: stale for n in names if (stale := applying.outcome(n, base, tmp_path)[0])} == {}
