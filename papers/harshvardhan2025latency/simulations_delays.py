"""Delays of a population of clients, drawn over some rounds.

Each seed draws a population (shadowing and computation, or link speeds) and its rounds.  On
official data, the published delays of :mod:`fedsampling.clients.delays.reference` are added.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field, field_validator

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.records import Positive
from fedsampling.clients.delays.delay_model import DelayModel
from fedsampling.clients.delays.delays import Delays
from fedsampling.clients.delays.nycmesh import Nycmesh
from fedsampling.experiments.simulations.simulation import (
    NoSampler,
    Progress,
    Simulated,
    Simulation,
    Where,
    tidy,
)

if TYPE_CHECKING:
    import pandas as pd

    from fedsampling.clients.delays.radio.mesh import Mesh
    from fedsampling.clients.delays.reference import Reference

Columns = dict[str, tuple[Ints, Array]]

LEVELS = (0.01, 0.1, 0.5, 0.9, 0.99)
THRESHOLD = 1000.0  # seconds: the paper says that a tenth of the clients take longer


class DelayDraws(Simulation, name="delays"):
    """Draw the seconds of each client; a run's seed draws the population and its rounds."""

    step_seconds: ClassVar[float] = 0.002

    dataset: DelayModel
    rounds: Positive = Field(description="rounds drawn of each client")
    detail: bool = Field(True, description="keep every client's numbers, not summaries alone")
    sampler: NoSampler

    @field_validator("dataset")
    @classmethod
    def _complete(cls, dataset: DelayModel) -> DelayModel:
        if missing := dataset.lacking():
            raise ValueError(f"{missing[0]}: missing; add it")
        return dataset

    def simulate(
        self, data: str, seeds: Sequence[int], where: Where, progress: Progress = lambda _: None
    ) -> Simulated:
        """Draw the delays of one population per seed.

        Returns for the run, over clients and rounds: ``share`` above 1000 s, ``slowest`` (largest
        delay of a round, mean over rounds), ``quantile/<level>``.  With `detail`, per client:
        ``mean`` seconds and on a network the columns of
        :func:`fedsampling.clients.delays.radio.links.clients`; per draw, round after round:
        ``round_seconds``; of the network: ``hub_…`` and ``link_…``.  With published delays:
        ``ks/<file>``, ``reference_share/<file>``, ``reference_quantile/<file>/<level>`` and, with
        `detail`, ``reference_seconds/<file>``.
        """
        import pandas as pd

        from fedsampling.clients.delays import reference
        from fedsampling.clients.delays.radio import links

        model = self.dataset
        if not isinstance(model, Nycmesh):
            return Simulated([_rounds(model.draw(seed), self, seed) for seed in seeds])
        city = model.network(data, where.cache, where.mirror)
        inputs = dict(city.inputs)
        published = None
        if data == "official":
            published = reference.load(where.cache, where.mirror)
            inputs |= published.inputs
        tables = []
        for index, seed in enumerate(seeds):
            clients = links.clients(city, model.parameters, seed)
            delays = links.as_delays(clients, model.parameters)
            parts = [_rounds(delays, self, seed, published)]
            if self.detail:
                parts.append(_network(city, clients, model.parameters.hubs))
            tables.append(pd.concat(parts, ignore_index=True))
            progress(index)
        unverified = city.unverified or (published is not None and published.unverified)
        return Simulated(tables, inputs, unverified)


def _rounds(
    delays: Delays,
    settings: DelayDraws,
    seed: int,
    published: "Reference | None" = None,
) -> "pd.DataFrame":
    from scipy.stats import ks_2samp

    n = len(delays.base)
    seconds = delays.round_seconds(seed, np.arange(settings.rounds)[:, None], np.arange(n))
    pooled = seconds.ravel()
    scalars = _scalars(pooled, "share", "quantile")
    scalars["slowest"] = float(seconds.max(axis=1).mean())
    columns: Columns = {}
    if settings.detail:
        columns["mean"] = (np.arange(n), delays.mean)
        columns["round_seconds"] = (np.arange(pooled.size), pooled)
    for file, total in published.totals.items() if published is not None else ():
        scalars[f"ks/{file}"] = float(ks_2samp(pooled, total).statistic)
        scalars |= _scalars(total, f"reference_share/{file}", f"reference_quantile/{file}")
        if settings.detail:
            columns[f"reference_seconds/{file}"] = (np.arange(total.size), total)
    columns |= {name: (np.array([-1]), np.array([value])) for name, value in scalars.items()}
    return tidy(columns)


def _scalars(seconds: Array, share: str, quantile: str) -> dict[str, float]:
    scalars = {share: float((seconds > THRESHOLD).mean())}
    levels = zip(LEVELS, np.quantile(seconds, LEVELS), strict=True)
    return scalars | {f"{quantile}/{level:g}": float(value) for level, value in levels}


def _network(city: "Mesh", clients: "pd.DataFrame", hubs: int) -> "pd.DataFrame":
    top = city.nodes.iloc[:hubs][["lon", "lat", "degree"]]
    tables = {"": clients, "hub_": top, "link_": city.links}
    return tidy(
        {
            f"{prefix}{column}": (np.arange(len(table)), table[column].to_numpy(np.float64))
            for prefix, table in tables.items()
            for column in table.columns
        }
    )
