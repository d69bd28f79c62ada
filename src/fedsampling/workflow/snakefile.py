"""Functions for the Snakefile: check configuration and targets, and print errors as lines."""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from fedsampling.base.errors import InputError, naming
from fedsampling.base.files import check_writable
from fedsampling.base.machine import check_platform
from fedsampling.base.memory import collect_rarely
from fedsampling.base.yaml_reading import parse_yaml, read_yaml
from fedsampling.experiments import config as configuration
from fedsampling.runs.places import RESULTS
from fedsampling.workflow.project import CALL, Project

# A target that is one experiment, such as rizk2022importance/regression; no file of a result.
EXPERIMENT = rf"(?!{RESULTS}/)[a-z0-9]+/[A-Za-z0-9_-]+"


@contextmanager
def printing_errors() -> Iterator[None]:
    """Print an InputError as lines and end the process."""
    try:
        yield
    except InputError as error:
        print(*(f"fedsampling: {line}" for line in error.lines), sep="\n", file=sys.stderr)
        sys.exit(2)


@printing_errors()
def check_file(path: Path) -> None:
    """Refuse a configuration file with duplicate keys, which Snakemake would accept."""
    check_platform()
    if path.exists():
        read_yaml(path)


@printing_errors()
def open_project(config: Mapping[str, Any], settings: Any) -> Project:
    """Open the project that Snakemake's configuration describes.

    `settings` is the part from the command line: ``--configfile`` and ``--config``.
    """
    collect_rarely()
    if "_call" in config:  # a job on a cluster, which reads the configuration of its call
        file, os.environ[CALL] = config["_call"]
        return Project.open(Path(file))
    for file in settings.configfiles:
        read_yaml(Path(file))  # Snakemake accepts duplicate keys
    # Keys that begin with an underscore are Snakemake's.
    keys = {key: config[key] for key in config if not key.startswith("_")}
    sources = ["config.yaml", *settings.configfiles, *(["--config"] if settings.config else [])]
    with naming(", ".join(map(str, sources))):
        project = Project(configuration.parse(_typed(keys, settings.config)))
    # Even a dry run updates an outdated plan of the same configuration, but makes no new file.
    project = replace(project, writes=project.is_written())
    _ = project.plan  # checks every run
    check_writable(RESULTS)
    os.environ[CALL] = project.call  # for jobs on this machine
    call = json.dumps([str(project.config_file), project.call])
    # A cluster's job needs nothing else; SLURM's plugin passes its arguments to a shell.
    settings.config_args, settings.configfiles = [f"_call={call}"], []
    return project


@printing_errors()
def start(project: Project) -> None:
    """Hold the results folder, and write what the jobs read."""
    project.write()


def select_experiments(targets: Iterable[str], config: dict[str, Any]) -> list[str]:
    """Move targets that are experiments into the configuration's `experiments`; return them.

    ``paper/experiment`` is an experiment, unless a file with that name exists.
    """
    experiments = [
        name for name in targets if re.fullmatch(EXPERIMENT, name) and not Path(name).exists()
    ]
    if experiments:
        config["experiments"] = experiments
    return experiments


@printing_errors()
def check_targets(targets: Iterable[str], rules: Iterable[str], project: Project) -> None:
    """Check Snakemake's targets."""
    if not (targets := list(targets)):
        return  # listing the known targets takes a tenth of a second
    valid_targets = [*rules, *(str(project.folder / name) for name in project.plan.targets())]
    problems = []
    if "compare" in targets and not project.plan.users_samplers:
        problems.append("compare: no sampler to compare; add --config schemes='[my_sampler.py]'")
    for name in map(os.path.normpath, targets):
        is_data = Path(name).parent == project.data
        if name in valid_targets or is_data or Path(name).exists():
            continue
        similar = get_close_matches(name, valid_targets, n=3)
        suggestion = f"did you mean {' or '.join(map(repr, similar))}?" if similar else ""
        papers = ", ".join(project.plan.papers)
        fix = f"must be a paper ({papers}) or a file in {RESULTS}/"
        problems.append(f"target: {name!r} is unknown; {suggestion or fix}")
    if problems:
        raise InputError(*problems)


def papers_of(targets: Iterable[str], papers: Iterable[str]) -> list[str]:
    """Return the papers that Snakemake's targets name; all if there are none."""
    words = {word for target in targets for word in re.split(r"[/.]", target)}
    return [key for key in papers if key in words] or [*papers]


def is_stopped_by_user(logs: Iterable[str]) -> bool:
    """Whether the user stopped Snakemake, according to its logs of this call."""
    texts = (Path(log).read_text(encoding="utf-8", errors="replace") for log in logs)
    return any("on user request" in text for text in texts)


def _typed(value: Any, setting: Any) -> Any:
    """Convert numbers, true, false and null from ``--config``, which Snakemake reads as strings."""
    if isinstance(setting, Mapping):
        return {**value, **{key: _typed(value[key], setting[key]) for key in setting}}
    if isinstance(setting, list):
        return [_typed(element, element) for element in setting]
    parsed = setting
    if isinstance(setting, str):
        with suppress(InputError):  # a string such as "a: b: c" is not YAML and stays a string
            parsed = parse_yaml(setting, "--config")
    return parsed if isinstance(parsed, int | float | None) else value
