"""Functions and samplers of a user cannot change the data that they reach."""

import numpy as np
import pytest
import torch
from tests.samplers.guests.hostile import MD, SHORT, sampler

import fedsampling as fs
from fedsampling.adapters.cohort import Cohort
from fedsampling.base.errors import InputError

WRITES = ("data.x *= 2", "data.y[0] = 1", "data.x_test.fill(0)", "data.y_test.sort()",
          "data.p[:] = 1", "data.start[0] = 1", "data.n_samples[0] = 1", "seconds.fill(9)",
          "available.fill(False)")  # fmt: skip


@pytest.mark.parametrize("statement", WRITES)
def test_functions_cannot_change_the_data_that_they_reach(data, statement):
    def write(*_, **__):
        exec(statement, {"data": data, **arrays})

    def loss(outputs, targets):
        write()
        return torch.nn.functional.cross_entropy(outputs, targets, reduction="none")

    writers = ({}, {"loss": loss}, {"metrics": {"mine": lambda *_: write() or 1}},
               {"on_round": write})  # fmt: skip
    values = []
    for writer in writers:
        arrays = {"seconds": np.arange(1.0, 9), "available": np.ones((3, 8), bool)}
        options = {"delays": arrays["seconds"], "availability": arrays["available"]}
        state = data.x.copy(), data.p.copy()
        try:
            table = fs.train(data, MD, **SHORT, **options, **writer)
        except (InputError, ValueError) as error:
            assert "is read-only" in str(error)  # noqa: PT017
        else:
            values.append(table[table["metric"] != "mine"]["value"].to_numpy())
        assert np.array_equal(data.x, state[0])
        assert np.array_equal(data.p, state[1])
    for other in values[1:]:
        np.testing.assert_allclose(other, values[0], rtol=1e-6)


def test_other_frameworks_have_the_same_boundary():
    own = sampler("one run", "weigh", "clients[0] = 0", gradients=False)
    cohort = Cohort(own, np.arange(4, 12), 3, delays=np.ones(8))
    clients = cohort.select(0, losses=np.ones(8))
    with pytest.raises(InputError, match=r"in weigh: .*is read-only; .*: copy it first"):
        cohort.weigh(np.ones((len(clients), 3), np.float32), np.ones(len(clients)))
