"""benchmarks/compare_results.py names what differs between two results folders."""

import json
import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "compare_results.py"


def results(folder, value="1.0,,x", verdict="reproduced", runs="a"):
    drawn = folder / "artefacts" / "p" / "figure1"
    for path, text in (
        (drawn / "figure1.csv", f"a,b,c\n{value}\n"),
        (drawn / "artefact.json", json.dumps({"provenance": {"runs": 1, "spec_digest": runs}})),
        (folder / "claims" / "p.json", json.dumps({"claims": [{"id": "c1", "verdict": verdict}]})),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"value": "1.1,,x"}, "artefacts/p/figure1/figure1.csv: a, row 0: 1.0 → 1.1 (1 in all)"),
        ({"value": "1.0000000001,,x"}, None),  # rounding
        ({"runs": "b"}, "artefacts/p/figure1/artefact.json: spec_digest: a → b"),
        ({"verdict": "inconclusive"}, "claims/p.json: c1.verdict: reproduced → inconclusive"),
    ],
)
def test_each_difference_is_one_line(tmp_path, changes, line):
    differences = runpy.run_path(str(SCRIPT))["differences"]
    before, after = results(tmp_path / "before"), results(tmp_path / "after", **changes)
    assert [*differences(before, after, tolerance=1e-9)] == ([line] if line else [])
    (after / "claims" / "p.json").unlink()
    assert f"claims/p.json: only in {before}" in differences(before, after)
