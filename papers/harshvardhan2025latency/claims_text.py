"""Claims c25 to c36 of harshvardhan2025latency: sentences about the paper's own Tables 1 to 3.

They need no runs: the paper's printed numbers decide.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from fedsampling.base.text import listed, show
from fedsampling.evidence.rules import stated, verdict
from fedsampling.evidence.verdicts import Finding
from fedsampling.experiments.papers import ClaimSpec, Paper
from fedsampling.report.drawing.artefacts import Summaries

from .printed_tables import DATA, LINES, PROPOSED, SEVEN, printed, printed_row

Seconds = Mapping[str, float]  # of a printed row, by sampler; infinite for N/A
BASELINES = tuple(name for name in SEVEN if name not in PROPOSED)
MNIST = ("dirichlet_mnist", "rotated_mnist", "dirichlet_fashion_mnist", "rotated_fashion_mnist")
CIFAR = ("dirichlet_cifar10", "rotated_cifar10")
REAL = ("femnist", "shakespeare")
ROUNDING = 1.0  # seconds, in differences of Table 3


def _rows(paper: Paper, names: Iterable[str], *tables: str) -> dict[str, Seconds]:
    """Return rows of Tables 1 and 2 by their names in words."""
    places = {"table1": "synthetic", "table2": "NYCMesh"}
    return {
        f"{DATA[name]}, {places[table]}": printed_row(paper, table, name).numbers
        for table in tables
        for name in names
    }


def _over(rivals: Collection[str], ours: Collection[str]) -> Callable[[Seconds], float]:
    """Return the fastest rival's seconds over those of the slowest of ours."""
    return lambda row: min(row[name] for name in rivals) / max(row[name] for name in ours)


def _best_over(*rivals: str) -> Callable[[Seconds], float]:
    """Return the fastest rival's seconds over those of the faster proposed sampler."""
    return lambda row: min(row[name] for name in rivals) / min(row[name] for name in PROPOSED)


def _second_best_over(row: Seconds) -> float:
    """Return the second-fastest baseline's seconds over those of the faster proposed sampler."""
    return sorted(row[name] for name in BASELINES)[1] / min(row[name] for name in PROPOSED)


def _at_least(
    rows: Mapping[str, Seconds], factor: Callable[[Seconds], float], least: float
) -> tuple[bool, str]:
    """Return whether a factor is at least `least` in all rows, and the smallest with its row."""
    factors = {name: factor(row) for name, row in rows.items()}
    name = min(factors, key=lambda key: factors[key])
    below = [row for row, value in factors.items() if value < least]
    missing = f"; below {least:g} in {listed(below)}" if below else ""
    return not below, f"smallest factor {show(factors[name])} ({name}){missing}"


def _finding(*statements: tuple[str, tuple[bool, str]]) -> Finding:
    """Judge the statements of a sentence: each holds or fails by the printed numbers."""
    return verdict(
        {name: stated(holds) for name, (holds, _) in statements},
        "; ".join(f"{name}: {numbers}" for name, (_, numbers) in statements),
        {
            "reproduced": "The paper's tables agree with the sentence.",
            "partly reproduced": "The paper's tables agree with a part of the sentence.",
            "contradicted": "The paper's tables do not agree with the sentence.",
        },
        contrary_decides=False,
    )


