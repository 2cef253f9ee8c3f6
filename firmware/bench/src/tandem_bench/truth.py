"""Ground truth: what the bench did, with times, to score detectors against; written as ``truth.jsonl``
(docs/reference/campaign-folder.md). Among it falls of a level that a poll once a second could see, wherever the polls lie."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tandem_bench.scenario.played import Played

Event = dict[str, Any]

ORDER = ("phase", "mobility", "outage", "handover", "signal_drop", "fault", "radio", "link", "link_log")
"""Lines of the same moment stand in this order."""

DROP_DB = 6.0
POLL_S = 1.0
_FLICKER_S = 0.3
MOVING_M_S = 0.3
SHORT_STOP_S = 15.0
LEAST_DB, STOP_S = 6.0, 10.0
"""Mohan et al.'s rule as a rehearsal has it: moving from a change of so much between two polls, a second apart, of either modem, until
there was none for so long."""
_RADIO = ("rsrp_dbm", "rsrq_db", "sinr_db", "rssi_dbm", "plmn", "tac", "eci", "pci", "earfcn", "rat", "speed_m_s")
_LINK = ("down_bit_per_s", "up_bit_per_s", "rtt_ms", "buffer_down_bytes", "buffer_up_bytes")


# --- the file ---


class TruthError(ValueError):
    """A line that is none; the message names file, line and hint."""


def lines_of(played: Played) -> Iterator[Event]:
    """All truth of a played scenario, unordered and without absolute times: its events, and every tick of radio and link."""
    yield from played.events
    for operator, timeline in played.operators.items():
        for i in range(len(timeline)):
            tick = timeline.tick(i)
            head = {"t_s": tick["t_s"], "operator": operator}
            radio = {name: tick[name] for name in _RADIO}
            if tick["rat"] in ("WCDMA", "GSM"):
                # There the levels are RSCP and RXLEV, and the cell identity is no ECI.
                radio |= dict.fromkeys(("rsrp_dbm", "rsrq_db", "sinr_db", "tac", "eci", "pci", "earfcn"))
            yield {**head, "type": "radio", **radio}
            link = {name: tick[name] for name in _LINK}
            loss = {"loss": tick["loss_down"], "outage": tick["outage"]}
            yield {**head, "type": "link", **link, **loss}


def write(
    played: Played,
    path: str | Path,
    epoch_monotonic_ns: int,
    epoch_utc_ns: int,
    later: Iterable[Mapping[str, Any]] = (),
    logs: Iterable[str | Path] = (),
    until_s: float | None = None,
) -> int:
    """Write the truth of ``played`` to ``path``, in order of time; the number of lines.

    ``later``: further lines (``type`` and ``t_s`` or ``monotonic_ns``; ``operator`` where it belongs), as faults.
    ``logs``: JSON-lines files of such lines, as ``link_log`` of the emulated links; a last line that was cut is left out.
    ``until_s``: when the play ended. Nothing of the scenario after it; when it went on beyond the scenario, the last phase did too, as
    modems and links keep their last values. TruthError for a line that is none.
    """
    own = (e for e in lines_of(played) if until_s is None or e["t_s"] <= until_s)
    if until_s is not None and until_s > played.duration_s and played.phases:
        last = played.phases[-1]
        own = ({**e, "until_s": round(until_s, 4)} if e is last or e == last else e for e in own)
    events = [*own, *(_checked(e, "a later event") for e in later), *(e for log in logs for e in _read(Path(log)))]
    unfinished = Path(f"{path}.tmp")
    with unfinished.open("w", encoding="utf-8", newline="\n") as out:
        for event in in_order([_stamped(e, epoch_monotonic_ns, epoch_utc_ns) for e in events]):
            out.write(json.dumps(event) + "\n")
    unfinished.replace(path)
    return len(events)


def _stamped(event: Mapping[str, Any], epoch_monotonic_ns: int, epoch_utc_ns: int) -> Event:
    """``event`` with all three times. It has ``t_s`` or ``monotonic_ns``; the others follow."""
    t_s, monotonic_ns = event.get("t_s"), event.get("monotonic_ns")
    if t_s is None:
        t_s = (event["monotonic_ns"] - epoch_monotonic_ns) / 1e9
    if monotonic_ns is None:
        monotonic_ns = epoch_monotonic_ns + round(t_s * 1e9)
    rest = {k: v for k, v in event.items() if k not in ("t_s", "monotonic_ns", "utc_ns")}
    utc_ns = epoch_utc_ns + monotonic_ns - epoch_monotonic_ns
    return {"t_s": round(t_s, 4), "monotonic_ns": monotonic_ns, "utc_ns": utc_ns, **rest}


def _read(path: Path) -> Iterator[Event]:
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            if number == len(lines):
                return  # no line break after it: its writer was ended in the middle of the line
            raise TruthError(f"{path}:{number}: not JSON; remove the line") from None
        yield _checked(event, f"{path}:{number}")


def _checked(event: object, where: str) -> Event:
    if not isinstance(event, Mapping) or not isinstance(event.get("type"), str):
        raise TruthError(f"{where}: no truth line; give an object with a type")
    times = [event.get(name) for name in ("t_s", "monotonic_ns") if event.get(name) is not None]
    if not times or not all(isinstance(t, int | float) and not isinstance(t, bool) and abs(t) < 1e19 for t in times):
        raise TruthError(f"{where}: no time; give t_s in seconds or monotonic_ns")
    return dict(event)


# --- the events of a played scenario, without absolute times ---


def in_order(events: Sequence[Event]) -> list[Event]:
    """By time, then by type and operator; equal ones keep their places."""
    rank = {name: i for i, name in enumerate(ORDER)}
    return sorted(events, key=lambda e: (e["t_s"], rank.get(e["type"], len(ORDER)), e.get("operator", "")))


def of_mobility(speed_m_s: Sequence[float], tick_s: float) -> list[Event]:
    """``mobility`` lines; each with the speed at that moment."""
    return [
        {"t_s": round(tick * tick_s, 1), "type": "mobility", "moving": moving, "speed_m_s": speed_m_s[tick]}
        for tick, moving in changes(speed_m_s, tick_s)
    ]


def of_drops(operator: str, rsrp_dbm: Sequence[float | None], tick_s: float) -> list[Event]:
    """``signal_drop`` lines of one operator."""
    return [
        {
            "t_s": round(drop.tick * tick_s, 1),
            "type": "signal_drop",
            "operator": operator,
            "change_db": drop.change_db,
            "from_dbm": drop.from_dbm,
            "to_dbm": drop.to_dbm,
            "held_s": drop.held_s,
        }
        for drop in find_drops(rsrp_dbm, tick_s)
    ]


def handover(
    operator: str, t_s: float, from_eci: int, to_eci: int, interruption_ms: float | None, kept: bool, cause: str
) -> Event:
    """A ``handover`` line. ``t_s`` is when the new cell serves; the interruption lies before it."""
    return {
        "t_s": t_s,
        "type": "handover",
        "operator": operator,
        "from_eci": from_eci,
        "to_eci": to_eci,
        "handover_kind": "sector" if from_eci >> 8 == to_eci >> 8 else "enb",
        "interruption_ms": interruption_ms,
        "queue": "kept" if kept else "dropped",
        "cause": cause,
    }


@dataclass(frozen=True, slots=True)
class Drop:
    """One fall: ``tick`` of its steepest second's end, change in dB (negative), levels a second before and then.

    ``held_s``: for how long a comparison with the second before would have shown it: a poll sees it with the chance
    ``held_s`` / 1 s, at most 1.
    """

    tick: int
    change_db: float
    from_dbm: float
    to_dbm: float
    held_s: float


def find_drops(levels: Sequence[float | None], tick_s: float, least_db: float = DROP_DB) -> list[Drop]:
    """Falls in ``levels`` (dBm, one a tick, None where absent).

    For each tick the level is compared with that one second before. A fall lasts while the difference is −``least_db`` or
    less; it is stamped at its steepest. Two spells less than 0.3 s apart are one fall: rounding to whole decibels makes a steady
    fall flicker around the threshold.
    """
    lag = round(POLL_S / tick_s)
    bridge = round(_FLICKER_S / tick_s)
    drops: list[Drop] = []
    spell: list[tuple[float, int]] = []
    for tick in range(lag, len(levels) + 1):
        change = _difference(levels, tick, lag)
        if change is not None and change <= -least_db:
            spell.append((change, tick))
        elif spell and (tick == len(levels) or tick - spell[-1][1] >= bridge):
            steepest, at = min(spell)
            before, after = levels[at - lag], levels[at]
            if before is not None and after is not None:
                drops.append(Drop(at, steepest, before, after, round(len(spell) * tick_s, 3)))
            spell = []
    return drops


def _difference(levels: Sequence[float | None], tick: int, lag: int) -> float | None:
    if tick >= len(levels):
        return None
    now, before = levels[tick], levels[tick - lag]
    return None if now is None or before is None else now - before


# --- moving or not: as the route says, and as the published rule says of levels that were played ---


def changes(speed_m_s: Sequence[float], tick_s: float) -> list[tuple[int, bool]]:
    """(tick, moving) at the start and at each change: faster than 0.3 m/s is moving.

    A stop shorter than 15 s between two spells of moving is part of the ride: a tram at a stop has not arrived.
    """
    fast = [speed > MOVING_M_S for speed in speed_m_s]
    spans: list[tuple[int, bool]] = [(i, state) for i, state in enumerate(fast) if i == 0 or state != fast[i - 1]]
    out: list[tuple[int, bool]] = []
    for number, (tick, moving) in enumerate(spans):
        end = spans[number + 1][0] if number + 1 < len(spans) else None
        short_stop = not moving and number > 0 and end is not None and (end - tick) * tick_s < SHORT_STOP_S
        if not short_stop and (not out or out[-1][1] != moving):
            out.append((tick, moving))
    return out


def states(speed_m_s: Sequence[float], tick_s: float) -> list[bool]:
    """``changes``, one a tick."""
    spans = [*changes(speed_m_s, tick_s), (len(speed_m_s), False)]
    return [moving for (begin, moving), (end, _) in itertools.pairwise(spans) for _ in range(begin, end)]


def by_the_rule(levels: Sequence[Sequence[float | None]], offsets: Sequence[int], tick_s: float) -> list[bool]:
    """What the published rule says, one a tick: of ``levels`` (dBm, one a tick), one modem's each, polled once a second from tick
    ``offsets`` on."""
    lag, stop = round(1 / tick_s), round(STOP_S / tick_s)
    large = {
        tick
        for series, offset in zip(levels, offsets, strict=True)
        for tick in range(offset + lag, len(series), lag)
        if (now := series[tick]) is not None
        and (before := series[tick - lag]) is not None
        and abs(now - before) >= LEAST_DB
    }
    out: list[bool] = []
    last = -stop
    for tick in range(max(map(len, levels))):
        last = tick if tick in large else last
        out.append(tick - last < stop)
    return out
