"""What a probe told of itself: its spool, its supply, its clock, its disk, its card. Joined with who is registered."""

from __future__ import annotations

from collections.abc import Callable

from tandem_dashboards.alarms.alarm import Alarm, Asked, above, at_least, last, limit_of
from tandem_dashboards.alarms.asking import known, known_sum, registered
from tandem_dashboards.alarms.evaluate.mathematics import Math
from tandem_dashboards.alarms.rules.presence import LIVE
from tandem_dashboards.expressions import Expression, first, mean
from tandem_dashboards.expressions import last as newest
from tandem_dashboards.influxql import select

_ROUNDS = 180
"""Of ten seconds: half an hour."""
_AS_TOLD = " (as it told last)"


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
            "seen": last("expected"),
            "size": last("sizes"),
            "cap": last("caps"),
            "since": last("waits"),
            "share": Math("$size / $cap + 0 * $seen"),
            "fires": at_least("share", limit_of("probe-spool")),
        },
        what="The spool of probe {{ .Labels.probe }} is {{ humanizePercentage .Values.share.Value }} full "
        "({{ humanize1024 .Values.size.Value }}B)" + _AS_TOLD + ".",
        since="{{ if .Values.since }}Its oldest record has waited {{ humanizeDuration .Values.since.Value }}.{{ else }}Longer than five "
        "minutes.{{ end }}",
        do="At the cap the oldest records are dropped. Bring the kit to a good network, or into Wi-Fi, until the spool has drained; "
        "give it a larger cap ([spool] limit_bytes) if the card has room.",
        board=LIVE,
    )


def records_lost() -> Alarm:
    """The count now and a day ago, over boots: what was dropped before a power cut is told after it. A new card counts from 0: that is
    no loss."""

    def a_day(function: Callable[[str], Expression]) -> Asked:
        return Asked(select(function("dropped"), of="spool", by=["probe"]), 86_400)

    return Alarm(
        "probe-records-lost",
        "Records were dropped",
        "critical",
        {"expected": registered(), "ends": a_day(newest), "begins": a_day(first)},
        {
            "seen": last("expected"),
            "after": last("ends"),
            "before": last("begins"),
            "count": Math("$after - $before + 0 * $seen"),
            "fires": above("count", limit_of("probe-records-lost")),
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
            "seen": last("expected"),
            "low": last("rounds"),
            "count": Math("$low + 0 * $seen"),
            "fires": at_least("count", limit_of("probe-undervoltage")),
        },
        what="The supply of probe {{ .Labels.probe }} is too low.",
        since="Rounds of ten seconds in which it was so, of the last half hour that it told of: "
        "{{ printf `%.0f` .Values.count.Value }}.",
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
            "seen": last("expected"),
            "since": last("ages"),
            "age": Math("$since + 0 * $seen"),
            "fires": at_least("age", limit_of("probe-clock")),
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
            "seen": last("expected"),
            "free": last("frees"),
            "used": last("useds"),
            "share": Math("$used / ($used + $free) + 0 * $seen"),
            "fires": at_least("share", limit_of("probe-disk")),
        },
        what="The disk of probe {{ .Labels.probe }} is {{ humanizePercentage .Values.share.Value }} full, "
        "{{ humanize1024 .Values.free.Value }}B are left" + _AS_TOLD + ".",
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
        {
            "expected": registered(),
            "degrees": known("processor_temperature_degc", "health", points=60, function=mean),
        },
        {
            "seen": last("expected"),
            "mean": last("degrees"),
            "temperature": Math("$mean + 0 * $seen"),
            "fires": at_least("temperature", limit_of("probe-hot")),
        },
        what="The processor of probe {{ .Labels.probe }} is at {{ printf `%.0f` .Values.temperature.Value }} °C in the mean of ten minutes"
        + _AS_TOLD
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
        {
            "expected": registered(),
            "lives": known("life_used_a_percent", "card", ("probe", "device")),
        },
        {
            "seen": last("expected"),
            "life": last("lives"),
            "used": Math("$life + 0 * $seen"),
            "fires": at_least("used", limit_of("card-worn")),
        },
        what="The card {{ .Labels.device }} of probe {{ .Labels.probe }} has used "
        "{{ printf `%.0f` .Values.used.Value }} % of its life.",
        since="As it told at its last start.",
        do="Give the kit a new card before this one fails: what waits in its spool goes with it.",
        board=LIVE,
    )
