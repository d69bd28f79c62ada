"""Every page of the report of all published runs in a browser: height and accessibility."""

from itertools import product

import pytest
from tests.helpers.browser import AXE, CHROMIUM, Browser
from tests.shared import PAPERS

MOST_PIXELS = 5900  # of a page in a window of 1400 pixels
FINDINGS = """axe.run(document, {resultTypes: ["violations"]}).then(({violations}) =>
  violations.map(each => [each.id, each.nodes.slice(0, 3).map(node => node.html.slice(0, 200))]))"""

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
]


def seen(report, browser, script):
    """Return what a script returns on each page, with all details open if it asks axe."""
    results = {}
    for page in sorted(report.glob("*.html")):
        browser.open(page)
        if script is FINDINGS:
            browser.run("for (const part of document.querySelectorAll('details')) part.open = true")
            browser.run(f"{AXE.read_text(encoding='utf-8')}; 0")
        results[page.name] = browser.run(script)
    return results


def test_no_page_is_too_high(everything, tmp_path):
    with Browser(tmp_path) as browser:
        heights = seen(everything / "report", browser, "document.documentElement.scrollHeight")
    assert {f"{path.parent.name}.html" for path in PAPERS.glob("*/paper.yaml")} < heights.keys()
    assert {name: height for name, height in heights.items() if height > MOST_PIXELS} == {}


@pytest.mark.skipif(not AXE.is_file(), reason="no axe-core here; 'make axe' downloads it")
@pytest.mark.parametrize(("width", "dark"), [*product((400, 1400), (False, True))])
def test_every_page_is_accessible(everything, tmp_path, width, dark):
    with Browser(tmp_path, width, dark=dark) as browser:
        findings = seen(everything / "report", browser, FINDINGS)
    assert {name: found for name, found in findings.items() if found} == {}
