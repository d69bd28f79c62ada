"""Digests of the inputs of a step that are known before it runs.

These are values, such as a resolved paper and the hashes of its runs, and files.  All others are
recorded when the step runs, above all code.

Each digest is part of a parameter of its rule: Snakemake reruns the step when it changes.  It
covers all upstream steps, because Snakemake does not look for missing files behind an output that
seems up to date.
"""

import platform
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from fedsampling.base import input_states
from fedsampling.base.code import code_digest
from fedsampling.base.files import digest, sha256
from fedsampling.base.machine import processor
from fedsampling.base.yaml_reading import parse_yaml
from fedsampling.experiments.cross_matrix import CROSS_MATRIX
from fedsampling.experiments.fingerprints import own_code
from fedsampling.experiments.papers import Paper
from fedsampling.runs.places import RESULTS, published_files, stored_files
from fedsampling.samplers.users.files import load_file
from fedsampling.workflow.plan import Plan

TEXTS = (".md", ".bib")  # of the report; a drawing that reads such a file records it


def digests(plan: Plan, results: Path = RESULTS) -> dict[str, str]:
    """Return the digests of all results other than runs, by folder and name.

    ``papers/<paper>`` covers all artefacts, claims and explorer data of a paper.
    """
    by_result = _summaries(plan, results)
    for key, paper in plan.papers.items():
        summaries = {name: by_result[f"summaries/{key}/{name}"] for name in paper.experiments}
        # Drawing is cheap: it depends on the whole paper, with its folder, claims and choices.
        whole = [_content(paper), _files(paper), _facts(plan), plan.config.changes(key)]
        drawn = {
            f"artefacts/{key}/{name}": digest([whole, [summaries[n] for n in spec.experiments]])
            for name, spec in paper.artefacts.items()
        }
        judged = {f"claims/{key}": digest([whole, summaries])}
        explored = {
            f"explorer/{key}/{name}": digest([summary, _facts(plan)])
            for name, summary in summaries.items()
        }
        outputs = [drawn, judged, explored]
        by_result |= drawn | judged | explored | {f"papers/{key}": digest(outputs)}
    by_result |= {f"cards/{dataset}": _card(plan, dataset) for dataset in plan.cards}
    matrix = by_result.get(f"papers/{CROSS_MATRIX}", "")
    compared = {}
    for name, file in plan.users_samplers.items():
        code = [own_code(member.code) for member in load_file(Path(file))]
        compared[f"compare/{name}"] = digest([code, plan.config.scale, matrix])
    checked = {"recheck": _recheck(plan, by_result)}
    return by_result | compared | checked | {"report": _report(plan, by_result)}


def _summaries(plan: Plan, results: Path) -> dict[str, str]:
    content = cache(sha256)
    by_result = {}
    for key, experiment in plan.experiments.items():
        paper, _, name = key.partition("/")
        jobs = plan.jobs_of(key)
        # A published run may be replaced by another one with the same hash, and so may a stored
        # run that no job of this call computes.
        finished = [job for job in jobs if job.name not in plan.due]
        files = published_files(jobs, plan.config) + stored_files(finished, results, plan.config)
        parts = [content(file) for file in files if file.is_file()]
        written = plan.papers[paper].experiments[name], plan.papers[paper].scales.get(name)
        changes = plan.config.overrides.get(paper, {}).get(name)
        made_from = plan.made_from(*(job.name for job in jobs))
        by_result[f"summaries/{key}"] = digest(
            [experiment, written, changes, made_from, parts, _facts(plan)]
        )
    return by_result


def _content(paper: Paper) -> dict[str, Any]:
    """Return a resolved paper without its place."""
    return paper.model_dump(mode="json", exclude={"folder"})


def _files(paper: Paper) -> dict[str, str]:
    """Return the states of a paper's files: the content of YAML, the code of Python, bytes."""
    states = {}
    for key in input_states.files_below(paper.folder):
        kind, _, name = key.partition(" ")
        path = Path(name)
        if kind == input_states.FILE and path.suffix not in TEXTS:
            relative = path.absolute().relative_to(paper.folder.absolute()).as_posix()
            states[relative] = _state(path)
    return states


def _state(path: Path) -> str:
    if path.suffix == ".yaml":
        # In the order of the file, in which pages show claims and artefacts.
        return digest(repr(parse_yaml(path.read_text(encoding="utf-8"), str(path))))
    return code_digest(path) if path.suffix == ".py" else sha256(path)


def _card(plan: Plan, dataset: str) -> str:
    if published := plan.published_card(dataset):
        return sha256(published)
    return digest([*map(asdict, plan.cards[dataset])])


def _recheck(plan: Plan, by_result: Mapping[str, str]) -> str:
    """Digest the runs that a recheck compares, and the machine on which it does."""
    codes = sorted({job.code for job in plan.jobs.values()})
    runs = [text for name, text in by_result.items() if name.startswith("summaries/")]
    return digest([codes, runs, platform.machine(), processor()])


def _report(plan: Plan, by_result: dict[str, str]) -> str:
    papers = [_content(paper) for paper in plan.papers.values()]
    return digest([papers, plan.config.public(), by_result])


def _facts(plan: Plan) -> list[str]:
    return [plan.config.scale, plan.config.data]
