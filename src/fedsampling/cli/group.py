"""The group of all commands, and the decorator that makes a function a command on a project."""

import os
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from fedsampling import __version__, workflow
from fedsampling.base.errors import WARNING, InputError
from fedsampling.base.machine import check_platform

PATH = click.Path(path_type=Path)
Output = int | str | Path | Iterable[str | Path] | None
Function = Callable[..., Output]
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
        help="Configuration file, in place of config.yaml.",
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
    without ``--config``, use the configuration of the last Snakemake call that did not name a run
    (those of named runs are in their folders).  Commands with `writes` are refused while a call
    with another configuration is running.  With `only_reads`, no code is loaded that the
    configuration of a results folder names: somebody may have sent it.
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
