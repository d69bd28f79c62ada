"""A page of all samplers: the information each needs, whether it is unbiased, and its source.

All entries come from the samplers' classes, so a new sampler gets its row automatically.
"""

from inspect import cleandoc, getattr_static
from sys import modules
from typing import Any

from fedsampling.base.families import description
from fedsampling.report.names import display_name
from fedsampling.samplers.scheme import Scheme

INFORMATION_COSTS = {
    "batch_losses": "32 bits from every client that is asked (by default, all available clients) "
    "in every round, which waits for their forward pass over a mini-batch",
    "batch_gradients": "from the clients that train; not charged",
    "bias_updates": "no cost: clients send them with their updates",
    "client_gradients": "from every client in every round; not charged",
    "delays": "no cost: the server knows the expected seconds",
    "gradients": "as many bits as a model, from every client before the first round, which waits "
    "for the slowest client; then from each client that trained",
    "heterogeneity": "the features of a batch, from every client before the first round, which "
    "waits for the slowest client; then from each client that trained",
    "label_counts": "32 bits for each label from every client before the first round",
    "labels": "no cost, but no practical server has them",
    "losses": "32 bits from every client that is asked (by default, all available clients) in "
    "every round, which waits for them",
    "mean_norms": "from every client in every round; not charged",
    "optimum": "not available to any practical server; not charged",
    "sample_norms": "from the clients that train; not charged",
    "update_norms": "32 bits from each slot that trained",
    "updates": "no cost: clients send them anyway",
    "work_losses": "32 bits from each slot that trained, with its update",
}


def page() -> str:
    """Write the page, in Markdown."""
    members = Scheme.members()
    files = {member.__module__ for member in members.values()}
    return "\n".join(
        [
            "# All samplers",
            "",
            "Look up what a sampler does, which information it needs, and where it comes from. The "
            "class behind each link documents its settings, what the paper leaves open, and our "
            "choice. `fedsampling schemes` generates this page.",
            "",
            "| key | name | what it does | needs | unbiased | unavailable clients | source |",
            "|---|---|---|---|---|---|---|",
            *(_row(name, member) for name, member in members.items()),
            "",
            "*Unbiased*: E[ω_i] = p_i. *Unavailable clients*: whether the sampler works if some "
            "clients are unavailable (`availability`).",
            "",
            "## Cost of the information that samplers need",
            "",
            *(f"- `{name}`: {cost}." for name, cost in sorted(INFORMATION_COSTS.items())),
            "",
            "## Sources",
            "",
            *(
                f"- `{file.rpartition('.')[2]}.py`: {references(modules[file])}"
                for file in sorted(files)
            ),
            "",
        ]
    )


def in_words(member: type[Scheme], name: str) -> str:
    """Return a boolean attribute of a class as yes or no; as the condition if it is a property."""
    attribute = getattr_static(member, name)
    if isinstance(attribute, property):
        return cleandoc(attribute.__doc__ or "").rstrip(".").lower()
    return "yes" if attribute else "no"


def references(documented: Any) -> str:
    """Return the References section of a docstring in one line."""
    _, _, text = cleandoc(documented.__doc__ or "").partition("References\n----------\n")
    return text.partition("\n\n")[0].replace("\n", " ")


def _row(name: str, member: type[Scheme]) -> str:
    file = member.__module__.rpartition(".")[2]
    cells = (
        f"[`{name}`](../src/fedsampling/samplers/{file}.py)",
        display_name(name).title,
        description(member),
        _needs(member),
        in_words(member, "unbiased"),
        "yes" if member.intermittent else "no",
        references(member) or "see below",
    )
    return f"| {' | '.join(cell.replace('|', '∣') for cell in cells)} |"


def _needs(member: type[Scheme]) -> str:
    needs = getattr_static(member, "needs")
    if isinstance(needs, property):
        return cleandoc(needs.__doc__ or "").rstrip(".")
    return ", ".join(f"`{name}`" for name in sorted(needs)) or "–"
