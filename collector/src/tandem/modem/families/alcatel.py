"""Alcatel's ``/goform/getWanInfo``: a JSON object.

Source: public readers of these sticks and of their kin (W800, EE4x). Their
``/goform/getImgInfo`` has bars, which are no quantity: it is not asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from tandem.at.dialogue import Response
from tandem.modem.base import Driver, Identity, Reading, device
from tandem.modem.families.zte_web import fields_of

_RATS = {"1": "GSM", "2": "GSM", "9": "GSM", **dict.fromkeys(("3", "4", "5", "12", "13"), "WCDMA"), "11": "LTE"}
"""``network_type`` of getWanInfo, by the table in the web interface's own script as published; 0 is no service."""


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """Technology, and ``no_service`` where getWanInfo says so, else ``unknown``; no quantity at all."""
    kind = next((found for found in (fields_of(page).get("network_type") for page in responses) if found), "")
    return Reading(state="no_service") if kind == "0" else Reading(rat=_RATS.get(kind))


# One page a poll, of which technology and state come; no AT command for the cell is known. For quantities their MBIM firmware is
# polled through ModemManager.
# RNDIS or MBIM by firmware; a router at 192.168.1.1 in the former case.
DRIVER = Driver(
    "alcatel",
    poll=("GET /goform/getWanInfo",),
    decode=decode,
    knows=("alcatel", "IK40", "IK41"),
    setup=(),
    transport="http",
    devices=(
        # The id is RNDIS firmware's.
        device(
            "1bbb:0195",
            "IK40V, IK41VE, W800",
            network=0,
            switched_from="f000",
            mode_switch="usb_modeswitch by its own data file",
            address="192.168.1.1",
        ),
    ),
)
