"""What one direction offers at a moment, from a timeline's tick or constants, and how a running link is told otherwise. Pure."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tandem_bench.link.emulator import Constant, LinkError, Quantity

KEYS = ("down_bit_per_s", "up_bit_per_s", "rtt_ms", "buffer_down_bytes", "buffer_up_bytes", "loss_down", "loss_up")


@dataclass(frozen=True, slots=True)
class Values:
    """``delay_us`` one way; ``loss`` 0 to 1; during an outage nothing passes, and with ``dropped`` nothing waits either."""

    bit_per_s: float
    delay_us: float
    buffer_bytes: int
    loss: float
    outage: bool = False
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class Tick:
    """From ``t_s`` since the epoch on."""

    t_s: float
    down: Values
    up: Values


def of_constant(constant: Constant) -> list[Tick]:
    """One tick for ever."""
    delay_us = constant.rtt_ms * 500
    return [
        Tick(
            0.0,
            Values(constant.down_bit_per_s, delay_us, constant.buffer_down_bytes, constant.loss_down),
            Values(constant.up_bit_per_s, delay_us, constant.buffer_up_bytes, constant.loss_up),
        )
    ]


def of_timeline(path: Path) -> list[Tick]:
    """The ticks of a ``tandem-timeline/1``. LinkError with file, line and mend for one that is none."""

    def wrong(number: int, what: str) -> LinkError:
        return LinkError(f"{path}:{number}: {what}; hint: give a timeline that tandem-bench wrote")

    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LinkError(f"{path}: {error}") from None
    ticks: list[Tick] = []
    for number, line in enumerate(lines, start=1):
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            raise wrong(number, "not JSON") from None
        if not isinstance(told, dict):
            raise wrong(number, "no object")
        if number == 1:
            if told.get("format") != "tandem-timeline/1":
                raise wrong(1, "no header of tandem-timeline/1")
            continue
        for key in ("t_s", *KEYS):
            if not _is_number(told.get(key)):
                raise wrong(number, f"{key} is no number from 0")
        if ticks and told["t_s"] <= ticks[-1].t_s:
            raise wrong(number, "t_s does not grow")
        ticks.append(Tick(float(told["t_s"]), _values(told, "down"), _values(told, "up")))
    if not ticks:
        raise wrong(2, "no tick")
    return ticks


def _values(told: dict[str, Any], side: str) -> Values:
    return Values(
        float(told[f"{side}_bit_per_s"]),
        told["rtt_ms"] * 500,
        int(told[f"buffer_{side}_bytes"]),
        min(1.0, float(told[f"loss_{side}"])),
        told.get("outage") is True,
        told.get("queue") == "dropped",
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


class Overrides:
    """What was set at run time holds until it is cleared. Ranges as ``tandem-link`` has them; LinkError outside."""

    _RANGES: dict[str, tuple[float, float, str]] = {  # noqa: RUF012  never changed
        "rate": (0, 1e11, "bit/s"),
        "delay_us": (0, 6e7, "µs"),
        "buffer_bytes": (0, 1e9, "bytes"),
        "loss": (0, 1, "(a share)"),
    }
    _WORDS: dict[str, dict[str, bool]] = {  # noqa: RUF012  never changed
        "outage": {"on": True, "off": False},
        "queue": {"dropped": True, "kept": False},
    }
    _FIELDS: dict[str, str] = {  # noqa: RUF012  never changed
        "rate": "bit_per_s", "delay_us": "delay_us", "buffer_bytes": "buffer_bytes", "loss": "loss", "outage": "outage",
        "queue": "dropped",
    }  # fmt: skip

    def __init__(self) -> None:
        self._set: dict[str, Any] = {}

    def set(self, quantity: Quantity, value: float | str) -> None:
        """Let it be so."""
        if quantity in self._WORDS:
            words = self._WORDS[quantity]
            if value not in words:
                raise LinkError(f"{quantity}: {value!r} is none of {', '.join(words)}")
            self._set[self._FIELDS[quantity]] = words[str(value)]
            return
        low, high, unit = self._RANGES[quantity]
        number = float(value)
        if not low <= number <= high:
            raise LinkError(f"{quantity}: {value} is not within {low:g} to {high:g} {unit}")
        self._set[self._FIELDS[quantity]] = round(number) if quantity == "buffer_bytes" else number

    def clear(self, quantity: Quantity) -> None:
        """Let the timeline speak again."""
        self._set.pop(self._FIELDS[quantity], None)

    def over(self, values: Values) -> Values:
        """What holds."""
        return replace(values, **self._set)
