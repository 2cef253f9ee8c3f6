"""Decoding of the standard's own commands (3GPP TS 27.007), shared by the families. Pure functions of result lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.at.grammar import is_unsolicited, prefix, values
from tandem.modem.scalars import at, code, hexadecimal, plmn, whole


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
    return found, None if found is None else -113.0 + 2 * found


@dataclass(frozen=True)
class Levels:
    """``+CESQ``: codes, and the lower edges of their bins. ``rat_hint``: ``LTE`` or ``NR`` by which codes are known."""

    rat_hint: str | None = None
    rsrp_code: int | None = None
    rsrp_dbm: float | None = None
    rsrq_code: int | None = None
    rsrq_db: float | None = None
    sinr_code: int | None = None
    sinr_db: float | None = None


def levels(lines: Sequence[str]) -> Levels:
    """``+CESQ: <rxlev>,<ber>,<rscp>,<ecno>,<rsrq>,<rsrp>[,<ss_rsrq>,<ss_rsrp>,<ss_sinr>]``, clause 8.69.

    LTE: RSRP −141 + code (0 to 97), RSRQ −20 + code/2 (0 to 34), no SINR. NR: −157 + code (0 to 126), (code − 87)/2 (0 to
    126), SINR (code − 47)/2 (0 to 127). 255 is not known. LTE wins when both are there: it is the anchor then.
    """
    found = last_values(lines, "+CESQ")
    rsrp, rsrq = code(at(found, 5), 0, 97), code(at(found, 4), 0, 34)
    if rsrp is not None or rsrq is not None:
        return Levels(
            "LTE",
            rsrp,
            None if rsrp is None else rsrp - 141.0,
            rsrq,
            None if rsrq is None else rsrq / 2 - 20.0,
        )
    rsrp, rsrq, sinr = code(at(found, 7), 0, 126), code(at(found, 6), 0, 126), code(at(found, 8), 0, 127)
    if rsrp is None and rsrq is None:
        return Levels()
    return Levels(
        "NR",
        rsrp,
        None if rsrp is None else rsrp - 157.0,
        rsrq,
        None if rsrq is None else (rsrq - 87) / 2,
        sinr,
        None if sinr is None else (sinr - 47) / 2,
    )


ACCESS_TECHNOLOGIES = {
    0: "GSM", 1: "GSM", 3: "GSM", 8: "GSM", 2: "WCDMA", 4: "WCDMA", 5: "WCDMA", 6: "WCDMA",
    7: "LTE", 9: "LTE", 10: "LTE", 11: "NR-SA", 12: "NR-SA", 13: "NR-NSA",
}  # fmt: skip
"""<AcT> of +COPS and +CEREG, clauses 7.3 and 10.1.22. 10 is E-UTRA on a 5G core, 12 NG-RAN, 13 dual connectivity."""

_STATES = {0: "no_service", 2: "searching", 3: "limited", 4: "no_service", 8: "limited", 11: "limited"}
"""<stat> of +CEREG, clause 10.1.22, where it says that there is no service. Registered (1, 5 …) says nothing of RRC."""


@dataclass(frozen=True)
class Registration:
    """``+CEREG`` and its like. ``state`` is None when the modem is registered: RRC is not told here."""

    known: bool = False
    registered: bool = False
    state: str | None = None
    rat: str | None = None
    tac: int | None = None
    eci: int | None = None


def registration(lines: Sequence[str], name: str = "+CEREG") -> Registration:
    """``+CEREG: [<n>,]<stat>[,<tac>[,<rac>],<ci>[,<AcT>…]]``, clauses 10.1.22 (LTE) and 10.1.47 (5G).

    Ids are hexadecimal, in quotes or not. The unsolicited form has no <n>. A RAC of two digits may stand between TAC and CI.
    """
    line = next((one for one in reversed(lines) if prefix(one) == name), None)
    if line is None:
        return Registration()
    found = values(line)
    if not is_unsolicited(line, (name,)):
        found = found[1:]
    stat = whole(at(found, 0))
    if stat is None:
        return Registration()
    if stat not in (1, 5, 6, 7, 9, 10):
        return Registration(True, False, _STATES.get(stat))
    ids = list(found[1:])
    if len(ids) >= 4 and len(ids[1]) == 2 and len(ids[2]) > 2:
        del ids[1]
    technology = whole(at(ids, 2))
    return Registration(
        True,
        True,
        None,
        None if technology is None else ACCESS_TECHNOLOGIES.get(technology),
        _area(at(ids, 0)),
        _cell(at(ids, 1)),
    )


def _area(text: str) -> int | None:
    """A tracking area; FFFE and FFFF (FFFFFE, FFFFFF on 5G) mean none (3GPP TS 23.003 clause 19.4.2.3)."""
    found = hexadecimal(text)
    return None if found in (0xFFFE, 0xFFFF, 0xFFFFFE, 0xFFFFFF) else found


def _cell(text: str) -> int | None:
    """A cell identity; all ones mean none."""
    found = hexadecimal(text)
    return None if found in (0xFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFF) else found


def operator(lines: Sequence[str]) -> tuple[str | None, str | None]:
    """``+COPS: <mode>[,<format>,<oper>[,<AcT>]]``, clause 7.3: PLMN (numeric format only) and radio technology."""
    found = last_values(lines, "+COPS")
    network = at(found, 2) if at(found, 1) == "2" else ""
    technology = whole(at(found, 3))
    return plmn(network[:3], network[3:]), None if technology is None else ACCESS_TECHNOLOGIES.get(technology)
