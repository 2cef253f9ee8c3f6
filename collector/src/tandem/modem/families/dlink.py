"""D-Link DWM-222: nothing but the standard's commands."""

from __future__ import annotations

from tandem.modem.base import EJECT, Driver, device
from tandem.modem.ts27007 import decode_standard

# Two command lines, so that a firmware that refuses +CESQ still tells its cell. Hardware A2 is asked through ModemManager where its AT
# port is not found.
DRIVER = Driver(
    "dlink",
    poll=("AT+CSQ;+CESQ", "AT+CEREG?;+COPS?"),
    decode=decode_standard,
    knows=("d-link", "dwm-222"),
    devices=(
        # Interface 2 is the modem (PPP too), 1 answers AT beside it. QMI on interface 4.
        device("2001:7e35", "DWM-222 A1", at_second=1, at=2, network=4, switched_from="ab00", mode_switch=EJECT),
        # QMI on interface 4; polled through ModemManager.
        device("2001:7e3d", "DWM-222 A2", network=4, switched_from="ac01", mode_switch=EJECT),
    ),
)
