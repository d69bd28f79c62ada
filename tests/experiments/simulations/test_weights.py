"""Monte Carlo estimates of aggregation weights: complete, with honest errors, reproducible."""

import numpy as np
import pandas as pd
import pytest
from tests.helpers.small_runs import tables, wide

from fedsampling.experiments.simulations import weights

SCHEMES = ["full", "md", "uniform", "poisson", "binomial", "clustered", "optimal"]
SCALARS = ["sigma", "alpha", "variance_of_sum", "clients_mean", "clients_variance"]


def compare(clients, importance, m, scheme, draws, seed):
    settings = {"clients": clients, "importance": importance, "m": m, "draws": draws}
    return tables("weights", seeds=(seed,), sampler={"name": scheme}, **settings)[0]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_estimates_lie_within_their_errors_of_the_closed_forms(scheme):
    run = wide(compare(10, "linear", 5, scheme, 20_000, 7))
    compared = 0
    for name in ["mean", "variance", *SCALARS]:
        difference = (run[name] - run[f"closed_{name}"]).abs().dropna()
        compared += len(difference)
        # Five standard errors for 25 numbers a scheme: false alarms have probability 1e-4 in all.
        assert (difference <= 5 * run[f"{name}_se"].dropna() + 1e-12).all(), name
    assert compared == 20 + len(SCALARS)  # mean and variance of ten clients


def test_standard_errors_describe_the_scatter_of_independent_runs():
    runs = [wide(compare(8, "linear", 3, "md", 400, k)) for k in range(200)]
    for name in ("sigma", "alpha", "clients_mean", "clients_variance"):
        values = np.array([run.loc[-1, name] for run in runs])
        claimed = np.array([run.loc[-1, f"{name}_se"] for run in runs]).mean()
        # The scatter of 200 values is known to 5 % (one standard error).
        assert values.std(ddof=1) == pytest.approx(claimed, rel=0.25)


def test_errors_do_not_depend_on_where_blocks_end(monkeypatch):
    one_block = compare(5, "equal", 2, "md", 999, 3)
    monkeypatch.setattr(weights, "BLOCK", 100)
    several_blocks = compare(5, "equal", 2, "md", 999, 3)
    pd.testing.assert_frame_equal(one_block, several_blocks, rtol=1e-9, atol=1e-12)
