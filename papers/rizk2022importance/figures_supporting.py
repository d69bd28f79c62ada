"""Supporting figures of rizk2022importance: sensitivity, probabilities, inclusion, gradients."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedsampling.base.text import show
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.curves import learning_curve, with_interval
from fedsampling.report.drawing.style import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    VERMILION,
    legend_below,
    panels,
    printed_level,
    printed_words,
)

from .levels import gradient_deviations
from .lines import ESTIMATED, LINES, SCHEMES, TRACKED, TRUE
from .populations import population_in_words, populations, sensitivity_populations
from .steady_states import exact

# Comparisons of the sensitivity figure.
COLOURS = {
    "FedAvg over true": GREEN,
    "FedAvg over tracked": PURPLE,
    "FedAvg divided by E_k over true": ORANGE,
}


def sensitivity(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the steady-state gaps of Figure 1 over noise, covariances and problem draws.

    Top: populations whose agents' variances are spread evenly.  Bottom: maps of the gaps of c1 and
    c4 in populations where a few agents are much noisier than the others.
    """
    summary = summaries["sensitivity"]
    reported = paper.reported("gap")
    data = populations(summaries)
    cases = summary.settings["cases"]
    noises = [
        case for case in cases if not cases[case] or "noise" in cases[case].get("dataset", {})
    ]
    default = next(case for case in cases if not cases[case])
    problems = [default, *[case for case in cases if case not in noises]]
    spread = data[data["experiment"] == "sensitivity"]
    unlimited = _without_steady_state(summaries)
    noisy = _by_noisy_agents(summaries, data, unlimited)
    with panels(2, 2, width=10.0, height=7.2) as (figure, (left, right, first, second)):
        for label, colour in COLOURS.items():
            chosen = spread[spread["comparison"] == label].set_index("case")
            bounds = [summary.setting("dataset.noise", case) for case in noises]
            ratio = np.array([largest / smallest for smallest, largest in bounds])
            name = label.replace("E_k", "$E_k$")
            look = {"label": name, "color": colour, "markersize": 4}
            with_interval(left, ratio, chosen.loc[noises], "gap_db", fmt="o-", **look)
            places = np.arange(len(problems))
            with_interval(right, places, chosen.loc[problems], "gap_db", fmt="o", **look)
        for panel in (left, right):
            printed_level(panel, reported)
        printed_words(left, 1, reported - 0.4, f"paper: {reported} dB", va="top", fontsize=8.5)
        left.set(xscale="log", xlabel=r"largest over smallest noise variance $\sigma^2_{v,k}$")
        left.set_ylim(min(0, spread["low"].min()) - 1, reported + 2)
        left.legend(loc="upper left", bbox_to_anchor=(0, 0.88), fontsize=8)
        names = ["default", *[name.replace("-", " ") for name in problems[1:]]]
        right.set_xticks(range(len(problems)), names, rotation=40, ha="right")
        right.set_ylim(left.get_ylim())
        for panel in (left, right):
            panel.set_ylabel("gap over the last fifth (dB)")
        _map(first, noisy, "FedAvg over true", "FedAvg over true (dB)", reported)
        rounds = summaries["few"].setting("rounds", next(iter(summaries["few"].settings["cases"])))
        still = f"tracked over true after {rounds:,} iterations (dB)"
        _map(second, noisy, "tracked over true", still)
    ordered = data[data["comparison"] == "FedAvg over true"].sort_values("gap_db")
    largest = ordered.iloc[-1]
    experiment, case = largest["experiment"], largest["case"]
    population = population_in_words(experiment, summaries[experiment], case)
    return Artefact(
        data,
        figure,
        alt="The gaps in dB against the spread of the noise variances, for other problems, and as "
        "maps over the number of noisy agents and their factor.",
        notes=(
            f"The largest gap of FedAvg over the true probabilities is {largest['gap_db']:.1f} dB "
            f"({population}). The maps show ranges over four draws of the "
            "problem: standard FedAvg weighs agents by E_k, so it matters which agents are noisy.",
            "L p_k ≤ 1 limits how far sampling can adapt to a few very noisy agents.",
            f"After {rounds:,} iterations the tracked probabilities are not at steady state.",
            *_star(summaries, unlimited),
        ),
    )


def _without_steady_state(summaries: Summaries) -> list[str]:
    """Return the cases of `few` in which FedAvg's or the true probabilities' MSD has no limit."""
    return [
        standard[2]
        for experiment, panel, standard in sensitivity_populations(summaries)
        if experiment == "few"
        and max(exact(run).growth for run in (standard, (panel, TRUE, standard[2]))) >= 1
    ]


