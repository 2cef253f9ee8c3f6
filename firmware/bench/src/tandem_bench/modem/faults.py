"""Faults on demand: what may be asked of a modem, as one JSON object, or as a schedule of such."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem_bench import UsageError
from tandem_bench.modem.dialogue import Sim

KINDS = ("hang", "garbage", "disappear", "wrong_sim", "cme_error")
SIMS: dict[str, Sim] = {"pin": "pin", "absent": "absent", "foreign": "foreign"}
LONGEST_S = 3600.0


class FaultError(UsageError):
    """No fault, or one that makes no sense; the message is one line."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: ``kind`` for ``seconds``.

    hang: it takes bytes and says nothing; with ``cured_by``, until it is sent that text (``AT+CFUN``). garbage: it sends
    nothing but noise. disappear: the port is closed, and comes back under another number with the settings as delivered.
    wrong_sim: ``how`` is ``pin`` (locked), ``absent`` or ``foreign`` (of another operator, refused by the network).
    cme_error: every command fails with ``code`` (3GPP TS 27.007 9.2); a bare AT, which holds no command, still gets its OK.
    """

    kind: str
    seconds: float
    how: Sim = "pin"
    code: int = 100
    cured_by: str = ""


def parse(entry: object) -> Fault:
    """The fault in a decoded JSON object; FaultError when a key is unknown, missing or out of range."""
    if not isinstance(entry, dict):
        raise FaultError("a fault is a JSON object")
    unknown = sorted(set(entry) - {"fault", "seconds", "how", "code", "cured_by"})
    if unknown:
        raise FaultError(f"unknown key {unknown[0]!r}")
    kind = entry.get("fault")
    if kind not in KINDS:
        raise FaultError(f"fault is {kind!r}; known: {', '.join(KINDS)}")
    seconds = _seconds(entry, "seconds", LONGEST_S)
    how, code = entry.get("how", "pin"), entry.get("code", 100)
    if not isinstance(how, str) or how not in SIMS:
        raise FaultError(f"how is {how!r}; known: {', '.join(SIMS)}")
    if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code <= 999:
        raise FaultError(f"code is {code!r}, not a number from 0 to 999")
    cured_by = entry.get("cured_by", "")
    if not isinstance(cured_by, str) or not cured_by.isascii():
        raise FaultError(f"cured_by is {cured_by!r}, not a command")
    return Fault(str(kind), seconds, SIMS[how], code, cured_by.upper())


def _seconds(entry: dict[str, Any], key: str, top: float) -> float:
    value = entry.get(key)
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or not 0 <= value <= top
    ):
        raise FaultError(f"{key} is {value!r}, not seconds from 0 to {top:g}")
    return float(value)


def read_schedule(path: Path) -> list[tuple[float, Fault]]:
    """Faults with their times (seconds since the scenario's start) from JSON lines; FaultError names file and line."""
    schedule = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise FaultError(f"{path}: {what}; give JSON lines") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line)
            if not isinstance(entry, dict):
                raise FaultError("a fault is a JSON object")
            t_s = _seconds(entry, "t_s", 1e6)
            schedule.append((t_s, parse({k: v for k, v in entry.items() if k != "t_s"})))
        except FaultError as fault:
            raise FaultError(f"{path}:{number}: {fault}") from None
        except (ValueError, RecursionError):
            raise FaultError(f"{path}:{number}: not JSON") from None
    return schedule
