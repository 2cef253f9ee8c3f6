"""Is a probe there, does it measure, does it send?"""

from __future__ import annotations

from tandem_dashboards.alarms.alarm import Alarm, Severity, above, exactly, last, limit_of
from tandem_dashboards.alarms.asking import now, registered
from tandem_dashboards.alarms.evaluate.mathematics import Math
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
            "seen": last("expected"),
            "since": last("heard"),
            "silence": Math("$since * ($seen == 0)"),
            "fires": above("silence", limit_of(key)),
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
            "state": last("codes"),
            "since": last("ages"),
            "unused": Math(f"$since * ($state == {PROBE_STATES.index('never_seen')})"),
            "fires": above("unused", limit_of("probe-never-came")),
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
        {"state": last("codes"), "since": last("ages"), "fires": exactly("state", limit_of(key))},
        what=what,
        since="So it has been for " + _FOR + ".",
        do=do,
        board=LIVE,
    )
