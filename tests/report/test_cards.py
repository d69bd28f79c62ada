import re

from tests.helpers.fake_results import add_cards

from fedsampling.base.files import read_record, write_record


def _page(results):
    return (results.build() / "data.html").read_text(encoding="utf-8")


def _section(page, dataset):
    start = page.index(f'<section class="card" aria-labelledby="{dataset}">')
    return page[start : page.index("</section", start)]


def test_without_cards_or_cross_matrix_no_page_and_no_link_is_made(results):
    report = results.build()
    assert not (report / "cards").exists()
    for name in ("data.html", "schemes.html"):
        assert not (report / name).exists()
        assert not any(name in page.read_text(encoding="utf-8") for page in report.glob("*.html"))


def test_cards_have_their_badges_and_those_of_other_papers_are_left_out(results):
    add_cards(results.root)
    page = _page(results)
    about = results.root / "results" / "report" / "about.html"
    assert about.read_text(encoding="utf-8").count('href="data.html"') == 1
    assert re.findall(r'<h2 id="(\w+)">', page) == ["digits", "images", "waves"]
    cards = about.parent / "cards"
    assert sorted(path.stem for path in cards.iterdir()) == ["digits", "images", "waves"]
    assert '<li class="badge">Embedded data</li>' in _section(page, "digits")
    assert '<li class="badge">Unverified copy</li>' in _section(page, "images")
    assert "badge" not in _section(page, "waves")


def test_a_statistic_has_a_column_only_if_experiments_differ_in_it(results):
    add_cards(results.root)
    path = results.root / "results" / "cards" / "digits.json"
    card = read_record(path)
    (partition,) = card["partitions"]
    smaller = {"users": ["b/third: base"], "statistics": partition["statistics"] | {"clients": 5}}
    card["partitions"] = [partition, partition | smaller]
    write_record(path, card)
    section = _section(_page(results), "digits")
    assert re.findall('<th scope="col" class="count">([A-Z].*?)</th>', section) == ["Clients"]
    assert section.count("<td>32 × 32</td>") == 1
