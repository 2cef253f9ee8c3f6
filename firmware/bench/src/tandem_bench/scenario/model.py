"""What a scenario file says, checked: plain values, no behaviour. Defaults and ranges are in ``file.py``."""

from __future__ import annotations

from dataclasses import dataclass

TICK_S = 0.1
"""Everything is computed and written ten times a second."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One part of the route. ``share`` of the duration; ``loss_db``: wall or vehicle between street and antenna."""

    name: str
    activity: str
    share: float
    speed_m_s: float
    acceleration_m_s2: float
    heading_deg: float | None
    radius_m: float
    stop_every_s: float
    stop_s: float
    loss_db: float


@dataclass(frozen=True, slots=True)
class RadioModel:
    """Propagation and measurement; all in dB, metres and hertz, see the scenario files for the meaning of each."""

    path_loss: str
    shadowing_db: float
    shadowing_m: float
    site_correlation: float
    street_db: float
    street_m: float
    street_correlation: float
    operator_correlation: float
    residual_still_db: float
    residual_moving_db: float
    filter_k: float
    report_s: float
    noise_figure_db: float


@dataclass(frozen=True, slots=True)
class HandoverModel:
    """Event A3, interruption, radio link failure."""

    offset_db: float
    hysteresis_db: float
    time_to_trigger_ms: float
    interruption_ms: float
    interruption_spread: float
    long_share: float
    long_share_at_speed: float
    long_interruption_ms: float
    drop_queue_share: float
    failure_sinr_db: float
    failure_s: float
    reestablishment_s: float


@dataclass(frozen=True, slots=True)
class Carrier:
    """A downlink channel. ``share`` of the generated sites that use it."""

    earfcn: int
    bandwidth_mhz: float
    share: float


@dataclass(frozen=True, slots=True)
class SitePlan:
    """A site written in the file. ``start_shadowing_db`` and ``load`` None: drawn."""

    x_m: float
    y_m: float
    azimuths_deg: tuple[float, ...]
    earfcn: int
    enb_id: int | None
    start_shadowing_db: float | None
    load: float | None


@dataclass(frozen=True, slots=True)
class Operator:
    """One network: identity, cells, and what its core adds to a path."""

    name: str
    plmn: str
    carriers: tuple[Carrier, ...]
    sites: tuple[SitePlan, ...]
    spacing_m: float
    clear_m: float
    first_enb_id: int
    first_tac: int
    tac_m: float
    power_dbm: float
    load: float
    load_spread: float
    load_variation: float
    start_down_mbit_s: tuple[float, float] | None
    cap_down_mbit_s: float
    cap_up_mbit_s: float
    rtt_ms: float
    rtt_variation_ms: float
    buffer_s: float
    loss: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole scenario with its two parameters, ready to be played."""

    name: str
    description: str
    duration_s: float
    seed: int
    phases: tuple[Phase, ...]
    radio: RadioModel
    handover: HandoverModel
    operators: tuple[Operator, ...]
