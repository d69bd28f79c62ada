"""The command line: one thin command for each rule of the workflow, and some for inspection.

Each step of the pipeline also runs by hand.  Heavy imports wait for their first use: ``--help`` and
the workflow's calls must start quickly.
"""

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import argument, option
from click.core import ParameterSource

from fedsampling import __version__, workflow
from fedsampling.base.errors import WARNING, InputError
from fedsampling.base.machine import check_platform
from fedsampling.base.machine import cores as machine_cores
from fedsampling.base.progress import reporter

if TYPE_CHECKING:
    from fedsampling.workflow.project import Project

PATH = click.Path(path_type=Path)
Output = int | str | Path | Iterable[str | Path] | None
Function = Callable[..., Output]


SIZE = re.compile(r"(\d+(?:\.\d+)?)x(\d+(?:\.\d+)?)")


def names(text: str) -> list[str]:
    """Return names that commas separate."""
    return [name for name in text.split(",") if name]


SECTIONS = {
    "Prepare": ("init", "check", "plan", "doctor"),
    "See results": (
        *("status", "verdicts", "decide", "rank", "list", "show", "export", "cite", "recheck"),
    ),
    "Your samplers, data and papers": ("check-sampler", "compare", "data", "new"),
    "Single steps of the pipeline": (*("run", "tune", "render", "draw", "report"),),
    "Maintain the project": ("register", "publish", "findings", "schemes", "schema"),
}


class CommandGroup(click.Group):
    """A group that prints the lines of an InputError without traceback and exits with status 2."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; exit with 130 when interrupted, and silently when a pipe closes."""
        try:
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by purpose, with their whole summaries."""
        for title, names in (SECTIONS if self is main else {"Commands": self.commands}).items():
            rows = [(name, self.commands[name].get_short_help_str(1000)) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows)


SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


@click.group(cls=CommandGroup, context_settings=SETTINGS)
@click.version_option(__version__, prog_name="fedsampling")
def main() -> None:
    """Reproduce five papers on client sampling in federated learning.

    `snakemake --cores N` runs the whole pipeline. `fedsampling COMMAND --help` describes a command.
    """
    # Small products are slower on several threads than on one, most of all while other jobs run.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before NumPy is imported
        os.environ.setdefault(variable, "1")
    warnings.formatwarning = lambda message, *_, **__: f"{WARNING}{message}\n"


FOLDERS = [
    click.Option(
        ["--config", "--configfile"],
        type=PATH,
        default="config.yaml",
        help="Configuration file; --configfile as in Snakemake.",
    ),
    click.Option(["--results"], type=PATH, default="results", help="Folder for all results."),
    click.Option(["--papers"], type=PATH, default="papers", help="Folder with a folder per paper."),
]


def command(
    name: str | None = None,
    group: click.Group = main,
    latest: bool = False,
    writes: bool = False,
    only_reads: bool = False,
) -> Callable[[Function], click.Command]:
    """Add a command on a project with the options :data:`FOLDERS`.

    Prints the lines that the function returns; a number is its exit status.  With `latest` and
    without ``--config``, use the configuration of the last Snakemake call.  Commands with `writes`
    are refused while a call with another configuration is running.  With `only_reads`, no code is
    loaded that the configuration of a results folder names: somebody may have sent it.
    """

    def add(function: Function) -> click.Command:
        @wraps(function)
        def on_project(config: Path, results: Path, papers: Path, **options: Any) -> None:
            check_platform()
            context = click.get_current_context()
            is_default = context.get_parameter_source("config") == ParameterSource.DEFAULT
            if latest and is_default and (results / workflow.project.CONFIG).is_file():
                config = results / workflow.project.CONFIG
            if is_default and not config.is_file():
                raise InputError(
                    f"{config}: not in this folder; go to a project's folder, create one with "
                    "'fedsampling init FOLDER', or use --config"
                )
            project = workflow.project.Project.open(config, results, papers, only_reads)
            if writes:
                project.check_free()
            output = function(project, **options)
            if isinstance(output, int):
                context.exit(output)
            for line in [output] if isinstance(output, str | Path) else output or ():
                click.echo(line)

        added = group.command(name)(on_project)
        added.params += FOLDERS
        return added

    return add


@main.command()
@argument("folder", type=PATH)
def init(folder: Path) -> None:
    """Create a working FOLDER with papers, workflow, configuration and published runs."""
    workflow.init.create_working_folder(folder)
    click.echo(f"{folder}: ready; next: cd {folder} && snakemake --cores all")


@command()
@argument("kind", type=click.Choice(["paper"]), metavar="paper")
@argument("folder", metavar="NAME", type=PATH)
def new(project: "Project", kind: str, folder: Path) -> Output:
    """Create a paper to reproduce: a folder with an experiment, a figure and a claim that run.

    NAME is the folder's name in papers/, or the path of a folder elsewhere.
    """
    created = workflow.init.create_paper(folder, project.papers)
    trial = f"papers=[{created}] scale=quick data=embedded"
    return f"{created}: ready; next: snakemake --cores all --config {trial}"


@command()
def check(project: "Project") -> Output:
    """Check the configuration and all papers' files; report every error."""
    return workflow.check.check_all(project)


