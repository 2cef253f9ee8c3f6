"""Cinterion's cell commands by model, with +CSQ, +CEREG and +COPS of the standard."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.at.dialogue import Response
from tandem.modem.base import Commands, Driver, Identity, Reading, device
from tandem.modem.families.foxconn import debug
from tandem.modem.scales import at, cell
from tandem.modem.ts27007 import all_lines, fill, last_values

_STATES = {"SEARCH": "searching", "LIMSRV": "limited", "NOCONN": "idle", "CONN": "connected"}
_CELLS = {
    "4G": ("LTE", "- earfcn band bandwidth_mhz - - mcc mnc tac eci pci - rsrp_dbm rsrq_db", 14),
    "3G": ("WCDMA", "- - - ecno_db rscp_dbm mcc mnc lac ci", 11),
    "2G": ("GSM", "- - rssi_dbm mcc mnc lac ci", 12),
}
"""By ``^SMONI``'s first column: technology, columns, and that of the state. With a dedicated channel 2G and 3G have columns of it instead
of the state: it is connected then."""


def smoni(row: Sequence[str]) -> Reading:
    """Searching prints ``4G,SEARCH`` or ``3G,SEARCH,SEARCH``, and nothing of a cell."""
    if at(row, 1) == "SEARCH":
        return Reading(state="searching")
    if at(row, 0) not in _CELLS:
        return Reading()
    rat, columns, last = _CELLS[row[0]]
    dedicated = rat != "LTE" and len(row) >= 17
    return cell(rat, columns, row, state="connected" if dedicated else _STATES.get(at(row, last), "unknown"))


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """Whichever command answered. ^SMONI tells the RRC state and no SINR, ^DEBUG? a SINR and no state."""
    lines = all_lines(responses)
    row = last_values(lines, "^SMONI")
    return fill(smoni(row) if row else debug(lines), lines)


def _poll_commands(identity: Identity) -> Commands:
    """MV31 has ^DEBUG?; one that has not reported its name is asked ^SMONI."""
    return ("AT^DEBUG?" if identity.says("MV31", "MV32") else "AT^SMONI", "AT+CSQ;+CEREG?;+COPS?")


# Known by the manufacturer's names over the years.
# GNSS: Cinterion PLS8/PHS8 AT command set: ^SGPSC; not kept over a restart.
DRIVER = Driver(
    "cinterion",
    poll=_poll_commands,
    decode=decode,
    knows=("cinterion", "gemalto", "thales"),
    gnss=('AT^SGPSC="NMEA/Output","on"', 'AT^SGPSC="Engine","1"'),
    devices=(
        # CDC ACM ports (ttyACM).
        device("1e2d:005b", "PLS62-W", at=0, at_second=2),
        # MBIM; which serial interface answers AT is not published: the port is named in the configuration.
        device("1e2d:00b3", "MV31-W", network=0),
    ),
)
