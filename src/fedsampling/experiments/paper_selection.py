"""The papers that a configuration selects, without the experiments that it leaves out."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from fedsampling.base.errors import InputError, gathering, nearest
from fedsampling.experiments.config import Config
from fedsampling.experiments.papers import NO_PAPERS, Paper, load_paper

NOT_AT = "not at {} scale"  # reason for leaving out an experiment that is null at this scale


def load_papers(config: Config, papers: Path) -> dict[str, Paper]:
    """Read the papers in the configuration, by key; null means all folders in `papers`."""
    folders = _folders(config, papers)
    selected = _selected_experiments(config)
    problems = [
        f"experiments: '{key}/{names[0]}': unknown paper; {nearest(key, folders)}"
        for key, names in selected.items()
        if key not in folders
    ]
    if selected:
        folders = {key: folder for key, folder in folders.items() if key in selected}
    problems += [
        f"overrides.{key}: not among the selected papers; {nearest(key, folders)}"
        for key in config.overrides
        if key not in folders
    ]
    loaded = {}
    for key, folder in folders.items():
        with gathering(problems):
            changes = config.overrides.get(key, {})
            paper = load_paper(key, folder.parent, "papers")
            left_out = {
                name: NOT_AT.format(config.scale)
                for name, settings in paper.experiments.items()
                if settings.get(config.scale, {}) is None
            }
            left_out |= {name: "left out" for name, change in changes.items() if change is None}
            paper = without(paper, left_out)
            loaded[key] = only(paper, selected[key], changes) if selected else paper
    if problems:
        raise InputError(*problems)
    return loaded


def without(paper: Paper, left_out: Mapping[str, str]) -> Paper:
    """Return a paper without the experiments in `left_out` and the artefacts that need them.

    A `partial` artefact remains if one of its experiments does. Claims remain, as "not run".
    """
    problems = [
        f"overrides.{paper.key}.{name}: {no_experiment(name, paper)}"
        for name in left_out
        if name not in paper.experiments
    ]
    if problems:
        raise InputError(*problems)
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
    return paper.model_copy(
        update={
            "experiments": experiments,
            "artefacts": artefacts,
            "left_out": {**paper.left_out, **left_out},
            "omitted": omitted,
        }
    )


def only(paper: Paper, experiments: Sequence[str], overridden: Iterable[str]) -> Paper:
    """Keep some experiments of a paper, and the artefacts and claims that need no others.

    A `partial` artefact keeps its remaining experiments. Those that overrides change must be kept.
    """
    place = f"overrides.{paper.key}"
    problems = [
        f"experiments: '{paper.key}/{name}': {no_experiment(name, paper)}"
        for name in experiments
        if name not in paper.experiments
    ]
    problems += [
        f"{place}.{name}: not among the selected experiments; add it to 'experiments', or remove "
        "this override"
        for name in overridden
        if name not in experiments and name in paper.experiments
    ]
    if problems:
        raise InputError(*problems)
    removed = dict.fromkeys(paper.experiments.keys() - set(experiments), "")
    drawn = {k: spec for k, spec in without(paper, removed).artefacts.items() if spec.experiments}
    claims = {
        name: claim
        for name, claim in paper.claims.items()
        if claim.artefact in drawn
        and set(experiments).issuperset(
            claim.experiments or paper.artefacts[claim.artefact].experiments
        )
    }
    selected = {name: paper.experiments[name] for name in paper.experiments if name in experiments}
    changes = {"experiments": selected, "artefacts": drawn, "claims": claims}
    return paper.model_copy(update={**changes, "left_out": {}, "omitted": {}})


def no_experiment(name: str, paper: Paper) -> str:
    """Explain why `name` is not an experiment of a paper, and suggest a fix."""
    if reason := paper.left_out.get(name):
        return f"{reason}; change the scale, or leave it out"
    drawn = {**paper.artefacts, **paper.omitted}.get(name)
    if drawn:
        names = ", ".join(f"'{experiment}'" for experiment in drawn.experiments)
        plural = "s" if len(drawn.experiments) > 1 else ""
        return f"is a {drawn.kind}; use its experiment{plural} {names}"
    return f"no such experiment; {nearest(name, paper.experiments)}"


def _folders(config: Config, papers: Path) -> dict[str, Path]:
    if config.papers is None:
        folders = sorted(path.parent for path in papers.glob("*/paper.yaml"))
        if not folders:
            raise InputError(NO_PAPERS.format(papers))
    else:
        folders = [Path(name) if "/" in name else papers / name for name in config.papers]
    return {folder.name: folder for folder in folders}


def _selected_experiments(config: Config) -> dict[str, list[str]]:
    """Return the experiments that a configuration chooses, by paper; empty for all."""
    selected: dict[str, list[str]] = {}
    for name in config.experiments or ():
        key, _, experiment = name.partition("/")
        selected.setdefault(key, []).append(experiment)
    return selected
