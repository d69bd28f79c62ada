"""The base class of delay models: a record of settings that draws the clients' delays.

Adding a file with such a class to this folder registers the model.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray

from fedsampling.base.families import Named
from fedsampling.clients.delays.delays import Delays, assign

if TYPE_CHECKING:
    from fedsampling.clients.delays.radio.mesh import Mesh


class DelayModel(Named, package="fedsampling.clients.delays"):
    """The settings of a model of delays."""

    # Names of the official datasets in sources.yaml; empty if the delays are always generated.
    official: ClassVar[tuple[str, ...]] = ()

    def files(self) -> tuple[str, ...]:
        """Names of the official datasets that these settings read."""
        return self.official

    def lacking(self) -> tuple[str, ...]:
        """Return the names of null settings, which only a training run can supply."""
        return ()

    def network(self, source: str, cache: Path, mirror: str | None) -> "Mesh | None":
        """Read or generate the network that determines the delays; None without a network.

        `cache`, `mirror`: as in :func:`fedsampling.data.sources.fetch.fetch`.
        """
        return None

    def draw(
        self,
        seed: int,
        network: "Mesh | None" = None,
        clients: int | None = None,
        model_bytes: float | None = None,
    ) -> Delays:
        """Draw a population's delays.

        `seed`: seed of the population. `network`: result of :meth:`network`. `clients`: number of
        clients of the training problem. `model_bytes`: size of the trained model.
        """
        raise NotImplementedError

    def for_clients(
        self,
        seed: int,
        network: "Mesh | None",
        names: NDArray[Any],
        model_bytes: float,
        rounds: int,
    ) -> Delays:
        """Draw the delays of a training problem's clients, of which `names`, shape (n,), are given.

        Other arguments as in :meth:`draw`; `rounds`: number of rounds of the training.
        """
        return assign(self.draw(seed, network, len(names), model_bytes), len(names), seed)

    @classmethod
    def verify(cls, dataset: str, edition: str, folder: Path) -> tuple[str, ...]:
        """Compare official files with published counts; see ``Dataset.verify``."""
        return ("nothing compares them",)
