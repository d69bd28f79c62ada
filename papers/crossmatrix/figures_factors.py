"""Effects of the clients' properties on the samplers, from the full factorial design."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fedsampling.evidence.numbers import listed, show
from fedsampling.evidence.statistics import mean
from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.cross_matrix import FULL, MEASURES, REFERENCE
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.style import BLUE, VERMILION, panels, style

from .presentation import alphabetical, label
from .simulations import CELLS, FACTORS

MIN_EFFECT = 1.1  # smallest effect that counts, as a factor up or down
# Never recommended: they train all clients, or need their labels.
IMPRACTICAL = (FULL, "target", "fedgs")
FINAL = "final"
SHOWN = 3  # best samplers in the table, and samplers helped or harmed most in a sentence
# The levels that the effects compare with the first level of their factor, in words.
WORDS = {
    ("labels", "skewed"): "skewed labels",
    ("sizes", "unequal"): "unequal sizes",
    ("clients", "many"): "9 clients a round",
    ("delays", "spread"): "spread delays",
    ("work", "long"): "10 local steps",
    ("presence", "random"): "come and go at random",
    ("presence", "label"): "come and go by label",
}
FIRST_LEVELS = {"clients": "3 clients a round", "work": "2 local steps", "presence": "always there"}


def factors_effects(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw the effect of each property on each sampler's speed-up."""
    (summary,) = summaries.values()
    table = effects(mean_values(summary))
    table["label"] = table["scheme"].map(label)
    return Artefact(
        table,
        _figure(table),
        alt="Change of each sampler's speed-up by each property of the clients.",
        notes=tuple(_helped_and_harmed(table)),
    )


