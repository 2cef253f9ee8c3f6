"""Alarms of probes: is it there, does it measure and send (presence); what it reported of itself, joined with who is registered (its
spool, supply, clock, disk, card); its modems and SIMs, by path and not by operator: a SIM that was changed for another must not leave an
alarm behind.
"""

from __future__ import annotations

from tandem_dashboards.alarms.alarm import SEEN, Alarm, AlarmQuery, Severity, known, now
from tandem_dashboards.alarms.tolerances import FORECAST_DAYS
from tandem_dashboards.expressions import first, last, mean, total
from tandem_dashboards.influxql import select
from tandem_server.schema.measurements import PROBE_STATES

_FOR = "{{ humanizeDuration .Values.since.Value }}"
DAY_S = 86_400
_ROUNDS = 180
"""Of ten seconds: half an hour."""
_AS_REPORTED = " (as last reported)"
_MODEM = "/d/tandem-probe?var-probe={{ urlquery .Labels.probe }}&var-path={{ urlquery .Labels.path }}"
_BY = ("probe", "path")


def _unheard(key: str, title: str, severity: Severity, *, what: str, do: str) -> Alarm:
    """``last_seen_s`` is absent for a probe that never came: joined with it, such a one is left out."""
    return Alarm(
        key,
        title,
        severity,
        reads=(SEEN, ("heard", "since", now("last_seen_s", "probe_state"))),
        computes=("silence", "$since * ($seen == 0)"),
        fires="gt",
        what=what,
        since="Its last word came " + _FOR + " ago.",
        do=do,
    )


def _in_state(key: str, title: str, severity: Severity, *, what: str, do: str) -> Alarm:
    return Alarm(
        key,
        title,
        severity,
        reads=(("codes", "state", now("state_code", "probe_state")), ("ages", "since", now("since_s", "probe_state"))),
        fires="eq",
        what=what,
        since="So it has been for " + _FOR + ".",
        do=do,
    )


def _modem_in_state(key: str, title: str, severity: Severity, *, what: str, do: str) -> Alarm:
    return Alarm(
        key,
        title,
        severity,
        reads=(
            SEEN,
            ("codes", "code", known("state_code", "modem_health", _BY)),
            ("ages", "since", known("state_since_s", "modem_health", _BY)),
        ),
        computes=("state", "$code + 0 * $seen"),
        fires="eq",
        what=what,
        since="At its last record it had been so for {{ humanizeDuration .Values.since.Value }}.",
        do=do,
        board=_MODEM,
    )


PROBES: tuple[Alarm, ...] = (
    # Half an hour.
    _unheard(
        "probe-silent",
        "Probe is silent",
        "warning",
        what="Probe {{ .Labels.probe }} does not speak to the server.",
        do="Is the kit on, and is it where there is a network? Ask whoever carries it. What it measures meanwhile waits on its card.",
    ),
    # The same a day later, to whoever is asked at once.
    _unheard(
        "probe-gone",
        "Probe has been silent for a day",
        "critical",
        what="Probe {{ .Labels.probe }} has not spoken to the server for more than a day.",
        do="Call whoever carries it: power, SIMs, antennas. If the kit is out of use, revoke it (tandem-server probe revoke) and this "
        "ends.",
    ),
    # Registered a week ago, and no request yet.
    Alarm(
        "probe-never-came",
        "Probe never came",
        "info",
        reads=(("codes", "state", now("state_code", "probe_state")), ("ages", "since", now("since_s", "probe_state"))),
        computes=("unused", f"$since * ($state == {PROBE_STATES.index('never_seen')})"),
        fires="gt",
        what="Probe {{ .Labels.probe }} is registered and was never heard of.",
        since="It was registered " + _FOR + " ago.",
        do="Was the kit handed out? Does it have its token and the server's address (tandem preflight tells)? Else revoke it.",
    ),
    # It speaks to the server, and its modems are not polled, or no run comes.
    _in_state(
        "probe-not-measuring",
        "Probe is online and does not measure",
        "critical",
        what="Probe {{ .Labels.probe }} is online, and no measurement comes: no polls of its modems, or no runs of its campaign.",
        do="Look at its modems and its campaign on the board. On the kit: tandem status; journalctl -u tandem. A restart of the "
        "collector keeps everything.",
    ),
    # Requests come, and records or traces do not.
    _in_state(
        "probe-not-uploading",
        "Probe does not upload",
        "warning",
        what="Probe {{ .Labels.probe }} is online, and its records or traces do not arrive.",
        do="Usually a clock that nobody vouches for (records without a time wait), a network too thin, or a full disk. On the kit: "
        "tandem status names what is wrong. Nothing is lost while the card has room.",
    ),
)

