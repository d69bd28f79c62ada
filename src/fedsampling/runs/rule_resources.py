"""Resources of the workflow's rules, and warnings about requests that the cluster cannot meet."""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fedsampling.experiments.config import Cluster
from fedsampling.experiments.specs import Job
from fedsampling.runs.measurements import Measured, load_measurements, measurement_key
from fedsampling.runs.resources import OTHER_STEPS, Need, excesses, need, request

# The resources that jobs request.
RESOURCES = ("runtime", "mem_mb", "gpu", "gpu_model", "gres", "slurm_partition")


@dataclass(frozen=True)
class RuleResources:
    """Resource requests of all jobs."""

    jobs: Mapping[str, Job]  # by name
    batches: Mapping[str, Sequence[str]]  # names of the jobs that share a process
    cluster: Cluster
    results: Path  # folder that holds the estimates

    def of(self, step: str) -> dict[str, Callable[[Any, int], Any]]:
        """Return a rule's resources by name, each as a function of (wildcards, attempt).

        `step`: a job pattern, such as ``{paper}/{experiment}/…``, a batch, or one of OTHER_STEPS.
        """

        def resource(name: str) -> Callable[[Any, int], Any]:
            return lambda wildcards, attempt: self._request(step, wildcards, attempt)[name]

        return {name: resource(name) for name in RESOURCES}

    def _request(self, step: str, wildcards: Any, attempt: int) -> dict[str, Any]:
        if step in OTHER_STEPS:
            return request(OTHER_STEPS[step], self.cluster, attempt)
        names = self.batches.get(step) or [step.format(**wildcards)]
        return request(self._need(names), self.cluster, attempt)

    def _need(self, names: Sequence[str]) -> Need:
        """Return the needs of jobs that share a process."""
        jobs = [self.jobs[name] for name in names]
        needs = [need(job, self._measured, self.cluster) for job in jobs]
        # Jobs that share a process are short: estimates add up, but a default is enough for all.
        estimated = [
            its_need.minutes
            for job, its_need in zip(jobs, needs, strict=True)
            if measurement_key(job) in self._measured
        ]
        return Need(
            max(sum(estimated), *(its_need.minutes for its_need in needs)),
            max(its_need.mem_mb for its_need in needs),
            any(its_need.gpu for its_need in needs),
        )

    def excesses(self, due: Collection[str]) -> list[str]:
        """Return a line for each request for jobs that are due that SLURM would never start."""
        batched = {name for names in self.batches.values() for name in names}
        together = [names for names in self.batches.values() if not {*names}.isdisjoint(due)]
        alone = [[name] for name in due if name not in batched]
        return excesses(map(self._need, [*together, *alone]), self.cluster)

    def warn(self, due: Collection[str]) -> None:
        """Print warnings about requests that this cluster would never start."""
        for line in self.excesses(due):
            print(f"fedsampling: {line}", file=sys.stderr, flush=True)

    @cached_property
    def _measured(self) -> Mapping[str, Measured]:
        return load_measurements(self.results)
