"""Draw a paper: update its summaries, artefacts, explorer data and verdicts if out of date."""

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedsampling.base.errors import InputError, check_known
from fedsampling.base.files import digest, is_below, remove, sha256, write_record
from fedsampling.base.input_states import CODE
from fedsampling.base.inputs import loaded_code, loaded_libraries, recording
from fedsampling.base.memory import collect_rarely
from fedsampling.evidence.provenance import Summaries, changed
from fedsampling.evidence.summaries import Summary, load_summaries
from fedsampling.experiments.papers import Paper, draw_function, load_paper
from fedsampling.experiments.resolving import load_kinds
from fedsampling.report.drawing import saving, views
from fedsampling.report.drawing.artefacts import Artefact
from fedsampling.report.drawing.curves import undrawn
from fedsampling.report.drawing.look import Look
from fedsampling.report.drawing.style import legends_beginning_with, without_printed
from fedsampling.runs.finished import Finished
from fedsampling.runs.made import DAMAGED
from fedsampling.runs.places import run_stores
from fedsampling.workflow.claim_context import warn_unfit
from fedsampling.workflow.judge import judge
from fedsampling.workflow.project import Project
from fedsampling.workflow.summarise import NotComputedError, selections_file, summarise


def draw(paper: str, project: Project, unfinished: bool = False) -> int:
    """Update the results of a paper that are out of date; return the exit status."""
    collect_rarely()
    spec, folder = project.plan.paper(paper), project.folder
    results = _Results(project, f"papers/{paper}", unfinished)
    load_kinds(spec.folder)  # figures validate settings of the paper's run kinds
    finished = Finished(*run_stores(project.results, project.config))
    loaded: dict[str, Summary] = {}

    def load(names: Iterable[str]) -> dict[str, Summary]:
        loaded.update(load_summaries(paper, set(names) - loaded.keys(), folder))
        return {name: loaded[name] for name in names}

    def join(name: str) -> list[Path]:
        joined = summarise(paper, name, project, finished=finished)
        selected = selections_file(folder, paper, name)
        return [joined, *([selected] if selected.is_file() else [])]

    def draw_one(name: str) -> list[Path]:
        return _render(project, spec, name, load(spec.artefacts[name].experiments))

    def explore(name: str) -> list[Path]:
        target = folder / "explorer" / paper / name
        selected = selections_file(folder, paper, name)
        return views.save(load([name])[name], name, target, project.facts, selected)

    with results.recorded():
        summarised = {
            name
            for name in spec.experiments
            if results.update(f"summaries/{paper}/{name}", join, name)
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


JOINED, DRAWN = "joined", "drawn"  # the parts of a paper whose inputs are recorded


class _Results:
    """The results of a paper, with a record of their inputs, and how they are updated.

    `unfinished`: whether missing runs are expected and no error.
    """

    def __init__(self, project: Project, step: str, unfinished: bool) -> None:
        self.folder, self.digests, self.unfinished = project.folder, project.digests, unfinished
        self.runs = _digests_of_runs(project, step.rpartition("/")[2])
        self.failed, self.is_changed = False, False
        self.made = project.made(step)
        self.entries: dict[str, Any] = self.made.content.setdefault("results", {})
        names = [name for entry in self.entries.values() for name in entry["files"]]
        if any(not is_below(self.folder / name, self.folder) for name in names):
            self.entries.clear()  # somebody else's record: rebuild everything, delete nothing

    def update(self, name: str, build: Callable[..., list[Path]], *arguments: str) -> bool:
        """Build a result unless it is up to date; return whether it exists.

        If this fails, older files of the result are removed, so that nothing uses them.
        """
        if self.is_up_to_date(name) and self._has_files(name):
            return True
        part = _part(name)
        try:
            with recording() as record:
                files = {self._relative(path): sha256(path) for path in build(*arguments)}
        except InputError as error:
            if not (self.unfinished and isinstance(error, NotComputedError)):
                print(*(f"fedsampling: {line}" for line in error.lines), sep="\n", file=sys.stderr)
        except Exception:  # an error in a function of a paper
            print(f"fedsampling: {name} failed", file=sys.stderr)
            traceback.print_exc()
        else:
            code = loaded_code()
            if part == JOINED:  # the paper's own drawing code takes no part
                code = {key: text for key, text in code.items() if key.startswith(f"{CODE} ")}
            self.made.note(part, record, code, loaded_libraries())
            sizes = {path: (self.folder / path).stat().st_size for path in files}
            self.entries[name] = {"of": self._inputs_of(name), "files": files, "sizes": sizes}
            self.is_changed = True
            self.made.save_at_times()
            return True
        for path in self.entries.pop(name, {}).get("files", ()):
            remove(self.folder / path)
        self.is_changed = True
        self.failed = True
        return False

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Write the record at the end, also if the updates are interrupted."""
        damages = self.made.damages  # before they are repaired
        try:
            yield
        finally:
            if self.is_changed:
                self.made.content[DAMAGED] = damages
                self.made.save()

    def is_up_to_date(self, name: str) -> bool:
        """Whether a result was made from the present inputs."""
        return bool(self.entries.get(name, {}).get("of") == self._inputs_of(name))

    def _inputs_of(self, name: str) -> str:
        """Return the digest of everything that a result is made from."""
        kind, _, rest = name.partition("/")
        runs = self.runs.get(rest) if kind in ("summaries", "explorer") else self.runs
        return digest([self.digests[name], self.made.generation(_part(name)), runs])

    def _has_files(self, name: str) -> bool:
        return all(
            (self.folder / path).is_file() and sha256(self.folder / path) == expected
            for path, expected in self.entries[name]["files"].items()
        )

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()


def _digests_of_runs(project: Project, paper: str) -> dict[str, list[str]]:
    """Return the digests of the computed runs, by ``paper/experiment``.

    Runs may have been computed again, because users' code in them read something else.
    """
    by_experiment: dict[str, list[str]] = {}
    for name in project.plan.jobs_to_run(paper):
        if (path := project.manifest(name)).is_file():
            experiment = "/".join(name.split("/")[:2])
            by_experiment.setdefault(experiment, []).append(sha256(path))
    return by_experiment


def _part(name: str) -> str:
    return JOINED if name.startswith(("summaries/", "explorer/")) else DRAWN


def is_outdated(paper: str, project: Project) -> bool:
    """Whether the inputs of a paper's results have changed since they were drawn.

    Snakemake notices this itself, unless its folder ``.snakemake`` was deleted or not copied.
    """
    results = _Results(project, f"papers/{paper}", False)
    artefacts = (f"artefacts/{paper}/{name}" for name in project.plan.paper(paper).artefacts)
    return not all(map(results.is_up_to_date, (f"claims/{paper}", *artefacts)))


def render(
    paper: str, artefact: str, project: Project, look: Look | None = None, out: Path | None = None
) -> Path:
    """Draw an artefact; return the path of a figure's PDF or of a table's LaTeX.

    All files are in ``artefacts/<paper>/<artefact>/``.  With a `look` or `out`, only one file of a
    figure is written: `out`, or ``figures/<paper>-<artefact>.pdf``.
    """
    # All summaries of a paper that is not configured must exist.
    configured = paper in project.plan.papers
    spec = project.plan.paper(paper) if configured else load_paper(paper, project.papers)
    check_known([artefact], spec.artefacts, "artefact: '{}' is unknown")
    loaded = load_summaries(paper, spec.artefacts[artefact].experiments, project.folder)
    if look is not None or out is not None:
        path = out or project.folder / "figures" / f"{paper}-{artefact}.pdf"
        return _render_once(project, spec, artefact, loaded, look or Look(), path)
    _render(project, spec, artefact, loaded, pdf=True)
    folder = _folder(project, paper, artefact)
    pdf = folder / f"{artefact}.pdf"
    return pdf if pdf.is_file() else folder / f"{artefact}.tex"


def _render_once(
    project: Project, spec: Paper, artefact: str, loaded: Summaries, look: Look, path: Path
) -> Path:
    """Draw a figure with another look; an error of the paper's function is not caught."""
    used = {name: run.only(spec.artefacts[artefact].cases) for name, run in loaded.items()}
    printed = without_printed() if changed(used) else nullcontext()
    with printed, legends_beginning_with([*look.labels]):
        drawn = draw_function(spec, artefact)(used, spec)
    return saving.save_for_a_paper(drawn, path, look, used, project.facts)


def _render(
    project: Project, spec: Paper, artefact: str, loaded: Summaries, pdf: bool = False
) -> list[Path]:
    folder = _folder(project, spec.key, artefact)
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
        warn_unfit(spec, artefact, "not drawn, because its layout does not fit", error)
        return save(undrawn(used, described.kind == "figure", changed(used)))


def _folder(project: Project, paper: str, artefact: str) -> Path:
    return project.folder / "artefacts" / paper / artefact


def judge_claims(spec: Paper, project: Project, loaded: Summaries, to: str = "claims") -> Path:
    """Write the verdicts on a paper's claims, from its remaining experiments, to a folder."""
    claims = [asdict(claim) for claim in judge(spec, project, loaded)]
    out = project.folder / to / f"{spec.key}.json"
    write_record(out, {"paper": spec.key, "claims": claims})
    return out