KITS: tuple[Alarm, ...] = (
    # Beyond the cap the oldest records are dropped.
    Alarm(
        "probe-spool",
        "Spool is near its cap",
        "critical",
        reads=(
            SEEN,
            ("sizes", "size", known("spool_bytes", "health")),
            ("caps", "cap", known("spool_limit_bytes", "health")),
            ("waits", "since", known("oldest_s", "spool")),
        ),
        computes=("share", "$size / $cap + 0 * $seen"),
        fires="gte",
        what="The spool of probe {{ .Labels.probe }} is {{ humanizePercentage .Values.share.Value }} full ({{ humanize1024 "
        ".Values.size.Value }}B)" + _AS_REPORTED + ".",
        since="{{ if .Values.since }}Its oldest record has waited {{ humanizeDuration .Values.since.Value }}.{{ else }}Longer than "
        "five minutes.{{ end }}",
        do="At the cap the oldest records are dropped. Bring the kit to a good network, or into Wi-Fi, until the spool has drained; "
        "give it a larger cap ([spool] limit_bytes) if the card has room.",
    ),
    # The count now and a day ago, over boots: what was dropped before a power cut is told after it. A new card counts from 0: that is
    # no loss.
    Alarm(
        "probe-records-lost",
        "Records were dropped",
        "critical",
        reads=(
            SEEN,
            ("ends", "after", AlarmQuery(select(last("dropped"), of="spool", by=["probe"]), DAY_S)),
            ("begins", "before", AlarmQuery(select(first("dropped"), of="spool", by=["probe"]), DAY_S)),
        ),
        computes=("count", "$after - $before + 0 * $seen"),
        fires="gt",
        what="Probe {{ .Labels.probe }} has dropped {{ printf `%.0f` .Values.count.Value }} records: they are gone.",
        since="Within the last 24 hours.",
        do="Its spool or its disk was full. See the spool on the board; the ledger (tandem-server ledger) names the numbers. Free room "
        "before it goes out again.",
    ),
    # The number of rounds, since Grafana makes no series of a yes or no.
    Alarm(
        "probe-undervoltage",
        "Supply is too low",
        "warning",
        reads=(SEEN, ("rounds", "low", known("undervoltage_seen", "health", points=_ROUNDS, function=total))),
        computes=("count", "$low + 0 * $seen"),
        fires="gte",
        what="The supply of probe {{ .Labels.probe }} is too low.",
        since="Rounds of ten seconds in which it was so, of the last half hour that it told of: {{ printf `%.0f` .Values.count.Value "
        "}}.",
        do="Change supply and cable: 5.1 V, 3 A, a short thick cable; a car's socket sags when the engine starts. Undervoltage loses "
        "modems and breaks cards.",
    ),
    # Since when nobody vouched for the clock that its records rest on.
    Alarm(
        "probe-clock",
        "Clock is not synchronised",
        "warning",
        reads=(SEEN, ("ages", "since", known("age_s", "clock"))),
        computes=("age", "$since + 0 * $seen"),
        fires="gte",
        what="Nobody vouches for the clock of probe {{ .Labels.probe }}: the times of its records drift.",
        since="The last source spoke {{ humanizeDuration .Values.age.Value }} before its last record.",
        do="On the kit: chronyc tracking, and tandem status. Outbound NTP (UDP 123) blocked by an operator, or no GNSS fix? Records "
        "that may be off by more than 100 ms say so (utc_error_ms).",
    ),
    # Of the state folder's file system.
    Alarm(
        "probe-disk",
        "Probe's disk is nearly full",
        "warning",
        reads=(
            SEEN,
            ("frees", "free", known("disk_free_bytes", "health")),
            ("useds", "used", known("disk_used_bytes", "health")),
        ),
        computes=("share", "$used / ($used + $free) + 0 * $seen"),
        fires="gte",
        what="The disk of probe {{ .Labels.probe }} is {{ humanizePercentage .Values.share.Value }} full, {{ humanize1024 "
        ".Values.free.Value }}B are left" + _AS_REPORTED + ".",
        since="Longer than ten minutes.",
        do="Captures take most: bring the kit into Wi-Fi until its traces are with the server, or give captures a smaller budget.",
    ),
    # The mean of ten minutes of its life.
    Alarm(
        "probe-hot",
        "Probe is too hot",
        "warning",
        reads=(SEEN, ("degrees", "mean", known("processor_temperature_degc", "health", points=60, function=mean))),
        computes=("temperature", "$mean + 0 * $seen"),
        fires="gte",
        what="The processor of probe {{ .Labels.probe }} is at {{ printf `%.0f` .Values.temperature.Value }} °C in the mean of ten minutes"
        + _AS_REPORTED
        + ".",
        since="Longer than ten minutes.",
        do="It slows down there, and polls come late. Out of the sun, air around the case, not on the dashboard.",
    ),
    # Cards that tell their wear: eMMC, and few SD cards.
    Alarm(
        "card-worn",
        "Card is worn",
        "warning",
        reads=(SEEN, ("lives", "life", known("life_used_a_percent", "card", ("probe", "device")))),
        computes=("used", "$life + 0 * $seen"),
        fires="gte",
        what="The card {{ .Labels.device }} of probe {{ .Labels.probe }} has used {{ printf `%.0f` .Values.used.Value }} % of its "
        "life.",
        since="As it told at its last start.",
        do="Give the kit a new card before this one fails: what waits in its spool goes with it.",
    ),
)

