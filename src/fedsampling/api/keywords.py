"""Keywords of the public functions for editors and type checkers; the records validate them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from fedsampling.api.arguments import Choice

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from fedsampling.base.records import Strict
    from fedsampling.learning.models.own import OwnModel
    from fedsampling.learning.models.own_losses import Loss
    from fedsampling.learning.training.own_metrics import Metric

    # A choice, or a table, file or array of your own.
    Recorded = Choice | Path | ArrayLike | pd.DataFrame


class TrainingSettings(TypedDict, total=False):
    """Settings of the papers' experiments that :func:`fedsampling.train` accepts as keywords."""

    inputs: Literal["unit", "centred", "raw", "tokens"]
    # local training
    decay: float
    prox: float
    momentum: float
    weight_decay: float
    clip: float | None
    schedule: Choice | None
    remainder: bool
    # the server
    server_step: float
    server: Choice | None
    until: Choice | None
    delays: "Recorded | None"
    availability: "Recorded | None"
    # clients that fail after selection: a probability, one for each client, or a dict
    failures: "float | ArrayLike | Mapping[str, Any] | Strict | None"
    request: Literal["round", "passes"]
    # measurements
    each_until: int
    training_loss: bool
    by_client: bool
    selections: bool
    clients: bool
    dropout: bool
    thin: bool
    full_update: int | None
    # the problem, and DelayHet's features
    problem_seed: int
    precision: Choice
    feature_batch: int
    feature_cutoff: Literal["float64", "float32"]
    feature_renewal: Literal["participants", "everyone"]


class TrainingArguments(TrainingSettings, total=False):
    """Keywords of :func:`fedsampling.train`, which compare and tune pass on."""

    model: "Choice | OwnModel"
    batch: int
    step: float
    rounds: int
    steps: int | None
    epochs: int | None
    seeds: int | Sequence[int]
    evaluate_every: int
    loss: "Loss | None"
    metrics: "Mapping[str, Metric] | None"
    on_round: "Callable[[pd.DataFrame], bool | None] | None"
    progress: bool | None
    device: Literal["auto", "cpu", "cuda"]
    threads: int | None
    checkpoint: str | Path | None


class DatasetSettings(TypedDict, total=False):
    """Settings of datasets that :func:`fedsampling.load` accepts; each dataset has some of them."""

    importance: Literal["equal", "samples"]
    clients: int | None
    fraction: float
    train: float
    min_samples: int
    digits: bool
    repeat_first: bool
    set: Literal[1, 2, 3]
    unbalance: Literal[1, 2, 3] | None
    # Shakespeare
    every: int
    length: int
    vocabulary: Literal["printable", "leaf"]
    # generated data
    agents: int
    smallest: int
    largest: int
    alpha: float | None
    beta: float
    positives: float | None
    samples: int
    tests: int
    dimension: int
    eigenvalues: tuple[float, float]
    noise: float | tuple[float, float] | Mapping[str, float]
    iid: bool
    variant: Literal["text", "code"]
    # tables and arrays of your own, ``name="files"``
    path: str
    content: str
    target: str
    client: str
    test: str | None
    test_share: float
    encode: Literal["pooled", "by_client"] | None
    client_info: str | None
    info_content: str
    separator: Literal[",", ";", "\t", "|"] | None
    decimal: Literal[".", ","]
    missing: str | tuple[str, ...]
