"""The probe's health as short parts, and as lines of at most 80 columns. Pure: the status object in, text out; what is not known is left
out."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from tandem.cli.view.figures import duration, number, percent, size
from tandem.schema.grades import SHARES, Tone, disk_tone, scale, tone_of

WIDTH = 80


@dataclass(frozen=True, slots=True)
class Part:
    """One thing: ``words`` for people, ``tone`` how it is."""

    words: str
    tone: Tone = "quiet"

    @property
    def unwell(self) -> bool:
        """It is worth a look."""
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
    """Each SIM in one line."""
    return [f"SIM {path}: {_sim(told)}" for path, told in (status.get("sims") or {}).items()]


def wrong_lines(status: dict[str, Any]) -> list[str]:
    """What is wrong, wrapped; one line that says so when nothing is. None when the collector is older than this view."""
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
    """Versions in one line."""
    told = status.get("software") or {}
    words = [
        f"tandem {told['tandem']}" if told.get("tandem") else "",
        f"kernel {told['kernel']}" if told.get("kernel") else "",
        f"firmware {told['firmware']}" if told.get("firmware") else "",
        str(told.get("machine") or ""),
    ]
    return textwrap.shorten(", ".join(word for word in words if word), WIDTH, placeholder=" …")


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
    for path, told in sims.items():
        plan, used, expected = (told.get(name) for name in ("plan_bytes", "used_bytes", "expected_bytes"))
        if not plan or not isinstance(used, int):
            continue
        forecast = expected if told.get("sure") and isinstance(expected, int) else used
        tone = SHARES["plan"].tone(forecast / plan)
        words = f"{percent(forecast / plan)} forecast" if tone != "good" and forecast > used else percent(used / plan)
        parts.append(Part(f"SIM {path} {words}", tone))
    return parts


def _sim(told: dict[str, Any]) -> str:
    since = told.get("counted_from") or told.get("since")
    used = f"{size(told.get('used_bytes'))} since {since}"
    if told.get("plan_bytes") is None:
        return used
    expected = f"{size(told.get('expected_bytes'))} expected by {told.get('reset')}"
    if not told.get("sure"):
        expected = f"new on {told.get('reset')}"
    return f"{size(told.get('used_bytes'))} of {size(told['plan_bytes'])} since {since}, {expected}"
