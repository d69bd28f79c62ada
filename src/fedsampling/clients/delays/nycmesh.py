"""Delays on the network of NYC Mesh, Harshvardhan et al. 2025, section 3.

:mod:`~fedsampling.clients.delays.parameters` holds the settings that the paper leaves open,
with their units and reasons.
"""

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from fedsampling.clients.delays.delays import DelayModel, Delays
from fedsampling.clients.delays.parameters import Parameters

if TYPE_CHECKING:
    from fedsampling.clients.mesh import Mesh


# Number of lines of each published table.
LINES = {
    "nycmesh": {"nodes": 201, "links": 290},
    "nycmesh/network-map": {
        "nodes_installed": 462,
        "links_installed": 421,
        "sectors_installed": 145,
    },
    "async_hfl_delays": {"delay_client_to_gateway": 184, "comp": 184, "comp1": 184},
}


class Nycmesh(DelayModel, name="nycmesh"):
    """Delays on the network of NYC Mesh, Harshvardhan et al. 2025, section 3."""

    official: ClassVar[tuple[str, ...]] = ("nycmesh", "nycmesh/network-map", "async_hfl_delays")

    parameters: Parameters = Field(Parameters(), description="choices that the paper leaves open")

    def network(self, source: str, cache: Path, mirror: str | None) -> "Mesh":
        """Read or generate the network."""
        from fedsampling.clients import mesh

        return mesh.load(source, cache, mirror)

    def draw(
        self,
        seed: int,
        network: "Mesh | None" = None,
        clients: int | None = None,
        model_bytes: float | None = None,
    ) -> Delays:
        """Draw shadowing and computation of the clients, which are all nodes except hubs."""
        from fedsampling.clients import mesh

        assert network is not None
        return mesh.as_delays(mesh.clients(network, self.parameters, seed), self.parameters)

    @classmethod
    def verify(cls, dataset: str, edition: str, folder: Path) -> tuple[str, ...]:
        """Compare official files with the published counts: links, nodes, rows."""
        from fedsampling.clients import mesh
        from fedsampling.data.federated import passed_checks

        if edition == "geojson":
            nodes = mesh.map_nodes((folder / "active.json").read_bytes())
            links = mesh.map_links((folder / "links.json").read_bytes())
            checks = {
                "200 installed nodes": len(nodes) == 200,
                "289 links": len(links) == 289,
                "124 active links": int((links["status"] == "active").sum()) == 124,
            }
            return passed_checks(dataset, checks)
        if edition == "json":
            return super().verify(dataset, edition, folder)
        lines = {path.stem: path.read_bytes().count(b"\n") for path in folder.iterdir()}
        expected = LINES[dataset].items()
        return passed_checks(
            folder.name, {f"{n:,} lines in {stem}": lines[stem] == n for stem, n in expected}
        )
