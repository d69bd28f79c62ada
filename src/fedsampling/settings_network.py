"""The settings of a run that trains a network, as checked records."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fedsampling.settings_datasets import NetworkData, Positive, Share
from fedsampling.settings_models import NetworkModel
from fedsampling.settings_samplers import NetworkSampler
from fedsampling.validation import Strict

Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]


class LocalWorkSettings(Strict):
    """What every client does when it is selected: a number of steps, or of epochs."""

    steps: Positive | None = Field(None, description="steps on fresh random batches")
    epochs: Positive | None = Field(None, description="passes over the client's data")
    batch: Positive = Field(description="samples of a batch, B")
    step: Rate = Field(description="local learning rate η_l")
    remainder: bool = Field(True, description="keep an epoch's last, smaller batch")
    decay: Rate = Field(1.0, description="factor on the learning rate from round to round")
    prox: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        0.0, description="μ of FedProx"
    )

    @model_validator(mode="after")
    def _either(self) -> "LocalWorkSettings":
        if (self.steps is None) == (self.epochs is None):
            both = "both are given" if self.steps else "neither is given"
            raise ValueError(f"steps, epochs: {both}; give one of the two")
        return self


class EvaluationSettings(Strict):
    """How global models are measured."""

    every: Positive = Field(description="rounds between measurements")
    dropout: bool = Field(False, description="leave dropout on, as some authors' code does")


class PrecisionSettings(Strict):
    """Number formats of a GPU; off, as in the papers, unless asked for."""

    tf32: bool = Field(False, description="TensorFloat-32 matrix products")
    bf16: bool = Field(False, description="bfloat16 activations")


class NetworkSettings(Strict):
    """A training run of a network."""

    kind: Literal["network"]
    dataset: NetworkData
    inputs: Literal["unit", "centred", "raw", "tokens"] = Field(
        description="what stored samples become: x/255, (x/255 − 1/2)/(1/2), x, or integers"
    )
    model: NetworkModel
    work: LocalWorkSettings
    server_step: Rate = Field(1.0, description="η_g")
    sampler: NetworkSampler
    rounds: Positive
    evaluation: EvaluationSettings
    precision: PrecisionSettings = PrecisionSettings()
    holdout: Share | None = Field(
        None, description="part of each client's training data that is the test set, for tuning"
    )
    problem_seed: Seed = Field(0, description="draws the partition: the same for all seeds")
