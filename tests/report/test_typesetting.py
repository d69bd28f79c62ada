import pytest

from fedsampling.report.formats import typeset, typeset_html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("Var[ω_i] ≤ Σ_MD", "Var[ω<sub>i</sub>] ≤ Σ<sub>MD</sub>"),
        ("Σ p_i² ≤ 1", "Σ p<sub>i</sub>² ≤ 1"),
        ("θ_i^{t+1}", "θ<sub>i</sub><sup>t+1</sup>"),
        ("E_{ξ_i}[g]", "E<sub>ξ<sub>i</sub></sub>[g]"),
        ("(1 − p_i)^m", "(1 − p<sub>i</sub>)<sup>m</sup>"),
        ("η̃_l, θ^*", "η̃<sub>l</sub>, θ<sup>*</sup>"),
        ("10^6 draws, 2^-5", "10<sup>6</sup> draws, 2<sup>-5</sup>"),
        ("p_{<b>}", "p<sub>&lt;b&gt;</sub>"),
        ("see `x_i`, x_i", "see <code>x_i</code>, x<sub>i</sub>"),
        *(
            (text, text)
            for text in ("peak_mb", "spec_digest", "figure2_best", "x_train_set", "a _b")
        ),
    ],
)
def test_scripts_of_symbols_are_set_but_words_and_code_stay(text, html):
    assert typeset(text) == html


def test_tags_of_a_table_are_left_alone():
    html = '<td class="p_i" style="a_b">p_i &lt; 1</td>'
    assert typeset_html(html) == '<td class="p_i" style="a_b">p<sub>i</sub> &lt; 1</td>'
