"""The exact steady states of rizk2022importance in every population, and the simulated gaps."""

import numpy as np

from fedsampling.base.text import show
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.style import BLACK, legend_below, panels, printed_level

from .levels import gap
from .lines import SCHEMES, TRUE
from .steady_states import SETTLED_DB, every_population, table

ITERATIONS = 1000  # of the shortest runs


def exact_gaps(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the exact steady states of c1, and their gaps next to the simulated ones."""
    states = every_population(summaries)
    data = table(states, ITERATIONS)
    simulated = [gap(*state.runs) for state in states]
    data = data.assign(
        **{name: [getattr(estimate, name) for estimate in simulated] for name in ("low", "high")},
        simulated_db=[estimate.value for estimate in simulated],
        seeds=[estimate.n for estimate in simulated],
    )
    reported, margin = paper.reported("gap"), paper.claims["c1"].margin
    limited = data[data["growth"] < 1].sort_values("gap_db", ignore_index=True)
    place = np.arange(1, len(limited) + 1)
    with panels(1, 2, width=9.6, height=3.9) as (figure, (levels, gaps)):
        for column, line in {"fedavg_db": SCHEMES["fedavg"], "true_db": SCHEMES[TRUE]}.items():
            levels.plot(
                place, limited[column], "o", color=line.colour, label=line.label, markersize=3.5
            )
        gaps.vlines(
            place, limited["low"], limited["high"], color="#bbbbbb", label="simulated, 95 %"
        )
        gaps.plot(place, limited["gap_db"], "o", color=BLACK, markersize=3.5, label="exact")
        gaps.axhspan(reported - margin, reported + margin, color="#eeeeee", zorder=0)
        printed_level(gaps, reported)
        levels.set(title="steady states", ylabel="MSD (dB)")
        gaps.set(title="FedAvg over true", ylabel="gap (dB)")
        for panel in (levels, gaps):
            panel.set_xlabel("populations, sorted by the gap")
        legend_below(figure, [levels, gaps], 4)
    near = int(((limited["gap_db"] - reported).abs() <= margin).sum())
    covered = int(limited["gap_db"].between(limited["low"], limited["high"]).sum())
    settled = limited["settled_after"].max(skipna=False)  # missing: not within ITERATIONS
    notes = [
        f"ISFedAvg is lower in {int((limited['gap_db'] > 0).sum())} of {len(data)} populations, by "
        f"{show(limited['gap_db'].min())} to {show(limited['gap_db'].max())} dB; in {near} the gap "
        f"is within {margin:g} dB of the paper's.",
        f"From iteration {settled:.0f} at the latest, both curves stay within {SETTLED_DB:g} dB of "
        "their limits."
        if np.isfinite(settled)
        else f"Some curves are not within {SETTLED_DB:g} dB of their limits after {ITERATIONS:,} "
        "iterations.",
        f"{covered} of {len(limited)} simulated intervals contain the exact gap.",
    ]
    if len(limited) < len(data):
        growing = data[data["growth"] >= 1]
        factors = " and ".join(show(growth) for growth in growing["growth"])
        notes.append(
            f"Not drawn, because E‖w − w^o‖² grows by factors of {factors} per iteration: "
            f"{'; '.join(growing['population'])}."
        )
    return Artefact(
        data,
        figure,
        alt="Steady states of both algorithms in dB, and their gaps, against the rank of the gap.",
        notes=tuple(notes),
    )
