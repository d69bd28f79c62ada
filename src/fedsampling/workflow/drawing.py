"""Draw a paper: update its summaries, artefacts, explorer data and verdicts if out of date."""

import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedsampling.base.errors import DamagedError, InputError, check_known
from fedsampling.base.files import read_record, sha256, write_record
from fedsampling.evidence.provenance import (
    Summaries,
    changed,
)
from fedsampling.evidence.summaries import Summary, load_summaries
from fedsampling.experiments.papers import (
    Paper,
    draw_function,
    load_paper,
)
from fedsampling.experiments.resolving import load_kinds
from fedsampling.report.drawing import saving, views
from fedsampling.report.drawing.artefacts import Artefact
from fedsampling.report.drawing.curves import undrawn
from fedsampling.report.drawing.style import without_printed
from fedsampling.runs.finished import Finished
from fedsampling.runs.places import run_stores
from fedsampling.workflow import judging
from fedsampling.workflow.project import Project
from fedsampling.workflow.summarising import NotComputedError, summarise


def draw(paper: str, project: Project, unfinished: bool = False) -> int:
    """Update the results of a paper that are out of date; return the exit status."""
    spec, folder = project.plan.paper(paper), project.folder
    results = _Results(folder / "made" / f"{paper}.json", project.digests, unfinished)
    load_kinds(spec.folder)  # figures validate settings of the paper's run kinds
    finished = Finished(*run_stores(project.results, project.config))
    loaded: dict[str, Summary] = {}

    def load(names: Iterable[str]) -> dict[str, Summary]:
        loaded.update(load_summaries(paper, set(names) - loaded.keys(), folder))
        return {name: loaded[name] for name in names}

    def join(name: str) -> list[Path]:
        return [summarise(paper, name, project, finished=finished)]

    def draw_one(name: str) -> list[Path]:
        return _render(project, spec, name, load(spec.artefacts[name].experiments))

    def explore(name: str) -> list[Path]:
        target = folder / "explorer" / paper / name
        return views.save(load([name])[name], name, target, project.facts)

    summarised = {
        name for name in spec.experiments if results.update(f"summaries/{paper}/{name}", join, name)
    }
    for name, artefact in spec.artefacts.items():
        if summarised.issuperset(artefact.experiments):
            results.update(f"artefacts/{paper}/{name}", draw_one, name)
    for name in sorted(summarised):
        results.update(f"explorer/{paper}/{name}", explore, name)
    if not unfinished and summarised.issuperset(spec.experiments):
        results.update(
            f"claims/{paper}", lambda: [judge_claims(spec, project, load(spec.experiments))]
        )
    return int(results.failed)


class _Results:
    """The results of a paper: recorded in `path` with `digests` of their inputs, and updated.

    `unfinished`: whether missing runs are expected and no error.
    """

    def __init__(self, path: Path, digests: Mapping[str, str], unfinished: bool) -> None:
        self.path, self.digests, self.unfinished = path, digests, unfinished
        self.failed = False
        self.record: dict[str, Any] = {}
        if path.is_file():
            with suppress(DamagedError):  # without a record, everything is rebuilt
                self.record = read_record(path)

    def update(self, name: str, build: Callable[..., list[Path]], *arguments: str) -> bool:
        """Build a result unless it is up to date; return whether it exists.

        If this fails, older files of the result are removed, so that nothing uses them.
        """
        if self._is_up_to_date(name):
            return True
        try:
            files = {str(path): sha256(path) for path in build(*arguments)}
        except InputError as error:
            if not (self.unfinished and isinstance(error, NotComputedError)):
                print(*(f"fedsampling: {line}" for line in error.lines), sep="\n", file=sys.stderr)
        except Exception:  # an error in a function of a paper
            print(f"fedsampling: {name} failed", file=sys.stderr)
            traceback.print_exc()
        else:
            self.record[name] = {"of": self.digests[name], "files": files}
            write_record(self.path, self.record)
            return True
        for path in self.record.get(name, {}).get("files", ()):
            Path(path).unlink(missing_ok=True)
        self.failed = True
        return False

    def _is_up_to_date(self, name: str) -> bool:
        entry = self.record.get(name, {})
        return bool(entry.get("of") == self.digests[name]) and all(
            Path(path).is_file() and sha256(Path(path)) == digest
            for path, digest in entry["files"].items()
        )


def is_outdated(paper: str, project: Project) -> bool:
    """Whether a paper's results were drawn from other runs, settings or code than the plan's.

    Snakemake notices this itself, unless its folder ``.snakemake`` was deleted or not copied.
    """
    results = _Results(project.folder / "made" / f"{paper}.json", project.digests, False)
    artefacts = (f"artefacts/{paper}/{name}" for name in project.plan.paper(paper).artefacts)
    names = [f"claims/{paper}", *artefacts]
    return any(results.record.get(name, {}).get("of") != results.digests[name] for name in names)


def render(paper: str, artefact: str, project: Project) -> Path:
    """Draw an artefact; return the path of a figure's PDF or of a table's LaTeX.

    All files are in ``artefacts/<paper>/<artefact>/``.
    """
    # All summaries of a paper that is not configured must exist.
    configured = paper in project.plan.papers
    spec = project.plan.paper(paper) if configured else load_paper(paper, project.papers)
    check_known([artefact], spec.artefacts, "artefact: '{}' is unknown")
    loaded = load_summaries(paper, spec.artefacts[artefact].experiments, project.folder)
    *_, record = _render(project, spec, artefact, loaded, pdf=True)
    pdf = record.with_name(f"{artefact}.pdf")
    return pdf if pdf.is_file() else record.with_name(f"{artefact}.tex")


def _render(
    project: Project, spec: Paper, artefact: str, loaded: Summaries, pdf: bool = False
) -> list[Path]:
    folder = project.folder / "artefacts" / spec.key / artefact
    described = spec.artefacts[artefact]
    used = {name: summary.only(described.cases) for name, summary in loaded.items()}

    def save(drawn: Artefact) -> list[Path]:
        return saving.save(drawn, spec, artefact, folder, used, project.facts, pdf)

    try:
        with without_printed() if changed(used) else nullcontext():
            return save(draw_function(spec, artefact)(used, spec))
    except Exception as error:  # a paper's function may rely on the paper's settings
        if not (used and project.config.changes(spec.key)):
            raise
        judging.warn_unfit(spec, artefact, "not drawn, because its layout does not fit", error)
        return save(undrawn(used, described.kind == "figure", changed(used)))


def judge_claims(spec: Paper, project: Project, loaded: Summaries, to: str = "claims") -> Path:
    """Write the verdicts on a paper's claims, from its remaining experiments, to a folder."""
    claims = [asdict(claim) for claim in judging.judge(spec, project, loaded)]
    out = project.folder / to / f"{spec.key}.json"
    write_record(out, {"paper": spec.key, "claims": claims})
    return out
