"""What docstrings and comments refer to exists: modules, functions and classes get new places."""

import importlib
import re
from importlib.util import find_spec, resolve_name

import pytest
from tests.shared import ROOT

REFERENCE = re.compile(r":(?:mod|func|class|data|meth|attr):`~?([\w.]+)`")
FOLDERS = {"src/fedsampling": ROOT / "src", "papers": ROOT}  # and where their modules' names begin
MODULES = {
    ".".join(path.relative_to(root).with_suffix("").parts): path
    for folder, root in FOLDERS.items()
    for path in sorted((ROOT / folder).rglob("*.py"))
    if REFERENCE.search(path.read_text(encoding="utf-8"))
}

FRAMEWORKS = {"fedsampling.adapters.flower": "flwr", "fedsampling.adapters.pfl": "pfl"}


def exists(name):
    """Whether a dotted name is a module, or something in one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if part in getattr(thing, "__annotations__", {}):
                return True  # a field, which need not have a value
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
        return True
    return False


def refers_to_something(target, module):
    """Whether a reference in a module is found, as a member of a class of it, too."""
    if target.startswith("."):
        return exists(resolve_name(target, module.__package__))
    classes = [thing for thing in vars(module).values() if isinstance(thing, type)]
    return (
        exists(target)
        or exists(f"{module.__name__}.{target}")
        or any(target in {*dir(kind), *getattr(kind, "__annotations__", ())} for kind in classes)
    )


@pytest.mark.parametrize("package", ["fedsampling", "papers"])
def test_each_reference_leads_somewhere(package, forget_own_files):
    lost = []
    for name in [name for name in MODULES if name.startswith(package)]:
        if name in FRAMEWORKS and not find_spec(FRAMEWORKS[name]):
            continue
        module = importlib.import_module(name.removesuffix(".__init__"))
        targets = REFERENCE.findall(MODULES[name].read_text(encoding="utf-8"))
        lost += [(name, each) for each in targets if not refers_to_something(each, module)]
    assert lost == []
