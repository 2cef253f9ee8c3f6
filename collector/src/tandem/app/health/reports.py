"""What is wrong with a kit, in words, and the records of its health."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tandem.app.config import Config
from tandem.app.daemon.accounts import Account, Sim, sims
from tandem.app.daemon.modems import sickness
from tandem.app.health.machine import MachineState, Room, Roots, cpu_seconds, rss_bytes
from tandem.export.clock import Clock
from tandem.modem.poll import Poll
from tandem.schema.grades import SCALES, SHARES
from tandem.schema.metrics import MODEM_STATES
from tandem.schema.record import Record, Value
from tandem.spool.durable import read_or_begin, write_durably

log = logging.getLogger(__name__)

FORMAT = "tandem-boot-count/1"
NAME = "boot-count.json"


def count_boot(folder: Path, boot: str) -> int:
    """The number of this boot, from 1. What cannot be written is counted again, and the log says so."""
    file = folder / NAME
    count, last = read_or_begin(file, parse, lambda: (0, ""))
    if last == boot:
        return count
    try:
        write_durably(file, json.dumps({"format": FORMAT, "count": count + 1, "boot": boot}).encode())
    except OSError as error:
        log.warning("%s: %s; this boot is counted again at the next start", file, error.strerror)
    return count + 1


def parse(text: str | bytes) -> tuple[int, str]:
    """The count and the boot that was counted last; ValueError when the text is not of this file."""
    content = json.loads(text)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"no {FORMAT}")
    count, boot = content.get("count"), content.get("boot")
    if type(count) is not int or count < 1 or not isinstance(boot, str):
        raise ValueError("not as it was written")
    return count, boot


# ---------------------------------------------------------------------------------------------------------------------
# What became of each modem: usable, being recovered, or lost. Pure: polls and events in, fields of ``modem_health``
# records out.


LOST_AFTER_S = 5.0
"""So long a modem may be sick before it counts as lost: a poll or two are missed on the move."""


@dataclass(slots=True)
class _Modem:
    since_ns: int
    state: Literal["usable", "recovering", "lost", "unknown"] = "unknown"
    driver: str | None = None
    sickness: str | None = None
    sick_ns: int | None = None
    ok: int = 0
    failed: int = 0
    period_ns: int = 0
    steps: int = 0
    step: str | None = None
    recoveries: int = 0

    def turn(self, state: Literal["usable", "recovering", "lost"], at_ns: int) -> None:
        """Into that state, since then; nothing when it is in it."""
        if self.state != state:
            self.state, self.since_ns = state, at_ns

    def row(self, now_ns: int) -> dict[str, Value | None]:
        return {
            "state": self.state,
            "state_since_s": max(0, now_ns - self.since_ns) / 1e9,
            "sickness": self.sickness,
            "recovery_steps": self.steps,
            "recovery_step": self.step,
        }


class ModemStates:
    """Times are CLOCK_MONOTONIC ns. Used by one thread."""

    def __init__(self, paths: Iterable[str], now_ns: int) -> None:
        self._modems = {path: _Modem(now_ns, period_ns=now_ns) for path in paths}

    def polled(self, poll: Poll) -> None:
        modem = self._modems.get(poll.path)
        if modem is None:
            return
        modem.driver = poll.driver or modem.driver
        modem.ok += poll.failure is None
        modem.failed += poll.failure is not None
        sick = sickness(poll)
        if sick is None:
            modem.recoveries += modem.state in ("recovering", "lost")
            modem.sick_ns = modem.sickness = None
            modem.turn("usable", poll.began_monotonic_ns)
            return
        modem.sickness = sick
        if modem.sick_ns is None:
            modem.sick_ns = poll.began_monotonic_ns
        if modem.state != "recovering" and poll.began_monotonic_ns - modem.sick_ns >= LOST_AFTER_S * 1e9:
            modem.turn("lost", modem.sick_ns)

    def noted(self, event: Record) -> None:
        """An event: those of the recovery ladder tell what is done."""
        modem = self._modems.get(event.tags.get("path", ""))
        kind = event.tags.get("kind")
        if modem is None or kind not in ("recovery_step", "recovery_gave_up"):
            return
        if kind == "recovery_step":
            modem.steps += 1
            modem.step = str(event.fields.get("step") or "") or None
        if modem.sick_ns is not None:  # not one that came back while the step was done
            modem.turn("recovering" if kind == "recovery_step" else "lost", event.monotonic_ns)

    def records(self, operators: Mapping[str, str | None], now_ns: int) -> list[Record]:
        """One for each modem; a new period begins."""
        made: list[Record] = []
        for path, modem in self._modems.items():
            fields: dict[str, Value | None] = {
                **modem.row(now_ns),
                "state_code": MODEM_STATES.index(modem.state),
                "polls_ok": modem.ok,
                "polls_failed": modem.failed,
                "period_s": max(0, now_ns - modem.period_ns) / 1e9,
                "recoveries": modem.recoveries,
            }
            tags = {"path": path, "operator": operators.get(path), "driver": modem.driver}
            made.append(Record.make("modem_health", tags, fields, now_ns))
            modem.ok, modem.failed, modem.period_ns = 0, 0, now_ns
        return made

    def to_dict(self, now_ns: int) -> dict[str, dict[str, Value | None]]:
        return {
            path: {**modem.row(now_ns), "state_since_s": round(max(0, now_ns - modem.since_ns) / 1e9, 1)}
            for path, modem in self._modems.items()
        }


# ---------------------------------------------------------------------------------------------------------------------
# When something wrong begins and when it is over, with tolerance: one look does not end it, nor, where set, begin
# it. Pure.


@dataclass(slots=True)
class Alarm:
    """``after``: looks in a row that must be bad before it begins; ``over_after``: that must be good before it ends. A look that is
    neither (between two thresholds, or nothing known) breaks no alarm and no peace, only the row."""

    after: int = 1
    over_after: int = 6
    since_ns: int | None = None
    """CLOCK_MONOTONIC of its beginning; None while there is none."""
    text: str = ""
    """What is wrong, as told when it began or since."""
    _bad: int = 0
    _good: int = 0

    def look(
        self, how: Literal["bad", "good", "between"], now_ns: int, text: str = ""
    ) -> Literal["begins", "ends"] | None:
        """What this look makes of it; None when nothing changes. ``text``: what is wrong, when it is."""
        self._bad = self._bad + 1 if how == "bad" else 0
        self._good = self._good + 1 if how == "good" else 0
        if how == "bad" and text:
            self.text = text
        if self.since_ns is None and self._bad >= self.after:
            self.since_ns = now_ns
            return "begins"
        if self.since_ns is not None and self._good >= self.over_after:
            self.since_ns = None
            return "ends"
        return None


# ---------------------------------------------------------------------------------------------------------------------
# What is wrong with the machine, as alarms over what its sources reported; events when they begin and end. Pure.


LOW_BYTES, LOW_SHARE = SCALES["health.disk_free_bytes"].fair, 1 - SHARES["disk_used"].fair
"""A disk is low when less is free than the smaller of these, the share of the whole; or than ``LOW_INODES_SHARE`` of its inodes."""
LOW_INODES_SHARE = 0.05
ENOUGH = SCALES["health.disk_free_bytes"].good / LOW_BYTES
"""It is not any more when this much more is free."""

WORN_PERCENT, WORN_EOL = SCALES["card.life_used_a_percent"].fair, SCALES["card.pre_eol_code"].good

_SLOWED = ("frequency_capped", "throttled", "soft_temperature_limit")
_PROCESSOR = {
    "frequency_capped": "its frequency is capped",
    "throttled": "it is throttled",
    "soft_temperature_limit": "the soft temperature limit is reached",
}

Look = Literal["bad", "good", "between"]


def life_used_percent(card: Mapping[str, Any]) -> int | None:
    """Of a card's fields; None where it does not tell."""
    used = (card.get(name) for name in ("life_used_a_percent", "life_used_b_percent"))
    return max((value for value in used if isinstance(value, int)), default=None)


