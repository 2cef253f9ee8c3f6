"""Huawei's ^HCSQ and ^MONSC, with ^SYSINFOEX and others where they answered, and +CEREG of the standard.

Source: Huawei ME909s, ME906 and MH5000 AT command interface specifications (HCSQ, MONSC), as quoted in public code. A modem in
NR NSA prints one line for LTE and one for NR.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from tandem.at.dialogue import Response
from tandem.modem.base import Driver, Identity, Reading, device
from tandem.modem.scales import Scale, at, cell, decimal, filled, named, with_secondary, within
from tandem.modem.ts27007 import all_lines, fill, last_values, rows_of, rssi

_HCSQ_SCALES: Mapping[str, Scale] = {
    "rssi_dbm": (1, -121, 96), "rsrp_dbm": (1, -141, 97), "sinr_db": (0.2, -20.2, 251), "rsrq_db": (0.5, -20, 34),
    "rscp_dbm": (1, -121, 96), "ecno_db": (0.5, -32.5, 65),
}  # fmt: skip
"""0 is below the first bin, the highest code from its edge up, 255 not known. NR's RSRQ has another scale, which is not known."""
_NR_SCALES = {name: scale for name, scale in _HCSQ_SCALES.items() if name != "rsrq_db"}
_HCSQ = {
    "LTE": "- rssi_dbm:code rsrp_dbm:code sinr_db:code rsrq_db:code",
    "NR": "- rsrp_dbm:code sinr_db:code rsrq_db:code",
    "WCDMA": "- rssi_dbm:code rscp_dbm:code ecno_db:code",
    "GSM": "- rssi_dbm:code",
}
_MONSC = {
    "LTE": "- mcc mnc earfcn eci pci:x tac rsrp_dbm rsrq_db rssi_dbm",
    "NR": "- mcc mnc earfcn - eci pci:x tac rsrp_dbm rsrq_db sinr_db",
    "WCDMA": "- mcc mnc - - ci lac rscp_dbm rssi_dbm ecno_db",
    "GSM": "- mcc mnc - - - ci lac rssi_dbm",
}
_RATS = {"LTE": "LTE", "NR": "NR-SA", "WCDMA": "WCDMA", "GSM": "GSM"}


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """LTE and NR: levels as ^MONSC prints them, else from ^HCSQ; LTE's SINR is ^HCSQ's. 2G and 3G: ^HCSQ's, else ^MONSC's.

    Neither tells the band or whether RRC is connected: a registered modem's state is ``unknown``. What of the cell ^MONSC does
    not tell is +CEREG's.
    """
    lines = all_lines(responses)
    level_rows = [(at(row, 0).upper(), row) for row in rows_of(lines, "^HCSQ")]
    cell_rows = [(at(row, 0).upper(), row) for row in rows_of(lines, "^MONSC")]
    reported, cells = _latest(level_rows), _latest(cell_rows)
    readings = {name: _cell(name, reported.get(name, ()), cells.get(name, ())) for name in cells or reported}
    if cells and "LTE" in cells and "NR" in reported and "LTE" in reported:
        readings.setdefault("NR", _cell("NR", reported["NR"], ()))
    if "LTE" in readings and "NR" in readings:
        reading = with_secondary(readings["LTE"], readings["NR"])
    else:
        reading = next(iter(readings.values()), Reading())
    reading = fill(_with_further(reading, lines), lines)
    silent = (level_rows and level_rows[-1][0] == "NOSERVICE") or (cell_rows and cell_rows[-1][0] == "NONE")
    return replace(reading, state="no_service") if reading.empty and silent else reading


def _latest(rows: Sequence[tuple[str, Sequence[str]]]) -> dict[str, Sequence[str]]:
    """The last row, and the one before it where the two are LTE and NR (NSA), by technology. Earlier ones came unasked and are older.
    Empty when the last row says that there is no service."""
    last = dict(rows[-2:])
    if set(last) == {"LTE", "NR"}:
        return last
    return {name: row for name, row in rows[-1:] if name in _RATS}


def _cell(name: str, reported: Sequence[str], row: Sequence[str]) -> Reading:
    rat = _RATS[name]
    coded = cell(rat, _HCSQ[name], reported, scales=_NR_SCALES if name == "NR" else _HCSQ_SCALES)
    printed = cell(rat, _MONSC[name], row)
    if name in ("WCDMA", "GSM"):
        return filled(coded, printed)
    return replace(coded, **{field: value for field, value in vars(printed).items() if value is not None})


_SYSINFOEX_RATS = {"GSM": "GSM", "WCDMA": "WCDMA", "LTE": "LTE", "NR": "NR-SA", "NR-5GC": "NR-SA"}
_STATES = {"0": "no_service", "1": "limited", "3": "limited"}
"""<srv_status>: 0 none, 1 restricted, 2 service, 3 restricted to a region, 4 saving power."""


