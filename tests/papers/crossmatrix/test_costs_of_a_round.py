"""Bits and seconds of a round, from made-up charges."""

from papers.crossmatrix.figures_costs import round_costs

from fedsampling.experiments.papers import load_paper

from ..shared import PAPERS, made_up

PAPER = load_paper("crossmatrix", PAPERS)
AT = [1, 2, 6]  # the last row holds the charges of four rounds


def charged(**charges):
    return {name: (AT, values) for name, values in charges.items()}


def test_a_round_costs_its_share_of_charges_and_first_requests_are_apart():
    md = charged(model_bits=[320.0, 320.0, 1280.0], seconds=[2.0, 2.0, 8.0])
    divfl = charged(
        model_bits=[320.0, 320.0, 1280.0],
        observation_bits=[6400.0, 320.0, 1280.0],
        seconds=[2.0, 2.0, 8.0],
        asking_seconds=[50.0, 0.0, 0.0],
    )
    settings = {
        "title": "Digits",
        "samplers": {"md": {"name": "md", "m": 2}, "divfl": {"name": "divfl", "m": 2}},
        "cases": {"default": {}},
        "settings": {},
    }
    runs = [("default", "md", 0, md), ("default", "divfl", 0, divfl)]
    artefact = round_costs({"bench_digits": made_up(runs, settings)}, PAPER)
    rows = artefact.data.set_index("scheme")
    assert rows.loc["md", ["bits", "seconds", "bits_once"]].tolist() == [320, 2, 0]
    assert rows.loc["divfl", ["bits", "bits_once", "seconds_once"]].tolist() == [640, 6080, 50]
    table = artefact.table.set_index("sampler")
    assert table.loc["MD"].tolist() == ["models", "0.320 kbit, 2.00 s"]
    assert table.loc["DivFL", "sends"] == "models and gradients"
    assert "first round: 6.08 kbit, 50.0 s more" in table.loc["DivFL"].iloc[1]
    assert table.columns[1] == "Digits, 5 parameters"