class Wrong:
    """Looks are in rounds of ten seconds. ``events``: what the looks since the last call brought."""

    def __init__(self) -> None:
        self._alarms: dict[tuple[str, str | None], Alarm] = {
            ("undervoltage", None): Alarm(),
            ("throttled", None): Alarm(after=2),
            ("disk_low", None): Alarm(),
            ("card_worn", None): Alarm(over_after=1),
        }
        self._events: list[Record] = []

    def supply(self, bits: Mapping[str, bool | None], now_ns: int) -> None:
        """The bits of a ``health`` record; nothing where there are none."""
        if bits.get("undervoltage") is not None:
            how: Look = "bad" if bits["undervoltage"] else "good"
            text = "the supply's voltage is too low; hint: a stronger supply, a shorter cable, fewer loads on USB"
            self._look("undervoltage", None, how, now_ns, text)
        if bits.get("throttled") is not None:
            found = [_PROCESSOR[name] for name in _SLOWED if bits.get(name)]
            text = f"the processor is slowed down: {', '.join(found)}; hint: cool it, or see to the supply"
            self._look("throttled", None, "bad" if found else "good", now_ns, text)

    def disk(self, room: Room, now_ns: int) -> None:
        low = min(LOW_BYTES, room.size_bytes * LOW_SHARE)
        share = 1.0 if room.free_inodes_share is None else room.free_inodes_share
        if room.free_bytes < low or share < LOW_INODES_SHARE:
            left = f"{room.free_bytes / 1e6:.0f} MB" if room.free_bytes < low else f"{room.free_inodes} inodes"
            self._look(
                "disk_low", None, "bad", now_ns, f"the disk has {left} left; hint: make room, or lower the budgets"
            )
        else:
            plenty = room.free_bytes >= low * ENOUGH and share >= LOW_INODES_SHARE * ENOUGH
            self._look("disk_low", None, "good" if plenty else "between", now_ns)

    def cards(self, cards: Mapping[str, Mapping[str, int | str | None]], now_ns: int) -> None:
        """Fields of ``card`` records by device; only those that tell of wear count."""
        worn: list[str] = []
        telling = False
        for device, fields in cards.items():
            used, eol = life_used_percent(fields), fields.get("pre_eol_code")
            telling |= used is not None or isinstance(eol, int)
            if used is not None and used >= WORN_PERCENT:
                how = f"has used up {used} % of its life" if used <= 100 else "is past its life"
                worn.append(f"{device} {how}")
            elif isinstance(eol, int) and eol >= WORN_EOL:
                worn.append(f"{device} has used most of its reserved blocks")
        if telling:
            self._look("card_worn", None, "bad" if worn else "good", now_ns, f"{', '.join(worn)}; hint: a new card")

    def plans(self, plans: Sequence[Sim], now_ns: int) -> None:
        for sim in plans:
            over = sim.over()
            how: Look = "between" if over is None else "bad" if over else "good"
            self._look("plan_over", sim.path.name, how, now_ns, sim.text(), sim.path.operator)

    def texts(self) -> list[str]:
        """What is wrong now, one line each."""
        return [
            alarm.text if path is None else f"path {path}: {alarm.text}"
            for (_, path), alarm in self._alarms.items()
            if alarm.since_ns is not None
        ]

    def kinds(self) -> list[str]:
        """The kinds of what is wrong now, once each, sorted."""
        return sorted({kind for (kind, _), alarm in self._alarms.items() if alarm.since_ns is not None})

    def events(self) -> list[Record]:
        events, self._events = self._events, []
        return events

    def _look(
        self, kind: str, path: str | None, how: Look, now_ns: int, text: str = "", operator: str | None = None
    ) -> None:
        alarm = self._alarms.setdefault((kind, path), Alarm(over_after=1))
        since_ns, before = alarm.since_ns, alarm.text
        turn = alarm.look(how, now_ns, text)
        if turn is None:
            return
        fields: dict[str, Value | None] = {
            "state": turn,
            "detail": (alarm.text if turn == "begins" else _over(before))[:500],
        }
        if turn == "ends" and since_ns is not None:
            fields["took_ms"] = (now_ns - since_ns) / 1e6
        self._events.append(Record.make("event", {"kind": kind, "path": path, "operator": operator}, fields, now_ns))


