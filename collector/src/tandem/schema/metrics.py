"""Every quantity that the probe records: name, type, unit, range and source, once.

Line protocol, the gateway's checks, panel units and the documentation follow from this table. To add a metric, add one ``Field``; a new
measurement goes into ``MEASUREMENTS`` too. Names end in their unit; an absent quantity is left out of a record, never written as 0, -1 or
99. What the server records itself is in ``tandem_server.schema``.

2026-11-21: ``run_usage``, ``phase``, ``experiment`` of ``run``; ``clock``, ``utc_error_ms``; ``health`` of the machine, ``temperature``,
``card``, ``software``, ``modem_health``, ``sim_usage``; events ``undervoltage``, ``throttled``, ``disk_low``, ``plan_over``, ``card_worn``
(each ``begins`` and ``ends``, by ``state``) and ``capture_salvaged``; ``spool``.
2026-11-22: ``campaign`` of ``run``; ``run_begun``; ``dash_segment``, ``dash_playback``, ``dash``; ``aggregation``, ``verdict``;
``campaign``, ``campaign_data``, ``campaign_step``; ``spool_limit_bytes`` and ``undervoltage_seen`` of ``health``; ``state_code`` of
``modem_health``.
2026-11-24: ``day_limit_bytes`` of ``sim_usage``; ``sickness`` of ``modem_health`` is ``stale`` no more.
2026-11-26: ``round_trip``; the event ``capture_missing``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["int", "float", "str", "bool"]


@dataclass(frozen=True)
class Field:
    """One field of a measurement: ``unit`` as SI or the field's term ("" for counts), range inclusive, and its source."""

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
        for field in (*COMMON_FIELDS, *self.fields):
            if field.name == name:
                return field
        raise KeyError(name)


COMMON_TAGS = ("probe", "boot")
"""On every record: the probe's name (forced by the gateway) and the boot id (UUID) in which it was made."""

COMMON_FIELDS = (
    Field("seq", "int", "", "number in this spool, from 1 without gaps: a gap in the database is a loss", 1),
    Field("monotonic_ns", "int", "ns", "CLOCK_MONOTONIC when the quantity was read", 0),
    Field("utc_error_ms", "float", "ms", "how far off its time may be, above 100 ms; else see the clock records", 0),
)


