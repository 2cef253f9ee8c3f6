"""Quantities, the probe's health and the whole status as text, for terminals, logs and pipes. Pure: absent quantities are a dash."""

from __future__ import annotations

import re
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from tandem.cli.command import columns
from tandem.schema.grades import SHARES, Tone, disk_tone, event_meaning, meaning, scale, tone_of

ABSENT = "–"


def is_number(value: Any) -> TypeGuard[float]:  # noqa: ANN401 a JSON value
    """Whether it is a quantity: a truth value is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number(value: Any, digits: int = 0, unit: str = "") -> str:  # noqa: ANN401 as above
    """With ``digits`` after the point and its unit."""
    return f"{value:.{digits}f}{unit}" if is_number(value) else ABSENT


def rate(bit_per_s: Any) -> str:  # noqa: ANN401 as above
    """In Mbit/s, three significant digits; kbit/s below one."""
    if not is_number(bit_per_s):
        return ABSENT
    mega = bit_per_s / 1e6
    if 0 < mega < 1:
        return f"{bit_per_s / 1e3:.0f} kbit/s"
    return f"{mega:.0f} Mbit/s" if mega >= 100 else f"{mega:.1f} Mbit/s"


def size(count: Any) -> str:  # noqa: ANN401 as above
    """Bytes in kB, MB, GB (powers of ten, as links are measured)."""
    if not is_number(count):
        return ABSENT
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.{0 if count / factor >= 100 else 1}f} {unit}"
    return f"{count:.0f} B"


def duration(seconds: Any) -> str:  # noqa: ANN401 as above
    if not is_number(seconds):
        return ABSENT
    if (whole := int(seconds)) < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def clock(utc_ns: Any) -> str:  # noqa: ANN401 as above
    """Time of day of this machine's zone; blanks while the clock is not set."""
    if isinstance(utc_ns, bool) or not isinstance(utc_ns, int):
        return "--:--:--"
    return time.strftime("%H:%M:%S", time.localtime(utc_ns / 1e9))


def clock_words(state: dict[str, Any]) -> str:
    """Whose word the records' times rest on, and how well."""
    if not state.get("synchronised"):
        return str(state.get("trouble") or "not synchronised: records wait for their time")
    source = state.get("source")
    words = "the system's clock as it stands, nobody vouches for it" if source == "system" else f"{source}"
    if state.get("error_ms") is not None:
        words += f", within {number(state.get('error_ms'), 0, ' ms')}"
    if source != "system" and not state.get("vouched"):
        words += f", last vouched for {duration(state.get('age_s'))} ago"
    off = state.get("system_error_ms")
    if is_number(off) and abs(off) >= 1000:
        words += f"; the system's clock is {number(off / 1000, 0, ' s')} off"
    steps = state.get("steps") or []
    return words + (f"; set {len(steps)} times" if steps else "")


def kind_words(run: dict[str, Any]) -> str:
    """What a run is: ``mptcp``, ``tcp``, or another experiment's name."""
    return str(run.get("experiment") if run.get("kind") == "any" else run.get("kind"))


def phase_words(phase: Any) -> str:  # noqa: ANN401 as above
    """As ``phase 3 of 12: mptcp 1000 kB``; empty where there is none."""
    if not isinstance(phase, dict) or not phase.get("of"):
        return ""
    return f"phase {phase.get('number')} of {phase['of']}: {phase.get('name')}"


def cell(modem: dict[str, Any]) -> str:
    """The serving cell: eNodeB and sector."""
    enb, sector = modem.get("enb_id"), modem.get("sector_id")
    return ABSENT if enb is None else f"eNB {enb}/{sector}"


def event_detail(event: dict[str, Any]) -> str:
    """What more there is to an event; that it begins or ends is said by its words."""
    return str(event.get("detail") or "").removeprefix("begins, ").removeprefix("ends, ")


def percent(share: Any) -> str:  # noqa: ANN401 as above
    """A share of 0 to 1."""
    return f"{100 * share:.0f} %" if is_number(share) else ABSENT


def radio_words(modem: dict[str, Any]) -> str:
    """A modem's state, with its radio technology when it has service."""
    state = "no poll yet" if modem.get("state") is None else meaning("radio", "state", modem["state"]).words
    if modem.get("failure"):
        return f"refuses: {str(modem['failure']).replace('_', ' ')}"
    rat = modem.get("rat")
    return f"{rat}, {state}" if rat and modem.get("state") in ("connected", "idle", "unknown") else state


WIDTH = 80
"""Columns of a line of health, as of most terminals."""


@dataclass(frozen=True, slots=True)
class Part:
    """One thing: ``words`` for people, ``tone`` how it is."""

    words: str
    tone: Tone = "quiet"

    @property
    def unwell(self) -> bool:
        return self.tone in ("fair", "poor")


