"""Plain learning curves of any experiment, with a panel for each case and a curve for each sampler.

They replace a figure whose layout needs a case, a sampler or a setting that overrides left out.
"""

from collections.abc import Sequence

import pandas as pd

from fedsampling.evidence.provenance import Summaries
from fedsampling.evidence.statistics import listed
from fedsampling.report.drawing.artefacts import Artefact
from fedsampling.report.drawing.curves import SEEDS, Panel, learning_grid
from fedsampling.report.drawing.style import CLASSES, Line

# Draw the first of these metrics that an experiment measures; otherwise the first by name.
METRICS = ("loss", "msd", "accuracy", "test_loss")
COLUMNS = 3  # of panels
MAX_PANELS = 12  # more are not legible on a page; the CSV has all
PANEL_WIDTH, PANEL_HEIGHT = 3.1, 2.5  # inches


def plain(summaries: Summaries, figure: bool, changes: Sequence[str]) -> Artefact:
    """Draw the runs of some experiments in a plain layout.

    `summaries`: by experiment. `figure`: true: draw curves; False: tabulate the last values.
    `changes`: settings that differ from ``paper.yaml``, such as ``rounds 20 (300)``, for the
    caption. Returns its data have columns ``experiment``, ``case``, ``sampler``, ``metric``,
    ``at``, ``mean``, ``low``, ``high`` and ``n``; a table has only the rows of the last `at`.
    """
    curves = pd.concat(
        [summary.curves.assign(experiment=name) for name, summary in summaries.items()],
        ignore_index=True,
    )
    why = "The paper's own layout does not fit these settings"
    why += f": {listed(list(changes))}." if changes else "."
    if not figure:
        last = curves.groupby(["experiment", *_CURVE])["at"].transform("max")
        table = _tidy(curves[curves["at"] == last])
        return Artefact(table, caption=f"Last values, mean over seeds with 95 % intervals. {why}")
    case_panels = _panels(curves)
    columns = min(COLUMNS, len(case_panels))
    rows = -(-len(case_panels[:MAX_PANELS]) // columns)
    width = max(PANEL_WIDTH * columns, 5.2)
    drawn, _ = learning_grid(case_panels[:MAX_PANELS], columns, width, PANEL_HEIGHT * rows + 1)
    omitted = len(case_panels) - MAX_PANELS
    return Artefact(
        _tidy(curves),
        drawn,
        alt=f"Curves of each sampler, a panel for each case of {listed(list(summaries))}.",
        notes=(f"{omitted} more cases are in the CSV.",) if omitted > 0 else (),
        caption=f"Mean over seeds with 95 % intervals, a panel for each case. {why}",
    )


_CURVE = ["case", "sampler", "metric"]


def _panels(curves: pd.DataFrame) -> list[Panel]:
    """Return a panel for each case of each experiment."""
    samplers = list(dict.fromkeys(curves["sampler"]))
    lines = {
        name: Line(name, CLASSES[number % len(CLASSES)], variant=number >= len(CLASSES))
        for number, name in enumerate(samplers)
    }
    has_several = curves["experiment"].nunique() > 1
    panels = []
    for (experiment, case), part in curves.groupby(["experiment", "case"], sort=False):
        # Values of the whole run have at = −1.
        over_rounds = part[part["at"] >= 0]
        part = over_rounds if len(over_rounds) else part.assign(at=0)
        metrics = sorted(set(part["metric"]))
        metric = next((name for name in METRICS if name in metrics), metrics[0])
        title = f"{experiment}, {case}" if has_several else str(case)
        panels.append(Panel(part, lines, metric, str(case), title, metric))
    return panels


def _tidy(curves: pd.DataFrame) -> pd.DataFrame:
    first = ["experiment", *_CURVE, "at"]
    values = [name for name in curves if name not in (*first, *SEEDS)]
    return curves[[*first, *values]]
