"""Results are bitwise reproducible with the kernels of other processors, too.

The tests of these guarantees are repeated in a process with other kernels.
"""

import os
import platform
import re
import shutil
import subprocess

import pytest
import torch
from tests.processes import run_python
from tests.shared import ROOT

PROMISED = (
    "tests/learning/models/test_products.py::test_results_do_not_depend_on_memory_alignment",
    "tests/learning/models/test_products.py::test_results_do_not_depend_on_a_slots_position",
    "tests/learning/training/test_step.py::test_a_slot_does_not_depend_on_the_slots_stacked_with_it",
    "tests/learning/training/test_learner.py::TestLocalWork"
    "::test_a_slot_does_not_depend_on_the_slots_stacked_with_it",
    "tests/learning/training/test_evaluation.py"
    "::test_a_run_does_not_depend_on_the_runs_stacked_with_it",
)
OLD = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
}
TWO_THREADS = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "OMP_NUM_THREADS": "2",
    "OPENBLAS_NUM_THREADS": "2",
    "OPENBLAS_CORETYPE": "SkylakeX",
}
INTEL = "int mkl_serv_intel_cpu_true(void) { return 1; }"  # MKL's question, which we answer
WITH_MKL = pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="PyTorch without MKL")


def run(*arguments, **variables):
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return run_python(*arguments, cwd=ROOT, **{"PYTHONPATH": path, "MKL_CBWR": None} | variables)


def keeps_its_promises(**kernels):
    output = run("-m", "pytest", "-v", "-p", "no:cacheprovider", *PROMISED, **kernels)
    passed = set(re.findall(r"^(\S+?)(?:\[.*\])? PASSED", output, flags=re.MULTILINE))
    assert passed == set(PROMISED)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="names kernels of x86-64")
@pytest.mark.parametrize(
    "kernels",
    [OLD, pytest.param(TWO_THREADS, marks=pytest.mark.long)],
    ids=["old", "two threads"],
)
def test_slots_are_the_same_to_the_last_bit_with_other_kernels(kernels):
    keeps_its_promises(**kernels)


@pytest.mark.long
@WITH_MKL
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_slots_are_the_same_to_the_last_bit_with_mkls_kernels_for_intel(tmp_path):
    source, library = tmp_path / "intel.c", tmp_path / "intel.so"
    source.write_text(INTEL)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    keeps_its_promises(LD_PRELOAD=str(library), FEDSAMPLING_PRODUCTS="mkl")


@WITH_MKL
@pytest.mark.parametrize(
    ("first", "variables", "mode"),
    [("torch", {}, "AUTO"), ("fedsampling", {"MKL_CBWR": "COMPATIBLE"}, "COMPATIBLE")],
)
def test_mkl_runs_in_a_reproducible_mode_unless_another_is_set(first, variables, mode):
    code = f"import {first}, fedsampling, torch; torch.ones(9, 9) @ torch.ones(9, 9)"
    output = run("-c", code, MKL_VERBOSE="1", **variables)
    assert f" CNR:{mode} " in output