def machine_parts(status: dict[str, Any]) -> list[Part]:
    """The machine, what matters most first; nothing before the first round."""
    health = status.get("health") or {}
    parts: list[Part] = []
    if (degrees := health.get("processor_temperature_degc")) is not None:
        parts.append(Part(number(degrees, 0, " °C"), tone_of("health", "processor_temperature_degc", degrees)))
    parts += _supply(health)
    free, used = health.get("disk_free_bytes"), health.get("disk_used_bytes")
    if isinstance(free, int) and isinstance(used, int) and free + used:
        words = f"disk {size(free)} free ({100 * free / (free + used):.0f} %)"
        parts.append(Part(words, disk_tone(free, used)))
    parts += _wear(status.get("cards") or {})
    if health.get("memory_available_bytes") is not None:
        parts.append(Part(f"memory {size(health['memory_available_bytes'])} free"))
    if health.get("load_1min") is not None:
        parts.append(Part(f"load {number(health['load_1min'], 1)}"))
    if health.get("boot_count") is not None:
        parts.append(Part(f"boot {health['boot_count']}, {duration(health.get('uptime_s'))} ago"))
    return parts


def probe_parts(status: dict[str, Any]) -> list[Part]:
    """Clock, records and SIMs: what of a probe's health is not its machine."""
    return [*_clock(status.get("clock") or {}), *_records(status), *_plans(status.get("sims") or {})]


def health_line(status: dict[str, Any], width: int = WIDTH) -> str:
    """The machine in one line, cut at a whole part; empty before the first round."""
    line = ""
    for part in machine_parts(status):
        longer = f"{line}, {part.words}" if line else part.words
        if len(longer) <= width:
            line = longer
    return line


def sim_lines(status: dict[str, Any]) -> list[str]:
    return [f"SIM {path}: {_sim(sim)}" for path, sim in (status.get("sims") or {}).items()]


def wrong_lines(status: dict[str, Any]) -> list[str]:
    """What is wrong, wrapped; one line that says so when nothing is. None of a collector older than this view."""
    if "wrong" not in status:
        return []
    wrong = status["wrong"] or []
    if not wrong:
        return ["nothing is wrong"]
    lines = [f"wrong ({len(wrong)}):"]
    for text in wrong:
        lines += textwrap.wrap(str(text), WIDTH, initial_indent="  - ", subsequent_indent="    ")
    return lines


def software_line(status: dict[str, Any]) -> str:
    versions = status.get("software") or {}
    words = [f"{name} {versions[name]}" for name in ("tandem", "kernel", "firmware") if versions.get(name)]
    words += [str(versions["machine"])] if versions.get("machine") else []
    return textwrap.shorten(", ".join(words), WIDTH, placeholder=" …")


def _supply(health: dict[str, Any]) -> list[Part]:
    parts = []
    if health.get("undervoltage"):
        parts.append(Part("SUPPLY TOO LOW", "poor"))
    elif health.get("undervoltage") is not None:
        was = health.get("undervoltage_since_boot")
        parts.append(Part("supply was too low", "fair") if was else Part("supply ok", "good"))
    return parts + ([Part("SLOWED DOWN", "fair")] if health.get("throttled") else [])


def _wear(cards: dict[str, Any]) -> list[Part]:
    used = [
        percent
        for card in cards.values()
        for name in ("life_used_a_percent", "life_used_b_percent")
        if isinstance(percent := card.get(name), int)
    ]
    return [Part(f"card worn {max(used)} %", tone_of("card", "life_used_a_percent", max(used)))] if used else []


def _clock(clock: dict[str, Any]) -> list[Part]:
    if not clock:
        return []
    if not clock.get("synchronised"):
        return [Part("CLOCK NOT SET", "poor")]
    source, error_ms = clock.get("source"), clock.get("error_ms")
    if source == "system":
        return [Part("clock as it stands", "quiet")]
    words = f"clock {source}" + (f" ±{number(error_ms, 0, ' ms')}" if error_ms is not None else "")
    if not clock.get("vouched"):
        return [Part(f"{words}, {duration(clock.get('age_s'))} ago", "fair")]
    return [Part(words, "good" if error_ms is None else tone_of("clock", "error_ms", error_ms))]


def _records(status: dict[str, Any]) -> list[Part]:
    spool, oldest_s = status.get("spool") or {}, (status.get("health") or {}).get("spool_oldest_s")
    parts = [Part(f"{spool[what]} {what}", "poor") for what in ("dropped", "rejected") if spool.get(what)]
    limits = scale("health", "spool_oldest_s")
    tone = limits.tone(oldest_s) if limits is not None and spool.get("pending") else "good"
    if tone in ("fair", "poor"):
        parts.append(Part(f"spool {spool.get('pending', 0)}, {duration(oldest_s)} old", tone))
    elif spool:
        parts.append(Part(f"spool {spool.get('pending', 0)}", "good"))
    return parts


