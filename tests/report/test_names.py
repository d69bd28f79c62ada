"""One table of display names serves pages and figures."""

import pytest

from fedsampling.report.names import NAMES, display_name
from fedsampling.samplers.scheme import Scheme


def test_every_sampler_has_a_name_and_no_two_share_one():
    members = Scheme.members().items()  # other tests may have added some
    assert set(NAMES) == {key for key, kind in members if kind.code.startswith("fedsampling.")}
    assert len({name.title for name in NAMES.values()}) == len(NAMES)


@pytest.mark.parametrize(
    ("key", "title"),
    [
        ("available", "Optimal client sampling (OCS)"),
        ("oort-m-5", "Oort: guided participant selection, m 5"),
        ("my_sampler", "my_sampler"),
    ],
)
def test_an_entry_with_settings_or_of_a_user_has_a_name_too(key, title):
    assert display_name(key).title == title
