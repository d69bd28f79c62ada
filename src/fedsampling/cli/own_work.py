"""Commands for your own samplers and papers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import argument, option

from fedsampling import workflow
from fedsampling.base.machine import cores as machine_cores
from fedsampling.cli.group import PATH, Output, command, main

if TYPE_CHECKING:
    from fedsampling.workflow.project import Project


def names(text: str) -> list[str]:
    """Return names that commas separate."""
    return [name for name in text.split(",") if name]


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
@option("--target", help="With --data: column of labels.  [default: y]")
@option("--client", help="With --data: column of owners.  [default: client]")
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
    request = workflow.comparing.Request(
        files=files, problem=problem, scale=scale, **lists, cores=cores, minutes=minutes
    )
    return workflow.comparing.compare(request, project, click.echo)
