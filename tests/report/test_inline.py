"""A figure as a part of its page."""

import re
from pathlib import Path

import pytest

from fedsampling.report import inline


@pytest.fixture
def svg(report: Path) -> str:
    return (report / "second2025paper/figure3/figure3.svg").read_text(encoding="utf-8")


def test_what_belongs_to_a_curve_says_so(svg: str) -> None:
    found = str(inline.inline(svg, "figure3", 'role="img"'))
    assert found.startswith('<svg role="img" viewBox="')
    assert '<g class="seed-2" data-curve="m-10"><title>m &lt; 10</title>' in found


def test_ids_are_the_figures_own_and_all_references_are_met(svg: str) -> None:
    found = str(inline.inline(svg, "figure3", ""))
    ids = re.findall(r'\bid="(.*?)"', found)
    assert len(ids) == len(set(ids))
    assert all(name.startswith("figure3-") for name in ids)
    used = set(re.findall(r'href="#(.*?)"', found)) | set(re.findall(r"url\(#(.*?)\)", found))
    assert used <= set(ids)
    assert used


def test_it_is_smaller_and_looks_the_same(svg: str) -> None:
    found = str(inline.inline(svg, "figure3", ""))
    assert len(found) < 0.8 * len(svg)
    ours, theirs = (
        [
            float(n)
            for path in re.findall(r' d="(.*?)"', text, re.S)
            for n in re.findall(r"[\d.]+", path)
        ]
        for text in (found, svg)
    )
    assert ours == pytest.approx(theirs, abs=0.01)


def test_a_figure_without_two_curves_stays_an_image(report: Path) -> None:
    single = (report / "first2022paper/figure1/figure1.svg").read_text(encoding="utf-8")
    assert inline.inline(single, "figure1", "") is None


def test_a_heavy_figure_stays_an_image(svg: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline, "LARGEST", 1000)
    assert inline.inline(svg, "figure3", "") is None
