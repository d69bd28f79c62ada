"""The distributions of clustered sampling and the clients' data: Figures 3 to 5 and `weights`.

The distributions are the r_ki that the experiment `allocation` kept of real client sets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fedsampling.base.arrays import Array, Bools, Ints
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.style import CLASSES, panels

from .lines import LINES, by_alpha

HATCH = "////"
PATCHES = [Patch(color=colour, label=str(c)) for c, colour in enumerate(CLASSES)]
EDGE: dict[str, Any] = {"edgecolor": "white", "linewidth": 0.5}
COUNT = "count/label="  # how the metrics of a partition begin


@dataclass(frozen=True)
class Distributions:
    """The distributions of one run.

    `r`, shape (m, n). `samples`, `label`, `group`, shape (n,): of each client; its group's rank by
    samples, −1 without groups.
    """

    r: Array
    samples: Ints
    label: Ints
    group: Ints


def figure3(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 3: the clients laid over the distributions of Algorithm 1, largest first."""
    summary = summaries["allocation"]
    allocations = {
        case: _allocation(summary, case, "algorithm1") for case in summary.settings["cases"]
    }
    with panels(1, len(allocations), width=4.6 * len(allocations), height=4.3) as (figure, axes):
        for panel, (case, allocation) in zip(axes, allocations.items(), strict=True):
            order = np.argsort(-allocation.samples, kind="stable")
            _distributions(panel, allocation, order, hatched=(allocation.r > 0).sum(0) > 1)
            panel.set_title(_title(summary, case))
        _legend(figure, PATCHES)
    return Artefact(
        _table(allocations),
        figure,
        alt="Stacked bars: which clients each of the m distributions of Algorithm 1 consists of.",
    )


