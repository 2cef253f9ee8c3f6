"""What a run measures: subflows and connections while it goes on, the run and its phases, what it cost."""

from __future__ import annotations

from tandem.schema.metrics.table import Field, Measurement

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
