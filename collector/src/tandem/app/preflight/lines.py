"""A line of the check, and which of the failed ones are the causes of others. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

State = Literal["pass", "fail", "follows", "skipped", "accepted"]
"""``follows``: it fails because of another line that fails. ``skipped``: there is nothing to look at here, and why is said.
``accepted``: it fails, and whoever asked said beforehand that it may."""

Name = tuple[str, str | None]
"""A line's, and its path's where it is of a path."""

TITLES = {
    "collector": "collector",
    "modem": "modem",
    "sim": "SIM",
    "registered": "registered",
    "levels": "levels",
    "path": "path",
    "data": "data",
    "mptcp": "Multipath TCP",
    "clock": "clock",
    "gps": "GPS",
    "power": "power",
    "disk": "disk",
    "spool": "spool",
    "uploads": "uploads",
    "player": "player",
    "server": "server",
    "metrics": "TCP metrics",
    "token": "token",
    "budget": "budget",
    "version": "version",
    "tunnel": "tunnel",
}
"""Every line there is, in the order in which they are shown, and what people call it."""

_LONG_NUMBER = re.compile(r"[0-9A-Fa-f]{14,}")
_IPV4 = re.compile(r"(?<![0-9.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9.])")
_WORD = re.compile(r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Line:
    """``finding``: what was seen; ``hint``: what to do, None where nothing is. ``causes``: groups of other lines, any of which, when all
    of its lines fail, is why this one does. ``because``: that group, once ``settled``."""

    name: str
    path: str | None
    state: State
    finding: str
    hint: str | None = None
    causes: tuple[tuple[Name, ...], ...] = ()
    because: tuple[Name, ...] = ()

    @property
    def key(self) -> Name:
        return self.name, self.path

    @property
    def label(self) -> str:
        """As ``--accept`` takes it: ``modem:a``, ``gps``."""
        return self.name if self.path is None else f"{self.name}:{self.path}"

    def as_json(self) -> dict[str, Any]:
        return {
            "line": self.name,
            "path": self.path,
            "state": self.state,
            "finding": self.finding,
            "mend": self.hint,
            "because": [label(name) for name in self.because],
        }


def label(name: Name) -> str:
    """A line's name as ``--accept`` takes it."""
    return name[0] if name[1] is None else f"{name[0]}:{name[1]}"


def passes(name: str, finding: str, path: str | None = None) -> Line:
    return Line(name, path, "pass", said(finding))


def fails(name: str, finding: str, hint: str, path: str | None = None, causes: Sequence[Sequence[Name]] = ()) -> Line:
    """It is not; ``causes``: see ``Line``."""
    return Line(name, path, "fail", said(finding), said(hint), tuple(tuple(group) for group in causes))


def skipped(name: str, why: str, path: str | None = None) -> Line:
    return Line(name, path, "skipped", said(why))


def settled(lines: Sequence[Line], accepted: Collection[str] = ()) -> list[Line]:
    """The lines in their order, those that fail because of others as ``follows``, those whose label is ``accepted`` as that.

    A cause that is itself accepted is still a cause: without a fix nothing else fails for it, and who accepts a dead path accepts
    what it carries nothing of. Two lines that name each other as causes both stay failed.
    """
    by_key = {line.key: line for line in lines}
    failed = {key for key, line in by_key.items() if line.state == "fail"}

    def why(line: Line) -> tuple[Name, ...]:
        for group in line.causes:
            if group and all(key in failed and not _blames(by_key[key], line.key, by_key, failed) for key in group):
                return group
        return ()

    order = list(TITLES)
    found: list[Line] = []
    for line in sorted(lines, key=lambda one: order.index(one.name)):
        if line.state != "fail":
            found.append(line)
            continue
        because = why(line)
        if line.label in accepted or (because and all(label(key) in accepted for key in because)):
            found.append(replace(line, state="accepted", because=because))
        else:
            found.append(replace(line, state="follows" if because else "fail", because=because))
    return found


def _blames(line: Line, other: Name, by_key: dict[Name, Line], failed: set[Name]) -> bool:
    """Whether ``line`` is caused by ``other``, through any number of lines."""
    seen: set[Name] = set()
    waiting = [line]
    while waiting:
        for group in waiting.pop().causes:
            if not group or not all(key in failed for key in group):
                continue
            if other in group:
                return True
            waiting += [by_key[key] for key in group if key not in seen]
            seen |= set(group)
    return False


def ready(lines: Sequence[Line]) -> bool:
    return not any(line.state in ("fail", "follows") for line in lines)


def said(text: str) -> str:
    """One line for people, on a sheet that goes with the kit: without addresses, and without numbers long enough to be a SIM's, a
    subscriber's or a modem's."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    plain = _WORD.sub(lambda m: "ADDRESS" if _is_ipv6(m[0]) else m[0], plain)
    return _LONG_NUMBER.sub("NUMBER", _IPV4.sub("ADDRESS", plain))[:_LONGEST]


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text.rstrip(".:") if not text.endswith("::") else text)
    except ValueError:
        return False
    return True
