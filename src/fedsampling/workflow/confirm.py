"""Confirm a paper's claims: judge them on fresh seeds, by the rule that was registered before.

The function of the paper gets the twins of the claim's experiments in their place
(:mod:`fedsampling.experiments.registration`), and its intervals allow for the declared looks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fedsampling.base.text import listed
from fedsampling.evidence import grades
from fedsampling.evidence.claims import Confirmation
from fedsampling.evidence.looks import Looks
from fedsampling.evidence.provenance import assess_runs, changed
from fedsampling.evidence.statistics import allowing_for
from fedsampling.evidence.summaries import Summary, load_summaries
from fedsampling.experiments.papers import Paper, load_paper
from fedsampling.experiments.resolving import load_kinds
from fedsampling.experiments.selecting import NOT_AT
from fedsampling.workflow.claim_context import Context, decisive
from fedsampling.workflow.look_hours import first_seeds
from fedsampling.workflow.project import Project
from fedsampling.workflow.summarise import summarise

OTHER_SEEDS = "give its experiments under 'confirm' another first_seed, and register it again"


@dataclass(frozen=True)
class FreshSeeds:
    """What fresh seeds say of a claim.

    `confirmation`: the claim judged on them; None if there are none or if they do not count, for
    the `reason`. `looks_left`: numbers of seeds of the looks that are still to come; empty if none
    of them could confirm it.
    """

    confirmation: Confirmation | None = None
    reason: str = ""
    looks_left: tuple[int, ...] = ()


def confirmations(project: Project, key: str) -> dict[str, FreshSeeds]:
    """Judge a paper's claims on the fresh seeds that are finished."""
    spec = project.plan.paper(key)
    complete = load_paper(key, spec.folder.parent)
    twins = {twin for name in complete.claims for twin in complete.twins_of(name).values()}
    load_kinds(spec.folder)
    with TemporaryDirectory() as folder:
        for twin in (finished := sorted(twins & spec.experiments.keys())):
            summarise(key, twin, project, Path(folder))
        context = Context(spec, complete, project, load_summaries(key, finished, Path(folder)), {})
        return {name: confirmed(name, context) for name in complete.claims}


def confirmed(name: str, context: Context) -> FreshSeeds:
    """Judge a claim on the fresh seeds that are finished."""
    if reason := _why_impossible(name, context):
        return FreshSeeds(reason=reason)
    looks = _looks(name, context.complete)
    if not looks:
        return FreshSeeds()
    if reason := _why_elsewhere(name, context):
        return FreshSeeds(reason=reason)
    if reason := _why_not_yet(name, context, looks):
        return FreshSeeds(None, reason, looks)
    twins, cases = context.complete.twins_of(name), context.cases(name)
    fresh = {original: context.loaded[twin].only(cases) for original, twin in twins.items()}
    if changes := decisive(changed(fresh), cases):
        return FreshSeeds(reason=grades.not_judged(changes).reason)
    confirmation = _confirmation(name, fresh, Looks(looks), context)
    if confirmation is None:
        return FreshSeeds(reason="The rule does not fit the changed settings.")
    return FreshSeeds(confirmation, looks_left=looks[confirmation.look :])


def _confirmation(
    name: str, finished: Mapping[str, Summary], plan: Looks, context: Context
) -> Confirmation | None:
    """Judge a claim at the last look that all its experiments have finished.

    Returns None if the paper's rule fails because of changed settings.
    """
    spec = context.complete.claims[name]
    counts = {original: len(summary.settings["seeds"]) for original, summary in finished.items()}
    look = plan.finished(min(counts.values()))
    # Another claim may have taken some of the experiments further.
    seeds = plan.seeds[look - 1]
    fresh = {original: summary.first_seeds(seeds) for original, summary in finished.items()}
    twins = context.complete.twins_of(name)
    specs = {original: context.complete.experiments[twin] for original, twin in twins.items()}
    evidence = assess_runs(fresh, specs, context.cases(name), context.project.facts)
    with allowing_for(plan):
        finding = context.apply_rule(name, fresh, "not confirmed")
    if finding is None:
        return None
    finding = grades.graded(finding, evidence, spec.transfer)
    draws = {word: None for summary in fresh.values() for word in drawn_by_seed(summary.settings)}
    seconds = sum(
        summary.provenance["seconds"] * seeds / counts[original]
        for original, summary in fresh.items()
    )
    registered = context.complete.registered[name]
    return Confirmation(
        verdict=finding.verdict,
        ours=finding.ours,
        reason=finding.reason,
        parts=finding.parts,
        drawn=finding.drawn,
        readings=finding.readings,
        grade=finding.grade,
        draws=listed([*draws]),
        seeds=seeds,
        look=look,
        looks=plan.seeds,
        hours=round(seconds / 3600, 2),
        registered=registered.at.isoformat(),
        commit=registered.commit,
        first_run=_first_run(name, context),
        caveat=" ".join(filter(None, (finding.caveat, spec.caveat))),
    )


