"""Errors in harshvardhan2025latency's theory, its solver, and its Table 3e.

``theory.csv`` lists the errors with proofs; :func:`findings` adds numbers from the ``selection``
runs; :func:`solver` draws the progress of the paper's solver.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from fedsampling.base.text import show
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.curves import SEEDS
from fedsampling.report.drawing.style import BLACK, BLUE, GREEN, ORANGE, legend_below, panels

from .printed_tables import printed
from .run_settings import record

STARTS = {  # of the solver
    "uniform": ("uniform start", BLUE),
    "fast": ("start as 1/τ", ORANGE),
    "random": ("random start", GREEN),
}
TASKS = {
    "heterogeneity": "feature heterogeneity",
    "minnorm": "subset, MinNorm",
    "exact": "subset, exact scan",
    "trust-constr": "distribution, trust-constr",
    "analytic": "distribution, SLSQP",
    "vertex": "distribution, exact",
    "approx_opt": "ApproxOptSampling, trust-constr",
    "approx_opt_slsqp": "ApproxOptSampling, SLSQP",
    "luo2022": "Luo et al.",
}


def findings(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate the paper's statements, the corrections, and numbers that show them."""
    points = pd.read_csv(paper.folder / "theory.csv")
    points["in numbers"] = [
        _submodularity(summaries["enumeration"]),
        _subsets(summaries["enumeration"], summaries["minnorm"]),
        _distributions(summaries["distribution"]),
        "–",
        "Nine identical clients, the tenth at B = 0.78 from each: 0.70 < 1/√2, but 0.55 > 1/2",
        _scaled(summaries["assumptions"]),
        _noise(summaries["assumptions"]),
        "A_1 = 1, A_2 = 3, w_1* = 0, w_2* = 1 (d = 1): as printed w* = 3/2, but ∇f(3/2) = 3/2; the "
        "minimiser is 3/4, and Γ_12 = 3/2",
    ]
    proofs = points.pop("proof")
    share = record(summaries["minnorm"]).share
    return Artefact(
        points,
        notes=tuple(points["the paper"] + ". " + proofs),
        caption_end=f"B is scaled to {share:g} of Assumption 3's bound; runs of training have "
        "another share (choice “Assumption 3”).",
    )


