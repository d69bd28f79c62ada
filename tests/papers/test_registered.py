"""Rules are registered before their fresh runs, and have not changed since."""

import subprocess
from datetime import datetime

import pytest
from tests.shared import PAPERS, ROOT

from fedsampling.evidence.looks import Looks
from fedsampling.evidence.statistics import allowing_for
from fedsampling.experiments.papers import judge_function, load_paper
from fedsampling.experiments.resolving import load_kinds
from fedsampling.runs import store

from .shared import project, published

KEYS = sorted(path.parent.name for path in PAPERS.glob("*/registered.json"))


@pytest.mark.parametrize("key", KEYS)
def test_every_rule_is_registered_as_it_is(key):
    paper = load_paper(key, PAPERS)
    parts = {name for name, claim in paper.claims.items() if claim.parts}
    assert paper.registered.keys() == parts
    changed = {name for name in parts if paper.registered[name].digest != paper.rule_digest(name)}
    assert changed == set()


# Registered again after their fresh runs, which therefore confirm nothing.
AGAIN = {("rizk2022importance", "c2")}


@pytest.mark.parametrize("key", KEYS)
def test_no_fresh_run_began_before_its_rule_was_registered(key):
    paper = load_paper(key, PAPERS)
    twins = {(name, twin) for name in paper.registered for twin in paper.twins_of(name).values()}
    folder = ROOT / "published_runs" / key
    published = {(name, twin) for name, twin in twins if (folder / f"{twin}.parquet").is_file()}
    assert published
    for name, twin in published:
        runs = store.load_together(folder / f"{twin}.parquet").values()
        first = min(datetime.fromisoformat(run.metadata["started"]) for run in runs)
        began_later = first > paper.registered[name].at
        assert began_later != ((key, name) in AGAIN), (name, twin)


@pytest.mark.parametrize("key", KEYS)
def test_the_commit_of_a_registration_contains_the_records(key):
    """Where the history is available; clones may be shallow, and packages have none."""
    for name, registered in load_paper(key, PAPERS).registered.items():
        ancestry = subprocess.run(
            ["git", "-C", ROOT, "merge-base", "--is-ancestor", registered.commit, "HEAD"],
            capture_output=True,
            check=False,
        )
        if ancestry.returncode > 1:
            pytest.skip("no git history")
        assert ancestry.returncode == 0, name


@pytest.mark.long(ci=True)
@pytest.mark.parametrize("key", KEYS)
def test_rules_decide_the_registered_parts_within_the_registered_bounds(key):
    """Each rule is applied to the exploring runs of the experiments that have twins."""
    paper = load_paper(key, PAPERS)
    load_kinds(paper.folder)
    for name, claim in paper.claims.items():
        originals = paper.twins_of(name).keys() & project().plan.paper(key).experiments.keys()
        if not originals:
            continue
        with allowing_for(Looks((20,))):
            runs = {original: published(key, original) for original in originals}
            finding = judge_function(paper, name)(runs, claim, paper)
        assert finding.parts.keys() == claim.parts.keys(), name
        for interval in finding.drawn:
            if interval.name in claim.parts and claim.parts[interval.name].contrast != "mean":
                accepted = claim.parts[interval.name].accepted
                assert (interval.least, interval.most) == pytest.approx(accepted), name
