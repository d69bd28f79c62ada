"""The factorial design: its cells, the comparison with MD, and the effects."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fedsampling
from fedsampling.experiments.simulations.simulation import Where
from papers.crossmatrix import figures_factors as figures
from papers.crossmatrix import simulations


def factors(name="md", **settings):
    sampler = fedsampling.scheme(name, m=3, **settings)
    small = {"n": 12, "m": (3, 5), "samples": 8, "tests": 60, "rounds": 8}
    return simulations.Factors(kind="factors", sampler=sampler, **small)


def test_every_combination_is_a_cell():
    assert len(simulations.CELLS) == len({*simulations.CELLS}) == 2**5 * 3


def test_levels_of_a_factor_share_their_random_numbers():
    mixed, skewed = (factors().clients(labels, 1) for labels in (0, 1))
    np.testing.assert_array_equal(mixed.n_samples, skewed.n_samples)
    equal = factors().clients(0, 0)
    assert np.ptp(equal.n_samples) == 0
    assert mixed.p.max() > 2 * equal.p.max()
    shares = [(c.label_counts().max(1) / c.n_samples).mean() for c in (mixed, skewed)]
    assert shares[1] > shares[0] + 0.2


def test_a_cell_decides_clients_delays_work_and_presence():
    cell = ("mixed", "equal", "many", "spread", "long", "label")
    _, training = factors().training(cell, fedsampling.scheme("power_of_choice", m=1, d=2))
    assert (training.sampler.m, training.sampler.d) == (5, 10)
    assert training.work.steps == 10
    assert training.delays.computation == (5.0, 200.0)
    assert training.availability.by == "label"


def run(scores, seconds=1.0):
    rounds = np.arange(len(scores), dtype=float)
    smooth = pd.Series(scores).rolling(3).mean()
    return pd.DataFrame(
        {"score": scores, "smooth": smooth, "rounds": rounds}
        | {"bits": 10 * rounds, "seconds": seconds * rounds}
    )


def test_a_run_is_compared_with_mds_run_of_the_same_seed():
    md = run([0, 0, 0, 0.6, 0.6, 0.6, 1, 1, 1])  # half way in round 5, 95 % in round 8
    fast = run([0, 1, 1, 1, 1, 1, 1, 1, 1], seconds=4.0)  # in rounds 2 and 3
    result = simulations.compared(fast, md)
    assert result["rounds"] == pytest.approx(np.log([5 / 2, 8 / 3]).mean())
    assert result["seconds"] == pytest.approx(np.log([5 / 8, 8 / 12]).mean())
    assert (result["met"], result["final"]) == (1.0, 0.0)
    never = simulations.compared(run([0.0] * 9), md)
    assert never["rounds"] == pytest.approx(np.log([5 / 16, 8 / 16]).mean())
    assert (never["met"], never["final"]) == (0.0, -1.0)


def test_md_is_level_with_itself_and_some_samplers_stay_away(monkeypatch):
    cells = tuple(cell for cell in simulations.CELLS if cell[:3] == ("skewed", "equal", "few"))[::5]
    monkeypatch.setattr(simulations, "CELLS", cells)
    where = Where(cache=Path("unused"), mirror=None)
    (table,) = factors().simulate("generated", [1], where).tables
    assert sorted(table["at"].unique()) == [*range(len(cells))]
    assert table[table["metric"] == "rounds"]["value"].abs().max() == 0
    (table,) = factors("clustered_size").simulate("generated", [1], where).tables
    always = [index for index, cell in enumerate(cells) if cell[-1] == "always"]
    assert sorted(table["at"].unique()) == always


def test_an_effect_is_the_ratio_between_cells_that_differ_in_one_property():
    place = {name: index for index, name in enumerate(simulations.FACTORS)}
    gain = {"labels": np.log(2), "delays": np.log(0.5)}
    values = [
        sum(
            log * (cell[place[factor]] == simulations.FACTORS[factor][1])
            for factor, log in gain.items()
        )
        for cell in simulations.CELLS
    ]
    wide = pd.DataFrame([values], index=["oort"])
    artefact = figures.effects({"rounds": wide}).set_index(["factor", "level"])
    assert artefact.loc[("labels", "skewed"), "effect"] == pytest.approx(2)
    assert artefact.loc[("delays", "spread"), "effect"] == pytest.approx(0.5)
    assert artefact.loc[("work", "long"), "effect"] == pytest.approx(1)
    assert artefact["counts"].sum() == 2
    assert artefact.loc[("presence", "label"), "pairs"] == 32
