"""Registration by the standard: +CREG, +CGREG, +CEREG, +C5GREG (3GPP TS 27.007 clauses 7.2, 10.1.20, 10.1.22, 10.1.47)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.grammar import prefix, values
from tandem.modem.scalars import area_code, at, cell_identity, hexadecimal, whole

NAMES = ("+C5GREG", "+CEREG", "+CGREG", "+CREG")
"""Youngest first: a modem that is registered in several domains is served by the youngest technology among them."""

ACCESS_TECHNOLOGIES = {
    0: "GSM", 1: "GSM", 3: "GSM", 8: "GSM", 2: "WCDMA", 4: "WCDMA", 5: "WCDMA", 6: "WCDMA",
    7: "LTE", 9: "NB-IOT", 10: "LTE", 11: "NR-SA", 12: "NR-SA", 13: "NR-NSA",
}  # fmt: skip
"""<AcT> of +COPS and the registrations. 8 is EC-GSM-IoT, 9 E-UTRA's NB-S1 mode, 10 E-UTRA on a 5G core, 12 NG-RAN, 13 dual
connectivity of E-UTRA and NR."""

_REGISTERED = (1, 5, 6, 7, 9, 10)
_STATES = {0: "no_service", 2: "searching", 3: "limited", 4: "no_service", 8: "limited", 11: "limited"}
"""<stat> where it says that there is no service. Registered says nothing of RRC. 8 is emergency calls only."""

_SEVERITY = ("limited", "searching", "no_service")


def of_lte(rat: str | None) -> bool:
    """Whether the plain quantities of this technology are LTE's."""
    return rat in ("LTE", "NR-NSA", "CAT-M", "NB-IOT")


def technology(act: str) -> str | None:
    """The technology of an <AcT>; None when it is not told."""
    found = whole(act)
    return None if found is None else ACCESS_TECHNOLOGIES.get(found)


@dataclass(frozen=True)
class Registration:
    """One answer. ``state`` is None when the modem is registered: RRC is not told here. Ids under the names of ``rat``."""

    known: bool = False
    registered: bool = False
    state: str | None = None
    rat: str | None = None
    tac: int | None = None
    eci: int | None = None
    lac: int | None = None
    ci: int | None = None


def registration(lines: Sequence[str], name: str = "+CEREG") -> Registration:
    """``+CEREG: [<n>,]<stat>[,<tac>[,<rac>],<ci>[,<AcT>…]]`` and its like; the last line of that name counts.

    Ids are hexadecimal, in quotes or not. The unsolicited form has no <n>. A RAC of at most two digits may stand between area
    and cell. Without <AcT>, +CEREG means LTE and +C5GREG NR; +CREG and +CGREG name a location area and its cell then, of no
    technology. Ids of nothing but F are none.
    """
    line = next((one for one in reversed(lines) if prefix(one) == name), None)
    if line is None:
        return Registration()
    found = values(line)
    if not _unasked(line, found):
        found = found[1:]
    stat = whole(at(found, 0))
    if stat is None:
        return Registration()
    if stat not in _REGISTERED:
        return Registration(True, False, _STATES.get(stat))
    ids = list(found[1:])
    if len(ids) >= 3 and 1 <= len(ids[1]) <= 2 and len(ids[2]) > 2:
        del ids[1]
    rat = technology(at(ids, 2)) or {"+CEREG": "LTE", "+C5GREG": "NR-SA"}.get(name)
    if rat == "GSM" and (name == "+CEREG" or (at(ids, 2) == "8" and (hexadecimal(at(ids, 1)) or 0) > 0xFFFF)):
        rat = "CAT-M"  # no GSM is in an evolved packet system, nor has it so wide cells: makers of Cat-M modems print 8 for it
    wide = rat == "NR-SA" or at(ids, 2) == "10"
    area = area_code(hexadecimal(at(ids, 0)), 0xFFFFFF if wide else 0xFFFF)
    cell = cell_identity(hexadecimal(at(ids, 1)), rat)
    if (area is None and cell == 0) or re.fullmatch("[Ff]{4,}", at(ids, 1)):
        cell = None
    if rat in ("GSM", "WCDMA", None):
        return Registration(True, True, None, rat, lac=area, ci=cell)
    return Registration(True, True, None, rat, area, cell)


def _unasked(line: str, found: Sequence[str]) -> bool:
    """Whether the first value is <stat> and not <n>, by how many values there are and what they look like.

    After <n> comes <stat>, a bare number up to 11, which some pad with zeros as they pad <n>. An area without quotes may look
    like one: then the value behind it is a cell, which is longer than any area; or it is 0 or 1, and <AcT> stands where a cell
    would be behind <n>, <stat> and an area.
    """
    raw = [value.strip() for value in line.partition(":")[2].split(",")]
    padding = "0*" if len(found) >= 2 and len(raw[0]) == len(raw[1]) and raw[0].startswith("0") else ""
    if len(found) < 2 or not re.fullmatch(rf"{padding}(?:[0-9]|1[01])", raw[1]):
        return True
    if len(found) == 2 or raw[2].startswith('"'):
        return False
    act_is_fourth = len(raw) >= 4 and re.fullmatch(r"[0-9]|1[0-3]", raw[3]) is not None
    return len(raw[2]) > 6 or (raw[0] in ("0", "1") and bool(raw[2]) and act_is_fourth)


def best(lines: Sequence[str], rat: str | None = None) -> Registration:
    """The registration that speaks of the serving cell: of technology ``rat`` when that is known; one that names a cell
    rather than one that does not; then the youngest."""
    told = [one for one in (registration(lines, name) for name in NAMES) if one.registered]
    same = [one for one in told if rat is None or one.rat == rat or (of_lte(rat) and of_lte(one.rat))]
    same.sort(key=lambda one: (one.eci is None and one.ci is None, one.rat is None))
    return same[0] if same else Registration()


def unregistered_state(lines: Sequence[str], rat: str | None) -> str:
    """The state that the registrations tell when none is registered; ``unknown`` when one is, or none speaks of ``rat``.

    Served elsewhere, "not registered" says only that this is not LTE or not 5G.
    """
    found: set[str | None] = set()
    for name in NAMES:
        told = registration(lines, name)
        if told.registered:
            return "unknown"
        if told.known and (
            rat is None
            or (name == "+C5GREG" and rat == "NR-SA")
            or (name == "+CEREG" and of_lte(rat))
            or (name in ("+CREG", "+CGREG") and rat in ("GSM", "WCDMA"))
        ):
            found.add(told.state)
    return next((state for state in _SEVERITY if state in found), "unknown")
