"""The report as a website, of all results or of those that are finished."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import shorten

from fedsampling.base.errors import InputError
from fedsampling.base.memory import collect_rarely
from fedsampling.base.records import check
from fedsampling.base.yaml_reading import read_yaml
from fedsampling.evidence import recomputed
from fedsampling.evidence.summaries import load_summaries
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import Paper
from fedsampling.experiments.selecting import without
from fedsampling.runs.places import RESULTS
from fedsampling.workflow.draw import draw, judge_claims
from fedsampling.workflow.project import Project
from fedsampling.workflow.status import UNFINISHED, why_unfinished


def build_report(project: Project) -> Path:
    """Build the site and its crate in ``report/``."""
    collect_rarely()
    options = _options(project)  # of config.yaml only how the project's settings differ matters
    with project.made("report").making():
        return _build(project, project.plan.papers, "report", "claims", options)


def build_unfinished(project: Project, keys: Sequence[str]) -> Iterator[str]:
    """Build a report of some papers' finished results in ``unfinished/``, outside the workflow.

    Yields the unfinished parts of each paper, and where the report is, as lines.
    """
    plan, papers = project.plan, {}
    for key in keys:
        paper = plan.paper(key)
        draw(key, project, unfinished=True)
        papers[key] = _as_far_as_it_is(project, paper)
        if lacking := papers[key].left_out.keys() - paper.left_out.keys():
            names = [name for name in papers[key].left_out if name in lacking]
            yield f"{key}: unfinished: {shorten(', '.join(names), 200, placeholder=' …')}"
    if not any(spec.experiments for paper in papers.values() for spec in paper.artefacts.values()):
        yield "no report written: no experiment has finished yet"
        return
    claims = "claims_unfinished"
    for key, paper in papers.items():
        judge_claims(paper, project, load_summaries(key, paper.experiments, project.folder), claims)
    page = _build(project, papers, "unfinished", claims, _options(project))
    yield f"Report of the finished part, with the reasons: {page}"


def _build(
    project: Project, papers: Mapping[str, Paper], to: str, claims: str, options: str
) -> Path:
    from fedsampling.report import site

    out = project.folder / to
    site.build(
        project.folder,
        papers,
        out,
        claims=project.folder / claims,
        project=project.papers.resolve().parent,
        config=project.config.public(),
        options=options,
        cards=project.plan.cards,
        recomputed=recheck_of(project),
    )
    return out / "index.html"


def _options(project: Project) -> str:
    """Return the option that repeats the project's settings in commands of its report.

    It names the resolved settings in the results folder, because reports are shown to others, whom
    paths of the user's own files do not concern.
    """
    usual = is_usual(project) and not project.config.run
    return "" if usual or project.results != RESULTS else f"--configfile {project.config_file}"


def is_usual(project: Project) -> bool:
    """Whether Snakemake reads this configuration without ``--configfile``, apart from the run."""
    try:
        usual = check(Config, read_yaml(Path("config.yaml")), "")  # loads no code
    except (InputError, OSError):
        return False
    alike = {"run": project.config.run, "mirror": project.config.mirror}
    return usual.model_copy(update=alike) == project.config


def _as_far_as_it_is(project: Project, paper: Paper) -> Paper:
    """Leave unfinished parts out of a paper."""
    summaries = project.folder / "summaries" / paper.key
    lacking = {
        name: why_unfinished(project, paper.key, name)
        for name in paper.experiments
        if not (summaries / f"{name}.parquet").is_file()
    }
    remaining = without(paper, lacking)
    folder = project.folder / "artefacts" / paper.key
    drawn = {
        name: spec
        for name, spec in remaining.artefacts.items()
        if (folder / name / "artefact.json").is_file()
    }
    undrawn = {name: remaining.artefacts[name] for name in remaining.artefacts if name not in drawn}
    reasons = {f"the drawing of {name}": UNFINISHED for name in undrawn}
    changes = {"omitted": remaining.omitted | undrawn, "left_out": remaining.left_out | reasons}
    return remaining.model_copy(update={**changes, "artefacts": drawn})


def recheck_of(project: Project) -> list[recomputed.Recomputed]:
    """Return the comparison of recomputed runs, if the results come from finished runs."""
    if project.config.computes:
        return []
    return recomputed.read_recheck(project.folder / recomputed.RECHECK)
