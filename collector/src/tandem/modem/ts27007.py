"""Decoding of the standard's own commands (3GPP TS 27.007), shared by the families. Pure functions of result lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from tandem.at.dialogue import Response
from tandem.at.grammar import prefix, values
from tandem.modem.base import Identity, Reading
from tandem.modem.scales import (
    CSQ,
    area_code,
    at,
    cell,
    cell_identity,
    code,
    filled,
    hexadecimal,
    plmn,
    scaled,
    whole,
    with_secondary,
)

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
    """The technology of an <AcT>; None when it is not reported."""
    found = whole(act)
    return None if found is None else ACCESS_TECHNOLOGIES.get(found)


@dataclass(frozen=True)
class Registration:
    """One answer. ``state`` is None when the modem is registered: RRC is not reported here. Ids under the names of ``rat``."""

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
    ci = cell_identity(hexadecimal(at(ids, 1)), rat)
    if (area is None and ci == 0) or re.fullmatch("[Ff]{4,}", at(ids, 1)):
        ci = None
    if rat in ("GSM", "WCDMA", None):
        return Registration(True, True, None, rat, lac=area, ci=ci)
    return Registration(True, True, None, rat, area, ci)


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
    registered = [one for one in (registration(lines, name) for name in NAMES) if one.registered]
    same = [one for one in registered if rat is None or one.rat == rat or (of_lte(rat) and of_lte(one.rat))]
    same.sort(key=lambda one: (one.eci is None and one.ci is None, one.rat is None))
    return same[0] if same else Registration()


def unregistered_state(lines: Sequence[str], rat: str | None) -> str:
    """The state that the registrations tell when none is registered; ``unknown`` when one is, or none speaks of ``rat``.

    Served elsewhere, "not registered" says only that this is not LTE or not 5G.
    """
    found: set[str | None] = set()
    for name in NAMES:
        found_here = registration(lines, name)
        if found_here.registered:
            return "unknown"
        if found_here.known and (
            rat is None
            or (name == "+C5GREG" and rat == "NR-SA")
            or (name == "+CEREG" and of_lte(rat))
            or (name in ("+CREG", "+CGREG") and rat in ("GSM", "WCDMA"))
        ):
            found.add(found_here.state)
    return next((state for state in _SEVERITY if state in found), "unknown")


def all_lines(responses: Iterable[Response]) -> list[str]:
    """The result lines of a poll in order."""
    return [line for response in responses for line in response.lines]


def rows_of(lines: Sequence[str], name: str) -> list[tuple[str, ...]]:
    """The values of each line with this prefix."""
    return [values(line) for line in lines if prefix(line) == name]


def last_values(lines: Sequence[str], name: str) -> tuple[str, ...]:
    """The values of the last line with this prefix: a code that came unasked in between is older. Empty when there is none."""
    return next(iter(reversed(rows_of(lines, name))), ())


def rssi(row: Sequence[str]) -> Reading:
    """``+CSQ: <rssi>,<ber>``, clause 8.5, and other commands' with the same code: 99 is not known."""
    found = code(at(row, 0), 0, 31)
    return Reading(rssi_code=found, rssi_dbm=scaled(found, CSQ))


def levels(lines: Sequence[str]) -> dict[str, Reading]:
    """``+CESQ: <rxlev>,<ber>,<rscp>,<ecno>,<rsrq>,<rsrp>[,<ss_rsrq>,<ss_rsrp>,<ss_sinr>]``, clause 8.69: by technology, codes and the
    lower edges of their bins. 255 (99 of 2G) is not known; any other number is kept as the code, without a quantity when it is in no
    table."""
    row = last_values(lines, "+CESQ")
    columns = {"GSM": "rssi_dbm:code", "WCDMA": "- - rscp_dbm:code ecno_db:code", "LTE": "- - - - rsrq_db:code rsrp_dbm:code",
               "NR-SA": "- - - - - - rsrq_db:code rsrp_dbm:code sinr_db:code"}  # fmt: skip
    return {rat: cell(rat, named, row) for rat, named in columns.items()}


def _hint(readings: Mapping[str, Reading]) -> str | None:
    """The youngest of the technologies whose levels are reported; LTE beside NR is the anchor of a NSA cell."""
    lte = (readings["LTE"].rsrp_dbm, readings["LTE"].rsrq_db) != (None, None)
    if readings["NR-SA"].rsrp_dbm is not None:
        return "NR-NSA" if lte else "NR-SA"
    wcdma = (readings["WCDMA"].rscp_dbm, readings["WCDMA"].ecno_db) != (None, None)
    return "LTE" if lte else "WCDMA" if wcdma else "GSM" if readings["GSM"].rssi_dbm is not None else None


