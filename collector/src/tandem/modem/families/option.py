"""Option's _OWCTI, _OCTI and _OSIGQ, with the standard's commands.

Source: ModemManager's and other public readers' tables, and a published dialogue of an iCON 225. No command for levels of 3G or
4G beyond the standard's is published.
"""

from __future__ import annotations

from collections.abc import Sequence

from tandem.at.dialogue import Response
from tandem.modem.base import STANDARD_SETUP, Driver, Identity, Reading, device
from tandem.modem.scales import at, code, filled
from tandem.modem.ts27007 import all_lines, fill, last_values, rssi


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """The technology from ``_OWCTI: <n>`` (1 to 4: 3G, 0: not) or ``_OCTI: <n>`` (1 to 3: 2G); the rest by the standard.

    ``_OSIGQ: <rssi>,<ber>``, which comes unasked, has the code of +CSQ and stands for it where +CSQ is not there.
    """
    lines = all_lines(responses)
    rat = None
    if code(at(last_values(lines, "_OWCTI"), 0), 1, 4) is not None:
        rat = "WCDMA"
    elif code(at(last_values(lines, "_OCTI"), 0), 1, 3) is not None:
        rat = "GSM"
    return filled(fill(Reading(rat=rat), lines), rssi(last_values(lines, "_OSIGQ")))


# Option's own commands and the younger ones of the standard in lines of their own: old firmware refuses some. Known by the
# manufacturer's name from its beginning: it is a word that others may use.
# The Linux driver hso makes the ports; which is what it tells in hsotype of each (Application: AT beside the Control port).
# Interface numbers are no use here: the port is named in the configuration.
DRIVER = Driver(
    "option",
    setup=("AT+CREG=2", "AT+CGREG=2", *STANDARD_SETUP),
    poll=("AT+CSQ;+CREG?;+CGREG?;+COPS?", "AT_OWCTI?", "AT_OCTI?", "AT+CESQ", "AT+CEREG?"),
    decode=decode,
    knows=lambda identity: identity.manufacturer.lower().startswith("option"),
    reads=("AT_OSIGQ?",),
    devices=(
        # Network function hso0; ports /dev/ttyHS*.
        device("0af0:6971", "iCON 225", switched_from="6971", mode_switch="usb_modeswitch (the id stays the same)"),
    ),
)
