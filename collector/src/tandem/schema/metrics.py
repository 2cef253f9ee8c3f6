"""Every quantity that Tandem records: name, type, unit, range and source, once.

Line protocol, the gateway's checks, panel units and the documentation follow from this table. To add a metric, add one
``Field`` here. Names end in their unit; an absent quantity is left out of a record, never written as 0, -1 or 99.

2026-11-21: ``run_usage``, ``phase``, and the tag ``experiment`` of ``run``, for runs of any experiment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["int", "float", "str", "bool"]


@dataclass(frozen=True)
class Field:
    """One field of a measurement: ``unit`` as SI or the field's term ("" for counts), range inclusive, where it comes from."""

    name: str
    kind: Kind
    unit: str
    source: str
    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True)
class Measurement:
    """One kind of record. ``tags`` are indexed and are part of a record's identity together with its time."""

    name: str
    purpose: str
    tags: tuple[str, ...]
    fields: tuple[Field, ...]

    def field(self, name: str) -> Field:
        """The field called ``name``; KeyError when this measurement has none."""
        for field in (*COMMON_FIELDS, *self.fields):
            if field.name == name:
                return field
        raise KeyError(name)


COMMON_TAGS = ("probe", "boot")
"""On every record: the probe's name (forced by the gateway) and the boot id (UUID) in which it was made."""

COMMON_FIELDS = (
    Field(
        "seq",
        "int",
        "",
        "the probe's count of records in this spool, from 1 without gaps: a gap in the database is a loss",
        1,
    ),
    Field("monotonic_ns", "int", "ns", "CLOCK_MONOTONIC when the quantity was read", 0),
)

RADIO_STATES = (
    "connected", "idle", "searching", "limited", "no_service", "unknown", "no_answer", "port_lost",
)  # fmt: skip
"""``state`` of a radio record: RRC connected / registered and idle / searching / limited service / none / not told by this
modem; ``no_answer``: the modem missed the deadline; ``port_lost``: its port has gone."""

RADIO = Measurement(
    "radio",
    "one poll of one modem, about once a second; a poll that failed is a record too, without quantities",
    ("path", "operator", "driver", "rat"),
    (
        Field("state", "str", "", "one of RADIO_STATES"),
        Field("rsrp_dbm", "float", "dBm", "3GPP TS 36.214 5.1.1; on NR-SA SS-RSRP", -157, -30),
        Field("rsrq_db", "float", "dB", "3GPP TS 36.214 5.1.3", -50, 25),
        Field("sinr_db", "float", "dB", "the modem's own estimate", -40, 60),
        Field("rssi_dbm", "float", "dBm", "3GPP TS 27.007 8.5, or the modem's own", -130, -10),
        Field("rsrp_code", "int", "", "the code as read, where the modem answers in codes", -32768, 32767),
        Field("rsrq_code", "int", "", "as above", -32768, 32767),
        Field("sinr_code", "int", "", "as above", -32768, 32767),
        Field("rssi_code", "int", "", "as above", -32768, 32767),
        Field("plmn", "str", "", "MCC and MNC, 5 or 6 digits"),
        Field("tac", "int", "", "tracking area code", 0, 0xFFFFFF),
        Field("eci", "int", "", "E-UTRAN (28 bit) or, on NR-SA, NR (36 bit) cell identity", 0, 2**36 - 1),
        Field("enb_id", "int", "", "ECI >> 8; not on NR-SA", 0, 2**28 - 1),
        Field("sector_id", "int", "", "ECI & 255; not on NR-SA", 0, 255),
        Field("pci", "int", "", "physical cell identity", 0, 1007),
        Field("earfcn", "int", "", "downlink channel number (LTE) or NR-ARFCN", 0, 3279165),
        Field("band", "int", "", "operating band", 1, 1024),
        Field("bandwidth_mhz", "float", "MHz", "downlink channel bandwidth", 0.1, 400),
        Field("lac", "int", "", "location area code of 2G and 3G", 0, 0xFFFF),
        Field("ci", "int", "", "cell identity of 2G (16 bit) and 3G (28 bit)", 0, 2**28 - 1),
        Field("rscp_dbm", "float", "dBm", "3GPP TS 25.215 5.1.1, of 3G", -140, -10),
        Field("ecno_db", "float", "dB", "3GPP TS 25.215 5.1.5, Ec/N0 of 3G", -60, 10),
        Field("rscp_code", "int", "", "the code as read, where the modem answers in codes", -32768, 32767),
        Field("ecno_code", "int", "", "as above", -32768, 32767),
        Field("nr_rsrp_dbm", "float", "dBm", "SS-RSRP of NR-NSA's secondary cell, 3GPP TS 38.215 5.1.1", -157, -30),
        Field("nr_rsrq_db", "float", "dB", "SS-RSRQ of it, 5.1.3", -50, 25),
        Field("nr_sinr_db", "float", "dB", "SS-SINR of it, 5.1.5", -40, 60),
        Field("nr_rsrp_code", "int", "", "the code as read, where the modem answers in codes", -32768, 32767),
        Field("nr_rsrq_code", "int", "", "as above", -32768, 32767),
        Field("nr_sinr_code", "int", "", "as above", -32768, 32767),
        Field("nr_pci", "int", "", "its physical cell identity", 0, 1007),
        Field("nr_arfcn", "int", "", "its NR-ARFCN", 0, 3279165),
        Field("nr_band", "int", "", "its operating band", 1, 1024),
        Field("poll_duration_ms", "float", "ms", "first byte sent to final result", 0),
        Field("poll_late_ms", "float", "ms", "how long after its due time the poll began", 0),
        Field(
            "stale",
            "bool",
            "",
            "true when an identical answer repeats for longer than the modem ever did before",
        ),
        Field("failure", "str", "", "the error that the poll got instead of an answer, as the family names it"),
    ),
)

