"""Nordic's %XMONITOR, Sequans' +SQNMONI, Unisoc's +CCED and ASR's +EEMLTESVC, with the standard's commands.

Source: nRF91 AT commands reference guide (XMONITOR), Sequans Monarch AT manual (SQNMONI), OpenLuat's and ASR's AT manuals (CCED,
EEMGINFO), as quoted in public code and in answers that users published. +CCED prints the IMSI: it is passed over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tandem.at.dialogue import Response
from tandem.at.grammar import prefix
from tandem.modem.base import Commands, Driver, Identity, Reading
from tandem.modem.families.telit import labels_of
from tandem.modem.scales import at, cell, code, labelled, plmn, whole
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
    """``<stat>[,<name>,<short name>,<plmn>,<tac>,<AcT>,…]``. nRF91 has no wider LTE than Cat-M: its 7 is that. On NB-IoT RSRP has another
    scale, that of the SNR is not sure."""
    reported = registration([f"+CEREG: 2,{at(row, 0)}"])
    if not row or not reported.known:
        return Reading()
    if not reported.registered:
        return Reading(state=reported.state or "unknown")
    rat = {"7": "CAT-M", "9": "NB-IOT"}.get(at(row, 5))
    columns = "- - - plmn tac - band eci pci earfcn rsrp_dbm:code"
    found = cell(rat, columns, row, sinr_code=code(at(row, 11), 0, 126))
    return found if rat == "CAT-M" else replace(found, rsrp_dbm=None)


def _sqnmoni(line: str) -> Reading:
    """``<name> Cc:<mcc> Nc:<mnc> RSRP:… [CINR:…] RSRQ:… TAC:… Id:<pci> EARFCN:… PWR:… PAGING:…[ CID:0x… BAND:… BW:<kHz>]``, levels in dBm
    and dB, −1 for none. In which base its TAC is, is not known."""
    labels = labels_of(line.replace(":0x", ":"))
    rat = "NB-IOT" if labels.get("BW") == "200" else "CAT-M"
    columns = "mcc=CC mnc=NC rsrp_dbm=RSRP rsrq_db=RSRQ rssi_dbm=PWR eci=CID pci=ID earfcn=EARFCN band=BAND"
    found = labelled(rat, columns, labels)
    if found.rsrp_dbm is None:
        found = replace(found, rsrq_db=None)
    return found if found.plmn is not None else Reading()


def _cced(row: Sequence[str]) -> Reading:
    """``LTE current cell:<mcc>,<mnc>,<imsi>,<roaming>,<band>,<bandwidth>,<earfcn>,<cell>,<rsrp>,<rsrq>,<tac>,<…>,<pci>``."""
    head, _, mcc = at(row, 0).partition(":")
    if head.lower() != "lte current cell":
        return Reading()
    found = cell("LTE", "mcc mnc - - band - earfcn eci:d - - tac:d - pci", (mcc, *row[1:]))
    return found if found.plmn is not None and found.eci is not None else Reading()


def _eemltesvc(row: Sequence[str]) -> Reading:
    """``<mcc>,<digits of mnc>,<mnc>,…``, MCC and MNC by their hexadecimal digits (1120 is 460). Where its levels stand differs by firmware:
    +CESQ tells them."""
    mcc, mnc, digits = whole(at(row, 0)), whole(at(row, 2)), code(at(row, 1), 2, 3)
    network = None if mcc is None or mnc is None or digits is None else plmn(f"{mcc:03x}", f"{mnc:0{digits}x}")
    found = cell("LTE", "- - - tac:d pci earfcn - band - eci:d", row, plmn=network)
    return found if network is not None and found.eci is not None else Reading()


def _poll_commands(identity: Identity) -> Commands:
    """By chipset; one that has not reported its name is asked as an Air7xx. +EEMLTESVC comes unasked after +EEMGINFO: it is only read."""
    nordic, sequans = identity.says(*_NORDIC), identity.says(*_SEQUANS)
    own = "AT%XMONITOR" if nordic else "AT+SQNMONI=9" if sequans else "AT+CCED=0,1"
    return (own, "AT+CSQ;+CESQ", "AT+CEREG?;+COPS?")


_NORDIC, _SEQUANS = ("nordic semiconductor", "nrf91"), ("sequans",)
DRIVER = Driver(
    "chipset",
    poll=_poll_commands,
    decode=decode,
    knows=(*_NORDIC, *_SEQUANS, "openluat", "airm2m"),
    reads=("AT%XMONITOR", "AT+SQNMONI=9", "AT+EEMGINFO?;+EEMLTESVC?"),
)
