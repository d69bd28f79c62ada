"""Numbers that a paper prints for a figure, next to ours."""

import pytest

from fedsampling.evidence.verdicts import Claim, Interval
from fedsampling.experiments.papers import Reported
from fedsampling.report.formats import printed_numbers, rounding


@pytest.mark.parametrize(
    ("value", "unit", "half"),
    [
        ("23.1", "dB", "± 0.05"),
        ("1.22e-2", "", "± 5e-05"),
        ("85", "%", "± 0.5"),
        ("100", "", ""),  # a count is exact
        ("2^9·10^8", "bits", ""),
        ("N/A", "s", ""),
    ],
)
def test_rounding_is_half_a_unit_of_the_last_digit(value, unit, half):
    assert rounding(value, unit) == half


def test_numbers_of_an_artefact_come_with_ours_where_a_claim_compares_them():
    reports = [
        Reported(artefact="figure1", quantity="clients", value="100", where="section 6"),
        Reported(
            artefact="figure1", claim="c1", quantity="gap", value="23.1", unit="dB", where="V-A"
        ),
        Reported(artefact="figure2", quantity="other", value="1", where="section 6"),
        Reported(artefact="figure1", claim="c9", quantity="not judged", value="2", where="VI"),
    ]
    drawn = (
        Interval("gap", "dB", 8.6, 8.5, 8.8, paper=23.1),
        Interval("other", "dB", 1.0, 0.0, 2.0, paper=5.0),
    )
    claim = Claim("c1", "", "figure1", "", "", "", "partly reproduced", "", "", drawn=drawn)
    numbers = printed_numbers("figure1", reports, [claim])
    assert [(number.row.quantity, number.claim, number.ours) for number in numbers] == [
        ("gap", "c1", "8.60 [8.50, 8.80]"),
        ("clients", "", ""),
        ("not judged", "", ""),
    ]
