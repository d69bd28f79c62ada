"""Docs run as they stand: worked examples in a copy of the project, guides in a folder."""

import dataclasses
import json
import re
import shutil
from pathlib import Path

import pytest
import yaml
from tests.processes import run_as_if_alone, run_python

from fedsampling.base.errors import InputError
from fedsampling.cli import main
from fedsampling.experiments.papers import load_paper
from fedsampling.samplers.protocol.base import CONVEX_NEEDS, NETWORK_NEEDS, Scheme
from fedsampling.samplers.protocol.slots import Setup
from fedsampling.samplers.users.one_run import Sampler
from fedsampling.workflow.init import BLOCK, create_paper
from fedsampling.workflow.plan import plan

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GUIDES = [*sorted(DOCS.glob("your-*.md")), DOCS / "which-sampler.md", DOCS / "faq.md"]
CALL = "from fedsampling.cli import main\nmain({arguments!r}, standalone_mode=False)\n"


def follow(page, project):
    """Write and change the files that a page names; return the commands that it gives."""
    commands = []
    name = ""
    for result in BLOCK.finditer(page.read_text(encoding="utf-8")):
        name = result["file"] or name
        if result["kind"] == "sh":
            commands += result["text"].splitlines()
        elif result["kind"] == "diff":
            change(project / name, result["text"].splitlines())
        else:
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(result["text"], encoding="utf-8")
    return commands


def change(path, lines):
    """Replace the lines of a diff that begin with " " or "-" by those with " " or "+"."""
    before, after = (
        "".join(f"{line[1:]}\n" for line in lines if line[:1] in prefixes)
        for prefixes in (" -", " +")
    )
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"{path.name}: not once: {before}"
    path.write_text(text.replace(before, after), encoding="utf-8")


CALL_ALL = """
import contextlib, io, json
from fedsampling.cli import main

outputs = {{}}
for arguments in {calls!r}:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            main(arguments)
        except SystemExit as end:
            if end.code:
                raise
    outputs[" ".join(arguments[:2])] = printed.getvalue()
print(json.dumps(outputs))
"""


def printed(page, project):
    """Return what each command of a page prints, by its first two words, in a copy of the project.

    Of `compare`, whose runs take long, only the options are checked; and of `new`, whose files the
    page has. Five seeds stand for two hundred.
    """
    changes_package = page == "add-a-dataset.md"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("src", "papers") if changes_package else ("papers",):
        shutil.copytree(ROOT / name, project / name, ignore=ignored)
    for name in ("Snakefile", "CITATION.cff"):
        shutil.copy(ROOT / name, project / name)
    commands = [command.split() for command in follow(DOCS / page, project)]
    for path in project.glob("papers/mypaper/paper.yaml"):
        path.write_text(re.sub(r"(seeds|seed_block): 200\b", r"\1: 5", path.read_text("utf-8")))
    assert {program for program, *_ in commands} == {"fedsampling"}
    calls = [arguments for _, *arguments in commands if arguments[0] not in ("compare", "new")]
    calls.sort(key=lambda call: call[0] == "draw")  # of all experiments, also those added later
    for _, verb, *arguments in commands:
        assert main.commands[verb].make_context(verb, arguments)
    program = CALL_ALL.format(calls=calls)
    if changes_package:
        output = run_python("-c", program, cwd=project, PYTHONPATH=str(project / "src"))
    else:
        output = run_as_if_alone(program, project)
    return json.loads(output.splitlines()[-1])


@pytest.mark.usefixtures("forget_own_files")
def test_an_added_sampler_runs_with_the_others(tmp_path):
    outputs = printed("add-a-sampler.md", tmp_path)
    assert outputs["check"].startswith("config.yaml: valid")
    for name in ("systematic", "smoothed_loss"):
        assert outputs[f"check-sampler {name}.py"].startswith(f"{name}.py: valid")
    first, second = (
        json.loads((tmp_path / text.strip()).read_text(encoding="utf-8"))
        for command, text in outputs.items()
        if command.startswith("run ")
    )
    assert len(first["runs"]) == 4
    # Where every registered scheme is compared it is by itself.
    assert "smoothed_loss:" not in (tmp_path / "papers/crossmatrix/paper.yaml").read_text("utf-8")
    assert second["job"] == "crossmatrix/digit/step-0.1/smoothed_loss/block-0"


def test_the_page_lists_all_names_in_needs():
    text = (DOCS / "add-a-sampler.md").read_text(encoding="utf-8")
    table = text.partition("| `needs` |")[2].partition("\n\n")[0]
    needs = {"networks": set(), "convex models": set()}
    for row in table.splitlines()[2:]:
        names, *_, by = row.strip("| ").split(" | ")
        (learner,) = [learner for learner in needs if by.startswith(learner)]
        needs[learner] |= set(re.findall(r"`(\w+)`", names))
    assert needs == {"networks": set(NETWORK_NEEDS), "convex models": set(CONVEX_NEEDS)}


def test_an_added_dataset_is_verified_described_and_run(tmp_path):
    outputs = printed("add-a-dataset.md", tmp_path)
    assert outputs["data fetch"].strip() == "results/data/pebbles/pebbles.csv"
    assert "mirror: pebbles.csv: OK: sha256 compared with the copy" in outputs["data verify"]
    (run,) = [text for command, text in outputs.items() if command.startswith("run ")]
    assert run.strip().endswith("block-0.json")
    # Of the collectors one has but two pebbles.
    lines = {"data: official", "! unverified copy", "  clients: 2", "  samples: 7"}
    assert lines <= {*outputs["data card"].splitlines()}


