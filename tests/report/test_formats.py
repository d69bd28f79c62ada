"""Formats: formulas, cells of tables, printed numbers, and the axes of claims' intervals."""

import pytest
from PIL import Image

from fedsampling.evidence.claims import Claim
from fedsampling.evidence.verdicts import Interval
from fedsampling.experiments.papers import Reported
from fedsampling.report.formats import (
    cores,
    count_rows,
    device_name,
    fits_beside_text,
    is_small_table,
    printed_numbers,
    settings_of,
    typeset,
    typeset_html,
    with_options,
)


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


def test_settings_are_those_of_all_runs_then_of_cases_and_samplers():
    settings = {"rounds": 1000, "dataset": {"name": "mnist", "partition": {"name": "by_digit"}}}
    resolved = {"settings": settings, "cases": {"base": {}}, "samplers": {"md": {"name": "md"}}}
    common = [("Rounds", "1,000"), ("Dataset", "mnist (partition by_digit)")]
    assert settings_of(resolved) == [*common, ("Sampler md", "md")]
    cases = {"base": {}, "slow": {"delays": {"name": "nycmesh", "shared": True}}}
    assert settings_of({"settings": {}, "cases": cases, "samplers": {}}) == [
        ("Case base", "as above"),
        ("Case slow", "delays nycmesh (shared yes)"),
    ]


@pytest.mark.parametrize(
    ("size", "words", "fits"),
    [
        ((1472, 600), 100, True),  # 883 pixels wide
        ((1700, 760), 20, True),  # 1020 pixels: a narrow caption, short enough
        ((1700, 760), 100, False),
        ((2000, 700), 5, False),
    ],
)
def test_a_caption_is_beside_a_figure_if_it_fits(tmp_path, size, words, fits):
    Image.new("L", size).save(tmp_path / "figure.png")
    assert fits_beside_text(tmp_path / "figure.png", "word " * words, is_folded=False) == fits


def test_a_small_table_has_few_rows_and_columns():
    row = "<tr><td>1</td><td>2</td></tr>"

    def table(columns, rows):
        return f"<thead><tr>{'<th>a</th>' * columns}</tr></thead><tbody>{row * rows}</tbody>"

    assert is_small_table(table(3, 5))
    assert not is_small_table(table(9, 5))
    assert not is_small_table(table(3, 30))


@pytest.mark.parametrize("foot", ["", "<tfoot><tr><td colspan='2'>quick scale</td></tr></tfoot>"])
def test_badges_are_no_row_of_a_table(foot):
    body = "<tr><td>1</td><td>2</td></tr>" * 12
    table = f"<thead><tr><th>a</th><th>b</th></tr></thead><tbody>{body}</tbody>{foot}"
    assert count_rows(table) == 12
    assert is_small_table(table)


@pytest.mark.parametrize(
    ("device", "name", "count"),
    [
        ("cpu: AMD EPYC, 1 thread", "AMD EPYC", 1),
        ("cpu: AMD EPYC, 4 threads", "AMD EPYC", 4),
        ("cpu: AMD EPYC, all threads", "AMD EPYC", None),
        ("cuda: NVIDIA H200", "cuda: NVIDIA H200", None),
        (None, "not recorded", None),
    ],
)
def test_a_device_has_a_name_and_a_number_of_cores(device, name, count):
    assert (device_name(device), cores(device)) == (name, count)
