"""The check of a GPU before it trains for the first time.

Before the first use of a GPU, driver or version of PyTorch, the doctor's small round of every
network runs on it.  The result is stored in ``results/gpus/``.  If a check fails, networks are
trained on the CPU.
"""

import sys
from pathlib import Path

from fedsampling.base.errors import InputError
from fedsampling.base.files import digest, read_record, write_record
from fedsampling.experiments.config import Config
from fedsampling.runs.execute import device

FOLDER = "gpus"


def with_sound_device(config: Config, results: Path) -> Config:
    """Return the configuration, with ``device: cpu`` if this machine's GPU fails a check.

    Parameters
    ----------
    config : Config
    results : Path
        Folder that holds the records of earlier checks.

    Raises
    ------
    InputError
        If the GPU fails, and the configuration requires one.
    """
    if device(config) == "cpu":
        return config
    facts, failures = _checked(results / FOLDER)
    if not failures:
        return config
    if config.device == "cuda":
        fix = "use cpu or auto; 'fedsampling doctor' repeats the checks"
        raise InputError(*(f"device: {facts[0]}: {failure}; {fix}" for failure in failures))
    for failure in failures:
        print(f"{facts[0]}: {failure}", file=sys.stderr)
    print("device: this GPU fails checks; networks are trained on the CPU", file=sys.stderr)
    return config.model_copy(update={"device": "cpu"})


def _checked(folder: Path) -> tuple[list[str], list[str]]:
    """Return the GPU's facts and failed checks: from the record, or after running the checks."""
    import torch

    from fedsampling.learning.training.network import gpu

    current = gpu.device("cuda")
    facts = [*current.facts, f"PyTorch {torch.__version__}"]
    path = folder / f"{digest(facts)}.json"
    try:
        return facts, read_record(path)["failures"]
    except InputError:
        from fedsampling.workflow.machine.network_check import check_network, networks

        print(f"{facts[0]}: first use; checking every network", file=sys.stderr)
        findings = [check_network(name, current) for name in networks()]
        failures = [finding.text for finding in findings if finding.fix]
        write_record(path, {"facts": facts, "failures": failures})
        return facts, failures
