"""The number of slots that a job trains at once, in the metadata of its runs."""

from dataclasses import replace

from tests.experiments.simulations.test_availability import network
from tests.helpers.small_runs import NOWHERE

from fedsampling.learning.models import devices
from fedsampling.learning.models.operations import step_bytes


def test_a_job_notes_how_many_slots_it_trained_at_once(monkeypatch):
    settings, where = network({"rounds": 1}), replace(NOWHERE, notes={})
    size = step_bytes(settings.model.build((28, 28), 10), (28, 28), settings.work.batch)
    monkeypatch.setattr(devices, "STACK_BYTES", 3.5 * size)
    settings.simulate("embedded", [0], where)
    assert where.notes == {"stack": 3}
