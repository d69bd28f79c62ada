"""The report as a browser shows it; skipped where there is no Chromium."""

import html
import json
import re
import shutil
import subprocess
from itertools import combinations, product

import numpy as np
import pytest
from tests.helpers.browser import AXE, CHROMIUM
from tests.report.test_pages import PAGES as PLAIN_PAGES

from fedsampling.samplers.clustered import allocate_by_size
from fedsampling.samplers.optimal import probabilities
from fedsampling.theory.weights import statistics

PAGES = (*PLAIN_PAGES, "explorer.html", "schemes.html")
WIDTHS = (400, 1400)
SCHEMES = {"dark": 0, "light": 1}  # Chromium's numbers

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")


def _chromium(profile, *options):
    quiet = ["quic", "background-networking", "component-update", "sync", "gpu"]
    command = [str(CHROMIUM), "--headless=new", f"--user-data-dir={profile}", "--no-sandbox"]
    command += ["--no-first-run", *(f"--disable-{feature}" for feature in quiet)]
    command += ["--enable-logging=stderr", "--v=0", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)


# Reports the result of a test's script, which runs when the page is loaded, or its error.
REPORT = """<script>
function report(value) {
  const box = document.body.appendChild(document.createElement("pre"));
  box.id = "seen";
  box.textContent = JSON.stringify(value);
}
function enter(field, value, event = "input") {
  field.value = value;
  field.dispatchEvent(new Event(event, {bubbles: true}));
}
addEventListener("error", event => report(event.message));
addEventListener("unhandledrejection", event => report(String(event.reason)));
addEventListener("load", async () => {%s});
</script>"""


def _seen(page, script, folder, *options, silent=True):
    """Return what a script reports that is added to a page, which is its file or its text.

    With `silent`, nobody may write to the console.
    """
    text = page if isinstance(page, str) else page.read_text(encoding="utf-8")
    text = text.replace("<script>", f"{REPORT.replace('%s', script)}<script>", 1)
    (folder / "page.html").write_text(text, encoding="utf-8")
    address = (folder / "page.html").as_uri()
    # On a busy machine virtual time may pass before images are decoded and the script is through.
    for budget in (20_000, 80_000, 320_000):
        dump = (f"--virtual-time-budget={budget}", "--dump-dom", address)
        browser = _chromium(folder / f"profile-{budget}", *options, *dump)
        if result := re.search(r'<pre id="seen">(.*?)</pre>', browser.stdout):
            console = [line for line in browser.stderr.splitlines() if "CONSOLE" in line]
            assert not (silent and console)
            return json.loads(html.unescape(result[1]))
    pytest.fail(f"the page reports nothing: {browser.stdout[-500:]}")


@pytest.fixture(scope="module")
def measured(report, tmp_path_factory):
    """Measure every page at every width, in frames: a headless window cannot be narrow."""
    folder = tmp_path_factory.mktemp("browser") / "copy"
    shutil.copytree(report, folder)
    texts = {name: (report / name).read_text(encoding="utf-8") for name in PAGES}
    texts["wide.html"] = '<div style="width: 2000px">wide</div>'
    shown = list(product(texts, WIDTHS))
    frames = "".join(
        f'<iframe width="{width}" height="900" srcdoc="{html.escape(texts[name])}"></iframe>'
        for name, width in shown
    )
    script = """
      const pages = [];
      for (const {contentDocument: page} of document.querySelectorAll("iframe")) {
        for (const image of page.images) {
          image.loading = "eager";
          await image.decode().catch(() => {});
        }
        pages.push(page.documentElement.scrollWidth);
      }
      report(pages);
    """
    page = f"<!doctype html><body>{frames}<script></script></body>"
    return dict(zip(shown, _seen(page, script, folder), strict=True))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_page_never_scrolls_sideways(measured, name, width):
    assert measured["wide.html", width] > width  # it would be noticed
    assert measured[name, width] <= width


