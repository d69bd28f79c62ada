"""The network of Harshvardhan et al. 2025 and its delays: Figure 1, and causes of its tail."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm

from fedsampling.evidence.summaries import Summary
from fedsampling.experiments.papers import Paper
from fedsampling.report.drawing.artefacts import Artefact, Summaries
from fedsampling.report.drawing.style import (
    BLACK,
    BLUE,
    ORANGE,
    VERMILION,
    panels,
    printed_point,
)

from .run_settings import record
from .simulations_delays import THRESHOLD

SERIES = {  # of delays: how they are drawn
    "ours": ("ours", BLUE),
    "comp.txt": ("published, comp.txt", ORANGE),
    "comp1.txt": ("published, comp1.txt", VERMILION),
}
PUBLISHED = tuple(SERIES)[1:]


def figure1(summaries: Summaries, paper: Paper) -> Artefact:
    """Draw Figure 1: the network and the distribution of the round delays."""
    summary = summaries["delays"]
    rows = summary.rows[summary.rows["seed"] == summary.rows["seed"].min()]
    nodes = _wide(rows, ["lon", "lat", "communication", "mean"], "")
    hubs = _wide(rows, ["lon", "lat", "degree"], "hub_")
    links = _wide(rows, ["lon1", "lat1", "lon2", "lat2"], "link_")
    delays = _distributions(summary)
    slow, hours = paper.reported("slow_clients"), paper.reported("ten_rounds")
    share = summary.per_seed("none", "share")
    slowest = summary.per_seed("none", "slowest")
    parameters = record(summary).dataset.parameters
    with panels(1, 3, width=11.6, height=4.1) as (figure, (left, middle, right)):
        _map(left, nodes, hubs, links)
        _histogram(middle, delays)
        _tail(right, delays, slow)
    return Artefact(
        delays,
        figure,
        alt="Map of the mesh network with its hubs, and the long-tailed distribution of delays.",
        notes=(
            f"{100 * share.mean():.1f} % of the delays exceed {THRESHOLD:,g} s (standard deviation "
            f"over {len(share)} populations {100 * share.std():.1f} points); the paper reports "
            f"{slow:g} % of the clients. The sensitivity table shows which of the open parameters "
            "move this share.",
            f"A round of all clients takes {slowest.mean():,.0f} s on average. The paper's "
            f"{hours:g} hours for ten rounds of full participation would be {360 * hours:,.0f} s "
            "a round, less than the slowest of the published computation delays, "
            f"{parameters.cap:,.0f} s.",
            f"Hubs are the {parameters.hubs} nodes with the most active links; the one with the "
            "most is the server.",
            *_compared(summary),
        ),
    )


def figure1_sensitivity(summaries: Summaries, paper: Paper) -> Artefact:
    """Tabulate how Figure 1's share above 1,000 s depends on each unstated parameter."""
    note = "First row: our settings. Median and slowest delay are in seconds."
    return Artefact(sensitivity(summaries["sensitivity"]), notes=(note,))


def sensitivity(summary: Summary) -> pd.DataFrame:
    """Tabulate the share above 1,000 s by case, each of which changes one parameter.

    Returns ``parameter`` ("base" for the defaults), ``value`` as text, ``share`` with 95 % interval
    ``low``, ``high`` over populations, ``median`` and ``slowest`` (s), in the order of the cases.
    """
    curves = summary.curves.set_index(["case", "metric"])
    rows = []
    for case, changes in summary.settings["cases"].items():
        share = curves.loc[(case, "share")]
        changed = changes["dataset"]["parameters"] if changes else {"base": ""}
        ((parameter, value),) = changed.items()
        seconds = [curves.loc[(case, name), "mean"] for name in ("quantile/0.5", "slowest")]
        text = value if isinstance(value, str) else json.dumps(value)
        rows.append((parameter, text, share["mean"], share["low"], share["high"], *seconds))
    names = ["parameter", "value", "share", "low", "high", "median", "slowest"]
    return pd.DataFrame(rows, columns=names)


