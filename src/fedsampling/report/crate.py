"""The report for programs: an RO-Crate with the provenance of every file.

The Workflow Run RO-Crate is the last step of the report: it describes the folder that
:mod:`fedsampling.report.site` wrote.  The folder can be zipped and deposited.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rocrate.model import ContextEntity
from rocrate.rocrate import ROCrate

from fedsampling.base import files
from fedsampling.base.errors import InputError
from fedsampling.report.citation import Software
from fedsampling.report.content import Chapter, period, provenances

METADATA = "ro-crate-metadata.json"
_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
_FORMATS = {
    ".bib": "application/x-bibtex",
    ".cff": "application/yaml",
    ".css": "text/css",
    ".csv": "text/csv",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".tex": "application/x-tex",
    ".webp": "image/webp",
    ".yaml": "application/yaml",
}


def write(
    root: Path,
    *,
    chapters: Sequence[Chapter],
    software: Software,
    workflow: str,
    objects: Mapping[str, str],
    results: Iterable[str],
) -> None:
    """Describe every file below `root`, the finished report, in ``root/ro-crate-metadata.json``.

    `objects` are input files of the runs, with the names under which the runs read them; `results`
    are their output files. References: Leo et al., *Recording provenance of workflow runs with
    RO-Crate*, PLoS ONE 19(9), 2024; profiles Process Run Crate 0.5 and Workflow Run Crate 0.5.
    """
    run = period(chapters)
    if run is None:
        raise InputError(
            "artefacts: none is drawn from runs with recorded times; "
            "run 'fedsampling draw <paper>' for a paper with finished runs"
        )
    crate = ROCrate(version="1.1")
    crate.metadata.extra_contexts.append("https://w3id.org/ro/terms/workflow-run/context")
    for name in _names(root):
        described = _described(root / name, objects.get(name))
        if name == workflow:
            # With `main`, the package also names the Workflow RO-Crate profile in the metadata.
            crate.add_workflow(root / name, name, properties=described, main=True, lang="snakemake")
        else:
            crate.add_file(root / name, name, properties=described)
    crate.get("README.md")["about"] = crate.root_dataset
    _describe_root(crate, chapters, software, run)
    _describe_workflow(crate.mainEntity, chapters, software)
    _describe_run(crate, chapters, software, objects, results, run)
    files.write_json(root / METADATA, crate.metadata.generate())


def _names(root: Path) -> list[str]:
    """List the files of the crate, without hidden files, which only the build needs."""
    names = (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())
    return sorted(name for name in names if name != METADATA and not name.startswith("."))


def _described(path: Path, original: str | None) -> dict[str, str]:
    described = {
        "name": path.name,
        "contentSize": str(path.stat().st_size),
        "encodingFormat": _FORMATS.get(path.suffix, "text/plain"),
        "sha256": files.sha256(path),
    }
    # The profile requires the name under which the run read a file that has since moved.
    return described | ({"alternateName": original} if original else {})


def _describe_root(
    crate: ROCrate, chapters: Sequence[Chapter], software: Software, run: tuple[str, str]
) -> None:
    root = crate.root_dataset
    root["conformsTo"] = [
        _add(crate, profile, "CreativeWork", name=name, version=profile.rsplit("/", 1)[1])
        for profile, name in _PROFILES.items()
    ]
    root["name"] = f"Report of {software.title}"
    root["description"] = software.abstract
    # The package sets today's date; the report's date is the date of its last run.
    root["datePublished"] = run[1]
    authors = [
        _add(crate, f"#author-{number}", "Organization", name=name)
        for number, name in enumerate(software.authors, start=1)
    ]
    root["author"] = root["publisher"] = authors if len(authors) > 1 else authors[0]
    root["license"] = _add(
        crate,
        f"https://spdx.org/licenses/{software.licence}",
        "CreativeWork",
        name=software.licence,
        description=f"{software.licence} licence",
    )
    root["citation"] = [
        _add(
            crate,
            paper.url or f"#{paper.key}",
            "ScholarlyArticle",
            name=paper.title,
            creditText=f"{paper.authors} ({paper.year}). {paper.title}. {paper.venue}.",
            datePublished=str(paper.year),
        )
        for paper in (chapter.paper for chapter in chapters)
    ]


def _describe_workflow(workflow: Any, chapters: Sequence[Chapter], software: Software) -> None:
    crate = workflow.crate
    versions = {origin.versions.get("snakemake", "") for origin in provenances(chapters)} - {""}
    if versions:
        workflow["programmingLanguage"]["version"] = ", ".join(sorted(versions))
    workflow["name"] = software.title
    workflow["description"] = software.abstract
    workflow["version"] = software.version
    workflow["license"] = crate.root_dataset["license"]
    workflow["author"] = workflow["creator"] = crate.root_dataset["author"]


def _describe_run(
    crate: ROCrate,
    chapters: Sequence[Chapter],
    software: Software,
    objects: Iterable[str],
    results: Iterable[str],
    run: tuple[str, str],
) -> None:
    origins = list(provenances(chapters))
    artefacts = sum(len(chapter.exhibits) for chapter in chapters)
    consumed = [crate.get(name) for name in sorted(objects)]
    for name, digest in sorted({pair for origin in origins for pair in origin.inputs.items()}):
        properties = {"name": name, "sha256": digest, "description": "Input data, by its hash"}
        consumed.append(_add(crate, f"#input-{digest}", "CreativeWork", **properties))
    crate.root_dataset["mentions"] = _add(
        crate,
        "#run",
        "CreateAction",
        name=f"{artefacts} artefacts of {len(chapters)} papers, recomputed",
        description="snakemake --cores all, with the settings of workflow/config.yaml",
        startTime=run[0].replace("Z", "+00:00"),
        endTime=run[1].replace("Z", "+00:00"),
        actionStatus="http://schema.org/CompletedActionStatus",
        instrument=crate.mainEntity,
        # The person who started the run is not recorded; the agent is the software.
        agent=_add(
            crate,
            "#fedsampling",
            "SoftwareApplication",
            name="fedsampling",
            softwareVersion=software.version,
        ),
        object=consumed,
        result=[crate.get(name) for name in sorted(results)],
    )


def _add(crate: ROCrate, identity: str, kind: str, **properties: Any) -> ContextEntity:
    entity = crate.add(ContextEntity(crate, identity, properties={"@type": kind}))
    for name, value in properties.items():
        entity[name] = value
    return entity