def _with_further(reading: Reading, lines: Sequence[str]) -> Reading:
    """The reading with what it lacks of ^SYSINFOEX, ^LTERSRP, ^CERSSI, ^RSSI and ^HFREQINFO."""
    system = last_values(lines, "^SYSINFOEX")
    rat = _SYSINFOEX_RATS.get(at(system, 6).upper())
    if reading.state == "unknown":
        reading = replace(reading, state=_STATES.get(at(system, 0), "unknown"))
    if (reading.rat or rat) in (None, "LTE", "NR-NSA"):
        reading = filled(reading, _ltersrp(last_values(lines, "^LTERSRP"), last_values(lines, "^CERSSI")))
    reading = filled(filled(reading, Reading(rat=rat)), rssi(last_values(lines, "^RSSI")))
    return filled(reading, _carrier(reading, lines))


def _carrier(reading: Reading, lines: Sequence[str]) -> Reading:
    """``^HFREQINFO: <n>,<technology>,<band>,<channel>,<frequency>,<bandwidth in kHz>,<the same uplink>[,<next carrier>…]``, 6 for LTE
    and 7 for NR, NSA a line of each. Nothing of another technology or channel than the reading's."""
    by_rat: dict[str, Reading] = {}
    for row in rows_of(lines, "^HFREQINFO"):
        rat = {"6": "LTE", "7": "NR-SA"}.get(at(row, 1))
        width = within(decimal(at(row, 5)), 1400, 400_000)
        if rat is not None:
            by_rat[rat] = cell(rat, "- - band earfcn", row, bandwidth_mhz=None if width is None else width / 1000)
    if {"LTE", "NR-SA"} <= set(by_rat):
        by_rat = {"NR-NSA": with_secondary(by_rat["LTE"], by_rat["NR-SA"]), **by_rat}
    reported = next((one for rat, one in by_rat.items() if reading.rat in (None, rat)), Reading())
    channels = ((reading.earfcn, reported.earfcn), (reading.nr_arfcn, reported.nr_arfcn))
    return Reading() if any(None not in pair and pair[0] != pair[1] for pair in channels) else reported


def _ltersrp(ltersrp: Sequence[str], cerssi: Sequence[str]) -> Reading:
    """``^LTERSRP: <rsrp>,<rsrq>`` in dBm and dB. ``^CERSSI: <columns of 2G and 3G>,255,<rsrp>,<rsrq>,<sinr>,…`` likewise: how many
    columns there are in front differs, so RSRP is the first value of its range with one of RSRQ's behind it."""
    reading = Reading(rat="LTE", rsrp_dbm=_level(at(ltersrp, 0)), rsrq_db=within(decimal(at(ltersrp, 1)), -50, 0))
    for i, (power, quality) in enumerate(pairwise(cerssi)):
        found = within(decimal(quality), -40, 0)
        if _level(power) is not None and found is not None and at(cerssi, i - 1) == "255":
            reading = named("LTE", {"sinr_db": at(cerssi, i + 2)}, rsrp_dbm=_level(power), rsrq_db=found)
            break
    return reading if reading.rsrp_dbm is not None else Reading()


def _level(text: str) -> float | None:
    return within(decimal(text), -156, -44)


# Two command lines: ^MONSC is refused by some firmware and then must not take the others with it. MT5700M is known by its model, as TD
# Tech sells it.
# GNSS: Huawei ME909u/MU709/MU609 AT interface: standalone, tracking, as many fixes as there can be, each second; sticks have no
# GNSS.
# Interface numbers differ by firmware; the class says what a port is (class ff, protocol 02 or 12: AT, 01 or 10: PPP). A stick that
# starts as storage is switched by usb_modeswitch.
DRIVER = Driver(
    "huawei",
    setup=("AT+CEREG=2",),
    poll=("AT^HCSQ?;+CEREG?", "AT^MONSC"),
    decode=decode,
    knows=("huawei", "td tech", "mt5700"),
    but_not=("hilink",),
    reads=("AT^SYSINFOEX", "AT^LTERSRP?", "AT^CERSSI?", "AT^RSSI", "AT^HFREQINFO?"),
    gnss=("AT^WPDOM=0", "AT^WPDST=1", "AT^WPDFR=65535,1", "AT^WPDGP"),
    devices=(
        # Two functions of class ff, protocol 02 on some firmware: the second is the second AT port.
        device(
            "12d1:1506",
            "E3372s, E3372h in stick mode, E3276",
            by_protocol={"02": "at", "01": "ppp", "12": "at-second", "10": "ppp"},
            switched_from="15cd 14fe",
            mode_switch="usb_modeswitch -J",
        ),
        # Protocol 12 is the first AT port, 10 the modem (PPP), 13 the second AT port, 14 NMEA, 03 diagnostics.
        device(
            "12d1:15c1",
            "ME909s",
            by_protocol={"12": "at", "13": "at-second", "10": "ppp", "14": "nmea", "03": "diagnostics"},
        ),
    ),
)
