"""The papers: one folder contains everything about a paper.

``papers/<key>/`` holds ``paper.yaml`` (experiments, artefacts and claims), ``reported.csv`` (the
paper's own numbers), ``chosen.csv`` (cases chosen on a holdout), ``paper.bib``, and Python files.
Any folder with a ``paper.yaml`` is a paper; no list has to be edited.

:mod:`.selecting` keeps the experiments that a configuration selects, :mod:`.resolving` applies the
scale and the user's overrides, and :mod:`.specs` expands the experiments into hashed runs.
"""

import csv
import datetime
import math
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from fedsampling.base.errors import InputError, check_known, naming, nearest
from fedsampling.base.record_errors import short
from fedsampling.base.records import Strict, check, distinct
from fedsampling.base.yaml_reading import read_yaml
from fedsampling.experiments.paper_modules import function_of
from fedsampling.experiments.registration import (
    CONFIRM,
    PartRule,
    Registered,
    read_registered,
    rule_digest,
    twin,
)
from fedsampling.experiments.shorthand import matching, write_out

MAX_NAME = 100  # bytes; file systems allow 255, and results add to a name
NO_PAPERS = (
    "{}: contains no papers; go to the folder that has them (snakemake --directory FOLDER), or set "
    "it with --papers of fedsampling"
)
ClaimKind = Literal["empirical", "text against tables", "code check"]


def check_names(named: dict[str, Any]) -> dict[str, Any]:
    """Check that names can be used as names of folders."""
    for name in named:
        if not re.sub("[-_.]", "", name).isalnum() or len(name.encode()) > MAX_NAME:
            raise ValueError(
                f"{short(name)} becomes a folder; must be at most {MAX_NAME} letters, digits, "
                "'-', '_' or '.'"
            )
    return named


class Choice(Strict):
    """A setting that the paper leaves open, with our choice."""

    name: str
    value: str
    why: str


class ArtefactSpec(Strict):
    """A table or figure that must exist."""

    kind: Literal["figure", "table", "text"]
    title: str
    caption: str
    experiments: list[str] = Field(default_factory=list)
    cases: list[str] = Field(
        default_factory=list, description="cases to draw; empty: all cases of its experiments"
    )
    partial: bool = Field(False, description="drawn even if some of its experiments are left out")


class Declared(Strict):
    """When and why a claim's rule was written."""

    when: Literal["before", "after seeing"] = Field(
        description="before the results that the rule judges, or after seeing earlier results"
    )
    date: datetime.date
    why: str


class Past(Strict):
    """An earlier verdict of a claim, in today's words, and why it changed."""

    date: datetime.date
    verdict: str
    why: str = Field(description="why the verdict changed after this date")


class ClaimSpec(Strict):
    """A statement of the paper, with the rule that decides whether it holds."""

    statement: str
    topic: str = Field("", description="subject of the statement in a few words, for tables")
    artefact: str
    experiments: list[str] = Field(
        default_factory=list, description="experiments to judge; empty: those of its artefact"
    )
    cases: list[str] = Field(
        default_factory=list, description="cases to judge; empty: those of its artefact"
    )
    reported: str = Field(description="the paper's value, as shown in the table of claims")
    margin: float = Field(description="margin of the rule")
    unit: str = Field(description="unit of the margin")
    rule: str
    kind: ClaimKind = Field(
        "empirical",
        description="text against tables: a sentence of the paper judged by the paper's own "
        "numbers; a code check is mathematically true and tests the code, not the paper",
    )
    transfer: bool = Field(
        False, description="whether its runs use other data than the paper; counted separately"
    )
    declared: Declared | None = Field(
        None, description="when the rule was written: before its results, or after seeing them"
    )
    open_choices: list[str] = Field(
        default_factory=list,
        description="names of the `choices` over whose values the claim is judged",
    )
    variants: list[str] = Field(
        default_factory=list, description="experiments with other values of its open choices"
    )
    parts: dict[str, PartRule] = Field(
        {}, description="what decides each part, as registered; empty: the rule is not registered"
    )
    unreachable: str = Field(
        "", description="why no affordable number of fresh runs can decide the claim; empty if some"
    )
    caveat: str = Field("", description="one sentence that a reader needs to use the verdict")
    caveat_explored: str = Field(
        "", description="the same, of the verdict of the exploring runs only; shown before `caveat`"
    )
    history: list[Past] = Field(
        default_factory=list, description="earlier verdicts, the oldest first"
    )


