"""The pages of the report: fills the templates with the content.

:mod:`fedsampling.report.content` reads the content, :mod:`fedsampling.report.site` assembles the
folder.  ``templates/`` holds layout and text; this module prepares the values of each page, and
:mod:`fedsampling.report.page_templates` those that all pages share.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fedsampling.base import files
from fedsampling.base.text import listed
from fedsampling.evidence.recomputed import ACCURACY_TOLERANCE, TOLERANCE, recheck_sentence
from fedsampling.evidence.summaries import FEWEST_SEEDS
from fedsampling.evidence.verdicts import GRADES
from fedsampling.experiments.cross_matrix import CLIENTS, CROSS_MATRIX, REFERENCE
from fedsampling.learning.training.costs import INFORMATION_COSTS
from fedsampling.report import citation, formats, overview, standing
from fedsampling.report.content import (
    FROM_PUBLISHED_RUNS,
    Chapter,
    ExperimentViews,
    period,
    provenances,
    settings,
)
from fedsampling.report.drawing import style
from fedsampling.report.drawing.views import POINTS
from fedsampling.report.formats import as_json
from fedsampling.report.names import display_name
from fedsampling.report.page_templates import PageContent, page_templates
from fedsampling.report.text import TEMPLATES
from fedsampling.report.verdicts_file import verdicts_json
from fedsampling.report.which_sampler.advice import MIN_FAMILIES, MIN_SPEED_UP
from fedsampling.report.which_sampler.chooser import QUESTIONS, lookup_table
from fedsampling.report.which_sampler.comparison import PLOT_ENDS, Comparison

COMMANDS = {
    "This report, from finished runs": FROM_PUBLISHED_RUNS,
    "Everything recomputed, at paper scale": "snakemake --cores all "
    "--config scale=paper shipped=false",
}
ADVICE = "bench_advice"  # artefact of the cross matrix: the advice in several situations
LEFT_OUT = "left_out"  # artefact of the cross matrix whose notes say who is left out
ROUND_COSTS = "round_costs"  # table of the cross matrix
_VENDOR = Path(__file__).with_name("vendor")
LIBRARY_VERSION = json.loads((_VENDOR / "package.json").read_text("utf-8"))["version"]


@dataclass(frozen=True)
class Page:
    """A file of the report, and how it is rendered."""

    name: str
    values: Mapping[str, Any] = field(default_factory=dict)
    template: str = ""  # by default the page's name


def write(content: PageContent) -> list[str]:
    """Write the pages and all files that they need; return the names of those that are results."""
    templates = page_templates(content)
    texts = {
        "verdicts.json": verdicts_json(content.chapters),
        "fedsampling.bib": _bibtex(content),
    }
    for page in _pages(content):
        template = templates.get_template(f"{page.template or page.name}.j2")
        texts[page.name] = template.render(page.values)
    files.copy(TEMPLATES / "style.css", content.root / "style.css")
    for name, text in texts.items():
        files.write_text(content.root / name, text)
    return [*texts]


def _pages(content: PageContent) -> Iterator[Page]:
    """Yield all pages: a page of the datasets if there are cards, and so on."""
    settings_and_checks = _settings_and_checks(content.chapters)
    for name in ("README.md", "claims.html", "figures.html"):
        yield Page(name, settings_and_checks)
    yield Page("about.html", _about(content))
    yield Page("index.html", settings_and_checks | _index(content))
    for chapter in content.chapters:
        yield from _of_paper(chapter, content.root)
    if content.cards:
        yield Page("data.html")
    if content.explored:
        yield Page("explorer.html", _explorer(content))
    if content.matrix and content.comparison:
        yield Page("schemes.html", _which_sampler(content.matrix, content))


def _about(content: PageContent) -> dict[str, Any]:
    return {
        "bibtex": _bibtex(content),
        "commands": COMMANDS,
        "agreement": recheck_sentence(content.recomputed),
        "tolerance": TOLERANCE,
        "accuracy_tolerance": ACCURACY_TOLERANCE,
        "recomputed": content.recomputed,
        "run": run_totals(content.chapters),
    }


def _index(content: PageContent) -> dict[str, Any]:
    chapters = content.chapters
    return {
        "map_rows": overview.evidence_map(chapters),
        "run": run_totals(chapters),
        "summary": overview.summary(chapters),
        "segments": standing.segments(overview.of_kind("empirical", chapters)),
        "highlights": overview.highlights(chapters),
    }


def _of_paper(chapter: Chapter, root: Path) -> Iterator[Page]:
    """Yield a paper's page and its badge."""
    values = {"chapter": chapter, "tables": _tables(root, chapter)}
    yield Page(f"{chapter.key}.html", values | _settings_and_checks([chapter]), "paper.html")
    if chapter.claims:
        badge = {"title": "claims reproduced", "value": _reproduced(chapter)}
        yield Page(f"{chapter.key}/badge.svg", badge, "badge.svg")


def _explorer(content: PageContent) -> dict[str, Any]:
    views = [_view_for_page(view, content.chapters) for view in content.explored]
    return {
        "views": as_json(views),
        "colours": as_json({"samplers": style.SCHEMES, "palette": style.PALETTE}),
        "points": POINTS,
        "fewest_seeds": FEWEST_SEEDS,
        "library": LIBRARY_VERSION,
        "start": _first_view(content.explored, content.comparison),
    }


