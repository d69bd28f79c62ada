"""A verdict is withheld where the evidence is not of the paper's scale or data."""

import pytest

from fedsampling.evidence.verdicts import VERDICTS, Finding, judge


@pytest.mark.parametrize("verdict", VERDICTS[:-1])
def test_a_finding_without_obstacles_stands(verdict):
    finding = Finding(verdict, "5 dB", "Because.")
    assert judge(finding, []) == finding


def test_obstacles_withhold_the_verdict_and_say_what_it_would_be():
    found = judge(Finding("reproduced", "5 dB", "Because."), ["quick scale", "embedded data"])
    assert found.verdict == "not evaluated"
    assert found.ours == "5 dB"
    assert found.reason == (
        "Not judged on quick scale and embedded data; these runs alone would say: reproduced."
    )