class Reported(Strict):
    """A number or formula of a paper: a row of its ``reported.csv``."""

    id: str = Field("", description="key for code; rows without an id are not read by code")
    artefact: str
    claim: str = ""
    quantity: str
    value: str
    unit: str = ""
    where: str

    @property
    def number(self) -> float:
        """The value as a number; infinite for N/A."""
        return math.inf if self.value == "N/A" else float(self.value)


class Paper(Strict):
    """A paper: its experiments, artefacts and claims, and the numbers that it reports."""

    key: str = Field(pattern=f"^[a-z0-9]{{1,{MAX_NAME}}}$", description="its folder's name")
    title: str
    authors: str
    year: int
    venue: str
    url: str = Field(description="http, https or doi:10.…; may be empty")
    summary: str
    choices: list[Choice] = Field(default_factory=list)
    experiments: dict[str, dict[str, Any]]
    confirm: dict[str, dict[str, Any]] = Field(
        {}, description="by experiment: the settings of its twin with fresh seeds; see registration"
    )
    artefacts: dict[str, ArtefactSpec]
    claims: dict[str, ClaimSpec]
    registered: dict[str, Registered] = Field({}, description="content of registered.json")
    folder: Path = Field(Path(), description="the paper's folder; not in its file")
    scales: dict[str, str] = Field({}, description="scales chosen at scale best, by experiment")
    left_out: dict[str, str] = Field(
        {}, description="reasons why experiments are left out, by experiment"
    )
    omitted: dict[str, ArtefactSpec] = Field(
        {}, description="artefacts that need experiments that are left out"
    )
    reports: tuple[Reported, ...] = Field((), description="rows of reported.csv")
    chosen: dict[str, dict[str, str]] = Field(
        {},
        description="rows of chosen.csv: the only case that runs at paper scale, chosen on a "
        "holdout, by experiment and sampler",
    )

    @field_validator("url")
    @classmethod
    def _linked(cls, url: str) -> str:
        """Write out the address of a DOI; refuse links that run code."""
        url = url.replace("doi:", "https://doi.org/", 1) if url.startswith("doi:") else url
        if url and not re.fullmatch(r"https?://[^\s/]\S*", url):
            raise ValueError(f"{short(url)} is no link; must begin with https://, http:// or doi:")
        return url

    @field_validator("experiments", "artefacts")
    @classmethod
    def _named(cls, named: dict[str, Any]) -> dict[str, Any]:
        return check_names(named)

    @field_validator("reports")
    @classmethod
    def _with_distinct_ids(cls, rows: tuple[Reported, ...]) -> tuple[Reported, ...]:
        distinct([row.id for row in rows if row.id])
        return rows

    def reported(self, name: str) -> float:
        """Return the reported number with an id of ``reported.csv``."""
        rows = {row.id: row for row in self.reports if row.id}
        check_known([name], rows, f"{self.key}/reported.csv: no id '{{}}'")
        return rows[name].number

    def twins_of(self, claim: str) -> dict[str, str]:
        """Return the experiments with fresh seeds that confirm a claim, by their originals.

        A claim whose parts are all exact has none.
        """
        spec = self.claims[claim]
        if all(part.contrast == "exact" for part in spec.parts.values()):
            return {}
        artefact = {**self.omitted, **self.artefacts}[spec.artefact]
        judged = [*(spec.experiments or artefact.experiments), *spec.variants]
        return {name: CONFIRM + name for name in self.confirm if name in judged}

    def rule_digest(self, claim: str) -> str:
        """Return the digest of a claim's rule, to compare with its registration."""
        twins = {name: self.experiments[name] for name in self.twins_of(claim).values()}
        return rule_digest(self.claims[claim].model_dump(mode="json"), twins)


