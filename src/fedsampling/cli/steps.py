"""The single steps of the pipeline, each a command for a rule of the workflow."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click import argument, option

from fedsampling import workflow
from fedsampling.base.errors import InputError
from fedsampling.cli.group import PATH, Output, command

if TYPE_CHECKING:
    from fedsampling.workflow.project import Project

SIZE = re.compile(r"(\d+(?:\.\d+)?)x(\d+(?:\.\d+)?)")


@command(writes=True)
@argument("job", nargs=-1, required=True)
def run(project: "Project", job: tuple[str, ...]) -> Output:
    """Run one or more JOBs, such as rizk2022importance/regression/base/fedavg/block-0."""
    return workflow.run.run_jobs(job, project)


@command("tune")
@argument("names", nargs=-1, required=True)
@option("--trials-only", is_flag=True, help="Do not run the chosen cases.")
def tune_experiments(project: "Project", names: tuple[str, ...], trials_only: bool) -> Output:
    """Tune experiments NAMES (PAPER/EXPERIMENT), record the best cases, and run these.

    Runs PAPER/tuning_EXPERIMENT on a holdout, writes the best case of each sampler to the paper's
    chosen.csv, and runs EXPERIMENT at these cases. Needs scale=paper or reduced.
    """
    return workflow.tune.tune(names, project, click.echo, runs_chosen=not trials_only)


@command(writes=True)
@argument("paper")
@argument("artefact")
@option("--size", metavar="WxH", help="Width and height of a figure in inches, such as 3.3x2.2.")
@option("--font", type=float, metavar="POINTS", help="Size of a figure's text.")
@option("--labels", type=PATH, help="YAML file: 'label in the figure: your label', in your order.")
@option("--out", type=PATH, help="Only this file of a figure: .pdf, .svg or .png.")
def render(
    project: "Project",
    paper: str,
    artefact: str,
    size: str | None,
    font: float | None,
    labels: Path | None,
    out: Path | None,
) -> Output:
    """Draw a PAPER's ARTEFACT from its summaries; print the path of a figure's PDF.

    With options, the report's files stay, and RESULTS/figures gets the PDF.
    """
    from fedsampling.report.drawing.look import Look, read_labels

    look = None
    if size or font is not None or labels:
        sides = SIZE.fullmatch(size) if size else None
        if size and not sides:
            raise InputError(f"--size {size}: invalid; must be inches, such as 3.3x2.2")
        inches = (float(sides[1]), float(sides[2])) if sides else None
        look = Look(inches, font, read_labels(labels) if labels else {})
    return workflow.draw.render(paper, artefact, project, look, out)


@command(writes=True)
@argument("paper")
def draw(project: "Project", paper: str) -> Output:
    """Update the summaries, artefacts and verdicts of a PAPER that are out of date."""
    return workflow.draw.draw(paper, project)


@command(writes=True, only_reads=True)
@argument("selection", metavar="[PAPER]...", nargs=-1)
@option("--unfinished", is_flag=True, help="Report the finished part, in RESULTS/unfinished.")
def report(project: "Project", selection: tuple[str, ...], unfinished: bool) -> Output:
    """Write the report from the artefacts and claims of the configured papers.

    With --unfinished, only of each PAPER, if any is named.
    """
    if selection and not unfinished:
        raise InputError(f"{selection[0]}: no effect without --unfinished; remove it")
    if not unfinished:
        return workflow.report.build_report(project)
    return workflow.report.build_unfinished(project, selection or [*project.plan.papers])