REGISTRATION = Measurement(
    "registration",
    "what a modem said unasked of its registration (+CEREG and its like), at the time when it was read, between polls too",
    ("path", "operator", "rat", "domain"),
    (
        Field("registered", "bool", "", "with a network, at home or roaming"),
        Field("state", "str", "", "when not registered, one of RADIO_STATES"),
        Field("tac", "int", "", "tracking area code", 0, 0xFFFFFF),
        Field("eci", "int", "", "as in a radio record", 0, 2**36 - 1),
        Field("lac", "int", "", "location area code of 2G and 3G", 0, 0xFFFF),
        Field("ci", "int", "", "cell identity of 2G and 3G", 0, 2**28 - 1),
    ),
)
"""``domain``: ``cs`` (+CREG), ``ps`` (+CGREG), ``eps`` (+CEREG) or ``5gs`` (+C5GREG)."""

EVENT_KINDS = (
    "mobility_start", "mobility_stop", "signal_drop", "handover", "service_lost", "service_back", "modem_lost", "modem_back",
    "path_up", "path_down", "endpoint_restored", "subflow_restored", "path_state", "recovery_step", "recovery_gave_up", "recovered",
    "sim_mismatch", "position_fix", "position_lost", "capture_budget", "spool_dropped", "record_rejected",
    "clock_step", "collector_start", "collector_stop",
)  # fmt: skip

EVENT = Measurement(
    "event",
    "something noticed, at the time of the record that showed it",
    ("kind", "path", "operator"),
    (
        Field("quantity", "str", "", "which quantity decided: rsrp_dbm, rssi_dbm or, on 3G, rscp_dbm"),
        Field("change_db", "float", "dB", "difference of two successive polls", -120, 120),
        Field("from_eci", "int", "", "serving cell before", 0, 2**36 - 1),
        Field("to_eci", "int", "", "serving cell after", 0, 2**36 - 1),
        Field(
            "handover_kind",
            "str",
            "",
            "enb: another eNodeB (the paper's BSID); sector: another cell of the same eNodeB",
        ),
        Field("detector", "str", "", "which rule judged mobility: published or fused"),
        Field("speed_class", "str", "", "of the movement so far, or that ended: low (on foot) or high"),
        Field("speed_class_by", "str", "", "what judged it: speed (the receiver's) or events (of the radio, a hint)"),
        Field("step", "str", "", "which step of the recovery ladder: at, session, cfun, reboot, usb, power"),
        Field(
            "state",
            "str",
            "",
            "of a path, with path_state: up, down, no_address, ipv6_only_unusable, colliding or no_route; of the radio, "
            "with service_lost: searching, limited or no_service",
        ),
        Field("took_ms", "float", "ms", "how long what the event tells of lasted", 0),
        Field("detail", "str", "", "one line for people"),
    ),
)

POSITION = Measurement(
    "position",
    "where the probe is, once a second while there is a receiver; none inside a home zone or with privacy off",
    ("mode",),
    (
        Field("latitude_deg", "float", "deg", "WGS 84; rounded as the privacy mode says", -90, 90),
        Field("longitude_deg", "float", "deg", "WGS 84; rounded as the privacy mode says", -180, 180),
        Field("altitude_m", "float", "m", "above mean sea level", -1000, 20000),
        Field("speed_m_per_s", "float", "m/s", "over ground", 0, 500),
        Field("track_deg", "float", "deg", "course over ground from true north", 0, 360),
        Field("fix", "str", "", "none, 2d or 3d"),
        Field("horizontal_error_m", "float", "m", "95 % estimate of the receiver", 0, 100000),
        Field("hdop", "float", "", "horizontal dilution of precision", 0, 100),
        Field("satellites_used", "int", "", "in the fix", 0, 200),
        Field("satellites_seen", "int", "", "in view", 0, 200),
        Field("fix_age_ms", "float", "ms", "how old the fix was when it was taken", 0),
    ),
)

