"""The addresses of a bearer that ModemManager was given without DHCP (method ``static``: most QMI and MBIM modems), on its interface.

ModemManager tells them and sets nothing; where the collector has the connection, nobody else does. A bearer's interface has these
addresses and no others of that family. Needs CAP_NET_ADMIN.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from tandem.modem.mm_poller import Address, BearerGiven
from tandem.mptcp import iproute
from tandem.mptcp.iproute import IpError

log = logging.getLogger(__name__)

LOOK_AGAIN_S = 30.0
"""Somebody may take them away; then they are missing for so long at most."""

_STATIC = "static"


class BearerAddresses:
    """``keep`` is called once a poll, by one thread. ``tell(detail)``: that it could not be done, once for each reason."""

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._clock = tell, clock
        self._set: BearerGiven | None = None
        self._look_at = 0.0
        self._told: str | None = None

    def keep(self, given: BearerGiven | None) -> None:
        """``given``: the bearer as it is now; None: it is not connected, and what was set for it is taken away."""
        if given == self._set and (given is None or self._clock() < self._look_at):
            return
        try:
            if self._set is not None and (given is None or given.interface != self._set.interface):
                _apply(self._set, ())
            if given is not None:
                _apply(given, given.addresses)
        except IpError as error:
            if self._told != str(error):
                self._told = str(error)
                log.warning("bearer: %s", error)
                self._tell(str(error))
        else:
            self._told = None
        self._set, self._look_at = given, self._clock() + LOOK_AGAIN_S


def _apply(bearer: BearerGiven, wanted: tuple[Address, ...]) -> None:
    """Give the interface the ``wanted`` ones of each family in which the bearer's are static; none are wanted of one that ended."""
    mine = [a for a in bearer.addresses if a.method == _STATIC and a.address and a.prefix]
    interface = bearer.interface
    if not mine or interface is None:
        return
    rows = [row for row in iproute.ip_json("address", "show") if row.get("ifname") == interface]
    if not rows:
        return  # it went away with its modem, and its addresses with it
    row = rows[0]
    had = {
        (f"{a['local']}/{a.get('prefixlen')}", 6 if a.get("family") == "inet6" else 4)
        for a in row.get("addr_info", [])
        if a.get("scope") == "global" and "local" in a
    }
    want = {(f"{a.address}/{a.prefix}", a.family) for a in mine if a in wanted}
    families = {a.family for a in mine}
    for address, family in sorted(had - want):
        if family in families:
            iproute.ip("address", "delete", address, "dev", interface)
    if not want:
        return
    mtu = min((a.mtu for a in mine if a.mtu), default=None)
    if "UP" not in row.get("flags", []) or (mtu is not None and row.get("mtu") != mtu):
        iproute.ip("link", "set", interface, "up", *(("mtu", str(mtu)) if mtu is not None else ()))
    for address, family in sorted(want - had):
        # No duplicate is looked for: the network gave it to this bearer alone.
        iproute.ip("address", "add", address, "dev", interface, *(("nodad",) if family == 6 else ()))
