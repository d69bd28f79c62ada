"""Tables 1 and 2 of Fraboni et al. 2022, and Corollary 1 drawn: closed forms, without training."""

from collections.abc import Sequence
from math import floor, log10

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedsampling.evidence.statistics import bound, show
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.curves import band
from fedsampling.report.drawing.style import BLACK, BLUE, GREEN, PURPLE, VERMILION, panels
from fedsampling.theory.weights import PER_CLIENT, statistics, sums

from .claims import gamma_boundary, largest_importance, sigma_boundary
from .runs import COMPARED, EXACT, QUANTITIES, SCHEMES, comparisons
from .simulations import contraction, growth, importances


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

# Figures of fraboni2022general's first version: sampling on quadratic losses.
#
# The experiments are ``quadratic_step`` (one round, for many importances p_1 of the first client)
# and ``quadratic_training`` (a whole run at one p_1).


CHANCE = 0.001  # that any of the means deviates beyond the limit by chance

CASES = {"iid": "same minimum", "non-iid": "own minima"}
DISTANCE = r"$\Vert\theta^{1} - \theta^*\Vert^2$"


def quadratic_one_step(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the distance after one round against p_1: closed form and mean over draws."""
    table = one_step(summaries["quadratic_step"])
    low, high = _uniform_better(table)
    with panels(1, 4, width=11.2, height=3.0) as (figure, axes):
        views = [(value, case) for value in ("expected", "mean") for case in CASES]
        for axis, letter, (value, case) in zip(axes, "abcd", views, strict=True):
            _draw_lines(axis, table[table["case"] == case], value)
            source = "theory" if value == "expected" else "experiment"
            axis.set(title=f"({letter}) {source}, {CASES[case]}")
            axis.set(ylim=(1.5, 4) if case == "iid" else (1, 4), xlabel="$p_1$", xlim=(0, 1))
        axes[0].set_ylabel(DISTANCE)
        axes[0].legend(loc="upper left")
    return Artefact(
        table,
        figure,
        alt="If all clients have the same minimum, full participation and MD sampling coincide for "
        "every p_1, and Uniform sampling equals them only at equal importance. If minima "
        "differ, MD sampling is about half above full participation; Uniform sampling is below "
        "MD for small p_1 and far above it for large p_1. Theory and experiment agree.",
        notes=(
            _agreement(table),
            "The closed form is Lemma 1 (equation 70) on the round of equation (3), with Var[ω_i] "
            "and α of Table 1. The authors' code has the same γ_i for Full, MD, Uniform, Poisson "
            "and Binomial sampling, but α with the opposite sign (MD −1/m, where equation (29) has "
            "1/m) and 1 + α instead of the lemma's 1 − α. The values are the same; Table 1 uses "
            "the paper's sign.",
            "If minima differ, the expected distance of Uniform sampling is smaller than MD's for "
            f"p_1 from {low:.3f} to {high:.3f}. If all clients have the same minimum, MD sampling "
            "is as good as full participation, since its weights always sum to 1.",
        ),
    )


def quadratic_variance(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the spread over the draws of the distance after one round."""
    table, top = one_step(summaries["quadratic_step"]), paper.reported("variance_axis")
    bands = {
        "mean ± standard deviation": (table["mean"] - table["sd"], table["mean"] + table["sd"]),
        "least to largest": (table["min"], table["max"]),
    }
    with panels(2, 2, width=7.6, height=5.6) as (figure, axes):
        views = [(name, case) for name in bands for case in CASES]
        for axis, letter, (name, case) in zip(axes, "abcd", views, strict=True):
            chosen = table[table["case"] == case]
            _draw_lines(axis, chosen, "mean")
            for scheme, part in chosen.groupby("scheme", sort=False):
                low, high = (edge[part.index] for edge in bands[name])
                line = SCHEMES[str(scheme)]
                band(axis, part["p_1"], low, high, line.label, line.colour)
            axis.set(title=f"({letter}) {CASES[case]}: {name}", ylim=(0, top), xlim=(0, 1))
        for axis in axes[::2]:
            axis.set_ylabel(DISTANCE)
        for axis in axes[2:]:
            axis.set_xlabel("$p_1$")
        axes[0].legend(loc="upper left")
    rows = table[table["case"] == "non-iid"].set_index("p_1")
    last = rows.index.max()
    spread = rows[rows["scheme"] == "uniform"]["sd"]
    return Artefact(
        table,
        figure,
        alt="Bands of the distance after one round: narrow for MD sampling at every p_1; for "
        "Uniform sampling they widen with p_1 until they fill the panel.",
        notes=(
            "If minima differ, the standard deviation of Uniform sampling is at least "
            f"{show(spread.min())}, near equal importance, and {show(spread[last])} at "
            f"p_1 = {last:g}, where the only important client is drawn or missed.",
            f"The vertical axis ends at {top:g}, as in the paper; the largest distance under "
            f"Uniform sampling is {show(float(table['max'].max()))}.",
        ),
    )


def quadratic_convergence(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw one run of each sampler and the expected distance."""
    summary = summaries["quadratic_training"]
    table = _wide(summary, ["expected", "first", "mean", "median", "max"]).rename(
        columns={"at": "t", "first": "run"}
    )
    with panels(1, 2, width=8.6, height=3.4) as (figure, axes):
        for axis, letter, case in zip(axes, "ab", CASES, strict=True):
            for scheme, part in table[table["case"] == case].groupby("scheme", sort=False):
                colour, label = SCHEMES[str(scheme)].colour, SCHEMES[str(scheme)].label
                width, alpha = (3.0, 0.35) if scheme == "full" else (1.2, 1.0)
                axis.plot(part["t"], part["run"], color=colour, lw=width, alpha=alpha, label=label)
                axis.plot(part["t"], part["expected"], "--", color=colour, lw=0.9)
            axis.set(yscale="log", xlabel="$t$", title=f"({letter}) {CASES[case]}")
            axis.set_ylim(1e-32, 1e32)
        axes[0].set_ylabel(r"$\Vert\theta^{t} - \theta^*\Vert^2$")
        axes[0].plot([], [], "--", color=BLACK, lw=0.9, label="expected")
        axes[0].legend(loc="center right", bbox_to_anchor=(1.0, 0.3))
    return Artefact(
        table,
        figure,
        alt="Full participation reaches the optimum to machine precision. MD sampling follows it "
        "where all minima are the same and levels off at a small distance where they are not. "
        "Uniform sampling moves away from the optimum without bound in both.",
        notes=_convergence_notes(summary),
    )


def quadratic_condition(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Corollary 1's condition (13) along p_1, and where the distance changes order."""
    summary = summaries["quadratic_step"]
    table, n, m = one_step(summary), *_population(summary)
    first = np.sort(table["p_1"].unique())
    squares = np.array([(importances(p_1, n) ** 2).sum() for p_1 in first])
    limit = sigma_boundary(n, m)
    end = largest_importance(n, m)
    low, high = _uniform_better(table)
    with panels(1, 1, width=5.6, height=3.6) as (figure, (axis,)):
        axis.plot(first, squares, color=BLUE, label=r"$\Sigma_i\,p_i^2$")
        axis.axhline(limit, color=VERMILION, label=f"$1/(n - m + 1) = 1/{n - m + 1}$")
        axis.axvspan(0, end, color=VERMILION, alpha=0.10, linewidth=0)
        axis.text(end / 2, 0.62, "Uniform better\nby Corollary 1", ha="center", fontsize=8.5)
        label = "smaller distance under Uniform"
        axis.plot([low, high], [0.5, 0.5], "|-", color=BLACK, lw=1.2, label=label)
        axis.set(xlim=(0, 1), ylim=(0, 1), xlabel="$p_1$", title=f"$n={n}$, $m={m}$")
        axis.legend(loc="upper left")
    data = pd.DataFrame({"p_1": first, "sum of squares": squares, "boundary": limit})
    return Artefact(
        data,
        figure,
        alt=f"The sum of squared importances falls from 1/{n - 1} to 1/{n} at equal importance and "
        f"then rises to 1; it passes the boundary 1/{n - m + 1} at p_1 = {end:.3f}.",
        notes=(
            f"Σ p_i² is below 1/(n − m + 1) up to p_1 = {end:.3f}; there Corollary 1 has both of "
            "Uniform sampling's sums below those of MD sampling.",
            "The corollary compares bounds. The expected distance after one round of the quadratic "
            f"with own minima is smaller under Uniform sampling from p_1 = {low:.3f} to "
            f"{high:.3f}: the order of the two depends on the distance and the spread of the "
            "minima too, which the condition does not know.",
        ),
    )


def one_step(summary: Summary) -> pd.DataFrame:
    """Tabulate the measured and the expected distance after one round, a row for each p_1.

    Returns columns ``case``, ``scheme``, ``p_1``, ``expected``, ``mean``, ``se``, ``sd``, ``min``,
    ``max``.  Seeds are pooled by their mean, whose error is a seed's error over √seeds.
    """
    table = _wide(summary, ["p_1", "expected", "mean", "se", "sd", "min", "max"])
    table["se"] /= np.sqrt(summary.rows["seed"].nunique())
    return table.drop(columns="at")


def _wide(summary: Summary, metrics: Sequence[str]) -> pd.DataFrame:
    rows = summary.select(metric=metrics)
    index = ["case", "sampler", "at"]
    wide = rows.pivot_table("value", index, "metric", aggfunc="mean", observed=True).reset_index()
    wide = wide.rename(columns={"sampler": "scheme"})
    wide = wide.sort_values(["case", "scheme", "at"], ignore_index=True)
    return wide[["case", "scheme", "at", *metrics]].rename_axis(columns=None)


def _population(summary: Summary) -> tuple[int, int]:
    settings = summary.settings["settings"]
    return int(settings["clients"]), int(settings["m"])


def _draw_lines(axis: Axes, table: pd.DataFrame, value: str) -> None:
    for scheme, part in table.groupby("scheme", sort=False):
        # MD sampling lies on full participation where all minima are the same.
        dashes, order = ("--", 3) if scheme == "full" else ("-", 2)
        colour, label = SCHEMES[str(scheme)].colour, SCHEMES[str(scheme)].label
        axis.plot(part["p_1"], part[value], dashes, color=colour, label=label, zorder=order)


def _agreement(table: pd.DataFrame) -> str:
    varies = table["se"] > EXACT
    difference = table["mean"] - table["expected"]
    z = (difference[varies] / table["se"][varies]).abs()
    limit = bound(CHANCE, max(len(z), 1))
    fixed = float(difference[~varies].abs().max())
    return (
        f"Theory against experiment: the largest |z| of the {len(z)} means that vary is "
        f"{z.max():.2f} ({'below' if z.max() < limit else 'above'} the limit {limit:.2f}; the "
        f"probability that any exceeds it by chance is at most {100 * CHANCE:g} %); the other "
        f"{(~varies).sum()} equal the closed form to {show(max(fixed, 1e-16), 1)}."
    )


def _uniform_better(table: pd.DataFrame) -> tuple[float, float]:
    """Return the first and last p_1 at which Uniform's expected distance is below MD's, non-IID."""
    wide = table[table["case"] == "non-iid"].pivot(index="p_1", columns="scheme", values="expected")
    better = wide.index[wide["uniform"] < wide["md"]]
    return float(better.min()), float(better.max())


def _convergence_notes(summary: Summary) -> tuple[str, ...]:
    settings, (n, m) = summary.settings["settings"], _population(summary)
    step = settings["server_step"] * contraction(settings["local_step"], settings["local_steps"])
    row = statistics("uniform", importances(settings["p_1"], n), m)
    limit = (2 - step) / step
    stable = next(
        p_1
        for p_1 in np.linspace(1, 0, 1001)
        if statistics("uniform", importances(p_1, n), m).variance_of_sum < limit
    )
    return (
        "By Lemma 1, a round multiplies the expected squared distance by (1 − η)² + η² Var[Σ ω_i] "
        f"(η = {step:g}). This is {show((1 - step) ** 2)} for full participation and MD sampling, "
        f"and {show(growth(row, step), 4)} for Uniform sampling. As the latter exceeds 1, the "
        "expected distance grows without bound. It would shrink for η < "
        f"{show(2 / (1 + row.variance_of_sum))}, or at this η for p_1 up to {stable:.2f}. "
        "Theorem 1's “sufficiently small” step thus depends on Var[Σ ω_i].",
        "Single runs are below the expectation (dashed, beyond the axis), which rare draws "
        "dominate; but runs diverge as well.",
        "The authors' code plots half the squared distance with the axis label ‖θ − θ*‖²; here "
        "the squared distance is plotted.",
    )