@pytest.mark.usefixtures("forget_own_files")
def test_a_new_paper_is_drawn_and_judged_on_trial(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    outputs = printed("add-a-paper.md", project)
    assert outputs["check"].startswith("config.yaml: valid")
    drawn = project / "results/artefacts/mypaper/accuracy"
    described = json.loads((drawn / "artefact.json").read_text(encoding="utf-8"))
    assert described["badges"] == ["quick scale", "embedded data"]
    assert all((drawn / file).is_file() for file in described["files"].values())
    text = (project / "results/claims/mypaper.json").read_text(encoding="utf-8")
    (claim,) = json.loads(text)["claims"]
    assert claim["verdict"] == "not run"
    assert re.search(r"Trial of the rule: (reproduced|inconclusive)\.$", claim["reason"])
    new_kind = outputs["run mypaper/coverage/base/uniform/block-0"].strip()
    assert len(json.loads((project / new_kind).read_text(encoding="utf-8"))["runs"]) == 5


def test_new_paper_has_the_files_of_the_page(tmp_path):
    folder = create_paper(tmp_path / "li2020", tmp_path / "papers")
    names = {"paper.yaml", "reported.csv", "paper.bib", "figures.py", "claims.py"}
    assert {path.name for path in folder.iterdir()} == names
    assert load_paper("li2020", tmp_path).reported("final_accuracy") == 0.9
    with pytest.raises(InputError, match="exists; name a new folder"):
        create_paper(Path("li2020"), tmp_path)
    with pytest.raises(InputError, match="must be lower-case letters or digits"):
        create_paper(Path("my-paper"), tmp_path)


def script(page, folder):
    """Write the files of a page, and return its Python and its commands as one program."""
    parts = []
    for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["file"]:
            (folder / block["file"]).write_text(block["text"], encoding="utf-8")
        elif block["kind"] == "sh":
            for command in block["text"].splitlines():
                program, *arguments = command.split()
                assert program == "fedsampling"
                parts.append(CALL.format(arguments=arguments))
        else:
            assert block["kind"] == "python"
            parts.append(block["text"])
    return "\n".join(parts)


def test_the_page_lists_all_names_that_a_sampler_cannot_use():
    page = (DOCS / "your-sampler.md").read_text(encoding="utf-8")
    reserved = {name for name in dir(Sampler) if not name.startswith(("_", "model_", "parse_"))}
    assert {name for name in reserved if f"`{name}`" not in page} == set()
    fields = {field.name for field in dataclasses.fields(Setup)}
    assert {name for name in fields if f"`{name}" not in page} == set()


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_guide_runs_as_it_stands(page, tmp_path):
    run_as_if_alone(script(page, tmp_path), tmp_path)


def test_the_guide_names_samplers_that_fit_and_types_no_speed_up():
    text = (DOCS / "which-sampler.md").read_text(encoding="utf-8")
    table = text.partition("| if |")[2].partition("\n\n")[0]
    rows = {row.split(" | ")[0].strip("| "): row.split(" | ")[1] for row in table.splitlines()[2:]}
    names = {key: re.findall(r"`(\w+)`", cell) for key, cell in rows.items()}
    members = Scheme.members()
    assert {name for each in names.values() for name in each} <= members.keys()
    assert all(members[name].intermittent for name in names["clients come and go"])
    assert re.findall(r"\d\.\d", table) == []


def test_links_between_files_work():
    pages = [ROOT / "README.md", *DOCS.glob("*.md")]
    links = [
        (page, link)
        for page in pages
        for link in re.findall(r"\]\((?!\w+:|#)([^)#]+)", page.read_text("utf-8"))
    ]
    assert len(links) > 40
    assert [
        f"{page.name}: {link}" for page, link in links if not (page.parent / link).exists()
    ] == []


def test_calls_on_a_cluster_name_a_scale_that_computes_runs():
    pages = [ROOT / "README.md", DOCS / "cluster.md", *ROOT.glob("profiles/*/profile.yaml")]
    lines = "\n".join(page.read_text("utf-8") for page in pages)
    calls = re.findall(r"(?:snakemake --workflow-profile|fedsampling plan --).*", lines)
    assert len(calls) > 6
    assert [call for call in calls if not re.search("--config(file | scale=)", call)] == []


def test_the_override_for_a_missing_download_needs_no_such_file():
    page = (DOCS / "when-it-breaks.md").read_text(encoding="utf-8")
    (overrides,) = re.findall(r"`overrides: ({chen2022optimal: .*?}})`", page)
    settings = {"papers": ["chen2022optimal"], "scale": "paper", "shipped": False}
    planned = plan({**settings, "overrides": yaml.safe_load(overrides)}, ROOT / "papers")
    assert planned.jobs
    assert "cookup" not in planned.datasets(*planned.jobs)


def test_tests_that_the_cluster_page_names_exist():
    named = set(re.findall(r"`(test_\w+)`", (DOCS / "cluster.md").read_text("utf-8")))
    sources = [path.read_text("utf-8") for path in (ROOT / "tests" / "slurm").glob("test_*.py")]
    assert len(named) > 10
    assert named <= set(re.findall(r"def (test_\w+)", "\n".join(sources)))
