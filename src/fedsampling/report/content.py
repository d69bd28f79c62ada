"""The content of the report: artefacts, verdicts and papers, read from files and validated.

This is the first step of the report.  It reads the pipeline's records and computes nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from fedsampling.base.errors import InputError
from fedsampling.base.files import read_record, sha256
from fedsampling.evidence.claims import Claim
from fedsampling.evidence.provenance import Provenance
from fedsampling.evidence.summaries import read_notes
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Exhibit
from fedsampling.report.drawing.views import RECORD
from fedsampling.report.findings import Published, as_published
from fedsampling.report.names import paper_name
from fedsampling.report.paper_bib import paper_bibtex

# Builds the report from published runs; in a clone, `make reproduce` does the same.
FROM_PUBLISHED_RUNS = "snakemake --cores all --config scale=best"
Record = TypeVar("Record")


@dataclass(frozen=True)
class Chapter:
    """A paper with its artefacts and verdicts."""

    paper: Paper
    bibtex: str  # entry that cites the paper
    exhibits: tuple[Exhibit, ...]  # existing artefacts, in the order of ``paper.yaml``
    claims: tuple[Claim, ...]
    # the findings in ``docs/findings.md``
    published: Published = field(default_factory=Published)
    # seconds and device of each run, by its hash
    runs: Mapping[str, tuple[float, str | None]] = field(default_factory=dict)
    # the resolved experiments that were run, by name
    resolved: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Key of the paper: the name of its page and folder."""
        return self.paper.key

    def provenance(self, artefact: str) -> Provenance | None:
        """Return the provenance of an artefact; None if the artefact does not exist."""
        matches = (exhibit.provenance for exhibit in self.exhibits if exhibit.artefact == artefact)
        return next(matches, None)

    def samplers(self, claim: str) -> frozenset[str]:
        """Name the samplers that the parts of a claim compare, as classes of samplers are named."""
        spec = self.paper.claims[claim]
        labels = {label for part in spec.parts.values() for label in part.samplers}
        artefact = {**self.paper.omitted, **self.paper.artefacts}[spec.artefact]
        experiments = spec.experiments or artefact.experiments
        records = [self.paper.experiments.get(name, {}).get("samplers") for name in experiments]
        return frozenset(
            str(record.get("name"))
            for of_experiment in records
            for label, record in (of_experiment or {}).items()
            if label in labels and record
        )

    @property
    def authors(self) -> list[str]:
        """Names of the authors."""
        return self.paper.authors.split(", ")

    @property
    def name(self) -> str:
        """Short citation, such as ``Chen et al., 2022``."""
        return paper_name(self.paper)


def load(
    results: Path, papers: Mapping[str, Paper], judged: Path | None = None
) -> tuple[Chapter, ...]:
    """Read every paper with artefacts, or with artefacts that could not be drawn.

    `results` has ``artefacts/<paper>/<artefact>/artefact.json`` with its files; `judged` has
    ``<paper>.json``, by default in ``results/claims``. Undeclared artefacts are ignored.
    """
    judged = judged or results / "claims"
    chapters = (_chapter(paper, results, judged / f"{paper.key}.json") for paper in papers.values())
    nonempty = tuple(chapter for chapter in chapters if chapter.exhibits or chapter.paper.omitted)
    if not any(chapter.exhibits for chapter in nonempty):
        raise InputError(
            f"no artefacts in {results / 'artefacts'}; run 'fedsampling draw <paper>' first"
        )
    return nonempty


def provenances(chapters: Iterable[Chapter]) -> Iterator[Provenance]:
    """Yield the provenance of every artefact that is based on runs."""
    origins = (exhibit.provenance for chapter in chapters for exhibit in chapter.exhibits)
    return (origin for origin in origins if origin.runs)


def settings(chapters: Iterable[Chapter]) -> dict[str, list[str]]:
    """Return the scales and the sources of data of all runs."""
    origins = list(provenances(chapters))
    return {
        "scale": sorted({origin.scale for origin in origins}),
        "data": sorted({kind for origin in origins for kind in origin.kinds}),
    }


def period(chapters: Sequence[Chapter]) -> tuple[str, str] | None:
    """Return the start of the first run and the end of the last run; None without runs."""
    started = [origin.started for origin in provenances(chapters) if origin.started]
    finished = [origin.finished for origin in provenances(chapters) if origin.finished]
    return (min(started), max(finished)) if started and finished else None


