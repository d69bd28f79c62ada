"""Papers: leaving out experiments, and finding functions and reported numbers."""

from shutil import copytree

import pytest
from tests.shared import PAPERS

from fedsampling.base.errors import InputError
from fedsampling.experiments import config as configuration
from fedsampling.experiments import paper_modules, papers
from fedsampling.experiments.selecting import load_papers, without
from fedsampling.experiments.specs import jobs


def loaded(key, **settings):
    """Return a paper, and the experiments that have jobs."""
    config = configuration.parse({"papers": [key], **settings})
    paper = load_papers(config, PAPERS)[key]
    return paper, {job.experiment for job in jobs(paper, config)}


def test_null_leaves_out_an_experiment_with_its_artefacts():
    key = "rizk2022importance"
    paper, planned = loaded(key, overrides={key: {"regression": None}})
    assert "regression" not in paper.experiments
    assert not {"figure1", "probabilities"} & set(paper.artefacts)
    assert {"figure1", "probabilities"} <= set(paper.omitted)
    assert paper.left_out == {"regression": "left out"}
    assert {"c1", "c5"} <= set(paper.claims)  # c1 will say that it was not run
    assert planned == set(paper.experiments)


def test_overrides_of_experiments_that_are_not_selected_have_no_effect():
    """Those of experiments and papers that do not exist are errors."""
    key, other = "rizk2022importance", "chen2022optimal"
    overrides = {key: {"regression": {"seeds": 1}, "few": None}, other: {"femnist": None}}
    config = {"papers": None, "experiments": [f"{key}/gradient"], "overrides": overrides}
    paper, planned = loaded(key, **config)
    assert {*paper.experiments} == planned == {"gradient"}
    overrides |= {key: {"regresion": {"seeds": 1}}, "chen": {}}
    with pytest.raises(InputError) as error:
        loaded(key, **config)
    assert [line.partition(";")[0] for line in error.value.lines] == [
        "overrides.chen: not among the selected papers",
        f"overrides.{key}.regresion: no such experiment",
    ]


def test_a_partial_artefact_keeps_its_remaining_experiments():
    paper = papers.load_paper("harshvardhan2025latency", PAPERS)
    partial = without(paper, {"femnist": "why", "dirichlet_cifar10": "why"})
    left_out = {*paper.artefacts["table1"].experiments} - {*partial.artefacts["table1"].experiments}
    assert left_out == {"femnist", "dirichlet_cifar10"}
    assert "table3c" in partial.omitted  # nothing of it is left
    assert {"c1", "c8"} <= set(partial.claims)  # c8 will say that it was not run


def test_null_at_a_scale_leaves_an_experiment_out_at_that_scale_only():
    for scale, included in (("reduced", False), ("paper", True)):
        paper, planned = loaded("harshvardhan2025latency", scale=scale)
        assert ("links_model" in paper.experiments) == ("links_model" in planned) == included


@pytest.mark.parametrize("key", sorted(path.parent.name for path in PAPERS.glob("*/paper.yaml")))
def test_every_artefact_and_claim_has_its_function(key):
    paper = papers.load_paper(key, PAPERS)
    assert paper_modules.defining_modules(paper.folder, "figures", *paper.artefacts)
    assert paper_modules.defining_modules(paper.folder, "claims", *paper.claims) or not paper.claims


def test_a_missing_function_or_number_suggests_the_nearest():
    paper = papers.load_paper("fraboni2021clustered", PAPERS)
    with pytest.raises(InputError, match=r"no figures\*.py has a function 'figure11'; did you"):
        papers.draw_function(paper, "figure11")
    with pytest.raises(InputError, match=r"reported.csv: no id 'least_digit'; did you mean"):
        paper.reported("least_digit")


def test_two_rows_of_reported_numbers_with_one_id_are_refused(tmp_path):
    file = copytree(PAPERS / "rizk2022importance", tmp_path / "rizk2022importance") / "reported.csv"
    file.write_text("".join([file.read_text(), "gap,figure1,c1,a gap,1.0,dB,nowhere\n"]))
    with pytest.raises(InputError, match="reports: duplicate 'gap'; remove one"):
        papers.load_paper("rizk2022importance", tmp_path)


def test_experiments_of_one_claim_are_confirmed_by_one_plan(tmp_path):
    folder = copytree(PAPERS / "fraboni2021clustered", tmp_path / "fraboni2021clustered")
    text = (folder / "paper.yaml").read_text()
    confirmed = text.index("\nconfirm:")
    changed = text[:confirmed] + text[confirmed:].replace("looks: [10, 29]", "looks: [10, 30]", 1)
    (folder / "paper.yaml").write_text(changed)
    with pytest.raises(
        InputError, match=r"confirm: the experiments of c12 .* must share their looks"
    ):
        papers.load_paper("fraboni2021clustered", tmp_path)


def test_a_paper_is_linked_by_its_doi():
    paper = papers.load_paper("fraboni2021clustered", PAPERS)
    content = paper.model_dump(exclude={"folder", "reports"})
    assert papers.Paper(**content | {"url": "doi:10.1109/1.2"}).url == "https://doi.org/10.1109/1.2"
    with pytest.raises(ValueError, match="is no link; must begin with https://"):
        papers.Paper(**content | {"url": "javascript:alert(1)"})


@pytest.mark.usefixtures("forget_own_files")
def test_a_paper_is_read_from_any_folder_but_not_two_of_one_name(tmp_path):
    mine = copytree(PAPERS / "fraboni2021clustered", tmp_path / "fraboni2021clustered")
    config = configuration.parse({"papers": [str(mine)]})
    (paper,) = load_papers(config, PAPERS).values()
    assert paper.folder == mine
    assert papers.draw_function(paper, "figure1").__name__ == "figure1"
    with pytest.raises(InputError, match="two folders are called 'fraboni2021clustered'"):
        papers.draw_function(papers.load_paper("fraboni2021clustered", PAPERS), "figure1")


@pytest.mark.usefixtures("forget_own_files")
def test_chosen_cases_are_read_from_the_file_next_to_the_papers(tmp_path):
    copytree(PAPERS / "crossmatrix", tmp_path / "crossmatrix")
    (tmp_path / "crossmatrix/chosen.csv").write_text(
        "experiment,sampler,case,step,score,chosen\n"
        "digit,md,step-0.1,0.1,0.9,True\ndigit,md,step-0.3,0.3,0.8,False\n"
    )
    assert papers.load_paper("crossmatrix", tmp_path).chosen == {"digit": {"md": "step-0.1"}}
