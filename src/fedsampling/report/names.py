"""Names of papers, samplers and datasets on all pages and figures, and the page of all samplers.

Users write keys in YAML, such as ``available`` or ``dna``; pages show the names that papers use.
The names and the page's entries come from the classes, so a new sampler gets its row automatically.
"""

from dataclasses import dataclass
from inspect import cleandoc, getattr_static
from itertools import chain
from sys import modules
from typing import Any

from fedsampling.base.families import description
from fedsampling.clients.delays import DelayModel
from fedsampling.data.datasets.dataset import Dataset
from fedsampling.experiments.papers import Paper
from fedsampling.learning.training.costs import INFORMATION_COSTS
from fedsampling.samplers.leaks import learned, secure_sums
from fedsampling.samplers.protocol.base import Scheme


@dataclass(frozen=True)
class Name:
    """Display name of a sampler."""

    title: str  # full name with its abbreviation, for pages
    short: str  # short name, for figures


def display_name(key: str) -> Name:
    """Return a key's display name: of its sampler with settings, or the key if unknown."""
    base = key
    while not (sampler := next(Scheme.named_as(base), None)):
        if "-" not in base:
            return Name(key, key)
        base = base.rpartition("-")[0]
    setting = key.removeprefix(base).replace("-", " ")
    suffix = f",{setting}" if setting else ""
    return Name(sampler.title + suffix, sampler.short + suffix)


def run_label(label: str, sampler: str) -> str:
    """Name the runs of a sampler by their label in ``paper.yaml``, as the explorer shows them.

    Labels may shorten the sampler's name: ``sampling-start`` of delayhet_sampling becomes
    ``DelayHetSampling, start``.
    """
    short = display_name(label).short
    own = display_name(sampler).short
    if short != label:  # the label is a sampler; runs of another one have none of its settings
        same = label == sampler or label.startswith(f"{sampler}-")
        return short if same or "-" in label else short.partition(",")[0]
    first, _, setting = label.partition("-")
    words = setting if first in sampler.split("_") else label
    words = words.replace("-", " ")
    name = own if own != sampler else sampler.replace("_", " ")
    return name if words in ("", name) else f"{name}, {words}"


def is_shipped(sampler: str) -> bool:
    """Whether this package defines the sampler, and not a user."""
    return any(s.__module__.startswith("fedsampling.") for s in Scheme.named_as(sampler))


def paper_name(paper: Paper) -> str:
    """Return the short citation of a paper, such as ``Chen et al., 2022``."""
    first, *coauthors = paper.authors.split(", ")
    # A single author may be an organisation, whose name is kept in full.
    return f"{first.split()[-1]} et al., {paper.year}" if coauthors else f"{first}, {paper.year}"


def dataset_name(key: str) -> str:
    """Return the display name of a dataset, or of measured delays."""
    member = next(chain(Dataset.named_as(key), DelayModel.named_as(key)), None)
    return member.title if member else key


def page() -> str:
    """Write the page, in Markdown."""
    from fedsampling.report.text import macro

    rows = [_row(name, member) for name, member in Scheme.members().items()]
    files = {member.__module__ for member in Scheme.members().values()}
    sources = {file.rpartition(".")[2]: references(modules[file]) for file in files}
    return macro("schemes.md.j2", "page", rows, INFORMATION_COSTS, sources) + "\n"


def in_words(member: type[Scheme], name: str) -> str:
    """Return a boolean attribute of a class as yes or no, or the condition that decides it.

    It is the docstring of a property, or, if `name` is None, of the method ``is_<name>``.
    """
    attribute = getattr_static(member, name)
    if attribute is None:
        attribute = getattr(member, f"is_{name}")
    elif not isinstance(attribute, property):
        return "yes" if attribute else "no"
    return cleandoc(attribute.__doc__ or "").rstrip(".").lower().replace("whether", "true if", 1)


def references(documented: Any) -> str:
    """Return the References section of a docstring in one line."""
    _, _, text = cleandoc(documented.__doc__ or "").partition("References\n----------\n")
    return text.partition("\n\n")[0].replace("\n", " ")


def _row(name: str, member: type[Scheme]) -> tuple[str, ...]:
    file = member.__module__.rpartition(".")[2]
    needs = getattr_static(member, "needs")
    if isinstance(needs, property):
        needs_in_words = cleandoc(needs.__doc__ or "").rstrip(".")
    else:
        needs_in_words = ", ".join(f"`{name}`" for name in sorted(needs)) or "–"
    return (
        f"[`{name}`](../src/fedsampling/samplers/{file}.py)",
        member.title,
        description(member),
        needs_in_words,
        learned(member),
        secure_sums(member),
        in_words(member, "unbiased"),
        "yes" if member.intermittent else "no",
        references(member) or "see below",
    )