RADIO_STATES = (
    "connected", "idle", "searching", "limited", "no_service", "unknown", "no_answer", "port_lost",
)  # fmt: skip
"""``state`` of a radio record: RRC connected / registered and idle / searching / limited service / none / not known of this
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
        Field("stale", "bool", "", "true when an identical answer repeats for longer than the modem ever did before"),
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

ROUND_TRIP_OUTCOMES = ("answered", "late", "lost", "down", "paused", "budget", "unserved")
"""What became of one question. Asked: ``answered`` within 2 s; ``late``: between 2 and 10 s, with its time; ``lost``: not within 10 s.
``down``: it could not be sent, the path was not up. Not measured, which says nothing of the path: ``paused`` for a run that wants quiet;
``budget``: the SIM has nothing left for today or of its plan; ``unserved``: the server had no reflector, or no open session, for it."""

ROUND_TRIP_MEASURED = ("answered", "late", "lost", "down")
"""A record of each instant; of the others one where they begin, and one a minute while they last."""

ROUND_TRIP = Measurement(
    "round_trip",
    "one UDP question to the server's reflector over one path; its time is the instant, the same on all paths",
    ("path", "operator"),
    (
        Field("outcome", "str", "", "one of ROUND_TRIP_OUTCOMES"),
        Field("sequence", "int", "", "number of the instant, the same on all paths: CLOCK_MONOTONIC by the period", 0),
        Field("unanswered", "int", "", "1: lost or down, 0: answered or late: a mean is a share; else absent", 0, 1),
        Field("rtt_ms", "float", "ms", "sent to the kernel's stamp of the answer, less the server's own time", 0),
        Field("sent_after_ms", "float", "ms", "from the instant to the sending; present above 100 ms", 0),
        Field("beside_run", "bool", "", "a run was under way at the instant: its load is in the time"),
        Field("duplicates", "int", "", "further answers to answered questions since the record before, where any", 1),
        Field("too_late", "int", "", "answers to lost questions since the record before, where any", 1),
    ),
)

EVENT_KINDS = (
    "mobility_start", "mobility_stop", "signal_drop", "handover", "service_lost", "service_back", "modem_lost", "modem_back",
    "path_up", "path_down", "endpoint_restored", "subflow_restored", "path_state", "recovery_step", "recovery_gave_up", "recovered",
    "sim_mismatch", "position_fix", "position_lost", "capture_budget", "spool_dropped", "record_rejected",
    "trace_received", "trace_damaged", "trace_missing", "trace_refused",
    "clock_step", "collector_start", "collector_stop",
    "undervoltage", "throttled", "disk_low", "plan_over", "card_worn", "capture_salvaged", "capture_missing", "steering",
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
        Field("handover_kind", "str", "", "enb: another eNodeB (the paper's BSID); sector: another cell of it"),
        Field("detector", "str", "", "which rule judged mobility: published or fused"),
        Field("speed_class", "str", "", "of the movement so far: low (on foot) or high; absent without good fixes"),
        Field("speed_class_by", "str", "", "what judged it: speed (the receiver's)"),
        Field("step", "str", "", "which step of the recovery ladder: at, session, cfun, reboot, usb, power"),
        Field("state", "str", "", "see below"),
        Field("policy", "str", "", "of steering: off, drop, handover or learned"),
        Field("action", "str", "", "of steering, see below"),
        Field("cause", "str", "", "of steering: the event, or what else decided"),
        Field("predicted_s", "float", "s", "of steering: how long the path is expected to need", 0),
        Field("took_ms", "float", "ms", "how long what it reports lasted", 0),
        Field("detail", "str", "", "one line for people"),
    ),
)
"""``state``: of a path, with ``path_state``: up, down, no_address, ipv6_only_unusable, colliding or no_route; of the radio, with
``service_lost``: searching, limited or no_service; of the probe's health (undervoltage, throttled, disk_low, plan_over, card_worn): begins
or ends. ``action``: backup, extended, restore, declined; of an order confirmed, toggled (given again), unconfirmed, refused."""

_TCP = (
    Field("goodput_bit_per_s", "float", "bit/s", "bytes received (probe) or acknowledged (server) in the interval", 0),
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

_OF_THE_RUN = ("run", "kind", "path", "pair", "pairing", "experiment", "campaign")
"""``campaign``: the name of the campaign that the run belongs to, absent outside of one."""

RUN_BEGUN = Measurement(
    "run_begun",
    "one run when it began, whether or not it will end",
    _OF_THE_RUN,
    (
        Field("number", "int", "", "of its pair, from 1, in the order of starting", 1),
        Field("of", "int", "", "how many runs the pair has", 1),
        Field("paths", "str", "", "names of all paths that it may use, the primary first, by commas"),
        Field("trigger", "str", "", "what began it: mobility_start, request or campaign"),
        Field("seconds", "float", "s", "how long a timed download is meant to last", 0),
        Field("bytes", "int", "B", "how much a download of a size is meant to move", 0),
        Field("step", "str", "", "of the campaign"),
        Field("step_number", "int", "", "which run of the step, from 0", 0),
        Field("repetition", "int", "", "of the step's arms, from 0", 0),
        Field("arm", "int", "", "of the step, from 0", 0),
        Field("attempt", "int", "", "at this run of the step, from 1", 1),
        Field("label", "str", "", "given by hand"),
    ),
)

RUN = Measurement(
    "run",
    "one run when it ended; the manifest holds the rest",
    _OF_THE_RUN,
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

PLAYBACK_STATES = ("starting", "playing", "stalled", "ended")
"""``state`` of a dash_playback record: nothing shown yet / the picture runs / it stands still, the buffer is empty / the end."""

_OF_THE_PLAY = ("run", "kind", "path", "operator")
"""``kind``: mptcp or tcp, the arm of the play; ``path``: of Multipath TCP the primary one, and its operator."""

DASH_SEGMENT = Measurement(
    "dash_segment",
    "one segment of a play of DASH, when its last byte came",
    _OF_THE_PLAY,
    (
        Field("number", "int", "", "from 1, in the order in which they came", 1),
        Field("media_s", "float", "s", "where in the video it begins", 0),
        Field("segment_s", "float", "s", "how long it is", 0),
        Field("representation", "str", "", "the manifest's id of it"),
        Field("bitrate_bit_per_s", "float", "bit/s", "of the representation, by the manifest", 0),
        Field("height", "int", "", "lines of the picture, by the manifest", 0),
        Field("bytes", "int", "B", "payload", 0),
        Field("first_byte_ms", "float", "ms", "from the request to the first byte", 0),
        Field("duration_ms", "float", "ms", "from the request to the last byte", 0),
        Field("goodput_bit_per_s", "float", "bit/s", "bytes · 8 / duration", 0),
        Field("buffer_before_ms", "float", "ms", "video in the buffer at the request", 0),
        Field("buffer_level_ms", "float", "ms", "video in the buffer with this segment in it", 0),
        Field("stall_ms", "float", "ms", "how long playback stood still meanwhile", 0),
        Field("primary_share", "float", "", "of the bytes that TCP received meanwhile, on the primary path", 0, 1),
    ),
)

DASH_PLAYBACK = Measurement(
    "dash_playback",
    "a play of DASH as its watcher has it, once a second while it goes on, when its state changes and at its end",
    _OF_THE_PLAY,
    (
        Field("state", "str", "", "one of PLAYBACK_STATES"),
        Field("buffer_level_ms", "float", "ms", "video that has come and is not yet shown", 0),
        Field("played_s", "float", "s", "video shown so far", 0),
        Field("stalled_s", "float", "s", "all stalls so far, one that goes on until now", 0),
    ),
)

DASH = Measurement(
    "dash",
    "one play of DASH when it ended, whole or not",
    (*_OF_THE_PLAY, "rule", "campaign"),
    (
        Field("whole", "bool", "", "it was played to its end"),
        Field("segments", "int", "", "that came", 0),
        Field("bytes", "int", "B", "payload of the segments", 0),
        Field("goodput_bit_per_s", "float", "bit/s", "their bytes · 8 / the times from request to last byte", 0),
        Field("startup_delay_ms", "float", "ms", "from the manifest's request to the picture; absent: never began", 0),
        Field("media_s", "float", "s", "video that came", 0),
        Field("play_s", "float", "s", "from the manifest's request to the end", 0),
        Field("stalls", "int", "", "how often playback stood still after its beginning", 0),
        Field("stalled_s", "float", "s", "for how long in all", 0),
        Field("stall_ratio", "float", "", "stalled_s as a part of the time since playback began", 0, 1),
        Field("switches", "int", "", "changes of representation from one segment to the next", 0),
        Field("bitrate_bit_per_s", "float", "bit/s", "mean over the video of the bitrates by the manifest", 0),
        Field("media_bit_per_s", "float", "bit/s", "bits of the segments by second of video", 0),
        Field("qoe_bit_per_s", "float", "bit/s", "linear score of Yin et al., balanced weights; may be below 0"),
        Field("primary_share", "float", "", "of the bytes that TCP received, on the primary path", 0, 1),
        Field("connect_ms", "float", "ms", "establishment of the first connection", 0),
        Field("first_byte_ms", "float", "ms", "of the first segment, from its request on", 0),
        Field("reconnects", "int", "", "connections after the first", 0),
        Field("fallback", "bool", "", "Multipath TCP that fell back to TCP, in any of the connections"),
        Field("content", "str", "", "the presentation and its manifest on the server"),
    ),
)
"""``rule``: who chose the representations: fixed, throughput, bba, bola-e, dynamic, or VLC's logic as vlc-NAME."""

