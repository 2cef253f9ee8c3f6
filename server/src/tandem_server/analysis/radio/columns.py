"""The columns of ``radio_packets`` and its CSV (server/spec/radio-packets.md)."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from typing import Any

from tandem_server.analysis.radio.shapes import Joined

TABLE = "radio_packets"
COLUMNS = (
    ("probe", "str", "", "whose event and run it is"),
    ("t_s", "float", "s", "of the event, since the campaign’s start"),
    ("path", "str", "", "whose modem had it"),
    ("kind", "str", "", "signal_drop or handover"),
    ("size_db", "float", "dB", "of a drop, above 0; absent of a handover"),
    ("both_modems", "bool", "", "another modem had an event at most a second from it"),
    ("other_event_s", "float", "s", "how far the nearest event of another modem is"),
    ("run", "str", "", "id"),
    ("run_kind", "str", "", "mptcp, tcp or any, as its manifest says"),
    ("file", "str", "", "the capture’s name"),
    ("subflow", "int", "", "that ran over the path, its number in the capture"),
    ("gap_s", "float", "s", "events nearer than this to another one of their modem are left out"),
    ("factor", "float", "1", "recovered is what is back within this factor of the level before"),
    ("t_r_s", "float", "s", "from the event until the RTT is back; 0 when it never left"),
    ("why", "str", "", "why there is no t_r_s; empty where there is one"),
    ("silent_s", "float", "s", "how much of t_r_s, or of what was seen, the subflow had no RTT sample"),
    ("rtt_method", "str", "", "ack or timestamp"),
    ("handshake_rtt_ms", "float", "ms", "of the subflow"),
    ("rtt_before_ms", "float", "ms", "median of the five seconds before"),
    ("rtt_peak_ms", "float", "ms", "the greatest sample until it was back, or as far as it was seen"),
    ("rtt_peak_normalised", "float", "1", "that over the handshake’s"),
    ("before_s", "float", "s", "how much of the five seconds before counts"),
    ("during_s", "float", "s", "how long the effect was looked at"),
    ("goodput_before_bit_per_s", "float", "bit/s", "of the subflow, before"),
    ("goodput_during_bit_per_s", "float", "bit/s", "of the subflow, from the event on"),
    ("goodput_loss", "float", "1", "1 − during / before"),
    ("connection_before_bit_per_s", "float", "bit/s", "of all subflows of the connection"),
    ("connection_during_bit_per_s", "float", "bit/s", "of all subflows of the connection"),
    ("connection_loss", "float", "1", "1 − during / before"),
    ("share_before", "float", "1", "the subflow’s of the connection’s goodput"),
    ("share_during", "float", "1", "the subflow’s of the connection’s goodput"),
    ("share_change", "float", "1", "during − before"),
    ("other_path", "str", "", "of the other subflow: that on another path that carried most before; empty without one"),
    ("other_before_bit_per_s", "float", "bit/s", "the other subflow’s goodput before"),
    ("other_during_bit_per_s", "float", "bit/s", "the other subflow’s goodput from the event on"),
    ("other_rtt_before_ms", "float", "ms", "median of the other subflow’s RTT before"),
    ("other_rtt_during_ms", "float", "ms", "median of the other subflow’s RTT from the event on"),
    ("other_rtt_peak_ms", "float", "ms", "the greatest sample of the other subflow from the event on"),
)
"""Name, kind, unit, meaning."""


def records(joined: Joined) -> Iterator[dict[str, Any]]:
    """The rows, absent values None."""
    columns = [(name, kind, joined.rows[name]) for name, kind, *_ in COLUMNS] if joined.rows else []
    for n in range(len(joined)):
        yield {name: _value(kind, values[n]) for name, kind, values in columns}


def as_csv(joined: Joined) -> str:
    """With a header; numbers with a point, an absent value empty, yes and no as 1 and 0."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [name for name, *_ in COLUMNS], lineterminator="\n")
    writer.writeheader()
    for row in records(joined):
        writer.writerow({key: int(value) if isinstance(value, bool) else value for key, value in row.items()})
    return out.getvalue()


def plain(joined: Joined) -> dict[str, list[Any]]:
    """The columns as lists, absent values None."""
    rows = list(records(joined))
    return {name: [row[name] for row in rows] for name, *_ in COLUMNS}


def _value(kind: str, value: Any) -> Any:  # noqa: ANN401  (what the column holds)
    if value is None:
        return None
    if kind == "float":
        return None if math.isnan(value) else float(value)
    return {"str": str, "int": int, "bool": bool}[kind](value)