def operator(lines: Sequence[str]) -> tuple[str | None, str | None]:
    """``+COPS: <mode>[,<format>,<oper>[,<AcT>]]``, clause 7.3: PLMN (numeric format only) and radio technology."""
    found = last_values(lines, "+COPS")
    network = at(found, 2) if at(found, 1) == "2" else ""
    act = at(found, 3)
    # 8 is EC-GSM-IoT, which hardly anybody has; makers of Cat-M modems print it for theirs. A registration tells more.
    return plmn(network[:3], network[3:]), None if act == "8" else technology(act)


def standard(lines: Sequence[str], rat: str | None = None) -> Reading:
    """What a modem tells by the standard's commands alone: any of +CSQ, +CESQ, +CREG, +CGREG, +CEREG, +C5GREG, +COPS.

    ``rat``: the technology when the modem reported it by a command of its own. Else it is the one of the registration, then
    +COPS's, then the one whose levels +CESQ knows. Neither LTE's SINR nor PCI, EARFCN, band and RRC state are reported.
    """
    readings = levels(lines)
    hint = _hint(readings)
    registered = best(lines, rat)
    network, network_rat = operator(lines)
    found = rat or registered.rat or network_rat or hint
    # An EN-DC modem is registered with its LTE anchor, and many say just that: +COPS or the NR codes of +CESQ tell more.
    if found == "LTE" and ("NR-NSA" in (registered.rat, network_rat, hint) or hint == "NR-SA"):
        found = "NR-NSA"
    reading = _with_cell(Reading(rat=found, plmn=network, state=unregistered_state(lines, found)), registered)
    level = readings["LTE"] if of_lte(found) else readings.get(found or "", Reading())
    if found == "NR-NSA":
        level = with_secondary(readings["LTE"], readings["NR-SA"])
    return filled(filled(reading, rssi(last_values(lines, "+CSQ"))), level)


def decode_standard(responses: Sequence[Response], identity: Identity) -> Reading:  # noqa: ARG001 - as Driver.decode
    """A family's whole ``decode`` where it has nothing but the standard's commands. A registered modem's state is ``unknown``."""
    return standard(all_lines(responses))


def _with_cell(reading: Reading, registered: Registration) -> Reading:
    """Ids under the names of the technology: LAC and CI of 2G and 3G, else TAC and ECI."""
    rats = (reading.rat, registered.rat)
    if reading.rat is not None and rats[0] != rats[1] and not all(map(of_lte, rats)):
        return reading
    ids = {name: getattr(registered, name) for name in ("lac", "ci", "tac", "eci")}
    return replace(reading, **ids)


_OLDER = frozenset({"lac", "ci"})
_WCDMA = frozenset({"rscp_dbm", "rscp_code", "ecno_db", "ecno_code"})
_YOUNGER = frozenset(
    "tac eci pci earfcn band bandwidth_mhz rsrp_dbm rsrp_code rsrq_db rsrq_code sinr_db sinr_code".split()  # noqa: SIM905 - reads better as a row
)
_NSA = frozenset(field.name for field in fields(Reading) if field.name.startswith("nr_"))
_STRANGERS = {"GSM": _WCDMA | _YOUNGER | _NSA, "WCDMA": _YOUNGER | _NSA, "NR-NSA": _OLDER | _WCDMA}
_STRANGERS |= dict.fromkeys(("LTE", "CAT-M", "NB-IOT", "NR-SA"), _OLDER | _WCDMA | _NSA)


def own(reading: Reading) -> Reading:
    """The reading without quantities that its technology does not have: two answers of one poll may be of two technologies."""
    strange: dict[str, Any] = {
        name: None for name in _STRANGERS.get(reading.rat or "", ()) if getattr(reading, name) is not None
    }
    return replace(reading, **strange) if strange else reading


def fill(reading: Reading, lines: Sequence[str]) -> Reading:
    """The reading with what it lacks taken from the standard's answers among the lines, for a family whose own command gives
    no technology, cell, network or level. What the family reported stays, where it is of its technology (``own``); only an LTE cell
    may turn out to be an NSA anchor.
    """
    found = standard(lines, reading.rat)
    state = found.state if reading.state == "unknown" else reading.state
    return own(filled(replace(reading, rat=found.rat, state=state), found))
