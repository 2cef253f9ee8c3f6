"""What a field is called where people read it: derived from its name, with the field's own abbreviations, or said here."""

from __future__ import annotations

from tandem.schema.metrics import MEASUREMENTS, SERVER_MEASUREMENTS, Field, Measurement

SUFFIXES = (
    "_bit_per_s",
    "_dbm",
    "_db",
    "_ns",
    "_ms",
    "_mhz",
    "_degc",
    "_percent",
    "_deg",
    "_m_per_s",
    "_ppm",
    "_m",
    "_s",
)
"""Name endings that say the unit, which the axis says already. ``_bytes`` stays: it is the noun, too."""

WORDS = {
    "rsrp": "RSRP", "rsrq": "RSRQ", "sinr": "SINR", "rssi": "RSSI", "rtt": "RTT", "cpu": "CPU", "rss": "resident", "plmn": "PLMN",
    "tac": "TAC", "eci": "ECI", "enb": "eNodeB", "pci": "PCI", "earfcn": "EARFCN", "id": "identity", "rcv": "receiver's",
    "retrans": "retransmitted", "retransmits": "retransmitted", "cwnd": "congestion window", "ooo": "out-of-order",
    "notsent": "not yet sent", "seq": "number in the spool", "acked": "acknowledged", "ok": "succeeded", "sim": "SIM",
    "eol": "end of life", "utc": "UTC",
}  # fmt: skip
"""Words of field names that are abbreviations, as the field writes them."""


def measurement_of(name: str) -> Measurement:
    """A probe's or the server's measurement; KeyError when there is none."""
    return MEASUREMENTS.get(name) or SERVER_MEASUREMENTS[name]


def field_of(measurement: str, field: str) -> Field:
    """A field of it; KeyError when there is none."""
    return measurement_of(measurement).field(field)


def title(measurement: str, field: str) -> str:
    """What ``field`` of ``measurement`` is called; KeyError when the schema has none."""
    return title_of(field_of(measurement, field))


def title_of(field: Field) -> str:
    """The name of ``field`` in words, without its unit: ``rtt_min_ms`` → ``RTT min``."""
    name = next(
        (field.name.removesuffix(end) for end in SUFFIXES if field.unit and field.name.endswith(end)), field.name
    )
    words = " ".join(WORDS.get(word, word) for word in name.split("_"))
    return words if words.startswith("eNodeB") else words[:1].upper() + words[1:]
