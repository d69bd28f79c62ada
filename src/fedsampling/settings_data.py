"""The settings of runs that train nothing: what a partition or a delay model is told.

Two kinds beside those of :mod:`fedsampling.settings`: ``partition`` counts what each client has,
``delays`` draws what each client takes.  Neither samples clients, so their sampler is ``none``.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from fedsampling.delays.nycmesh import Parameters
from fedsampling.validation import Strict

Positive = Annotated[int, Field(ge=1)]
Range = tuple[Annotated[float, Field(gt=0)], Annotated[float, Field(gt=0, allow_inf_nan=False)]]


class NoSampler(Strict):
    """Nobody is sampled."""

    name: Literal["none"]


class NamedDataset(BaseModel):
    """A dataset by name, with the settings of its loader, which checks them."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str


class PartitionSettings(Strict):
    """Count the labels of each client."""

    kind: Literal["partition"]
    dataset: NamedDataset
    sampler: NoSampler


class Nycmesh(Strict):
    """Delays on the network of NYC Mesh, harshvardhan2025latency, section 3."""

    name: Literal["nycmesh"]
    parameters: Parameters = Field(Parameters(), description="what the paper leaves open")


class Synthetic(Strict):
    """Synthetic delays, harshvardhan2025latency, section 6."""

    name: Literal["synthetic"]
    clients: Positive
    model_bytes: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(description="MS")
    speed: Range = Field((200e3, 5e6), description="range of c_i, bytes per second")
    computation: Range = Field((15.0, 100.0), description="range of τ_i,comp, seconds")
    per_round: bool = Field(False, description="draw the computation in each round")

    @model_validator(mode="after")
    def _ordered(self) -> "Synthetic":
        for name in ("speed", "computation"):
            low, high = getattr(self, name)
            if low > high:
                raise ValueError(f"{name}: [{low}, {high}] runs backwards; put the least first")
        return self


class DelaysSettings(Strict):
    """Draw the seconds of each client; a run's seed draws the population and its rounds."""

    kind: Literal["delays"]
    dataset: Annotated[Nycmesh | Synthetic, Field(discriminator="name")]
    rounds: Positive = Field(description="rounds drawn of each client")
    detail: bool = Field(True, description="keep every client's numbers, not summaries alone")
    sampler: NoSampler
