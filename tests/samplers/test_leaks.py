"""What the server learns of a client under each sampler."""

import pytest

from fedsampling.samplers.leaks import BESIDE_UPDATES, LEARNED, SUMS_SUFFICE, learned, secure_sums
from fedsampling.samplers.protocol.base import CONVEX_NEEDS, NETWORK_NEEDS, Scheme, scheme


def test_every_information_has_a_name():
    assert LEARNED.keys() == NETWORK_NEEDS | CONVEX_NEEDS
    assert LEARNED.keys() >= BESIDE_UPDATES


@pytest.mark.parametrize(
    ("name", "of_a_client", "sums"),
    [
        ("md", "nothing", "yes"),
        ("tifl", "speed", "yes"),
        ("osmd", "norm", "for updates"),
        ("fedentopt", "label counts", "for updates"),
        ("oort", "loss, speed", "for updates"),
        ("fedvarp", "update", "no"),
        ("stratified", "nothing or most frequent label", "yes or for updates"),
        ("flanp", "speed or gradient, speed", "yes or no"),
    ],
)
def test_what_the_server_learns(name, of_a_client, sums):
    member = Scheme.members()[name]
    assert (learned(member), secure_sums(member)) == (of_a_client, sums)


def test_chens_algorithm_2_needs_only_sums_of_norms():
    member = Scheme.members()["available"]
    assert learned(member) == "nothing or sum of the norms or norm"
    assert secure_sums(member) == "yes or for updates"


def test_settings_by_which_sums_suffice_exist():
    for name, settings in SUMS_SUFFICE.items():
        scheme(name, available=12, m=3, **settings)
