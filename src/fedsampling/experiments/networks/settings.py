"""How a network is trained, for any data: settings that fit together, and fit in memory.

:mod:`fedsampling.experiments.networks.training` trains with them.
"""

from typing import Literal

from pydantic import Field, model_validator

from fedsampling.base import memory
from fedsampling.base.errors import InputError
from fedsampling.base.records import Positive, PositiveFloat, Seed, Strict, hashed_if_set
from fedsampling.clients.availability import Availability
from fedsampling.clients.delays import DelayModel
from fedsampling.clients.failures import Failures
from fedsampling.learning.models.settings import Model, ModelFile
from fedsampling.learning.training.local_work import LocalWork
from fedsampling.learning.training.server_optimisers import Server
from fedsampling.learning.training.until import Until
from fedsampling.samplers.protocol.base import Scheme
from fedsampling.samplers.protocol.in_settings import NetworkScheme

OPAQUE = (
    "model: {} needs the inputs of the last layer, which a module does not tell; use a model of "
    "`fedsampling list models`, or another sampler"
)


class Evaluation(Strict):
    """How global models are measured."""

    every: Positive = Field(description="rounds between measurements")
    each_until: int = hashed_if_set(0, "every round up to this one is measured, too", ge=0)
    dropout: bool = Field(False, description="leave dropout on, as some authors' code does")
    training_loss: bool = hashed_if_set(True, "pass over all clients' training data")
    clients: bool = hashed_if_set(
        False, "quantiles of the accuracy over clients, and how evenly they take part"
    )
    by_client: bool = hashed_if_set(
        False, "each client's rounds and weight, and the final model on its own samples"
    )
    selections: bool = hashed_if_set(
        False, "who was selected in each round, its weight and seconds, and whether it reported"
    )
    thin: bool = hashed_if_set(
        False, "sum bits and seconds between measurements, and keep no other cost"
    )
    full_update: Positive | None = hashed_if_set(
        None,
        "rounds between comparisons of the update with that of full participation, each of which "
        "costs a round with all clients; null: none",
    )


class Precision(Strict):
    """Single precision, the only choice; part of the hashes of all runs."""

    tf32: Literal[False] = False
    bf16: Literal[False] = False


class Training(Strict):
    """How a network is trained, for any data."""

    inputs: Literal["unit", "centred", "raw", "tokens"] = Field(
        description="conversion of stored samples: x/255, (x/255 − 1/2)/(1/2), x, or integers"
    )
    model: Model
    work: LocalWork
    server_step: PositiveFloat = Field(1.0, description="η_g")
    server: Server | None = hashed_if_set(None, "the server's optimiser; null: averaging")
    sampler: NetworkScheme
    rounds: Positive
    evaluation: Evaluation
    precision: Precision = Precision()
    problem_seed: Seed = Field(
        0, description="draws partition, delays and availability: the same for all seeds"
    )
    delays: DelayModel | None = Field(None, description="the clients' seconds; null: no clock")
    feature_batch: Positive = Field(
        100, description="samples of a client's batch, where a scheme needs their features"
    )
    feature_cutoff: Literal["float64", "float32"] = hashed_if_set(
        "float64", "precision whose ε is the pseudo-inverse's cutoff for the features' moments"
    )
    feature_renewal: Literal["participants", "everyone"] = hashed_if_set(
        "participants", "whose features a round renews"
    )
    request: Literal["round", "passes"] = hashed_if_set(
        "round",
        "delay of a request before the round: the client's whole delay, or the part for the "
        "passes over data that the request needs",
    )
    availability: Availability | None = hashed_if_set(
        None, "which clients are there in a round; null: all"
    )
    failures: Failures | None = hashed_if_set(
        None, "which selected clients report, and how long the server waits; null: all report"
    )
    until: Until | None = hashed_if_set(None, "condition that ends a run early; null: none")

    @model_validator(mode="after")
    def _check_combinations(self) -> "Training":
        if self.availability and not self.sampler.intermittent:
            is_ours = type(self.sampler).__module__.startswith("fedsampling.")
            fix = (
                "use another sampler (docs/schemes.md lists them)"
                if is_ours
                else "set intermittent = True in its class if it selects only from view.offered"
            )
            raise ValueError(
                f"sampler.name: {self.sampler.named} requires every client to be "
                f"available in every round; {fix}, or remove availability"
            )
        if "delays" in self.sampler.needs and self.delays is None:
            raise ValueError(
                f"sampler.name: {self.sampler.named} needs the clients' delays, which are missing; "
                "set delays, such as synthetic, or use another sampler"
            )
        if self.until and self.until.seconds is not None and self.delays is None:
            raise ValueError(
                "until.seconds: no effect without delays; set delays, such as synthetic, or remove "
                "until.seconds"
            )
        self._check_failures()
        if isinstance(self.model, ModelFile) and "heterogeneity" in self.sampler.needs:
            raise ValueError(OPAQUE.format(self.sampler.named))
        if self.evaluation.by_client and self.until:
            raise ValueError(
                "evaluation.by_client: measures the models after the last round, before which "
                "until may end a run; remove one of the two"
            )
        return self

    def _check_failures(self) -> None:
        """Raise ValueError if a setting of the failures has no effect."""
        if self.failures is None:
            return
        for key in ("deadline", "first"):
            if getattr(self.failures, key) is not None and self.delays is None:
                raise ValueError(
                    f"failures.{key}: no effect without delays; set delays, such as synthetic, or "
                    f"remove failures.{key}"
                )
        first, selected = self.failures.first, self.sampler.expected_clients(2**31, self.rounds)
        if first is not None and first >= selected:
            raise ValueError(
                f"failures.first: {first} is no less than the {selected:g} clients that sampler "
                f"{self.sampler.named} selects; select more, or remove failures.first"
            )

    def least_bytes(self, seeds: int, d: int) -> float:
        """Return a lower bound on the bytes for models, updates and the batches of a round."""
        slots, work = self.sampler.expected_clients(1, self.rounds), self.work
        rows = work.batch * (2 * (work.steps or 0) + (work.epochs or 0))
        return seeds * (4.0 * d * (2 + slots) + 8.0 * slots * rows)

    def check_memory(self, seeds: int, d: int, n: int) -> None:
        """Raise InputError if the models or the pairs of n clients exceed the memory."""
        check_pairs(self.sampler, n, memory.available())
        reports = 4.0 * seeds * n * d * ("gradients" in self.sampler.needs)
        least = self.least_bytes(seeds, d) + pair_bytes(self.sampler, n) + reports
        if line := memory.lacking(least):
            raise InputError(line)


def check_pairs(sampler: Scheme, n: int, max_bytes: float) -> None:
    """Raise InputError if a sampler's matrices of all pairs of n clients exceed `max_bytes`."""
    if (stored := pair_bytes(sampler, n)) > max_bytes:
        raise InputError(
            f"sampler: {sampler.named} compares all pairs of {n:,} clients, which needs "
            f"{stored / 1e9:,.0f} GB; must be at most {int(n * (max_bytes / stored) ** 0.5):,} "
            "clients here"
        )


def pair_bytes(sampler: Scheme, n: int) -> float:
    """Return the bytes of a sampler's matrices of all pairs of n clients."""
    return 8.0 * sampler.pair_matrices * n**2
