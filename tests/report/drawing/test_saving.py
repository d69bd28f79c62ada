"""From an artefact to its files, its badges and its provenance."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.helpers.fake_results import RUNS

from fedsampling.base.errors import InputError
from fedsampling.evidence.provenance import badges, provenance
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing import saving
from fedsampling.report.drawing.artefacts import Artefact
from fedsampling.report.drawing.style import panels

QUICK = {"scale": "quick", "data": "embedded"}
PAPER_SCALE = {"scale": "paper", "data": "official"}
DATA = pd.DataFrame({"name": ["a<b>&", None], "value": [-1234.5, np.nan], "count": [1, 2]})


def paper(caption="C"):
    texts = dict.fromkeys(("title", "authors", "venue", "url", "summary"), "")
    artefacts = {
        f"{kind}1": {"kind": kind, "title": "T", "caption": caption} for kind in ("figure", "table")
    }
    return Paper(key="p", year=2022, experiments={}, artefacts=artefacts, claims={}, **texts)


def summary(*data, scale="paper", unverified=False, settings=None, **changes):
    origin = {"scale": scale, "run_data": list(data or ["generated"]), "unverified": unverified}
    return Summary(pd.DataFrame(), settings or {}, RUNS | {"seeds": [0, 1]} | origin | changes)


def figure():
    with panels(1, 1) as (drawn, (axes,)):
        axes.plot([1, 2], [3, 4], label="$x_i$")
        axes.fill_between([1, 2], [2, 3], [4, 5], alpha=0.2)
        axes.legend()
    return Artefact(DATA, drawn, alt="A line.", notes=("It rises.",))


def save(artefact, name, folder, caption="C", **summaries):
    saving.save(artefact, paper(caption), name, folder, summaries, QUICK)
    return json.loads((folder / "artefact.json").read_text(encoding="utf-8"))


def captioned(folder, caption, data=DATA):
    """Return the caption of a figure of two experiments."""
    cases = {"few": {"work": {"steps": 5}}, "many": {"work": {"steps": 1200}}}
    first = {"settings": {}, "cases": cases, "samplers": {"md": {"m": 10}}}
    second = {
        "settings": {"work": {"steps": 5}, "rounds": 20, "clients": [10, 30]},
        "cases": {"few": {}},
        "samplers": {"md": {"m": 10}, "uniform": {"m": 3}},
    }
    runs = {"e": summary(settings=first), "f": summary(settings=second, seeds=[0, 1, 2])}
    return save(replace(figure(), data=data), "figure1", folder, caption, **runs)["caption"]


UNVERIFIED = summary(unverified=True)
EDITED = summary("official", scale="changed", changed=["rounds 9 (20)"], changed_at="reduced")
EDITED_OFTEN = summary("official", scale="changed", changed=["a 1 (2)", "b 1 (2)", "c 1 (2)"])


class TestFiles:
    @pytest.mark.parametrize(
        ("name", "draw", "kinds"),
        [
            ("figure1", figure, {"csv", "svg", "png"}),
            ("table1", lambda: Artefact(DATA), {"csv", "html", "tex"}),
        ],
    )
    def test_files_are_those_that_the_description_names(self, tmp_path, name, draw, kinds):
        described = save(draw(), name, tmp_path, e=summary(scale="quick"))
        assert described["files"] == {kind: f"{name}.{kind}" for kind in kinds}
        assert {path.name for path in tmp_path.iterdir()} == {
            *described["files"].values(),
            "artefact.json",
        }
        assert described["command"] == f"fedsampling render p {name}"
        starts = {"svg": b"<?xml", "png": b"\x89PNG", "html": b"<table"}
        for kind in starts.keys() & kinds:
            assert (tmp_path / f"{name}.{kind}").read_bytes().startswith(starts[kind])

    @pytest.mark.parametrize(
        ("caption", "data", "expected"),
        [
            (  # of several experiments, all values
                "{seeds} runs, m = {md: m} ({*: m}), N = {e/work.steps}, {f/work.steps}; B_{ij}; "
                "{rounds} rounds, {clients} clients",
                DATA,
                "2 to 3 runs, m = 10 (10 and 3), N = 5 and 1,200, 5; B_{ij}; "
                "20 rounds, 10 to 30 clients",
            ),
            ("m = {*: m}", pd.DataFrame({"m": [10, 10]}), "m = 10"),  # only the values in the CSV
            ("N = {work.steps}", pd.DataFrame({"case": ["few"]}), "N = 5"),  # only its cases
        ],
    )
    def test_a_caption_has_its_numbers_from_the_runs(self, tmp_path, caption, data, expected):
        assert captioned(tmp_path, caption, data) == expected
        with pytest.raises(InputError, match=r"has a setting '\{work\.epochs\}'"):
            captioned(tmp_path, "E = {work.epochs}")

    def test_the_same_artefact_is_the_same_bytes(self, tmp_path):
        contents = []
        for folder in (tmp_path / "first", tmp_path / "second"):
            save(figure(), "figure1", folder, e=summary(scale="quick"))
            save(Artefact(DATA), "table1", folder / "t", e=summary(scale="quick"))
            files = [path for path in folder.rglob("*") if path.is_file()]
            contents.append({path.relative_to(folder): path.read_bytes() for path in files})
        assert contents[0] == contents[1]
        data = pd.read_csv(tmp_path / "first/t/table1.csv")
        pd.testing.assert_frame_equal(data, DATA, check_dtype=False, check_exact=True)

    def test_tables_escape_and_show_numbers_as_text(self, tmp_path):
        save(Artefact(DATA, formats={"value": 3}), "table1", tmp_path)
        html = (tmp_path / "table1.html").read_text(encoding="utf-8")
        assert "<td>a&lt;b&gt;&amp;</td>" in html
        assert "<td>−1,230</td>" in html
        assert "<td>–</td>" in html
        assert "NaN" not in html
        assert r"a<b>\&" in (tmp_path / "table1.tex").read_text(encoding="utf-8")

    def test_signs_of_a_latex_table_are_commands(self, tmp_path):
        data = pd.DataFrame({"gap −_%": [-0.02, np.inf]})
        save(Artefact(data), "table1", tmp_path)
        tex = (tmp_path / "table1.tex").read_text(encoding="utf-8")
        assert r"gap $-$\_\% \\" in tex
        assert r"$-$0.02000 \\" in tex
        assert r"$\infty$ \\" in tex


class TestBadges:
    @pytest.mark.parametrize(
        ("summaries", "facts", "expected"),
        [
            ([summary("official")], PAPER_SCALE, []),
            ([summary("official", scale="reduced"), summary()], QUICK, ["reduced scale"]),
            ([summary("official", scale="changed")], PAPER_SCALE, ["changed settings"]),
            ([summary("embedded", scale="quick")], QUICK, ["quick scale", "embedded data"]),
            ([summary("official"), summary("embedded")], PAPER_SCALE, ["embedded data"]),
            ([summary("official", unverified=True)], PAPER_SCALE, ["unverified copy"]),
            ([summary(), UNVERIFIED], PAPER_SCALE, ["unverified copy: 1"]),
            (4 * [UNVERIFIED] + [summary()], PAPER_SCALE, ["unverified copy: 4 of 5 experiments"]),
            ([EDITED], PAPER_SCALE, ["reduced scale", "changed settings: rounds 9 (20)"]),
            ([EDITED_OFTEN], PAPER_SCALE, ["changed settings: 3 keys"]),
        ],
    )
    def test_badges_say_why_it_is_not_evidence(self, summaries, facts, expected):
        by_name = {str(i): runs for i, runs in enumerate(summaries)}
        assert badges(by_name, facts) == expected

    def test_a_note_names_what_is_larger_than_the_badge_says_or_was_changed(self, tmp_path):
        small, large = summary(scale="reduced"), summary()
        artefact = save(figure(), "figure1", tmp_path, small=small, large=large)
        assert artefact["badges"] == ["reduced scale"]
        assert artefact["notes"][-1] == "At paper scale, unlike the rest: large."
        artefact = save(figure(), "figure1", tmp_path, one=large, other=large)
        assert artefact["notes"] == ["It rises."]
        note = save(figure(), "figure1", tmp_path, e=EDITED)["notes"][-1]
        assert note == "Changed settings, with the paper's value in brackets: rounds 9 (20)."


class TestFaces:
    """Files travel without the page around them, so that each says itself what it is not."""

    def test_a_figure_that_is_not_evidence_says_so_above_its_panels(self, tmp_path):
        artefact = figure()
        save(artefact, "figure1", tmp_path, e=summary("embedded", scale="quick"))
        drawn = artefact.figure
        assert drawn.get_suptitle() == "quick scale · embedded data"
        (words,) = [text for text in drawn.texts if text.get_text()]
        box = words.get_window_extent()
        assert drawn.bbox.x0 <= box.x0 < box.x1 <= drawn.bbox.x1
        assert drawn.axes[0].get_tightbbox().y1 <= box.y0 < box.y1 <= drawn.bbox.y1

    def test_a_table_that_is_not_evidence_says_so_below(self, tmp_path):
        odd = summary("official", scale="changed", changed=["a_b <b> (2)"], changed_at="reduced")
        save(Artefact(DATA), "table1", tmp_path, e=odd)
        html, tex = ((tmp_path / f"table1.{form}").read_text("utf-8") for form in ("html", "tex"))
        words = "reduced scale · changed settings: a_b &lt;b&gt; (2)"
        assert f'<tfoot><tr><td colspan="3">{words}</td></tr></tfoot>' in html
        words = r"\multicolumn{3}{l}{reduced scale $\cdot$ changed settings: a\_b <b> (2)} \\"
        assert f"\\midrule\n{words}\n\\bottomrule" in tex

    def test_evidence_bears_no_words(self, tmp_path):
        artefact = figure()
        saving.save(artefact, paper(), "figure1", tmp_path, {"e": summary("official")}, PAPER_SCALE)
        assert artefact.figure.get_suptitle() == ""
        saving.save(Artefact(DATA), paper(), "table1", tmp_path, {"e": summary()}, PAPER_SCALE)
        assert "tfoot" not in (tmp_path / "table1.html").read_text(encoding="utf-8")


class TestProvenance:
    def test_summaries_are_joined(self):
        changes = {"hashes": ["h3"], "code": ["c2"], "seeds": list(range(7)), "started": "2025"}
        second = summary("embedded", inputs={}, **changes)
        result = provenance({"a": summary(), "b": second}, QUICK)
        assert (result.runs, result.seeds, result.seconds) == (80, "2 to 7", 150)
        assert (result.code, result.data) == (("c2", "cd" * 32), "embedded, generated")
        assert (result.started, result.finished) == ("2025", RUNS["finished"])
        assert result.inputs == RUNS["inputs"]

    def test_the_digest_is_that_of_the_runs_in_any_order(self):
        def digest(*hashes):
            return provenance({"a": summary(hashes=list(hashes))}, QUICK).spec_digest

        assert digest("h1", "h2") == digest("h2", "h1") != digest("h1", "h3")
        assert provenance({}, QUICK).runs == 0  # of a text


def test_linear_axes_separate_thousands_and_other_labels_stay(tmp_path):
    with panels(1, 2) as (drawn, (counts, years)):
        counts.plot([0, 20_000], [0.0, 0.5])
        years.plot([2021, 2022], [1, 2])
        years.set_xticks([2021, 2022], ["2021", "2022"])
    save(Artefact(DATA, drawn), "figure1", tmp_path, e=summary(scale="quick"))
    labels = [[label.get_text() for label in axes.get_xticklabels()] for axes in drawn.axes]
    assert {"10,000", "20,000"} <= set(labels[0])
    assert labels[1] == ["2021", "2022"]
