"""What is wrong with the machine, as alarms over what its sources told; events when they begin and end. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from tandem.app.health.alarms import Alarm
from tandem.app.health.sims import Sim
from tandem.app.health.storage import Room
from tandem.schema.grades import SCALES, SHARES
from tandem.schema.record import Record, Value

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

    def supply(self, told: Mapping[str, bool | None], now_ns: int) -> None:
        """The bits of a ``health`` record; nothing where there are none."""
        if told.get("undervoltage") is not None:
            how: Look = "bad" if told["undervoltage"] else "good"
            text = "the supply's voltage is too low; mend: a stronger supply, a shorter cable, fewer loads on USB"
            self._look("undervoltage", None, how, now_ns, text)
        if told.get("throttled") is not None:
            found = [_PROCESSOR[name] for name in _SLOWED if told.get(name)]
            text = f"the processor is slowed down: {', '.join(found)}; mend: cool it, or see to the supply"
            self._look("throttled", None, "bad" if found else "good", now_ns, text)

    def disk(self, room: Room, now_ns: int) -> None:
        """The state folder's file system."""
        low = min(LOW_BYTES, room.size_bytes * LOW_SHARE)
        few = None if room.free_inodes is None or room.used_inodes is None else LOW_INODES_SHARE
        inodes = (room.free_inodes or 0) + (room.used_inodes or 0)
        scarce = few is not None and inodes > 0 and (room.free_inodes or 0) < few * inodes
        plenty = few is None or inodes == 0 or (room.free_inodes or 0) >= few * inodes * ENOUGH
        if room.free_bytes < low or scarce:
            left = f"{room.free_bytes / 1e6:.0f} MB" if room.free_bytes < low else f"{room.free_inodes} inodes"
            self._look(
                "disk_low", None, "bad", now_ns, f"the disk has {left} left; mend: make room, or lower the budgets"
            )
        else:
            self._look("disk_low", None, "good" if room.free_bytes >= low * ENOUGH and plenty else "between", now_ns)

    def cards(self, told: Mapping[str, Mapping[str, int | str | None]], now_ns: int) -> None:
        """Fields of ``card`` records by device; only those that tell of wear count."""
        worn: list[str] = []
        telling = False
        for device, fields in told.items():
            used = [v for k in ("life_used_a_percent", "life_used_b_percent") if isinstance(v := fields.get(k), int)]
            eol = fields.get("pre_eol_code")
            telling |= bool(used) or isinstance(eol, int)
            if used and max(used) >= WORN_PERCENT:
                worn.append(
                    f"{device} has used up {max(used)} % of its life"
                    if max(used) <= 100
                    else f"{device} is past its life"
                )
            elif isinstance(eol, int) and eol >= WORN_EOL:
                worn.append(f"{device} has used most of its reserved blocks")
        if telling:
            self._look("card_worn", None, "bad" if worn else "good", now_ns, f"{', '.join(worn)}; mend: a new card")

    def plans(self, told: Sequence[Sim], now_ns: int) -> None:
        """The SIMs' plans."""
        for sim in told:
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
        """What began and ended since the last call."""
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
    return f"was: {text.partition('; mend:')[0]}"
