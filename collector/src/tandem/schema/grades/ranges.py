"""Between which values a chart of a field usually lies: narrower than what the schema admits, so that what moves can be seen."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.schema.grades.titles import field_of


@dataclass(frozen=True, slots=True)
class Range:
    """In the field's unit; None where a chart should follow the values. Values outside are shown, too: soft limits."""

    low: float | None
    high: float | None


_RSRP, _RSRQ, _SINR = Range(-125, -70), Range(-20, -3), Range(-10, 30)

USUAL: dict[str, Range] = {
    "radio.rsrp_dbm": _RSRP,
    "radio.rsrq_db": _RSRQ,
    "radio.sinr_db": _SINR,
    "radio.nr_rsrp_dbm": _RSRP,
    "radio.nr_rsrq_db": _RSRQ,
    "radio.nr_sinr_db": _SINR,
    "radio.rssi_dbm": Range(-110, -50),
    "radio.rscp_dbm": Range(-120, -60),
    "radio.ecno_db": Range(-24, 0),
    "health.processor_temperature_degc": Range(20, 90),
    "temperature.temperature_degc": Range(20, 90),
    "server_health.cpu_percent": Range(0, 100),
    "aggregation.benefit": Range(-1, 1),
    "aggregation.tdi": Range(0, 1.1),
    "event.change_db": Range(-30, 30),
    "position.track_deg": Range(0, 360),
    "clock.system_error_ms": Range(None, None),
    "clock.last_offset_ms": Range(None, None),
}


def usual(measurement: str, field: str) -> Range:
    """The usual range of ``field`` of ``measurement``; from 0 upwards where it cannot be less, else open. KeyError when the schema has
    no such field."""
    known = USUAL.get(f"{measurement}.{field}")
    if known is not None:
        return known
    return Range(0, None) if field_of(measurement, field).minimum == 0 else Range(None, None)
