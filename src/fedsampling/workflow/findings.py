"""The findings document, the notes on data, the history, and the README's table of verdicts."""

import re
from collections.abc import Mapping
from pathlib import Path

from fedsampling.base.errors import InputError
from fedsampling.base.files import write_text
from fedsampling.evidence.claims import Claim
from fedsampling.experiments.papers import Paper
from fedsampling.report import content, findings
from fedsampling.report.overview import declared, readme_table
from fedsampling.report.standing import sentences
from fedsampling.workflow.project import Project


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
