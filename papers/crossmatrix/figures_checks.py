"""Whether the benchmark's results depend on choices of ours, and comparisons of two samplers."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import rankdata, spearmanr

from fedsampling.base.streams import stream
from fedsampling.evidence.numbers import listed, show
from fedsampling.experiments.cross_matrix import FULL, MEASURES, REFERENCE
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries

from .bench import (
    TAILS,
    TARGETS,
    bench_datasets,
    cost_array,
    costs_by_dataset,
    family_of,
    interval_over_datasets,
    log_speed_ups,
    reference_scores_on,
    resampled_log_speed_ups,
    samplers_in,
)
from .decision_map import dataset_answers
from .presentation import for_each_measure, label, requires_benchmark

ALL = "all datasets"
# Statements of findings.md that compare two samplers: (first, second, measure).
PAIRS = (
    ("rpow_d", "power_of_choice", "rounds"),
    ("rpow_d", "power_of_choice", "seconds"),
    ("cpow_d", "power_of_choice", "rounds"),
    ("cpow_d", "power_of_choice", "seconds"),
    ("tifl_adaptive", "tifl", "rounds"),
    ("tifl_adaptive", "tifl", "seconds"),
    ("oort_fedscale", "oort", "rounds"),
    ("oort_fedscale", "oort", "seconds"),
    ("uniform", "fedavg_normalised", "rounds"),
    ("binomial", "fedavg_normalised", "rounds"),
    ("fedvarp", "mifa", "rounds"),
)


@requires_benchmark
def bench_checks(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate speed-ups over subsets of the datasets, by families, and for single targets."""
    costs, answers = costs_by_dataset(summaries), dataset_answers(paper.folder)
    converged = {
        name: reference_scores_on(summaries, name).have_converged(name)
        for name in bench_datasets(summaries)
    }
    table = for_each_measure(lambda measure: speed_ups_by_view(costs, measure, answers, converged))
    rounds = table[table["measure"] == "rounds"].assign(cell=table["speed_up"].map(show))
    wide = rounds.pivot(index="label", columns="view", values="cell").fillna("–")
    order = rounds[rounds["view"] == ALL].sort_values("speed_up", ascending=False)["label"]
    wide = wide.loc[order, list(dict.fromkeys(table["view"]))]
    return Artefact(
        table,
        table=wide.rename_axis(columns=None).reset_index().rename(columns={"label": "rounds"}),
        notes=tuple(_agreement_notes(table)),
    )


