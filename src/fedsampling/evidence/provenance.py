"""Provenance of artefacts and verdicts: their runs, and reasons why runs are not evidence.

The pipeline writes these records with each artefact; the report reads them.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fedsampling.base.files import digest
from fedsampling.base.text import show_range
from fedsampling.evidence.summaries import FEWEST_SEEDS, Summary, joined

Summaries = Mapping[str, Summary]
MAX_NAMES = 2  # more changed keys or experiments do not fit on a figure
# From least to most evidence, with the badge of each scale.
SCALES = {
    "quick": "quick scale",
    "changed": "changed settings",
    "reduced": "reduced scale",
    "paper": "",
}
UNVERIFIED = "unverified copy"


@dataclass(frozen=True)
class RunEvidence:
    """How much evidence the runs behind a claim provide."""

    scale: str = ""  # smallest scale of the runs; a key of :data:`SCALES`
    # reasons why the runs give no verdict at the paper's size, such as ``"quick scale"``
    obstacles: tuple[str, ...] = ()
    preliminary: bool = False  # whether the runs count as preliminary evidence
    seeds: int = 0  # fewest seeds of the covered cases
    # covered part of the paper's experiments, such as ``"2 of 4 experiments"``; empty if all
    covers: str = ""


@dataclass(frozen=True)
class Provenance:
    """The runs behind an artefact; fields that were not recorded are empty.

    `data` lists sources, as in ``embedded, generated``; `seeds` are those of a case, as in ``5 to
    20``. `spec_digest` is of the hashes of all runs, `code` has the fingerprints of the code that
    computed them, and `inputs` SHA-256 of data files by name. Times are ISO 8601.
    """

    scale: str
    data: str
    runs: int = 0
    seeds: str = ""
    spec_digest: str | None = None
    code: tuple[str, ...] = ()
    package: str | None = None
    commit: str | None = None
    python: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None
    seconds: float | None = None
    peak_mb: float | None = None
    started: str | None = None
    finished: str | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The sources of the data, one word each."""
        return tuple(self.data.split(", "))


def badges(summaries: Summaries, facts: Mapping[str, str]) -> list[str]:
    """Return why an artefact is not evidence; empty if it is, or if it has no runs."""
    scale = _scale(summaries, facts)
    words = [SCALES[scale]] if summaries and scale != "paper" else []
    if scale == "changed":
        words = _changed(summaries)
    data = {kind for summary in summaries.values() for kind in summary.provenance["run_data"]}
    if "embedded" in data:
        words.append("embedded data")
    if unverified := [name for name in summaries if summaries[name].provenance["unverified"]]:
        words.append(UNVERIFIED + _part(unverified, len(summaries)))
    return words


def has_unverified_data(words: Iterable[str]) -> bool:
    """Return whether one of these badges is about data without a publisher's checksum."""
    return any(badge.startswith(UNVERIFIED) for badge in words)


def assess_runs(
    summaries: Summaries,
    experiments: Mapping[str, Mapping[str, Any]],
    cases: Collection[str],
    facts: Mapping[str, str],
) -> RunEvidence:
    """Assess how much evidence the runs behind a claim provide.

    A case counts if each of its samplers has at least :data:`FEWEST_SEEDS` seeds, or as many as the
    paper's experiment; in an experiment with none of the claim's `cases`, all count. Quick scale,
    substitute data, and runs without a case that counts are not even preliminary evidence.
    """
    if not experiments:
        quick = facts["scale"] == "quick"  # for claims that compute their own numbers
        return RunEvidence(facts["scale"], ("quick scale",) if quick else ())
    seeds = {}
    for name, summary in summaries.items():
        paper_seeds = experiments[name]["seeds"]
        n_paper_seeds = paper_seeds if isinstance(paper_seeds, int) else len(paper_seeds)
        seed_counts = summary.rows.groupby(["case", "sampler"], observed=True)["seed"].nunique()
        for case, count in seed_counts.groupby("case", observed=True).min().items():
            if count >= min(FEWEST_SEEDS, n_paper_seeds):
                seeds[name, str(case)] = int(count)
    covered = experiments.keys() & {name for name, _ in seeds}
    declared = [experiment.get("cases", ("base",)) for experiment in experiments.values()]
    n_cases = sum(sum(case in cases for case in names) or len(names) for names in declared)
    parts = {"experiments": (len(covered), len(experiments)), "cases": (len(seeds), n_cases)}
    shares = [f"{part} of {total} {unit}" for unit, (part, total) in parts.items() if part < total]
    scale = _scale(summaries, facts)
    obstacles = badges(summaries, facts)
    stand_in = scale == "quick" or facts["scale"] == "quick" or "embedded data" in obstacles
    if obstacles and not stand_in and not seeds:
        obstacles.append(f"fewer than {FEWEST_SEEDS} seeds")
    return RunEvidence(
        scale,
        tuple(obstacles),
        preliminary=bool(seeds) and not stand_in,
        seeds=min(seeds.values(), default=0),
        covers=", ".join(shares) if seeds else "",
    )


def provenance(summaries: Summaries, facts: Mapping[str, str]) -> Provenance:
    """Join the provenance of the summaries behind an artefact."""
    if not summaries:
        return Provenance(scale=facts["scale"], data="none")
    record = joined(summary.provenance for summary in summaries.values())
    return Provenance(
        scale=_scale(summaries, facts),
        data=", ".join(record["run_data"]),
        runs=record["runs"],
        seeds=number_of_seeds(summaries.values()),
        spec_digest=digest(sorted(record["hashes"])),
        code=tuple(record["code"]),
        package=", ".join(record["package"]) or None,
        commit=", ".join(record["commit"]) or None,
        python=", ".join(record["python"]) or None,
        # Earlier versions recorded "1 threads".
        device="; ".join(sorted({re.sub(r"\b1 threads$", "1 thread", d) for d in record["device"]}))
        or None,
        **{key: record[key] for key in ("versions", "seconds", "peak_mb", "started", "finished")},
        inputs=record["inputs"],
    )


def number_of_seeds(summaries: Iterable[Summary]) -> str:
    """Write how many seeds a case has, such as ``5 to 20`` if cases differ."""
    return show_range(
        len(runs["seeds"])
        for summary in summaries
        for runs in summary.by_case.values() or [summary.provenance]
    )


def changed(summaries: Summaries) -> list[str]:
    """List the settings that overrides changed in an artefact's runs."""
    changes = (summary.provenance.get("changed", ()) for summary in summaries.values())
    return list(dict.fromkeys(line for lines in changes for line in lines))


def _part(names: Sequence[str], total: int) -> str:
    """Name some of `total` experiments: ``": one, two"``; empty if they are all."""
    if len(names) == total:
        return ""
    return ": " + (
        ", ".join(names) if len(names) <= MAX_NAMES else f"{len(names)} of {total} experiments"
    )


def _changed(summaries: Summaries) -> list[str]:
    """Return the badges of changed runs: their scale and, briefly, the changed keys."""
    changed_scales = {
        summary.provenance.get("changed_at", "paper") for summary in summaries.values()
    }
    scales = [words for scale, words in SCALES.items() if words and scale in changed_scales]
    keys = changed(summaries)
    text = "; ".join(keys) if len(keys) <= MAX_NAMES else f"{len(keys)} keys"
    return [*scales, f"{SCALES['changed']}: {text}" if text else SCALES["changed"]]


def _scale(summaries: Summaries, facts: Mapping[str, str]) -> str:
    """Return the smallest scale of an artefact's runs."""
    scales = {summary.provenance["scale"] for summary in summaries.values()}
    return next((scale for scale in SCALES if scale in scales), facts["scale"])
