"""A page of all schemes: what each needs, whether it is unbiased, and where it comes from.

Everything is read from the classes, so that a scheme which is added has its row.
"""

from inspect import cleandoc, getattr_static
from sys import modules
from typing import Any

from fedsampling.samplers.scheme import CONVEX_SHOWS, NETWORKS_SHOW, Scheme

COSTS = {
    "batch_gradients": "of those who train; not charged",
    "client_gradients": "of everybody in every round; not charged",
    "delays": "nothing: the server knows the seconds that it expects",
    "gradients": "a model's bits from every client before the first round, which waits for the "
    "slowest; then from each that trained",
    "heterogeneity": "features of a batch from every client before the first round, which waits "
    "for the slowest; then from each that trained",
    "labels": "nothing, but no practical server has them",
    "losses": "32 bits from every client in every round, which waits for those who were asked",
    "mean_norms": "of everybody in every round; not charged",
    "optimum": "what no practical server has; not charged",
    "sample_norms": "of those who train; not charged",
    "update_norms": "32 bits from each slot that trained",
    "updates": "nothing: they are sent anyway",
    "work_losses": "32 bits from each slot that trained, with its update",
}


def page() -> str:
    """Write the page, in Markdown."""
    members = Scheme.members()
    files = {member.__module__ for member in members.values()}
    return "\n".join(
        [
            "# All schemes",
            "",
            "Written by `fedsampling schemes`; a test keeps it so. What the papers leave open, and "
            "what was chosen, is in the docstring of each class, behind its link.",
            "",
            "| name | what it does | needs | unbiased | clients may come and go | source |",
            "|---|---|---|---|---|---|",
            *(_row(name, member) for name, member in members.items()),
            "",
            "*Unbiased*: E[ω_i] = p_i. *Clients may come and go*: whether it trains where a run "
            "has an `availability`.",
            "",
            "## What it costs to observe",
            "",
            *(f"- `{name}`: {COSTS[name]}." for name in sorted(NETWORKS_SHOW | CONVEX_SHOWS)),
            "",
            "## Sources",
            "",
            *(
                f"- `{file.rpartition('.')[2]}.py`: {section(modules[file])}"
                for file in sorted(files)
            ),
            "",
        ]
    )


def purpose(member: type[Scheme]) -> str:
    """Return what a scheme does, in one sentence."""
    return cleandoc(member.__doc__ or "").split("\n\n")[0].replace("\n", " ")


def said(member: type[Scheme], name: str) -> str:
    """Return what a class says of itself: yes, no, or when."""
    given = getattr_static(member, name)
    if isinstance(given, property):
        return cleandoc(given.__doc__ or "").rstrip(".").lower()
    return "yes" if given else "no"


def section(of: Any) -> str:
    """Return what stands under References in a docstring, in one line."""
    _, _, text = cleandoc(of.__doc__ or "").partition("References\n----------\n")
    return text.partition("\n\n")[0].replace("\n", " ")


def _row(name: str, member: type[Scheme]) -> str:
    file = member.__module__.rpartition(".")[2]
    cells = (
        f"[`{name}`](../src/fedsampling/samplers/{file}.py)",
        purpose(member),
        _needs(member),
        said(member, "unbiased"),
        "yes" if member.intermittent else "no",
        section(member) or "see below",
    )
    return f"| {' | '.join(cell.replace('|', '∣') for cell in cells)} |"


def _needs(member: type[Scheme]) -> str:
    given = getattr_static(member, "needs")
    if isinstance(given, property):
        return cleandoc(given.__doc__ or "").rstrip(".")
    return ", ".join(f"`{name}`" for name in sorted(given)) or "–"
