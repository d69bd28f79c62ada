"""Path loss between two places in a city: the models that ns-3's hybrid building model combines.

Every function is a published formula on arrays that broadcast: distances in metres, heights in
metres above ground, frequency in MHz, loss in dB.

References
----------
ns-3 project: Model Library, chapters "Propagation" and "Buildings" (design documentation of
``HybridBuildingsPropagationLossModel``), whose published test values the tests repeat.
"""

import numpy as np
from numpy.typing import ArrayLike

from fedsampling.base.arrays import Array
from fedsampling.clients.mesh_settings import Parameters

SPEED_OF_LIGHT = 299_792_458.0  # m/s
# Buildings, with ns-3's defaults.
SEPARATION = 50.0  # b, m
EXTENT = 80.0  # length l along the path, m
STREET = 20.0  # street width w, m
ORIENTATION = 2.5 + 0.075 * (45.0 - 35.0)  # dB, of streets at 45° to the path


def hybrid(d: ArrayLike, h_one: ArrayLike, h_other: ArrayLike, f: float, city: Parameters) -> Array:
    """Combine the models as ns-3's documentation does, for two nodes outdoors.

    Beyond `long_range`, with both nodes above the roofs: :func:`okumura_hata`, or :func:`kun`
    above 2.3 GHz.  Else ITU-R P.1411: in line of sight up to that threshold, then over rooftops.

    `d`: distance, m. `h_one`, `h_other`: heights, m; the higher end is the base station. `f`:
    frequency, MHz; the documentation names 200 to 2600.

    ns-3's source differs from its documentation: beyond `long_range`, one node above the roofs is
    enough for Okumura-Hata.

    References: ns-3 Model Library, "Buildings", pseudo-code of HybridBuildingsPropagationLossModel.
    """
    d, h_b, h_m = _link(d, h_one, h_other)
    long = kun(d) if f > 2300 else okumura_hata(d, h_b, h_m, f, city)
    short = np.where(
        d < city.line_of_sight,
        p1411_line_of_sight(d, h_b, h_m, f),
        p1411_over_rooftops(d, h_b, h_m, f, city),
    )
    above = h_m >= city.rooftop
    return np.where((d > city.long_range) & above, long, short)


def okumura_hata(
    d: ArrayLike, h_one: ArrayLike, h_other: ArrayLike, f: float, city: Parameters
) -> Array:
    """Okumura-Hata's loss up to 1500 MHz, its COST 231 extension above; for links beyond 1 km.

    COST 231 has no correction for open areas; they count as suburban (C = 0).  Like ns-3, the
    function also extrapolates beyond the measured ranges (mobiles to 10 m, bases to 200 m, 20 km).

    References: Hata: Empirical formula for propagation loss in land mobile radio services. IEEE
    Trans. VT 29(3), 1980. COST Action 231: Digital mobile radio towards future generation systems,
    final report, 1999, section 4.4.1. Implemented as in ns-3: without 4.97 dB in COST 231's F(h_M)
    for a large city.
    """
    d, h_b, h_m = _link(d, h_one, h_other)
    log_f = np.log10(f)
    slope = (44.9 - 6.55 * np.log10(h_b)) * np.log10(d / 1000)
    small_city = (1.1 * log_f - 0.7) * h_m - (1.56 * log_f - 0.8)
    if f > 1500:
        large = city.large_city and city.environment == "urban"
        F = 3.2 * np.log10(11.75 * h_m) ** 2 if large else small_city
        C = 3.0 if large else 0.0
        return np.asarray(46.3 + 33.9 * log_f - 13.82 * np.log10(h_b) + slope - F + C)
    F = small_city
    if city.large_city and f <= 200:
        F = 8.29 * np.log10(1.54 * h_m) ** 2 - 1.1
    elif city.large_city:
        F = 3.2 * np.log10(11.75 * h_m) ** 2 - 4.97
    urban = 69.55 + 26.16 * log_f - 13.82 * np.log10(h_b) + slope - F
    if city.environment == "suburban":
        return np.asarray(urban - 2 * np.log10(f / 28) ** 2 - 5.4)
    if city.environment == "open":
        return np.asarray(urban - 4.78 * log_f**2 + 18.33 * log_f - 40.94)
    return np.asarray(urban)


