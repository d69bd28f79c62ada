"""What stands behind an artefact or a verdict: its runs, and what keeps them from being evidence.

The same records are written beside each artefact and read by the report.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from fedsampling.evidence.summaries import FEWEST_SEEDS, Summary, joined
from fedsampling.experiments.fingerprints import digest
from fedsampling.experiments.specs import differences

Summaries = Mapping[str, Summary]

FEW_KEYS = 2  # that have room on a figure's face

# From the least to the most evidence, with the badge of each.
SCALES = {
    "quick": "quick scale",
    "changed": "changed settings",
    "reduced": "reduced scale",
    "paper": "",
}


UNVERIFIED = "unverified copy"


@dataclass(frozen=True)
class Standing:
    """How much the runs behind a claim can say.

    Parameters
    ----------
    scale : str
        The smallest of them; a key of :data:`SCALES`.
    obstacles : tuple of str
        Why they give no verdict, such as ``"quick scale"``; empty if they do.
    indicates : bool
        Whether they may indicate something where they give no verdict.
    seeds : int
        Fewest of the cases that are covered.
    covers : str
        What they cover of the paper's experiments, such as ``"2 of 4 experiments"``; empty if all.
    """

    scale: str = ""
    obstacles: tuple[str, ...] = ()
    indicates: bool = False
    seeds: int = 0
    covers: str = ""


@dataclass(frozen=True)
class Provenance:
    """Where an artefact's numbers come from; what is not recorded is empty.

    Parameters
    ----------
    scale, data : str
        ``data`` lists the kinds, as in ``embedded, generated``. Without runs both mean nothing.
    spec_digest : str, optional
        Of the hashes of all runs.
    code : tuple of str
        Fingerprints of the code that made the runs.
    seconds : float, optional
        Computing time of all runs.
    peak_mb : float, optional
        Largest memory of a run.
    started, finished : str, optional
        ISO 8601, of the first and the last run.
    inputs : mapping of str to str
        SHA-256 of each data file, by its name.
    """

    scale: str
    data: str
    runs: int = 0
    seeds: int = 0
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
        """The kinds of data, one word each."""
        return tuple(self.data.split(", "))


def badges(summaries: Summaries, facts: Mapping[str, str]) -> list[str]:
    """Say why an artefact is not evidence; nothing if it is, or if no runs stand behind it.

    Parameters
    ----------
    summaries : mapping
        Of the experiments that it is drawn from, by name.
    facts : mapping
        ``scale`` and ``data`` of the configuration.
    """
    scale = _scale(summaries, facts)
    found = [SCALES[scale]] if summaries and scale != "paper" else []
    if scale == "changed":
        found = _changed(summaries)
    data = {kind for summary in summaries.values() for kind in summary.provenance["run_data"]}
    if "embedded" in data:
        found.append("embedded data")
    if any(summary.provenance["unverified"] for summary in summaries.values()):
        found.append(UNVERIFIED)
    return found


def standing(
    summaries: Summaries,
    experiments: Mapping[str, Mapping[str, Any]],
    cases: Collection[str],
    facts: Mapping[str, str],
) -> Standing:
    """Say how much the runs behind a claim can say.

    A case counts where all of its schemes have :data:`FEWEST_SEEDS` seeds, or as many as the
    paper's experiment has.  Quick scale, stand-ins of the data, and runs of which no case counts
    indicate nothing.

    Parameters
    ----------
    summaries : mapping
        Of the experiments that were run.
    experiments : mapping
        All that the claim rests on, as the paper's file gives them.
    cases : collection of str
        Those of them that it rests on; of an experiment that has none of them, all.
    facts : mapping
        ``scale`` and ``data`` of the configuration.
    """
    if not experiments:
        quick = facts["scale"] == "quick"  # of what a claim computes itself
        return Standing(facts["scale"], ("quick scale",) if quick else ())
    seeds = {}
    for name, summary in summaries.items():
        wanted = experiments[name]["seeds"]
        needed = min(FEWEST_SEEDS, wanted if isinstance(wanted, int) else len(wanted))
        found = summary.rows.groupby(["case", "sampler"], observed=True)["seed"].nunique()
        for case, count in found.groupby("case", observed=True).min().items():
            if count >= needed:
                seeds[name, str(case)] = int(count)
    covered = [name for name in experiments if any(name == each for each, _ in seeds)]
    wanted_of = [given.get("cases", ("base",)) for given in experiments.values()]
    of = sum(sum(case in cases for case in given) or len(given) for given in wanted_of)
    parts = {"experiments": (len(covered), len(experiments)), "cases": (len(seeds), of)}
    counts = [f"{some} of {of} {what}" for what, (some, of) in parts.items() if some < of]
    scale = _scale(summaries, facts)
    obstacles = badges(summaries, facts)
    stand_in = scale == "quick" or facts["scale"] == "quick" or "embedded data" in obstacles
    if obstacles and not stand_in and not seeds:
        obstacles.append(f"fewer than {FEWEST_SEEDS} seeds")
    return Standing(
        scale,
        tuple(obstacles),
        indicates=bool(seeds) and not stand_in,
        seeds=min(seeds.values(), default=0),
        covers=", ".join(counts) if seeds else "",
    )


def provenance(summaries: Summaries, facts: Mapping[str, str]) -> Provenance:
    """Join the provenance of the summaries behind an artefact."""
    if not summaries:
        return Provenance(scale=facts["scale"], data="none")
    every = joined(summary.provenance for summary in summaries.values())
    return Provenance(
        scale=_scale(summaries, facts),
        data=", ".join(every["run_data"]),
        runs=every["runs"],
        seeds=max(len(summary.provenance["seeds"]) for summary in summaries.values()),
        spec_digest=digest(sorted(every["hashes"])),
        code=tuple(every["code"]),
        package=", ".join(every["package"]) or None,
        commit=", ".join(every["commit"]) or None,
        python=", ".join(every["python"]) or None,
        device="; ".join(every["device"]) or None,
        **{key: every[key] for key in ("versions", "seconds", "peak_mb", "started", "finished")},
        inputs=every["inputs"],
    )


def changed(summaries: Summaries) -> list[str]:
    """Name what overrides have changed of the runs behind an artefact."""
    listed = [line for each in summaries.values() for line in each.provenance.get("changed", ())]
    return list(dict.fromkeys(listed))


def differing(summaries: Summaries, others: Summaries) -> list[str]:
    """Name what differs between the runs of the same experiments in two folders of results.

    Returns
    -------
    list of str
        ``key value (the others' value)``; ``"code"`` where only that differs, and nothing if the
        runs are the same ones.
    """
    pairs = [(summaries[name], others[name]) for name in summaries]
    if all(_made_of(mine) == _made_of(other) for mine, other in pairs):
        return []
    listed = [line for mine, other in pairs for line in differences(mine.settings, other.settings)]
    return list(dict.fromkeys(listed)) or ["code"]


def _made_of(summary: Summary) -> tuple[Any, Any]:
    return summary.provenance["hashes"], summary.provenance["code"]


def _changed(summaries: Summaries) -> list[str]:
    """Say what was changed, briefly, and at which scale."""
    at = {each.provenance.get("changed_at", "paper") for each in summaries.values()}
    scales = [words for scale, words in SCALES.items() if words and scale in at]
    keys = changed(summaries)
    told = "; ".join(keys) if len(keys) <= FEW_KEYS else f"{len(keys)} keys"
    return [*scales, f"{SCALES['changed']}: {told}" if told else SCALES["changed"]]


def _scale(summaries: Summaries, facts: Mapping[str, str]) -> str:
    """Return the smallest scale of what an artefact is drawn from."""
    scales = {summary.provenance["scale"] for summary in summaries.values()}
    found = [scale for scale in SCALES if scale in scales]
    return found[0] if found else facts["scale"]
