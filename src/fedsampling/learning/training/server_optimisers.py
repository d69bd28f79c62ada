"""Server optimisers, which turn the weighted sum of updates into the server's step.

References
----------
Hsu, Qi, Brown: Measuring the effects of non-identical data distribution for federated visual
classification. arXiv 1909.06335 (FedAvgM).
Reddi et al.: Adaptive federated optimization. ICLR 2021, algorithm 2 (FedAdam, FedYogi).
"""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from fedsampling.base.records import PositiveFloat, Strict

if TYPE_CHECKING:
    from torch import Tensor


Decay = Annotated[float, Field(ge=0, lt=1)]


class Server(Strict):
    """A server optimiser; the server's step η_g is its learning rate."""

    name: Literal["fedavgm", "fedadam", "fedyogi"]
    momentum: Decay = Field(0.9, description="β₁, of the sum of updates")
    memory: Decay = Field(0.99, description="β₂, of its squares; not in fedavgm")
    tau: PositiveFloat = Field(1e-3, description="τ, added to the root; not in fedavgm")

    def start(self, theta: "Tensor") -> "tuple[Tensor, Tensor]":
        """Return the initial m and v, each with the shape of θ."""
        return theta.new_zeros(theta.shape), theta.new_full(theta.shape, self.tau**2)

    def step(self, change: "Tensor", m: "Tensor", v: "Tensor") -> "Tensor":
        """Update m and v in place with Δ = Σ ω_i (θ_i − θ); return the step divided by η_g."""
        if self.name == "fedavgm":
            m.mul_(self.momentum).add_(change)
            return m
        square = change.square()
        m.mul_(self.momentum).add_(change, alpha=1 - self.momentum)
        if self.name == "fedadam":
            v.mul_(self.memory).add_(square, alpha=1 - self.memory)
        else:
            v.sub_((v - square).sign().mul_(square), alpha=1 - self.memory)
        return m / (v.sqrt() + self.tau)
