"""How a field of the schema is shown: title, Grafana unit, limits of its axis. All of it follows from the table of metrics."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.schema.metrics import MEASUREMENTS, Field

GRAFANA_UNITS = {
    "dBm": "dBm",
    "dB": "dB",
    "ns": "ns",
    "ms": "ms",
    "s": "s",
    "bit/s": "bps",  # prefixes of 1000, as rates of links are given; binbps would count in 1024
    "B": "decbytes",  # likewise: data plans are sold in powers of ten
    "MHz": "suffix:MHz",  # Grafana's own hertz would count from 1 Hz
    "deg": "degree",
    "m": "lengthm",
    "m/s": "velocityms",
}
"""The schema's unit → Grafana's unit id (``packages/grafana-data/src/valueFormats/categories.ts``)."""

PLAIN = {"int": "none", "float": "none", "str": "string", "bool": "bool"}
"""Unit id of a field without a unit, by its type. ``none`` and not ``short``: a cell identity must not become "26.3 Mil"."""

SUFFIXES = ("_bit_per_s", "_dbm", "_db", "_ns", "_ms", "_mhz", "_deg", "_m_per_s", "_m", "_s")
"""Name endings that say the unit, which the axis says already. ``_bytes`` stays: it is the noun, too."""

WORDS = {
    "rsrp": "RSRP", "rsrq": "RSRQ", "sinr": "SINR", "rssi": "RSSI", "rtt": "RTT", "cpu": "CPU", "rss": "resident", "plmn": "PLMN",
    "tac": "TAC", "eci": "ECI", "enb": "eNodeB", "pci": "PCI", "earfcn": "EARFCN", "id": "identity", "rcv": "receiver's",
    "retrans": "retransmitted", "retransmits": "retransmitted", "cwnd": "congestion window", "ooo": "out-of-order",
    "notsent": "not yet sent", "seq": "number in the spool", "acked": "acknowledged", "ok": "succeeded",
}  # fmt: skip
"""Words of field names that are abbreviations, as the field writes them."""


class UnknownUnitError(LookupError):
    """The schema has a unit that this module does not know; the message says where to add it."""


@dataclass(frozen=True)
class Axis:
    """How to show one field. ``unit``: a Grafana unit id. ``minimum``, ``maximum``: in the schema's unit, None where open."""

    title: str
    unit: str
    minimum: float | None
    maximum: float | None


def axis(measurement: str, field: str) -> Axis:
    """How to show ``field`` of ``measurement``; KeyError when the schema has none, UnknownUnitError as above."""
    found = MEASUREMENTS[measurement].field(field)
    return Axis(title(found), unit(found), found.minimum, found.maximum)


def unit(field: Field) -> str:
    """Grafana's id for the unit of ``field``."""
    if not field.unit:
        return PLAIN[field.kind]
    try:
        return GRAFANA_UNITS[field.unit]
    except KeyError:
        raise UnknownUnitError(
            f"field {field.name!r} has the unit {field.unit!r}, which GRAFANA_UNITS in {__name__} lacks; add Grafana's id for it"
        ) from None


def title(field: Field) -> str:
    """The name of ``field`` in words, without its unit: ``rtt_min_ms`` → ``RTT min``."""
    name = next(
        (field.name.removesuffix(end) for end in SUFFIXES if field.unit and field.name.endswith(end)), field.name
    )
    words = " ".join(WORDS.get(word, word) for word in name.split("_"))
    return words if words.startswith("eNodeB") else words[:1].upper() + words[1:]