VERDICTS = ("native", "fallback", "stripped", "reset", "dropped", "unreachable", "untested")
"""Multipath TCP works / is lost with the first payload / its options go missing on the way / its subflow is reset / its segments get no
answer / not even TCP goes through / could not be looked at. ``verdict_code`` is the place in this list, from 0."""

VERDICT_ROLES = ("primary", "join")
"""``role`` of a verdict: a connection begins on the path / a subflow joins over it."""

AGGREGATION = Measurement(
    "aggregation",
    "what Multipath TCP gave in one round of a bandwidth or delay experiment, one record for each path as the primary one",
    ("run", "experiment", "mode", "path", "operator", "campaign"),
    (
        Field("round", "int", "", "of the run, from 1", 1),
        Field("goodput_bit_per_s", "float", "bit/s", "bandwidth: by Multipath TCP", 0),
        Field("c_max_bit_per_s", "float", "bit/s", "bandwidth: TCP over the best path alone", 0),
        Field("c_sum_bit_per_s", "float", "bit/s", "bandwidth: sum of TCP over each path alone", 0),
        Field("c_total_bit_per_s", "float", "bit/s", "bandwidth: TCP over all paths at once", 0),
        Field("tdi", "float", "", "bandwidth: disjointivity, c_total / c_sum; measured it may pass 1 a little", 0),
        Field("bandwidth_ratio", "float", "", "bandwidth: the best path by the worst, each alone", 1),
        Field("bytes", "int", "B", "delay: size of each transfer", 0),
        Field("delay_ms", "float", "ms", "delay: of the transfer by Multipath TCP", 0),
        Field("fastest_ms", "float", "ms", "delay: by TCP over the fastest path alone", 0),
        Field("ideal_ms", "float", "ms", "delay: all paths at once, perfectly scheduled: 1 / Σ(1/D_i)", 0),
        Field("benefit", "float", "", "aggregation benefit as the paper has it: 0 the best path alone, 1 ideal", -1, 1),
        Field("benefit_raw", "float", "", "the same, not limited to -1 to 1"),
        Field("most_loaded_share", "float", "", "of all its bytes, on the path with most of them", 0, 1),
        Field("fallback", "bool", "", "it fell back to TCP"),
    ),
)
"""Cordero, §3.1. ``mode``: oneway (upload) or reqresp (download); ``path``: the primary one, and its operator; without one where the round
came to no Multipath TCP."""

