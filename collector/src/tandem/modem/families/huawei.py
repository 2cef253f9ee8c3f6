"""Huawei's ^HCSQ and ^MONSC, with what ``further`` has and +CEREG of the standard.

Source: Huawei ME909s, ME906 and MH5000 AT command interface specifications (HCSQ, MONSC), as quoted in public code. A modem in
NR NSA prints one line for LTE and one for NR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from tandem.at.dialogue import Response
from tandem.at.grammar import prefix, values
from tandem.modem.base import Driver, Identity, Reading
from tandem.modem.scales import as_read, at, code, decimal, hexadecimal, plmn, rssi_dbm, scaled, with_secondary, within
from tandem.modem.ts27007 import all_lines, fill, last_values


@dataclass(frozen=True)
class Codes:
    """One ^HCSQ: the mode, its codes as read, and their quantities in dBm and dB."""

    mode: str = ""
    rssi_code: int | None = None
    rsrp_code: int | None = None
    sinr_code: int | None = None
    rsrq_code: int | None = None
    rscp_code: int | None = None
    ecno_code: int | None = None

    @property
    def rssi_dbm(self) -> float | None:
        """−121 + v: 0 is below −120 dBm, 96 from −25 dBm up."""
        return scaled(self.rssi_code, 1, -121, 96)

    @property
    def rsrp_dbm(self) -> float | None:
        """−141 + v: 0 is below −140 dBm, 97 from −44 dBm up."""
        return scaled(self.rsrp_code, 1, -141, 97)

    @property
    def sinr_db(self) -> float | None:
        """−20.2 + v/5: 0 is below −20 dB, 251 from 30 dB up."""
        return scaled(self.sinr_code, 0.2, -20.2, 251)

    @property
    def rsrq_db(self) -> float | None:
        """−20 + v/2 of LTE: 0 is below −19.5 dB, 34 from −3 dB up. NR's scale is another, and not known."""
        return None if self.mode == "NR" else scaled(self.rsrq_code, 0.5, -20, 34)

    @property
    def rscp_dbm(self) -> float | None:
        """−121 + v, as RSSI."""
        return scaled(self.rscp_code, 1, -121, 96)

    @property
    def ecno_db(self) -> float | None:
        """−32.5 + v/2: 0 is below −32 dB, 65 from 0 dB up."""
        return scaled(self.ecno_code, 0.5, -32.5, 65)


_COLUMNS = {
    "LTE": ("rssi_code", "rsrp_code", "sinr_code", "rsrq_code"),
    "NR": ("rsrp_code", "sinr_code", "rsrq_code"),
    "WCDMA": ("rssi_code", "rscp_code", "ecno_code"),
    "GSM": ("rssi_code",),
}


def codes(found: Sequence[str]) -> Codes:
    """``^HCSQ: "<mode>",<codes>``. 255 is not known; what is beyond a table is a code without a quantity."""
    mode = at(found, 0).upper()
    read = {name: as_read(at(found, i)) for i, name in enumerate(_COLUMNS.get(mode, ()), 1)}
    return Codes(mode, **read)


NAMES = ("^SYSINFOEX", "^LTERSRP", "^CERSSI", "^RSSI", "^HFREQINFO")
_SYSINFOEX_RATS = {"GSM": "GSM", "WCDMA": "WCDMA", "LTE": "LTE", "NR": "NR-SA", "NR-5GC": "NR-SA"}
_STATES = {"0": "no_service", "1": "limited", "3": "limited"}
"""<srv_status>: 0 none, 1 restricted, 2 service, 3 restricted to a region, 4 saving power."""


def with_further(reading: Reading, lines: Sequence[str]) -> Reading:
    """The reading with what it lacks."""
    if not any(prefix(line) in NAMES for line in lines):
        return reading
    system = last_values(lines, "^SYSINFOEX")
    told: dict[str, Any] = {"rat": _SYSINFOEX_RATS.get(at(system, 6).upper())}
    if reading.state == "unknown":
        told_state = _STATES.get(at(system, 0), "unknown")
        reading = replace(reading, state=told_state)
    if (reading.rat or told["rat"]) in (None, "LTE", "NR-NSA"):
        told |= _ltersrp(last_values(lines, "^LTERSRP"), last_values(lines, "^CERSSI"))
    level = code(at(last_values(lines, "^RSSI"), 0), 0, 31)
    if reading.rssi_dbm is None and reading.rssi_code is None:
        told |= {"rssi_code": level, "rssi_dbm": rssi_dbm(level)}
    reading = _filled(reading, told)
    return _filled(reading, _carrier(reading, lines))


def _filled(reading: Reading, told: dict[str, Any]) -> Reading:
    missing = {name: value for name, value in told.items() if value is not None and getattr(reading, name) is None}
    return replace(reading, **missing)


