"""The templates of the report's pages: their filters and tests, and the values that all pages use.

``templates/`` holds layout and text; :mod:`fedsampling.report.pages` fills each page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from jinja2 import Environment

from fedsampling.base.text import grouped, show
from fedsampling.evidence.grades import LABELS
from fedsampling.evidence.recomputed import Recomputed
from fedsampling.evidence.verdicts import Grade
from fedsampling.experiments.cross_matrix import CROSS_MATRIX, REFERENCE
from fedsampling.report import citation, claim_axes, claim_strips, formats, overview, standing
from fedsampling.report.citation import Software
from fedsampling.report.content import Chapter, ExperimentViews
from fedsampling.report.data_cards import Card
from fedsampling.report.drawing.artefacts import Exhibit
from fedsampling.report.drawing.saving import slug
from fedsampling.report.names import dataset_name
from fedsampling.report.text import environment
from fedsampling.report.which_sampler.comparison import Comparison, position
from fedsampling.report.which_sampler.reading import read_comparisons

# CSS class of each grade: filled, dotted or hatched for other data, outlined for smaller runs.
GRADE_CLASSES: Mapping[Grade, str] = {
    "paper's size": "verdict",
    "paper's size on unverified data": "verdict unverified",
    "transfer": "verdict transfer",
    "preliminary": "preliminary",
    "not run": "not-run",
}
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
    claim_axes.axes,
    claim_strips.row_number,
    claim_strips.strips,
    formats.count_rows,
    formats.exhibit_name,
    formats.in_words,
    formats.recorded_duration,
    formats.setting,
    claim_axes.settings_plots,
    formats.statistic,
    formats.typeset,
    formats.typeset_html,
    grouped,
    overview.claim_groups,
    overview.claim_parts,
    show,
    standing.outcome,
    slug,
)


@dataclass(frozen=True, kw_only=True)
class PageContent:
    """What the pages show.

    Files of artefacts, cards and views are in the folder `root` already.
    """

    root: Path
    chapters: Sequence[Chapter]
    software: Software
    targets: str  # folder of artefacts, as in Snakemake's targets
    options: str = ""  # repeat the settings of this report in the commands that pages show
    cards: Sequence[Card] = ()  # of the datasets; without them, there is no page of datasets
    recomputed: Sequence[Recomputed] = ()  # published runs that this machine recomputed
    explored: Sequence[ExperimentViews] = ()  # without them, there is no run explorer

    @cached_property
    def matrix(self) -> Chapter | None:
        """The paper that compares all samplers, if it is shown."""
        return next((chapter for chapter in self.chapters if chapter.key == CROSS_MATRIX), None)

    @cached_property
    def comparisons(self) -> Mapping[str, Comparison]:
        """The cross matrix's comparison of all samplers, by what is compared; may be empty."""
        return read_comparisons(self.root / CROSS_MATRIX) if self.matrix else {}

    @property
    def comparison(self) -> Comparison | None:
        """The comparison in rounds."""
        return self.comparisons.get("rounds")


def page_templates(content: PageContent) -> Environment:
    """Return the environment of the pages' templates, with the values that all pages use."""
    templates = environment(autoescape=True)
    templates.filters |= {function.__name__: function for function in FILTERS}
    templates.filters["with_options"] = lambda text: formats.with_options(text, content.options)
    templates.tests |= {
        "contains": lambda sequence, item: item in sequence,
        "contained_in": lambda item, sequence: item in sequence,
        "numbered": _is_numbered,
        "small_table": formats.is_small_table,
        "fits_beside_text": lambda exhibit: formats.fits_beside_text(
            _png(content.root, exhibit), exhibit.caption, is_folded=not _is_numbered(exhibit)
        ),
    }
    templates.globals |= {
        **_content_values(content),
        **_exhibit_functions(content),
        "answers": overview.ANSWERS,
        "classes": GRADE_CLASSES,
        "columns": overview.COLUMNS,
        "glyphs": overview.GLYPHS,
        "labels": LABELS,
        "legend": overview.legend,
        "most_rows": formats.MOST_ROWS,
        "most_without_groups": overview.MOST_WITHOUT_GROUPS,
        "reference": REFERENCE,
        "site_pages": _site_pages(content),
        "titles": standing.TITLES,
        "unity": position(1.0),
    }
    return templates


def _content_values(content: PageContent) -> dict[str, Any]:
    """Return the parts of the content, by their names in templates."""
    comparisons = content.comparisons
    return {
        "cards": content.cards,
        "chapters": content.chapters,
        "comparison": content.comparison,
        "advice": {measure: each.advice() for measure, each in comparisons.items()},
        "exceptions": {measure: each.exceptions for measure, each in comparisons.items()},
        "explored": content.explored,
        "software": content.software,
        "targets": content.targets,
    }


def _exhibit_functions(content: PageContent) -> dict[str, Any]:
    """Return the functions of templates that describe and cite artefacts and claims."""
    software = content.software
    return {
        "printed_numbers": lambda chapter, exhibit: formats.printed_numbers(
            exhibit.artefact, chapter.paper.reports, chapter.claims
        ),
        "size": lambda exhibit: formats.size_attributes(_png(content.root, exhibit)),
        "cite": lambda chapter, claim: citation.of_claim(
            software, chapter.paper, claim, chapter.provenance(claim.artefact)
        ),
        "cite_exhibit": lambda chapter, exhibit: citation.of_exhibit(
            software, chapter.paper, exhibit, formats.exhibit_name(exhibit)
        ),
    }


def _is_numbered(exhibit: Exhibit) -> bool:
    """Whether the paper numbers a figure or table; all others are folded away."""
    return formats.NUMBERED.fullmatch(exhibit.artefact) is not None


def _png(root: Path, exhibit: Exhibit) -> Path:
    return root / exhibit.paper / exhibit.artefact / exhibit.files["png"]


def _site_pages(content: PageContent) -> dict[str, str]:
    """Return the navigation of every page: titles by file name."""
    return {
        **SITE_PAGES,
        **({"schemes.html": "Which sampler?"} if content.comparison else {}),
        **({"explorer.html": "Explore runs"} if content.explored else {}),
        **({"data.html": "Datasets"} if content.cards else {}),
    }
