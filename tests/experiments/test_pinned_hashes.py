"""Every run of every shipped paper keeps its hash: finished runs are stored under it.

Where a paper's experiments change on purpose, print the new digests with
``python tests/experiments/test_pinned_hashes.py > tests/experiments/pinned_hashes.json``.
"""

import json
import sys
from functools import cache
from itertools import chain
from pathlib import Path

from fedsampling.base.files import digest, read_record
from fedsampling.experiments.config import Config
from fedsampling.experiments.dataset_uses import dataset_uses
from fedsampling.experiments.selecting import load_papers
from fedsampling.experiments.specs import jobs
from fedsampling.report import data_cards
from fedsampling.runs.places import INDEX

ROOT = Path(__file__).parents[2]
PINNED = Path(__file__).with_name("pinned_hashes.json")
# At other scales, the runs on embedded data have the same settings as those on official data.
PLANS = (("quick", "embedded"), *((scale, "official") for scale in ("quick", "reduced", "paper")))


@cache
def planned():
    """Return all jobs of each ``paper/scale/data``."""
    return {
        f"{key}/{scale}/{data}": jobs(paper, config)
        for scale, data in PLANS
        for config in [Config(scale=scale, data=data)]
        for key, paper in load_papers(config, ROOT / "papers").items()
    }


def samplers():
    """Return the names of all samplers in the plans."""
    listed = chain.from_iterable(planned().values())
    return sorted({job.runs[0].settings["sampler"]["name"] for job in listed})


def pins(names):
    """Return `names` and one digest of the names and hashes of these samplers' runs for each plan.

    The cross matrix has runs of all samplers, also of those that are added later.
    """
    values = {"samplers": names}
    for key, listed in sorted(planned().items()):
        runs = [
            (job.name, run.seed, run.hash)
            for job in listed
            for run in job.runs
            if run.settings["sampler"]["name"] in names
        ]
        values[key] = f"{len(runs)} runs: {digest(sorted(runs))}"
    return values


def test_every_run_hash_is_as_pinned():
    pinned = json.loads(PINNED.read_text(encoding="utf-8"))
    assert pins(pinned["samplers"]) == pinned


def test_every_paper_has_jobs_with_unique_names_at_every_scale():
    for key, listed in planned().items():
        assert listed, key
        assert len({job.name for job in listed}) == len(listed)


def test_published_runs_are_those_of_the_current_specs():
    """Runs that no spec asks for would never be read."""
    hashes = {}
    for job in chain.from_iterable(planned().values()):
        hashes.setdefault(job.experiment_id, set()).update(run.hash for run in job.runs)
    index = read_record(ROOT / "published_runs" / INDEX)
    assert [name for name, runs in index.items() if {*runs} - hashes.get(name, set())] == []


def test_settings_of_every_dataset_fit_the_record_that_its_card_reads():
    listed = (jobs for name, jobs in planned().items() if name.endswith("/paper/official"))
    uses = dataset_uses(chain.from_iterable(listed))
    assert uses
    for name in uses:
        assert all(data_cards.loader(name, use).files() == use.files for use in uses[name])


if __name__ == "__main__":
    json.dump(pins(samplers()), sys.stdout, indent=2)
    print()