@command()
def plan(project: "Project") -> Output:
    """Estimate the work: jobs, runs, CPU time and downloads.

    Jobs on a cluster then request the estimated time and memory.
    """
    return workflow.estimate.cost_table(workflow.estimate.estimate(project))


@command()
def doctor(project: "Project") -> Output:
    """Check that this machine and its GPU compute correctly."""
    return 0 if workflow.doctor.examine(project.config, click.echo) else 1


@main.group(cls=CommandGroup)
def data() -> None:
    """List, fetch, verify and describe datasets."""


@command("list", group=data)
def list_datasets(project: "Project") -> Output:
    """List all datasets with official files, and whether these are available locally."""
    from fedsampling.report.data_cards import listing, overview

    return listing(overview(project.data, project.config.mirror))


@command("fetch", group=data)
@argument("names", nargs=-1, required=True)
def fetch_datasets(project: "Project", names: tuple[str, ...]) -> Iterator[Path]:
    """Download and verify the official files of datasets NAMES, and record their hashes."""
    with reporter() as progress:
        folders = project.data, project.config.mirror
        yield from workflow.fetch_data.fetch_each(names, *folders, progress)


@command("verify", group=data)
@argument("names", nargs=-1)
def verify_datasets(project: "Project", names: tuple[str, ...]) -> Output:
    """Verify the local files of datasets NAMES (default: all); download nothing."""
    return workflow.verify_data.verify_each(names, project.data, project.config.mirror)


@command("card", group=data)
@argument("names", nargs=-1, required=True)
@option("--json", "as_json", is_flag=True, help="Write it to RESULTS/cards for the report.")
@option("--ship", is_flag=True, help="Write it to published_runs, for users without the data.")
def show_cards(project: "Project", names: tuple[str, ...], as_json: bool, ship: bool) -> Output:
    """Describe datasets NAMES: source, licence, sample counts, clients."""
    return workflow.fetch_data.describe_each(names, project, as_json, ship)


@command(writes=True)
@argument("job", nargs=-1, required=True)
def run(project: "Project", job: tuple[str, ...]) -> Output:
    """Run one or more JOBs, such as rizk2022importance/regression/base/fedavg/block-0."""
    return workflow.run.run_jobs(job, project)


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


@command(only_reads=True)
@argument("paper")
@argument("name", metavar="ARTEFACT|CLAIM")
def cite(project: "Project", paper: str, name: str) -> Output:
    """Cite a figure, a table or the verdict on a claim: one line, then BibTeX."""
    return workflow.cite.cite(paper, name, project)


@command(writes=True)
@argument("paper")
def draw(project: "Project", paper: str) -> Output:
    """Update the summaries, artefacts and verdicts of a PAPER that are out of date."""
    return workflow.draw.draw(paper, project)


@command()
@argument("names", nargs=-1)
def publish(project: "Project", names: tuple[str, ...]) -> Output:
    """Add finished runs of NAMES (PAPER or PAPER/EXPERIMENT; default: all) to published_runs."""
    return workflow.publish.publish_runs(names, project)


@command()
@argument("claims", metavar="[CLAIM]...", nargs=-1)
@option("--hours", type=click.FloatRange(min=0), help="Run the next looks within this time.")
@option("--dry-run", is_flag=True, help="Only print them, with their price.")
@option("--cores", default="all", show_default=True, help="As for snakemake.")
def decide(
    project: "Project", claims: tuple[str, ...], hours: float | None, dry_run: bool, cores: str
) -> Iterator[str]:
    """Decide open CLAIMs (PAPER, CLAIM or PAPER/CLAIM; default: all) with fresh seeds.

    Looks that decide most for their price come first. The runs stop and resume.
    """
    yield from workflow.decide.decide(project, claims, hours, dry_run, cores)


@command()
def register(project: "Project") -> Iterator[str]:
    """Register the claims' rules, before their fresh runs: digest, time and commit."""
    yield from workflow.register.register(project.papers)


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