VERDICT = Measurement(
    "verdict",
    "whether a path lets Multipath TCP through, in each role, as the verdict experiment judges",
    ("run", "path", "operator", "role", "verdict", "campaign"),
    (
        Field("verdict_code", "int", "", "place of the verdict in VERDICTS", 0, len(VERDICTS) - 1),
        Field("where", "str", "", "where it was lost, as far as is known: syn, syn-ack, syn or syn-ack, data"),
        Field("over", "str", "", "of a join, the path on which the connection began"),
        Field("detail", "str", "", "one line for people"),
    ),
)

CAMPAIGN_STATES = ("running", "waiting", "done", "stopped", "paused", "withdrawn")
"""A run is under way / none is / all are made / a person ended it / another goes before it / the server took it back. ``state_code`` is
the place in this list, from 0."""

CAMPAIGN = Measurement(
    "campaign",
    "how far a campaign is, once a minute while it is under way and when something of it changed",
    ("campaign",),
    (
        Field("state", "str", "", "one of CAMPAIGN_STATES"),
        Field("state_code", "int", "", "its place in that list", 0, len(CAMPAIGN_STATES) - 1),
        Field("made", "int", "", "runs made: each of a step's counts once, however often it was tried", 0),
        Field("of", "int", "", "runs that its steps have in all", 0),
        Field("ok", "int", "", "attempts that measured whole", 0),
        Field("failed", "int", "", "attempts whose failure was recorded", 0),
        Field("cut_off", "int", "", "attempts that did not come to an end (power)", 0),
        Field("step", "str", "", "of the run under way"),
        Field("said", "str", "", "what it does, or why it waits, for people"),
        Field("from_server", "bool", "", "pushed by the server, not begun by a person"),
        Field("age_s", "float", "s", "since it was begun on this probe", 0),
    ),
)