def _chapter(paper: Paper, results: Path, judged: Path) -> Chapter:
    judgements = claims(judged) if judged.exists() else ()
    folder = results / "artefacts" / paper.key
    records = [folder / name / "artefact.json" for name in paper.artefacts]
    resolved, runs = _runs(paper, results / "summaries" / paper.key)
    return Chapter(
        paper=paper,
        bibtex=paper_bibtex(paper.folder / "paper.bib", paper.key),
        exhibits=tuple(_exhibit(path) for path in records if path.exists()),
        claims=judgements,
        published=as_published(paper, judgements, folder),
        runs=runs,
        resolved=resolved,
    )


def _runs(
    paper: Paper, summaries: Path
) -> tuple[dict[str, Mapping[str, Any]], dict[str, tuple[float, str | None]]]:
    """Return the resolved experiments of a paper's summaries, and the costs of each run by hash."""
    resolved: dict[str, Mapping[str, Any]] = {}
    runs: dict[str, tuple[float, str | None]] = {}
    for experiment in paper.experiments:
        if (path := summaries / f"{experiment}.parquet").is_file():
            resolved[experiment], costs = read_notes(path)
            runs |= costs
    return resolved, runs


def claims(path: Path) -> tuple[Claim, ...]:
    """Read a paper's claims with their verdicts."""
    return validated(tuple[Claim, ...], read_record(path).get("claims", ()), path)


def _exhibit(path: Path) -> Exhibit:
    exhibit: Exhibit = validated(Exhibit, read_record(path), path)
    for kind, name in exhibit.files.items():
        # Only a plain name is valid, so that no file outside the folder is copied.
        if Path(name).name != name or not (path.parent / name).is_file():
            raise InputError(f"{path}: lists '{name}', which is missing; render it again")
        if exhibit.digests.get(kind) != sha256(path.parent / name):
            raise InputError(f"{path.parent / name}: changed since it was drawn; render it again")
    if exhibit.kind == "figure" and not {"svg", "png"} <= exhibit.files.keys():
        raise InputError(f"{path}: a figure needs an SVG and a PNG file; render it again")
    if exhibit.kind != "figure" and "html" not in exhibit.files:
        raise InputError(f"{path}: a {exhibit.kind} needs an HTML file; render it again")
    return exhibit


def validated(kind: type[Record], content: Any, path: Path) -> Record:
    """Validate a file's content as a record."""
    try:
        return TypeAdapter(kind).validate_python(content)
    except ValidationError as error:
        raise InputError(
            *(
                f"{path}: {'.'.join(str(part) for part in problem['loc'])}: {problem['msg']}"
                for problem in error.errors()
            )
        ) from error


@dataclass(frozen=True)
class ExperimentViews:
    """The views of an experiment."""

    paper: str
    experiment: str
    title: str
    metrics: Mapping[str, str]  # title of each metric with curves
    samplers: Mapping[str, str]  # readable name of each sampler, by key
    cases: tuple[str, ...]
    seeds: int
    badges: tuple[str, ...]  # reasons why its runs are not evidence; empty if they are
    digests: Mapping[str, str]  # SHA-256 of each script file
    figures: tuple[str, ...]  # artefacts drawn from the experiment
    selections: bool = False  # whether there are heat maps of who was selected

    @property
    def key(self) -> str:
        """Paper and experiment."""
        return f"{self.paper}/{self.experiment}"


def load_views(folder: Path, chapters: Sequence[Chapter]) -> tuple[ExperimentViews, ...]:
    """Read the views of each paper's experiments; experiments without curves are left out."""
    views = []
    for chapter in chapters:
        for experiment in chapter.paper.experiments:
            path = folder / chapter.key / experiment / RECORD
            if not path.is_file():
                continue  # an earlier version, without views, drew these results
            figures = [
                exhibit.artefact
                for exhibit in chapter.exhibits
                if experiment in chapter.paper.artefacts[exhibit.artefact].experiments
            ]
            names = {"paper": chapter.key, "experiment": experiment, "figures": figures}
            view: ExperimentViews = validated(ExperimentViews, {**read_record(path), **names}, path)
            for name, digest in view.digests.items():
                script = path.with_name(name)
                if not script.is_file() or sha256(script) != digest:
                    raise InputError(
                        f"{script}: missing or changed; run 'fedsampling draw {chapter.key}'"
                    )
            if view.metrics:
                views.append(view)
    return tuple(views)
