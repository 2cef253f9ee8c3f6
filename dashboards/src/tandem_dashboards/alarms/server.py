"""Alarms of the server: its ledger, its gateway, its database, its disk, and whether it is there at all."""

from __future__ import annotations

from tandem_dashboards.alarms.alarm import SEEN, Alarm, AlarmQuery, known, now
from tandem_dashboards.expressions import count, total
from tandem_dashboards.influxql import select

_SERVER = "/d/tandem-server"
_CAMPAIGN = (
    "/d/tandem-campaign?var-probe={{ urlquery .Labels.probe }}{{ if .Labels.campaign }}&var-campaign={{ urlquery .Labels.campaign }}{{ "
    "end }}"
)
_OF = "probe {{ .Labels.probe }}{{ if .Labels.campaign }}, campaign {{ .Labels.campaign }}{{ end }}"
_GONE = "the figure is absent where there is nothing: no data at all means that all is well"


SERVER: tuple[Alarm, ...] = (
    # No point of ``expected``, which the worker writes, or none of any gateway process. Nothing may be read from figures here: there are
    # none.
    Alarm(
        "server-dead",
        "Server is dead",
        "critical",
        reads=(
            ("points", "watched", AlarmQuery(select(count("seen"), of="expected"), 300)),
            ("minutes", "served", AlarmQuery(select(count("uptime_s"), of="gateway_process"), 300)),
        ),
        computes=("alive", "$watched * $served"),
        fires="lt",
        what="The server writes nothing any more, its worker or its gateway at least: no probe is watched, or none reaches it, and no "
        "other alarm can be trusted.",
        since="Five minutes or longer.",
        do="systemctl status of worker, gateway and database, disk, machine. If the database does not answer Grafana, this is told "
        "too. (A server without any registered probe tells this until it has one.)",
        board=_SERVER,
        no_data="Alerting",
        on_error="Alerting",
        why_no_data="that is what it watches for",
    ),
    # Each folder's file system.
    Alarm(
        "server-disk",
        "Server's disk is nearly full",
        "critical",
        reads=(
            ("frees", "free", now("free_bytes", "server_disk", ("place",))),
            ("useds", "used", now("used_bytes", "server_disk", ("place",))),
        ),
        computes=("share", "$used / ($used + $free)"),
        fires="gte",
        what="The server's disk that holds the {{ .Labels.place }} is {{ humanizePercentage .Values.share.Value }} full: {{ "
        "humanize1024 .Values.free.Value }}B are left.",
        since="Longer than ten minutes.",
        do="Traces go to S3 ([traces] s3), old series by [store] retention_days; or a larger volume. Full, the server answers 503 and "
        "507, and probes keep what they have.",
        board=_SERVER,
    ),
    # What the gateway could not store.
    Alarm(
        "database-failing",
        "Database does not take records",
        "critical",
        reads=(("sums", "failures", AlarmQuery(select(total("writes_failed"), of="gateway_process"), 600)),),
        fires="gt",
        what="{{ printf `%.0f` .Values.failures.Value }} writes into the database failed in ten minutes.",
        since="Longer than three minutes.",
        do="systemctl status of the database, its log, its disk. Probes keep their records and send them again.",
        board=_SERVER,
    ),
    # All probes together.
    Alarm(
        "gateway-overloaded",
        "Gateway turns probes away",
        "critical",
        reads=(("sums", "refusals", AlarmQuery(select(total("answers_503"), of="gateway"), 600)),),
        fires="gt",
        what="The gateway has told probes {{ printf `%.0f` .Values.refusals.Value }} times in ten minutes to come later.",
        since="Longer than five minutes.",
        do="Does the database answer, is its disk full, are requests too many for this machine? See Server. Probes keep all they have.",
        board=_SERVER,
        no_data="OK",
        why_no_data="no probe asked for anything: then none was turned away",
    ),
    # Of the last fifteen minutes in which the probe asked for anything.
    Alarm(
        "gateway-rejecting",
        "Gateway rejects records",
        "warning",
        reads=(SEEN, ("sums", "rejected", known("lines_rejected", "gateway", points=15, function=total))),
        computes=("count", "$rejected + 0 * $seen"),
        fires="gt",
        what="The gateway has rejected {{ printf `%.0f` .Values.count.Value }} records of probe {{ .Labels.probe }}.",
        since="In the last quarter of an hour in which it spoke.",
        do="The reason stands on the board (Server, gateway) and in the gateway's log. Usually a collector newer than the server, or a "
        "clock far off. The probe keeps what was rejected in quarantine.",
        board=_SERVER,
    ),
    # Something is gone, or nobody knows where it is.
    Alarm(
        "ledger-missing",
        "Ledger is incomplete",
        "warning",
        reads=(("counts", "missing", now("runs_missing", "ledger", ("probe", "campaign"))),),
        fires="gt",
        what="{{ printf `%.0f` .Values.missing.Value }} runs of "
        + _OF
        + " lack records or files, and the probe does not have them to send.",
        since="Longer than half an hour.",
        do="tandem-server ledger --probe {{ .Labels.probe }} --incomplete names each and why. Power cut in a run (cut_off)? Records "
        "refused or dropped? Runs to be made again stand there.",
        board=_CAMPAIGN,
    ),
    # Runs that may still come, and have not for days.
    Alarm(
        "ledger-late",
        "Runs do not arrive",
        "warning",
        reads=(("ages", "since", now("incomplete_s", "ledger", ("probe", "campaign"))),),
        fires="gt",
        what="Runs of " + _OF + " are not complete in the ledger.",
        since="The oldest ended {{ humanizeDuration .Values.since.Value }} ago.",
        do="Is the probe silent, or does it not upload? Bring it into Wi-Fi; tandem-server ledger --probe {{ .Labels.probe }} "
        "--incomplete names what is waited for.",
        board=_CAMPAIGN,
        no_data="OK",
        why_no_data=_GONE,
    ),
    # Offered, and not whole after a day and a half.
    Alarm(
        "trace-never-comes",
        "Trace does not arrive",
        "warning",
        reads=(("ages", "since", now("unfinished_oldest_s", "server_traces")),),
        fires="gt",
        what="A trace that probe {{ .Labels.probe }} offered has not come whole.",
        since="It was offered {{ humanizeDuration .Values.since.Value }} ago.",
        do="Bring the kit into Wi-Fi. tandem-server traces list --probe {{ .Labels.probe }} tells what is here; after 14 days the "
        "server gives an unfinished one up.",
        no_data="OK",
        why_no_data=_GONE,
    ),
)
