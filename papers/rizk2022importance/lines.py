"""Samplers of rizk2022importance: their names in runs, and how figures draw them."""

from fedsampling.report.drawing.style import SCHEMES as COLOURS
from fedsampling.report.drawing.style import Line

# Samplers by their names in runs.
TRUE, APPROXIMATE, TRACKED = "isfedavg-optimal", "isfedavg-approximate", "isfedavg-tracked"
STANDARD = "standard"  # the paper's standard FedAvg, whose steps are not divided by E_k
ESTIMATED = "isfedavg-tracked-estimated"  # a variant that a server could run

SCHEMES = {
    "fedavg": Line("FedAvg", COLOURS["uniform"]),
    TRUE: Line("ISFedAvg, true (44), (48)", COLOURS["isfedavg_optimal"]),
    APPROXIMATE: Line("ISFedAvg, approximate (49), (50)", COLOURS["isfedavg_approximate"]),
    TRACKED: Line("ISFedAvg, tracked (52), (53)", COLOURS["isfedavg_tracked"]),
}
LINES = {
    STANDARD: SCHEMES["fedavg"],
    **{name: line for name, line in SCHEMES.items() if name != "fedavg"},
    ESTIMATED: Line(
        r"tracked, $\sigma^2_{s,k}$ estimated", COLOURS["isfedavg_tracked"], variant=True
    ),
    "fedavg": Line("FedAvg, steps divided by $E_k$", COLOURS["uniform"], variant=True),
}
