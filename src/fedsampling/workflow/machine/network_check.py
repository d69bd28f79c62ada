"""Check that networks train correctly on a device: a small round, computed in several ways."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsampling.base.errors import InputError
from fedsampling.base.streams import Draws
from fedsampling.data.federated import FederatedDataset
from fedsampling.learning.models.model import Model, ModelFile
from fedsampling.learning.models.networks.cost import step_bytes
from fedsampling.learning.models.networks.network import Network
from fedsampling.learning.training.network import gpu
from fedsampling.learning.training.network.learner import NetworkLearner
from fedsampling.learning.training.network.local_work import LocalWork, dropout_keys
from fedsampling.learning.training.network.replay import Replays, run_steps
from fedsampling.learning.training.network.samples import Inputs
from fedsampling.learning.training.network.step import keeper, sgd_step
from fedsampling.samplers.basic import MD
from fedsampling.samplers.scheme import Slots

Array = NDArray[np.float64]

CLIENTS, BATCH = 3, 8  # size of the small round
ROUND = LocalWork(batch=BATCH, step=0.01, steps=2)
ONE_STEP = LocalWork(batch=BATCH, step=1, steps=1)  # the update is exactly the gradient
KINDS: Sequence[tuple[tuple[int, ...], int | None, Inputs]] = (
    ((32, 32, 3), 10, "unit"),
    ((20,), 80, "tokens"),
    ((500,), None, "raw"),
)  # shapes of samples, classes and inputs; each network uses the first that it accepts
MAX_ROUNDING = 0.02  # relative to an update's norm; rectifiers near zero give 0.005 in deep nets
MAX_MEMORY_RATIO = 1.2  # of measured memory to the estimate, beyond which jobs may lack memory
LIBRARY_BYTES = 2**24  # memory that libraries use for themselves, not part of any estimate

ON_CPU = "train on the CPU (device: cpu), and report this"
PLAIN_KERNELS = "start with MKL_CBWR=COMPATIBLE ONEDNN_MAX_CPU_ISA=AVX2, and report this"


@dataclass(frozen=True)
class Finding:
    """Result of a check in one line, and the fix if it failed."""

    text: str
    fix: str = ""

    def __str__(self) -> str:
        return f"FAIL {self.text}: {self.fix}" if self.fix else f"ok   {self.text}"


def networks() -> list[str]:
    """Return the names of the project's own networks."""
    return [name for name, model in Model.members().items() if model is not ModelFile]


def check_network(name: str, device: gpu.Device) -> Finding:
    """Train a network for one round in several ways, and check that the results agree.

    Parameters
    ----------
    name : str
        Name of a :class:`fedsampling.learning.models.model.Model`.
    device : Device
        An error of a GPU, such as kernels that PyTorch lacks for it, is a failed check.
    """
    try:
        return _compare(name, device)
    except RuntimeError as error:
        if device.name == "cpu":
            raise
        return Finding(f"{name}: {str(error).partition(chr(10))[0]}", ON_CPU)


def _compare(name: str, device: gpu.Device) -> Finding:
    gpu.allow_tf32(False)
    stacked = learner(Model.member(name)(), device.name)
    stacked.run_steps = partial(run_steps, stacked._step)
    everyone = Slots.stack([np.arange(CLIENTS)])
    theta = stacked.start(np.zeros(1, np.int64))

    def updates(slots: Slots = everyone, learner: NetworkLearner = stacked) -> Array:
        trained: Array = learner.work(theta, slots, MD(m=CLIENTS), _draws()).double().cpu().numpy()
        return trained

    updates()  # libraries choose and try out
    peak = device.peak(updates)
    reference = updates()
    one_by_one = np.concatenate([updates(Slots.stack([np.array([k])])) for k in range(CLIENTS)])
    one_step = replace(stacked, local=ONE_STEP)
    rounding = _distance(updates(learner=one_step), in_double(one_step, theta, everyone))
    stacking = _distance(reference, one_by_one)
    parameters = 4 * CLIENTS * 5 * theta.shape[1]
    memory = peak / (stacked.activation_bytes * CLIENTS + parameters + LIBRARY_BYTES)
    text = f"{name}: {rounding:.1e} from double precision, {stacking:.1e} from a single slot"
    text += f", memory {memory:.2f} of the estimate"
    on_cpu = device.name == "cpu"
    fix = ""
    if not rounding < MAX_ROUNDING or stacking > (0 if on_cpu else MAX_ROUNDING):
        fix = PLAIN_KERNELS if on_cpu else ON_CPU
    elif memory > MAX_MEMORY_RATIO:
        fix = "request more memory, or use fewer seeds per job (seed_block)"
    if device.record and not fix:
        replays = Replays(stacked._step, device.record)
        stacked.run_steps = replays.run
        captured = max(_distance(updates(), reference) for _ in range(3))
        text += f", {captured:.1e} from captured steps"
        if not replays.graphs:
            text += " (which cannot be captured and run one by one)"
        fix = "" if captured < MAX_ROUNDING else ON_CPU
    return Finding(text, fix)


