"""The command line: one thin command for each rule of the workflow, and some for inspection.

Every command reads ``config.yaml`` (or ``--config FILE``) and writes to ``results`` (or
``--results FOLDER``), so that each step of the pipeline also runs by hand.  Heavy imports stay
inside the commands: ``--help`` and the workflow's calls must start quickly.
"""

import os
import sys
import warnings
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from fedsampling import __version__
from fedsampling.base.errors import WARNING, InputError
from fedsampling.base.memory import check_address_space

if TYPE_CHECKING:
    from fedsampling.workflow.project import Project


# Small products are slower on several threads than on one, most of all while other jobs run.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Command(click.Command):
    """A command whose summary is never truncated in the list of commands."""

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the whole summary; click wraps it."""
        return super().get_short_help_str(1000)


class CommandGroup(click.Group):
    """A group that prints the lines of an InputError without traceback and exits with status 2."""

    command_class = Command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; exit with 130 when interrupted, and silently when a pipe closes."""
        try:
            check_address_space()
            return super().invoke(ctx)
        except InputError as error:
            for line in error.lines:
                click.echo(f"fedsampling: {line}", err=True)
            ctx.exit(2)
        except (KeyboardInterrupt, click.Abort):
            click.echo("fedsampling: interrupted; run the same command to resume", err=True)
            ctx.exit(130)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)


SECTIONS = {
    "Prepare": ("init", "check", "plan", "doctor"),
    "See results": ("status", "verdicts", "rank", "list", "recheck"),
    "Your samplers, data and papers": ("check-sampler", "compare", "data", "new"),
    "Single steps of the pipeline": (
        *("run", "tune", "summarise", "render", "judge", "draw", "report"),
    ),
    "Maintain the project": ("publish", "findings", "schemes", "schema"),
}


class Main(CommandGroup):
    """The group of all commands, listed by purpose."""

    group_class = CommandGroup

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a list of commands for each section."""
        for title, names in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name, self.commands[name].get_short_help_str()) for name in names]
                )


@click.group(cls=Main, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="fedsampling")
def main() -> None:
    """Reproduce five papers on client sampling in federated learning.

    `snakemake --cores N` runs the whole pipeline. `fedsampling COMMAND --help` describes a command.
    """
    for variable in THREADS:  # must be set before NumPy and PyTorch are imported
        os.environ.setdefault(variable, "1")
    warnings.formatwarning = lambda message, *_, **__: f"{WARNING}{message}\n"


def path_option(
    name: str, default: str, text: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return an option with a file or folder."""
    kind = click.Path(path_type=Path)
    return click.option(name, type=kind, default=Path(default), show_default=True, help=text)


def in_project(
    command: Callable[..., None], latest: bool = False, writes: bool = False
) -> Callable[..., None]:
    """Add the options ``--config``, ``--results`` and ``--papers``, and pass the project first.

    With `latest` and without ``--config``, use the configuration of the last Snakemake call.
    Commands with `writes` are refused while a call with another configuration is running.
    """

    @path_option("--config", "config.yaml", "Configuration file, YAML or JSON.")
    @path_option("--results", "results", "Folder for all results.")
    @path_option("--papers", "papers", "Folder that holds one folder per paper.")
    @wraps(command)
    def with_project(config: Path, results: Path, papers: Path, **options: Any) -> None:
        from fedsampling.workflow.project import CONFIG, Project

        source = click.get_current_context().get_parameter_source("config")
        if latest and source == ParameterSource.DEFAULT and (results / CONFIG).is_file():
            config = results / CONFIG
        if source == ParameterSource.DEFAULT and not config.is_file():
            raise InputError(
                f"{config}: not in this folder; go to a project's folder, create one with "
                "'fedsampling init FOLDER', or use --config"
            )
        try:
            project = Project.open(config, results, papers)
            if writes:
                project.check_free()
            command(project, **options)
        except InputError as error:
            from fedsampling.experiments.config import with_origins

            raise InputError(*with_origins(error.lines, config)) from None

    return with_project


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Create a working FOLDER with papers, workflow, configuration and published runs."""
    from fedsampling.workflow.publishing import create_working_folder

    create_working_folder(folder)
    click.echo(f"{folder}: ready; next: cd {folder} && snakemake --cores all")


@main.command()
@click.argument("kind", type=click.Choice(["paper"]), metavar="paper")
@click.argument("folder", metavar="NAME", type=click.Path(path_type=Path))
@in_project
def new(project: "Project", kind: str, folder: Path) -> None:
    """Create a paper to reproduce: a folder with an experiment, a figure and a claim that run.

    NAME is the folder's name in papers/, or the path of a folder elsewhere.
    """
    from fedsampling.workflow.publishing import create_paper

    created = create_paper(folder, project.papers)
    trial = f"papers=[{created}] scale=quick data=embedded"
    click.echo(f"{created}: ready; next: snakemake --cores all --config {trial}")


@main.command()
@in_project
def check(project: "Project") -> None:
    """Check the configuration and all papers' files; report every error."""
    from fedsampling.workflow.checking import check_all

    for line in check_all(project):
        click.echo(line)