def _carrier(reading: Reading, lines: Sequence[str]) -> dict[str, Any]:
    """``^HFREQINFO: <n>,<technology>,<band>,<channel>,<frequency>,<bandwidth in kHz>,<the same uplink>[,<next carrier>…]``, 6 for LTE
    and 7 for NR, NSA a line of each. Nothing of another technology or channel than the reading's."""
    by_rat: dict[str, Reading] = {}
    for row in (values(line) for line in lines if prefix(line) == "^HFREQINFO"):
        rat, highest = {"6": ("LTE", 262143), "7": ("NR-SA", 3279165)}.get(at(row, 1), ("another", 0))
        width = within(decimal(at(row, 5)), 1400, 400_000)
        by_rat[rat] = Reading(
            rat=rat,
            band=code(at(row, 2), 1, 512),
            earfcn=code(at(row, 3), 0, highest),
            bandwidth_mhz=None if width is None else width / 1000,
        )
    if {"LTE", "NR-SA"} <= set(by_rat):
        by_rat = {"NR-NSA": with_secondary(by_rat["LTE"], by_rat["NR-SA"]), **by_rat}
    by_rat.pop("another", None)
    told = next((one for rat, one in by_rat.items() if reading.rat in (None, rat)), Reading())
    channels = ((reading.earfcn, told.earfcn), (reading.nr_arfcn, told.nr_arfcn))
    return {} if any(None not in pair and pair[0] != pair[1] for pair in channels) else vars(told)


def _ltersrp(ltersrp: Sequence[str], cerssi: Sequence[str]) -> dict[str, Any]:
    """``^LTERSRP: <rsrp>,<rsrq>`` in dBm and dB. ``^CERSSI: <columns of 2G and 3G>,255,<rsrp>,<rsrq>,<sinr>,…`` likewise: how many
    columns there are in front differs, so RSRP is the first value of its range with one of RSRQ's behind it."""
    rsrp, rsrq = _level(at(ltersrp, 0)), within(decimal(at(ltersrp, 1)), -50, 0)
    sinr = None
    for i, (first, second) in enumerate(pairwise(cerssi)):
        quality = within(decimal(second), -40, 0)
        if _level(first) is not None and quality is not None and at(cerssi, i - 1) == "255":
            rsrp, rsrq, sinr = _level(first), quality, within(decimal(at(cerssi, i + 2)), -40, 60)
            break
    return {} if rsrp is None else {"rat": "LTE", "rsrp_dbm": rsrp, "rsrq_db": rsrq, "sinr_db": sinr}


def _level(text: str) -> float | None:
    return within(decimal(text), -156, -44)


_RATS = {"LTE": "LTE", "NR": "NR-SA", "WCDMA": "WCDMA", "GSM": "GSM"}
Row = Sequence[str]


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """LTE and NR: levels as ^MONSC prints them, else from ^HCSQ; LTE's SINR is ^HCSQ's. 2G and 3G: ^HCSQ's, else ^MONSC's.

    Neither tells the band or whether RRC is connected: a registered modem's state is ``unknown``. What of the cell ^MONSC does
    not tell is +CEREG's.
    """
    lines = all_lines(responses)
    told = [codes(values(line)) for line in lines if prefix(line) == "^HCSQ"]
    rows = [values(line) for line in lines if prefix(line) == "^MONSC"]
    mode, cells = _latest([one.mode for one in told]), _latest([at(row, 0).upper() for row in rows])
    by_mode = {one.mode: one for one in told}
    by_cell = {at(row, 0).upper(): row for row in rows}
    served = cells or mode
    if "LTE" in served and "NR" in served:
        anchor = _lte(by_mode.get("LTE", Codes()), by_cell.get("LTE", ()))
        reading = with_secondary(anchor, _nr(by_mode.get("NR", Codes()), by_cell.get("NR", ())))
    elif "LTE" in served:
        anchor = _lte(by_mode.get("LTE", Codes()) if "LTE" in mode else Codes(), by_cell.get("LTE", ()))
        nr_too = "LTE" in mode and "NR" in mode
        reading = with_secondary(anchor, _nr(by_mode["NR"], ())) if nr_too else anchor
    elif served:
        technology = served[0]
        level = by_mode[technology] if technology in mode else Codes()
        reading = _READERS[technology](level, by_cell.get(technology, ()))
    else:
        reading = Reading()
    reading = fill(with_further(reading, lines), lines)
    silent = (told and told[-1].mode == "NOSERVICE") or (rows and at(rows[-1], 0).upper() == "NONE")
    if reading == Reading() and silent:
        reading = replace(reading, state="no_service")
    return reading


def _latest(technologies: Sequence[str]) -> tuple[str, ...]:
    """The technologies that the last lines tell: the last one, and the one before it where the two are LTE and NR (NSA).

    Earlier ones came unasked and are older. Empty when the last line says that there is no service.
    """
    last = tuple(technologies[-2:])
    if set(last) == {"LTE", "NR"}:
        return last
    return last[-1:] if last and last[-1] in _RATS else ()