def _over(text: str) -> str:
    return f"was: {text.partition('; hint:')[0]}"


# ---------------------------------------------------------------------------------------------------------------------
# Everything that is wrong with a probe now, in one list of lines for people, the gravest first. Pure.


BEHIND_S = SCALES["health.spool_oldest_s"].fair
"""The oldest record may be unsent for so long (a tunnel, a village) before it is worth a word."""


def all_that_is_wrong(status: Mapping[str, Any]) -> list[str]:
    """From the parts of the status object."""
    return [
        *([str(status["trouble"])] if status.get("trouble") else []),
        *(status.get("wrong") or []),
        *_clock(status.get("health") or {}, status.get("clock") or {}),
        *_modems(status.get("modem_health") or {}),
        *_paths(status.get("paths") or {}),
        *_records(status.get("spool") or {}, status.get("health") or {}),
    ]


def _clock(health: Mapping[str, Any], clock: Mapping[str, Any]) -> list[str]:
    """Where the clock itself says why, that is the trouble already."""
    if health.get("clock_synchronised") is False and not clock.get("trouble"):
        return ["the clock was never set in this boot: records wait for their time; hint: a network, or a receiver"]
    return []


def _modems(modems: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for path, modem in modems.items():
        state, since_s = modem.get("state"), modem.get("state_since_s")
        if state not in ("lost", "recovering"):
            continue
        how = {"silent": "is silent", "refusing": "refuses"}.get(str(modem.get("sickness")), "is lost")
        steps = modem.get("recovery_steps") or 0
        doing = f", recovering: {modem.get('recovery_step')} was done" if state == "recovering" else ""
        if state == "lost" and steps:
            doing = f", {steps} recovery steps did not help"
        yield f"path {path}: its modem {how}, for {_duration(since_s)}{doing}"


def _paths(paths: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for path, status in paths.items():
        state = status.get("state")
        if state not in (None, "up"):
            detail = f": {status['detail']}" if status.get("detail") else ""
            yield f"path {path} is {str(state).replace('_', ' ')}{detail}"


def _records(spool: Mapping[str, Any], health: Mapping[str, Any]) -> Iterator[str]:
    if spool.get("dropped"):
        yield f"{spool['dropped']} records were dropped: the spool was full"
    if spool.get("rejected"):
        yield f"{spool['rejected']} records were refused by the server (spool/ has them with the reasons)"
    oldest_s = health.get("spool_oldest_s")
    if isinstance(oldest_s, int | float) and oldest_s > BEHIND_S:
        yield f"{spool.get('pending', 0)} records wait to be sent, the oldest for {_duration(oldest_s)}"


def _duration(seconds: object) -> str:
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return "some time"
    minutes = int(seconds) // 60
    if minutes < 1:
        return f"{int(seconds)} s"
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if days else f"{hours} h {minutes} min" if hours else f"{minutes} min"


# ---------------------------------------------------------------------------------------------------------------------
# The records that the collector makes of its own: health every ten seconds, modems, SIMs and temperatures every
# minute, storage and software every hour; and what of it people are shown.


REPORT_S, MINUTE_S, HOUR_S = 10.0, 60.0, 3600.0
_EARLY_S = 1.0
"""A round comes with a tick, up to a second late: a minute's or an hour's share is due a little before its time."""

_EACH_ROUND = (
    *("processor_temperature_degc", "memory_available_bytes", "disk_free_bytes"),
    *("undervoltage", "undervoltage_seen", "throttled"),
)
"""Of the machine every ten seconds; the rest of it changes slowly and is reported each minute: 0.8 MB a day less over the SIM."""

_SHOWN = (
    *("disk_free_bytes", "disk_used_bytes", "memory_available_bytes", "load_1min", "uptime_s", "boot_count"),
    *("spool_oldest_s", "processor_temperature_degc", "clock_synchronised"),
    *("undervoltage", "undervoltage_since_boot", "throttled", "throttled_since_boot"),
)


class Reports:
    """Used by the collector's thread; ``status`` by any."""

    def __init__(self, config: Config, clock: Clock, account: Account, roots: Roots, now_ns: int) -> None:
        self._config, self._clock, self._account = config, clock, account
        self._operators = config.operators
        self._machine = MachineState(roots, config.folder, count_boot(config.folder, clock.boot))
        self._wrong = Wrong()
        self._modems = ModemStates([p.name for p in config.paths if p.modem is not None], now_ns)
        self.polled, self.noted = self._modems.polled, self._modems.noted
        self.polling = True
        """False: nobody polls the modems, for one experiment from the command line; nothing is told of them then."""
        self._due_ns = {"round": now_ns, "minute": now_ns, "hour": now_ns}
        self.status: dict[str, Any] = {"health": None, "cards": {}, "software": {}, "sims": {}, "modem_health": {}}
        """Parts of the status object; with ``wrong`` and ``alarms`` once there was a report."""

    def tick(self, now_ns: int) -> bool:
        """Once a second; whether a report is due."""
        self._machine.look()
        return self._is_due("round", REPORT_S, now_ns)

    def report(
        self,
        own: Mapping[str, Value | None],
        control: Mapping[str, int],
        uploads: Mapping[str, int],
        now_ns: int,
        *,
        last: bool = False,
    ) -> list[Record]:
        """The records that are due. ``own``: the collector's fields of a ``health`` record (spool, captures, movement); ``control``,
        ``uploads``: bytes by path since the start that records and the queue, and that files of runs moved. ``last``: those of a minute
        too, whenever they were made before."""
        usage = self._count()
        minute = self._is_due("minute", MINUTE_S, now_ns) or last
        records = [self._health(own, now_ns, whole=minute), *self._usages(usage, control, uploads, now_ns)]
        if minute:
            records += self._minute(now_ns)
        if self._is_due("hour", HOUR_S, now_ns):
            records += self._hour(now_ns)
        records += self._wrong.events()
        modems = self._modems.to_dict(now_ns) if self.polling else {}
        self._show({"modem_health": modems, "wrong": self._wrong.texts(), "alarms": self._wrong.kinds()})
        return records

    def _is_due(self, what: str, every_s: float, now_ns: int) -> bool:
        if now_ns < self._due_ns[what] - (0 if what == "round" else _EARLY_S * 1e9):
            return False
        self._due_ns[what] = now_ns + int(every_s * 1e9)
        return True

    def _health(self, own: Mapping[str, Value | None], now_ns: int, *, whole: bool) -> Record:
        fields = self._machine.fields()
        low = fields.get("undervoltage")
        fields["undervoltage_seen"] = None if low is None else int(low)
        fields["clock_synchronised"] = bool(self._clock.state()["synchronised"])
        self._wrong.supply(self._machine.supply, now_ns)
        if self._machine.room is not None:
            self._wrong.disk(self._machine.room, now_ns)
        self._show({"health": {name: fields.get(name) for name in _SHOWN}})
        process = {"cpu_seconds": cpu_seconds(), "rss_bytes": rss_bytes()}
        shown = fields if whole else {name: fields.get(name) for name in _EACH_ROUND}
        return Record.make("health", {}, {**process, **own, **shown}, now_ns)

    def _usages(
        self, usage: Mapping[str, tuple[int, int]], control: Mapping[str, int], uploads: Mapping[str, int], now_ns: int
    ) -> list[Record]:
        records = []
        for path, (received, sent) in usage.items():
            used: dict[str, Value | None] = {"received_bytes": received, "sent_bytes": sent}
            used |= {"control_bytes": control.get(path), "upload_bytes": uploads.get(path)}
            records.append(Record.make("usage", {"path": path, "operator": self._operators[path]}, used, now_ns))
        return records

    def _minute(self, now_ns: int) -> list[Record]:
        plans: list[Sim] = sims(self._config.paths, self._account, self._clock.utc_ns(now_ns))
        self._wrong.plans(plans, now_ns)
        self._show({"sims": {sim.path.name: sim.status() for sim in plans}})
        temperatures = self._machine.temperatures()
        return [
            *(self._modems.records(self._operators, now_ns) if self.polling else []),
            *(sim.record(now_ns) for sim in plans),
            *(
                Record.make("temperature", {"sensor": sensor}, {"temperature_degc": value}, now_ns)
                for sensor, value in temperatures.items()
            ),
        ]

    def _hour(self, now_ns: int) -> list[Record]:
        cards, software = self._machine.cards(), self._machine.software()
        self._wrong.cards(cards, now_ns)
        self._show({"cards": cards, "software": software})
        records = [Record.make("card", {"device": device}, fields, now_ns) for device, fields in cards.items()]
        if software:
            records.append(Record.make("software", {}, software, now_ns))
        return records

    def _show(self, more: Mapping[str, Any]) -> None:
        """A new object each time: another thread reads it."""
        self.status = {**self.status, **more}

    def _count(self) -> dict[str, tuple[int, int]]:
        usage = self._account.update()
        try:
            self._account.save()
        except OSError as error:
            log.error("the account of the paths waits in memory: %s; hint: free disk space", error)
        return usage
