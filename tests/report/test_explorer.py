"""The run explorer as a reader drives it, over two experiments whose curves are made up."""

import json
import shutil

import pandas as pd
import pytest
from tests.helpers.browser import CHROMIUM, Browser

from fedsampling.report import text
from fedsampling.report.citation import Software
from fedsampling.report.drawing import heat_maps, style
from fedsampling.report.formats import as_json
from fedsampling.report.page_templates import PageContent, page_templates

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")

VENDOR = text.TEMPLATES.parent / "vendor"
START = "bbb/second"
SAMPLERS = {"md": "MD", "full": "All clients"}
AT = (1, 15_652, 20_000)


def _view(paper, experiment, title):
    return {
        "paper": paper,
        "experiment": experiment,
        "title": title,
        "by": paper,
        "metrics": {"loss": "training loss"},
        "samplers": SAMPLERS,
        "cases": ["low", "high"],
        "seeds": 3,
        "selections": experiment == "second",
        "badges": [],
        "figures": {},
        "colours": {},
        "settings": [],
    }


def _curves(values):
    return [
        {"case": case, "sampler": name, "at": AT, "mean": values}
        | {"low": [value - 0.01 for value in values], "high": [value + 0.01 for value in values]}
        for case in ("low", "high")
        for name in SAMPLERS
    ]


def _selected():
    """Select 10 of 1,000 clients in each round, one of which fails; the case ``low`` has 20."""
    rows = [
        (case, seed, at, (7 * at + 97 * place) % clients, place > 0)
        for case, clients in (("low", 20), ("high", 1000))
        for seed in range(2)
        for at in range(1, 201)
        for place in range(10)
    ]
    columns = ["case", "seed", "round", "client", "reported"]
    return pd.DataFrame(rows, columns=columns).assign(sampler="md")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Return the page of the explorer, next to its library, its style and its data."""
    root = tmp_path_factory.mktemp("explorer")
    views = [_view("aaa", "first", "Zebra runs"), _view("bbb", "second", "Other runs")]
    values = {
        "views": as_json(views),
        "colours": as_json({"samplers": style.SCHEMES, "palette": style.PALETTE}),
        "start": f"view={START}",
        "points": len(AT),
        "fewest_seeds": 3,
        "library": "",
    }
    software = Software("fedsampling", "0", "", "x", ())
    content = PageContent(root=root, chapters=(), software=software, targets="")
    html = page_templates(content).get_template("explorer.html.j2").render(values)
    (root / "explorer.html").write_text(html, encoding="utf-8")
    shutil.copy(text.TEMPLATES / "style.css", root)
    for key, losses in (("aaa/first", [0.93, 0.7, 0.62]), (START, [30.0, 3.0, 0.3])):
        folder = root / "explorer" / key
        folder.mkdir(parents=True)
        call = f"explored({json.dumps(f'{key}/loss')}, {json.dumps(_curves(losses))})"
        (folder / "loss.js").write_text(call, encoding="utf-8")
    maps = heat_maps.script(_selected(), f"{START}/selections")
    (root / "explorer" / START / "selections.js").write_text(maps, encoding="utf-8")
    shutil.copy(VENDOR / "uPlot.iife.min.js", root / "explorer" / "uPlot.js")
    shutil.copy(VENDOR / "uPlot.min.css", root / "explorer" / "uPlot.css")
    return root / "explorer.html"


@pytest.fixture(scope="module")
def windows(tmp_path_factory):
    """Return one light window and one dark one."""
    folder = tmp_path_factory.mktemp("profiles")
    with Browser(folder / "light") as light, Browser(folder / "dark", dark=True) as dark:
        yield {"light": light, "dark": dark}


@pytest.fixture
def browser(windows, page):
    """Return a window with the explorer's first view."""
    return _open(windows["light"], page)


def _open(window, page):
    window.run("location.href = 'about:blank'")
    window.wait("location.href === 'about:blank'")
    window.open(page)
    window.wait("typeof plot === 'object' && plot")
    return window


def _choose(view):
    return f"""
      fields.view.value = "{view}";
      fields.view.dispatchEvent(new Event("change", {{bubbles: true}}));
    """


