"""How the papers use the datasets."""

from pathlib import Path

import pytest

from fedsampling.experiments.dataset_uses import dataset_uses
from fedsampling.workflow.plan import plan

PAPERS = Path(__file__).parents[2] / "papers"


@pytest.fixture(scope="module")
def uses_by_dataset():
    keys = ["chen2022optimal", "fraboni2022general", "harshvardhan2025latency"]
    settings = {"scale": "quick", "data": "embedded", "papers": [*keys, "rizk2022importance"]}
    return dataset_uses(plan(settings, PAPERS).jobs.values())


def test_every_dataset_is_listed_and_runs_without_data_are_skipped(uses_by_dataset):
    assert {"cookup", "ijcnn1", "nycmesh", "regression"} <= set(uses_by_dataset)
    assert "weights" not in {use.experiment for uses in uses_by_dataset.values() for use in uses}


def test_samplers_and_blocks_share_a_use(uses_by_dataset):
    use, *further_uses = uses_by_dataset["ijcnn1"]
    assert (use.experiment, use.cases, use.files) == ("classification", ("base",), ("ijcnn1",))
    assert further_uses
    assert all(further.settings != use.settings for further in further_uses)
    assert use.settings["smallest"] == 79
    assert "name" not in use.settings


def test_cases_with_other_data_are_separate_uses(uses_by_dataset):
    sets = [use for use in uses_by_dataset["cookup"] if use.experiment == "sets"]
    assert [use.cases for use in sets] == [("dataset1",), ("dataset2",), ("dataset3",)]
    assert [use.settings["set"] for use in sets] == [1, 2, 3]
    # Studies without detail are left out.
    assert {use.experiment for use in uses_by_dataset["nycmesh"]} == {"delays"}