def solver(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the progress of trust-constr, Algorithm 3's solver, from three starts.

    Two panels for each distribution of delays: g divided by its minimum, and the runtime if clients
    are sampled from p.
    """
    summary = summaries["distribution"]
    curves = summary.curves[summary.curves["metric"].str.contains("/")]
    table = curves[["case", "metric", "at", "mean", *SEEDS, "n"]].reset_index(drop=True)
    ylabels = {"ratio": "$g(p)$ over its minimum", "runtime": "runtime with $p$, over min $g$"}
    cases = list(table["case"].unique())
    with panels(len(cases), 2, width=8.0, height=2.9 * len(cases)) as (figure, axes):
        places = [(case, metric) for case in cases for metric in ylabels]
        for number, (panel, (case, metric)) in enumerate(zip(axes, places, strict=True)):
            _solved(panel, table[table["case"] == case], metric)
            if metric == "ratio":
                panel.axhline(1, color=BLACK, linestyle=":", label="minimum: one client")
            panel.set(yscale="log", ylabel=ylabels[metric], xlabel="iterations of trust-constr")
            panel.set_title(f"({'abcdefgh'[number]}) {_delays(case)}")
            panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panel.yaxis.set_major_formatter("{x:g}")
            panel.yaxis.set_minor_formatter(NullFormatter())
        legend_below(figure, axes[:1], 4)
    return Artefact(
        table,
        figure,
        alt="g(p) over its minimum, and runtime, against iterations, from three starts.",
        notes=(_distance_left(table),),
        caption_end=f"B is scaled so that B_p is at most {record(summary).share:g}² for every p; "
        "DelayHetSampling's main reading requires only Assumption 3.",
    )


def _distance_left(table: pd.DataFrame) -> str:
    """Say how far from its minimum g is after the last iteration, on average and at best."""
    metrics = {f"{start}/ratio": label for start, (label, _) in STARTS.items()}
    last = table[(table["at"] == table["at"].max()) & table["metric"].isin(metrics)]
    least, most = (show(float(value)) for value in (last["mean"].min(), last["mean"].max()))
    best = last.loc[last[SEEDS[0]].idxmin()]
    return (
        f"After {table['at'].max():,} iterations, g is on average {least} to {most} times its "
        f"minimum, by start and delays; the best run is at {show(float(best[SEEDS[0]]))} times "
        f"({metrics[best['metric']]}, {_delays(best['case'])})."
    )


def _delays(case: str) -> str:
    return f"{case.replace('tail', 'tailed')} delays"


def overheads(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate Table 3e: the seconds of one selection, the paper's and ours."""
    summary = summaries["overhead"]
    curves = summary.curves[summary.curves["at"] == 0].set_index(["case", "metric"])["mean"]
    rows = []
    for case, reported in printed(paper, "overheads").items():
        for task, name in TASKS.items():
            if (case, task) not in curves.index:
                continue
            paper_value, ours = reported.get(task), float(curves.loc[(case, task)])
            reported_text, ratio = (
                (paper_value.value, paper_value.number / ours) if paper_value else ("–", np.nan)
            )
            rows.append((case, name, reported_text, ours, ratio))
    device = "; ".join(summary.provenance.get("device", ())) or "unknown"
    return Artefact(
        pd.DataFrame(rows, columns=["data", "task", "paper (s)", "here (s)", "ratio"]),
        notes=(
            f"Here: {device.replace(', 1 threads', ', 1 thread')}; means over seeds. The paper: "
            "RTX 3090 and 12 processors.",
            "The paper does not state the iterations of trust-constr, nor the objective of its "
            "ApproxOptSampling; ours uses trust-constr with 1,000 iterations and finite "
            "differences for both. Seconds are processor time.",
        ),
        formats={"here (s)": 2, "ratio": 2},
    )


def _solved(axes: Axes, table: pd.DataFrame, metric: str) -> None:
    """Draw a metric of one distribution of delays against iterations, from each start."""
    for place, (start, (label, colour)) in enumerate(STARTS.items()):
        chosen = table[table["metric"] == f"{start}/{metric}"].sort_values("at")
        x = np.arange(len(chosen)) + 0.14 * (place - 1)  # side by side
        least, most = (chosen[end] for end in SEEDS)
        axes.vlines(x, least, most, color=colour, lw=3, alpha=0.35)
        axes.plot(x, chosen["mean"], "o-", ms=3.5, lw=1.0, color=colour, label=label)
        axes.set_xticks(range(len(chosen)), [f"{at:,}" for at in chosen["at"]])
    axes.grid(False, axis="x")


def _submodularity(summary: Summary) -> str:
    total = summary.rows.groupby("metric")["value"].sum()
    triples, m = total["triples"], summary.settings["settings"]["clients"]
    return (
        f"{triples:,.0f} triples S₁ ⊂ S₂, i at m = {m}: submodularity of g "
        f"fails in {100 * total['g_submodular'] / triples:.0f} %, supermodularity in "
        f"{100 * total['g_supermodular'] / triples:.0f} %; h raised by a client "
        f"{total['h_decreasing']:.0f} times, supermodularity of h fails "
        f"{total['h_supermodular']:.0f} times"
    )


def _subsets(enumerated: Summary, summary: Summary) -> str:
    worst = enumerated.select(metric="prefix_gap")["value"].max()
    parts = []
    for case, value in _by_case(summary):
        delay, random = value["gap_delay"], value["gap_random"]
        parts.append(
            f"{case}: g above the minimum by {100 * delay.mean():.1f} % (at most "
            f"{100 * delay.max():.1f} %) from the order of delays, {100 * random.mean():.0f} % (at "
            f"most {100 * random.max():,.0f} %) from a random order"
        )
    return f"Scan against all sets: gap {abs(worst):.1g}. MinNorm, " + "; ".join(parts)


def _distributions(summary: Summary) -> str:
    last = summary.rows["at"].max()
    parts = []
    for case, _ in _by_case(summary):
        reached = _last(summary, case)
        parts.append(
            f"{case}: after {last:,} iterations g is {reached['uniform/ratio']:.3g} times its "
            f"minimum, spread over {reached['uniform/clients']:.0f} clients"
        )
    return "; ".join(parts)


def _scaled(summary: Summary) -> str:
    values = summary.select(metric="uniform_bias")["value"]
    return (
        f"B scaled to {record(summary).share:g} of Assumption 3: B_p of the uniform "
        f"distribution is {values.min():.3g} to {values.max():.3g}"
    )


def _noise(summary: Summary) -> str:
    parts = [
        f"{case}: B_ij from {value['smallest'].min():.3g} to {value['largest'].max():.3g}, "
        f"Assumption 3 exceeded {value['assumption3'].mean():.3g} times; "
        f"{value['alike'].mean():.3g} times for clients of one distribution"
        for case, value in _by_case(summary)
    ]
    return "; ".join(parts)


def _by_case(summary: Summary) -> list[tuple[str, dict[str, pd.Series]]]:
    """Return the values of each case by metric."""
    return [
        (str(case), {str(name): part["value"] for name, part in rows.groupby("metric")})
        for case, rows in summary.rows.groupby("case", sort=False)
    ]


def _last(summary: Summary, case: str) -> dict[str, float]:
    """Return the means after the last iteration, by metric."""
    curves = summary.curves
    rows = curves[(curves["case"] == case) & (curves["at"] == curves["at"].max())]
    return dict(zip(rows["metric"], rows["mean"], strict=True))
