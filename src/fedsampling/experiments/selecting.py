"""The papers and experiments that a configuration selects."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from fedsampling.base.errors import InputError, gathering, nearest
from fedsampling.base.text import listed
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import NO_PAPERS, Paper, load_paper
from fedsampling.experiments.shorthand import exists_at

NOT_AT = "not at {} scale"  # reason for leaving out an experiment that is null at this scale


def load_papers(config: Config, papers: Path) -> dict[str, Paper]:
    """Read the papers in the configuration, by key; null means all folders in `papers`."""
    folders = folders_of(config, papers)
    selected: dict[str, list[str]] = {}  # by paper; empty for all
    for name in config.experiments or ():
        key, _, experiment = name.partition("/")
        selected.setdefault(key, []).append(experiment)
    problems = [
        f"experiments: '{key}/{names[0]}': unknown paper; {nearest(key, folders)}"
        for key, names in selected.items()
        if key not in folders
    ]
    problems += [
        f"overrides.{key}: not among the selected papers; {nearest(key, folders)}"
        for key in config.overrides
        if key not in folders
    ]
    if selected:
        folders = {key: folder for key, folder in folders.items() if key in selected}
    loaded = {}
    for key, folder in folders.items():
        with gathering(problems):
            changes = config.overrides.get(key, {})
            paper = load_paper(key, folder.parent, "papers")
            left_out = {
                name: NOT_AT.format(config.scale)
                for name, settings in paper.experiments.items()
                if not exists_at(settings, config.scale)
            }
            left_out |= {name: "left out" for name, change in changes.items() if change is None}
            paper = without(paper, left_out)
            if selected:
                # Checked before `only` removes the experiments that were not selected.
                problems += [
                    f"overrides.{key}.{name}: {no_experiment(name, paper)}"
                    for name in changes
                    if name not in paper.experiments and name not in paper.left_out
                ]
                paper = only(paper, selected[key])
            loaded[key] = paper
    if problems:
        raise InputError(*problems)
    return loaded


def without(paper: Paper, left_out: Mapping[str, str]) -> Paper:
    """Return a paper without the experiments in `left_out` and the artefacts that need them.

    A `partial` artefact remains if one of its experiments does. Claims remain, as "not run".
    """
    if unknown := [name for name in left_out if name not in paper.experiments]:
        place = f"overrides.{paper.key}"
        raise InputError(*(f"{place}.{name}: {no_experiment(name, paper)}" for name in unknown))
    experiments = {
        name: settings for name, settings in paper.experiments.items() if name not in left_out
    }
    artefacts, omitted = {}, dict(paper.omitted)
    for name, spec in paper.artefacts.items():
        remaining = [experiment for experiment in spec.experiments if experiment not in left_out]
        if remaining == spec.experiments or (remaining and spec.partial):
            artefacts[name] = spec.model_copy(update={"experiments": remaining})
        else:
            omitted[name] = spec
    changes = {"experiments": experiments, "artefacts": artefacts, "omitted": omitted}
    return paper.model_copy(update={**changes, "left_out": {**paper.left_out, **left_out}})


def only(paper: Paper, experiments: Sequence[str]) -> Paper:
    """Keep some experiments of a paper, and the artefacts and claims that need no others."""
    if problems := [
        f"experiments: '{paper.key}/{name}': {no_experiment(name, paper)}"
        for name in experiments
        if name not in paper.experiments
    ]:
        raise InputError(*problems)
    removed = dict.fromkeys(paper.experiments.keys() - set(experiments), "")
    kept = without(paper, removed)
    drawn = {name: spec for name, spec in kept.artefacts.items() if spec.experiments}
    claims = {
        name: claim
        for name, claim in paper.claims.items()
        if claim.artefact in drawn
        and set(experiments).issuperset(
            claim.experiments or paper.artefacts[claim.artefact].experiments
        )
    }
    changes = {"artefacts": drawn, "claims": claims, "left_out": {}, "omitted": {}}
    return kept.model_copy(update=changes)


def no_experiment(name: str, paper: Paper) -> str:
    """Explain why `name` is not an experiment of a paper, and suggest a fix."""
    if reason := paper.left_out.get(name):
        return f"{reason}; change the scale, or leave it out"
    if drawn := {**paper.artefacts, **paper.omitted}.get(name):
        used = listed([f"'{experiment}'" for experiment in drawn.experiments])
        noun = "its experiment" if len(drawn.experiments) == 1 else "its experiments"
        fix = f"use {noun} {used}" if used else "it has no runs"
        return f"is a {drawn.kind}; {fix}"
    return f"no such experiment; {nearest(name, paper.experiments)}"


def folders_of(config: Config, papers: Path) -> dict[str, Path]:
    """Return the folders of the papers in the configuration, by key."""
    if config.papers is None:
        folders = sorted(path.parent for path in papers.glob("*/paper.yaml"))
    else:
        folders = [Path(name) if "/" in name else papers / name for name in config.papers]
    if not folders:
        raise InputError(NO_PAPERS.format(papers))
    by_name: dict[str, Path] = {}
    for folder in folders:
        if (first := by_name.setdefault(folder.name, folder)) != folder:
            raise InputError(
                f"papers: {first} and {folder} have the same name, by which results are stored; "
                "rename one of the two, or remove it"
            )
    return by_name