def _which_sampler(matrix: Chapter, content: PageContent) -> dict[str, Any]:
    return {
        "chapter": matrix,
        "questions": QUESTIONS,
        "lookup": as_json(lookup_table(content.comparisons)),
        "advice_rule": {"families": MIN_FAMILIES, "speed_up": MIN_SPEED_UP},
        "plot_ends": PLOT_ENDS,
        "costs": INFORMATION_COSTS,
        "settings": _settings([matrix]),
        "clients": [each for each in matrix.exhibits if each.artefact.startswith(CLIENTS)],
        "left_out": [each for each in matrix.exhibits if each.artefact == LEFT_OUT],
        "round_costs": _tables(content.root, matrix).get(ROUND_COSTS),
        "by_clients": _by_clients(matrix),
    }


def _bibtex(content: PageContent) -> str:
    """Return the entry that cites this report."""
    run_dates = period(content.chapters)
    scales = [f"{name}: {value}" for name, value in _settings(content.chapters).items()]
    return citation.software_bibtex(content.software, run_dates[1] if run_dates else None, scales)


def _settings_and_checks(chapters: Sequence[Chapter]) -> dict[str, Any]:
    return {"settings": _settings(chapters), "checks": _checks(chapters)}


def _by_clients(matrix: Chapter) -> str:
    """Return the note that says what the advice is by the number of clients, which is not asked."""
    notes = [note for each in matrix.exhibits if each.artefact == ADVICE for note in each.notes]
    return next((note for note in notes if note.startswith("By the number of clients")), "")


def _view_for_page(view: ExperimentViews, chapters: Sequence[Chapter]) -> dict[str, Any]:
    """Return a view as plain data, with the names of its paper and of its figures."""
    chapter = next(chapter for chapter in chapters if chapter.key == view.paper)
    exhibits = {exhibit.artefact: formats.exhibit_name(exhibit) for exhibit in chapter.exhibits}
    names = {name: exhibits.get(name, name) for name in view.figures}
    own = {display_name(key).short: colour for key, colour in style.SCHEMES.items()}
    colours = {label: own[name] for label, name in view.samplers.items() if name in own}
    more: dict[str, Any] = {"by": chapter.name, "figures": names, "colours": colours}
    more["settings"] = formats.settings_of(chapter.resolved.get(view.experiment, {}))
    return asdict(replace(view, digests={})) | more


def _first_view(explored: Sequence[ExperimentViews], comparison: Comparison | None) -> str:
    """Return the address of the first view: a paper's first figure, or else the cross matrix."""
    papers = [view for view in explored if any(map(formats.NUMBERED.fullmatch, view.figures))]
    if papers:
        return f"view={papers[0].key}"
    matrix = [view for view in explored if view.paper == CROSS_MATRIX]
    if not matrix or comparison is None:
        return f"view={explored[0].key}"
    advice = comparison.advice()
    best = [candidate.sampler for candidate in (*advice.recommended, *advice.others)[:3]]
    return f"view={matrix[0].key}&samplers={','.join([REFERENCE, *best])}"


def _tables(root: Path, chapter: Chapter) -> dict[str, Markup]:
    """Return the HTML of each table; cells are already escaped."""
    tables = {}
    for exhibit in chapter.exhibits:
        if exhibit.kind != "figure":
            path = root / chapter.key / exhibit.artefact / exhibit.files["html"]
            html = path.read_text("utf-8").replace(' style="text-align: right;"', "")
            html = html.replace("<th>", '<th scope="col">')
            tables[exhibit.artefact] = formats.typeset_html(html)
    return tables


def _checks(chapters: Sequence[Chapter]) -> dict[str, int]:
    """Count the verdicts of claims that are not empirical."""
    checks = overview.of_kind("code check", chapters)
    texts = overview.of_kind("text against tables", chapters)
    return {
        "all": len(checks),
        "passed": sum(claim.passes for claim in checks),
        "absent": sum(claim.verdict == "not run" for claim in checks),
        "texts": len(texts),
        "agreeing": sum(claim.passes for claim in texts),
    }


def _settings(chapters: Sequence[Chapter]) -> dict[str, str]:
    """Return the scales and sources of data of the report: ``{"scale": "quick", ...}``."""
    return {name: listed(words) or "none" for name, words in settings(chapters).items()}


def run_totals(chapters: Sequence[Chapter]) -> dict[str, Any]:
    """Return the period, number and computing time of all runs, by device, and the versions."""
    # Experiments and figures share runs; each counts once.
    runs = {name: run for chapter in chapters for name, run in chapter.runs.items()}
    # Core-seconds of each device, or seconds where the number of cores is unknown.
    devices: dict[tuple[str, bool], list[float]] = {}
    for seconds, device in runs.values():
        cores = formats.cores(device)
        key = formats.device_name(device), cores is not None
        devices.setdefault(key, []).append(seconds * (cores or 1))
    versions: dict[str, set[str]] = {}
    for origin in provenances(chapters):
        for name, number in origin.versions.items():
            versions.setdefault(name, set()).add(number)
    return {
        "period": period(chapters),
        "runs": len(runs),
        "seconds": sum(seconds for seconds, _ in runs.values()),
        "devices": sorted(
            ((name, len(each), sum(each), cores) for (name, cores), each in devices.items()),
            key=lambda row: -row[1],
        ),
        "versions": {name: sorted(numbers) for name, numbers in sorted(versions.items())},
    }


def _reproduced(chapter: Chapter) -> str:
    """Count the reproduced claims among those tested at the paper's size."""
    empirical = overview.of_kind("empirical", [chapter])
    verdicts = [claim.basis.verdict for claim in empirical if claim.basis.grade == GRADES[0]]
    count = f"{verdicts.count('reproduced')} of {len(verdicts)}" if verdicts else "no claim"
    return f"{count} at the paper's size"
