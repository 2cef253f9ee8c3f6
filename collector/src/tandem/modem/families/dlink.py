"""D-Link DWM-222: nothing but the standard's commands (3GPP TS 27.007)."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.at.dialogue import Response
from tandem.modem.base import Driver, Identity, Reading
from tandem.modem.ts27007 import all_lines, standard


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """RSSI from +CSQ, levels as codes from +CESQ, the cell from +CEREG, PLMN from +COPS. No SINR, PCI, EARFCN, band or RRC."""
    return standard(all_lines(responses))


# Two command lines, so that a firmware that refuses +CESQ still tells its cell. Hardware A2 is asked through ModemManager where its AT
# port is not found.
DRIVER = Driver("dlink", poll=("AT+CSQ;+CESQ", "AT+CEREG?;+COPS?"), decode=decode, knows=("d-link", "dwm-222"))