def _star(summaries: Summaries, unlimited: Sequence[str]) -> Iterator[str]:
    """Explain the stars in the maps; nothing if there are none."""
    if unlimited:
        names = (population_in_words("few", summaries["few"], case) for case in unlimited)
        yield f"* No steady state, because E‖w − w^o‖² grows without bound: {'; '.join(names)}."


def _by_noisy_agents(
    summaries: Summaries, data: pd.DataFrame, unlimited: Sequence[str]
) -> pd.DataFrame:
    """Return the mean and range of each gap over draws, by number of noisy agents and factor.

    The column ``star`` is "*" if one of these draws is `unlimited`, otherwise empty.
    """
    summary = summaries["few"]
    chosen = data[data["experiment"] == "few"]
    noise = [summary.setting("dataset.noise", case) for case in chosen["case"]]
    chosen = chosen.assign(
        few=[int(setting["few"]) for setting in noise],
        factor=[float(setting["factor"]) for setting in noise],
        star=np.where(chosen["case"].isin(unlimited), "*", ""),
    )
    grouped = chosen.groupby(["comparison", "few", "factor"])
    gaps = grouped["gap_db"].agg(["mean", "min", "max"])
    return gaps.assign(star=grouped["star"].max()).reset_index()


def _map(
    axes: Axes, noisy: pd.DataFrame, comparison: str, title: str, reported: float | None = None
) -> None:
    """Draw a gap as a map of number × factor, each cell with its mean and its range.

    `reported`: the paper's gap, marked on the colour bar.
    """
    table = noisy[noisy["comparison"] == comparison].set_index(["factor", "few"])
    means = table["mean"].unstack("few")
    image = axes.imshow(means.to_numpy(), cmap="Blues", aspect="auto", origin="lower")
    bar = axes.figure.colorbar(image, ax=axes, label="mean (dB)", shrink=0.9)
    if reported is not None:
        printed_level(bar.ax, reported, color=ORANGE, linewidth=2)
    middle = 0.4 * np.nanmin(means.to_numpy()) + 0.6 * np.nanmax(means.to_numpy())
    for row, factor in enumerate(means.index):
        for column, number in enumerate(means.columns):
            cell = table.loc[(factor, number)]
            text = f"{cell['mean']:.1f}{cell['star']}\n{cell['min']:.1f} to {cell['max']:.1f}"
            colour = "white" if cell["mean"] > middle else BLACK
            axes.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)
    axes.set_xticks(range(len(means.columns)), [str(number) for number in means.columns])
    powers = [f"$10^{{{round(np.log10(factor))}}}$" for factor in means.index]
    axes.set_yticks(range(len(means.index)), powers)
    axes.set(title=title, xlabel="noisy agents", ylabel="times noisier")
    axes.grid(visible=False)


