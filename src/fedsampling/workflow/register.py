"""Registering rules before their fresh runs: the digest of each, with time and commit."""

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from fedsampling.base.errors import InputError
from fedsampling.base.files import write_record
from fedsampling.experiments.papers import Paper, load_paper
from fedsampling.experiments.registration import FILE, Registered


def register(papers: Path) -> Iterator[str]:
    """Register the rules that are new or changed, in the papers' ``registered.json``.

    Yields a line for each paper. A rule that has not changed keeps its registration.
    """
    commit = _commit(papers)
    now = datetime.now(UTC).replace(microsecond=0)
    for path in sorted(papers.glob("*/paper.yaml")):
        paper = load_paper(path.parent.name, papers)
        rules = _rules(paper, now, commit)
        if not rules:
            continue
        changed = [name for name, rule in rules.items() if rule != paper.registered.get(name)]
        if changed or rules.keys() != paper.registered.keys():
            content = {name: rule.model_dump(mode="json") for name, rule in rules.items()}
            write_record(paper.folder / FILE, content)
        yield f"{paper.key}: {len(rules)} rules, {len(changed)} new or changed"


def _rules(paper: Paper, now: datetime, commit: str) -> dict[str, Registered]:
    """Return the registrations of all claims with parts."""
    rules = {}
    for name in (name for name, claim in paper.claims.items() if claim.parts):
        digest, before = paper.rule_digest(name), paper.registered.get(name)
        is_same = before is not None and before.digest == digest
        rules[name] = (
            before if before and is_same else Registered(digest=digest, at=now, commit=commit)
        )
    return rules


def _commit(papers: Path) -> str:
    """Return the commit that contains the records; all of them must be committed."""

    def git(*arguments: str) -> str:
        process = subprocess.run(
            ["git", "-C", papers, *arguments], capture_output=True, text=True, check=False
        )
        if process.returncode:
            raise InputError(f"{papers}: no git repository; rules are registered in a clone")
        return process.stdout.strip()

    if changed := git("status", "--porcelain", "--", "*/paper.yaml"):
        raise InputError(f"{changed.split()[-1]}: not committed; commit it, then register")
    return git("rev-parse", "HEAD")
