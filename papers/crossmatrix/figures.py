"""Tables and figures of the cross matrix: every scheme on the same datasets, one by one.

What is compared is computed in :mod:`.runs`; all datasets together are drawn in
:mod:`.figures_together`.  Schemes are named here only for their labels: one that a user adds
appears under its own name.
"""

import numpy as np
import pandas as pd

from fedsampling.drawing.artefacts import Artefact, Summaries
from fedsampling.drawing.style import BLUE, panels, style
from fedsampling.evidence.numbers import show
from fedsampling.evidence.statistics import mean
from fedsampling.experiments.papers import Paper

from .runs import TUNING, grid_scores, reached, sets, target

LABELS = {
    "approx_opt": "ApproxOptSampling",
    "available": "OCS",
    "binomial": "Binomial",
    "clustered_similarity": "Clustered, similarity",
    "clustered_size": "Clustered, size",
    "cyclic": "Cyclic",
    "delayhet_sampling": "DelayHetSampling",
    "delayhet_submodular": "DelayHetSubmodular",
    "delta": "DELTA",
    "divfl": "DivFL",
    "fedavg": "FedAvg",
    "fedcs": "FedCS",
    "flanp": "FLANP",
    "full": "all clients",
    "isfedavg_agents": "ISFedAvg, agents",
    "kvib": "K-Vib",
    "luo2022": "Luo et al.",
    "md": "MD",
    "oort": "Oort",
    "poisson": "Poisson",
    "power_of_choice": "Power-of-Choice",
    "random": "random",
    "stratified": "Stratified",
    "target": "target",
    "tifl": "TiFL",
    "uniform": "Uniform",
}
UNITS = {"rounds": ("rounds", 1.0), "bits": ("Mbit sent by clients", 1e6), "seconds": ("s", 1.0)}


def matrix_rounds(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate rounds to the target."""
    return _matrix(summaries, "rounds")


def matrix_bits(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate bits to the target."""
    return _matrix(summaries, "bits")


def matrix_seconds(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate seconds to the target."""
    return _matrix(summaries, "seconds")


def tuning(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the step that each scheme has chosen on the holdout of each dataset."""
    names = sets(summaries)
    grids = {name: grid_scores(summaries[TUNING + name]) for name in names}
    table = pd.concat([grid.assign(set=name) for name, grid in grids.items()], ignore_index=True)
    schemes = sorted(table["sampler"].unique(), key=alphabetical, reverse=True)
    edge = chosen = 0
    with style():
        width = 3.4 + 1.35 * len(names)
        figure, (axis,) = panels(1, 1, width=width, height=1.2 + 0.26 * len(schemes))
        for column, grid in enumerate(grids.values()):
            steps = sorted(grid["step"].unique())
            picked = grid[grid["chosen"]].set_index("sampler")
            for row, scheme in enumerate(schemes):
                if scheme not in picked.index:
                    axis.text(column, row, "–", ha="center", va="center")
                    continue
                place = steps.index(picked.loc[scheme, "step"])
                chosen += len(steps) > 1
                edge += len(steps) > 1 and place in (0, len(steps) - 1)
                shade = 0.12 + 0.6 * place / max(len(steps) - 1, 1)
                axis.barh(row, 0.94, 0.9, column - 0.47, color=BLUE, alpha=shade, linewidth=0)
                axis.text(column, row, f"{steps[place]:g}", ha="center", va="center")
        axis.set_xticks(range(len(names)), [title(summaries, name) for name in names])
        axis.set_yticks(range(len(schemes)), [label(name) for name in schemes])
        axis.tick_params(length=0)
        axis.set(xlim=(-0.5, len(names) - 0.5), ylim=(-0.5, len(schemes) - 0.5))
        axis.grid(False)
    goals = {name: target(summaries[TUNING + name]) for name in names}
    listed = ", ".join(f"{title(summaries, name)} {show(goal)}" for name, goal in goals.items())
    return Artefact(
        table[["set", "sampler", "step", "score", "chosen"]],
        figure,
        alt="The learning rate that each scheme chose on each dataset.",
        notes=(
            f"Targets: {listed} (accuracy; on Quadratic −log of the test loss).",
            f"{edge} of {chosen} choices lie at an end of the grid."
            if chosen
            else "The grid is a single learning rate: there was nothing to choose.",
        ),
    )


def found_in(summaries: Summaries) -> dict[str, pd.DataFrame]:
    """Return what each run cost until it reached its target, by dataset."""
    return {name: reached(summaries[name], summaries[TUNING + name]) for name in sets(summaries)}


def _matrix(summaries: Summaries, measure: str) -> Artefact:
    found = found_in(summaries)
    name, unit = UNITS[measure]
    schemes = sorted({s for table in found.values() for s in table["sampler"]}, key=alphabetical)
    columns: dict[str, list[str]] = {"scheme": [label(scheme) for scheme in schemes]}
    missed = 0
    for key, table in found.items():
        own = dict(list(table.groupby("sampler")))
        least = min((part[measure].mean() for part in own.values()), default=np.inf)
        columns[title(summaries, key)] = [
            _cell(own[scheme], measure, unit, least) if scheme in own else "–" for scheme in schemes
        ]
        missed += int(np.isinf(table[measure]).sum())
    runs = sum(map(len, found.values()))
    return Artefact(
        pd.DataFrame(columns),
        notes=(
            f"In {name}: geometric mean over seeds with its 95 % interval; an asterisk marks the "
            "smallest mean of a dataset. Where runs missed the target: the smallest cost of a "
            "whole run that missed it, and how many runs reached it.",
            f"{missed} of {runs} runs did not reach the target.",
        ),
    )


def _cell(runs: pd.DataFrame, measure: str, unit: float, least: float) -> str:
    values = runs[measure].to_numpy() / unit
    met = np.isfinite(values)
    if not met.all():
        missed = runs.loc[~met, f"all_{measure}"].min() / unit
        return f">{show(float(missed))} ({met.sum()} of {len(values)})"
    found = mean(np.log(values))
    text = show(float(np.exp(found.value)))
    if np.isfinite(found.low):
        text += f" [{show(float(np.exp(found.low)))}, {show(float(np.exp(found.high)))}]"
    return f"{text} *" if runs[measure].mean() == least else text


def label(name: str) -> str:
    """Return how a scheme is called."""
    return LABELS.get(name, name)


def alphabetical(name: str) -> str:
    """Return what schemes are sorted by."""
    return label(name).casefold()


def title(summaries: Summaries, name: str) -> str:
    """Return how a dataset is called."""
    return str(summaries[name].settings["title"]).partition(" by a Dirichlet")[0]