@requires_benchmark
def bench_pairs(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate the ratio of two samplers' costs, with intervals over seeds and over datasets."""
    costs = costs_by_dataset(summaries)
    table = pd.DataFrame([row for pair in PAIRS if (row := compared_pair(costs, *pair))])
    for name in ("first", "second"):
        table[f"{name}_label"] = table[name].map(label)
    cells = pd.DataFrame(
        {
            "faster?": table["first_label"],
            "than": table["second_label"],
            "in": table["measure"],
            "ratio": table["ratio"].map(show),
            "over seeds": _intervals(table, "low", "high"),
            "over datasets": _intervals(table, "set_low", "set_high"),
            "datasets won": table["won"].map(str) + " of " + table["sets"].map(str),
        }
    )
    return Artefact(table, table=cells)


def compared_pair(
    costs: Mapping[str, pd.DataFrame], first: str, second: str, measure: str
) -> dict[str, object] | None:
    """Compare two samplers on the datasets that both were run on.

    Returns
    -------
    dict, optional
        ``ratio`` of the second's cost to the first's, geometric mean over datasets; ``low``,
        ``high`` over seeds and ``set_low``, ``set_high`` over datasets; ``won`` of ``sets``.  None
        if no dataset has both.
    """
    arrays = [cost_array(table, measure, [first, second]) for table in costs.values()]
    arrays = [array for array in arrays if not np.isnan(array).any()]
    if not arrays:
        return None
    rng = stream(0, f"crossmatrix pair {first} {second} {measure}")
    # Speed-ups of the first (index 0) over the second (1).
    logs = np.array([log_speed_ups(array, 1)[0] for array in arrays])
    over_seeds = [resampled_log_speed_ups(array, 1, rng)[0] for array in arrays]
    low, high = np.exp(np.quantile(np.mean(over_seeds, axis=0), TAILS))
    set_low, set_high = np.exp(interval_over_datasets(logs, rng))
    return {
        "first": first,
        "second": second,
        "measure": measure,
        "ratio": float(np.exp(logs.mean())),
        "low": float(low),
        "high": float(high),
        "set_low": float(set_low),
        "set_high": float(set_high),
        "won": int((logs > 0).sum()),
        "sets": len(logs),
    }


def speed_ups_by_view(
    costs: Mapping[str, pd.DataFrame],
    measure: str,
    answers: pd.DataFrame,
    converged: Mapping[str, bool],
) -> pd.DataFrame:
    """Return speed-ups and ranks of the samplers that were run everywhere, by view.

    A view is a subset of the datasets, an average over families, or a single target.
    """
    all_logs = _log_speed_ups(costs, measure)
    subsets = {
        "converged": [name for name in costs if converged[name]],
        "not converged": [name for name in costs if not converged[name]],
        "equal sizes": [name for name in costs if not answers.loc[name, "unequal"]],
        "unequal sizes": [name for name in costs if answers.loc[name, "unequal"]],
        "skewed labels": [name for name in costs if answers.loc[name, "skewed"]],
    }
    views = {
        ALL: all_logs,
        **{view: all_logs.loc[names] for view, names in subsets.items() if names},
        "families": all_logs.groupby(family_of).mean(),
        **{f"target {name}": _log_speed_ups(costs, measure, [name]) for name in TARGETS},
    }
    parts = []
    for view, logs in views.items():
        rng = stream(0, f"crossmatrix check {view} {measure}")
        low, high = np.exp(interval_over_datasets(logs.to_numpy(), rng))
        mean = logs.mean().to_numpy()
        parts.append(
            pd.DataFrame(
                {
                    "view": view,
                    "sets": len(logs),
                    "scheme": all_logs.columns,
                    "speed_up": np.exp(mean),
                    "set_low": low,
                    "set_high": high,
                    "rank": rankdata(-mean),
                }
            )
        )
    return pd.concat(parts)


def _log_speed_ups(
    costs: Mapping[str, pd.DataFrame], measure: str, targets: Sequence[str] = tuple(TARGETS)
) -> pd.DataFrame:
    """Return log speed-ups over MD: rows are datasets, columns the samplers run on all of them."""
    samplers, rows = samplers_in(costs), {}
    positions = [list(TARGETS).index(name) for name in targets]
    for name, table in costs.items():
        array = cost_array(table, measure, samplers)[positions]
        rows[name] = pd.Series(log_speed_ups(array, samplers.index(REFERENCE)), samplers)
    return pd.DataFrame(rows).T.dropna(axis=1)


def _agreement_notes(table: pd.DataFrame) -> list[str]:
    """Write how far each view's order agrees with that over all datasets, and what it changes."""
    notes = []
    for measure in MEASURES:
        part = table[(table["measure"] == measure) & (table["scheme"] != FULL)]
        speed_ups = part.pivot(index="scheme", columns="view", values="speed_up")
        counts = part.drop_duplicates("view").set_index("view")["sets"].drop(ALL)
        sentences = []
        for view, count in counts.items():
            correlation = spearmanr(speed_ups[view], speed_ups[ALL]).statistic
            without_md = speed_ups[view].drop(REFERENCE)
            sentences.append(
                f"{view} ({count}): {show(float(correlation))}, first "
                f"{label(str(without_md.idxmax()))} ({show(without_md.max())})"
            )
        notes.append(
            f"In {measure}, Spearman's correlation with the order over all datasets, and the "
            f"first: {'; '.join(sentences)}."
        )
        faster = slower = []
        if "converged" in speed_ups:
            over_all, converged = speed_ups[ALL], speed_ups["converged"]
            faster = [*speed_ups.index[(over_all > 1) & (converged < 1)]]
            slower = [*speed_ups.index[(over_all < 1) & (converged > 1)]]
        notes.append(
            f"In {measure}, faster than MD over all datasets and slower over the converged ones: "
            f"{_labels(faster)}; slower over all and faster over these: {_labels(slower)}."
        )
    return notes


def _labels(samplers: list[str]) -> str:
    return listed(sorted(map(label, samplers))) or "none"


def _intervals(table: pd.DataFrame, low: str, high: str) -> pd.Series:
    return table[low].map(show) + " to " + table[high].map(show)
