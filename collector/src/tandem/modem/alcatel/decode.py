"""Alcatel's ``/goform/getImgInfo`` and ``/goform/getWanInfo``: JSON objects of numbers.

Source: public readers of these sticks and of their kin (W800, EE4x). The level is bars, which are no quantity: it is not read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from tandem.at.dialogue import Response
from tandem.modem.base import Reading

MAX_CHARACTERS = 65536
_NO_SERVICE = 0
"""``network_type`` of getWanInfo without service; the other numbers differ between firmwares."""


def decode(responses: Sequence[Response]) -> Reading:
    """``no_service`` where getWanInfo says so, else ``unknown``; no quantity at all."""
    for response in responses:
        text = "\n".join(response.lines)
        try:
            found = json.loads(text) if len(text) <= MAX_CHARACTERS else None
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            kind = found.get("network_type")
            if isinstance(kind, int) and not isinstance(kind, bool) and kind == _NO_SERVICE:
                return Reading(state="no_service")
    return Reading()
