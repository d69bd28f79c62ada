"""Check that this machine computes correctly, and measure its speed: ``fedsampling doctor``.

Lists the hardware and libraries, compares a small round of every network with double precision on
the CPU, and times each paper's networks at the papers' own sizes.  A failed check is one line with
its fix.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from statistics import quantiles

import torch
from torch import Tensor

from fedsampling.base.errors import InputError
from fedsampling.experiments.config import Config
from fedsampling.experiments.simulations.network import Network
from fedsampling.experiments.specs import Job
from fedsampling.learning.models.networks import products
from fedsampling.learning.models.networks.cost import keep_memory, operations
from fedsampling.learning.training.network import gpu
from fedsampling.runs.cluster.measuring import MAX_MEASURE_SECONDS, capped, measured_cost
from fedsampling.runs.cluster.resources import measurement_key
from fedsampling.runs.execute import choose_products, environment
from fedsampling.runs.execute import device as chosen_device
from fedsampling.workflow.costs import estimate
from fedsampling.workflow.machine.network_check import Finding, check_network, networks
from fedsampling.workflow.project import Project

TIMING_SECONDS = 60.0  # for all papers' experiments
MIN_SPEED_RATIO = 1.2  # from which the other library is recommended
TURNS, PRODUCTS_IN_A_TURN = 20, 20  # of timing the two libraries
PRODUCT_ROWS = {"cpu": 1536, "cuda": 8192}  # of the large product


def examine(project: Project, echo: Callable[[str], None], speed: bool = True) -> bool:
    """Run all checks; return whether they pass.

    Parameters
    ----------
    project : Project
    echo : callable
        Prints a line.
    speed : bool
        Whether to time the papers' experiments, for up to a minute.
    """
    keep_memory()
    choose_products(project.config)
    device = gpu.device(chosen_device(project.config))
    echo("This machine")
    for line in machine_facts(device):
        echo(f"     {line}")
    echo("Results of one small round of each network: largest relative difference from double")
    echo("precision, and from one slot at a time; memory as a fraction of its estimate")
    failed = 0
    for finding in _findings(device):
        echo(str(finding))
        failed += bool(finding.fix)
    if failed:
        echo(f"{failed} checks failed; each FAIL line ends with the fix")
    else:
        echo("All checks pass.")
    if speed:
        flops = large_product_speed(device)
        echo(f"Speed at the papers' size: a large product makes {flops / 1e9:.0f} GFLOP/s")
        for line in training_times(project, flops):
            echo(f"     {line}")
    return not failed


def _findings(device: gpu.Device) -> Iterator[Finding]:
    yield product_library()
    for name in networks():
        yield check_network(name, device)


def machine_facts(device: gpu.Device) -> Iterator[str]:
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


def product_library() -> Finding:
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
        {name: cpu_seconds(multiply) for name, multiply in libraries.items()}
        for _ in range(TURNS + 1)
    ][1:]
    rival = next((name for name in libraries if name != chosen), chosen)
    low, middle, _ = quantiles([turn[chosen] / turn[rival] for turn in turns], n=4)
    if rival == chosen:
        return Finding(f"products by {chosen}, the only available library")
    text = f"products by {chosen}; {rival} is {middle:.2f} times as fast"
    fix = f"write 'products: {rival.lower()}' into config.yaml" if low > MIN_SPEED_RATIO else ""
    return Finding(text, fix)


def large_product_speed(device: gpu.Device) -> float:
    """Return the floating-point operations per second of a large product, the best of a few."""
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


def training_times(project: Project, flops: float) -> Iterator[str]:
    """Estimate the time of each paper at its own size, and of a round of its longest experiment.

    Parameters
    ----------
    project : Project
    flops : float
        Floating-point operations per second of a large product.
    """
    everything = {"scale": "paper", "shipped": False, "reuse": [], "store": None}
    full_size = project.with_config(**everything, overrides={}, experiments=None)
    names = project.config.papers or [*full_size.plan.papers]
    for paper in names:
        costs = estimate(
            full_size.with_config(papers=[paper]), seconds_limit=TIMING_SECONDS / len(names)
        )
        measured = [cost for cost in costs.experiments if cost.hours == cost.hours]
        text = f"{sum(cost.hours for cost in measured):,.1f} h"
        if unknown := len(costs.experiments) - len(measured):
            count = f"{unknown} of {len(costs.experiments)}"
            text = f"at least {text}, {count} experiments not measured"
        longest = max(measured, key=lambda cost: cost.hours, default=None)
        for job in costs.unfinished:
            times = costs.measurements.get(measurement_key(job))
            if longest and times and job.experiment_id == longest.experiment:
                seconds = times.step / len(job.runs)
                text += f"; {job.experiment} {seconds:.2g} s a round and seed"
                text += _step_speed(job, project.results, full_size.config, flops)
                break
        yield f"{Path(paper).name}: {text}"


def _step_speed(job: Job, results: Path, config: Config, flops: float) -> str:
    """Return the speed of a network's local steps, relative to a large product."""
    network = job.simulation
    if not isinstance(network, Network):
        return ""
    with suppress(InputError), capped(MAX_MEASURE_SECONDS):
        cost = measured_cost(job, network, results, config)
        if cost.timings and cost.timings.step:
            step = operations(cost.network, cost.sample_shape, network.work.batch).step
            share = step / cost.timings.step / flops
            return f", {100 * share:.0f} % of the product's rate in steps"
    return ""
