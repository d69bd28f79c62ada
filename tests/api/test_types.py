"""Type checkers and editors see the public names: each error in a user's script is reported."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.shared import ROOT

import fedsampling as fs
from fedsampling.api import keywords
from fedsampling.api.train import train
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.data.partitions.partition import Partition
from fedsampling.experiments.networks.settings import Evaluation, Training
from fedsampling.learning.training.local_work import LocalWork

SCRIPT = Path(__file__).with_name("typed_script.py")
CHECKERS = {
    "mypy": ["mypy", "--config-file=", "--cache-dir=.mypy_cache/api"],
    "basedpyright": ["basedpyright", "--level=error", f"--pythonpath={sys.executable}"],
}


@pytest.mark.long(ci=True)
@pytest.mark.parametrize("checker", CHECKERS)
def test_each_error_in_a_users_script_is_found_and_no_other(checker):
    pytest.importorskip(checker)
    command = [sys.executable, "-m", *CHECKERS[checker], str(SCRIPT.relative_to(ROOT))]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.findall(rf"{SCRIPT.name}:(\d+)\S*(?: -)? error:", result.stdout)
    lines = SCRIPT.read_text(encoding="utf-8").splitlines()
    wrong = {n for n, line in enumerate(lines, start=1) if line.endswith("# wrong")}
    assert {int(number) for number in found} == wrong, result.stdout + result.stderr


def test_the_script_has_an_error_for_each_public_name():
    wrong = [line for line in SCRIPT.read_text("utf-8").splitlines() if line.endswith("# wrong")]
    used = {name for line in wrong for name in re.findall(r"fs\.(\w+)", line)}
    own = {"Sampler", "Scheme"}  # the errors are in calls of classes derived from them
    assert used - {"trian"} | own == {*fs.__all__}


def typed_names(module):
    """Return the names that a module defines for type checkers only."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imported = [n for node in block.body if isinstance(node, ast.ImportFrom) for n in node.names]
    functions = {node.name for node in block.body if isinstance(node, ast.FunctionDef)}
    return {name.asname for name in imported if name.asname} | functions


def test_type_checkers_see_all_public_names():
    assert typed_names(fs) == {*fs.__all__}


def test_type_checkers_see_all_partitions():
    members = {member.__name__ for member in Partition.members().values()}
    assert typed_names(fs.partitions) == members


def test_keywords_for_type_checkers_are_those_of_the_records():
    records = {*Training.model_fields, *LocalWork.model_fields, *Evaluation.model_fields}
    named = {name for name in inspect.signature(train).parameters if name != "settings"}
    nested = {"work", "evaluation", "sampler", "every"}  # given by single keywords
    settings = keywords.TrainingSettings.__annotations__.keys()
    assert {*settings} == records - named - nested
    arguments = keywords.TrainingArguments.__annotations__.keys()
    assert arguments - settings == named - {"data", "scheme"}


def test_keywords_of_datasets_for_type_checkers_are_those_of_the_records():
    fields = {key for member in Dataset.members().values() for key in member.model_fields}
    assert {*keywords.DatasetSettings.__annotations__} == fields - {"name", "partition"}
