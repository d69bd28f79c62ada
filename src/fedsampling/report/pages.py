"""The pages of the report: fills the templates with the content.

:mod:`fedsampling.report.content` reads the content, :mod:`fedsampling.report.site` assembles the
folder.  ``templates/`` holds layout and text; this module prepares the values that they show.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fedsampling.base import files
from fedsampling.base.text import grouped, listed, show
from fedsampling.evidence.grades import LABELS
from fedsampling.evidence.recomputed import (
    ACCURACY_TOLERANCE,
    TOLERANCE,
    Recomputed,
    recheck_sentence,
)
from fedsampling.evidence.verdicts import GRADES, Grade
from fedsampling.experiments.papers import CLIENTS, CROSS_MATRIX, REFERENCE
from fedsampling.learning.training.costs import INFORMATION_COSTS
from fedsampling.report import citation, claim_pictures, content, formats, overview, standing
from fedsampling.report.citation import Software
from fedsampling.report.content import (
    FROM_PUBLISHED_RUNS,
    Chapter,
    ExperimentViews,
    period,
    provenances,
)
from fedsampling.report.data_cards import Card
from fedsampling.report.drawing import style
from fedsampling.report.drawing.artefacts import Exhibit
from fedsampling.report.drawing.saving import slug
from fedsampling.report.drawing.views import POINTS
from fedsampling.report.formats import as_json
from fedsampling.report.names import dataset_name, display_name
from fedsampling.report.text import TEMPLATES, environment
from fedsampling.report.which_sampler.chooser import QUESTIONS, lookup_table
from fedsampling.report.which_sampler.comparison import (
    Comparison,
    read_comparisons,
)

COMMANDS = {
    "This report, from finished runs": FROM_PUBLISHED_RUNS,
    "Everything recomputed, at paper scale": "snakemake --cores all "
    "--config scale=paper shipped=false",
}
# CSS class of each grade: filled, dotted or hatched for other data, outlined for smaller runs.
GRADE_CLASSES: Mapping[Grade, str] = {
    "paper's size": "verdict",
    "paper's size on unverified data": "verdict unverified",
    "transfer": "verdict transfer",
    "preliminary": "preliminary",
    "not run": "not-run",
}
ADVICE = "bench_advice"  # artefact of the cross matrix: the advice in several situations
LEFT_OUT = "left_out"  # artefact of the cross matrix whose notes say who is left out
ROUND_COSTS = "round_costs"  # table of the cross matrix
# The pages that every page links to; others are added if they exist.
SITE_PAGES: Mapping[str, str] = {
    "index.html": "All papers",
    "claims.html": "All claims",
    "figures.html": "Figures",
    "about.html": "Reproduce, cite, check",
}
# Functions that templates use as filters, by their names.
FILTERS = (
    dataset_name,
    claim_pictures.axes,
    claim_pictures.strips,
    formats.exhibit_name,
    formats.in_words,
    formats.recorded_duration,
    formats.setting,
    claim_pictures.settings_plots,
    formats.statistic,
    formats.typeset,
    formats.typeset_html,
    grouped,
    overview.claim_groups,
    overview.claim_parts,
    show,
    standing.outcome,
    standing.standing,
    slug,
)
_VENDOR = Path(__file__).with_name("vendor")
LIBRARY_VERSION = json.loads((_VENDOR / "package.json").read_text("utf-8"))["version"]


def write(
    root: Path,
    chapters: Sequence[Chapter],
    software: Software,
    targets: str,
    options: str = "",
    cards: Sequence[Card] = (),
    recomputed: Sequence[Recomputed] = (),
    explored: Sequence[ExperimentViews] = (),
) -> list[str]:
    """Write the pages and all files that they need into `root`; return those that are results.

    There is a page of the datasets if there are cards, a page of all samplers if the cross matrix
    is shown, and the run explorer if there are views. Files of artefacts, cards and views are in
    `root` already. `targets` is the folder of artefacts, as in Snakemake's targets. The commands
    that are shown end with `options`, which repeat the settings of this report.
    """
    templates = environment(autoescape=True)
    templates.filters |= {function.__name__: function for function in FILTERS}
    templates.filters["with_options"] = lambda text: formats.with_options(text, options)
    templates.tests |= {
        "contains": lambda sequence, item: item in sequence,
        "contained_in": lambda item, sequence: item in sequence,
        "numbered": _is_numbered,
        "small_table": formats.is_small_table,
        "fits_beside_text": lambda exhibit: formats.fits_beside_text(
            _png(root, exhibit), exhibit.caption, is_folded=not _is_numbered(exhibit)
        ),
    }
    matrix = next((chapter for chapter in chapters if chapter.key == CROSS_MATRIX), None)
    comparisons = read_comparisons(root / CROSS_MATRIX) if matrix else {}
    comparison = comparisons.get("rounds")
    templates.globals |= {
        "cards": cards,
        "comparison": comparison,
        "advice": {measure: each.advice() for measure, each in comparisons.items()},
        "exceptions": {measure: each.exceptions for measure, each in comparisons.items()},
        "reference": REFERENCE,
        "chapters": chapters,
        "explored": explored,
        "printed_numbers": lambda chapter, exhibit: formats.printed_numbers(
            exhibit.artefact, chapter.paper.reports, chapter.claims
        ),
        "size": lambda exhibit: formats.size_attributes(_png(root, exhibit)),
        "most_rows": formats.MOST_ROWS,
        "most_without_groups": overview.MOST_WITHOUT_GROUPS,
        "cite": lambda chapter, claim: citation.of_claim(
            software, chapter.paper, claim, chapter.provenance(claim.artefact)
        ),
        "cite_exhibit": lambda chapter, exhibit: citation.of_exhibit(
            software, chapter.paper, exhibit, formats.exhibit_name(exhibit)
        ),
        "software": software,
        "answers": overview.ANSWERS,
        "classes": GRADE_CLASSES,
        "columns": overview.COLUMNS,
        "glyphs": overview.GLYPHS,
        "labels": LABELS,
        "legend": overview.legend,
        "targets": targets,
        "titles": standing.TITLES,
    }
    templates.globals["site_pages"] = {
        **SITE_PAGES,
        **({"schemes.html": "Which sampler?"} if comparison else {}),
        **({"explorer.html": "Explore runs"} if explored else {}),
        **({"data.html": "Datasets"} if cards else {}),
    }

    files.copy(TEMPLATES / "style.css", root / "style.css")
    when = period(chapters)
    scales = [f"{name}: {value}" for name, value in _settings(chapters).items()]
    bibtex = citation.software_bibtex(software, when[1] if when else None, scales)
    texts = {
        "verdicts.json": verdicts_json(chapters),
        "fedsampling.bib": bibtex,
    }

    def render(name: str, template: str = "", /, **values: Any) -> None:
        texts[name] = templates.get_template(f"{template or name}.j2").render(values)

    overall = {"settings": _settings(chapters), "checks": _checks(chapters)}
    run = _run_totals(chapters)
    for name in ("README.md", "claims.html", "figures.html"):
        render(name, **overall)
    render(
        "about.html",
        bibtex=bibtex,
        commands=COMMANDS,
        agreement=recheck_sentence(recomputed),
        tolerance=TOLERANCE,
        accuracy_tolerance=ACCURACY_TOLERANCE,
        recomputed=recomputed,
        run=run,
    )
    render(
        "index.html",
        **overall,
        map_rows=overview.evidence_map(chapters),
        run=run,
        summary=overview.summary(chapters),
        segments=standing.segments(overview.of_kind("empirical", chapters)),
        highlights=overview.highlights(chapters),
    )
    for chapter in chapters:
        render(
            f"{chapter.key}.html",
            "paper.html",
            chapter=chapter,
            settings=_settings([chapter]),
            checks=_checks([chapter]),
            tables=_tables(root, chapter),
        )
        if chapter.claims:
            value = _reproduced(chapter)
            render(f"{chapter.key}/badge.svg", "badge.svg", title="claims reproduced", value=value)
    if cards:
        render("data.html")
    if explored:
        render(
            "explorer.html",
            views=as_json([_view_for_page(view, chapters) for view in explored]),
            colours=as_json({"samplers": style.SCHEMES, "palette": style.PALETTE}),
            points=POINTS,
            library=LIBRARY_VERSION,
            start=_first_view(explored, comparison),
        )
    if matrix and comparison:
        render(
            "schemes.html",
            chapter=matrix,
            questions=QUESTIONS,
            lookup=as_json(lookup_table(comparisons)),
            costs=INFORMATION_COSTS,
            settings=_settings([matrix]),
            clients=[each for each in matrix.exhibits if each.artefact.startswith(CLIENTS)],
            left_out=[each for each in matrix.exhibits if each.artefact == LEFT_OUT],
            round_costs=_tables(root, matrix).get(ROUND_COSTS),
            by_clients=_by_clients(matrix),
        )
    for name, text in texts.items():
        files.write_text(root / name, text)
    return [*texts]


def _is_numbered(exhibit: Exhibit) -> bool:
    """Whether the paper numbers a figure or table; all others are folded away."""
    return formats.NUMBERED.fullmatch(exhibit.artefact) is not None


def _png(root: Path, exhibit: Exhibit) -> Path:
    return root / exhibit.paper / exhibit.artefact / exhibit.files["png"]


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
    more = {"by": chapter.name, "figures": names, "colours": colours}
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
    return {name: listed(words) or "none" for name, words in content.settings(chapters).items()}


def _run_totals(chapters: Sequence[Chapter]) -> dict[str, Any]:
    """Return the period, number and computing time of all runs, by device, and the versions."""
    # Experiments and figures share runs; each counts once.
    runs = {name: run for chapter in chapters for name, run in chapter.runs.items()}
    devices: dict[str, list[float]] = {}
    for seconds, device in runs.values():
        devices.setdefault(formats.device_name(device), []).append(seconds)
    versions: dict[str, set[str]] = {}
    for origin in provenances(chapters):
        for name, number in origin.versions.items():
            versions.setdefault(name, set()).add(number)
    return {
        "period": period(chapters),
        "runs": len(runs),
        "seconds": sum(seconds for seconds, _ in runs.values()),
        "devices": sorted(
            ((name, len(each), sum(each)) for name, each in devices.items()),
            key=lambda row: -row[1],
        ),
        "versions": {name: sorted(numbers) for name, numbers in sorted(versions.items())},
    }


def verdicts_json(chapters: Iterable[Chapter]) -> str:
    """Write all verdicts as a list of records; docs/verdicts.md describes the fields.

    ``ours``, ``low`` and ``high`` are the first of the claim's numbers, null without an interval;
    ``numbers`` has them all.
    """
    records = [
        {
            "paper": chapter.key,
            "claim": claim.id,
            "kind": claim.kind,
            "text": claim.statement,
            "paper_value": claim.drawn[0].paper if claim.drawn else None,
            "paper_text": claim.reported,
            "ours": claim.drawn[0].value if claim.drawn else None,
            "low": claim.drawn[0].low if claim.drawn else None,
            "high": claim.drawn[0].high if claim.drawn else None,
            "ours_text": claim.ours,
            "verdict": claim.verdict,
            "grade": claim.grade,
            "rule": claim.rule,
            "reason": claim.reason,
            "parts": claim.parts,
            "answered": claim.answered,
            "confirmed": claim.confirmed,
            "confirmation": claim.confirmation and asdict(claim.confirmation),
            "price": claim.price and asdict(claim.price),
            "seeds": claim.seeds,
            "declared": claim.declared and asdict(claim.declared),
            "artefact": claim.artefact,
            "numbers": [asdict(interval) for interval in claim.drawn],
        }
        for chapter in chapters
        for claim in chapter.claims
    ]
    return json.dumps(records, ensure_ascii=False, indent=1) + "\n"


def _reproduced(chapter: Chapter) -> str:
    """Count the reproduced claims among those tested at the paper's size."""
    empirical = overview.of_kind("empirical", [chapter])
    verdicts = [claim.verdict for claim in empirical if claim.grade == GRADES[0]]
    count = f"{verdicts.count('reproduced')} of {len(verdicts)}" if verdicts else "no claim"
    return f"{count} at the paper's size"
