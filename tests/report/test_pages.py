import json
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from types import SimpleNamespace
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from tests.helpers.fake_results import HOSTILE, OUTCOMES

from fedsampling.base.files import digest
from fedsampling.report import pages
from fedsampling.report.citation import Software
from fedsampling.report.page_templates import PageContent, page_templates
from fedsampling.report.standing import Segment

PAGES = tuple(
    f"{name}.html"
    for name in ("index", "claims", "figures", "about", "data", "first2022paper", "second2025paper")
)


class Page(HTMLParser):
    """What a page is made of: its tags in order, its anchors, and what it points to."""

    def __init__(self, path):
        super().__init__()
        self.tags = []
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def values(self, attribute):
        return [value for _, attributes in self.tags if (value := attributes.get(attribute))]

    def of_class(self, name):
        return sum(name in value.split() for value in self.values("class"))


@pytest.mark.parametrize("name", [*PAGES, "schemes.html"])
def test_every_link_and_image_leads_to_a_file_or_anchor_of_the_report(report, name):
    page = Page(report / name)
    targets = [*page.values("href"), *page.values("src"), *page.values("srcset")]
    inner = [target for target in targets if urlsplit(target).scheme not in ("https", "data")]
    assert len(inner) > 10
    for target in inner:
        parts = urlsplit(target)
        path = report / (unquote(parts.path) or name)
        assert path.is_file(), target
        if parts.path == "explorer.html" and parts.fragment.startswith("view="):
            assert (report / "explorer" / parts.fragment.removeprefix("view=")).is_dir(), target
        elif parts.path == "claims.html" and "=" in parts.fragment:  # chooses filters
            for filtered, value in parse_qsl(parts.fragment):
                shown = Page(path).values(f"data-{filtered}")
                assert any(value in each.split("|") for each in shown), target
        elif parts.fragment:
            assert parts.fragment in Page(path).values("id"), target


@pytest.mark.parametrize("name", PAGES)
def test_only_citations_lead_outside_and_one_small_script_is_executed(report, name):
    page = Page(report / name)
    outside = {(tag, a["href"]) for tag, a in page.tags if (a.get("href") or "").startswith("http")}
    assert outside <= {("a", "https://doi.org/10.1000/xyz"), ("a", "https://example.org/data")}
    scripts = [attributes for tag, attributes in page.tags if tag == "script"]
    assert scripts == [{}]
    script = page.text.partition("<script>")[2].partition("</script>")[0]
    assert 1000 < len(script.encode()) < 10_000
    assert "http" not in script
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert "http" not in (report / "style.css").read_text()


@pytest.mark.parametrize("name", PAGES)
def test_markup_in_the_results_is_shown_as_text(report, name):
    text = (report / name).read_text(encoding="utf-8")
    assert HOSTILE not in text
    if name in ("figures.html", "about.html"):  # show no text of the results
        return
    assert "&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt; &amp; &lt;b&gt;" in text


@pytest.mark.parametrize("confirmed", [0, 1])
def test_the_first_page_lists_confirmed_claims_if_there_are_any(tmp_path, confirmed):
    software = Software("fedsampling", "0", "", "x", ())
    content = PageContent(root=tmp_path, chapters=(), software=software, targets="")
    text = (
        page_templates(content)
        .get_template("index.html.j2")
        .render(
            summary=["Of 2 claims, 2 are answered."],
            segments=[Segment("reproduced", 2, confirmed, "reproduced")],
            map_rows=[],
            highlights=[],
            run=pages.run_totals([]),
            settings={"scale": "quick", "data": "embedded"},
        )
    )
    assert ("List of the confirmed claims" in text) == bool(confirmed)


def test_core_hours_count_the_cores_that_a_run_used():
    devices = ["cpu: A, 1 thread", "cpu: A, 4 threads", "cpu: A, all threads", "cuda: B"]
    runs = {str(i): (3600.0, device) for i, device in enumerate(devices)}
    totals = pages.run_totals([SimpleNamespace(runs=runs, exhibits=())])
    assert totals["devices"] == [
        ("A", 2, 5 * 3600.0, True),
        ("A", 1, 3600.0, False),
        ("cuda: B", 1, 3600.0, False),
    ]


def test_badges_stand_at_what_is_not_the_papers_size_on_official_data(report):
    for name in ("figures.html", "first2022paper.html"):
        assert Page(report / name).of_class("badge")
    page = Page(report / "second2025paper.html")
    assert page.of_class("badge") == page.of_class("notice") == 0


