"""The pages of the report: fills the templates with the content.

:mod:`fedsampling.report.content` reads the content, :mod:`fedsampling.report.site` assembles the
folder.  ``templates/`` holds layout and text; this module prepares the values that they show.
"""

import csv
import io
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fedsampling.base import files
from fedsampling.evidence.agreement import (
    ACCURACY_TOLERANCE,
    TOLERANCE,
    Recomputed,
    sentence,
)
from fedsampling.evidence.numbers import listed
from fedsampling.evidence.verdicts import Claim, Grade
from fedsampling.experiments.cross_matrix import PAPER, REFERENCE
from fedsampling.report import citation, handout, linked_data
from fedsampling.report.all_samplers import INFORMATION_COSTS
from fedsampling.report.citation import Software
from fedsampling.report.claim_axes import accepted_values, axes, side_by_side
from fedsampling.report.content import FROM_PUBLISHED_RUNS, Chapter, clearest, period, provenances
from fedsampling.report.data_cards import Card
from fedsampling.report.drawing.saving import slug
from fedsampling.report.drawing.views import POINTS
from fedsampling.report.explorer import LIBRARY_VERSION, View
from fedsampling.report.formats import (
    as_json,
    exhibit_name,
    experiments_by_paper,
    in_words,
    recorded_duration,
    setting,
    size_attributes,
    statistic,
    with_labelled_cells,
)
from fedsampling.report.names import dataset_name
from fedsampling.report.overview import (
    COLUMNS,
    GLYPHS,
    code_checks,
    empirical,
    evidence_map,
    legend,
    main_outcomes,
    summary,
    tallies,
)
from fedsampling.report.printed_numbers import printed_numbers
from fedsampling.report.typesetting import symbols, typeset, typeset_html
from fedsampling.report.which_sampler import clients, reading
from fedsampling.report.which_sampler.chooser import QUESTIONS, lookup_table
from fedsampling.report.which_sampler.comparison import Comparison

COMMANDS = {
    "This report, from finished runs": FROM_PUBLISHED_RUNS,
    "Everything recomputed, at paper scale": "snakemake --cores all "
    "--config scale=paper shipped=false",
}
# CSS class of each grade: filled, or outlined for smaller runs.
GRADE_CLASSES: Mapping[Grade, str] = {
    "paper's size": "verdict",
    "transfer": "verdict transfer",
    "preliminary": "preliminary",
    "not run": "not-run",
}
_TEMPLATES = Path(__file__).with_name("templates")