@command(writes=True)
@option("--share", type=click.FloatRange(0, 1), help="Share of all finished runs, with their data.")
@option("--seed", type=int, help="Seed that selects the runs; default: today's date.")
def recheck(project: "Project", share: float | None, seed: int | None) -> Iterator[str]:
    """Rerun some finished runs and compare the results; by default, for about a minute."""
    from fedsampling.evidence.recomputed import recheck_sentence

    outcomes = workflow.recheck.recheck(project, share, seed)
    for run in outcomes:
        yield f"{run.outcome}: {run.job}, seed {run.seed} (difference {run.difference:.2g})"
    yield recheck_sentence(outcomes)


@command(only_reads=True)
def verdicts(project: "Project") -> None:
    """Print each paper's verdicts, the path of the report, and the next command."""
    workflow.report.print_verdicts(project)


@command(latest=True, only_reads=True)
@option("--remove-other-versions", is_flag=True, help="First remove other versions' runs.")
def status(project: "Project", remove_other_versions: bool) -> Iterator[str]:
    """Show finished, running and remaining runs, the time left, and failures.

    Without --config, this is the status of the last Snakemake call.
    """
    if remove_other_versions:
        yield workflow.status.remove_other_versions(project)
    yield from workflow.status.status(project)


@command(latest=True, only_reads=True)
@argument("name", metavar="JOB|HASH")
def show(project: "Project", name: str) -> Iterator[str]:
    """Show the settings, the runs and the origin of a JOB or of the run with a HASH.

    Six digits of a hash suffice. Without --config, the jobs are those of the last Snakemake call.
    """
    yield from workflow.show.show(name, project)


@command(latest=True, only_reads=True)
@argument("names", metavar="PAPER[/EXPERIMENT]...", nargs=-1, required=True)
@option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet", "tensorboard", "wandb-offline"]),
    default="csv",
    help="A table, or one run per seed for TensorBoard or Weights & Biases.",
)
@option("--out", type=PATH, help="File or folder; default: in RESULTS/export.")
def export(project: "Project", names: tuple[str, ...], form: str, out: Path | None) -> Output:
    """Write finished runs as one tidy table, or for TensorBoard or Weights & Biases.

    The table has a row per value: paper, experiment, case, sampler, seed, at, metric and value, and
    a column for each setting. Without --config, the runs are those of the last Snakemake call.
    """
    return workflow.export.export(names, form, out, project)


@main.command()
def schemes() -> None:
    """Print the table of all samplers (docs/schemes.md)."""
    from fedsampling.report.names import page

    click.echo(page(), nl=False)


@command(only_reads=True)
@option("--by", default="rounds", help="Cost: rounds, bits or seconds.")
@option("--delays-known", "delays", is_flag=True, help="Advice: the server knows delays.")
@option("--losses-known", "losses", is_flag=True, help="Advice: the server may request losses.")
@option("--updates-known", "updates", is_flag=True, help="Advice: the server sees each update.")
@option("--away", is_flag=True, help="Advice: clients come and go.")
@option("--unequal", is_flag=True, help="Advice: one client has 3/n of the samples or more.")
@option("--skewed", is_flag=True, help="Advice: each client has only some of the labels.")
def rank(project: "Project", by: str, **answers: bool) -> Output:
    """Rank all samplers by cost, with the information that each of them needs.

    The flags marked "Advice" describe your situation. With any of them, only the advice is printed.
    """
    from fedsampling.experiments.papers import CROSS_MATRIX
    from fedsampling.report.which_sampler.advice import Situation
    from fedsampling.report.which_sampler.chooser import advice_lines, comparison_lines
    from fedsampling.report.which_sampler.comparison import read, read_comparisons

    folder = project.results / "artefacts" / CROSS_MATRIX
    if not any(answers.values()):
        return comparison_lines(read(folder, by))
    known = frozenset(name for name in ("delays", "losses", "updates") if answers[name])
    away, unequal, skewed = (answers[name] for name in ("away", "unequal", "skewed"))
    read(folder, by)  # an error if the artefacts are missing
    return advice_lines(
        read_comparisons(folder), Situation(known, away, unequal or None, skewed or None)
    )


@main.command("check-sampler")
@argument("name")
@argument("options", nargs=-1, metavar="[KEY=VALUE]...")
@option("--timeout", type=click.FloatRange(0), default=60.0, help="Time limit in seconds; 0: none.")
@option("--failures", metavar="YAML", help="Also with clients that fail: 0.2, or '{first: 3}'.")
def check_one(name: str, options: tuple[str, ...], timeout: float, failures: str | None) -> None:
    """Check that a sampler works as it declares.

    NAME is a sampler from `fedsampling list samplers`, or your own Python file, all of whose
    samplers are checked. Settings follow, such as m=4. The check covers slots, bias,
    reproducibility, observed information and saved state, on several populations of clients.
    """
    if timeout:
        status = workflow.check_sampler.check_in_subprocess(timeout, name, options, failures)
        click.get_current_context().exit(status)
    from fedsampling.samplers.checks.check import check_all

    results = check_all(name, options, failures)
    for sampler, result in results.items():
        label = f"{name}: {sampler}" if len(results) > 1 else name
        click.echo(f"{label}: valid: {', '.join(result.accepted)}")
        for population, reason in result.refused.items():
            click.echo(f"  rejects {population}: {reason}")