def factors_best(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate the best samplers among the populations with each property."""
    (summary,) = summaries.values()
    values = mean_values(summary)
    rows = []
    for position, (factor, levels) in enumerate(FACTORS.items()):
        for level in levels:
            with_level = np.array([cell[position] == level for cell in CELLS])
            for measure in MEASURES:
                part = values[measure].loc[:, with_level].dropna()
                part = part.drop(index=[name for name in IMPRACTICAL if name in part.index])
                order = part.mean(axis=1).sort_values(ascending=False)
                rows += [
                    {
                        "factor": factor,
                        "level": level,
                        "property": level_in_words(factor, level),
                        "measure": measure,
                        "rank": place + 1,
                        "scheme": name,
                        "label": label(str(name)),
                        "speed_up": float(np.exp(value)),
                        "populations": int(with_level.sum()),
                    }
                    for place, (name, value) in enumerate(order.iloc[:SHOWN].items())
                ]
    table = pd.DataFrame(rows)
    cell = table.assign(cell=table["label"] + " " + table["speed_up"].map(show))
    joined = cell.groupby(["property", "measure"], sort=False)["cell"].agg("; ".join)
    wide = joined.unstack("measure").loc[table["property"].unique(), list(MEASURES)]
    return Artefact(table, table=wide.rename_axis(columns=None).reset_index())


def level_in_words(factor: str, level: str) -> str:
    """Describe a level in words."""
    return WORDS.get((factor, level)) or FIRST_LEVELS.get(factor) or f"{level} {factor}"


def mean_values(summary: Summary) -> dict[str, pd.DataFrame]:
    """Return means over seeds by measure: rows are samplers, columns cells; NaN where rejected."""
    rows = summary.select(since=0)
    tables = {}
    for measure in (*MEASURES, FINAL):
        part = rows[rows["metric"] == measure]
        wide = part.pivot_table(index="sampler", columns="at", values="value", aggfunc="mean")
        tables[measure] = wide.reindex(columns=range(len(CELLS)))
    return tables


def effects(values: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return each property's effect on each sampler, with an interval over the combinations.

    Parameters
    ----------
    values : dict
        From :func:`mean_values`.

    Returns
    -------
    DataFrame
        Columns ``measure``, ``scheme``, ``factor``, ``level``, ``effect``, ``low``, ``high``,
        ``counts``, ``pairs``: ratios of speed-ups; for ``final``, differences in accuracy.
    """
    rows = []
    for measure, table in values.items():
        for (factor, level), base, changed in _pairs():
            change = table[changed].to_numpy() - table[base].to_numpy()
            for name, changes in zip(table.index, change, strict=True):
                measured = changes[~np.isnan(changes)]
                if name == REFERENCE or not len(measured):
                    continue
                estimate = mean(measured)
                value, low, high = estimate.value, estimate.low, estimate.high
                counts = not low <= 0 <= high
                if measure != FINAL:
                    value, low, high = np.exp([value, low, high])
                    counts = counts and not 1 / MIN_EFFECT < value < MIN_EFFECT
                rows.append(
                    {
                        "measure": measure,
                        "scheme": str(name),
                        "factor": factor,
                        "level": level,
                        "effect": float(value),
                        "low": float(low),
                        "high": float(high),
                        "counts": bool(counts),
                        "pairs": len(measured),
                    }
                )
    return pd.DataFrame(rows)


def _pairs() -> list[tuple[tuple[str, str], list[int], list[int]]]:
    """Pair the cells that differ only in a single property: its first level and another level.

    Returns a factor and level, and the indices of the paired cells, for each level but the first.
    """
    index_of = {cell: index for index, cell in enumerate(CELLS)}
    pairs = []
    for position, (factor, levels) in enumerate(FACTORS.items()):
        base = [cell for cell in CELLS if cell[position] == levels[0]]
        for level in levels[1:]:
            changed = [(*cell[:position], level, *cell[position + 1 :]) for cell in base]
            first, second = ([index_of[cell] for cell in cells] for cells in (base, changed))
            pairs.append(((factor, level), first, second))
    return pairs


def _figure(table: pd.DataFrame) -> Figure:
    """Draw the effects that count as shaded cells, one panel for each measure."""
    samplers = sorted(table["scheme"].unique(), key=alphabetical, reverse=True)
    columns = list(WORDS)
    with style():
        figure, axes = panels(1, 3, width=12.5, height=1.6 + 0.25 * len(samplers), sharey=True)
        for axis, measure in zip(axes, MEASURES, strict=True):
            part = table[table["measure"] == measure].set_index(["scheme", "factor", "level"])
            for row, sampler in enumerate(samplers):
                for column, key in enumerate(columns):
                    if (sampler, *key) not in part.index:
                        axis.text(column, row, "–", ha="center", va="center")
                        continue
                    cell = part.xs((sampler, *key)).to_dict()
                    shade = min(abs(np.log(cell["effect"])), 1.0) * 0.8 if cell["counts"] else 0.0
                    colour = BLUE if cell["effect"] > 1 else VERMILION
                    axis.barh(row, 0.96, 0.92, column - 0.48, color=colour, alpha=shade, lw=0)
                    axis.text(column, row, show(cell["effect"]), ha="center", va="center", size=7)
            axis.set(
                title=measure, xlim=(-0.5, len(columns) - 0.5), ylim=(-0.5, len(samplers) - 0.5)
            )
            axis.set_xticks(range(len(columns)), list(WORDS.values()), rotation=40, ha="right")
            axis.set_yticks(range(len(samplers)), [label(name) for name in samplers])
            axis.tick_params(length=0)
            axis.grid(False)
    return figure


def _helped_and_harmed(table: pd.DataFrame) -> list[str]:
    """Name the samplers that each property helps most and harms most."""
    sentences = []
    for measure in ("rounds", "seconds"):
        for (factor, level), words in WORDS.items():
            part = table[
                (table["measure"] == measure)
                & (table["factor"] == factor)
                & (table["level"] == level)
                & table["counts"]
            ].sort_values("effect", ascending=False)
            helped = part[part["effect"] > 1].head(SHOWN)
            harmed = part[part["effect"] < 1].tail(SHOWN)[::-1]
            sides = [
                listed([f"{row['label']} ({show(row['effect'])})" for _, row in side.iterrows()])
                if len(side)
                else "none"
                for side in (helped, harmed)
            ]
            sentences.append(
                f"In {measure}, {words}: helped most, relative to MD: {sides[0]}; harmed most: "
                f"{sides[1]}."
            )
    return sentences
