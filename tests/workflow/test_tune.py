"""``fedsampling tune``: trials on a holdout, their scores in chosen.csv, then the chosen cases."""

import csv
import shutil

import pytest
from click.testing import CliRunner
from tests.processes import complaint_of
from tests.shared import PAPERS

from fedsampling.cli import main
from fedsampling.workflow.tune import COLUMNS, merged

OTHER = "rizk2022importance"
HEADER = ",".join(COLUMNS)


def row(experiment, sampler, case, score, chosen):
    cells = (experiment, sampler, case, "0.1", str(score), str(chosen))
    return dict(zip(COLUMNS, cells, strict=True))


def test_rows_of_tuned_samplers_are_merged_into_the_file(tmp_path):
    """They replace rows in place, unless they are equal up to rounding of published runs."""
    file = tmp_path / "chosen.csv"
    before = ["a,md,x,0.1,0.5,True", "b,md,x,0.1,0.6815789473684211,True", "b,md,y,0.1,0.25,False"]
    file.write_text("\n".join([HEADER, *before, "c,md,x,0.1,1.0,True"]) + "\n")
    equal, changed = row("b", "md", "x", 0.6815789, True), row("b", "md", "y", 0.75, False)
    after = [*before[:2], "b,md,y,0.1,0.75,False", "c,md,x,0.1,1.0,True"]
    assert merged(file, [equal, changed]).splitlines() == [HEADER, *after]
    after.insert(3, "b,new,x,0.1,0.75,True")
    file.write_text(merged(file, [equal, changed]))
    assert merged(file, [row("b", "new", "x", 0.75, True)]).splitlines() == [HEADER, *after]


@pytest.fixture
def tune(tmp_path, monkeypatch, forget_own_files):
    """Tune with a configuration in a folder that has a copy of the cross matrix."""
    monkeypatch.chdir(tmp_path)
    for key in ("crossmatrix", OTHER):
        shutil.copytree(PAPERS / key, tmp_path / "papers" / key)

    def run(config, name):
        (tmp_path / "config.yaml").write_text(config)
        return CliRunner().invoke(main, ["tune", name])

    return run


def test_one_command_goes_from_trials_to_the_chosen_cases(tmp_path, tune):
    chosen = tmp_path / "papers" / "crossmatrix" / "chosen.csv"
    chosen.unlink()
    config = "scale: quick\ndata: embedded\nshipped: false\noverrides:\n"
    config += f"  {OTHER}: {{few: null}}\n"  # without effect on the selected experiments
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
    best = "scale: best computes no runs; use scale=paper, or reduced"
    for config, name, line in (
        (quick, "crossmatrix/digits", "'crossmatrix/digits' has no tuning; did you mean"),
        ("papers: [crossmatrix]\n", "crossmatrix/digit", best),
    ):
        assert complaint_of(tune(config, name)).startswith(line)
