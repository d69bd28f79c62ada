import pytest

from fedsampling.workflow.confirm import drawn_by_seed

TRAINED = {"rounds": 10, "dataset": {"name": "mnist"}}
CONSTANT = {"name": "synthetic", "speed": [5.0, 5.0], "computation": [1.0, 1.0]}


@pytest.mark.parametrize(
    ("settings", "worlds", "drawn"),
    [
        (TRAINED, False, "training"),
        (TRAINED, True, "clients, training"),
        (TRAINED | {"delays": {"name": "synthetic"}}, False, "training"),
        (TRAINED | {"delays": {"name": "synthetic"}}, True, "clients, delays, training"),
        (TRAINED | {"delays": CONSTANT}, True, "clients, training"),
        (TRAINED | {"availability": {"name": "markov"}}, True, "clients, availability, training"),
        ({"dataset": {"name": "shakespeare"}}, False, "clients"),
        ({"clients": 100, "draws": 3}, False, "problems"),
    ],
)
def test_what_a_fresh_seed_draws_follows_from_the_settings(settings, worlds, drawn):
    whole = {"settings": settings, "cases": {"base": None}, "worlds": worlds}
    varied = {key: value for key, value in settings.items() if key in ("delays", "availability")}
    general = {key: value for key, value in settings.items() if key not in varied}
    by_case = {"settings": general, "cases": {"plain": None, "varied": varied}, "worlds": worlds}
    assert ", ".join(drawn_by_seed(whole)) == ", ".join(drawn_by_seed(by_case)) == drawn