def _map(axes: Axes, nodes: pd.DataFrame, hubs: pd.DataFrame, links: pd.DataFrame) -> None:
    # Most of the network; the few nodes beyond are counted below the map.
    lon, lat = nodes["lon"].to_numpy(), nodes["lat"].to_numpy()
    west, east = float(np.quantile(lon, 0.03)) - 0.02, float(np.quantile(lon, 0.97)) + 0.02
    south, north = float(np.quantile(lat, 0.03)) - 0.02, float(np.quantile(lat, 0.97)) + 0.015
    inside = (west <= lon) & (lon <= east) & (south <= lat) & (lat <= north)
    grey = "#9a9a9a"
    ends = links[["lon1", "lat1", "lon2", "lat2"]].to_numpy(np.float64).reshape(-1, 2, 2)
    lines = LineCollection(list(ends), colors=grey, linewidths=0.5, zorder=1, label="active link")
    axes.add_collection(lines)
    points = axes.scatter(
        lon,
        lat,
        s=11,
        c=nodes["communication"],
        cmap="viridis_r",
        norm=LogNorm(),
        edgecolors=BLACK,
        linewidths=0.25,
        label="client",
        zorder=2,
    )
    axes.plot(hubs["lon"][1:], hubs["lat"][1:], "s", ms=5.5, color=ORANGE, mec=BLACK, label="hub")
    server = hubs.iloc[:1]
    axes.plot(server["lon"], server["lat"], "*", ms=13, color=VERMILION, mec=BLACK, label="server")
    axes.set(xlim=(west, east), ylim=(south, north))
    axes.set_aspect(1 / float(np.cos(np.radians(lat.mean()))))
    axes.set_title("(a) topology")
    axes.set(xlabel=f"longitude (°); {(~inside).sum()} clients lie outside", ylabel="latitude (°)")
    axes.locator_params(axis="x", nbins=3)
    axes.locator_params(axis="y", nbins=4)
    axes.ticklabel_format(useOffset=False)
    axes.legend(loc="upper center", bbox_to_anchor=(0.55, -0.16), ncols=2)
    bar = axes.figure.colorbar(points, ax=axes, shrink=0.85, pad=0.02)
    bar.set_label("communication (s)")
    bar.outline.set_visible(False)


def _histogram(axes: Axes, delays: pd.DataFrame) -> None:
    edges = np.geomspace(30, 20_000, 36).tolist()
    for name, seconds in _series(delays):
        look: dict[str, Any] = (
            {"alpha": 0.55} if name == "ours" else {"histtype": "step", "lw": 1.3}
        )
        label, look["color"] = SERIES[name]
        weights = np.full(len(seconds), 100 / len(seconds))
        axes.hist(seconds, edges, weights=weights, label=label, **look)
    axes.axvline(THRESHOLD, ymax=0.74, color=BLACK, linestyle=":")
    axes.set(xscale="log", xlabel="round delay (s)", ylabel="% of the delays")
    axes.set_title("(b) distribution of round delays")
    axes.grid(False, axis="x")
    axes.legend(loc="upper right")


def _tail(axes: Axes, delays: pd.DataFrame, slow: float) -> None:
    """Draw the share above each delay; `slow` is that above 1000 s in the paper, %."""
    for name, seconds in _series(delays):
        ordered = np.sort(seconds)
        above = 100 * (1 - np.arange(len(ordered)) / len(ordered))
        label, colour = SERIES[name]
        share = f"{label}: {100 * (seconds > THRESHOLD).mean():.0f} %"
        width = 2.2 if name == "ours" else 1.2
        axes.step(ordered, above, where="post", color=colour, lw=width, label=share)
    axes.axvline(THRESHOLD, ymin=0.34, color=BLACK, linestyle=":")
    printed_point(axes, THRESHOLD, slow, f"paper: {slow:g} %")
    axes.set(xscale="log", yscale="log", xlim=(30, 20_000), ylim=(0.5, 110))
    axes.set(xlabel="round delay $t$ (s)", ylabel="% of the delays above $t$")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_title("(c) its tail")
    axes.legend(loc="lower left", title=f"above {THRESHOLD:,g} s", alignment="left")


def _series(delays: pd.DataFrame) -> list[tuple[str, np.ndarray]]:
    by_name = dict(list(delays.groupby("series")["seconds"]))
    return [(name, by_name[name].to_numpy()) for name in SERIES if name in by_name]


def _distributions(summary: Summary) -> pd.DataFrame:
    """Round delays of all populations, and each published series once."""
    parts = [summary.select(metric="round_seconds").assign(series="ours")]
    for name in PUBLISHED:
        rows = summary.select(metric=f"reference_seconds/{name}")
        parts.append(rows[rows["seed"] == summary.rows["seed"].min()].assign(series=name))
    joined = pd.concat(parts, ignore_index=True)
    return joined[["series", "seed", "value"]].rename(columns={"value": "seconds"})


def _compared(summary: Summary) -> list[str]:
    """Compare our delays with the published delays; empty if they were not loaded."""
    metrics = set(summary.rows["metric"])
    notes = []
    for name in (name for name in PUBLISHED if f"ks/{name}" in metrics):
        notes.append(
            f"Published delays with {name}: "
            f"{100 * _mean(summary, f'reference_share/{name}'):.1f} % above {THRESHOLD:,g} s; "
            f"Kolmogorov-Smirnov distance from ours {_mean(summary, f'ks/{name}'):.2f}."
        )
    return notes


def _mean(summary: Summary, metric: str) -> float:
    return float(summary.per_seed("none", metric).mean())


def _wide(rows: pd.DataFrame, names: Sequence[str], prefix: str) -> pd.DataFrame:
    """Return a row for each `at` and a column for each metric, without the prefix."""
    metrics = [prefix + name for name in names]
    chosen = rows[rows["metric"].isin(metrics) & (rows["at"] >= 0)]
    wide = chosen.pivot(index="at", columns="metric", values="value")
    return wide[metrics].set_axis(list(names), axis=1).reset_index(drop=True)
