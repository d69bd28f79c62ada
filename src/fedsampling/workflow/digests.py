"""Digests of all inputs of a step, including code.

Each digest is a parameter of its rule: Snakemake reruns the step when the digest changes.  It
covers all upstream steps, because Snakemake does not look for missing files behind an output that
seems up to date.
"""

from collections.abc import Iterable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from fedsampling.base.files import digest, sha256
from fedsampling.experiments.cross_matrix import PAPER as MATRIX
from fedsampling.experiments.fingerprints import fingerprint, own_code
from fedsampling.experiments.paper_code import defining_modules
from fedsampling.experiments.papers import Paper
from fedsampling.runs.places import published_files
from fedsampling.samplers.interface.in_settings import load_file
from fedsampling.workflow.plan import Plan

TEMPLATES = Path(__file__).parents[1] / "report" / "templates"
VENDOR = TEMPLATES.with_name("vendor")  # the chart library of the run explorer
TEXTS = ("paper.bib", "reported.csv", "answers.md", "findings.md")  # a paper's files in the report


def digests(plan: Plan) -> dict[str, str]:
    """Return the digests of all results other than runs.

    Returns by ``summaries/<paper>/<experiment>``, ``artefacts/<paper>/<artefact>``,
    ``claims/<paper>``, ``explorer/<paper>/<experiment>``, ``papers/<paper>`` (all of these of a
    paper), ``cards/<dataset>``, ``compare/<sampler>`` and ``report``.
    """
    by_result = _summaries(plan)
    for key, paper in plan.papers.items():
        drawn = {
            f"artefacts/{key}/{name}": _artefact(plan, paper, name, by_result)
            for name in paper.artefacts
        }
        judged = {f"claims/{key}": _claims(plan, paper, by_result)}
        explored = {
            f"explorer/{key}/{name}": _views(plan, by_result[f"summaries/{key}/{name}"])
            for name in paper.experiments
        }
        outputs = [drawn, judged, explored]
        by_result |= drawn | judged | explored | {f"papers/{key}": digest(outputs)}
    by_result |= {f"cards/{dataset}": _card(plan, dataset) for dataset in plan.cards}
    compared = {
        f"compare/{name}": _comparison(plan, Path(file), by_result)
        for name, file in plan.users_samplers.items()
    }
    return by_result | compared | {"report": _report(plan, by_result)}


def _summaries(plan: Plan) -> dict[str, str]:
    code = fingerprint("fedsampling.evidence.summaries")
    content = cache(sha256)
    results = {}
    for key, experiment in plan.experiments.items():
        names = plan.jobs_of(*key.split("/"))
        # A published run may be replaced by another one with the same hash.
        files = published_files((plan.jobs[name] for name in names), plan.config)
        published = [content(file) for file in files if file.is_file()]
        parts = [experiment, plan.made_from(*names), published, code, _facts(plan)]
        results[f"summaries/{key}"] = digest(parts)
    return results


def _artefact(plan: Plan, paper: Paper, name: str, by_result: dict[str, str]) -> str:
    spec = paper.artefacts[name]
    summaries = [by_result[f"summaries/{paper.key}/{key}"] for key in spec.experiments]
    code = fingerprint(*defining_modules(paper.folder, "figures", name), papers=paper.folder.parent)
    inputs = [spec.model_dump(mode="json"), _reported(paper), summaries, _facts(plan), code]
    return digest(inputs + _compared_with(plan, paper.key, spec.experiments))


def _views(plan: Plan, summary: str) -> str:
    return digest([summary, _facts(plan), fingerprint("fedsampling.report.drawing.views")])


def _claims(plan: Plan, paper: Paper, by_result: dict[str, str]) -> str:
    claims = {key: claim.model_dump(mode="json") for key, claim in paper.claims.items()}
    summaries = [by_result[f"summaries/{paper.key}/{name}"] for name in paper.experiments]
    modules = [
        *defining_modules(paper.folder, "claims", *paper.claims),
        "fedsampling.evidence.grading",
    ]
    code = fingerprint(*modules, papers=paper.folder.parent)
    return digest([claims, paper.left_out, _reported(paper), summaries, _facts(plan), code])


def _card(plan: Plan, dataset: str) -> str:
    if shipped := plan.published_card(dataset):
        return sha256(shipped)
    uses = plan.cards[dataset]
    loaders = {module for use in uses for module in use.code}
    code = fingerprint("fedsampling.report.data_cards", *sorted(loaders))
    return digest([code, *map(asdict, uses)])


def _comparison(plan: Plan, file: Path, by_result: dict[str, str]) -> str:
    code = [own_code(member.code) for member in load_file(file)]
    return digest([code, plan.config.scale, by_result.get(f"papers/{MATRIX}", "")])


def _report(plan: Plan, by_result: dict[str, str]) -> str:
    code = fingerprint("fedsampling.report.site", "fedsampling.report.crate")
    files = [*sorted(TEMPLATES.iterdir()), *sorted(VENDOR.iterdir())]
    files += [paper.folder / name for paper in plan.papers.values() for name in TEXTS]
    texts = [path.read_text(encoding="utf-8") for path in files if path.is_file()]
    papers = {
        key: [paper.model_dump(mode="json"), paper.left_out] for key, paper in plan.papers.items()
    }
    return digest([code, texts, papers, plan.config.public(), by_result])


def _compared_with(plan: Plan, paper: str, experiments: Iterable[str]) -> list[str]:
    """Return digests of an artefact's summaries in the run to compare with, if there is one."""
    if plan.other_run is None:
        return []
    files = [plan.other_run / "summaries" / paper / f"{name}.parquet" for name in experiments]
    return [plan.other_run.name, *(sha256(path) for path in files if path.is_file())]


def _facts(plan: Plan) -> list[str]:
    return [plan.config.scale, plan.config.data]


def _reported(paper: Paper) -> list[dict[str, Any]]:
    return [row.model_dump(mode="json") for row in paper.reports]
