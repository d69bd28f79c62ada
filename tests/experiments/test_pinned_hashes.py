"""Every run of every shipped paper keeps its hash: finished runs are stored under it.

Where a paper's experiments change on purpose, print the new digests with
``python tests/experiments/test_pinned_hashes.py > tests/experiments/pinned_hashes.json``.
"""

import json
import sys
from functools import cache
from itertools import product
from pathlib import Path

from fedsampling.base.files import digest
from fedsampling.experiments.config import Config
from fedsampling.experiments.resolving import load_papers
from fedsampling.experiments.specs import jobs

ROOT = Path(__file__).parents[2]
PINNED = Path(__file__).with_name("pinned_hashes.json")
SCALES = ("quick", "reduced", "paper")
SOURCES = ("embedded", "official")


@cache
def planned():
    """Return all jobs of each ``paper/scale/data``."""
    return {
        f"{key}/{scale}/{data}": jobs(paper, config)
        for scale, data in product(SCALES, SOURCES)
        for config in [Config(scale=scale, data=data)]
        for key, paper in load_papers(config, ROOT / "papers").items()
    }


def digests():
    """Return one digest of all names and hashes of runs for each ``paper/scale/data``."""
    values = {}
    for key, listed in sorted(planned().items()):
        runs = [(job.name, run.seed, run.hash) for job in listed for run in job.runs]
        values[key] = f"{len(runs)} runs: {digest(sorted(runs))}"
    return values


def test_every_run_hash_is_as_pinned():
    assert digests() == json.loads(PINNED.read_text(encoding="utf-8"))


def test_every_paper_has_jobs_with_unique_names_at_every_scale():
    for key, listed in planned().items():
        assert listed, key
        assert len({job.name for job in listed}) == len(listed)


def test_no_two_different_runs_have_the_same_hash():
    identities = {}
    for run in (run for listed in planned().values() for job in listed for run in job.runs):
        assert identities.setdefault(run.hash, run.identity) == run.identity


if __name__ == "__main__":
    json.dump(digests(), sys.stdout, indent=2)
    print()
