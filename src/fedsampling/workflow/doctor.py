"""Check that this machine computes correctly, and measure its speed: ``fedsampling doctor``.

Lists the hardware and libraries, compares a small round of every network with double precision on
the CPU, and times each paper's networks at the papers' own sizes.  A failed check is one line with
its fix.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import quantiles
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsampling.base.errors import InputError
from fedsampling.base.streams import Draws
from fedsampling.data.federated import FederatedDataset
from fedsampling.experiments.config import Config
from fedsampling.experiments.simulations.network import Network as Training
from fedsampling.experiments.specs import Job
from fedsampling.learning.models.model import Model, ModelFile
from fedsampling.learning.models.networks import products
from fedsampling.learning.models.networks.cost import keep_memory, operations, step_bytes
from fedsampling.learning.models.networks.network import Network
from fedsampling.learning.training.network import gpu
from fedsampling.learning.training.network.learner import NetworkLearner
from fedsampling.learning.training.network.local_work import LocalWork, dropout_keys
from fedsampling.learning.training.network.replay import Replays, run_steps
from fedsampling.learning.training.network.samples import Inputs
from fedsampling.learning.training.network.step import keeper, sgd_step
from fedsampling.runs.cluster.calibration import MAX_MEASURE_SECONDS, capped, counted
from fedsampling.runs.cluster.resources import key
from fedsampling.runs.execute import choose_products, environment
from fedsampling.runs.execute import device as chosen_device
from fedsampling.samplers.basic import MD
from fedsampling.samplers.scheme import Slots
from fedsampling.workflow.costs import estimate
from fedsampling.workflow.project import Project

Array = NDArray[np.float64]

CLIENTS, BATCH = 3, 8  # size of the small round
ROUND = LocalWork(batch=BATCH, step=0.01, steps=2)
ONE = LocalWork(batch=BATCH, step=1, steps=1)  # with step 1 the update is exactly the gradient
KINDS: Sequence[tuple[tuple[int, ...], int | None, Inputs]] = (
    ((32, 32, 3), 10, "unit"),
    ((20,), 80, "tokens"),
    ((500,), None, "raw"),
)  # shapes of samples, classes and inputs; each network uses the first that it accepts
MAX_ROUNDING = 0.02  # relative to an update's norm; rectifiers near zero give 0.005 in deep nets
MAX_MEMORY_RATIO = 1.2  # of measured memory to the estimate, beyond which jobs may lack memory
LIBRARY_BYTES = 2**24  # memory that libraries use for themselves, not part of any estimate
MEASURE_SECONDS = 60.0  # for timing all papers' experiments
MIN_SPEED_RATIO = 1.2  # from which the other library is recommended
TURNS, PRODUCTS_IN_A_TURN = 20, 20  # of timing the two libraries
PRODUCT_ROWS = {"cpu": 1536, "cuda": 8192}  # of the large product

ON_CPU = "train on the CPU (device: cpu), and report this"
PLAIN = "start with MKL_CBWR=COMPATIBLE ONEDNN_MAX_CPU_ISA=AVX2, and report this"


@dataclass(frozen=True)
class Finding:
    """The result of a check in one line; and the fix, if it failed."""

    text: str
    fix: str = ""

    def __str__(self) -> str:
        return f"FAIL {self.text}: {self.fix}" if self.fix else f"ok   {self.text}"


def examine(project: Project, say: Callable[[str], None], speed: bool = True) -> bool:
    """Run all checks; return whether they pass.

    Parameters
    ----------
    project : Project
    say : callable
        Called with each line of output.
    speed : bool
        Whether to time the papers' experiments, for up to a minute.
    """
    keep_memory()
    choose_products(project.config)
    device = gpu.device(chosen_device(project.config))
    say("This machine")
    for line in machine(device):
        say(f"     {line}")
    say("Results of one small round of each network: largest relative difference from double")
    say("precision, and from one slot at a time; memory as a fraction of its estimate")
    failed = 0
    for finding in chain([library()], (check(name, device) for name in networks())):
        say(str(finding))
        failed += bool(finding.fix)
    say(
        f"{failed} checks failed; each FAIL line ends with the fix"
        if failed
        else "All checks pass."
    )
    if speed:
        rate = large_product(device)
        say(f"Speed at the papers' size: a large product makes {rate / 1e9:.0f} GFLOP/s")
        for line in hours(project, rate):
            say(f"     {line}")
    return not failed


def networks() -> list[str]:
    """Return the names of the project's own networks."""
    return [name for name, model in Model.members().items() if model is not ModelFile]


def machine(device: gpu.Device) -> Iterator[str]:
    """Describe the machine: device, memory, kernels, library versions and GPU."""
    facts = environment()
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield f"{facts['device']}; {cores} cores, {pages:.0f} GiB of memory"
    kinds = torch.backends.cpu.get_cpu_capability()
    settings = ", ".join(f"{name}={value}" for name, value in facts["kernels"].items())
    yield f"kernels: PyTorch's for {kinds}, {products.library()} for a slot's products; {settings}"
    if torch.get_num_threads() > 1:
        yield f"PyTorch uses {torch.get_num_threads()} threads; OMP_NUM_THREADS=1 is faster"
    yield ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    gpu_facts = device.facts or ("not visible to PyTorch, or not requested",)
    yield f"GPU: {'; '.join(gpu_facts)}"


