"""Tables 1 and 2 of Fraboni et al. 2022, and Corollary 1 drawn: closed forms, without training."""

from math import floor, log10

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.style import BLUE, GREEN, PURPLE, VERMILION, panels
from fedsampling.theory.weights import PER_CLIENT, statistics, sums

from .corollary1 import gamma_boundary, importances, largest_importance, sigma_boundary
from .losses import COMPARED, SCHEMES
from .monte_carlo import EXACT, QUANTITIES, comparisons


def table1(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate Table 1: closed forms and Monte Carlo estimates of every sampler."""
    summary = summaries["weights"]
    table = comparisons(summary)
    rows, data = [], []
    for case, population in summary.settings["cases"].items():
        for sampler in summary.settings["samplers"]:
            part = table[(table.case == case) & (table.sampler == sampler)]
            head = {
                "population": "n={clients}, m={m}, {importance}".format(**population),
                "scheme": SCHEMES[sampler].label,
            }
            row = dict(head)
            for metric, name in QUANTITIES.items():
                result = part[part.metric == metric].iloc[0]
                closed, simulated, se = result.closed, result.estimate, result.error
                row |= {name: closed, f"{name}, simulated": _concise(simulated, se)}
                numbers = {"closed": closed, "simulated": simulated, "se": se}
                data.append({**head, "quantity": name, **numbers})
            row["max |z| of clients"] = part[part.metric.isin(PER_CLIENT)].z.abs().max()
            rows.append(row)
    return Artefact(
        data=pd.DataFrame(data),
        table=pd.DataFrame(rows),
        notes=(
            "Clustered sampling has no single α: the table shows equation (22), the average over "
            "all pairs.",
            "Inequality (60) says that Clustered covariances are at most MD sampling's. It fails "
            "for single pairs: two clients that share no distribution have covariance 0, above "
            "−p_i p_j/m. Unless both samplers are the same, it also fails in sum: the weights of "
            "both sum to 1, so the smaller variances of (59) imply a larger sum of covariances.",
            "Proposition 1 states 0 ≤ α ≤ 1 for any sampling, but its proof gives α ≤ 1 only: to "
            "take all clients with probability 1/2, with weights 2 p_i, and none otherwise is "
            "unbiased and has α = −1. There γ = 0 without full participation.",
        ),
        formats=dict.fromkeys(QUANTITIES.values(), 5) | {"max |z| of clients": 3},
    )


def table2(summaries: Summaries, paper: Paper) -> Artefact:
    """Show Table 2, the paper's notation."""
    return Artefact(pd.read_csv(paper.folder / "notation.csv"))


def corollary1(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Σ (8) and γ (9) of both samplers on both sides of Corollary 1's boundary (13)."""
    n, m = TABLE1[0]
    with panels(1, 2, width=9.2, height=4.0) as (figure, (left, right)):
        data = pd.concat([_draw_sums(left, n, m), _draw_boundary(right)], ignore_index=True)
    return Artefact(
        data=data,
        figure=figure,
        alt="Left: for ten clients of which five are sampled, the sums Σ and γ of Uniform sampling "
        "lie below those of MD sampling while one client's importance is under "
        f"{largest_importance(n, m):.3f}, and rise far above them afterwards. Right: the "
        "boundary of Corollary 1 rises from 1 with the sampled fraction; above it MD sampling "
        "is better, below it Uniform sampling.",
        notes=(
            "The condition on γ alone, Σ p_i² ≤ (n − 1)/(n (n − m)), is implied by that on Σ; "
            "between the two lines Uniform sampling has the smaller γ and the larger Σ.",
            "Equations (127) and (129) print Σ_MD ≤ Σ_U and γ_MD ≤ γ_U; by (126) and (128) the "
            "inequalities are reversed, as Corollary 1 states them.",
        ),
    )


def _draw_sums(axes: Axes, n: int, m: int) -> pd.DataFrame:
    """Draw Σ and γ along p_1, the others sharing the rest, as the figure of the authors' code."""
    first = np.linspace(0, 1, 200)
    lines = []
    for scheme, line in COMPARED.items():
        populations = [importances(p_1, n) for p_1 in first]
        pairs = [sums(statistics(scheme, p, m), p) for p in populations]
        for symbol, dashes, values in zip("Σγ", ("-", "--"), np.array(pairs).T, strict=True):
            name = f"{symbol}, {line.label}"
            axes.plot(first, values, dashes, color=line.colour, label=name)
            lines.append(pd.DataFrame({"panel": "a", "series": name, "x": first, "y": values}))
    end = largest_importance(n, m)
    axes.axvspan(0, end, color=VERMILION, alpha=0.12, linewidth=0)
    axes.axvspan(end, 1, color=BLUE, alpha=0.12, linewidth=0)
    axes.axvline(end, color="black", linewidth=1)
    axes.text(end / 2, 0.58, "Uniform\nbetter", ha="center", va="center")
    axes.text((end + 1) / 2, 0.86, "MD better", ha="center", va="center")
    axes.set(
        xlim=(0, 1),
        ylim=(0, 1.12),
        xlabel="importance $p_1$ of one client",
        ylabel="Σ and γ (smaller is better)",
        title=f"(a) $n={n}$, $m={m}$",
    )
    axes.legend(loc="upper left")
    return pd.concat(lines)


def _draw_boundary(axes: Axes) -> pd.DataFrame:
    """Draw the boundaries of Σ and γ over the sampled fraction, both axes scaled by n."""
    lines = []
    for (n, m), marker, colour in zip(TABLE1, "os", (GREEN, PURPLE), strict=True):
        sampled = np.arange(1, n)
        for symbol, dashes, boundary in (("Σ", "-", sigma_boundary), ("γ", ":", gamma_boundary)):
            values = np.array([n * boundary(n, int(k)) for k in sampled])
            name = f"boundary of {symbol}, n = {n}"
            axes.plot(sampled / n, values, dashes, color=colour, label=name)
            line = {"panel": "b", "series": name, "x": sampled / n, "y": values}
            lines.append(pd.DataFrame(line))
        linear = np.arange(1, n + 1) / (n * (n + 1) / 2)  # Table 1 has equal and linear importance
        spread = [1.0, n * float((linear**2).sum())]
        name = f"Table 1, n = {n}, m = {m}"
        axes.plot([m / n] * 2, spread, marker, color=colour, label=name, clip_on=False, zorder=3)
        lines.append(pd.DataFrame({"panel": "b", "series": name, "x": m / n, "y": spread}))
    axes.set(
        xlim=(0, 1),
        ylim=(1, 10),
        yscale="log",
        xlabel="sampled fraction $m/n$",
        ylabel=r"$n\,\Sigma_i\,p_i^2$",
        title="(b) any $m/n$",
    )
    axes.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
    axes.minorticks_off()
    axes.text(0.25, 3.0, "MD better", ha="center", va="center")
    axes.text(0.8, 1.5, "Uniform better", ha="center", va="center")
    axes.legend(loc="upper left")
    return pd.concat(lines)


def _concise(estimate: float, error: float) -> str:
    """Write 0.18002 ± 0.00013 as ``0.18002(13)``; without bracket what does not vary."""
    if error <= EXACT:
        return f"{round(estimate, 12) + 0.0:.5g}"
    digits = max(1 - floor(log10(error)), 0)
    return f"{estimate:.{digits}f}({round(error * 10**digits)})"


TABLE1 = ((10, 5), (100, 10))  # n and m of its populations
