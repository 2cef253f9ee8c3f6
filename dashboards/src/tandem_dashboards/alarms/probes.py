"""Alarms of probes: is it there, does it measure and send (presence); what it reported of itself, joined with who is registered (its
spool, supply, clock, disk, card); its modems and SIMs, by path and not by operator: a SIM that was changed for another must not leave an
alarm behind.
"""

from __future__ import annotations

from collections.abc import Callable

from tandem_dashboards.alarms.alarm import (
    Alarm,
    AlarmQuery,
    Last,
    Math,
    Severity,
    above,
    at_least,
    exactly,
    known,
    known_sum,
    now,
    registered,
)
from tandem_dashboards.alarms.tolerances import FORECAST_DAYS
from tandem_dashboards.expressions import Expression, first, last, mean
from tandem_dashboards.influxql import select
from tandem_server.schema.measurements import PROBE_STATES

LIVE = "/d/tandem-probe?var-probe={{ urlquery .Labels.probe }}"
_FOR = "{{ humanizeDuration .Values.since.Value }}"


def silent() -> Alarm:
    """Half an hour."""
    return _unheard(
        "probe-silent",
        "Probe is silent",
        "warning",
        what="Probe {{ .Labels.probe }} does not speak to the server.",
        do="Is the kit on, and is it where there is a network? Ask whoever carries it. What it measures meanwhile waits on its card.",
    )


def gone() -> Alarm:
    """The same a day later, to whoever is asked at once."""
    return _unheard(
        "probe-gone",
        "Probe has been silent for a day",
        "critical",
        what="Probe {{ .Labels.probe }} has not spoken to the server for more than a day.",
        do="Call whoever carries it: power, SIMs, antennas. If the kit is out of use, revoke it (tandem-server probe revoke) and this "
        "ends.",
    )


def _unheard(key: str, title: str, severity: Severity, *, what: str, do: str) -> Alarm:
    """``last_seen_s`` is absent for a probe that never came: joined with it, such a one is left out."""
    return Alarm(
        key,
        title,
        severity,
        {"expected": registered(), "heard": now("last_seen_s", "probe_state")},
        {
            "seen": Last("expected"),
            "since": Last("heard"),
            "silence": Math("$since * ($seen == 0)"),
            "fires": above("silence", key),
        },
        what=what,
        since="Its last word came " + _FOR + " ago.",
        do=do,
        board=LIVE,
    )


def never_came() -> Alarm:
    """Registered a week ago, and no request yet."""
    return Alarm(
        "probe-never-came",
        "Probe never came",
        "info",
        {"codes": now("state_code", "probe_state"), "ages": now("since_s", "probe_state")},
        {
            "state": Last("codes"),
            "since": Last("ages"),
            "unused": Math(f"$since * ($state == {PROBE_STATES.index('never_seen')})"),
            "fires": above("unused", "probe-never-came"),
        },
        what="Probe {{ .Labels.probe }} is registered and was never heard of.",
        since="It was registered " + _FOR + " ago.",
        do="Was the kit handed out? Does it have its token and the server's address (tandem preflight tells)? Else revoke it.",
        board=LIVE,
    )


def not_measuring() -> Alarm:
    """It speaks to the server, and its modems are not polled, or no run comes."""
    return _in_state(
        "probe-not-measuring",
        "Probe is online and does not measure",
        "critical",
        what="Probe {{ .Labels.probe }} is online, and no measurement comes: no polls of its modems, or no runs of its campaign.",
        do="Look at its modems and its campaign on the board. On the kit: tandem status; journalctl -u tandem. A restart of the "
        "collector keeps everything.",
    )


def not_uploading() -> Alarm:
    """Requests come, and records or traces do not."""
    return _in_state(
        "probe-not-uploading",
        "Probe does not upload",
        "warning",
        what="Probe {{ .Labels.probe }} is online, and its records or traces do not arrive.",
        do="Usually a clock that nobody vouches for (records without a time wait), a network too thin, or a full disk. On the kit: "
        "tandem status names what is wrong. Nothing is lost while the card has room.",
    )


def _in_state(key: str, title: str, severity: Severity, *, what: str, do: str) -> Alarm:
    return Alarm(
        key,
        title,
        severity,
        {"codes": now("state_code", "probe_state"), "ages": now("since_s", "probe_state")},
        {"state": Last("codes"), "since": Last("ages"), "fires": exactly("state", key)},
        what=what,
        since="So it has been for " + _FOR + ".",
        do=do,
        board=LIVE,
    )


_ROUNDS = 180
"""Of ten seconds: half an hour."""
_AS_REPORTED = " (as last reported)"