KINDS = (
    *("papers", "experiments", "artefacts", "samplers", "schemes", "datasets"),
    *("partitions", "models", "delays", "availabilities", "metrics", "jobs"),
)


@command("list", only_reads=True)
@argument("kind", metavar="KIND", type=click.Choice(KINDS))
def list_names(project: "Project", kind: str) -> Output:
    """List names with short descriptions: papers, samplers, datasets, jobs and so on.

    KIND is papers, experiments, artefacts, samplers (or schemes), datasets, partitions, models,
    delays, availabilities, metrics or jobs.
    """
    return workflow.listing.listing(kind, project)


@command("compare")
@argument("files", nargs=-1, required=True, type=PATH)
@option("--set", "settings", multiple=True, help="Setting of your samplers, key=value[,value…].")
@option(
    "--on", "datasets", type=names, help="Such as bench_spam,bench_dna.  [default: the benchmark]"
)
@option(
    "--scale",
    type=click.Choice(["quick", "reduced", "paper"]),
    help="quick is no evidence.  [default: paper for the benchmark, otherwise reduced]",
)
@option("--data", type=PATH, help="Your .npz, .csv or .parquet instead; trains all samplers.")
@option("--target", default="y", help="With --data: column of labels.")
@option("--client", default="client", help="With --data: column of owners.")
@option("--test", help="With --data: column that marks test samples.")
@option("--client-info", type=PATH, help="With --data: table of the clients' properties.")
@option("--m", type=click.IntRange(min=1), help="With --data: clients per round.")
@option("--failures", help="With --data: as in docs/your-data.md: 0.2, or {deadline: 60}.")
@option("--availability", help="With --data: such as {name: markov, rate: [0.2, 0.8]}.")
@option("--model", help="Your model, my_model.py:Net, or a name of `list models`.")
@option("--loss", help="With --model FILE:NAME: a loss function in that file.")
@option("--rounds", type=click.IntRange(10), help="With --data: number of rounds, also in tuning.")
@option("--seeds", type=click.IntRange(min=1), help="With --data: number of seeds.")
@option("--learning-rates", help="With --data: grid of tuning, such as 0.1,0.3,1.")
@option("--against", type=names, help="Compare only with md and these samplers: uniform,oort.")
@option("--cores", type=click.IntRange(min=1), help="Datasets at the same time.  [default: all]")
@option(
    "--minutes",
    type=click.FloatRange(min=0),
    help="In the benchmark: then rank the finished datasets; a second call resumes.",
)
def compare_file(project: "Project", files: tuple[Path, ...], **settings: Any) -> Output:
    """Rank the samplers in your FILES among all samplers."""
    lists = {name: settings.pop(name) or () for name in ("settings", "datasets", "against")}
    scale, minutes = settings.pop("scale"), settings.pop("minutes")
    cores = settings.pop("cores") or machine_cores()
    click.echo(f"reading {', '.join(map(str, files))} and the cross matrix")  # before slow imports
    problem = workflow.comparing.OwnProblem(**settings)
    return workflow.comparing.compare(
        files, project, click.echo, scale, problem, **lists, cores=cores, minutes=minutes
    )


@command("tune")
@argument("names", nargs=-1, required=True)
@option("--trials-only", is_flag=True, help="Do not run the chosen cases.")
def tune_experiments(project: "Project", names: tuple[str, ...], trials_only: bool) -> Output:
    """Tune experiments NAMES (PAPER/EXPERIMENT), record the best cases, and run these.

    Runs PAPER/tuning_EXPERIMENT on a holdout, writes the best case of each sampler to the paper's
    chosen.csv, and runs EXPERIMENT at these cases. Needs scale=paper or reduced.
    """
    return workflow.tune.tune(names, project, click.echo, runs_chosen=not trials_only)


@command()
@option("--check", "only_check", is_flag=True, help="Fail if the file is out of date.")
def findings(project: "Project", only_check: bool) -> Output:
    """Write docs/findings.md from the papers' texts and the results."""
    return workflow.report.write_findings(project, only_check)


@main.command()
@option("--check", "only_check", is_flag=True, help="Fail if a file is out of date.")
def schema(only_check: bool) -> None:
    """Generate config.yaml and the JSON schemas from the typed models."""
    if only_check:
        workflow.schema.check()
        return
    for path in workflow.schema.write():
        click.echo(path)


if __name__ == "__main__":
    main()
