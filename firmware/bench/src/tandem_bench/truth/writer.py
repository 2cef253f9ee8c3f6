"""Writes ``truth.jsonl`` (docs/reference/campaign-folder.md): the scenario's own truth, and what came later."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tandem_bench.truth.events import Event, in_order

if TYPE_CHECKING:
    from tandem_bench.scenario.played import Played

_RADIO = ("rsrp_dbm", "rsrq_db", "sinr_db", "rssi_dbm", "plmn", "tac", "eci", "pci", "earfcn", "rat", "speed_m_s")
_LINK = ("down_bit_per_s", "up_bit_per_s", "rtt_ms", "buffer_down_bytes", "buffer_up_bytes")


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