def figure4(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 4: the groups of similar clients, and Algorithm 2's distributions of them."""
    summary = summaries["allocation"]
    allocations = {
        case: _allocation(summary, case, "algorithm2") for case in summary.settings["cases"]
    }
    n = len(allocations)
    with panels(2, n, width=4.6 * n, height=7.0, height_ratios=[1, 1.5]) as (figure, axes):
        for panel, (case, allocation) in zip(axes, allocations.items(), strict=False):
            _groups(panel, allocation)
            panel.set_title(_title(summary, case))
        for panel, allocation in zip(axes[n:], allocations.values(), strict=True):
            order = np.argsort(allocation.group, kind="stable")
            _distributions(
                panel, allocation, order, hatched=allocation.group >= len(allocation.r), last=True
            )
        _legend(figure, PATCHES)
    return Artefact(
        _table(allocations),
        figure,
        alt="Top, bars of the groups of similar clients; below, which clients each of the m "
        "distributions of Algorithm 2 consists of.",
    )


def _allocation(summary: Summary, case: str, sampler: str) -> Distributions:
    """Return the distributions of the first seed."""
    rows = _first_seed(summary.select(sampler, case=case))
    shares = rows[rows["metric"].str.startswith("share/k=")]
    k = shares["metric"].str.removeprefix("share/k=").astype(int)
    r = shares.assign(k=k).pivot(index="k", columns="at", values="value").to_numpy(np.float64)

    def of_client(metric: str) -> Ints:
        values = rows[rows["metric"] == metric].sort_values("at")["value"]
        return np.asarray(values, np.int64)

    return Distributions(r, of_client("samples"), of_client("label"), of_client("group"))


def _title(summary: Summary, case: str) -> str:
    partition = summary.setting("dataset.partition", case)
    by_digit = partition["name"] == "by_digit"
    return "MNIST by digit" if by_digit else f"CIFAR-10, Dir({partition['alpha']:g})"


def _distributions(
    axes: Axes, allocation: Distributions, order: Ints, hatched: Bools, last: bool = False
) -> None:
    """Draw W_1, …, W_m as stacked bars, a segment for each client, the `last` at the end."""
    if last:
        order = order[np.argsort(hatched[order], kind="stable")]
    for k, row in enumerate(allocation.r):
        clients = order[row[order] > 0]
        starts = np.cumsum(row[clients]) - row[clients]
        looks = _looks(allocation, clients, hatched[clients])
        axes.barh(k, row[clients], 0.8, starts, **looks)
    m = len(allocation.r)
    axes.set(xlim=(0, 1), ylim=(m - 0.5, -0.5), xlabel="$r_{k,i}$, client after client")
    axes.set_yticks(range(m), [f"$W_{{{k + 1}}}$" for k in range(m)])
    axes.grid(False)


def _groups(axes: Axes, allocation: Distributions) -> None:
    """Draw every group's samples q_k over M, client by client, and the capacity."""
    share = allocation.r.sum(0)  # m p_i = m n_i / M
    for k in range(int(allocation.group.max()) + 1):
        clients = np.flatnonzero(allocation.group == k)
        below = np.cumsum(share[clients]) - share[clients]
        hatched = np.full(len(clients), k >= len(allocation.r))
        axes.bar(k + 1, share[clients], 0.8, below, **_looks(allocation, clients, hatched))
    axes.axhline(1, color="black", linestyle=":", linewidth=1.2)
    axes.axvline(len(allocation.r) + 0.5, color="black", linewidth=0.8)
    axes.set(xlabel="group $B_k$", ylabel="$q_k / M$", xlim=(0, allocation.group.max() + 2))
    axes.locator_params(axis="x", integer=True)
    axes.grid(False, axis="x")


def _looks(allocation: Distributions, clients: Ints, hatched: Bools) -> dict[str, Any]:
    """Return the colours of the clients' classes and the hatches, for one call of `bar`."""
    colours = [CLASSES[int(label) % len(CLASSES)] for label in allocation.label[clients]]
    return {"color": colours, "hatch": [HATCH if each else "" for each in hatched], **EDGE}


def _legend(figure: Figure, handles: Sequence[Any]) -> None:
    figure.legend(
        handles=handles,
        title="class",
        loc="outside lower center",
        ncols=len(handles),
        handlelength=0.9,
        columnspacing=1.2,
    )


def _table(allocations: dict[str, Distributions]) -> pd.DataFrame:
    """Return every r_ki that is not zero."""
    parts = []
    for case, allocation in allocations.items():
        k, i = np.nonzero(allocation.r)
        columns = {
            "set": case,
            "distribution": k + 1,
            "client": i,
            "samples": allocation.samples[i],
            "label": allocation.label[i],
            "group": allocation.group[i] + 1,
            "r": allocation.r[k, i],
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def figure5(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 5: the effect of α on the clients' shares of the classes."""
    table = label_counts(summaries["partition"])
    first = table[table["seed"] == table["seed"].min()].drop(columns="seed")
    return Artefact(
        first,
        _draw_shares(first),
        alt="Stacked bars of class shares per client, and samples per class, for four values of α.",
        notes=("One draw of the partition is shown.",),
    )


def label_counts(summary: Summary) -> pd.DataFrame:
    """Return the counts of the experiment `partition`, by ``alpha``, ``seed`` and ``client``."""
    rows = summary.rows[summary.rows["metric"].str.startswith(COUNT)]
    alphas = {case: alpha for alpha, case in by_alpha(summary).items()}
    return pd.DataFrame(
        {
            "alpha": rows["case"].map(alphas),
            "seed": rows["seed"],
            "client": rows["at"],
            "label": rows["metric"].str.removeprefix(COUNT).astype(int),
            "count": rows["value"].astype(int),
        }
    ).sort_values(["alpha", "seed", "client", "label"], ignore_index=True)


def _draw_shares(table: pd.DataFrame) -> Figure:
    """Draw a column per α: class shares per client, and samples per class."""
    alphas = sorted(table["alpha"].unique())
    n = len(alphas)
    with panels(2, n, 2.9 * n, 5.2, sharey="row", height_ratios=[1.6, 1]) as (figure, axes):
        for upper, lower, alpha in zip(axes[:n], axes[n:], alphas, strict=True):
            counts = _matrix(table[table["alpha"] == alpha])
            share = shares_by_class(counts)
            # A polygon for each class is faster to draw than a bar for each client and class.
            ends = np.vstack([share, share[-1:]]).T  # the last client's bar ends at the right
            edges, label = np.arange(ends.shape[1]) - 0.5, np.arange(counts.shape[1])
            colours = [CLASSES[c % len(CLASSES)] for c in label]
            upper.stackplot(edges, ends, colors=colours, labels=map(str, label), step="post", lw=0)
            lower.bar(label, counts.sum(axis=0), 0.8, color=colours)
            upper.set(title=f"$\\alpha$ = {alpha:g}", xlabel="client, by class", ylim=(0, 100))
            upper.set_xlim(-0.5, len(counts) - 0.5)
            upper.grid(False)
            lower.set(xlabel="class", xticks=label)
            lower.grid(False, axis="x")
            lower.yaxis.set_major_formatter("{x:,.0f}")
        axes[0].set_ylabel("(a) % of a client's samples")
        axes[n].set_ylabel("(b) samples per class")
        _legend(figure, axes[0].collections)
    return figure


def shares_by_class(counts: Array) -> Array:
    """Compute each client's shares of the classes in per cent, the clients by their main class."""
    share = 100 * counts / counts.sum(axis=1, keepdims=True)
    return np.asarray(share[np.lexsort([-share.max(axis=1), share.argmax(axis=1)])])


def _matrix(table: pd.DataFrame) -> np.ndarray:
    """Arrange the counts of one partition: shape (clients, classes)."""
    wide = table.pivot_table(index="client", columns="label", values="count", aggfunc="sum")
    return wide.fillna(0).to_numpy(np.float64)


def weights(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw each client's Var[ω_i] (13)–(16) and P(i ∈ S) (18)–(22), clients by size."""
    summary = summaries["allocation"]
    table = _clients(summary)
    titles = {"variance": "Var[$\\omega_i$]", "inclusion": "P($i \\in S$)"}
    drawn = table[table["case"] == "cifar10"].sort_values("samples", kind="stable")
    with panels(1, 2, width=8.6, height=3.9) as (figure, axes):
        for panel, (metric, name) in zip(axes, titles.items(), strict=True):
            for sampler in summary.settings["samplers"]:
                line, rows = LINES[sampler], drawn[drawn["sampler"] == sampler]
                x = np.arange(len(rows))
                if sampler == "algorithm2":
                    panel.plot(x, rows[metric], ".", color=line.colour, label=line.label)
                else:
                    panel.step(x, rows[metric], where="mid", color=line.colour, label=line.label)
            panel.set(xlabel="client, by size", title=name, ylim=(0, None))
            panel.ticklabel_format(axis="y", scilimits=(-2, 3), useMathText=True)
        axes[0].legend(loc="upper left")
    return Artefact(
        table,
        figure,
        alt="Variance of each client's aggregation weight and probability that it is sampled, "
        "for MD sampling and Algorithms 1 and 2, clients by size.",
        notes=(
            *(_weights_note(summary, case, table) for case in summary.settings["cases"]),
            "Equation (56) as printed says that MD sampling is likelier to draw a client; (55) "
            "implies the opposite, as (23) does.",
        ),
    )


def _weights_note(summary: Summary, case: str, table: pd.DataFrame) -> str:
    sums = table[table["case"] == case].groupby("sampler")[["variance", "inclusion"]].sum()
    parts = [
        f"{LINES[sampler].label} {sums.loc[sampler, 'variance']:.4f} and "
        f"{sums.loc[sampler, 'inclusion']:.2f}"
        for sampler in summary.settings["samplers"]
    ]
    return (
        f"{_title(summary, case)}: Σ Var[ω_i] and expected distinct clients per round, Σ P(i ∈ S): "
        f"{'; '.join(parts)}."
    )


def _clients(summary: Summary) -> pd.DataFrame:
    """Return a row for each client of the first seed: samples, Var[ω_i], P(i ∈ S) and draws."""
    rows = _first_seed(summary.select(metric=("samples", "variance", "inclusion", "draws")))
    wide = rows.pivot(index=["case", "sampler", "at"], columns="metric", values="value")
    table = wide.reset_index().rename(columns={"at": "client"})
    table.columns.name = None
    clients: pd.DataFrame = table.astype({"samples": int, "draws": int})
    return clients


def _first_seed(rows: pd.DataFrame) -> pd.DataFrame:
    first: pd.DataFrame = rows[rows["seed"] == rows["seed"].min()]
    return first