MODEMS: tuple[Alarm, ...] = (
    # Nobody is at work at it, or the ladder gave up.
    _modem_in_state(
        "modem-lost",
        "Modem is lost",
        "critical",
        what="Modem {{ .Labels.path }} of probe {{ .Labels.probe }} does not answer, and nothing more is tried.",
        do="Unplug the modem and plug it in again, or restart the kit; look at USB cable and supply (is there an alarm of its supply, "
        "too?). If this path was taken out of its configuration, this ends a week after its last record.",
    ),
    # The ladder is being climbed for half an hour.
    _modem_in_state(
        "modem-recovering",
        "Modem does not come back",
        "warning",
        what="Modem {{ .Labels.path }} of probe {{ .Labels.probe }} is in recovery, and has not come back.",
        do="The events on the board tell which steps were done. If it goes on: change USB cable or port, then the modem.",
    ),
    # The forecast rests on some days, else it is a guess.
    Alarm(
        "plan-over",
        "SIM will exceed its plan",
        "warning",
        reads=(
            SEEN,
            ("forecasts", "forecast", known("expected_bytes", "sim_usage", _BY)),
            ("plans", "plan", known("plan_bytes", "sim_usage", _BY)),
            ("bases", "days", known("basis_days", "sim_usage", _BY)),
            ("resets", "reset", known("reset_in_s", "sim_usage", _BY)),
        ),
        computes=("share", f"($forecast / $plan) * ($days >= {FORECAST_DAYS}) + 0 * $seen"),
        fires="gt",
        what="The SIM of modem {{ .Labels.path }} of probe {{ .Labels.probe }} will need {{ humanize1024 .Values.forecast.Value }}B of "
        "its plan's {{ humanize1024 .Values.plan.Value }}B ({{ humanizePercentage .Values.share.Value }}).",
        since="So it has been forecast for an hour or longer; the plan begins anew in {{ humanizeDuration .Values.reset.Value }}.",
        do="Shorten the campaign or its budget for this path, or buy more. The probe stops measuring over it when its budget is used up.",
        board=_MODEM,
    ),
    # Whatever was forecast.
    Alarm(
        "plan-used-up",
        "SIM's plan is used up",
        "critical",
        reads=(
            SEEN,
            ("sums", "used", known("used_bytes", "sim_usage", _BY)),
            ("plans", "plan", known("plan_bytes", "sim_usage", _BY)),
            ("resets", "reset", known("reset_in_s", "sim_usage", _BY)),
        ),
        computes=("share", "$used / $plan + 0 * $seen"),
        fires="gte",
        what="The SIM of modem {{ .Labels.path }} of probe {{ .Labels.probe }} has used {{ humanizePercentage .Values.share.Value }} "
        "of its plan of {{ humanize1024 .Values.plan.Value }}B.",
        since="The plan begins anew in {{ humanizeDuration .Values.reset.Value }}.",
        do="Operators throttle or charge beyond it: what is measured there then is the throttle. Buy more, or stop its campaign.",
        board=_MODEM,
    ),
)