def probabilities(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the distances of (49)–(50) and (52)–(53) from the optimal probabilities (44), (48)."""
    experiments = {"isfedavg-approximate": "regression", TRACKED: "longer", ESTIMATED: "steady"}
    titles = {
        "agent_distance": r"agents: $\|p^o - \hat{p}^o\|$",
        "data_distance": r"data: mean over agents of $\|p^{(k),o}_n - \hat{p}^{(k),o}_n\|$",
    }
    parts = (
        summaries[name].curves.query("sampler == @sampler") for sampler, name in experiments.items()
    )
    curves = pd.concat(parts, ignore_index=True)
    curves = curves[curves["metric"].isin(list(titles))]
    measured = curves[curves["at"] > 0]  # the first run is 24 times as short as the longest
    with panels(1, 2, width=8.6, height=3.6) as (figure, axes):
        for panel, (metric, title) in zip(axes, titles.items(), strict=True):
            for sampler in experiments:
                if metric == "data_distance" and sampler == "isfedavg-approximate":
                    continue  # (49) exists only at the sampled agents, so there is no curve
                line = LINES[sampler]
                rows = (measured["sampler"] == sampler) & (measured["metric"] == metric)
                look = (line.label, line.colour, False, line.variant)
                learning_curve(panel, measured[rows], *look)
            printed_level(panel, paper.reported(metric))
            panel.set(title=title, xlabel="iteration $i$ (logarithmic)", ylabel="distance")
            panel.set(xscale="log", ylim=(0, None))
            panel.set_xlim(measured["at"].min() / 1.2, measured["at"].max() * 1.2)
        legend_below(figure, [axes[0]], 3)
    return Artefact(
        curves.drop(columns=["case"]),
        figure,
        alt="Distances of approximate and tracked probabilities from optimal probabilities.",
        notes=(
            "An agent with B_k = 1 never changes its data probabilities under (53), since its "
            "only sampled point keeps its probability. On average 10 % of the agents have B_k = 1.",
            "The agents' distance levels off because (52) sets probabilities from the noisy "
            "gradients of a few mini-batches.",
        ),
    )


def inclusion(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw inclusion frequency − target, in standard errors, for three ways of sampling."""
    summary = summaries["inclusion"]
    units = summary.select(since=0).pivot_table(
        index=["case", "sampler", "at"], columns="metric", values="value", observed=True
    )
    units = units.reset_index()
    units["z"] = (units["frequency"] - units["target"]) / units["se"].where(units["se"] > 0)
    titles = {
        "intro": "worked example: $N$ = {units}, $B$ = {size}",
        "agents": "agents: $K$ = {units}, $L$ = {size}",
        "data": "data: $N_k$ = {units}, $B_k$ = {size}",
    }
    looks = {
        "fixed": ("systematic, original order", BLUE, "o"),
        "shuffled": ("systematic, shuffled", GREEN, "s"),
        "successive": ("successive draws", VERMILION, "^"),
    }
    with panels(1, 3, width=9.6, height=3.5) as (figure, axes):
        for panel, (case, title) in zip(axes, titles.items(), strict=True):
            for sampler, (label, colour, marker) in looks.items():
                chosen = units[(units["case"] == case) & (units["sampler"] == sampler)]
                x, z = chosen["target"], chosen["z"]
                panel.plot(x, z, marker, color=colour, label=label, markersize=3.5, alpha=0.8)
            panel.axhspan(-4, 4, color="#eeeeee", zorder=0)
            units_and_size = {key: summary.setting(key, case) for key in ("units", "size")}
            panel.set(title=title.format(**units_and_size), xlabel="target inclusion probability")
        axes[0].set_ylabel("(frequency − target) / standard error")
        legend_below(figure, [axes[0]], 3)
    worst = units.groupby("sampler")["z"].apply(lambda z: np.nanmax(np.abs(z)))
    first = units[(units["case"] == "intro") & (units["sampler"] == "successive")]
    neighbours = summary.select(metric="neighbours", case="agents").set_index("sampler")["value"]
    return Artefact(
        units,
        figure,
        alt="Deviation of inclusion frequencies from their targets for three ways of sampling.",
        notes=(
            f"Largest deviation of systematic sampling: {worst['fixed']:.1f} standard errors in "
            f"the original order, {worst['shuffled']:.1f} shuffled, over {len(units) // 3} units; "
            f"of successive draws: {worst['successive']:.0f}.",
            f"Worked example: the target of ball 1 is {first['target'].iloc[0]:.4f}, and "
            f"successive draws include it with frequency {first['frequency'].iloc[0]:.4f}; "
            f"equation (3) yields {first['equation3'].iloc[0]:.4f}.",
            "Inclusion probabilities do not depend on the order, but joint inclusion does: two "
            f"neighbouring agents take part together in {1e4 * neighbours['fixed']:.2f} of 10,000 "
            f"rounds in the original order, and {1e4 * neighbours['shuffled']:.2f} if shuffled.",
        ),
    )


def gradient(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate bias (Lemma 1) and noise of the gradient estimate, by sampler."""
    data = gradient_deviations(summaries["gradient"])
    names = {name: line.label for name, line in SCHEMES.items()} | {"fedavg": "FedAvg, (6)"}
    points = {"start": "w = 0", "optimum": "w = w^o"}
    table = data.replace({"sampler": names, "case": points}).rename(
        columns={
            "sampler": "scheme",
            "case": "model",
            "largest_z": "largest |z|",
            "noise": "E‖s‖²",
            "noise_se": "standard error",
        }
    )
    noise = data.set_index(["case", "sampler"])["noise"]
    factors = {case: noise[case, "isfedavg-optimal"] / noise[case, "fedavg"] for case in points}
    return Artefact(
        table,
        formats={"largest |z|": 3, "E‖s‖²": 4, "standard error": 2},
        notes=(
            "The noise of the estimate with the true probabilities is "
            f"{show(factors['optimum'], 2)} times FedAvg's at w^o, where they are optimal, and "
            f"{show(factors['start'], 2)} times FedAvg's at w = 0.",
        ),
    )
