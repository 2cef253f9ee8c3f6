"""Modems and SIMs. By path, not by operator: a SIM that was changed for another must not leave an alarm behind."""

from __future__ import annotations

from tandem_dashboards.alarms.alarm import Alarm, Severity, above, at_least, exactly, last, limit_of
from tandem_dashboards.alarms.asking import known, registered
from tandem_dashboards.alarms.evaluate.mathematics import Math
from tandem_dashboards.alarms.tolerances import FORECAST_DAYS

LIVE = "/d/tandem-probe?var-probe={{ urlquery .Labels.probe }}&var-path={{ urlquery .Labels.path }}"
_BY = ("probe", "path")


def lost() -> Alarm:
    """Nobody is at work at it, or the ladder gave up."""
    return _in_state(
        "modem-lost",
        "Modem is lost",
        "critical",
        what="Modem {{ .Labels.path }} of probe {{ .Labels.probe }} does not answer, and nothing more is tried.",
        do="Unplug the modem and plug it in again, or restart the kit; look at USB cable and supply (is there an alarm of its supply, "
        "too?). If this path was taken out of its configuration, this ends a week after its last record.",
    )


def recovering() -> Alarm:
    """The ladder is being climbed for half an hour."""
    return _in_state(
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
            "seen": last("expected"),
            "forecast": last("forecasts"),
            "plan": last("plans"),
            "days": last("bases"),
            "reset": last("resets"),
            "share": Math(f"($forecast / $plan) * ($days >= {FORECAST_DAYS}) + 0 * $seen"),
            "fires": above("share", limit_of("plan-over")),
        },
        what="The SIM of modem {{ .Labels.path }} of probe {{ .Labels.probe }} will need {{ humanize1024 .Values.forecast.Value }}B of "
        "its plan's {{ humanize1024 .Values.plan.Value }}B ({{ humanizePercentage .Values.share.Value }}).",
        since="So it has been forecast for an hour or longer; the plan begins anew in {{ humanizeDuration .Values.reset.Value }}.",
        do="Shorten the campaign or its budget for this path, or buy more. The probe stops measuring over it when its budget is used up.",
        board=LIVE,
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
            "seen": last("expected"),
            "used": last("sums"),
            "plan": last("plans"),
            "reset": last("resets"),
            "share": Math("$used / $plan + 0 * $seen"),
            "fires": at_least("share", limit_of("plan-used-up")),
        },
        what="The SIM of modem {{ .Labels.path }} of probe {{ .Labels.probe }} has used {{ humanizePercentage .Values.share.Value }} "
        "of its plan of {{ humanize1024 .Values.plan.Value }}B.",
        since="The plan begins anew in {{ humanizeDuration .Values.reset.Value }}.",
        do="Operators throttle or charge beyond it: what is measured there then is the throttle. Buy more, or stop its campaign.",
        board=LIVE,
    )


def _in_state(key: str, title: str, severity: Severity, *, what: str, do: str) -> Alarm:
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
            "seen": last("expected"),
            "code": last("codes"),
            "since": last("ages"),
            "state": Math("$code + 0 * $seen"),
            "fires": exactly("state", limit_of(key)),
        },
        what=what,
        since="At its last record it had been so for {{ humanizeDuration .Values.since.Value }}.",
        do=do,
        board=LIVE,
    )
