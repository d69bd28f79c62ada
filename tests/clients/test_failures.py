"""Which selected clients report, and how long the server waits."""

import numpy as np
import pytest
from tests.shared import line_of

from fedsampling.base.records import check
from fedsampling.base.streams import Draws, uniforms
from fedsampling.clients.delays import Delays, LogNormalDelay, UniformDelay
from fedsampling.clients.failures import Failures, Reporting, awaited, draw
from fedsampling.clients.recorded import DelaysByRound, RecordedRounds

NAMES = np.arange(3)


def of(record):
    record = record if isinstance(record, dict) else {"probability": record}
    return check(Failures, record, "failures.")


def test_the_server_waits_for_all_but_at_most_until_the_deadline():
    run = np.array([0, 0, 0, 1, 1])
    sends = np.array([True, False, True, True, True])
    seconds = np.array([2.0, 5.0, 9.0, 7.0, 1.0])
    outcome = awaited(run, sends, seconds, 3, deadline=7.0, first=None)
    assert outcome.reported.tolist() == [True, False, False, True, True]
    assert outcome.end.tolist() == [7.0, 7.0, 0.0]  # nobody was selected in the third run
    assert outcome.wasted_seconds.tolist() == [5.0 + 7.0, 0.0, 0.0]
    patient = awaited(run, sends, seconds, 3, deadline=np.inf, first=None)
    assert patient.reported.tolist() == sends.tolist()
    assert patient.end.tolist() == [9.0, 7.0, 0.0]


def test_the_first_reports_end_the_round():
    run = np.array([0, 0, 0, 0, 1, 1])
    sends = np.array([True, False, True, True, True, False])
    seconds = np.array([8.0, 1.0, 3.0, 4.0, 2.0, 6.0])
    outcome = awaited(run, sends, seconds, 2, deadline=np.inf, first=2)
    assert outcome.reported.tolist() == [False, False, True, True, True, False]
    assert outcome.end.tolist() == [4.0, 6.0]  # the second run waits for its only other client
    assert outcome.wasted_seconds.tolist() == [4.0 + 1.0, 6.0]


def test_of_updates_at_the_same_time_those_selected_first_count():
    outcome = awaited(np.zeros(4, int), np.ones(4, bool), np.full(4, 2.0), 1, np.inf, first=3)
    assert outcome.reported.tolist() == [True, True, True, False]


def test_failures_depend_on_seed_round_and_client_only():
    reporting = of([0.2, 0.5, 0.8]).reporting(NAMES, rounds=4)
    run, client = np.array([0, 0, 1, 1]), np.array([2, 0, 1, 1])
    reported = draw(reporting, run, client, Draws(np.array([7, 9]), 3)).reported
    alone = draw(reporting, run[2:] * 0, client[2:], Draws(np.array([9]), 3)).reported
    assert reported[2:].tolist() == alone.tolist()
    assert reported[2] == reported[3]  # a client selected twice
    u = uniforms(np.array([7, 7, 9]), "failures", 3, client[:3], n=1)[:, 0]
    assert reported[:3].tolist() == (u >= np.array([0.8, 0.2, 0.5])).tolist()


def test_a_trace_of_reports_may_leave_rounds_without_any():
    trace = np.array([[1, 0, 1], [0, 0, 0]], bool)
    reporting = Failures(reports=RecordedRounds.holding(trace)).reporting(NAMES, rounds=2)
    for t in range(2):
        outcome = draw(reporting, np.zeros(3, int), NAMES, Draws(np.array([1]), t))
        assert outcome.reported.tolist() == trace[t].tolist()
    assert reporting.chance is None


@pytest.mark.parametrize(
    "noise", [None, LogNormalDelay(np.array([1.0, 2.0, 0.0]), 0.5), UniformDelay(1, 3)]
)
def test_known_chances_are_the_shares_of_rounds_with_a_report(noise):
    delays = Delays(np.array([0.5, 1.0, 3.0]), noise)
    reporting = of({"probability": [0.1, 0.4, 0.2], "deadline": 3.2}).reporting(NAMES, 1, delays)
    rounds = 4000
    run, client = np.repeat(np.arange(rounds), 3), np.tile(NAMES, rounds)
    reported = draw(reporting, run, client, Draws(np.arange(rounds), 0)).reported
    share = reported.reshape(rounds, 3).mean(0)
    np.testing.assert_allclose(share, reporting.chance, atol=4.5 * 0.5 / np.sqrt(rounds))


def test_chances_are_unknown_if_arrivals_or_recorded_delays_decide():
    delays = Delays(np.ones(3))
    assert of({"first": 2}).reporting(NAMES, 1, delays).chance is None
    recorded = DelaysByRound(np.ones(3), by_round=np.ones((1, 3)))
    assert of({"deadline": 2}).reporting(NAMES, 1, recorded).chance is None
    assert of(0.25).reporting(NAMES, 1, recorded).chance.tolist() == [0.75] * 3
    assert Reporting(np.zeros(3)).chance.tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (0, "no effect; set probability above 0, reports, deadline or first, or remove failures"),
        ({"probability": [0, 0]}, "no effect; set probability above 0"),
        (1, "failures.probability: 1 is out of range; must be less than 1"),
        ({"deadline": -1}, "failures.deadline: -1 is out of range; must be more than 0"),
        ({"first": 0}, "failures.first: 0 is out of range; must be at least 1"),
        ({"deadlin": 1}, "failures.deadlin: unknown key; did you mean 'deadline'?"),
    ],
)
def test_settings_that_are_invalid_or_without_effect_are_refused(record, line):
    assert line in line_of(of, record)


def test_settings_must_fit_the_clients():
    line = line_of(of({"probability": [0.1, 0.2]}).reporting, NAMES, 1)
    assert line.startswith("failures: probability: 2 values for 3 clients; give one, or one for")
    assert "first: no effect on 3 clients" in line_of(of({"first": 3}).reporting, NAMES, 1)