def learner(model: Model, device: str) -> NetworkLearner:
    """Build a learner with the network and three clients of synthetic samples."""
    network, sample, classes, inputs = next(_fitting(model))
    rng, rows = np.random.default_rng(0), 2 * BATCH * CLIENTS
    x: NDArray[Any] = rng.integers(classes or 2, size=(rows, *sample))
    if inputs == "unit":
        x = rng.integers(256, size=(rows, *sample)).astype(np.uint8)
    elif inputs == "raw":
        x = rng.normal(size=(rows, *sample))
    theta = torch.zeros(1, network.dimension, device="meta")
    blank = torch.zeros(1, rows, *sample, device="meta")
    shape = network.outputs(theta, blank.long() if inputs == "tokens" else blank).shape[1:-1]
    y = rng.normal(size=rows) if classes is None else rng.integers(classes, size=shape)
    start = np.arange(CLIENTS + 1) * 2 * BATCH
    p = np.full(CLIENTS, 1 / CLIENTS)
    data = FederatedDataset("made up", x, y, start, p, x[:0], y[:0], classes=classes)
    activation_bytes = step_bytes(network, sample, BATCH)
    return NetworkLearner(
        network, data, ROUND, inputs, device=device, activation_bytes=activation_bytes
    )


def _fitting(model: Model) -> Iterator[tuple[Network, tuple[int, ...], int | None, Inputs]]:
    for sample, classes, inputs in KINDS:
        with suppress(InputError):
            yield model.build(sample, classes), sample, classes, inputs


def in_double(stacked: NetworkLearner, theta: Tensor, slots: Slots) -> Array:
    """Compute the updates of the same round in double precision on the CPU."""
    on_cpu = replace(stacked, device="cpu")
    plan = stacked.local.batches(stacked.n_samples[slots.client], slots, _draws())
    start = theta.cpu().double()[torch.from_numpy(slots.run)]
    w = start.clone()
    step = torch.full((len(slots), 1), stacked.local.step, dtype=torch.float64)
    weight = torch.full((len(slots), BATCH), 1 / BATCH, dtype=torch.float64)
    keys, velocity = torch.from_numpy(dropout_keys(slots, _draws())), w.new_empty(len(w), 0)
    for number, index in enumerate(plan.index):
        rows = torch.from_numpy(stacked.data.start[slots.client][:, None] + index)
        x, y = on_cpu.samples.gather(rows)
        x = x if stacked.inputs == "tokens" else x.double()
        keep = keeper(keys, torch.tensor(number))
        sgd_step(stacked.network, stacked.local, w, start, velocity, step, x, y, weight, keep)
    updates: Array = (w - start).numpy()
    return updates


def _draws() -> Draws:
    return Draws(np.zeros(1, np.int64), 0)


def _distance(first: Array, second: Array) -> float:
    """Return the largest distance of two updates, relative to the norm of the second."""
    norms = np.linalg.norm(second, axis=1)
    return float((np.linalg.norm(first - second, axis=1) / np.where(norms > 0, norms, 1)).max())
