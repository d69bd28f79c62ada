"""Figure 1 of Chen et al. 2022, and its counterpart on other data: samples per client."""

import numpy as np

from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.style import BLUE, panels

from .courses import set_number, title

BINS = 30  # from 0 to the largest client of all datasets


def figure1(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 1: a histogram of the samples per client for each dataset, of the first seed."""
    (summary,) = summaries.values()
    table = summary.select(metric="samples").sort_values(["case", "seed", "at"])
    cases, notes = sorted(table["case"].unique()), []
    first = table[table["seed"] == table["seed"].min()]
    edges = np.linspace(0, first["value"].max(), BINS + 1).tolist()
    with panels(1, len(cases), width=2.7 * len(cases), height=2.7) as (figure, axes):
        for panel, case in zip(axes, cases, strict=True):
            samples = first.loc[first["case"] == case, "value"].to_numpy(np.int64)
            panel.hist(samples, edges, color=BLUE, edgecolor="white", linewidth=0.4)
            name, number = title(summary, case), set_number(summary, case)
            panel.set(title=name, xlabel="samples per client", yscale="log")
            panel.set_ylim(bottom=0.7)
            panel.grid(False, axis="x")
            panel.yaxis.set_major_formatter("{x:,.0f}")
            top = paper.reported(f"clients_{number}")
            by_draw = table[table["case"] == case].groupby("seed")["value"]
            share = np.mean([held(draw.to_numpy(), top / 100) for _, draw in by_draw])
            notes.append(
                f"{name}: the largest {top:.0f} % of the clients hold {100 * share:.1f} % "
                f"(published: about {paper.reported(f'share_{number}'):.0f} %)"
            )
        axes[0].set_ylabel("number of clients")
    draws = table["seed"].nunique()
    of_draws = f" One draw is shown; the shares are means over {draws} draws." if draws > 1 else ""
    data = first.rename(columns={"case": "dataset", "at": "client", "value": "samples"})
    return Artefact(
        data[["dataset", "client", "samples"]].astype({"samples": int}).reset_index(drop=True),
        figure,
        alt="Histograms of the number of samples per client: many small clients, some large ones.",
        notes=(
            f"{'; '.join(notes)}.{of_draws}",
            "The number of clients is on a logarithmic scale.",
        ),
    )


def held(samples: np.ndarray, top: float) -> float:
    """Return the share of all samples held by the largest fraction `top` of the clients."""
    ordered = np.sort(samples)[::-1]
    return float(ordered[: max(round(top * len(ordered)), 1)].sum() / ordered.sum())


figure1_writers = figure1  # its experiment has the other data