CAMPAIGN_DATA = Measurement(
    "campaign_data",
    "what a campaign's runs took of one path and may still take, with each campaign record",
    ("campaign", "role", "path", "operator"),
    (
        Field("used_bytes", "int", "B", "in this period of the budget, both ways", 0),
        Field("used_today_bytes", "int", "B", "of these, this day (UTC)", 0),
        Field("budget_bytes", "int", "B", "[budget] of the campaign for the period", 0),
        Field("day_budget_bytes", "int", "B", "and for a day", 0),
        Field("left_bytes", "int", "B", "of the period's budget", 0),
        Field("expected_bytes", "int", "B", "used when the period ends, at the pace so far", 0),
        Field("reset_in_s", "float", "s", "until the period ends", 0),
    ),
)
"""``role``: the campaign's word for the path, ``path`` what it is on this probe."""

CAMPAIGN_STEP = Measurement(
    "campaign_step",
    "how far one step of a campaign is, with each campaign record",
    ("campaign", "step"),
    (
        Field("made", "int", "", "runs made: each of the step's counts once, however often it was tried", 0),
        Field("of", "int", "", "runs that the step has in all", 0),
    ),
)

MODEM_STATES = ("usable", "recovering", "lost", "unknown")
"""``state`` of a modem_health record: it answers / the recovery ladder is at work / it has been silent or has repeated itself for
5 seconds or more, and nobody is at work / not polled yet."""

HEALTH = Measurement(
    "health",
    "the collector's own state and its machine's, every ten seconds; of the machine most fields once a minute",
    (),
    (
        Field("cpu_seconds", "float", "s", "user and system time of the collector and its children so far", 0),
        Field("rss_bytes", "int", "B", "resident memory of the collector", 0),
        Field("spool_records", "int", "", "records not yet acknowledged", 0),
        Field("spool_bytes", "int", "B", "size of the spool on disk", 0),
        Field("spool_oldest_s", "float", "s", "age of the oldest record not yet acknowledged", 0),
        Field("spool_limit_bytes", "int", "B", "[spool] limit_bytes: above it the oldest records are dropped", 1),
        Field("captures_bytes", "int", "B", "captures on disk", 0),
        Field("traces_waiting", "int", "", "files of runs that the server has not", 0),
        Field("traces_waiting_bytes", "int", "B", "files of runs that the server has not", 0),
        Field("mobile", "bool", "", "mobility state"),
        Field("speed_class", "str", "", "of the movement so far: low (on foot) or high; absent without good fixes"),
        Field("clock_synchronised", "bool", "", "records get a time now"),
        Field("disk_free_bytes", "int", "B", "statvfs f_bavail of the state folder's file system", 0),
        Field("disk_used_bytes", "int", "B", "statvfs f_blocks - f_bfree of it", 0),
        Field("disk_free_inodes", "int", "", "statvfs f_favail; absent where the file system has no fixed number", 0),
        Field("disk_used_inodes", "int", "", "statvfs f_files - f_ffree; likewise", 0),
        Field("memory_available_bytes", "int", "B", "MemAvailable of /proc/meminfo", 0),
        Field("load_1min", "float", "", "of /proc/loadavg: mean of runnable and waiting threads", 0),
        Field("uptime_s", "float", "s", "of the machine: /proc/uptime", 0),
        Field("boot_count", "int", "", "boots of this machine in which a collector ran, this one included", 1),
        Field("processor_temperature_degc", "float", "degC", "the kernel's thermal zone of the processor", -55, 200),
        Field("undervoltage", "bool", "", "supply too low, now or since the record before: bit 0, or rpi_volt's alarm"),
        Field("undervoltage_seen", "int", "", "undervoltage as a number, 1 or 0: what an alarm adds up", 0, 1),
        Field("frequency_capped", "bool", "", "the firmware caps the processor's frequency now: bit 1"),
        Field("throttled", "bool", "", "the firmware slows the processor down now: bit 2"),
        Field("soft_temperature_limit", "bool", "", "the soft temperature limit is reached now: bit 3"),
        Field("undervoltage_since_boot", "bool", "", "bit 16, or seen by this collector; vcgencmd get_throttled"),
        Field("frequency_capped_since_boot", "bool", "", "bit 17, or seen by this collector"),
        Field("throttled_since_boot", "bool", "", "bit 18, or seen by this collector"),
        Field("soft_temperature_limit_since_boot", "bool", "", "bit 19, or seen by this collector"),
    ),
)
"""Bits: of a Raspberry Pi's firmware (its documentation of ``vcgencmd get_throttled``); absent on other machines."""