def library() -> Finding:
    """Time both libraries on the hidden layer of MNIST's network; check that the faster is used.

    They take turns, measured in CPU time.  A library counts as faster if it is faster in three
    quarters of the turns.
    """
    x, weight, g = torch.rand(50, 784), torch.rand(50, 784), torch.rand(50, 50)
    libraries, chosen = products.libraries(), products.library()

    def cpu_seconds(multiply: Callable[[Tensor, Tensor], Tensor]) -> float:
        begin = time.process_time()
        for _ in range(PRODUCTS_IN_A_TURN):
            multiply(weight, x)
            multiply(g, x.T)  # the gradient
        return time.process_time() - begin

    turns = [
        {name: cpu_seconds(each) for name, each in libraries.items()} for _ in range(TURNS + 1)
    ][1:]
    other = next((name for name in libraries if name != chosen), chosen)
    low, middle, _ = quantiles([turn[chosen] / turn[other] for turn in turns], n=4)
    if other == chosen:
        return Finding(f"products by {chosen}, the only available library")
    text = f"products by {chosen}; {other} is {middle:.2f} times as fast"
    fix = f"write 'products: {other.lower()}' into config.yaml" if low > MIN_SPEED_RATIO else ""
    return Finding(text, fix)


def check(name: str, device: gpu.Device) -> Finding:
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

    def updates(slots: Slots = everyone) -> Array:
        reference: Array = (
            stacked.work(theta, slots, MD(m=CLIENTS), _draws()).double().cpu().numpy()
        )
        return reference

    updates()  # libraries choose and try out
    peak = device.peak(updates)
    reference = updates()
    alone = np.concatenate([updates(Slots.stack([np.array([k])])) for k in range(CLIENTS)])
    single = replace(stacked, local=ONE)
    once = single.work(theta, everyone, MD(m=CLIENTS), _draws()).double().cpu().numpy()
    rounding, stacking = (
        _distance(once, in_double(single, theta, everyone)),
        _distance(reference, alone),
    )
    share = peak / (
        stacked.activation_bytes * CLIENTS + 4 * CLIENTS * 5 * theta.shape[1] + LIBRARY_BYTES
    )
    text = f"{name}: {rounding:.1e} from double precision, {stacking:.1e} from a single slot"
    text += f", memory {share:.2f} of the estimate"
    cpu = device.name == "cpu"
    fix = ""
    if not rounding < MAX_ROUNDING or stacking > (0 if cpu else MAX_ROUNDING):
        fix = PLAIN if cpu else ON_CPU
    elif share > MAX_MEMORY_RATIO:
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


def large_product(device: gpu.Device) -> float:
    """Measure the floating-point operations per second of a large product, as the best of a few."""
    size = PRODUCT_ROWS[device.name.partition(":")[0]]
    a = torch.randn(size, size, device=device.name)
    libraries = list(products.libraries().values()) if device.name == "cpu" else [torch.mm]
    clock = time.process_time if device.name == "cpu" else time.perf_counter
    spent = []
    for _ in range(4):
        for multiply in libraries:
            device.settle()
            begin = clock()
            multiply(a, a)
            device.settle()
            spent.append(clock() - begin)
    return 2 * size**3 / min(spent)


def hours(project: Project, rate: float) -> Iterator[str]:
    """Estimate the time of each paper at its own size, and of a round of its longest experiment.

    Parameters
    ----------
    project : Project
    rate : float
        Floating-point operations per second of a large product.
    """
    everything = {"scale": "paper", "shipped": False, "reuse": [], "store": None, "overrides": {}}
    everything |= {"experiments": None}
    whole = project.with_config(**everything)
    names = project.config.papers or [*whole.plan.papers]
    for paper in names:
        forecast = estimate(
            whole.with_config(papers=[paper]), seconds_limit=MEASURE_SECONDS / len(names)
        )
        measured = [line for line in forecast.lines if line.hours == line.hours]
        text = f"{sum(line.hours for line in measured):,.1f} h"
        if unknown := len(forecast.lines) - len(measured):
            text = f"at least {text}, {unknown} of {len(forecast.lines)} experiments not measured"
        dearest = max(measured, key=lambda line: line.hours, default=None)
        jobs = [job for job in forecast.due if dearest and _experiment(job) == dearest.experiment]
        job = next((job for job in jobs if key(job) in forecast.speeds), None)
        if dearest and job:
            seconds = forecast.speeds[key(job)].step / len(job.runs)
            text += f"; {dearest.experiment.partition('/')[2]} {seconds:.2g} s a round and seed"
            text += _share(job, project.results, whole.config, rate)
        yield f"{Path(paper).name}: {text}"


def _experiment(job: Job) -> str:
    return f"{job.paper}/{job.experiment}"


def _share(job: Job, results: Path, config: Config, rate: float) -> str:
    """Return the speed of a network's local steps, relative to a large product."""
    network = job.simulation
    if not isinstance(network, Training):
        return ""
    with suppress(InputError), capped(MAX_MEASURE_SECONDS):
        measured = counted(job, network, results, config)
        if measured.pace and measured.pace.step:
            flop = operations(measured.network, measured.sample, network.work.batch).step
            return (
                f", {100 * flop / measured.pace.step / rate:.0f} % of the product's rate in steps"
            )
    return ""


def _draws() -> Draws:
    return Draws(np.zeros(1, np.int64), 0)


def _distance(first: Array, second: Array) -> float:
    """Return the largest distance of two updates, relative to the norm of the second."""
    norms = np.linalg.norm(second, axis=1)
    return float((np.linalg.norm(first - second, axis=1) / np.where(norms > 0, norms, 1)).max())
