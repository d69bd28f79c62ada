"""The report, the findings document, and the summary of verdicts in the terminal."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from textwrap import shorten

from fedsampling.base.errors import WARNING, InputError
from fedsampling.base.files import write_text
from fedsampling.base.memory import collect_rarely
from fedsampling.base.records import check
from fedsampling.base.yaml_reading import read_yaml
from fedsampling.evidence import recomputed
from fedsampling.evidence.claims import Claim
from fedsampling.evidence.summaries import load_summaries
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import Paper
from fedsampling.experiments.selecting import without
from fedsampling.report import content, findings
from fedsampling.report.overview import declared, readme_table, tallies
from fedsampling.report.standing import sentences
from fedsampling.runs.places import RESULTS
from fedsampling.workflow.draw import draw, is_outdated, judge_claims
from fedsampling.workflow.project import Project
from fedsampling.workflow.status import UNFINISHED, why_unfinished


def write_findings(project: Project, only_check: bool) -> Path:
    """Write findings, notes on data, history of verdicts, and the README's table of verdicts."""
    root, results = project.papers.resolve().parent, project.folder
    if project.config.papers is not None or project.config.experiments is not None:
        raise InputError("papers, experiments: findings cover all papers; set both to null")
    papers = sorted(project.plan.papers.values(), key=lambda paper: not paper.claims)
    for paper in papers:
        if paper.claims and not (results / "claims" / f"{paper.key}.json").is_file():
            raise InputError(f"{paper.key}: not judged yet; run 'fedsampling draw {paper.key}'")
    judged = {
        paper.key: (paper, content.claims(results / "claims" / f"{paper.key}.json"))
        for paper in papers
    }
    parts = [
        findings.sections(paper, claims, results / "artefacts" / key)
        for key, (paper, claims) in judged.items()
    ]
    texts = {
        root / findings.DOCS: "\n".join([findings.HEAD, *(text for text, _ in parts if text)]),
        root / findings.DATA_DOCS: "\n".join([findings.DATA_HEAD, *(n for _, n in parts if n)]),
        root / findings.HISTORY_DOCS: findings.history(judged),
    }
    readme = root / "README.md"
    if readme.is_file():
        texts[readme] = _with_verdicts(readme.read_text(encoding="utf-8"), judged)
    for path, text in texts.items():
        if not only_check:
            write_text(path, text)
        elif path.read_text(encoding="utf-8") != text:
            raise InputError(f"{path}: differs from these results; run 'fedsampling findings'")
    return root / findings.DOCS


def _with_verdicts(readme: str, judged: Mapping[str, tuple[Paper, tuple[Claim, ...]]]) -> str:
    """Replace the summary and the table of verdicts in the README."""
    claims = [claim for _, of_paper in judged.values() for claim in of_paper]
    papers = sum(bool(of_paper) for _, of_paper in judged.values())
    text = " ".join([*sentences(claims, papers), *declared(claims)])
    block = f"<!-- verdicts -->\n{text}\n\n{readme_table(judged)}\n<!-- /verdicts -->"
    pattern = r"<!-- verdicts -->.*<!-- /verdicts -->"
    return re.sub(pattern, lambda _: block, readme, flags=re.DOTALL)


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
        recomputed=_recomputed(project),
    )
    return out / "index.html"


def print_verdicts(project: Project) -> None:
    """Print a summary of the verdicts, the path of the report, and possible next commands."""
    results, computes = project.folder, project.config.computes
    judged: dict[str, tuple[Claim, ...]] = {}
    for key, paper in project.plan.papers.items():
        path = results / "claims" / f"{key}.json"
        if not path.is_file():
            call = snakemake_command(project, key)
            raise InputError(f"{path}: no verdicts yet; run '{call}' first")
        if is_outdated(key, project):
            fix = f"run '{snakemake_command(project, key)} --forcerun draw_{key}'"
            print(f"{WARNING}{key}: drawn from other runs or settings; {fix}", file=sys.stderr)
        claims = judged[key] = content.claims(path)
        print(f"{key}: {_tally(claims) or f'{len(paper.artefacts)} artefacts, no claims'}")
        if paper.left_out:
            print(f"    not run: {shorten(', '.join(paper.left_out), 90, placeholder=' …')}")
    for sentence in sentences([*chain(*judged.values())], sum(map(bool, judged.values()))):
        print(sentence)
    if not computes:
        print(recomputed.recheck_sentence(_recomputed(project)))
    print(f"Report: {results / 'report' / 'index.html'}")
    recheck = "fedsampling recheck --share 0.05    # compares more, with the official data"
    finished = f"{snakemake_command(project, scale='best')}    # shows the results of finished runs"
    print(f"Next: {finished if computes else recheck}")
    print(f"      {snakemake_command(project, scale='paper')}    # computes missing runs")


def snakemake_command(project: Project, target: str = "", **settings: str) -> str:
    """Return a call of Snakemake with the project's configuration file and run."""
    # Alone, as this command read it: else Snakemake would add the overrides in config.yaml.
    only_this = f"--configfile {project.file} --replace-workflow-config"
    file = "" if _is_usual(project) else only_this
    run = {"run": project.config.run} if project.config.run else {}
    words = " ".join(f"{key}={value}" for key, value in {**run, **settings}.items())
    config = f"--config {words}" if words else ""
    return " ".join(filter(None, ["snakemake --cores all", target, file, config]))


def _options(project: Project) -> str:
    """Return the option that repeats the project's settings in commands of its report.

    It names the resolved settings in the results folder, because reports are shown to others, whom
    paths of the user's own files do not concern.
    """
    usual = _is_usual(project) and not project.config.run
    return "" if usual or project.results != RESULTS else f"--configfile {project.config_file}"


def _is_usual(project: Project) -> bool:
    """Whether Snakemake reads this configuration without ``--configfile``, apart from the run."""
    try:
        usual = check(Config, read_yaml(Path("config.yaml")), "")  # loads no code
    except (InputError, OSError):
        return False
    alike = {"run": project.config.run, "mirror": project.config.mirror}
    return usual.model_copy(update=alike) == project.config


def _tally(claims: Sequence[Claim]) -> str:
    """Count the verdicts of empirical claims by grade; count other kinds separately."""
    empirical = [claim for claim in claims if claim.kind == "empirical"]
    parts = []
    for grade, by_verdict in tallies(empirical).items():
        counts = ", ".join(f"{count} {verdict}" for verdict, count in by_verdict.items())
        parts.append(f"{grade}: {counts}" if grade != "not run" else counts)
    kinds = {"text against tables": "sentences agree with tables", "code check": "code checks pass"}
    for kind, words in kinds.items():
        passed = [claim.passes for claim in claims if claim.kind == kind]
        if passed:
            parts.append(f"{sum(passed)} of {len(passed)} {words}")
    return "; ".join(parts)


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


def _recomputed(project: Project) -> list[recomputed.Recomputed]:
    """Return the comparison of recomputed runs, if the results come from finished runs."""
    if project.config.computes:
        return []
    return recomputed.read_recheck(project.folder / recomputed.RECHECK)