TEMPERATURE = Measurement(
    "temperature",
    "one sensor of the machine, once a minute",
    ("sensor",),
    (Field("temperature_degc", "float", "degC", "the kernel's thermal zones and hwmon, by name", -55, 200),),
)

CARD = Measurement(
    "card",
    "what the state folder is on, and each SD card and eMMC, once an hour; wear only where the card reports it",
    ("device",),
    (
        Field("kind", "str", "", "sd, emmc, nvme, disk or virtual"),
        Field("name", "str", "", "the product's name: of the CID register, or the model"),
        Field("made", "str", "", "month and year of manufacture, of the CID register"),
        Field("size_bytes", "int", "B", "capacity", 0),
        Field("erase_bytes", "int", "B", "preferred_erase_size: SD allocation unit, eMMC erase group", 0),
        Field("read_bytes", "int", "B", "since the boot, of the kernel's block statistics", 0),
        Field("written_bytes", "int", "B", "since the boot, likewise", 0),
        Field("life_time_a_code", "int", "", "JESD84-B51 DEVICE_LIFE_TIME_EST_TYP_A, read at boot", 0, 255),
        Field("life_time_b_code", "int", "", "DEVICE_LIFE_TIME_EST_TYP_B, likewise", 0, 255),
        Field("life_used_a_percent", "int", "%", "upper end of the tenth of code a; 110: exceeded", 10, 110),
        Field("life_used_b_percent", "int", "%", "of code b", 10, 110),
        Field("pre_eol_code", "int", "", "JESD84-B51 PRE_EOL_INFO: 1 normal, 2 warning (80 % used), 3 urgent", 0, 255),
    ),
)

SOFTWARE = Measurement(
    "software",
    "what runs, at the start and once an hour",
    (),
    (
        Field("tandem", "str", "", "version of the collector"),
        Field("kernel", "str", "", "uname -r"),
        Field("python", "str", "", "version of the interpreter"),
        Field("machine", "str", "", "the board as its device tree names it, else the processor's architecture"),
        Field("system", "str", "", "PRETTY_NAME of /etc/os-release"),
        Field("firmware", "str", "", "a Raspberry Pi's: date of the VideoCore firmware"),
        Field("bootloader", "str", "", "a Raspberry Pi's: version of the boot loader, of its device tree"),
    ),
)

MODEM_HEALTH = Measurement(
    "modem_health",
    "what became of one modem's polls, once a minute",
    ("path", "operator", "driver"),
    (
        Field("state", "str", "", "one of MODEM_STATES"),
        Field("state_code", "int", "", "its place in that list: an alarm compares numbers", 0, len(MODEM_STATES) - 1),
        Field("state_since_s", "float", "s", "how long it has been in that state", 0),
        Field("sickness", "str", "", "why it is not usable: silent or refusing"),
        Field("polls_ok", "int", "", "that were answered since the record before", 0),
        Field("polls_failed", "int", "", "that were not", 0),
        Field("period_s", "float", "s", "since the record before, or since the collector's start", 0),
        Field("recovery_steps", "int", "", "of the recovery ladder since the collector's start", 0),
        Field("recovery_step", "str", "", "the last of them"),
        Field("recoveries", "int", "", "how often it came back since the collector's start", 0),
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
        Field("upload_bytes", "int", "B", "of these, TCP payload to and from the gateway: files of runs, TLS", 0),
    ),
)

