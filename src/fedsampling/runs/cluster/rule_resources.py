"""Resources of the workflow's rules, and warnings about requests that the cluster cannot meet."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedsampling.experiments.config import Cluster
from fedsampling.experiments.specs import Job
from fedsampling.runs.cluster import resources


@dataclass(frozen=True)
class RuleResources:
    """Resource requests of all jobs."""

    jobs: Mapping[str, Job]  # by name
    # names of the jobs that share a process, by the batch's name
    batches: Mapping[str, Sequence[str]]
    cluster: Cluster
    results: Path  # folder that holds the estimates

    def of(self, step: str) -> dict[str, Callable[[Any, int], Any]]:
        """Return a rule's resources by name, each as a function of (wildcards, attempt).

        `step`: a job pattern, such as ``{paper}/{experiment}/…``, a batch, or a key of
        :data:`.resources.OTHER_STEPS`.
        """

        def resource(name: str) -> Callable[[Any, int], Any]:
            return lambda wildcards, attempt: self._request(step, wildcards, attempt)[name]

        return {name: resource(name) for name in resources.RESOURCES}

    def _request(self, step: str, wildcards: Any, attempt: int) -> dict[str, Any]:
        if step in resources.OTHER_STEPS:
            need = resources.OTHER_STEPS[step]
        else:
            names = self.batches.get(step) or [step.format(**wildcards)]
            need = resources.largest(self._need(self.jobs[job]) for job in names)
        return resources.request(need, self.cluster, attempt)

    def warn(self) -> None:
        """Print warnings about requests that this cluster would never start."""
        for line in resources.excesses(self.jobs.values(), self._measured, self.cluster):
            print(f"fedsampling: {line}", file=sys.stderr, flush=True)

    def _need(self, job: Job) -> resources.Need:
        return resources.need(job, self._measured, self.cluster, self.cluster.margin)

    @cached_property
    def _measured(self) -> Mapping[str, resources.Measured]:
        return resources.load_measurements(self.results)