_TCP = (
    Field(
        "goodput_bit_per_s",
        "float",
        "bit/s",
        "difference of bytes received (probe) or acknowledged (server) over the interval",
        0,
    ),
    Field("bytes_received", "int", "B", "tcpi_bytes_received of the subflow", 0),
    Field("bytes_sent", "int", "B", "tcpi_bytes_sent", 0),
    Field("bytes_acked", "int", "B", "tcpi_bytes_acked", 0),
    Field("bytes_retrans", "int", "B", "tcpi_bytes_retrans", 0),
    Field("rtt_ms", "float", "ms", "tcpi_rtt; true at the sender of the data only", 0),
    Field("rtt_min_ms", "float", "ms", "tcpi_min_rtt", 0),
    Field("rcv_rtt_ms", "float", "ms", "tcpi_rcv_rtt; the receiver's estimate", 0),
    Field("cwnd_segments", "int", "", "tcpi_snd_cwnd", 0),
    Field("notsent_bytes", "int", "B", "tcpi_notsent_bytes", 0),
    Field("delivery_rate_bit_per_s", "float", "bit/s", "tcpi_delivery_rate", 0),
    Field("retransmits_segments", "int", "", "tcpi_total_retrans", 0),
    Field("rcv_ooo_packets", "int", "", "tcpi_rcv_ooopack", 0),
    Field("backup", "bool", "", "the subflow is a backup path"),
)

SUBFLOW = Measurement(
    "subflow",
    "one subflow (or the one connection of a TCP run), ten times a second, read from the kernel at one end",
    ("run", "path", "operator", "end", "subflow"),
    _TCP,
)

CONNECTION = Measurement(
    "connection",
    "one connection as a whole, ten times a second",
    ("run", "kind", "path", "end"),
    (
        Field("goodput_bit_per_s", "float", "bit/s", "payload the application got over the interval", 0),
        Field("bytes", "int", "B", "payload so far", 0),
        Field("subflows", "int", "", "subflows alive", 0, 64),
        Field("fallback", "bool", "", "the connection fell back to TCP"),
    ),
)

RUN = Measurement(
    "run",
    "one run when it ended; the manifest holds the rest",
    ("run", "kind", "path", "pair", "pairing", "experiment"),
    (
        Field("bytes", "int", "B", "payload received", 0),
        Field("duration_s", "float", "s", "from connect to the last payload byte or, of a timed run, to its end", 0),
        Field("goodput_bit_per_s", "float", "bit/s", "bytes · 8 / duration", 0),
        Field("connect_ms", "float", "ms", "connection establishment", 0),
        Field("first_byte_ms", "float", "ms", "from the request sent to the first payload byte", 0),
        Field("fallback", "bool", "", "an MPTCP run that fell back to TCP"),
        Field("ok", "bool", "", "false when the network failed: that is a result too"),
        Field("failure", "str", "", "why, when not ok"),
    ),
)

RUN_USAGE = Measurement(
    "run_usage",
    "bytes that crossed one path's interface during a run, when it ended",
    ("run", "path", "operator"),
    (
        Field("received_bytes", "int", "B", "the interface's counter: headers too, and others' traffic", 0),
        Field("sent_bytes", "int", "B", "the interface's counter", 0),
        Field("shared", "bool", "", "of all runs of a simultaneous pair together"),
    ),
)

PHASE = Measurement(
    "phase",
    "the start of one phase of a run that has phases",
    ("run", "experiment"),
    (
        Field("name", "str", "", "the experiment's word for it"),
        Field("number", "int", "", "from 1, in the order in which they were done", 1),
        Field("of", "int", "", "how many the run has", 1),
    ),
)

HEALTH = Measurement(
    "health",
    "the collector's own state, every ten seconds",
    (),
    (
        Field("cpu_seconds", "float", "s", "user and system time of the collector and its children so far", 0),
        Field("rss_bytes", "int", "B", "resident memory of the collector", 0),
        Field("spool_records", "int", "", "records not yet acknowledged", 0),
        Field("spool_bytes", "int", "B", "size of the spool on disk", 0),
        Field("spool_oldest_s", "float", "s", "age of the oldest record not yet acknowledged", 0),
        Field("captures_bytes", "int", "B", "captures on disk", 0),
        Field("mobile", "bool", "", "mobility state"),
        Field("speed_class", "str", "", "of the movement so far: low (on foot) or high; absent while not known"),
    ),
)

USAGE = Measurement(
    "usage",
    "bytes that crossed one path's interface since the collector started, every ten seconds",
    ("path", "operator"),
    (
        Field("received_bytes", "int", "B", "the interface's counter", 0),
        Field("sent_bytes", "int", "B", "the interface's counter", 0),
        Field("control_bytes", "int", "B", "of these, TCP payload to and from the gateway: records, manifests, TLS", 0),
    ),
)

MEASUREMENTS: dict[str, Measurement] = {
    m.name: m for m in (RADIO, REGISTRATION, EVENT, POSITION, SUBFLOW, CONNECTION, RUN, RUN_USAGE, PHASE, HEALTH, USAGE)
}
