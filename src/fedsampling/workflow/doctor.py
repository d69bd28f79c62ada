"""Check that this machine computes correctly: ``fedsampling doctor``.

Lists the hardware and libraries, and trains every network for a small round in several ways,
whose results must agree.  A failed check is one line with its fix.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsampling.base import machine
from fedsampling.base.arrays import Array
from fedsampling.base.errors import InputError
from fedsampling.base.memory import available
from fedsampling.base.streams import Draws
from fedsampling.data.federated import FederatedDataset
from fedsampling.experiments.config import Config
from fedsampling.learning.models import products
from fedsampling.learning.models.devices import precise
from fedsampling.learning.models.dropout import Keeper
from fedsampling.learning.models.network import Network
from fedsampling.learning.models.settings import Model, ModelFile
from fedsampling.learning.training.learner import NetworkLearner
from fedsampling.learning.training.local_work import LocalWork, dropout_keys
from fedsampling.learning.training.samples import Inputs
from fedsampling.learning.training.step import Batch, Copies, sgd_step
from fedsampling.runs.environment import choose_products, device, environment
from fedsampling.samplers.basic import MD
from fedsampling.samplers.protocol.prepared import prepared
from fedsampling.samplers.protocol.slots import Setup, Slots

CLIENTS, BATCH = 3, 8  # size of the small round
ROUND = LocalWork(batch=BATCH, step=0.01, steps=2)
ONE_STEP = LocalWork(batch=BATCH, step=1, steps=1)  # the update is exactly the gradient
KINDS: Sequence[tuple[tuple[int, ...], int | None, Inputs]] = (
    ((32, 32, 3), 10, "unit"),
    ((20,), 80, "tokens"),
    ((500,), None, "raw"),
)  # shapes of samples, classes and inputs; each network uses the first that it accepts
MAX_ROUNDING = 0.02  # relative to an update's norm; rectifiers near zero give 0.005 in deep nets
ON_CPU = "train on the CPU (device: cpu), and report this"
PLAIN_KERNELS = "start with MKL_CBWR=COMPATIBLE ONEDNN_MAX_CPU_ISA=AVX2, and report this"


@dataclass(frozen=True)
class Diagnosis:
    """Result of a check in one line, and the fix if it failed."""

    text: str
    fix: str = ""

    def __str__(self) -> str:
        return f"FAIL {self.text}: {self.fix}" if self.fix else f"ok   {self.text}"


def examine(config: Config, echo: Callable[[str], None]) -> bool:
    """Print all checks; return whether they pass."""
    choose_products(config)
    chosen = device(config)
    echo("This machine")
    for line in machine_facts(chosen):
        echo(f"     {line}")
    echo("Results of one small round of each network: largest relative difference from double")
    echo("precision, and from one slot at a time")
    failed = 0
    for name in networks():
        echo(str(finding := check_network(name, chosen)))
        failed += bool(finding.fix)
    failures = f"{failed} checks failed; each FAIL line ends with the fix"
    echo(failures if failed else "All checks pass.")
    return not failed


def machine_facts(device: str) -> Iterator[str]:
    """Describe the machine: device, memory, kernels, library versions and GPU."""
    facts = environment()
    memory = f"{available() / 2**30:.0f} GiB of memory"
    yield f"{facts['device']}; {machine.cores()} cores, {memory}"
    kinds = torch.backends.cpu.get_cpu_capability()
    settings = ", ".join(f"{name}={value}" for name, value in facts["kernels"].items())
    yield f"kernels: PyTorch's for {kinds}, {products.library()} for a slot's products; {settings}"
    if torch.get_num_threads() > 1:
        yield f"PyTorch uses {torch.get_num_threads()} threads; OMP_NUM_THREADS=1 is faster"
    yield ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    if device != "cpu":
        yield f"GPU: {torch.cuda.get_device_name()}, CUDA {torch.version.cuda}"
    elif torch.backends.mps.is_available():
        yield "GPU: Apple's, which is not used"
    elif not torch.version.cuda and machine.output("nvidia-smi", "-L"):
        yield "GPU: not used by PyTorch's CPU build; `make TORCH=cuda .venv/ready` replaces it"
    else:
        yield "GPU: not visible to PyTorch, or not requested"


def networks() -> list[str]:
    """Return the names of the project's own networks."""
    return [name for name, model in Model.members().items() if model is not ModelFile]


def check_network(name: str, device: str) -> Diagnosis:
    """Train a network for one round in several ways, and check that the results agree."""
    on_cpu = device == "cpu"
    try:
        with precise(device):
            rounding, stacking = _distances(learner(Model.member(name)(), device))
    except RuntimeError as error:
        if on_cpu:
            raise  # errors of a GPU, such as kernels that PyTorch lacks for it, are failed checks
        return Diagnosis(f"{name}: {str(error).partition(chr(10))[0]}", ON_CPU)
    fails = not rounding < MAX_ROUNDING or stacking > (0 if on_cpu else MAX_ROUNDING)
    text = f"{name}: {rounding:.1e} from double precision, {stacking:.1e} from a single slot"
    return Diagnosis(text, (PLAIN_KERNELS if on_cpu else ON_CPU) if fails else "")


def _distances(stacked: NetworkLearner) -> tuple[float, float]:
    """Return a round's distance from double precision, and from a round of one slot at a time."""
    everyone = Slots.stack([np.arange(CLIENTS)])
    theta = stacked.start(np.zeros(1, np.int64))
    sampler = prepared(MD(m=CLIENTS), Setup(stacked.n_samples, stacked.p))

    def updates(slots: Slots = everyone, learner: NetworkLearner = stacked) -> Array:
        trained: Array = learner.work(theta, slots, sampler, _draws()).double().cpu().numpy()
        return trained

    one_by_one = np.concatenate([updates(Slots.stack([np.array([k])])) for k in range(CLIENTS)])
    one_step = replace(stacked, local=ONE_STEP)
    rounding = _distance(updates(learner=one_step), in_double(one_step, theta, everyone))
    return rounding, _distance(updates(), one_by_one)


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
    return NetworkLearner(network, data, ROUND, inputs, device=device)


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
    weight = torch.full((len(slots), BATCH), 1 / BATCH, dtype=torch.float64)
    keys = torch.from_numpy(dropout_keys(slots, _draws()))
    rates = torch.full((len(slots), 1), stacked.local.step, dtype=torch.float64)
    copies = Copies(w, start, velocity=w.new_empty(len(w), 0), step=rates)
    for number, index in enumerate(plan.index):
        rows = torch.from_numpy(stacked.data.start[slots.client][:, None] + index)
        x, y = on_cpu.samples.gather(rows)
        x = x if stacked.inputs == "tokens" else x.double()
        batch = Batch(x, y, weight, Keeper(keys, torch.tensor(number)))
        sgd_step(stacked.network, stacked.local, copies, batch)
    updates: Array = (w - start).numpy()
    return updates


def _draws() -> Draws:
    return Draws(np.zeros(1, np.int64), 0)


def _distance(first: Array, second: Array) -> float:
    """Return the largest distance of two updates, relative to the norm of the second."""
    norms = np.linalg.norm(second, axis=1)
    return float((np.linalg.norm(first - second, axis=1) / np.where(norms > 0, norms, 1)).max())