def test_a_late_script_does_not_replace_the_view_chosen_after(browser):
    browser.run(f"""(async () => {{
      const append = document.head.append.bind(document.head);
      const delay = script => (script.src.includes("aaa") ? 300 : 0);
      document.head.append = script => setTimeout(append, delay(script), script);
      {_choose("aaa/first")}
      {_choose(START)}
      while (!loaded.has("aaa/first/loss")) await new Promise(done => setTimeout(done, 20));
      await new Promise(done => setTimeout(done, 100));
    }})()""")
    assert browser.run("fields.view.value") == START
    assert browser.run("page.querySelector('.note').textContent") == "Other runs: 3 seeds."
    assert browser.run("curves[0].mean[0]") == 30.0


def test_rounds_are_read_and_marked_in_full(browser):
    browser.run("plot.setCursor({left: plot.valToPos(15652, 'x'), top: 10})")
    assert browser.run("reading.textContent").startswith("15,652 rounds: MD 3 [2.99, 3.01]")
    assert browser.run("showX(12345)") == "12,345"


def test_the_skip_link_keeps_the_view(browser):
    browser.run("location.hash = 'content'; new Promise(done => setTimeout(done, 100))")
    assert browser.run("[state.view, fields.view.value]") == [START, START]
    assert browser.run("readAddress(); state.view") == START  # as after a reload


def test_a_link_without_samplers_restores_none_and_exports_nothing(browser):
    browser.click("[name=none]")
    buttons = "['csv', 'svg', 'png'].map(name => page.querySelector(`[name=${name}]`).disabled)"
    assert browser.run(buttons) == [True] * 3
    browser.run("readAddress(); update()")
    assert browser.run("curves.filter(curve => curve.shown).length") == 0
    browser.click("[name=all]")
    assert browser.run(buttons) == [False] * 3


def test_a_search_that_opens_another_view_says_which_words_it_has(browser):
    found = browser.run("""(() => {
      fields.search.value = "zebra giraffz";
      fields.search.dispatchEvent(new Event("input", {bubbles: true}));
      return [state.view, page.querySelector(".unknown").textContent];
    })()""")
    assert found == ["aaa/first", "No experiment has all words; found: zebra."]


@pytest.mark.parametrize(("low", "high"), [(0.6, 0.9), (3, 4.9), (0.5, 2), (0.01, 900)])
def test_a_logarithmic_axis_has_at_least_three_ticks(browser, low, high):
    ticks = browser.run(f"decades(plot, 1, {low}, {high}, 0.1)")
    assert len(ticks) >= 3
    assert low <= min(ticks) < max(ticks) <= high


def test_the_axis_of_a_plateau_has_ticks(browser):
    browser.run(_choose("aaa/first"))
    browser.wait("state.view === 'aaa/first' && plot.data[1][0] === 0.93 && state.logy")
    assert browser.run("plot.axes[1]._splits.length") >= 3


def test_bands_join_ends_of_one_interval_in_a_case_named_high(browser):
    browser.run("fields.case.value = 'each'; state.case = 'each'; update()")
    browser.wait("curves.length === 4")
    names = browser.run("plot.bands.map(({series: ends}) => ends.map(i => series[i - 1].name))")
    for high, low in names:
        assert high.removesuffix(", high") == low.removesuffix(", low")
    browser.run("state.band = false; update()")
    browser.wait("series.length === 4")
    assert browser.run("plot.bands.length") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_black_curves_have_the_colour_of_text_on_the_screen_only(windows, page, scheme):
    window = _open(windows[scheme], page)
    ink = window.run("getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()")
    black = "curves.findIndex(curve => curve.sampler === 'full')"
    assert window.run(f"plot.series.some(each => each.stroke?.() === '{ink}')")
    assert window.run(f"plot.bands.some(band => band.fill(plot) === '{ink}30')")
    assert window.run(f"getComputedStyle(curves[{black}].tag).stroke") == window.run(
        "getComputedStyle(document.body).color"
    )
    assert "#000000" in window.run("svg()")


def test_the_heat_map_counts_its_case_and_writes_exact_shares(browser):
    browser.run("page.querySelector('.selected').open = true")
    summary = "page.querySelector('.summary').textContent"
    browser.wait(summary)
    assert "0 of the 20 clients up to client 19 were never selected." in browser.run(summary)
    browser.run("state.case = 'high'; update()")
    browser.wait(f"{summary}.includes('999')")
    rows = _selected().query("case == 'high'")
    most = rows.groupby(rows["client"] // 9).size().max() / (9 * 2 * 200)
    assert (
        f"in {100 * most:.2g} % of the rounds. Of the selected clients, 10 % did not"
        in browser.run(summary)
    )