SIM_USAGE = Measurement(
    "sim_usage",
    "what a SIM carried in this period of its plan, and what it will have at the end, once a minute while the time is known",
    ("path", "operator"),
    (
        Field("used_bytes", "int", "B", "both ways since the plan's reset day (default: the 1st), 00:00 UTC", 0),
        Field("used_today_bytes", "int", "B", "of these, this day (UTC)", 0),
        Field("day_limit_bytes", "int", "B", "above it the collector begins no run by itself this day (UTC)", 0),
        Field("whole_period", "bool", "", "false: the account begins after the reset, used_bytes is a part"),
        Field("plan_bytes", "int", "B", "[path.plan] bytes", 1),
        Field("left_bytes", "int", "B", "of the plan", 0),
        Field("daily_bytes", "float", "B", "a day, as expected from the days before (app/daemon/accounts.py)", 0),
        Field("basis_days", "int", "", "how many whole days daily_bytes is from", 0, 28),
        Field("expected_bytes", "int", "B", "used at the next reset, as forecast", 0),
        Field("reset_in_s", "float", "s", "until the next reset", 0),
        Field("used_up_in_s", "float", "s", "until the plan is used up, as forecast; absent when it lasts", 0),
    ),
)

SPOOL = Measurement(
    "spool",
    "what became of every record of this spool so far, when the collector starts and every ten seconds",
    (),
    (
        Field("spool", "str", "", "the spool's id, made with it: a new card has a new one, and counts from 1 again"),
        Field("first", "int", "", "the first number that this id holds for", 1),
        Field("made", "int", "", "the last number given out; none was left out", 0),
        Field("sent", "int", "", "acknowledged by the gateway, since the spool was made", 0),
        Field("rejected", "int", "", "refused by the gateway or no line at all: in quarantine", 0),
        Field("dropped", "int", "", "given up for want of room, or lost by damage", 0),
        Field("settled", "int", "", "every number up to this one is sent, rejected or dropped", 0),
        Field("oldest_s", "float", "s", "age of the oldest record not yet settled; absent when none waits", 0),
        Field("manifests", "int", "", "manifests of runs not yet acknowledged", 0),
    ),
)

CLOCK = Measurement(
    "clock",
    "what the times of this boot's records rest on, once a minute and when it changed",
    (),
    (
        Field("synchronised", "bool", "", "records of this boot have a time"),
        Field("vouched", "bool", "", "a source has vouched for it in the last five minutes"),
        Field("source", "str", "", "who vouched last: chrony, kernel, gpsd, or system (the clock as it stands)"),
        Field("offset_ns", "int", "ns", "what is added to CLOCK_MONOTONIC to have UTC, for records made now"),
        Field("error_ms", "float", "ms", "how far off the time of records made now may be; absent with system", 0),
        Field("age_s", "float", "s", "since a source vouched last", 0),
        Field("system_error_ms", "float", "ms", "the system's clock less the records' time"),
        Field("steps", "int", "", "times that the system's clock was set since the collector started", 0),
        Field("reference", "str", "", "chrony's reference id (hexadecimal), or gpsd's: sentences or pulse"),
        Field("stratum", "int", "", "chrony's", 0, 16),
        Field("root_distance_ms", "float", "ms", "chrony's dispersion and half its delay; the kernel's maxerror", 0),
        Field("last_offset_ms", "float", "ms", "chrony's last offset; what the kernel's loop has still to add"),
        Field("skew_ppm", "float", "ppm", "chrony's error bound of the frequency", 0),
    ),
)

MEASUREMENTS: dict[str, Measurement] = {
    m.name: m
    for m in (
        *(RADIO, REGISTRATION, EVENT, POSITION, ROUND_TRIP),
        *(SUBFLOW, CONNECTION, RUN_BEGUN, RUN, RUN_USAGE, PHASE),
        *(DASH_SEGMENT, DASH_PLAYBACK, DASH, AGGREGATION, VERDICT),
        *(CAMPAIGN, CAMPAIGN_STEP, CAMPAIGN_DATA),
        *(HEALTH, TEMPERATURE, CARD, SOFTWARE, MODEM_HEALTH, USAGE, SIM_USAGE, SPOOL, CLOCK),
    )
}

EXPERIMENT_MEASUREMENTS = frozenset(m.name for m in (DASH_SEGMENT, DASH_PLAYBACK, DASH, AGGREGATION, VERDICT))
"""What an experiment's process may say as a record of its own (``tandem.experiment.base.record``). Tags of the run (``run``,
``experiment``, ``campaign``, ``operator``) are the collector's to add."""
