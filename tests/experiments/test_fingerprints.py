"""Fingerprints change with the imported code, and with nothing else."""

from pathlib import Path

import pytest
from tests.processes import run_python
from tests.shared import PAPERS

from fedsampling.experiments import fingerprints

SOURCES = {
    "__init__": "",
    "start": "from fedsampling.near import f\nimport fedsampling.below.inner\nimport numpy\n",
    "near": "def f():\n    from fedsampling import far\n    return far\n",
    "far": '"""What it is."""\nimport fedsampling.start\nX = 1\n',  # a circle
    "below/__init__": "",
    "below/inner": "from ..near import f\nfrom ..runs.store import X\n",  # found twice
    "unrelated": "from fedsampling import start\n",
    "runs/__init__": "",
    "runs/store": "from fedsampling import unrelated\n",
}
PAPER = {
    "figures": "from .shared import LEVEL\nfrom fedsampling.near import f\n",
    "shared": "LEVEL = 1\n",
    "claims": "",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    root = tmp_path / "fedsampling"
    for folder, files in ((root, SOURCES), (tmp_path / "theirs" / "mine2026new", PAPER)):
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.py").write_text(text)
    monkeypatch.setattr(fingerprints, "PACKAGE", root)
    for name in ("_read", "fingerprint"):  # without their caches
        monkeypatch.setattr(fingerprints, name, getattr(fingerprints, name).__wrapped__)
    return root


def moved(package, name, text):
    """Whether the fingerprint of ``start`` changes with the text of another module."""
    before = fingerprints.fingerprint("fedsampling.start")
    (package / f"{name}.py").write_text(text)
    return fingerprints.fingerprint("fedsampling.start") != before


@pytest.mark.parametrize(
    ("name", "moves"),
    [
        *((name, True) for name in ("start", "near", "far", "below/inner")),
        *((name, False) for name in ("unrelated", "runs/store", "new")),
    ],
)
def test_changes_in_imported_modules_and_no_others_change_the_fingerprint(package, name, moves):
    assert moved(package, name, SOURCES.get(name, "") + "Y = 2\n") == moves


@pytest.mark.parametrize(
    ("text", "moves"),
    [
        ("X=1", False),
        ('"""What it is not."""\n\n# a comment\nX = (1)\n"""Of X."""\n', False),
        ("if TYPE_CHECKING:\n    from fedsampling import unrelated\nX = 1\n", False),
        *((text, True) for text in ("X = 1.0", "X = '1'", "x = 1", "X: int = 1", "X = 1\nX")),
    ],
)
def test_code_changes_the_fingerprint_but_comments_and_layout_do_not(package, text, moves):
    assert moved(package, "far", f"import fedsampling.start\n{text}") == moves


@pytest.mark.parametrize(
    ("before", "after", "moves"),
    [
        ("raise InputError(f'm: {m}; fix it')", "raise InputError(f'm: {m}, so change it')", False),
        ("raise InputError(f'm: {m}')", "raise InputError(f'm: {n}')", True),
        ("raise Found('a')", "raise Found('b')", True),
        ("m = Field(1, description='clients')", "m = Field(1, description='all')", False),
        ("m = Field(1, description='clients')", "m = Field(2, description='clients')", True),
        ("m = Field('a')", "m = Field('b')", True),
        ("m = hashed_if_set(1, 'clients')", "m = hashed_if_set(1, 'all')", False),
        ("def f():\n    'Of m.'", "def f():\n    'Of all m.'  # why", False),
        ("class A:\n    'Of m.'\n    m = 1", "class A:\n    'Of all m.'\n    m = 1", False),
        ("def f():\n    return 'm'", "def f():\n    return 'all m'", True),
    ],
)
def test_messages_and_descriptions_do_not_change_the_fingerprint(package, before, after, moves):
    (package / "far.py").write_text(f"import fedsampling.start\n{before}\n")
    assert moved(package, "far", f"import fedsampling.start\n{after}\n") == moves


def test_a_papers_modules_are_found_wherever_its_folder_lies(package):
    papers, figures = package.parent / "theirs", "papers.mine2026new.figures"
    result = fingerprints.sources([figures], papers)
    imported = {f"fedsampling.{name}" for name in ("start", "near", "far", "below.inner")}
    assert result == {figures, "papers.mine2026new.shared"} | imported
    before = fingerprints.fingerprint(figures, papers=papers)
    (papers / "mine2026new" / "claims.py").write_text("X = 1\n")
    assert fingerprints.fingerprint(figures, papers=papers) == before
    (papers / "mine2026new" / "shared.py").write_text("LEVEL = 2\n")
    assert fingerprints.fingerprint(figures, papers=papers) != before


def test_order_and_repetition_of_roots_do_not_matter(package):
    roots = ("fedsampling.start", "fedsampling.unrelated")
    before = fingerprints.fingerprint(*roots)
    assert fingerprints.fingerprint(*roots[::-1], *roots) == before
    assert fingerprints.fingerprint(roots[0]) != before


def test_a_fingerprint_is_equal_in_every_process_and_imports_nothing():
    code = (
        "import sys; from fedsampling.experiments.specs import fingerprint; "
        "print(fingerprint('fedsampling.experiments.simulations.federated'),"
        " 'fedsampling.experiments.simulations.federated' in sys.modules)"
    )
    expected = fingerprints.fingerprint("fedsampling.experiments.simulations.federated")
    assert run_python("-c", code, PYTHONHASHSEED="5").split() == [expected, "False"]


def test_a_samplers_runs_depend_on_its_family_and_the_protocol():
    protocol = {f"protocol.{name}" for name in ("base", "draws", "guest", "slots")}
    families = {
        "fedcs": {"fedcs"},
        "kvib": {"kvib", "optimal"},
        "osmd": {"osmd"},
        "oort": {"oort"},
        "oort_fedscale": {"oort", "oort_fedscale"},
        "tifl": {"tifl"},
    }
    for name, family in families.items():
        modules = fingerprints.sources([f"fedsampling.samplers.{name}"], PAPERS)
        start = "fedsampling.samplers."
        used = {module.removeprefix(start) for module in modules if module.startswith(start)}
        assert used - protocol == family


def test_neutral_modules_are_these():
    """A module that enters or leaves this list silently would make finished runs look valid."""
    assert {name.removeprefix("fedsampling.") for name in fingerprints.NEUTRAL} == {
        "base.code",
        "base.errors",
        "base.families",
        "base.files",
        "base.input_states",
        "base.inputs",
        "base.nested",
        "base.progress",
        "base.record_errors",
        "base.records",
        "base.stopping",
        "base.strict_numbers",
        "data.sources.",
        "experiments.config",
        "experiments.cross_matrix",
        "experiments.dataset_uses",
        "experiments.fingerprints",
        "experiments.paper_modules",
        "experiments.papers",
        "experiments.registration",
        "experiments.resolving",
        "experiments.selecting",
        "experiments.shorthand",
        "experiments.specs",
        "learning.models.settings",
        "learning.training.checkpoint",
        "runs.",
        "workflow.",
    }


def test_every_neutral_module_exists():
    for name in fingerprints.NEUTRAL:
        assert fingerprints.path_of(name.rstrip("."), Path()).is_file(), name


def test_a_paper_depends_on_no_other():
    for path in PAPERS.glob("*/*.py"):
        result = fingerprints.sources([f"papers.{path.parent.name}.{path.stem}"], PAPERS)
        of = {name.split(".")[1] for name in result if name.startswith("papers.")}
        assert of == {path.parent.name}
