"""Formats: formulas, cells of tables, printed numbers, and the axes of claims' intervals."""

import pytest

from fedsampling.evidence.claims import Claim
from fedsampling.evidence.verdicts import Interval
from fedsampling.experiments.papers import Reported
from fedsampling.report.formats import printed_numbers, typeset, typeset_html, with_options


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("Var[ω_i] ≤ Σ_MD, p_i²", "Var[ω<sub>i</sub>] ≤ Σ<sub>MD</sub>, p<sub>i</sub>²"),
        ("η̃_i^{t+1}, θ^*", "η̃<sub>i</sub><sup>t+1</sup>, θ<sup>*</sup>"),
        ("E_{ξ_i}[g]", "E<sub>ξ<sub>i</sub></sub>[g]"),
        ("(1 − p_i)^m, 2^-5", "(1 − p<sub>i</sub>)<sup>m</sup>, 2<sup>-5</sup>"),
        ("see `x_i`, p_{<b>}", "see <code>x_i</code>, p<sub>&lt;b&gt;</sub>"),
        *((text, text) for text in ("peak_mb", "figure2_best", "x_train_set", "a _b")),
    ],
)
def test_scripts_of_symbols_are_set_but_words_and_code_stay(text, html):
    assert typeset(text) == html
    assert typeset_html('<td class="p_i">p_i</td>') == '<td class="p_i">p<sub>i</sub></td>'


def test_commands_repeat_the_settings_of_the_report_and_other_words_stay():
    text = "3 runs: snakemake --cores all rizk --config scale=paper; data with a checksum"
    changed = with_options(text, "--configfile r/config.json")
    assert changed == text.replace("=paper;", "=paper --configfile r/config.json;")
    assert with_options(text, "") == text


def test_numbers_of_an_artefact_come_with_ours_where_a_claim_compares_them():
    reports = [
        Reported(artefact=figure, claim=claim, quantity=quantity, value=value, unit="dB", where="V")
        for figure, claim, quantity, value in (
            ("figure1", "", "clients", "100"),
            ("figure1", "c1", "gap", "23.1"),
            ("figure2", "", "other", "1"),
            ("figure1", "c9", "not judged", "2"),
        )
    ]
    drawn = (
        Interval("gap", "dB", 8.6, 8.5, 8.8, paper=23.1),
        Interval("other", "dB", 1.0, 0.0, 2.0, paper=5.0),
    )
    claim = Claim("c1", "", "figure1", "", "", "", "partly reproduced", "", "", drawn=drawn)
    numbers = printed_numbers("figure1", reports, [claim])
    assert [(number.row.quantity, number.claim, number.ours) for number in numbers] == [
        ("gap", "c1", "8.60 [8.50, 8.80]"),
        ("clients", "", ""),
        ("not judged", "", ""),
    ]