@main.command()
@click.option("--no-calibration", is_flag=True, help="Do not measure this machine; show no times.")
@in_project
def plan(project: "Project", no_calibration: bool) -> None:
    """Estimate the work: jobs, runs, CPU time, downloads and disk space.

    Jobs on a cluster then request the estimated time and memory.
    """
    from fedsampling.workflow import checking

    click.echo(checking.cost_table(checking.estimate(project, measures=not no_calibration)))


@main.command()
@in_project
def doctor(project: "Project") -> None:
    """Check that this machine and its GPU compute correctly."""
    from fedsampling.workflow.doctor import examine

    click.get_current_context().exit(0 if examine(project.config, click.echo) else 1)


@main.group(cls=CommandGroup)
def data() -> None:
    """List, fetch, verify and describe datasets."""


@data.command("list")
@in_project
def list_datasets(project: "Project") -> None:
    """List all datasets with official files, and whether these are available locally."""
    from fedsampling.report.data_cards import listing, overview

    click.echo(listing(overview(project.data, project.config.mirror)))


@data.command("fetch")
@click.argument("names", nargs=-1, required=True)
@in_project
def fetch_datasets(project: "Project", names: tuple[str, ...]) -> None:
    """Download and verify the official files of datasets NAMES, and record their hashes."""
    from fedsampling.base.progress import reporter
    from fedsampling.workflow.data_files import fetch_each

    with reporter() as progress:
        for path in fetch_each(names, project.data, project.config.mirror, progress):
            click.echo(path)


@data.command("verify")
@click.argument("names", nargs=-1)
@in_project
def verify_datasets(project: "Project", names: tuple[str, ...]) -> None:
    """Verify the local files of datasets NAMES (default: all); download nothing."""
    from fedsampling.workflow.data_files import verify_each

    for line in verify_each(names, project.data, project.config.mirror):
        click.echo(line)