def c25(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge DelayHetSampling on real data: over random selection, and over the nearest baseline."""
    rows = _rows(paper, REAL, "table1")
    return _finding(
        ("3.5 times random", _at_least(rows, _over(["random"], ["sampling"]), 3.5)),
        ("twice the nearest baseline", _at_least(rows, _over(BASELINES, ["sampling"]), 2)),
    )


def c26(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge both proposed samplers on NYCMesh with much heterogeneity."""
    rows = _rows(paper, (*CIFAR, *REAL), "table2")
    return _finding(
        ("1.5 times the nearest baseline", _at_least(rows, _over(BASELINES, PROPOSED), 1.5)),
        ("20 times random", _at_least(rows, _over(["random"], PROPOSED), 20)),
    )


def c27(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge the better proposed sampler over ApproxOptSampling on NYCMesh."""
    rows = _rows(paper, DATA, "table2")
    return _finding(("8 times", _at_least(rows, _best_over("approx_opt"), 8)))


def c28(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge the ranks of the proposed samplers on MNIST and FashionMNIST."""
    rows = _rows(paper, MNIST, "table1", "table2")
    others = [name for name in BASELINES if name != "flanp"]
    return _finding(
        ("one is first or second", _at_least(rows, _second_best_over, 1)),
        ("both surpass all baselines but FLANP", _at_least(rows, _over(others, PROPOSED), 1)),
    )


def c29(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge the better proposed sampler against all baselines outside MNIST and FashionMNIST."""
    rows = _rows(paper, ("quadratic", *CIFAR, *REAL), "table1", "table2")
    return _finding(("faster than all baselines", _at_least(rows, _best_over(*BASELINES), 1)))


def c30(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge ApproxOptSampling against random selection and the other baselines."""
    slower = _rows(paper, ("quadratic", "dirichlet_fashion_mnist", "dirichlet_cifar10"), "table1")
    reaching = [name for name in DATA if name != "femnist"]  # where the paper prints N/A
    rows = _rows(paper, reaching, "table2")
    hard = _rows(paper, ("quadratic", *CIFAR, "shakespeare"), "table2")
    others = [name for name in BASELINES if name != "approx_opt"]
    return _finding(
        ("slower than random (synthetic)", _at_least(slower, _over(["approx_opt"], ["random"]), 1)),
        ("faster than random (NYCMesh)", _at_least(rows, _over(["random"], ["approx_opt"]), 1)),
        ("next best (NYCMesh)", _at_least(hard, _over(others, ["approx_opt"]), 1)),
    )


def c31(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge whether DivFL is never first or second."""
    rows = _rows(paper, DATA, "table1", "table2")
    ranks = {name: sorted(row.values()).index(row["divfl"]) + 1 for name, row in rows.items()}
    best = min(ranks, key=lambda name: ranks[name])
    return _finding(("rank 3 or more", (ranks[best] > 2, f"best rank {ranks[best]} ({best})")))


def c32(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge the changes along Tables 3a and 3b."""
    rotation, speed = printed(paper, "table3a"), printed(paper, "table3b")
    statements = {}
    for name, said in {"sampling": "rise_sampling", "submodular": "rise_submodular"}.items():
        rise = rotation["60"][name].number - rotation["45"][name].number
        theirs = paper.reported(said)
        statements[f"{LINES[name].label}: {theirs:g} s more at 60° than at 45°"] = (
            abs(rise - theirs) <= ROUNDING,
            f"{rise:g} s",
        )
    factors = {name: speed["1"][name].number / speed["5"][name].number for name in PROPOSED}
    statements["twice as long at 1 as at 5 MB/s"] = (
        all(round(factor, 1) == 2 for factor in factors.values()),
        listed([show(factor) for factor in factors.values()]),
    )
    return _finding(*statements.items())


def c33(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge DelayHetSampling against DelayHetSubmodular."""
    low = _rows(paper, MNIST, "table1")
    high = _rows(
        paper, ("rotated_mnist", "rotated_fashion_mnist", "rotated_cifar10", *REAL), "table2"
    )
    return _finding(
        (
            "Sampling is faster with little heterogeneity",
            _at_least(low, _over(["submodular"], ["sampling"]), 1),
        ),
        ("Submodular is faster with much", _at_least(high, _over(["sampling"], ["submodular"]), 1)),
    )


def c34(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge the runtimes along Table 3c."""
    table = printed(paper, "table3c")
    seconds = {name: [row[name].number for row in table.values()] for name in PROPOSED}
    highest = seconds["submodular"][-1] / seconds["sampling"][-1]
    words = "; ".join(
        f"{LINES[name].label} {' → '.join(f'{value:,.0f}' for value in values)}"
        for name, values in seconds.items()
    )
    return _finding(
        (
            "longer for higher targets",
            (
                all(values == sorted(values) for values in seconds.values()),
                f"{words} s",
            ),
        ),
        ("Submodular is slower at the highest", (highest > 1, f"factor {show(highest)}")),
    )


def c35(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge the order of the samplers on Quadratic."""
    rows = _rows(paper, ["quadratic"], "table1", "table2")
    aware = ["divfl", "power_of_choice"]
    return _finding(
        (
            "Submodular, then Sampling",
            _at_least(
                rows,
                lambda row: min(
                    row["sampling"] / row["submodular"],
                    min(row[name] for name in BASELINES) / row["sampling"],
                ),
                1,
            ),
        ),
        (
            "DivFL and Power-of-Choice are faster than random",
            _at_least(rows, _over(["random"], aware), 1),
        ),
    )


def c36(summaries: Summaries, spec: ClaimSpec, paper: Paper) -> Finding:
    """Judge the seconds of finding the optimal distribution."""
    seconds = {
        name: row["trust-constr"].number for name, row in printed(paper, "overheads").items()
    }
    least = min(seconds, key=lambda name: seconds[name])
    return _finding(
        ("at least a minute", (seconds[least] >= 60, f"{seconds[least]:g} s ({least})"))
    )