def spool() -> Alarm:
    """Beyond the cap the oldest records are dropped."""
    return Alarm(
        "probe-spool",
        "Spool is near its cap",
        "critical",
        {
            "expected": registered(),
            "sizes": known("spool_bytes", "health"),
            "caps": known("spool_limit_bytes", "health"),
            "waits": known("oldest_s", "spool"),
        },
        {
            "seen": Last("expected"),
            "size": Last("sizes"),
            "cap": Last("caps"),
            "since": Last("waits"),
            "share": Math("$size / $cap + 0 * $seen"),
            "fires": at_least("share", "probe-spool"),
        },
        what="The spool of probe {{ .Labels.probe }} is {{ humanizePercentage .Values.share.Value }} full ({{ humanize1024 "
        ".Values.size.Value }}B)" + _AS_REPORTED + ".",
        since="{{ if .Values.since }}Its oldest record has waited {{ humanizeDuration .Values.since.Value }}.{{ else }}Longer than "
        "five minutes.{{ end }}",
        do="At the cap the oldest records are dropped. Bring the kit to a good network, or into Wi-Fi, until the spool has drained; "
        "give it a larger cap ([spool] limit_bytes) if the card has room.",
        board=LIVE,
    )


def records_lost() -> Alarm:
    """The count now and a day ago, over boots: what was dropped before a power cut is told after it. A new card counts from 0: that is
    no loss."""

    def a_day(function: Callable[[str], Expression]) -> AlarmQuery:
        return AlarmQuery(select(function("dropped"), of="spool", by=["probe"]), 86_400)

    return Alarm(
        "probe-records-lost",
        "Records were dropped",
        "critical",
        {"expected": registered(), "ends": a_day(last), "begins": a_day(first)},
        {
            "seen": Last("expected"),
            "after": Last("ends"),
            "before": Last("begins"),
            "count": Math("$after - $before + 0 * $seen"),
            "fires": above("count", "probe-records-lost"),
        },
        what="Probe {{ .Labels.probe }} has dropped {{ printf `%.0f` .Values.count.Value }} records: they are gone.",
        since="Within the last 24 hours.",
        do="Its spool or its disk was full. See the spool on the board; the ledger (tandem-server ledger) names the numbers. Free room "
        "before it goes out again.",
        board=LIVE,
    )


def undervoltage() -> Alarm:
    """The number of rounds, since Grafana makes no series of a yes or no."""
    return Alarm(
        "probe-undervoltage",
        "Supply is too low",
        "warning",
        {"expected": registered(), "rounds": known_sum("undervoltage_seen", "health", _ROUNDS)},
        {
            "seen": Last("expected"),
            "low": Last("rounds"),
            "count": Math("$low + 0 * $seen"),
            "fires": at_least("count", "probe-undervoltage"),
        },
        what="The supply of probe {{ .Labels.probe }} is too low.",
        since="Rounds of ten seconds in which it was so, of the last half hour that it told of: {{ printf `%.0f` .Values.count.Value "
        "}}.",
        do="Change supply and cable: 5.1 V, 3 A, a short thick cable; a car's socket sags when the engine starts. Undervoltage loses "
        "modems and breaks cards.",
        board=LIVE,
    )


def clock() -> Alarm:
    """Since when nobody vouched for the clock that its records rest on."""
    return Alarm(
        "probe-clock",
        "Clock is not synchronised",
        "warning",
        {"expected": registered(), "ages": known("age_s", "clock")},
        {
            "seen": Last("expected"),
            "since": Last("ages"),
            "age": Math("$since + 0 * $seen"),
            "fires": at_least("age", "probe-clock"),
        },
        what="Nobody vouches for the clock of probe {{ .Labels.probe }}: the times of its records drift.",
        since="The last source spoke {{ humanizeDuration .Values.age.Value }} before its last record.",
        do="On the kit: chronyc tracking, and tandem status. Outbound NTP (UDP 123) blocked by an operator, or no GNSS fix? Records "
        "that may be off by more than 100 ms say so (utc_error_ms).",
        board=LIVE,
    )


def disk() -> Alarm:
    """Of the state folder's file system."""
    return Alarm(
        "probe-disk",
        "Probe's disk is nearly full",
        "warning",
        {
            "expected": registered(),
            "frees": known("disk_free_bytes", "health"),
            "useds": known("disk_used_bytes", "health"),
        },
        {
            "seen": Last("expected"),
            "free": Last("frees"),
            "used": Last("useds"),
            "share": Math("$used / ($used + $free) + 0 * $seen"),
            "fires": at_least("share", "probe-disk"),
        },
        what="The disk of probe {{ .Labels.probe }} is {{ humanizePercentage .Values.share.Value }} full, {{ humanize1024 "
        ".Values.free.Value }}B are left" + _AS_REPORTED + ".",
        since="Longer than ten minutes.",
        do="Captures take most: bring the kit into Wi-Fi until its traces are with the server, or give captures a smaller budget.",
        board=LIVE,
    )


def hot() -> Alarm:
    """The mean of ten minutes of its life."""
    return Alarm(
        "probe-hot",
        "Probe is too hot",
        "warning",
        {"expected": registered(), "degrees": known("processor_temperature_degc", "health", points=60, function=mean)},
        {
            "seen": Last("expected"),
            "mean": Last("degrees"),
            "temperature": Math("$mean + 0 * $seen"),
            "fires": at_least("temperature", "probe-hot"),
        },
        what="The processor of probe {{ .Labels.probe }} is at {{ printf `%.0f` .Values.temperature.Value }} °C in the mean of ten minutes"
        + _AS_REPORTED
        + ".",
        since="Longer than ten minutes.",
        do="It slows down there, and polls come late. Out of the sun, air around the case, not on the dashboard.",
        board=LIVE,
    )