FILTERED = """
  const shown = () => [...document.querySelectorAll("[data-item]")]
    .filter(item => item.offsetParent).map(item => item.dataset.verdict);
  const verdict = document.querySelector("select[name=verdict]");
  const seen = [shown().length];
  enter(verdict, "partly reproduced");
  seen.push(shown(), document.querySelector("output").value);
  enter(verdict, "");
  enter(document.querySelector("input[type=search]"), "no such words");
  report([...seen, shown()]);
"""
UNFOLDED = """
  const block = document.querySelector("[data-folded]"), folded = block.matches(".folded");
  enter(block.querySelector("input[type=search]"), "fedscale oort");
  const rows = [...block.querySelectorAll("[data-item]:not([hidden])")].map(row => row.id);
  report([folded, block.matches(".folded"), rows]);
"""
ASKED = """
  const block = document.querySelector("[data-folded]");
  const answers = ["Is Oort of FedScale any zebra?", "Is a zebra any giraffe?"].map(question => {
    enter(block.querySelector("input[type=search]"), question);
    return [...block.querySelectorAll("[data-item]:not([hidden])")].map(row => row.id);
  });
  report(answers);
"""
OPENED = """
  addEventListener("hashchange", () => {
    const card = document.getElementById("claim-c4");
    const rows = card.querySelectorAll("[data-setting]").length;
    report([card.open, rows, Math.round(card.getBoundingClientRect().top) >= 0]);
  });
  location.hash = "claim-c4";
"""
UNKNOWN_VALUE = """
  addEventListener("hashchange", () => report(document.querySelector("output").value));
  location.hash = "outcome=unheard+of";
"""
COPIED = """
  const button = document.querySelector(".copy");
  button.click();
  await new Promise(done => setTimeout(done, 500));
  report(["Copied", "Selected"].includes(button.textContent));  // clipboards may be refused
"""


@pytest.mark.parametrize(
    ("page", "script", "expected"),
    [
        ("claims", FILTERED, [7, ["partly reproduced"], "1 of 7", []]),
        ("schemes", UNFOLDED, [True, False, ["oort-fedscale"]]),
        ("schemes", ASKED, [["oort-fedscale"], []]),  # most words of the question, half or more
        ("first2022paper", OPENED, [True, 2, True]),  # a row for each setting; its row is in sight
        ("claims", UNKNOWN_VALUE, "0 of 7"),
        ("about", COPIED, True),
    ],
)
def test_the_script_filters_unfolds_opens_and_copies(report, tmp_path, page, script, expected):
    assert _seen(report / f"{page}.html", script, tmp_path) == expected


def test_tables_are_sorted_by_number_with_what_is_missing_last(report, tmp_path):
    table = (
        '<div class="fragment"><table><thead><tr><th>scheme</th><th>bits</th></tr></thead><tbody>'
        "<tr><td>MD</td><td>1,234 [1, 2]</td></tr><tr><td>full</td><td>–</td></tr>"
        "<tr><td>all</td><td>&gt;30.0 (0 of 3)</td></tr><tr><td>Oort</td><td>−2</td></tr>"
        "</tbody></table></div>"
    )
    script = """
      const orders = [];
      for (const head of [...document.querySelectorAll("th")].slice(-2)) for (const _ of [1, 2]) {
        head.querySelector("button").click();
        const rows = [...head.closest("table").tBodies[0].rows];
        orders.push([head.getAttribute("aria-sort"), rows.map(row => row.cells[0].textContent)]);
      }
      report(orders);
    """
    text = (report / "second2025paper.html").read_text(encoding="utf-8")
    assert _seen(text.replace("</main>", f"{table}</main>"), script, tmp_path) == [
        ["ascending", ["all", "full", "MD", "Oort"]],
        ["descending", ["Oort", "MD", "full", "all"]],
        ["ascending", ["Oort", "MD", "all", "full"]],
        ["descending", ["all", "MD", "Oort", "full"]],
    ]


