"""The page of all schemes is what the classes say."""

from pathlib import Path

from fedsampling.report.names import INFORMATION_COSTS, page
from fedsampling.samplers.scheme import CONVEX_NEEDS, NETWORK_NEEDS, Scheme

PAGE = Path(__file__).parents[2] / "docs/schemes.md"


def test_the_page_is_what_the_verb_prints():
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(), "run: fedsampling schemes > docs/schemes.md"
    assert text.count("\n| [`") == len(Scheme.members())


def test_every_observation_has_its_cost():
    assert INFORMATION_COSTS.keys() == NETWORK_NEEDS | CONVEX_NEEDS
