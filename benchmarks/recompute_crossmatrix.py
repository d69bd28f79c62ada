"""Recompute rows of the cross matrix's tables from the published runs, without this project's code.

    python benchmarks/recompute_crossmatrix.py [ARTEFACTS]

Imports only pandas and NumPy.  Prints the speed-ups over MD sampling of three samplers on a dataset
in all measures, and, given the folder of the drawn artefacts (results/artefacts/crossmatrix),
compares them with the tables; the exit status is 1 if any differs by more than 0.1 %.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]
DATASET, SAMPLERS = "bench_spam", ("cpow_d", "tifl", "flanp")
BITS = ("model_bits", "norm_bits", "exchange_bits", "observation_bits")
SECONDS = ("seconds", "asking_seconds")


def main(artefacts: str | None = None) -> int:
    """Print the rows and compare them; return the exit status."""
    published = pd.read_parquet(ROOT / "published_runs" / "crossmatrix" / f"{DATASET}.parquet")
    chosen = pd.read_csv(ROOT / "papers" / "crossmatrix" / "chosen.csv")
    chosen = chosen[(chosen["experiment"] == DATASET) & chosen["chosen"]].set_index("sampler")
    curves = {}
    for row in published.to_dict("records"):
        spec = json.loads(row["metadata"])["spec"]
        name = spec["settings"]["sampler"]["name"]
        if name in ("md", *SAMPLERS) and np.isclose(
            spec["settings"]["work"]["step"], chosen.loc[name, "step"]
        ):
            curves[name, spec["seed"]] = curve(row)
    seeds = sorted({seed for _, seed in curves})
    worst = 0.0
    for measure in ("rounds", "bits", "seconds"):
        for name in SAMPLERS:
            logs = []
            for seed in seeds:
                md = curves["md", seed]
                late = md.index > 0.75 * md.index.max()
                first = md["score"].iloc[0]
                target = first + 0.95 * (md["score"][late].mean() - first)
                costs = [cost(curves[each, seed], target, measure) for each in ("md", name)]
                logs.append(np.log(costs[0] / costs[1]))
            speed_up = float(np.exp(np.mean(logs)))
            line = f"{DATASET} {name:8} {measure:8} {speed_up:.4f}"
            if artefacts:
                table = f"bench_matrix_{measure}"
                rows = pd.read_csv(Path(artefacts) / table / f"{table}.csv")
                row = rows[(rows["set"] == DATASET) & (rows["scheme"] == name)]
                drawn = row["speed_up"].item()
                worst = max(worst, abs(drawn / speed_up - 1))
                line += f"  table {drawn:.4f}"
            print(line)
    return int(worst > 1e-3)


def curve(row: dict) -> pd.DataFrame:
    """Return a run's score and what it has spent, by measured round."""
    columns = [name for name in row if name.startswith("value") and row[name] is not None]
    if columns == ["value"]:
        long = pd.DataFrame({name: row[name] for name in ("at", "metric", "value")})
    else:
        long = pd.DataFrame({"at": row["at"], "metric": row["metric"]})
        for metric in long["metric"].unique():
            long.loc[long["metric"] == metric, "value"] = row[f"value/{metric}"]
    wide = long[long["at"] >= 0].pivot(index="at", columns="metric", values="value").sort_index()
    wide = wide.astype(float)
    spent = {
        measure: wide.reindex(columns=list(parts)).fillna(0.0).sum(axis=1).cumsum()
        for measure, parts in (("bits", BITS), ("seconds", SECONDS))
    }
    table = pd.DataFrame({"score": wide["accuracy"], "rounds": wide.index, **spent})
    return table[table["score"].notna()]


def cost(run: pd.DataFrame, target: float, measure: str) -> float:
    """Return the cost when the mean of three scores reaches the target; else twice the run."""
    reached = run[run["score"].rolling(3).mean() >= target]
    return float(reached[measure].iloc[0] if len(reached) else 2 * run[measure].max())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
