"""Nordic's %XMONITOR, Sequans' +SQNMONI, Unisoc's +CCED and ASR's +EEMLTESVC, with the standard's commands.

Source: nRF91 AT commands reference guide (XMONITOR), Sequans Monarch AT manual (SQNMONI), OpenLuat's and ASR's AT manuals (CCED,
EEMGINFO), as quoted in public code and in answers that users published. +CCED prints the IMSI: it is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence

from tandem.at.dialogue import Response
from tandem.at.grammar import prefix
from tandem.modem.base import Commands, Driver, Identity, Reading
from tandem.modem.families.telit import labelled
from tandem.modem.scales import area_code, at, cell_identity, code, decimal, hexadecimal, plmn, rsrp_dbm, whole, within
from tandem.modem.ts27007 import all_lines, fill, last_values, registration


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """Whichever command answered. None tells whether RRC is connected: a registered modem's state is ``unknown``."""
    lines = all_lines(responses)
    monitor = next((line for line in lines if prefix(line) == "+SQNMONI"), "")  # the serving cell is the first
    found = (
        _xmonitor(last_values(lines, "%XMONITOR")),
        _sqnmoni(monitor),
        _cced(last_values(lines, "+CCED")),
        _eemltesvc(last_values(lines, "+EEMLTESVC")),
    )
    return fill(next((one for one in found if not one.empty), Reading()), lines)


def _xmonitor(row: Sequence[str]) -> Reading:
    """``<stat>[,<name>,<short name>,<plmn>,<tac>,<AcT>,<band>,<cell>,<pci>,<earfcn>,<rsrp>,<snr>,…]``, ids hexadecimal, RSRP as +CESQ's
    code. nRF91 has no wider LTE than Cat-M: its 7 is that. On NB-IoT RSRP has another scale, that of the SNR is not sure."""
    told = registration([f"+CEREG: 2,{at(row, 0)}"])
    if not row or not told.known:
        return Reading()
    if not told.registered:
        return Reading(state=told.state or "unknown")
    network, power = at(row, 3), code(at(row, 10), 0, 97)
    rat = {"7": "CAT-M", "9": "NB-IOT"}.get(at(row, 5))
    return Reading(
        rat=rat,
        rsrp_code=power,
        rsrp_dbm=rsrp_dbm(power) if rat == "CAT-M" else None,
        sinr_code=code(at(row, 11), 0, 126),
        plmn=plmn(network[:3], network[3:]),
        tac=area_code(hexadecimal(at(row, 4))),
        eci=cell_identity(hexadecimal(at(row, 7)), rat),
        pci=code(at(row, 8), 0, 503),
        earfcn=code(at(row, 9), 1, 262143),
        band=code(at(row, 6), 1, 88),
    )


def _sqnmoni(line: str) -> Reading:
    """``<name> Cc:<mcc> Nc:<mnc> RSRP:… [CINR:…] RSRQ:… TAC:… Id:<pci> EARFCN:… PWR:… PAGING:…[ CID:0x… BAND:… BW:<kHz>]``, levels in dBm
    and dB, −1 for none. In which base its TAC is, is not known."""
    labels = labelled(line.replace(":0x", ":"))
    power = within(decimal(labels.get("RSRP", "")), -156, -30)
    network = plmn(labels.get("CC", ""), labels.get("NC", ""))
    if network is None:
        return Reading()
    return Reading(
        rat="NB-IOT" if labels.get("BW") == "200" else "CAT-M",
        rsrp_dbm=power,
        rsrq_db=None if power is None else within(decimal(labels.get("RSRQ", "")), -50, 25),
        rssi_dbm=within(decimal(labels.get("PWR", "")), -130, -10),
        plmn=network,
        eci=cell_identity(hexadecimal(labels.get("CID", "")), "LTE"),
        pci=code(labels.get("ID", ""), 0, 503),
        earfcn=code(labels.get("EARFCN", ""), 1, 262143),
        band=code(labels.get("BAND", ""), 1, 88),
    )


def _cced(row: Sequence[str]) -> Reading:
    """``LTE current cell:<mcc>,<mnc>,<imsi>,<roaming>,<band>,<bandwidth>,<earfcn>,<cell>,<rsrp>,<rsrq>,<tac>,<…>,<pci>``, decimal."""
    head, _, mcc = at(row, 0).partition(":")
    if head.lower() != "lte current cell":
        return Reading()
    return _lte(plmn(mcc, at(row, 1)), at(row, 10), at(row, 7), at(row, 12), at(row, 6), at(row, 4))


def _eemltesvc(row: Sequence[str]) -> Reading:
    """``<mcc>,<digits of mnc>,<mnc>,<tac>,<pci>,<dl earfcn>,<ul earfcn>,<band>,<bandwidth>,<cell>,…``, decimal, MCC and MNC by their
    hexadecimal digits (1120 is 460). Where its levels stand differs by firmware: +CESQ tells them."""
    mcc, mnc, digits = whole(at(row, 0)), whole(at(row, 2)), code(at(row, 1), 2, 3)
    network = None if mcc is None or mnc is None or digits is None else plmn(f"{mcc:03x}", f"{mnc:0{digits}x}")
    return _lte(network, at(row, 3), at(row, 9), at(row, 4), at(row, 5), at(row, 7))


def _lte(network: str | None, tac: str, cell: str, pci: str, earfcn: str, band: str) -> Reading:
    eci = cell_identity(whole(cell), "LTE") or None
    if network is None or eci is None:
        return Reading()
    return Reading(
        rat="LTE",
        plmn=network,
        tac=area_code(whole(tac)),
        eci=eci,
        pci=code(pci, 0, 503),
        earfcn=code(earfcn, 0, 262143),
        band=code(band, 1, 88),
    )


def _asked(identity: Identity) -> Commands:
    """By chipset; one that has not told its name is asked as an Air7xx. +EEMLTESVC comes unasked after +EEMGINFO: it is only read."""
    nordic, sequans = identity.says(*_NORDIC), identity.says(*_SEQUANS)
    own = "AT%XMONITOR" if nordic else "AT+SQNMONI=9" if sequans else "AT+CCED=0,1"
    return (own, "AT+CSQ;+CESQ", "AT+CEREG?;+COPS?")


_NORDIC, _SEQUANS = ("nordic semiconductor", "nrf91"), ("sequans",)
DRIVER = Driver(
    "chipset",
    poll=_asked,
    decode=decode,
    knows=(*_NORDIC, *_SEQUANS, "openluat", "airm2m"),
    reads=("AT%XMONITOR", "AT+SQNMONI=9", "AT+EEMGINFO?;+EEMLTESVC?"),
)
