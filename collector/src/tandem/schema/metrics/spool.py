"""The spool's own account: what the ledger holds against what arrived (docs/reference/ledger.md)."""

from __future__ import annotations

from tandem.schema.metrics.table import Field, Measurement

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