def write(
    root: Path,
    chapters: Sequence[Chapter],
    software: Software,
    targets: str,
    cards: Sequence[Card] = (),
    recomputed: Sequence[Recomputed] = (),
    explored: Sequence[View] = (),
) -> list[str]:
    """Write index.html, a page per paper, the style sheet and the linked text files into `root`.

    Also write a page of the datasets if there are cards, a page of all samplers if the cross matrix
    is shown, and the run explorer if there are views.

    Parameters
    ----------
    root : Path
        Holds the artefacts' files already, as ``<paper>/<artefact>/``.
    chapters : sequence of Chapter
        The papers to show.
    software : Software
        For the citation.
    targets : str
        The folder of artefacts, as in Snakemake's targets.
    cards : sequence of Card
        Cards of the datasets; their files are in ``cards/`` already.
    recomputed : sequence of Recomputed
        Published runs that were recomputed on this machine.
    explored : sequence of View
        The run explorer's views; their files are in ``explorer/`` already.

    Returns
    -------
    list of str
        The files written, relative to `root`, without the style sheet.
    """
    environment = _environment()
    matrix = next((chapter for chapter in chapters if chapter.key == PAPER), None)
    comparisons = reading.comparisons(root / PAPER) if matrix else {}
    comparison = comparisons.get("rounds")
    environment.globals |= {
        "cards": cards,
        "comparison": comparison,
        "advice": {measure: each.advice() for measure, each in comparisons.items()},
        "reference": REFERENCE,
        "chapters": chapters,
        "explored": explored,
        "printed_numbers": lambda chapter, exhibit: printed_numbers(
            exhibit.artefact, chapter.paper.reports, chapter.claims
        ),
        "size": lambda exhibit: size_attributes(
            root / exhibit.paper / exhibit.artefact / exhibit.files["png"]
        ),
        "cite": lambda chapter, claim: citation.cited(
            software, chapter.paper, claim, chapter.provenance(claim.artefact)
        ),
        "software": software,
        "classes": GRADE_CLASSES,
        "columns": COLUMNS,
        "glyphs": GLYPHS,
        "legend": legend,
        "targets": targets,
    }
    shutil.copyfile(_TEMPLATES / "style.css", root / "style.css")
    bibtex = _software_bibtex(software, chapters)
    overall = {"settings": _settings(chapters), **_tallies(chapters)}
    texts = {
        "claims.csv": _claims_csv(chapters),
        "fedsampling.bib": bibtex,
        "README.md": environment.get_template("README.md.j2").render(overall),
        "index.html": environment.get_template("index.html.j2").render(
            overall,
            metadata=_json_ld(linked_data.dataset(software, chapters)),
            bibtex=bibtex,
            commands=COMMANDS,
            clearest={chapter.key: clearest(chapter.claims) for chapter in chapters},
            agreement=sentence(recomputed),
            tolerance=TOLERANCE,
            accuracy_tolerance=ACCURACY_TOLERANCE,
            map_rows=evidence_map(chapters),
            recomputed=recomputed,
            run=_provenance(chapters),
            outcomes=main_outcomes(chapters),
            summary=summary(chapters),
            tallies={chapter.key: _tallies([chapter]) for chapter in chapters},
        ),
    }
    for chapter in chapters:
        texts[f"{chapter.key}.html"] = environment.get_template("paper.html.j2").render(
            chapter=chapter,
            metadata=_json_ld(*linked_data.reviews(software, chapter)),
            settings=_settings([chapter]),
            **_tallies([chapter]),
            tables=_tables(root, chapter),
        )
    if cards:
        texts["data.html"] = environment.get_template("data.html.j2").render()
    if explored:
        texts["explorer.html"] = environment.get_template("explorer.html.j2").render(
            views=as_json([_view_for_page(view, chapters) for view in explored]),
            points=POINTS[0],
            library=LIBRARY_VERSION,
            start=_first_view(explored, comparison),
        )
    if matrix and comparison:
        texts["schemes.html"] = environment.get_template("schemes.html.j2").render(
            chapter=matrix,
            questions=QUESTIONS,
            lookup=as_json(lookup_table(comparisons)),
            costs=INFORMATION_COSTS,
            settings=_settings([matrix]),
            left_out=clients.read(root / PAPER, matrix),
            as_json=as_json,
        )
    for name, text in texts.items():
        files.write_text(root / name, text)
    return [*texts, handout.write(root, chapters, comparisons, software)]


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["contains"] = lambda sequence, item: item in sequence
    environment.filters |= {
        "accepted_values": accepted_values,
        "axes": axes,
        "dataset_name": dataset_name,
        "exhibit_name": exhibit_name,
        "experiments_by_paper": experiments_by_paper,
        "in_words": in_words,
        "listed": listed,
        "recorded_duration": recorded_duration,
        "setting": setting,
        "side_by_side": side_by_side,
        "slug": slug,
        "statistic": statistic,
        "symbols": symbols,
        "typeset": typeset,
        "typeset_html": typeset_html,
        "with_labelled_cells": with_labelled_cells,
    }
    return environment


def _view_for_page(view: View, chapters: Sequence[Chapter]) -> dict[str, Any]:
    """Return a view as plain data, with the names of its paper and of its figures."""
    chapter = next(chapter for chapter in chapters if chapter.key == view.paper)
    exhibits = {exhibit.artefact: exhibit_name(exhibit) for exhibit in chapter.exhibits}
    names = {name: exhibits.get(name, name) for name in view.figures}
    return asdict(replace(view, digests={})) | {"by": chapter.name, "figures": names}


