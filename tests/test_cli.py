"""Every command, and every kind of invalid input: exit status 2 and one line, no traceback."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.processes import complaint_of

import fedsampling as fs
from fedsampling.base.files import read_record, write_record
from fedsampling.cli import SECTIONS, main
from fedsampling.cli import results as commands
from fedsampling.experiments.papers import draw_function
from fedsampling.workflow import export, listing
from fedsampling.workflow.project import Project
from fedsampling.workflow.snakefile import papers_of

PAPER = "rizk2022importance"
FEDAVG = f"{PAPER}/regression/base/fedavg/block-0"


def call(*arguments):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def complaint(*arguments):
    """Return the one line that a call ends with."""
    result = call(*arguments)
    assert result.stdout == ""
    return complaint_of(result)


def options(pipeline, results, config=None):
    arguments = ["--config", config or pipeline.config, "--results", results]
    return [*arguments, "--papers", pipeline.papers]


def configured(pipeline, tmp_path, **changes):
    content = json.loads(pipeline.config.read_text()) | changes
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(content))
    return options(pipeline, tmp_path / "results", path)


def test_every_command_is_listed_in_one_section():
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(main.commands)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("artefacts", f"{PAPER}/figure1"),
        ("availabilities", "markov"),
        ("metrics", "accuracy"),
        ("jobs", FEDAVG),
    ],
)
def test_list_shows_all_kinds_of_names(pipeline, kind, name):
    lines = call("list", kind, *options(pipeline, pipeline.results)).stdout.splitlines()
    assert name in {line.split("  ")[0] for line in lines}


def test_the_commands_lead_from_a_job_to_the_report(pipeline, tmp_path):
    where = options(pipeline, tmp_path / "results")
    reused = configured(pipeline, tmp_path, reuse=[str(pipeline.results / "store")])
    assert call("check", *where).stdout.startswith(f"{pipeline.config}: valid: ")
    assert call("run", f"{PAPER}/inclusion/intro/fixed/block-0", *where).exit_code == 0
    project = Project.open(pipeline.config, tmp_path / "results", pipeline.papers)
    manifests = [project.manifest(name) for name in project.plan.jobs]
    assert call("run", *project.plan.jobs, *reused).stdout.split() == [*map(str, manifests)]
    for manifest in manifests:
        theirs = pipeline.results / manifest.relative_to(project.results)
        assert json.loads(manifest.read_text()) == json.loads(theirs.read_text())
    assert call("draw", PAPER, *reused).exit_code == 0
    drawn = {path: path.stat().st_ino for path in (project.folder / "artefacts").rglob("*.*")}
    assert call("draw", PAPER, *reused).exit_code == 0
    assert drawn == {path: path.stat().st_ino for path in drawn}  # up to date, and not redrawn
    for artefact in ("figure1", "table1"):
        out = Path(call("render", PAPER, artefact, *where).stdout.strip())
        theirs = pipeline.results / "artefacts" / PAPER / artefact
        for name in json.loads((out.parent / "artefact.json").read_text())["files"].values():
            assert (out.parent / name).read_bytes() == (theirs / name).read_bytes()
        assert out.name == ("figure1.pdf" if artefact == "figure1" else "table1.tex")
    verdicts, theirs = (
        folder / "claims" / f"{PAPER}.json" for folder in (project.folder, pipeline.results)
    )
    assert verdicts.read_bytes() == theirs.read_bytes()
    assert Path(call("report", *where).stdout.strip()).is_file()
    printed = call("verdicts", *where)
    assert printed.stdout.startswith(f"{PAPER}: ")
    assert "report/index.html\nNext: snakemake" in printed.stdout
    assert printed.stderr == ""


def test_a_figure_gets_a_size_and_the_reports_files_stay(pipeline, tmp_path):
    results = shutil.copytree(pipeline.results, tmp_path / "results")
    before = {path: path.read_bytes() for path in (results / "artefacts" / PAPER).rglob("*.*")}
    where = options(pipeline, results)
    out = Path(call("render", PAPER, "figure1", "--size", "3.3x2.2", *where).stdout.strip())
    assert out == results / "figures" / f"{PAPER}-figure1.pdf"
    assert b"/MediaBox [ 0 0 237.6 158.4 ]" in out.read_bytes()
    assert before == {path: path.read_bytes() for path in before}
    shutil.copy(pipeline.config, results / "config.json")
    by_python = fs.render(
        PAPER, "figure1", results=results, size=(3.3, 2.2), out=tmp_path / "a.pdf"
    )
    assert by_python.read_bytes() == out.read_bytes()
    assert complaint("render", PAPER, "figure1", "--size", "3", *where) == (
        "--size 3: invalid; must be inches, such as 3.3x2.2"
    )
    assert "this is a table; use its .tex file" in complaint(
        "render", PAPER, "table1", "--font", "8", *where
    )


def test_a_figure_and_a_verdict_can_be_cited(pipeline):
    where = options(pipeline, pipeline.results)
    line, _, first, *_ = call("cite", PAPER, "figure1", *where).stdout.splitlines()
    assert line.startswith("The fedsampling developers. Figure 1, after ")
    assert first == f"@misc{{fedsampling-{PAPER}-figure1,"
    assert f"@misc{{fedsampling-{PAPER}-c1," in call("cite", PAPER, "c1", *where).stdout
    assert "artefact or claim: 'c0' is unknown" in complaint("cite", PAPER, "c0", *where)


def test_verdicts_that_were_drawn_from_other_runs_have_a_warning(pipeline, tmp_path):
    results = shutil.copytree(pipeline.results, tmp_path / "results")
    record = results / "made" / "papers" / f"{PAPER}.json"
    content = read_record(record)
    content["results"][f"claims/{PAPER}"]["of"] = "older"
    write_record(record, content)
    warning = call("verdicts", *options(pipeline, results)).stderr
    assert f"warning: {PAPER}: drawn from other runs or settings" in warning


class TestBadInput:
    @pytest.mark.parametrize(
        ("arguments", "line"),
        [
            (["run", "rizk"], "paper: 'rizk' is not in the configuration; known: "),
            (["run", FEDAVG, FEDAVG.replace("avg", "av")], f"; did you mean '{FEDAVG}'?"),
            (["render", PAPER, "figur1"], "artefact: 'figur1' is unknown; did you mean 'figure1'?"),
            (["render", "rizk2022", "figure1"], "paper: 'rizk2022' is unknown; did you mean 'riz"),
        ],
    )
    def test_an_unknown_name(self, pipeline, tmp_path, arguments, line):
        assert line in complaint(*arguments, *options(pipeline, tmp_path))

    def test_outside_a_projects_folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert complaint("list", "metrics") == (
            "config.yaml: not in this folder; go to a project's folder, create one with "
            "'fedsampling init FOLDER', or use --config"
        )

    def test_a_missing_configuration_or_papers_folder_is_one_line(self, pipeline, tmp_path):
        none = tmp_path / "none.yaml"
        assert complaint("check", "--config", none) == f"{none}: no such file; check the path"
        line = complaint("check", "--config", pipeline.config, "--papers", tmp_path)
        assert line.startswith(f"{tmp_path}: contains no papers; go to the folder that has them (")

    def test_a_step_with_missing_inputs_is_one_line(self, pipeline, tmp_path):
        where = options(pipeline, tmp_path)
        runs, summaries = tmp_path / "runs" / PAPER, tmp_path / "summaries" / PAPER
        assert complaint("render", PAPER, "figure1", *where) == (
            f"{summaries}/regression.parquet: missing; run 'fedsampling draw {PAPER}' first"
        )
        assert "run 'fedsampling draw <paper>' first" in complaint("report", *where)
        assert f"snakemake --cores all {PAPER} --configfile" in complaint("verdicts", *where)
        line = complaint("report", *where, "--", PAPER)
        assert line == f"{PAPER}: no effect without --unfinished; remove it"
        result = call("draw", PAPER, *where)
        assert result.exit_code == 1
        assert result.stderr.splitlines()[0] == (
            f"fedsampling: {runs}/regression/base/fedavg/block-0.json: not computed yet, as are "
            "4 others; run 'fedsampling run' or snakemake first"
        )


def test_the_installed_command_prints_one_line_and_no_traceback(pipeline, tmp_path):
    where = configured(pipeline, tmp_path, scale="fast")
    command = [sys.executable, "-m", "fedsampling.cli", "check", *map(str, where)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stdout == ""
    wrong = "scale: 'fast' is unknown; known: best, paper, quick, reduced"
    assert result.stderr == f"fedsampling: {where[where.index('--config') + 1]}: {wrong}\n"


def test_a_closed_pipe_is_no_error(pipeline):
    command = [sys.executable, "-m", "fedsampling.cli", "check", "--config", pipeline.config]
    command += ["--papers", pipeline.papers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_the_unfinished_report_shows_finished_parts_and_lists_the_rest(
    pipeline, tmp_path, monkeypatch
):
    """A report of the rest names it, apart from where the workflow looks."""
    results = shutil.copytree(pipeline.results, tmp_path / "results")
    (results / "summaries" / PAPER / "gradient.parquet").unlink()
    shutil.rmtree(results / "runs" / PAPER / "gradient")
    shutil.rmtree(results / "artefacts" / PAPER / "figure2")

    def failing(paper, artefact):
        if artefact == "figure2":
            raise ZeroDivisionError
        return draw_function(paper, artefact)

    monkeypatch.setattr("fedsampling.workflow.draw.draw_function", failing)
    # A figure that fails with changed settings is drawn empty, and is not unfinished.
    monkeypatch.setattr("fedsampling.experiments.config.Config.changes", lambda *_: False)
    result = call("report", "--unfinished", *options(pipeline, results), "--", PAPER)
    page = results / "unfinished" / "index.html"
    what, last = result.stdout.splitlines()[-2:]
    assert what.startswith(f"{PAPER}: unfinished: gradient, ")
    assert "the drawing of figure2" in what
    assert last == f"Report of the finished part, with the reasons: {page}"
    assert "not computed yet" not in result.output
    text = (page.parent / f"{PAPER}.html").read_text(encoding="utf-8")
    assert re.search(
        "<dt>gradient, .*the drawing of figure2.*</dt>\n<dd>did not finish; see logs/", text
    )
    for name in ("figure1", "figure2", "gradient"):
        assert f'id="{name}"' in text
    claims = json.loads((page.parent / PAPER / "claims.json").read_text())["claims"]
    why = "Not run: gradient: did not finish; see logs/, and run the same command to resume."
    assert [claim["reason"] for claim in claims if "gradient" in claim["reason"]] == [why]


def test_choices_on_the_command_line_are_those_of_the_commands():
    assert listing.KINDS == commands.KINDS
    assert tuple(export.FORMATS) == commands.FORMATS


def test_targets_name_their_papers():
    papers = [PAPER, "fraboni2022general"]
    assert papers_of([], papers) == papers_of(["all"], papers) == papers
    assert papers_of([PAPER], papers) == [PAPER]
    assert papers_of([f"results/claims/{PAPER}.json"], papers) == [PAPER]
    assert papers_of([f"results/artefacts/{PAPER}/table1/table1.html"], papers) == [PAPER]


@pytest.mark.parametrize("group", [[], ["data"]], ids=["all", "data"])
def test_no_sentence_of_the_list_of_commands_is_cut_off(group):
    assert "...\n  " not in call(*group, "--help").stdout