def kun(d: ArrayLike) -> Array:
    """Measured loss at 2.6 GHz in urban areas.

    References: Sun Kun, Wang Ping, Li Yingze: Path loss models for suburban scenario at 2.3 GHz,
    2.6 GHz and 3.5 GHz. ISAPE 2008.
    """
    return np.asarray(36 + 26 * np.log10(d))


def p1411_line_of_sight(d: ArrayLike, h_one: ArrayLike, h_other: ArrayLike, f: float) -> Array:
    """Mean of the upper and lower bounds for street canyons in line of sight.

    References: Recommendation ITU-R P.1411, section on line of sight in UHF: breakpoint R_bp = 4
    h_b h_m / λ.
    """
    d, h_b, h_m = _link(d, h_one, h_other)
    wavelength = SPEED_OF_LIGHT / (f * 1e6)
    R_bp = 4 * h_b * h_m / wavelength
    L_bp = np.abs(20 * np.log10(wavelength**2 / (8 * np.pi * h_b * h_m)))
    decades = np.log10(d / R_bp)
    beyond = decades > 0
    lower = L_bp + np.where(beyond, 40, 20) * decades
    upper = L_bp + 20 + np.where(beyond, 40, 25) * decades
    return np.asarray((lower + upper) / 2)


def p1411_over_rooftops(
    d: ArrayLike, h_one: ArrayLike, h_other: ArrayLike, f: float, city: Parameters
) -> Array:
    """Loss without line of sight: free space, roof to street, and screens between the roofs.

    A mobile above the roofs has no diffraction down to the street; Δh_m is at least one metre, so
    that the formula remains in its domain.  Below the roofs and within 500 m, k_a has the
    recommendation's factor d/1000, which ns-3's documentation omits; with it the loss is continuous
    at 500 m.

    References: Recommendation ITU-R P.1411, section on propagation over rooftops (Walfisch and
    Bertoni 1988, Ikegami et al. 1984).
    """
    d, h_b, h_m = _link(d, h_one, h_other)
    free_space = 32.4 + 20 * np.log10(d / 1000) + 20 * np.log10(f)
    fall = np.maximum(city.rooftop - h_m, 1.0)
    street = -8.2 - 10 * np.log10(STREET) + 10 * np.log10(f) + 20 * np.log10(fall)
    excess = street + ORIENTATION + _screens(d, h_b, f, city)
    return np.asarray(free_space + np.maximum(excess, 0))


def _link(d: ArrayLike, h_one: ArrayLike, h_other: ArrayLike) -> tuple[Array, Array, Array]:
    """Broadcast, and return the higher end as base station, the lower as mobile."""
    distance, first, second = np.broadcast_arrays(
        np.asarray(d, np.float64), np.asarray(h_one, np.float64), np.asarray(h_other, np.float64)
    )
    return distance, np.maximum(first, second), np.minimum(first, second)


def _screens(d: Array, h_b: Array, f: float, city: Parameters) -> Array:
    """Return the loss L_msd past rows of buildings, with a settled field or not."""
    wavelength = SPEED_OF_LIGHT / (f * 1e6)
    b = SEPARATION
    rise = h_b - city.rooftop
    over = rise > 0
    k_a = np.where(d >= 500, 54 - 0.8 * rise, 54 - 1.6 * rise * d / 1000)
    k_a = np.where(over, 71.4 if f > 2000 else 54.0, k_a)
    k_d = np.where(over, 18.0, 18 - 15 * rise / city.rooftop)
    k_f = -8.0 if f > 2000 else -4 + (1.5 if city.large_city else 0.7) * (f / 925 - 1)
    L_bsh = np.where(over, -18 * np.log10(1 + np.maximum(rise, 0)), 0.0)
    settled = L_bsh + k_a + k_d * np.log10(d / 1000) + k_f * np.log10(f) - 9 * np.log10(b)
    theta = np.arctan(rise / b)  # negative below the roofs, as printed
    rho = np.hypot(rise, b)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = wavelength * d**2 / rise**2  # infinite where the antenna is level with the roofs
        above = 2.35 * (np.abs(rise) / d * np.sqrt(b / wavelength)) ** 0.9
        below = b / (2 * np.pi * d) * np.sqrt(wavelength / rho)
        below = below * (1 / theta - 1 / (2 * np.pi + theta))
    level = b / d
    Q_M = np.where(np.abs(rise) < 1, level, np.where(over, above, below))
    return np.where(reach < EXTENT, settled, -20 * np.log10(np.abs(Q_M)))
