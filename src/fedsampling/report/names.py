"""Names of papers, samplers and datasets on all pages and figures, and the page of all samplers.

Users write keys in YAML, such as ``available`` or ``dna``; pages show the names that papers use.  A
user's own sampler or dataset is shown by its key.  The page's entries come from the samplers'
classes, so a new sampler gets its row automatically.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import cleandoc, getattr_static
from sys import modules
from typing import Any

from fedsampling.base.families import description
from fedsampling.experiments.papers import Paper
from fedsampling.samplers.scheme import Scheme


@dataclass(frozen=True)
class Name:
    """Display name of a sampler."""

    title: str  # full name with its abbreviation, for pages
    short: str  # short name, for figures


NAMES: Mapping[str, Name] = {
    "cpow_d": Name(
        "Power-of-Choice with losses on a mini-batch (cpow-d)", "Power-of-Choice, mini-batch"
    ),
    "fedgs": Name("Graph-based sampling (FedGS)", "FedGS"),
    "fedcor": Name("Correlation of clients' losses (FedCor)", "FedCor"),
    "fedvarp": Name("Uniform sampling with remembered updates (FedVARP)", "FedVARP"),
    "hics": Name("Hierarchical clustered sampling (HiCS-FL)", "HiCS-FL"),
    "mifa": Name("Last updates of all clients (MIFA)", "MIFA"),
    "oort_fedscale": Name("Oort as in FedScale's code", "Oort, FedScale"),
    "active_fl": Name("Active federated learning (ActiveFL)", "ActiveFL"),
    "f3ast": Name("Sampling by participation rates (F3AST)", "F3AST"),
    "fedavg_normalised": Name("FedAvg, weights normalised over participants", "FedAvg"),
    "rpow_d": Name("Power-of-Choice with stale losses (rpow-d)", "Power-of-Choice, stale losses"),
    "tifl_adaptive": Name("Adaptive tier selection (TiFL)", "TiFL, adaptive"),
    "approx_opt": Name("Approximately optimal sampling (ApproxOptSampling)", "ApproxOptSampling"),
    "available": Name("Optimal client sampling (OCS)", "OCS"),
    "binomial": Name("Binomial sampling", "Binomial"),
    "clustered_similarity": Name(
        "Clustered sampling by similarity of updates", "Clustered, similarity"
    ),
    "clustered_size": Name("Clustered sampling by sample size", "Clustered, size"),
    "cyclic": Name("Cyclic client participation", "Cyclic"),
    "delayhet_sampling": Name("DelayHet by sampling (DelayHetSampling)", "DelayHetSampling"),
    "delayhet_submodular": Name(
        "DelayHet by submodular maximisation (DelayHetSubmodular)", "DelayHetSubmodular"
    ),
    "delta": Name("Diverse client sampling (DELTA)", "DELTA"),
    "divfl": Name("Diverse client selection (DivFL)", "DivFL"),
    "fedavg": Name(
        "FedAvg in which absent clients keep the global model", "FedAvg, absent keep the model"
    ),
    "fedcs": Name("Client selection by deadline (FedCS)", "FedCS"),
    "flanp": Name("Fastest clients first (FLANP)", "FLANP"),
    "full": Name("Full participation (all clients)", "all clients"),
    "isfedavg": Name("Importance sampling of clients and data (ISFedAvg)", "ISFedAvg"),
    "isfedavg_agents": Name(
        "Importance sampling of clients (ISFedAvg, agents)", "ISFedAvg, agents"
    ),
    "kvib": Name("Online variance reduction (K-Vib)", "K-Vib"),
    "luo2022": Name("Adaptive client sampling (Luo et al. 2022)", "Luo et al."),
    "md": Name("MD sampling (multinomial)", "MD"),
    "oort": Name("Oort: guided participant selection", "Oort"),
    "poisson": Name("Poisson sampling", "Poisson"),
    "power_of_choice": Name("Power-of-Choice (largest losses)", "Power-of-Choice"),
    "random": Name("Random selection", "random"),
    "stratified": Name("Stratified sampling", "Stratified"),
    "target": Name("Target sampling (one client per label)", "target"),
    "tifl": Name("Tier-based selection (TiFL)", "TiFL"),
    "uniform": Name("Uniform sampling", "Uniform"),
}

DATASETS: Mapping[str, str] = {
    "cifar10": "CIFAR-10",
    "dna": "DNA splice junctions",
    "emnist_digits": "EMNIST digits by writer",
    "fashion_mnist": "Fashion-MNIST",
    "femnist": "FEMNIST (LEAF)",
    "femnist_255": "FEMNIST, 255 writers",
    "letter": "Letter recognition",
    "mnist": "MNIST",
    "nycmesh": "Delays of NYC Mesh",
    "quadratic": "Quadratic",
    "regression": "Linear regression",
    "satellite": "Satellite images",
    "shakespeare": "Shakespeare (LEAF)",
    "shuttle": "Space shuttle",
    "spam": "Spam e-mails",
    "synthetic": "Synthetic",
    "tff_cifar100": "CIFAR-100 (TensorFlow Federated)",
    "tff_shakespeare": "Shakespeare (TensorFlow Federated)",
    "uci_har": "Smartphone activities (UCI HAR)",
    "vowel": "Vowels",
}


def display_name(key: str) -> Name:
    """Return a key's display name: of its sampler with settings, or the key if unknown."""
    if key in NAMES:
        return NAMES[key]
    base = max((key_of for key_of in NAMES if key.startswith(f"{key_of}-")), key=len, default="")
    if not base:
        return Name(key, key)
    setting = key.removeprefix(f"{base}-").replace("-", " ")
    sampler = NAMES[base]
    return Name(f"{sampler.title}, {setting}", f"{sampler.short}, {setting}")


def paper_name(paper: Paper) -> str:
    """Return the short citation of a paper, such as ``Chen et al., 2022``."""
    first, *coauthors = paper.authors.split(", ")
    # A single author may be an organisation, whose name is kept in full.
    return f"{first.split()[-1]} et al., {paper.year}" if coauthors else f"{first}, {paper.year}"


def dataset_name(key: str) -> str:
    """Return the display name of a dataset, or of measured delays."""
    return DATASETS.get(key, key)


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
    from fedsampling.report.text import macro

    rows = [_row(name, member) for name, member in Scheme.members().items()]
    files = {member.__module__ for member in Scheme.members().values()}
    sources = {file.rpartition(".")[2]: references(modules[file]) for file in files}
    return macro("schemes.md.j2", "page", rows, INFORMATION_COSTS, sources) + "\n"


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


def _row(name: str, member: type[Scheme]) -> tuple[str, ...]:
    file = member.__module__.rpartition(".")[2]
    needs = getattr_static(member, "needs")
    if isinstance(needs, property):
        needs_in_words = cleandoc(needs.__doc__ or "").rstrip(".")
    else:
        needs_in_words = ", ".join(f"`{name}`" for name in sorted(needs)) or "–"
    return (
        f"[`{name}`](../src/fedsampling/samplers/{file}.py)",
        display_name(name).title,
        description(member),
        needs_in_words,
        in_words(member, "unbiased"),
        "yes" if member.intermittent else "no",
        references(member) or "see below",
    )
