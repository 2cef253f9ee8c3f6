"""SIMCom's +CPSI, or +CENG, with +CSQ and +CEREG of the standard.

Source: SIM7500/SIM7600, SIM7000, A7600 and SIM8200 series AT command manuals (CPSI) and SIM800's (CENG), as quoted in public code and
in dialogues that users published. What the scales of +CPSI are is worked out from each row: see ``levels``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tandem.at.dialogue import Response
from tandem.modem.base import Commands, Driver, Identity, Reading, device
from tandem.modem.scales import at, cell, code, decimal, filled, with_secondary, within
from tandem.modem.ts27007 import all_lines, fill, rows_of

TENTHS_BEYOND_DBM = -200.0
"""No RSRP is that low: such a number is in tenths."""

LOWEST_SNR_DB, HIGHEST_SNR_DB = -23.0, 40.0
"""The range of NR's SS-SINR (3GPP TS 38.133 table 10.1.16.1-1)."""


def lte_levels(rsrq: str, rsrp: str, rssi: str, rssnr: str) -> Reading:
    """The levels of an LTE row, in tenths or in decibels. In the index firmware RSRP is −141 + v, RSRQ −20 + v/2; what its RSSI means is
    not known: it is not read, so that +CSQ's has its place. 255 is none."""
    level, snr = decimal(rsrp), code(rssnr, -3000, 3000)
    if level is None or level == 0:
        return Reading(sinr_code=snr)
    if level > 0:
        snr = None if snr == 255 else snr
        sinr = None if snr is None else within(float(snr), -20, 40)
        return cell("LTE", "rsrp_dbm:code rsrq_db:code", (rsrp, rsrq), sinr_code=snr, sinr_db=sinr)
    step = 0.1 if level < TENTHS_BEYOND_DBM else 1.0
    levels = [_scaled(text, step) for text in (rsrp, rsrq, rssi)]
    return cell(None, "rsrp_dbm rsrq_db rssi_dbm", levels, sinr_code=snr, sinr_db=_rssnr_db(snr))


def _rssnr_db(found: int | None) -> float | None:
    """2v − 20 (0 to 25). A number that this scale cannot have (below 0, or 26 to 40) is dB as it is."""
    if found is None:
        return None
    return 2.0 * found - 20 if 0 <= found <= 25 else within(float(found), -20, 40)


def nr_levels(first: str, second: str, snr: str) -> Reading:
    """RSRP, RSRQ and SNR of an NR row: all in tenths (``-960,-120,95``), or all in decibels with RSRQ first (``-12,-86,8.5``).

    RSRP is the one that is further below zero. −32768 is none. A SNR with a decimal is dB; beside tenths some firmware prints tenths
    (``290``) and other, RedCap's too, dB (``40``): it is decoded where it can only be tenths.
    """
    levels = [value for value in (decimal(first), decimal(second)) if value is not None and -2000 < value < 0]
    if len(levels) != 2:
        return Reading(sinr_code=code(snr, -3000, 3000))
    rsrp, rsrq = sorted(levels)
    step = 0.1 if rsrp < TENTHS_BEYOND_DBM else 1.0
    sinr = decimal(snr)
    if sinr is not None and "." not in snr and step < 1:
        sinr = None if within(sinr, LOWEST_SNR_DB, HIGHEST_SNR_DB) is not None else round(sinr * step, 1)
    return Reading(
        rsrp_dbm=within(round(rsrp * step, 1), -157, -30),
        rsrq_db=within(round(rsrq * step, 1), -50, 25),
        sinr_db=within(sinr, -40, 60),
        sinr_code=code(snr, -3000, 3000),
    )


def _scaled(text: str, step: float) -> str:
    found = decimal(text)
    return "" if found is None else str(round(found * step, 1))


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """The last serving cell: around a change of technology some firmware prints the old row and the new one.

    Whether RRC is connected is not reported: a registered modem's state is ``unknown``.
    """
    lines = all_lines(responses)
    rows = rows_of(lines, "+CPSI")
    secondary = next((row for row in reversed(rows) if at(row, 0).upper() in ("NR5G_NSA", "NR5G-NSA", "NR5G")), None)
    serving = next((row for row in reversed(rows) if row is not secondary and at(row, 0)), ())
    reading = _cell(serving)
    if secondary is not None and reading.rat in ("LTE", None) and at(serving, 0).upper() != "NO SERVICE":
        reading = with_secondary(reading, _secondary(secondary))
    if not rows:
        reading = _engineering(rows_of(lines, "+CENG"))
    reading = fill(reading, lines)
    if at(serving, 0).upper() == "NO SERVICE" and reading.state == "unknown":
        reading = replace(reading, state="no_service")
    return reading


def _rat(mode: str) -> str | None:
    """<System Mode>: ``LTE``, ``LTE CAT-M1`` or ``LTE M1``, ``LTE NB-IOT`` or ``LTE NB``, ``WCDMA``, ``GSM``, ``NR5G_SA``."""
    name = mode.upper()
    if name.startswith("LTE"):
        return "CAT-M" if "M1" in name else "NB-IOT" if "NB" in name else "LTE"
    return {"WCDMA": "WCDMA", "GSM": "GSM", "NR5G_SA": "NR-SA", "NR5G-SA": "NR-SA"}.get(name)