@data.command("card")
@click.argument("names", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Write it to RESULTS/cards for the report.")
@click.option(
    "--ship", is_flag=True, help="Write it to published_runs, for users without the data."
)
@in_project
def show_cards(project: "Project", names: tuple[str, ...], as_json: bool, ship: bool) -> None:
    """Describe datasets NAMES: source, licence, sample counts, clients."""
    from fedsampling.workflow.data_files import describe_each

    for line in describe_each(names, project, as_json, ship):
        click.echo(line)


@main.command()
@click.argument("job", nargs=-1, required=True)
@partial(in_project, writes=True)
def run(project: "Project", job: tuple[str, ...]) -> None:
    """Run one or more JOBs, such as rizk2022importance/regression/base/fedavg/block-0."""
    from fedsampling.workflow.running import run_jobs

    click.get_current_context().exit(run_jobs(job, project))


@main.command()
@click.argument("paper")
@click.argument("experiment")
@partial(in_project, writes=True)
def summarise(project: "Project", paper: str, experiment: str) -> None:
    """Summarise the runs of a PAPER's EXPERIMENT in one table."""
    from fedsampling.workflow import drawing

    click.echo(drawing.summarise(paper, experiment, project))


@main.command()
@click.argument("names", nargs=-1)
@in_project
def publish(project: "Project", names: tuple[str, ...]) -> None:
    """Add finished runs of NAMES (PAPER or PAPER/EXPERIMENT; default: all) to published_runs."""
    from fedsampling.workflow.publishing import publish_runs

    for line in publish_runs(names, project):
        click.echo(line)


@main.command()
@click.argument("paper")
@partial(in_project, writes=True)
def draw(project: "Project", paper: str) -> None:
    """Update the summaries, artefacts and verdicts of a PAPER that are out of date."""
    from fedsampling.workflow import drawing

    click.get_current_context().exit(drawing.draw(paper, project))


@main.command()
@click.argument("paper")
@click.argument("artefact")
@partial(in_project, writes=True)
def render(project: "Project", paper: str, artefact: str) -> None:
    """Draw a PAPER's ARTEFACT from its summaries; figures also as PDF."""
    from fedsampling.workflow import drawing

    click.echo(drawing.render(paper, artefact, project))


@main.command()
@click.argument("paper")
@partial(in_project, writes=True)
def judge(project: "Project", paper: str) -> None:
    """Judge a PAPER's claims from its summaries."""
    from fedsampling.workflow import drawing

    click.echo(drawing.judge(paper, project))


@main.command()
@click.argument("selection", metavar="[PAPER]...", nargs=-1)
@click.option("--unfinished", is_flag=True, help="Report the finished part, in RESULTS/unfinished.")
@partial(in_project, writes=True)
def report(project: "Project", selection: tuple[str, ...], unfinished: bool) -> None:
    """Write the report from the artefacts and claims of the configured papers.

    With --unfinished, only of each PAPER, if any is named.
    """
    from fedsampling.workflow.reporting import build_report, build_unfinished

    if selection and not unfinished:
        raise InputError(f"{selection[0]}: no effect without --unfinished; remove it")
    if unfinished:
        build_unfinished(project, selection or [*project.plan.papers])
    else:
        click.echo(build_report(project))


@main.command()
@click.option(
    "--share", type=click.FloatRange(0, 1), help="Share of all finished runs, with their data."
)
@click.option("--seed", type=int, help="Seed that selects the runs; default: today's date.")
@partial(in_project, writes=True)
def recheck(project: "Project", share: float | None, seed: int | None) -> None:
    """Rerun some finished runs and compare the results; by default, for about a minute."""
    from fedsampling.evidence.provenance import recheck_sentence
    from fedsampling.workflow.doctor import recheck as rerun

    outcomes = rerun(project, share, seed)
    for run in outcomes:
        click.echo(f"{run.outcome}: {run.job}, seed {run.seed} (difference {run.difference:.2g})")
    click.echo(recheck_sentence(outcomes))


@main.command()
@in_project
def verdicts(project: "Project") -> None:
    """Print each paper's verdicts, the path of the report, and the next command."""
    from fedsampling.workflow.reporting import print_verdicts

    print_verdicts(project)


@main.command()
@click.option(
    "--remove-other-versions",
    is_flag=True,
    help="First remove the runs that other versions of the code stored.",
)
@partial(in_project, latest=True)
def status(project: "Project", remove_other_versions: bool) -> None:
    """Show finished, running and remaining runs, the time left, and failures.

    Without --config, this is the status of the last Snakemake call.
    """
    from fedsampling.workflow import status as progress

    if remove_other_versions:
        click.echo(progress.remove_other_versions(project))
    for line in progress.status(project):
        click.echo(line)


@main.command()
def schemes() -> None:
    """Print the table of all samplers (docs/schemes.md)."""
    from fedsampling.report.all_samplers import page

    click.echo(page(), nl=False)


@main.command()
@click.option("--by", default="rounds", show_default=True, help="Cost: rounds, bits or seconds.")
@click.option(
    "--needs",
    help="Only samplers that need at most this information, such as delays,losses or nothing.",
)
@click.option("--delays-known", "delays", is_flag=True, help="Advice: the server knows delays.")
@click.option(
    "--losses-known", "losses", is_flag=True, help="Advice: the server may request losses."
)
@click.option(
    "--updates-known", "updates", is_flag=True, help="Advice: the server sees each update."
)
@click.option("--away", is_flag=True, help="Advice: clients come and go.")
@click.option("--unequal", is_flag=True, help="Advice: one client has 3/n of the samples or more.")
@click.option("--skewed", is_flag=True, help="Advice: each client has only some of the labels.")
@in_project
def rank(project: "Project", by: str, needs: str | None, **answers: bool) -> None:
    """Rank all samplers by cost, with the information that each of them needs.

    The flags marked "Advice" describe your situation. With any of them, only the advice is printed.
    """
    from fedsampling.experiments.papers import CROSS_MATRIX
    from fedsampling.report.which_sampler.advice import Situation
    from fedsampling.report.which_sampler.chooser import advice_lines, comparison_lines
    from fedsampling.report.which_sampler.reading import comparisons, read

    folder = project.results / "artefacts" / CROSS_MATRIX
    if needs or not any(answers.values()):
        for line in comparison_lines(read(folder, by), needs.split(",") if needs else None):
            click.echo(line)
        return
    known = frozenset(name for name in ("delays", "losses", "updates") if answers[name])
    situation = Situation(
        known, answers["away"], answers["unequal"] or None, answers["skewed"] or None
    )
    read(folder, by)  # an error if the artefacts are missing
    for line in advice_lines(comparisons(folder), situation):
        click.echo(line)


@main.command("check-sampler")
@click.argument("name")
@click.argument("options", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    help="Time limit in seconds; 0: none.",
)
def check_one(name: str, options: tuple[str, ...], timeout: float) -> None:
    """Check that a sampler works as it declares.

    NAME is a sampler from `fedsampling list samplers`, or your own Python file that defines a
    sampler. Its settings follow, such as m=4. The check covers slots, bias, reproducibility,
    observed information and saved state, on several populations of clients.
    """
    if timeout:
        from fedsampling.workflow.checking import check_in_subprocess

        status, out, err = check_in_subprocess(timeout, name, options)
        click.echo(out, nl=False)
        click.echo(err, nl=False, err=True)
        click.get_current_context().exit(status)
    from fedsampling.samplers.checking.check import check_sampler, from_words

    result = check_sampler(from_words(name, options))
    click.echo(f"{name}: valid: {', '.join(result.accepted)}")
    for population, reason in result.refused.items():
        click.echo(f"  rejects {population}: {reason}")


@main.command("list")
@click.argument(
    "kind",
    metavar="KIND",
    type=click.Choice(
        [
            *("papers", "experiments", "artefacts", "samplers", "schemes", "datasets"),
            *("partitions", "models", "delays", "availabilities", "metrics", "jobs"),
        ]
    ),
)
@in_project
def list_names(project: "Project", kind: str) -> None:
    """List names with short descriptions: papers, samplers, datasets, jobs and so on.

    KIND is papers, experiments, artefacts, samplers (or schemes), datasets, partitions, models,
    delays, availabilities, metrics or jobs.
    """
    from fedsampling.workflow.listing import listing

    for line in listing(kind, project):
        click.echo(line)


@main.command("compare")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--set",
    "settings",
    multiple=True,
    help="Setting of your samplers, key=value; key=value,value compares several values.",
)
@click.option(
    "--on",
    "datasets",
    default="",
    help="Datasets of the cross matrix, such as bench_spam,bench_dna.  [default: the benchmark]",
)
@click.option(
    "--scale",
    type=click.Choice(["quick", "reduced", "paper"]),
    help="quick needs no data; its results are not evidence.  [default: paper for the benchmark "
    "and for datasets bench_…, otherwise reduced]",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Your samples (.npz, .csv or .parquet), in place of these datasets; trains all samplers.",
)
@click.option("--target", default="y", show_default=True, help="With --data: column of labels.")
@click.option(
    "--client", default="client", show_default=True, help="With --data: column of owners."
)
@click.option("--test", help="With --data: column that marks test samples.")
@click.option(
    "--client-info",
    type=click.Path(path_type=Path),
    help="With --data: table of the clients' properties (.csv or .parquet).",
)
@click.option("--model", help="Your model, my_model.py:Net, or a name of `list models`.")
@click.option("--loss", help="With --model FILE:NAME: a loss function in that file.")
@click.option(
    "--rounds", type=click.IntRange(min=10), help="With --data: number of rounds, also in tuning."
)
@click.option("--seeds", type=click.IntRange(min=1), help="With --data: number of seeds.")
@click.option(
    "--learning-rates", default="", help="With --data: grid of tuning, such as 0.1,0.3,1."
)
@click.option(
    "--against", default="", help="Compare only with md and these samplers, such as uniform,oort."
)
@in_project
def compare_file(
    project: "Project",
    files: tuple[Path, ...],
    settings: tuple[str, ...],
    datasets: str,
    scale: str | None,
    against: str,
    **problem: Any,
) -> None:
    """Rank the samplers in your FILES among all samplers."""
    from fedsampling.workflow.comparing import Options, compare
    from fedsampling.workflow.overrides import OwnProblem

    chosen, rivals = ([name for name in names.split(",") if name] for names in (datasets, against))
    options = Options(files, settings, chosen, scale, rivals, OwnProblem(**problem))
    click.get_current_context().exit(compare(options, project, click.echo))


