"""Delays of a population of clients on NYCMesh, drawn over some rounds.

Each seed draws a population (shadowing and computation) and its rounds.  On official data, the
delays that two of the authors published earlier are added.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from fedsampling.base.arrays import Array, Ints
from fedsampling.base.records import Positive
from fedsampling.clients import mesh
from fedsampling.clients.delays import Delays
from fedsampling.clients.mesh_files import Mesh
from fedsampling.experiments.simulations.simulation import (
    NoSampler,
    Progress,
    RunContext,
    Simulated,
    Simulation,
    tidy,
)

from .published_delays import Reference, load_reference

if TYPE_CHECKING:
    import pandas as pd

Columns = dict[str, tuple[Ints, Array]]

LEVELS = (0.01, 0.1, 0.5, 0.9, 0.99)
THRESHOLD = 1000.0  # seconds: the paper says that a tenth of the clients take longer


class DelayDraws(Simulation, name="delays"):
    """Draw the seconds of each client; a run's seed draws the population and its rounds."""

    step_seconds: ClassVar[float] = 0.002

    dataset: mesh.Nycmesh
    rounds: Positive = Field(description="rounds drawn of each client")
    detail: bool = Field(True, description="keep every client's numbers, not summaries alone")
    sampler: NoSampler

    def simulate(
        self,
        data: str,
        seeds: Sequence[int],
        where: RunContext,
        progress: Progress = lambda _: None,
    ) -> Simulated:
        """Draw the delays of one population per seed.

        Returns for the run, over clients and rounds: ``share`` above 1000 s, ``slowest`` (largest
        delay of a round, mean over rounds), ``quantile/<level>``.  With `detail`, per client:
        ``mean`` seconds and the columns of :func:`fedsampling.clients.mesh.client_table`; per draw,
        round after round: ``round_seconds``; of the network: ``hub_…`` and ``link_…``.  With
        published delays: ``ks/<file>``, ``reference_share/<file>``,
        ``reference_quantile/<file>/<level>`` and, with `detail`, ``reference_seconds/<file>``.
        """
        import pandas as pd

        model = self.dataset
        city = model.network(data, where.cache, where.mirror)
        published = Reference({}, {}, False)
        if data == "official":
            published = load_reference(where.cache, where.mirror)
        tables = []
        for index, seed in enumerate(seeds):
            clients = mesh.client_table(city, model.parameters, seed)
            delays = mesh.as_delays(clients, model.parameters)
            parts = [_rounds(delays, self, seed, published.totals)]
            if self.detail:
                parts.append(_network(city, clients, model.parameters.hubs))
            tables.append(pd.concat(parts, ignore_index=True))
            progress(index)
        unverified = city.unverified or published.unverified
        return Simulated(tables, {**city.inputs, **published.inputs}, unverified)


def _rounds(
    delays: Delays, settings: DelayDraws, seed: int, published: Mapping[str, Array]
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
    for file, total in published.items():
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


def _network(city: Mesh, clients: "pd.DataFrame", hubs: int) -> "pd.DataFrame":
    top = city.nodes.iloc[:hubs][["lon", "lat", "degree"]]
    tables = {"": clients, "hub_": top, "link_": city.links}
    return tidy(
        {
            f"{prefix}{column}": (np.arange(len(table)), table[column].to_numpy(np.float64))
            for prefix, table in tables.items()
            for column in table.columns
        }
    )
