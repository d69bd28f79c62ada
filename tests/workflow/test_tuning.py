"""``fedsampling tune``: trials on a holdout, their scores in chosen.csv, then the chosen cases."""

import csv
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from fedsampling.cli import main
from fedsampling.workflow.running import COLUMNS, merged

PAPERS = Path(__file__).parents[2] / "papers"
HEADER = ",".join(COLUMNS)


def row(experiment, sampler, case, score, chosen):
    cells = (experiment, sampler, case, "0.1", str(score), str(chosen))
    return dict(zip(COLUMNS, cells, strict=True))


BEFORE = ["a,md,x,0.1,0.5,True", "b,md,x,0.1,0.25,True", "b,md,y,0.1,0.125,False"]


@pytest.mark.parametrize(
    ("before", "rows", "after"),
    [
        (
            [*BEFORE, "c,md,x,0.1,1.0,True"],
            [row("b", "md", "x", 0.25, False), row("b", "md", "y", 0.75, True)],
            [BEFORE[0], "b,md,x,0.1,0.25,False", "b,md,y,0.1,0.75,True", "c,md,x,0.1,1.0,True"],
        ),
        (
            BEFORE,
            [row("a", "new", "x", 0.75, True)],
            [BEFORE[0], "a,new,x,0.1,0.75,True", *BEFORE[1:]],
        ),
        (
            ["a,md,x,0.1,0.6815789473684211,True", "b,md,x,0.1,0.6815789473684211,True"],
            [row("a", "md", "x", 0.681578947368421, True), row("b", "md", "x", 0.68158, True)],
            ["a,md,x,0.1,0.6815789473684211,True", "b,md,x,0.1,0.68158,True"],
        ),
    ],
    ids=["replaced in place", "added to its experiment", "equal up to rounding, or not"],
)
def test_rows_of_tuned_samplers_are_merged_into_the_file(tmp_path, before, rows, after):
    file = tmp_path / "chosen.csv"
    file.write_text("\n".join([HEADER, *before]) + "\n")
    assert merged(file, rows).splitlines() == [HEADER, *after]


@pytest.fixture
def tune(tmp_path, monkeypatch, forget_own_files):
    """Tune with a configuration in a folder that has a copy of the cross matrix."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(PAPERS / "crossmatrix", tmp_path / "papers" / "crossmatrix")

    def run(config, name):
        (tmp_path / "config.yaml").write_text(config)
        return CliRunner().invoke(main, ["tune", name])

    return run


def test_one_command_goes_from_trials_to_the_chosen_cases(tmp_path, tune):
    chosen = tmp_path / "papers" / "crossmatrix" / "chosen.csv"
    chosen.unlink()
    config = "scale: quick\ndata: embedded\nshipped: false\npapers: [crossmatrix]\noverrides:\n"
    config += "  crossmatrix:\n    digit: {samplers: {'*': null, md: {name: md, m: 4}}}\n"
    first = tune(config, "crossmatrix/digit")
    assert first.exit_code == 0, first.stderr
    assert "crossmatrix/digit: 1 trials of 1 samplers scored" in first.stdout
    with chosen.open() as file:
        (best,) = csv.DictReader(file)
    assert (best["experiment"], best["sampler"], best["chosen"]) == ("digit", "md", "True")
    assert tune(config, "crossmatrix/digit").stdout == first.stdout
    assert chosen.read_text().count("\n") == 2


def test_invalid_names_and_scales_are_one_line(tune):
    quick = "scale: quick\ndata: embedded\npapers: [crossmatrix]\n"
    for config, name, line in (
        (quick, "crossmatrix/digits", "'crossmatrix/digits' has no tuning; did you mean"),
        (
            "papers: [crossmatrix]\n",
            "crossmatrix/digit",
            "scale: best computes no runs; use scale=paper, or reduced\n",
        ),
    ):
        wrong = tune(config, name)
        assert wrong.exit_code == 2
        assert wrong.stderr.startswith(f"fedsampling: {line}")
        assert len(wrong.stderr.splitlines()) == 1