@main.command("tune")
@click.argument("names", nargs=-1, required=True)
@click.option("--trials-only", is_flag=True, help="Do not run the chosen cases.")
@in_project
def tune_experiments(project: "Project", names: tuple[str, ...], trials_only: bool) -> None:
    """Tune experiments NAMES (PAPER/EXPERIMENT), record the best cases, and run these.

    Runs PAPER/tuning_EXPERIMENT on a holdout, writes the best case of each sampler to the paper's
    chosen.csv, and runs EXPERIMENT at these cases. Needs scale=paper or reduced.
    """
    from fedsampling.workflow.running import tune

    status = tune(names, project, click.echo, runs_chosen=not trials_only)
    click.get_current_context().exit(status)


@main.command()
@click.option("--check", "only_check", is_flag=True, help="Fail if the file is out of date.")
@in_project
def findings(project: "Project", only_check: bool) -> None:
    """Write docs/findings.md from the papers' texts and the results."""
    from fedsampling.workflow.reporting import write_findings

    click.echo(write_findings(project, only_check))


@main.command()
@click.option("--check", "only_check", is_flag=True, help="Fail if a file is out of date.")
def schema(only_check: bool) -> None:
    """Generate config.yaml and the JSON schemas from the typed models."""
    from fedsampling.workflow import listing

    if only_check:
        listing.check()
        return
    for path in listing.write():
        click.echo(path)


if __name__ == "__main__":
    main()