def _first_view(explored: Sequence[View], comparison: Comparison | None) -> str:
    """Return the address of the first view: the cross matrix with the best candidates."""
    matrix = [view for view in explored if view.paper == PAPER]
    if not matrix or comparison is None:
        return f"view={explored[0].key}"
    advice = comparison.advice()
    best = [candidate.sampler for candidate in (*advice.recommended, *advice.others)[:3]]
    return f"view={matrix[0].key}&samplers={','.join([REFERENCE, *best])}"


def _tables(root: Path, chapter: Chapter) -> dict[str, Markup]:
    """Return the HTML of each table; cells are already escaped."""
    paths = {
        exhibit.artefact: root / chapter.key / exhibit.artefact / exhibit.files["html"]
        for exhibit in chapter.exhibits
        if exhibit.kind != "figure"
    }
    return {
        name: typeset_html(with_labelled_cells(path.read_text("utf-8")))
        for name, path in paths.items()
    }


def _tallies(chapters: Sequence[Chapter]) -> dict[str, Any]:
    """Count the verdicts of empirical claims and, separately, the code checks that pass."""
    checks = code_checks(chapters)
    return {
        "counts": tallies(empirical(chapters)),
        "checks": {
            "all": len(checks),
            "passed": sum(claim.verdict == "reproduced" for claim in checks),
            "absent": sum(claim.verdict == "not run" for claim in checks),
        },
    }


def _settings(chapters: Sequence[Chapter]) -> dict[str, str]:
    """Return the scales and sources of data of the report: ``{"scale": "quick", ...}``."""
    origins = list(provenances(chapters))
    return {
        "scale": listed(sorted({origin.scale for origin in origins})) or "none",
        "data": listed(sorted({kind for origin in origins for kind in origin.kinds})) or "none",
    }


def _software_bibtex(software: Software, chapters: Sequence[Chapter]) -> str:
    when = period(chapters)
    settings = [f"{name}: {value}" for name, value in _settings(chapters).items()]
    return citation.software_bibtex(software, when[1] if when else None, settings)


def _provenance(chapters: Sequence[Chapter]) -> dict[str, Any]:
    """Summarise the provenance of all artefacts."""
    origins = list(provenances(chapters))
    # Several artefacts can show the same runs; count these once.
    distinct = list({(o.spec_digest, o.started, o.finished): o for o in origins}.values())
    versions: dict[str, set[str]] = {}
    for origin in origins:
        for name, version in {
            "fedsampling": origin.package,
            "Python": origin.python,
            **origin.versions,
        }.items():
            if version:
                versions.setdefault(name, set()).update(version.split(", "))
    return {
        "period": period(chapters),
        "devices": _distinct((origin.device for origin in origins), "; "),
        "commits": _distinct((origin.commit for origin in origins), ", "),
        "runs": sum(origin.runs for origin in distinct),
        "seconds": sum(origin.seconds or 0.0 for origin in distinct),
        "peak_mb": max((origin.peak_mb or 0.0 for origin in origins), default=0.0),
        "versions": {name: sorted(versions[name]) for name in sorted(versions, key=str.lower)},
        "inputs": sorted({pair for origin in origins for pair in origin.inputs.items()}),
    }


def _distinct(values: Iterable[str | None], separator: str) -> list[str]:
    """Split joined lists; return each entry once, sorted."""
    return sorted({part for value in values if value for part in value.split(separator)})


def _claims_csv(chapters: Iterable[Chapter]) -> str:
    stream = io.StringIO()
    table = csv.writer(stream, lineterminator="\n")
    nested = ("declared", "drawn", "readings")
    columns = [field.name for field in fields(Claim) if field.name not in nested]
    table.writerow(["paper", *columns, "declared"])
    for chapter in chapters:
        for claim in chapter.claims:
            declared = f"{claim.declared.when}, {claim.declared.date}" if claim.declared else ""
            table.writerow([chapter.key, *(getattr(claim, name) for name in columns), declared])
    return stream.getvalue()


def _json_ld(*entities: dict[str, Any]) -> Markup:
    return as_json({"@context": "https://schema.org", "@graph": entities})