def card() -> Alarm:
    """Cards that tell their wear: eMMC, and few SD cards."""
    return Alarm(
        "card-worn",
        "Card is worn",
        "warning",
        {"expected": registered(), "lives": known("life_used_a_percent", "card", ("probe", "device"))},
        {
            "seen": Last("expected"),
            "life": Last("lives"),
            "used": Math("$life + 0 * $seen"),
            "fires": at_least("used", "card-worn"),
        },
        what="The card {{ .Labels.device }} of probe {{ .Labels.probe }} has used {{ printf `%.0f` .Values.used.Value }} % of its "
        "life.",
        since="As it told at its last start.",
        do="Give the kit a new card before this one fails: what waits in its spool goes with it.",
        board=LIVE,
    )


_MODEM = "/d/tandem-probe?var-probe={{ urlquery .Labels.probe }}&var-path={{ urlquery .Labels.path }}"
_BY = ("probe", "path")


def lost() -> Alarm:
    """Nobody is at work at it, or the ladder gave up."""
    return _modem_in_state(
        "modem-lost",
        "Modem is lost",
        "critical",
        what="Modem {{ .Labels.path }} of probe {{ .Labels.probe }} does not answer, and nothing more is tried.",
        do="Unplug the modem and plug it in again, or restart the kit; look at USB cable and supply (is there an alarm of its supply, "
        "too?). If this path was taken out of its configuration, this ends a week after its last record.",
    )


def recovering() -> Alarm:
    """The ladder is being climbed for half an hour."""
    return _modem_in_state(
        "modem-recovering",
        "Modem does not come back",
        "warning",
        what="Modem {{ .Labels.path }} of probe {{ .Labels.probe }} is in recovery, and has not come back.",
        do="The events on the board tell which steps were done. If it goes on: change USB cable or port, then the modem.",
    )


def over_plan() -> Alarm:
    """The forecast rests on some days, else it is a guess."""
    return Alarm(
        "plan-over",
        "SIM will exceed its plan",
        "warning",
        {
            "expected": registered(),
            "forecasts": known("expected_bytes", "sim_usage", _BY),
            "plans": known("plan_bytes", "sim_usage", _BY),
            "bases": known("basis_days", "sim_usage", _BY),
            "resets": known("reset_in_s", "sim_usage", _BY),
        },
        {
            "seen": Last("expected"),
            "forecast": Last("forecasts"),
            "plan": Last("plans"),
            "days": Last("bases"),
            "reset": Last("resets"),
            "share": Math(f"($forecast / $plan) * ($days >= {FORECAST_DAYS}) + 0 * $seen"),
            "fires": above("share", "plan-over"),
        },
        what="The SIM of modem {{ .Labels.path }} of probe {{ .Labels.probe }} will need {{ humanize1024 .Values.forecast.Value }}B of "
        "its plan's {{ humanize1024 .Values.plan.Value }}B ({{ humanizePercentage .Values.share.Value }}).",
        since="So it has been forecast for an hour or longer; the plan begins anew in {{ humanizeDuration .Values.reset.Value }}.",
        do="Shorten the campaign or its budget for this path, or buy more. The probe stops measuring over it when its budget is used up.",
        board=_MODEM,
    )


def used_up() -> Alarm:
    """Whatever was forecast."""
    return Alarm(
        "plan-used-up",
        "SIM's plan is used up",
        "critical",
        {
            "expected": registered(),
            "sums": known("used_bytes", "sim_usage", _BY),
            "plans": known("plan_bytes", "sim_usage", _BY),
            "resets": known("reset_in_s", "sim_usage", _BY),
        },
        {
            "seen": Last("expected"),
            "used": Last("sums"),
            "plan": Last("plans"),
            "reset": Last("resets"),
            "share": Math("$used / $plan + 0 * $seen"),
            "fires": at_least("share", "plan-used-up"),
        },
        what="The SIM of modem {{ .Labels.path }} of probe {{ .Labels.probe }} has used {{ humanizePercentage .Values.share.Value }} "
        "of its plan of {{ humanize1024 .Values.plan.Value }}B.",
        since="The plan begins anew in {{ humanizeDuration .Values.reset.Value }}.",
        do="Operators throttle or charge beyond it: what is measured there then is the throttle. Buy more, or stop its campaign.",
        board=_MODEM,
    )


def _modem_in_state(key: str, title: str, severity: Severity, *, what: str, do: str) -> Alarm:
    return Alarm(
        key,
        title,
        severity,
        {
            "expected": registered(),
            "codes": known("state_code", "modem_health", _BY),
            "ages": known("state_since_s", "modem_health", _BY),
        },
        {
            "seen": Last("expected"),
            "code": Last("codes"),
            "since": Last("ages"),
            "state": Math("$code + 0 * $seen"),
            "fires": exactly("state", key),
        },
        what=what,
        since="At its last record it had been so for {{ humanizeDuration .Values.since.Value }}.",
        do=do,
        board=_MODEM,
    )
