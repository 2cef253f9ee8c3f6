"""D-Link DWM-222: nothing but the standard's commands."""

from __future__ import annotations

from tandem.modem.base import Driver
from tandem.modem.ts27007 import decode_standard

# Two command lines, so that a firmware that refuses +CESQ still tells its cell. Hardware A2 is asked through ModemManager where its AT
# port is not found.
DRIVER = Driver("dlink", poll=("AT+CSQ;+CESQ", "AT+CEREG?;+COPS?"), decode=decode_standard, knows=("d-link", "dwm-222"))