@pytest.mark.parametrize("name", [*PAGES, "schemes.html"])
def test_page_can_be_walked_by_a_screen_reader(report, name):
    page = Page(report / name)
    assert ("html", {"lang": "en-GB"}) in page.tags
    assert [count for count in Counter(page.values("id")).values() if count > 1] == []
    levels = [int(tag[1]) for tag, _ in page.tags if tag in ("h1", "h2", "h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    assert all("alt" in attributes for tag, attributes in page.tags if tag == "img")
    links = [attributes for tag, attributes in page.tags if tag == "a"]
    assert links[0] == {"class": "skip", "href": "#content"}


@pytest.mark.parametrize(
    ("claim", "expected", "missing"),
    [
        (
            "c1",
            [
                '<time datetime="2026-11-22">',  # the date of its rule
                'registered on <time datetime="2026-11-28T20:15:00+00:00">2026-11-28</time>, '
                "commit <code>ab12ab12ab12</code>",
                "5, each with its own clients, delays and training; look 2 of 3 (3, 5, 10 seeds)",
                "<b>Reproduced, confirmed.</b> The fresh interval lies within the margin.",
                "<title>◆ the gap: 22.9 [22.5, 23.3] dB; dashed: the paper",
                "<dt>Rule</dt><dd>Reproduced if it does. ",
                ">fedsampling draw first2022paper</code>",
                "The target is arbitrary.",
                "<title>the gap: 22.8 [22.1, 23.4] dB; dashed: the paper",
                ": reproduced, confirmed by a rule registered on 2026-11-28. fedsampling, version "
                "0.1.0; 5 fresh seeds; ",
                "runs began on 2026-11-28; first2022paper.html#claim-c1.",
            ],
            "first2022paper.html#claim-c2",
        ),
        (
            "c2",
            [
                "<dt>Price</dt><dd>Look 2 of 3, with 12 fresh seeds: about 3.4 core-hours</dd>",
                '<code class="command">fedsampling decide first2022paper/c2</code>',
                '<th scope="row">size</th><td class="part-open">undecided</td>',
                ": partly reproduced, explored. fedsampling",
            ],
            "registered on",
        ),
        ("c3", [], "<svg"),  # it has no interval
        ("c5", [], "Cite this verdict"),  # not run
        ("c5", [], "#figure9"),  # its artefact is not drawn
        (
            "c6",
            ["2 of 4 experiments", ": partly supports (smaller runs), explored. fedsampling"],
            "<svg",
        ),
    ],
)
def test_a_card_shows_rule_interval_coverage_and_citation(report, claim, expected, missing):
    card = _card((report / "first2022paper.html").read_text(), claim)
    assert [text for text in expected if text not in card] == []
    assert missing not in card


def _card(text, claim):
    return text[text.index(f'id="claim-{claim}"') :].partition("</article>")[0]


def test_provenance_has_the_command_the_target_the_hashes_and_the_sums(report):
    text = (report / "first2022paper.html").read_text()
    assert ">fedsampling render first2022paper figure1</code>" in text
    target = "results/artefacts/first2022paper/figure1/artefact.json"
    assert f">snakemake --cores all {target}</code>" in text
    for hashed in (digest(["ab" * 32]), "cd" * 32, "ef" * 20, "12" * 32):
        assert hashed in text
    assert '<span class="verdict contradicted"><span aria-hidden="true">✗</span> contra' in text
    index = (report / "index.html").read_text()
    assert (
        'aria-label="Lovelace et al., 2022, c1: reproduced, confirmed"' in index
    )  # in the evidence map
    assert "3 distinct runs, 6.0 s of computing" in index  # papers share one of them


def test_verdicts_json_has_each_claim_with_our_number_and_the_papers(report):
    records = json.loads((report / "verdicts.json").read_text(encoding="utf-8"))
    assert [record["verdict"] for record in records if record["paper"] == "first2022paper"] == [
        verdict for verdict, _ in OUTCOMES
    ]
    first = records[0]
    assert (first["claim"], first["paper_value"]) == ("c1", 23.1)
    assert (first["low"], first["ours"], first["high"]) == (22.5, 22.9, 23.3)  # fresh seeds
    assert first["explored"]["ours_text"] == "22.8 dB [22.1, 23.4]"
    assert first["declared"]["when"] == "after seeing"
    assert first["text"].startswith(HOSTILE)
    assert first["rule"] == "Reproduced if it does."
    badge = (report / "first2022paper/badge.svg").read_text(encoding="utf-8")
    assert "claims reproduced: 1 of 4 at the paper" in badge
