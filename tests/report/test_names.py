"""One table of display names serves pages and figures, and the page of all samplers."""

import pytest
from tests.shared import ROOT

from fedsampling.learning.training.costs import INFORMATION_COSTS
from fedsampling.report.names import display_name, is_shipped, page, run_label
from fedsampling.samplers.protocol.base import CONVEX_NEEDS, NETWORK_NEEDS, Scheme


def test_every_sampler_has_a_title_and_no_two_share_one():
    shipped = [member for key, member in Scheme.members().items() if is_shipped(key)]
    assert all(member.title != member.named for member in shipped)
    assert len({member.title for member in shipped}) == len(shipped)


def test_an_entry_with_settings_or_of_a_user_has_a_name_too():
    assert display_name("oort-m-5").title == "Oort: guided participant selection, m 5"
    assert display_name("my_sampler").title == "my_sampler"


@pytest.mark.parametrize(
    ("label", "sampler", "name"),
    [
        ("submodular", "delayhet_submodular", "DelayHetSubmodular"),
        ("sampling-start", "delayhet_sampling", "DelayHetSampling, start"),
        ("m-5", "delayhet_sampling", "DelayHetSampling, m 5"),
        ("clustered", "clustered_size", "Clustered, size"),
        ("arccos", "clustered_similarity", "Clustered, similarity, arccos"),
        ("fedavg", "uniform", "FedAvg"),
        ("fedavg", "fedavg", "FedAvg, absent keep the model"),
        ("md-4", "md", "MD, 4"),
        ("approximate-3", "approximate", "approximate, 3"),
        ("mine", "mine", "mine"),
    ],
)
def test_the_explorer_names_the_sampler_and_its_settings(label, sampler, name):
    assert run_label(label, sampler) == name


def test_the_page_is_what_the_verb_prints():
    document = ROOT / "docs/schemes.md"
    text = document.read_text(encoding="utf-8")
    assert text == page(), "run: fedsampling schemes > docs/schemes.md"
    assert text.count("\n| [`") == len(Scheme.members())


def test_every_observation_has_its_cost():
    assert INFORMATION_COSTS.keys() == NETWORK_NEEDS | CONVEX_NEEDS