def drawn_by_seed(experiment: Mapping[str, Any]) -> tuple[str, ...]:
    """Say what each seed of a resolved experiment draws: ``("clients", "delays", "training")``.

    With `worlds`, it draws what `problem_seed` draws otherwise. An experiment without training
    studies clients or problems, which each seed draws.
    """
    records = [experiment["settings"], *(case or {} for case in experiment["cases"].values())]
    if not any("rounds" in record for record in records):
        return ("clients",) if any("dataset" in record for record in records) else ("problems",)
    drawn = [
        name
        for name in ("delays", "availability")
        if any(_varies(record[name]) for record in records if record.get(name))
    ]
    return ("clients", *drawn, "training") if experiment.get("worlds") else ("training",)


def _varies(settings: Mapping[str, Any]) -> bool:
    """Whether a model of delays or availability draws anything: some range is no point."""
    ranges = [value for value in settings.values() if isinstance(value, list)]
    return not ranges or any(len(set(ends)) > 1 for ends in ranges)


def _why_impossible(name: str, context: Context) -> str:
    """Return why further runs cannot confirm a claim; empty if they can."""
    complete = context.complete
    twins, registered = complete.twins_of(name), complete.registered.get(name)
    if not twins:
        has_rule = complete.claims[name].parts
        return "Its numbers are exact; no seed decides it." if has_rule else ""
    if registered is None:
        return "Its rule is not registered; 'fedsampling register' registers it."
    if registered.digest != complete.rule_digest(name):
        return (
            f"Its rule was changed after its registration of {registered.at:%Y-%m-%d}; "
            "'fedsampling register' registers it again."
        )
    first = _first_run(name, context)
    if first and datetime.fromisoformat(first) < registered.at:
        return (
            f"Its fresh runs began before its registration of {registered.at:%Y-%m-%d}; "
            f"{OTHER_SEEDS}."
        )
    return ""


def _why_elsewhere(name: str, context: Context) -> str:
    """Return why a report does not show a claim's fresh runs; empty if it does, or would.

    Its experiments were not selected, do not exist at its scale, or have other seeds than declared.
    """
    complete = context.complete
    for twin in complete.twins_of(name).values():
        if twin in context.loaded:
            seeds = context.loaded[twin].settings["seeds"]
            if seeds != first_seeds(complete, twin, len(seeds)):
                return f"{twin} has other seeds than those that its plan declares."
        elif twin not in context.paper.experiments:
            not_selected = ("", "left out", NOT_AT.format(context.project.config.scale))
            if context.paper.left_out.get(twin, "") in not_selected:
                return "This report leaves out its fresh runs."
    return ""


def _why_not_yet(name: str, context: Context, looks: Sequence[int]) -> str:
    """Return why a claim has no finished look at fresh seeds; empty if it has one."""
    for twin in context.complete.twins_of(name).values():
        if twin not in context.loaded:
            reason = context.paper.left_out.get(twin, "no run")
            return f"No look at fresh seeds is finished: {reason}."
        if (seeds := len(context.loaded[twin].settings["seeds"])) < looks[0]:
            return f"No look at fresh seeds is finished: {seeds} of {looks[0]} seeds."
    return ""


def _looks(name: str, paper: Paper) -> tuple[int, ...]:
    """Return the plan of looks that the twins of a claim share; empty without twins."""
    twins = paper.twins_of(name).values()
    return next((tuple(paper.experiments[twin]["looks"]) for twin in twins), ())


def _first_run(name: str, context: Context) -> str:
    """Return when the first run of a claim's twins started; empty if none has a finished look."""
    twins = context.loaded.keys() & context.complete.twins_of(name).values()
    return min((str(context.loaded[twin].provenance["started"]) for twin in twins), default="")
