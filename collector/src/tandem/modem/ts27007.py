"""Decoding of the standard's own commands (3GPP TS 27.007), shared by the families. Pure functions of result lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from tandem.at.dialogue import Response
from tandem.at.grammar import prefix, values
from tandem.modem import scales as bins
from tandem.modem.base import Reading
from tandem.modem.scales import area_code, at, cell_identity, code, hexadecimal, plmn, whole

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


# ---------------------------------------------------------------------------------------------------------------------
# Decoding of the standard's own commands (3GPP TS 27.007), shared by the families. Pure functions of result lines.


def all_lines(responses: Iterable[Response]) -> list[str]:
    """The result lines of a poll in order."""
    return [line for response in responses for line in response.lines]


def last_values(lines: Sequence[str], name: str) -> tuple[str, ...]:
    """The values of the last line with this prefix: a code that came unasked in between is older. Empty when there is none."""
    for line in reversed(lines):
        if prefix(line) == name:
            return values(line)
    return ()


def rssi(lines: Sequence[str]) -> tuple[int | None, float | None]:
    """``+CSQ: <rssi>,<ber>``, clause 8.5: the code 0 to 31 and −113 + 2·code dBm; 99 is not known."""
    found = code(at(last_values(lines, "+CSQ"), 0), 0, 31)
    return found, bins.rssi_dbm(found)


@dataclass(frozen=True)
class Levels:
    """``+CESQ``: codes, and the lower edges of their bins in dBm and dB. ``rxlev`` is 2G's RSSI, ``rscp`` and ``ecno`` are 3G's.

    ``rat_hint``: ``GSM``, ``WCDMA``, ``LTE``, ``NR-NSA`` (LTE and NR) or ``NR-SA`` (NR alone) by which codes are known.
    """

    rat_hint: str | None = None
    rxlev_code: int | None = None
    rxlev_dbm: float | None = None
    rscp_code: int | None = None
    rscp_dbm: float | None = None
    ecno_code: int | None = None
    ecno_db: float | None = None
    rsrp_code: int | None = None
    rsrp_dbm: float | None = None
    rsrq_code: int | None = None
    rsrq_db: float | None = None
    nr_rsrp_code: int | None = None
    nr_rsrp_dbm: float | None = None
    nr_rsrq_code: int | None = None
    nr_rsrq_db: float | None = None
    nr_sinr_code: int | None = None
    nr_sinr_db: float | None = None


def levels(lines: Sequence[str]) -> Levels:
    """``+CESQ: <rxlev>,<ber>,<rscp>,<ecno>,<rsrq>,<rsrp>[,<ss_rsrq>,<ss_rsrp>,<ss_sinr>]``, clause 8.69.

    2G: −111 + code dBm (0 to 63; 99 is not known). 3G: RSCP −121 + code (0 to 96), Ec/N0 −24.5 + code/2 (0 to 49). LTE: RSRP
    −141 + code (0 to 97), RSRQ −20 + code/2 (0 to 34), no SINR. NR: −157 + code (0 to 126), (code − 87)/2 (0 to 126), SINR
    (code − 47)/2 (0 to 127). 255 is not known; any other number is kept as the code, without a quantity when it is in no table.
    """
    found = last_values(lines, "+CESQ")
    rxlev = bins.as_read(at(found, 0), 99)
    rscp, ecno, rsrq, rsrp, nr_rsrq, nr_rsrp, nr_sinr = (bins.as_read(at(found, i)) for i in range(2, 9))
    gsm, wcdma = bins.rxlev_dbm(rxlev), (bins.rscp_dbm(rscp), bins.ecno_db(ecno))
    lte, nr = (bins.rsrq_db(rsrq), bins.rsrp_dbm(rsrp)), bins.ss_rsrp_dbm(nr_rsrp)
    return Levels(
        _hint(gsm is not None, wcdma != (None, None), lte != (None, None), nr is not None),
        rxlev, bins.rxlev_dbm(rxlev),
        rscp, bins.rscp_dbm(rscp),
        ecno, bins.ecno_db(ecno),
        rsrp, bins.rsrp_dbm(rsrp),
        rsrq, bins.rsrq_db(rsrq),
        nr_rsrp, bins.ss_rsrp_dbm(nr_rsrp),
        nr_rsrq, bins.ss_rsrq_db(nr_rsrq),
        nr_sinr, bins.ss_sinr_db(nr_sinr),
    )  # fmt: skip


def _hint(gsm: bool, wcdma: bool, lte: bool, nr: bool) -> str | None:
    """The youngest of the technologies that are told; LTE beside NR is the anchor of a NSA cell."""
    if nr:
        return "NR-NSA" if lte else "NR-SA"
    return "LTE" if lte else "WCDMA" if wcdma else "GSM" if gsm else None


def operator(lines: Sequence[str]) -> tuple[str | None, str | None]:
    """``+COPS: <mode>[,<format>,<oper>[,<AcT>]]``, clause 7.3: PLMN (numeric format only) and radio technology."""
    found = last_values(lines, "+COPS")
    network = at(found, 2) if at(found, 1) == "2" else ""
    act = at(found, 3)
    # 8 is EC-GSM-IoT, which hardly anybody has; makers of Cat-M modems print it for theirs. A registration tells more.
    return plmn(network[:3], network[3:]), None if act == "8" else technology(act)


def standard(lines: Sequence[str], rat: str | None = None) -> Reading:
    """What a modem tells by the standard's commands alone: any of +CSQ, +CESQ, +CREG, +CGREG, +CEREG, +C5GREG, +COPS.

    ``rat``: the technology when the modem told it by a command of its own. Else it is the one of the registration, then
    +COPS's, then the one whose levels +CESQ knows. Neither LTE's SINR nor PCI, EARFCN, band and RRC state are told.
    """
    told = levels(lines)
    registered = best(lines, rat)
    network, network_rat = operator(lines)
    found = rat or registered.rat or network_rat or told.rat_hint
    # An EN-DC modem is registered with its LTE anchor, and many say just that: +COPS or the NR codes of +CESQ tell more.
    if found == "LTE" and "NR-NSA" in (registered.rat, network_rat, told.rat_hint):
        found = "NR-NSA"
    if found == "LTE" and told.rat_hint == "NR-SA" and told.nr_rsrp_dbm is not None:
        found = "NR-NSA"
    reading = Reading(rat=found, plmn=network, state=unregistered_state(lines, found))
    return _with_levels(_with_cell(reading, registered), told, *rssi(lines))


def _with_cell(reading: Reading, registered: Registration) -> Reading:
    """Ids under the names of the technology: LAC and CI of 2G and 3G, else TAC and ECI."""
    if registered.rat in ("GSM", "WCDMA") and reading.rat == registered.rat:
        return replace(reading, lac=registered.lac, ci=registered.ci)
    if reading.rat is None:
        return replace(reading, lac=registered.lac, ci=registered.ci, tac=registered.tac, eci=registered.eci)
    if (of_lte(reading.rat) and of_lte(registered.rat)) or reading.rat == registered.rat:
        return replace(reading, tac=registered.tac, eci=registered.eci)
    return reading


def _with_levels(reading: Reading, told: Levels, rssi_code: int | None, rssi_dbm: float | None) -> Reading:
    """Levels that belong to the technology: 2G has no RSRP, a standalone NR cell's are the plain ones."""
    if rssi_code is None and reading.rat == "GSM":
        rssi_code, rssi_dbm = told.rxlev_code, told.rxlev_dbm
    reading = replace(reading, rssi_code=rssi_code, rssi_dbm=rssi_dbm)
    if reading.rat == "WCDMA":
        return replace(
            reading,
            rscp_code=told.rscp_code, rscp_dbm=told.rscp_dbm, ecno_code=told.ecno_code, ecno_db=told.ecno_db,
        )  # fmt: skip
    if reading.rat == "NR-SA":
        return replace(
            reading,
            rsrp_code=told.nr_rsrp_code, rsrp_dbm=told.nr_rsrp_dbm,
            rsrq_code=told.nr_rsrq_code, rsrq_db=told.nr_rsrq_db,
            sinr_code=told.nr_sinr_code, sinr_db=told.nr_sinr_db,
        )  # fmt: skip
    if of_lte(reading.rat):
        reading = replace(
            reading,
            rsrp_code=told.rsrp_code, rsrp_dbm=told.rsrp_dbm, rsrq_code=told.rsrq_code, rsrq_db=told.rsrq_db,
        )  # fmt: skip
    if reading.rat == "NR-NSA":
        reading = replace(
            reading,
            nr_rsrp_code=told.nr_rsrp_code, nr_rsrp_dbm=told.nr_rsrp_dbm,
            nr_rsrq_code=told.nr_rsrq_code, nr_rsrq_db=told.nr_rsrq_db,
            nr_sinr_code=told.nr_sinr_code, nr_sinr_db=told.nr_sinr_db,
        )  # fmt: skip
    return reading


_CODED = {
    "rssi_dbm": "rssi_code", "rsrp_dbm": "rsrp_code", "rsrq_db": "rsrq_code", "sinr_db": "sinr_code",
    "rscp_dbm": "rscp_code", "ecno_db": "ecno_code",
    "nr_rsrp_dbm": "nr_rsrp_code", "nr_rsrq_db": "nr_rsrq_code", "nr_sinr_db": "nr_sinr_code",
}  # fmt: skip
"""A quantity and the code it came from: they are filled together or not at all."""


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
    no technology, cell, network or level. What the family told stays, where it is of its technology (``own``); only an LTE cell
    may turn out to be an NSA anchor.
    """
    found = standard(lines, reading.rat)
    new: dict[str, Any] = {"rat": found.rat}
    if reading.state == "unknown":
        new["state"] = found.state
    for name in ("plmn", "tac", "eci", "lac", "ci"):
        if getattr(reading, name) is None:
            new[name] = getattr(found, name)
    for name, coded in _CODED.items():
        if getattr(reading, name) is None and getattr(reading, coded) is None:
            new |= {name: getattr(found, name), coded: getattr(found, coded)}
    return own(replace(reading, **new))