def _lte(told: Codes, row: Row) -> Reading:
    """``LTE,<mcc>,<mnc>,<earfcn>,<eci hex>,<pci hex>,<tac hex>,<rsrp>,<rsrq>,<rssi>``."""
    return Reading(
        rat="LTE",
        rsrp_dbm=_first(within(decimal(at(row, 7)), -156, -30), told.rsrp_dbm),
        rsrq_db=_first(within(decimal(at(row, 8)), -50, 25), told.rsrq_db),
        sinr_db=told.sinr_db,
        rssi_dbm=_first(within(decimal(at(row, 9)), -130, -10), told.rssi_dbm),
        rsrp_code=told.rsrp_code,
        rsrq_code=told.rsrq_code,
        sinr_code=told.sinr_code,
        rssi_code=told.rssi_code,
        plmn=plmn(at(row, 1), at(row, 2)),
        tac=_area(at(row, 6), 0xFFFF),
        eci=_below(at(row, 4), 0xFFFFFFF),
        pci=_below(at(row, 5), 504),
        earfcn=code(at(row, 3), 0, 262143),
    )


def _nr(told: Codes, row: Row) -> Reading:
    """``NR,<mcc>,<mnc>,<arfcn>,<scs>,<nci hex>,<pci hex>,<tac hex>,<rsrp>,<rsrq>,<sinr>``."""
    return Reading(
        rat="NR-SA",
        rsrp_dbm=_first(within(decimal(at(row, 8)), -157, -30), told.rsrp_dbm),
        rsrq_db=_first(within(decimal(at(row, 9)), -50, 25), told.rsrq_db),
        sinr_db=_first(within(decimal(at(row, 10)), -40, 60), told.sinr_db),
        rsrp_code=told.rsrp_code,
        rsrq_code=told.rsrq_code,
        sinr_code=told.sinr_code,
        plmn=plmn(at(row, 1), at(row, 2)),
        tac=_area(at(row, 7), 0xFFFFFF),
        eci=_below(at(row, 5), 0xFFFFFFFFF),
        pci=_below(at(row, 6), 1008),
        earfcn=code(at(row, 3), 0, 3279165),
    )


def _wcdma(told: Codes, row: Row) -> Reading:
    """``WCDMA,<mcc>,<mnc>,<uarfcn>,<psc>,<ci hex>,<lac hex>,<rscp>,<rssi>,<ec/n0>,<drx>,<ura>``."""
    return Reading(
        rat="WCDMA",
        rssi_dbm=_first(told.rssi_dbm, within(decimal(at(row, 8)), -130, -10)),
        rscp_dbm=_first(told.rscp_dbm, within(decimal(at(row, 7)), -140, -10)),
        ecno_db=_first(told.ecno_db, within(decimal(at(row, 9)), -60, 10)),
        rssi_code=told.rssi_code,
        rscp_code=told.rscp_code,
        ecno_code=told.ecno_code,
        plmn=plmn(at(row, 1), at(row, 2)),
        lac=_area(at(row, 6), 0xFFFF),
        ci=_below(at(row, 5), 0xFFFFFFF),
    )


def _gsm(told: Codes, row: Row) -> Reading:
    """``GSM,<mcc>,<mnc>,<band>,<arfcn>,<bsic>,<ci hex>,<lac hex>,<rssi>,<rx quality>,<timing advance>``."""
    return Reading(
        rat="GSM",
        rssi_dbm=_first(told.rssi_dbm, within(decimal(at(row, 8)), -130, -10)),
        rssi_code=told.rssi_code,
        plmn=plmn(at(row, 1), at(row, 2)),
        lac=_area(at(row, 7), 0xFFFF),
        ci=_below(at(row, 6), 0xFFFF),
    )


_READERS = {"LTE": _lte, "NR": _nr, "WCDMA": _wcdma, "GSM": _gsm}


def _first(one: float | None, other: float | None) -> float | None:
    return one if one is not None else other


def _below(text: str, limit: int) -> int | None:
    """A hexadecimal id below ``limit``, which is the one of all ones or the first that does not exist."""
    found = hexadecimal(text)
    return found if found is not None and found < limit else None


def _area(text: str, highest: int) -> int | None:
    """A location or tracking area; 0 and the two highest mean none (3GPP TS 23.003 clauses 4.1 and 19.4.2.3)."""
    found = _below(text, highest - 1)
    return found or None


# Two command lines: ^MONSC is refused by some firmware and then must not take the others with it. MT5700M is known by its model, as TD
# Tech sells it.
DRIVER = Driver(
    "huawei",
    setup=("AT+CEREG=2",),
    poll=("AT^HCSQ?;+CEREG?", "AT^MONSC"),
    decode=decode,
    knows=("huawei", "td tech", "mt5700"),
    but_not=("hilink",),
    reads=("AT^SYSINFOEX", "AT^LTERSRP?", "AT^CERSSI?", "AT^RSSI", "AT^HFREQINFO?"),
)
