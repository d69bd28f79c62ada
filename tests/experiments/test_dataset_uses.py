"""How the papers use the datasets."""

import pytest
from tests.shared import PAPERS

from fedsampling.experiments.dataset_uses import dataset_uses
from fedsampling.workflow.plan import plan


def test_only_cases_with_other_data_are_another_use_of_a_dataset():
    keys = ["chen2022optimal", "harshvardhan2025latency", "rizk2022importance"]
    settings = {"scale": "quick", "data": "embedded", "papers": keys}
    uses = dataset_uses(plan(settings, PAPERS).jobs.values())
    use, *further_uses = uses["ijcnn1"]
    assert (use.experiment, use.cases, use.files) == ("classification", ("base",), ("ijcnn1",))
    assert further_uses
    assert all(further.settings != use.settings for further in further_uses)
    assert use.settings["smallest"] == 79
    assert "name" not in use.settings
    sets = [use for use in uses["cookup"] if use.experiment == "sets"]
    assert {use.cases: use.settings["set"] for use in sets} == {
        (f"dataset{number}",): number for number in (1, 2, 3)
    }
    assert {use.experiment for use in uses["nycmesh"]} == {"delays"}  # not studies without detail


@pytest.mark.parametrize(
    ("job", "read"),
    [
        ("chen2022optimal/sets/dataset1/none/block-0", ["cookup"]),
        ("chen2022optimal/writers/dataset1/none/block-0", ["mnist", "qmnist"]),
        (
            "harshvardhan2025latency/delays/base/none/block-0",
            ["nycmesh", "nycmesh/network-map", "async_hfl_delays"],
        ),
    ],
)
def test_official_files_of_everything_that_a_job_reads_are_fetched(job, read):
    for data, files in (("official", read), ("embedded", [])):
        settings = {"scale": "quick", "papers": [job.partition("/")[0]], "shipped": False}
        assert plan(settings | {"data": data}, PAPERS).datasets(job) == files