def test_the_chooser_answers_by_the_situation(report, tmp_path):
    script = """
      const look = () =>
        [...document.querySelectorAll("#chooser li")].map(line => line.textContent);
      const filtered = [...document.querySelectorAll("[data-item]")].filter(row => row.hidden);
      const seen = [look()];
      for (const name of ["delays", "unbiased"]) {
        enter(document.querySelector(`#chooser [name=${name}]`), "yes");
        seen.push(look());
      }
      report([...seen, location.hash, filtered.length]);
    """
    usual, delays_known, unbiased, address, filtered = _seen(
        report / "schemes.html", script, tmp_path
    )
    assert usual[0].startswith(
        "MD sampling: no sampler that selects clients is reliably better here"
    )
    assert delays_known[1].startswith("TiFL: 50 % faster on average (")
    assert unbiased == usual
    assert address == "#choose=&delays=yes&unbiased=yes"
    linked = f"<script>history.replaceState(null, '', '{address}')</script><nav"
    text = (report / "schemes.html").read_text(encoding="utf-8").replace("<nav", linked, 1)
    *linked, filtered_by_link = _seen(text, script, tmp_path)
    assert linked[0] == unbiased
    assert filtered == filtered_by_link == 0


def test_the_widget_agrees_with_the_python_functions(report, tmp_path):
    rng = np.random.default_rng(0)
    cases = [(rng.integers(1, 900, 7), rng.permutation(7) + 1.0, m) for m in (1, 3, 7)]
    plain = json.dumps([(n.tolist(), delays.tolist(), m) for n, delays, m in cases])
    script = f"""
      const rows = widget.querySelectorAll("tbody tr").length;
      report([rows, {plain}.map(([samples, delays, m]) => compute(samples, delays, m))]);
    """
    rows, computed = _seen(report / "schemes.html", script, tmp_path)
    assert rows == 5
    for (n_samples, delays, m), samplers in zip(cases, computed, strict=True):
        p = n_samples / n_samples.sum()
        r = allocate_by_size(n_samples, m)
        q = probabilities(p, m)
        for name in ("md", "uniform"):
            expected = statistics(name, p, m).variance
            assert samplers[name]["variance"] == pytest.approx(expected, abs=1e-12)
        every = list(product(range(7), repeat=m)) if m < 7 else []
        for name, rows in {"md": np.tile(p, (m, 1)), "clustered_size": r}.items():
            assert samplers[name]["inclusion"] == pytest.approx(1 - (1 - rows).prod(0))
            chances = [np.prod(rows[np.arange(m), list(drawn)]) for drawn in every]
            slowest = [delays[list(drawn)].max() for drawn in every]
            if every:
                assert samplers[name]["seconds"] == pytest.approx(np.dot(chances, slowest))
        sets = [delays[list(drawn)].max() for drawn in combinations(range(7), m)]
        assert samplers["uniform"]["seconds"] == pytest.approx(np.mean(sets))
        variance = (r * (1 - r)).sum(0) / m**2
        assert samplers["clustered_size"]["variance"] == pytest.approx(variance, abs=1e-12)
        assert samplers["optimal"]["inclusion"] == pytest.approx(q)
        assert samplers["flanp"]["seconds"] == m


