"""What Harshvardhan et al. 2025 leave open about their radio network: our choices, with reasons."""

from typing import Any, Literal

from pydantic import Field

from fedsampling.base.records import Strict


def _open(default: Any, unit: str, why: str, **bounds: Any) -> Any:
    return Field(default, description=why, json_schema_extra={"unit": unit}, **bounds)


class Parameters(Strict):
    """Settings that the paper leaves open, each with unit and reason."""

    gateway: Literal["supernode", "hub"] = _open(
        "supernode",
        "",
        "the text simulates each link from the client's and the server's location; 'hub', as in "
        "the authors' earlier paper: a link to the best hub, and a backhaul from there",
    )
    hubs: int = _open(6, "nodes", "the published delays have six gateways; by active links", gt=0)
    missing_height: float = _open(
        28.5,
        "m",
        "26 of the nodes have no altitude: 24 are not in the network map, and two have −1 m; the "
        "median of the nodes in the map is 28.5 m, without these two 29.0 m",
        gt=0,
    )
    environment: Literal["urban", "suburban", "open"] = _open(
        "urban", "", "section 1: 'the urban propagation model in ns-3'"
    )
    large_city: bool = _open(True, "", "New York; the default of ns-3")
    rooftop: float = _open(20.0, "m", "default of ns-3", gt=0)
    line_of_sight: float = _open(200.0, "m", "default of ns-3")
    long_range: float = _open(1000.0, "m", "ns-3 documentation of the hybrid model")
    frequency: float = _open(2160.0, "MHz", "default of ns-3's hybrid model; it ends at 2600", gt=0)
    power: float = _open(25.0, "dBm", "typical of the rooftop radios of such networks")
    gain: float = _open(
        40.0,
        "dB",
        "both antennas, such as a dish of 23 dBi and a sector of 17 dBi; gives "
        "communication times similar to the published 51 to 109 s",
    )
    bandwidth: float = _open(20e6, "Hz", "usual channel of Wi-Fi, widest channel of LTE", gt=0)
    noise_figure: float = _open(9.0, "dB", "default of ns-3's LTE receivers")
    shadowing: float = _open(7.0, "dB", "default of ns-3 outdoors, drawn once per link", ge=0)
    error_rate: float = _open(
        5e-5,
        "",
        "ns-3's adaptive modulation: Shannon's rate at a gap of −ln(5 BER)/1.5",
        gt=0,
        lt=0.2,
    )
    shared: bool = _open(True, "", "one server radio: clients have equal shares of its time")
    model_bytes: float = _open(
        1.6e6, "B", "model size in the authors' earlier script; figure 1 names no model", gt=0
    )
    backhaul: float = _open(
        18.72, "s", "published delay from gateway to cloud; for 'hub' only", ge=0
    )
    floor: float = _open(30.0, "s", "minimum computation, in the authors' earlier script", ge=0)
    log_mean: float = _open(4.08, "ln s", "computation above the floor: estimate from comp.txt")
    log_sd: float = _open(2.13, "ln s", "as for log_mean; comp1.txt and the script have 3", ge=0)
    cap: float = _open(15000.0, "s", "maximum computation, in the authors' earlier script")
    noise_median: float = _open(
        0.1, "", "median of the log-normal delay per round, relative to the communication", ge=0
    )
    noise_sd: float = _open(1.0, "ln s", "its spread; 'to account for network uncertainties'", ge=0)