def _plans(sims: dict[str, Any]) -> list[Part]:
    parts = []
    for path, sim in sims.items():
        plan, used, expected = (sim.get(name) for name in ("plan_bytes", "used_bytes", "expected_bytes"))
        if not plan or not isinstance(used, int):
            continue
        forecast = expected if sim.get("sure") and isinstance(expected, int) else used
        tone = SHARES["plan"].tone(forecast / plan)
        words = f"{percent(forecast / plan)} forecast" if tone != "good" and forecast > used else percent(used / plan)
        parts.append(Part(f"SIM {path} {words}", tone))
    return parts


def _sim(sim: dict[str, Any]) -> str:
    since = sim.get("counted_from") or sim.get("since")
    used = f"{size(sim.get('used_bytes'))} since {since}"
    if sim.get("plan_bytes") is None:
        return used
    expected = f"{size(sim.get('expected_bytes'))} expected by {sim.get('reset')}"
    if not sim.get("sure"):
        expected = f"new on {sim.get('reset')}"
    return f"{size(sim.get('used_bytes'))} of {size(sim['plan_bytes'])} since {since}, {expected}"


class Lines:
    """What is new since the status before: one line a second of state, one a minute of health, one for each event, each finished run
    and each thing that goes wrong."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._finished: set[str] = set()
        self._second: int | None = None
        self._minute: int | None = None
        self._wrong: set[str] = set()

    def of(self, status: dict[str, Any]) -> list[str]:
        """The lines that ``status`` brings; none when nothing is new."""
        lines: list[str] = []
        events = status.get("events") or []
        lines += [event_line(event) for event in events if event not in self._events]
        self._events = list(events)
        finished = status.get("finished") or []
        now = clock(status.get("utc_ns"))
        lines += [f"{now} run     {finished_line(run)}" for run in finished if run.get("id") not in self._finished]
        self._finished = {str(run.get("id")) for run in finished}
        wrong = {re.sub("[0-9]+", "#", str(text)): text for text in status.get("wrong") or []}  # durations grow
        lines += [f"{now} wrong   {text}" for kind, text in wrong.items() if kind not in self._wrong]
        self._wrong = set(wrong)
        second = int(status.get("uptime_s") or 0)
        if second // 60 != self._minute and (line := health_line(status)):
            self._minute = second // 60
            lines.append(f"{now} machine {line}")
        if second != self._second:
            self._second = second
            lines.append(state_line(status))
        return lines


def state_line(status: dict[str, Any]) -> str:
    """Radio of every modem, movement, the run, the spool."""
    parts = [clock(status.get("utc_ns")), "moving" if status.get("mobile") else "still "]
    for path, modem in (status.get("modems") or {}).items():
        level = f"{number(modem.get('rsrp_dbm'))} dBm SINR {number(modem.get('sinr_db'))}"
        service = modem.get("state") in ("connected", "idle", "unknown")
        parts.append(f"{path}/{modem.get('operator')} {level if service else radio_words(modem)} {cell(modem)}")
    runs = (status.get("run") or {}).get("runs", [])
    parts += [f"{kind_words(run)} {run['path']} {rate(run.get('goodput_bit_per_s'))}{_shares(run)}" for run in runs]
    parts += [words for run in runs if (words := phase_words(run.get("phase")))]
    if newest := _round_trips(status):
        parts.append(f"round trip {newest}")
    spool = status.get("spool") or {}
    parts.append(f"records {spool.get('made', 0)}, {spool.get('pending', 0)} waiting")
    if status.get("trouble"):
        parts.append(f"! {status['trouble']}")
    return " | ".join(parts)


def _shares(run: dict[str, Any]) -> str:
    """As `` (a 65 % 48 ms, b 35 % 512 ms)``; empty where a run has one subflow."""
    subflows = run.get("subflows") or []
    if len(subflows) < 2:
        return ""
    shares = (f"{s.get('path')} {percent(s.get('share'))} {number(s.get('rtt_ms'), 0, ' ms')}" for s in subflows)
    return f" ({', '.join(shares)})"


def event_line(event: dict[str, Any]) -> str:
    where = f"{event['path']}/{event['operator']} " if event.get("path") else ""
    words = event_meaning(event.get("kind"), event.get("state")).words
    return f"{clock(event.get('utc_ns'))} event   {where}{words} {event_detail(event)}".rstrip()


def _round_trips(status: dict[str, Any]) -> str:
    """The newest of each path, as ``a 41 ms, b lost``; empty when they are off."""
    found = []
    for path, last in (status.get("round_trips") or {}).items():
        word = meaning("round_trip", "outcome", last.get("outcome")).words
        found.append(f"{path} {number(last.get('rtt_ms'), 0, ' ms') if last.get('rtt_ms') is not None else word}")
    return ", ".join(found)


def finished_line(run: dict[str, Any]) -> str:
    figures = (
        f"{rate(run.get('goodput_bit_per_s'))}, {size(run.get('bytes'))} in {number(run.get('duration_s'), 1, ' s')}"
    )
    notes = ", fell back to TCP" if run.get("fallback") else ""
    if not run.get("ok"):
        notes += f", failed: {run.get('failure') or 'see its manifest'}"
    return f"{kind_words(run)} over {run.get('path')} ({run.get('pairing')}): {figures}{notes}"


def finished_table(runs: Sequence[dict[str, Any]]) -> str:
    rows = [("RUN", "KIND", "PATH", "GOODPUT", "BYTES", "TIME", "")]
    for run in runs:
        note = "ok" if run.get("ok") else str(run.get("failure") or "failed")
        note += ", fell back to TCP" if run.get("fallback") else ""
        figures = (rate(run.get("goodput_bit_per_s")), size(run.get("bytes")), number(run.get("duration_s"), 1, " s"))
        rows.append((str(run.get("id")), kind_words(run), str(run.get("path")), *figures, note))
    return "\n".join(columns(rows))


def traces_line(traces: dict[str, Any]) -> str:
    """Files of runs on their way to the server."""
    waiting = f"{traces.get('waiting', 0)} waiting ({size(traces.get('waiting_bytes'))})"
    kept = f"{traces.get('kept', 0)} that the server has are kept ({size(traces.get('kept_bytes'))})"
    aside = f", {traces['aside']} that cannot go" if traces.get("aside") else ""
    return f"traces: {waiting}{aside}, {kept}; {traces.get('said')}"


def summary(status: dict[str, Any]) -> str:
    """The whole status in a few lines, for ``tandem status``."""
    movement = f"moving for {duration(status.get('mobile_since_s'))}" if status.get("mobile") else "still"
    if speed := status.get("speed_class"):
        movement += f" ({meaning('health', 'speed_class', speed).words})"
    polls, spool = status.get("polls") or {}, status.get("spool") or {}
    lines = [f"{status.get('probe')}: up {duration(status.get('uptime_s'))}, {movement}"]
    for path, modem in (status.get("modems") or {}).items():
        who = modem.get("model") or modem.get("driver") or "modem not identified"
        levels = f"RSRP {number(modem.get('rsrp_dbm'), 0, ' dBm')}, SINR {number(modem.get('sinr_db'), 0, ' dB')}"
        lines.append(f"path {path}: {modem.get('operator')}, {who}, {radio_words(modem)}, {levels}, {cell(modem)}")
    run = status.get("run")
    if run:
        lines.append(
            f"running: {run.get('pairing')} pair {run.get('pair')}, run {run.get('number')} of {run.get('of')}"
        )
        lines += [f"  {kind_words(r)}: {words}" for r in run.get("runs", []) if (words := phase_words(r.get("phase")))]
    spent = status.get("spent_today_bytes") or {}
    if spent:
        limits = status.get("day_limit_bytes") or {}
        of = {path: "" if limit is None else f" of {size(limit)}" for path, limit in limits.items()}
        used = (f"{path} {size(count)}{of.get(path, '')}" for path, count in spent.items())
        lines.append(f"today (UTC): {', '.join(used)}")
    if status.get("radio_only"):
        lines += textwrap.wrap(f"only the radio is measured: {status['radio_only']}", WIDTH, subsequent_indent="  ")
    if newest := _round_trips(status):
        lines.append(f"round trips: {newest}")
    lines.append(f"polls: {polls.get('made', 0)}, of these {polls.get('late', 0)} late")
    lines.append(
        f"records: {spool.get('made', 0)} made, {spool.get('sent', 0)} sent, {spool.get('pending', 0)} waiting, "
        f"{spool.get('rejected', 0)} rejected; captures: {size(status.get('captures_bytes'))}"
    )
    if isinstance(status.get("traces"), dict):
        lines.append(traces_line(status["traces"]))
        lines += textwrap.wrap(f"  {status['traces'].get('intended') or ''}", WIDTH, subsequent_indent="  ")
    if status.get("clock"):
        lines.append(f"clock: {clock_words(status['clock'])}")
    if line := health_line(status, WIDTH - len("machine: ")):
        lines.append(f"machine: {line}")
    lines += sim_lines(status)
    if line := software_line(status):
        lines.append(line)
    lines += wrong_lines(status)
    if status.get("trouble") and "wrong" not in status:
        lines.append(f"trouble: {status['trouble']}")
    if status.get("finished"):
        lines += ["", finished_table(status["finished"])]
    return "\n".join(lines)
