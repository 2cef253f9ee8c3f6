"""What was noticed: the kinds of events, and their record."""

from __future__ import annotations

from tandem.schema.metrics.table import Field, Measurement

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
        Field(
            "handover_kind",
            "str",
            "",
            "enb: another eNodeB (the paper's BSID); sector: another cell of the same eNodeB",
        ),
        Field("detector", "str", "", "which rule judged mobility: published or fused"),
        Field(
            "speed_class",
            "str",
            "",
            "of the movement so far, or that ended: low (on foot) or high; absent without good fixes",
        ),
        Field("speed_class_by", "str", "", "what judged it: speed (the receiver's)"),
        Field("step", "str", "", "which step of the recovery ladder: at, session, cfun, reboot, usb, power"),
        Field(
            "state",
            "str",
            "",
            "of a path, with path_state: up, down, no_address, ipv6_only_unusable, colliding or no_route; of the radio, "
            "with service_lost: searching, limited or no_service; of the probe's health, with undervoltage, throttled, disk_low, "
            "plan_over and card_worn: begins or ends",
        ),
        Field("policy", "str", "", "of steering: off, drop, handover or learned"),
        Field(
            "action",
            "str",
            "",
            "of steering: backup, extended, restore, declined; of an order confirmed, toggled (given again), unconfirmed, refused",
        ),
        Field("cause", "str", "", "of steering: the event, or what else decided"),
        Field("predicted_s", "float", "s", "of steering: how long the path is expected to need", 0),
        Field("took_ms", "float", "ms", "how long what the event tells of lasted", 0),
        Field("detail", "str", "", "one line for people"),
    ),
)