def load_paper(key: str, papers: Path, named: str = "paper") -> Paper:
    """Read and check ``papers/<key>/paper.yaml``; `named` starts an unknown key's error."""
    path = papers / key / "paper.yaml"
    if not path.is_file():
        keys = [file.parent.name for file in papers.glob("*/paper.yaml")]
        if not keys:
            raise InputError(NO_PAPERS.format(papers))
        raise InputError(f"{named}: '{key}' is unknown; {nearest(key, keys)}")
    other_files = {
        "folder": papers / key,
        "reports": _rows(papers / key / "reported.csv"),
        "chosen": _chosen(papers / key / "chosen.csv"),
        "registered": read_registered(papers / key),
    }
    content = {**read_yaml(path), **other_files}
    with naming(str(path)):
        paper = _without_shorthand(check(Paper, content, ""))
        problems = _unknown_names(paper)
        if paper.key != key:
            problems.append(f"key: '{paper.key}' is not the folder's name; write '{key}'")
        problems += _different_plans(paper)
        if problems:
            raise InputError(*problems)
        return paper


def _without_shorthand(paper: Paper) -> Paper:
    """Return a paper with the shorthand of its file written out."""
    experiments = write_out(paper.experiments)
    check_known(paper.confirm, experiments, "confirm.{}: no such experiment")
    experiments |= {
        CONFIRM + name: twin(experiments[name], changes, name)
        for name, changes in paper.confirm.items()
    }
    names = list(experiments)
    changes: dict[str, Any] = {"experiments": experiments}
    for kind, specs in (("artefacts", paper.artefacts), ("claims", paper.claims)):
        changes[kind] = {
            name: spec.model_copy(update={"experiments": matching(spec.experiments, names)})
            for name, spec in specs.items()
        }
    return paper.model_copy(update=changes)


def draw_function(paper: Paper, artefact: str) -> Callable[..., Any]:
    """Return the function that draws an artefact, from one of ``figures*.py``."""
    return function_of(paper.folder, "figures", artefact)


def judge_function(paper: Paper, claim: str) -> Callable[..., Any]:
    """Return the function that judges a claim, from one of ``claims*.py``."""
    return function_of(paper.folder, "claims", claim)


def _unknown_names(paper: Paper) -> list[str]:
    """Return a line for each name in an artefact or a claim that the paper does not define."""
    valid_names: dict[str, Collection[str]] = {
        "experiments": paper.experiments,
        "variants": paper.experiments,
        "cases": {
            case
            for settings in paper.experiments.values()
            for case in settings.get("cases") or ("base",)
        },
        "artefact": paper.artefacts,
        "open_choices": [choice.name for choice in paper.choices],
    }
    lines = []
    for kind, specs in (("artefacts", paper.artefacts), ("claims", paper.claims)):
        for name, spec in specs.items():
            for field, options in valid_names.items():
                used = getattr(spec, field, [])
                lines += [
                    f"{kind}.{name}.{field}: '{word}' is unknown; {nearest(word, options)}"
                    for word in ([used] if isinstance(used, str) else used)
                    if word not in options
                ]
    for name, settings in paper.experiments.items():
        tuned_as = settings.get("tuned_as")
        if isinstance(tuned_as, str) and tuned_as not in ("", *paper.experiments):
            fix = nearest(tuned_as, paper.experiments)
            lines.append(f"experiments.{name}.tuned_as: '{tuned_as}' is unknown; {fix}")
    return lines


def _different_plans(paper: Paper) -> list[str]:
    """Return an error line for each claim whose experiments differ in looks or scale."""
    lines = []
    for name in paper.claims:
        originals = paper.twins_of(name)
        plans = {
            (str(paper.confirm[key]["looks"]), paper.confirm[key].get("scale", "paper"))
            for key in originals
        }
        if len(plans) > 1:
            lines.append(
                f"confirm: the experiments of {name} ({', '.join(originals)}) must share their "
                "looks and scale"
            )
    return lines


def _chosen(path: Path) -> dict[str, dict[str, str]]:
    """Read the chosen case by experiment and sampler from a ``chosen.csv``, which is optional."""
    cases: dict[str, dict[str, str]] = {}
    for row in _rows(path, "experiment", "sampler", "case", "chosen"):
        if row["chosen"] == "True":
            cases.setdefault(row["experiment"], {})[row["sampler"]] = row["case"]
    return cases


def _rows(path: Path, *columns: str) -> list[dict[str, str]]:
    """Read a CSV file with the required `columns`; no rows if the file does not exist."""
    if not path.is_file():
        return []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, restkey="", strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read ({error}); save it as CSV in UTF-8") from None
    if rows and (missing := [column for column in columns if column not in rows[0]]):
        raise InputError(f"{path}: no column '{missing[0]}'; add it")
    return rows