def _cell(row: Sequence[str]) -> Reading:
    """``<mode>,Online,<mcc>-<mnc>,0x<area>,<cell>,…``, cells decimal. LTE: bandwidths an index; an EARFCN of 4294967295 is none. 3G: Ec/Io
    and RSCP without their sign on most firmware. The oldest (SIM5218) prints no <txpwr>, the last column, and Ec/Io in halves; of others
    a number without sign and decimal may be either. A scrambling code is no PCI."""
    rat = _rat(at(row, 0))
    if rat is None or at(row, 1).lower() != "online":
        return Reading()
    mcc, _, mnc = at(row, 2).partition("-")
    rest = (mcc, mnc, *row[3:])
    if rat == "GSM":
        return cell(rat, "mcc mnc lac ci:d - rssi_dbm", rest)
    if rat == "WCDMA":
        ecno, rscp = decimal(at(rest, 8)), decimal(at(rest, 9))
        if ecno is not None and ecno > 0 and "." not in at(rest, 8):
            ecno = ecno / 2 if len(rest) == 12 else None
        ecno, rscp = (None if level is None else -abs(level) for level in (ecno, rscp))
        return cell(rat, "mcc mnc lac ci:d", rest, ecno_db=within(ecno, -32, 0), rscp_dbm=within(rscp, -125, -20))
    if rat == "NR-SA":
        levels = nr_levels(*(at(rest, i) for i in (7, 8, 9)))
        return filled(cell(rat, "mcc mnc tac eci:d pci band earfcn", rest), levels)
    levels = lte_levels(*(at(rest, i) for i in (9, 10, 11, 12)))
    width = "" if rat == "NB-IOT" else "bandwidth_mhz:index"
    return filled(cell(rat, f"mcc mnc tac eci:d pci band earfcn {width}", rest), levels)


def _secondary(row: Sequence[str]) -> Reading:
    """``NR5G_NSA,<pci>,NR5G_BAND<n>,<arfcn>,<rsrp>,<rsrq>,<snr>[,<scs>,<bw>]``; the first firmware has no band."""
    has_band = "BAND" in at(row, 2).upper()
    levels = nr_levels(*(at(row, 3 + has_band + i) for i in range(3)))
    return filled(cell("NR-SA", f"- pci {'band ' if has_band else ''}earfcn", row), levels)


def _engineering(rows: Sequence[Sequence[str]]) -> Reading:
    """``+CENG: <mode>,<cells>[,<n>,LTE CAT-M1]`` and ``+CENG: 0,"<cell>"``, the serving one. LTE: the scale of its SINR, the sixth, and the
    base of its ids are not known. 2G: a row of eleven, in mode 3 of six."""
    mode = next((row for row in rows if "," not in at(row, 1)), ())
    row = next((at(row, 1).split(",") for row in rows if at(row, 0) == "0" and at(row, 1).count(",") >= 5), [])
    rat = _rat(at(mode, 3))
    if rat in ("LTE", "CAT-M", "NB-IOT"):
        return cell(rat, "earfcn pci rsrp_dbm rssi_dbm rsrq_db - - - mcc mnc", row)
    columns = {6: "mcc mnc lac ci - rssi_dbm:code", 11: "- rssi_dbm:code - mcc mnc - ci - - lac"}.get(len(row))
    return Reading() if columns is None else cell("GSM", columns, row)


def _known(identity: Identity) -> bool:
    """By the manufacturer's name, which the model's often repeats; of A7600, A7670 and their sisters what is left of it is
    ``INCORPORATED``."""
    return identity.says("simcom") or identity.manufacturer.upper().strip() == "INCORPORATED"


def _gnss(identity: Identity) -> Commands:
    """From the GNSS application notes of A76xx (users disagree on the first number of CGNSSPORTSWITCH; SIM82xx by likeness, unsure),
    SIM7000 and SIM7070 (NMEA comes on the USB NMEA port once it is powered), SIM7500 and SIM7600 (standalone mode; on already: ERROR)."""
    if identity.says("A76", "SIM767", "SIM82", "SIM83"):
        return ("AT+CGNSSPWR=1", "AT+CGNSSTST=1", "AT+CGNSSPORTSWITCH=0,1")
    return ("AT+CGNSPWR=1",) if identity.says("SIM7000", "SIM7070", "SIM7080") else ("AT+CGPS=1,1",)


# The serving cell, and what the standard tells beside it: searching or denied, and RSSI where +CPSI has none.
DRIVER = Driver(
    "simcom",
    setup=("AT+CEREG=2",),
    poll=("AT+CPSI?", "AT+CSQ;+CEREG?"),
    decode=decode,
    knows=_known,
    reads=("AT+CENG?",),
    gnss=_gnss,
    devices=(
        device("1e0e:9001", "SIM7600, SIM7500, SIM7000, SIM8200", nmea=1, at=2, at_second=3),
        device("1e0e:9011", "A7600, A7670", at=4, at_second=5),
    ),
)