def test_explorer_draws_reads_exports_and_restores_a_view(report, tmp_path):
    script = r"""
      const page = document.getElementById("explorer");
      const wait = async (what) => {
        while (!what()) await new Promise(done => setTimeout(done, 20));
      };
      const boxes = () => [...page.querySelectorAll(".samplers input")];
      const names = () => boxes().map(box => [box.parentNode.textContent, box.checked]);
      await wait(() => page.querySelector(".u-over"));
      const seen = {samplers: names()};
      boxes()[1].click();
      enter(page.querySelector("[name=x]"), "bits", "change");
      await wait(() => location.hash.includes("x=bits"));
      seen.address = location.hash;
      page.querySelector(".chart").dispatchEvent(new KeyboardEvent("keydown", {key: "End"}));
      await wait(() => page.querySelector(".reading").textContent);
      seen.reading = page.querySelector(".reading").textContent;
      page.querySelector(".values").open = true;
      await wait(() => page.querySelector(".values td"));
      seen.rows = page.querySelectorAll(".values tbody tr").length;
      seen.csv = csv().split("\n");
      const drawn = new DOMParser().parseFromString(svg(), "image/svg+xml");
      seen.svg = drawn.querySelectorAll("polygon").length;
      location.hash = "view=first2022paper/runs&samplers=uniform&logy=1";
      await wait(() => boxes().length && page.querySelector("[name=logy]").checked);
      const answers = ["Uniform accuracy", "Is uniform sampling fast?", "zebra", ""].map(words => {
        enter(page.querySelector("[name=search]"), words);
        return page.querySelector(".unknown").textContent;
      });
      report({...seen, restored: names(), answers});
    """
    shutil.copytree(report / "explorer", tmp_path / "explorer")
    (tmp_path / "style.css").write_bytes((report / "style.css").read_bytes())
    seen = _seen(report / "explorer.html", script, tmp_path)
    assert seen["samplers"] == [["MD", True], ["Uniform", True]]
    assert "view=first2022paper%2Fruns" in seen["address"]
    assert "samplers=md&" in seen["address"]
    assert seen["reading"] == "400 bits sent by clients: MD 0.5 [0.2516, 0.7484]"
    assert seen["rows"] == 4
    assert seen["csv"][0] == "sampler,case,round,bits,mean,low,high"
    assert seen["csv"][1].startswith("md,base,1,100,")
    assert seen["svg"] == 1
    assert seen["restored"] == [["Uniform", True], ["MD", False]]
    assert seen["answers"] == [
        "",
        "No experiment has all words; found: uniform.",
        "No experiment matches; this is still Runs.",
        "",
    ]


@pytest.mark.parametrize(
    ("name", "items", "fields"), [("claims.html", 7, 7), ("second2025paper.html", 1, 0)]
)
def test_without_the_script_everything_is_shown_and_no_field_needs_it(
    report, tmp_path, name, items, fields
):
    script = """
      const page = document.querySelector("iframe").contentDocument;
      const shown = [...page.querySelectorAll("[data-item]")].filter(item => item.offsetParent);
      report([shown.length, page.querySelectorAll("select, input").length]);
    """
    text, style = ((report / file).read_text(encoding="utf-8") for file in (name, "style.css"))
    text = html.escape(text.replace("</head>", f"<style>{style}</style></head>"))
    # A frame that may not run scripts tells the page around it what it shows.
    for allowed, count in {"allow-scripts": fields, "": 0}.items():
        frame = f'<iframe sandbox="allow-same-origin {allowed}" srcdoc="{text}"></iframe>'
        page = f"<body>{frame}<script></script></body>"
        assert _seen(page, script, tmp_path, silent=False) == [items, count]


@pytest.mark.skipif(not AXE.is_file(), reason="no axe-core here; 'make axe' downloads it")
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", PAGES)
def test_page_is_accessible(report, tmp_path, name, scheme):
    script = """
      for (const part of document.querySelectorAll("details")) part.open = true;
      const {violations} = await axe.run(document);
      report([matchMedia("(prefers-color-scheme: dark)").matches, violations.map(each =>
        [each.id, each.nodes.slice(0, 3).map(node => node.html.slice(0, 200))])]);
    """
    shutil.copytree(report, tmp_path, dirs_exist_ok=True)
    rules = AXE.read_text(encoding="utf-8").replace("</script", "<\\/script")
    text = (report / name).read_text(encoding="utf-8")
    text = text.replace("</body>", f"<script>{rules}</script></body>")
    option = f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}"
    dark, violations = _seen(text, script, tmp_path, option, silent=False)
    assert dark == (scheme == "dark")
    assert violations == []


def test_page_prints_without_its_provenance(report, tmp_path):
    pdf = tmp_path / "page.pdf"
    page = (report / "first2022paper.html").as_uri()
    _chromium(tmp_path / "profile", "--no-pdf-header-footer", f"--print-to-pdf={pdf}", page)
    assert pdf.stat().st_size > 20_000
    if reader := shutil.which("pdftotext"):
        text = subprocess.run([reader, pdf, "-"], capture_output=True, text=True, check=True).stdout
        assert "fedsampling render first2022paper figure1" not in text
        assert "On Sampling" in text
        assert "All papers" not in text  # navigation stays on the screen
