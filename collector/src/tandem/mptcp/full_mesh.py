"""The path manager of the v0.9x kernel, told which of our addresses to use: ``fullmesh`` opens a subflow of each connection from every
address of every interface that is not marked ``multipath off``. So an endpoint is an interface without that mark.

Routing tables and rules are the same as on the stock kernel. Made after that kernel's public source
(net/mptcp/mptcp_fullmesh.c); it has not run there. A mark stays when the collector is killed: ``ip link set dev X multipath on`` of that
project's iproute2 takes it off, as does the end of the next collector whose path the interface is.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection

from tandem.mptcp import link_flags, sysctls
from tandem.mptcp.iproute import IpError
from tandem.mptcp.path_manager import Endpoint, Limits
from tandem.mptcp_abi.v094 import IFF_NOMULTIPATH

PATH_MANAGER = "net.mptcp.mptcp_path_manager"
_FULLMESH = "fullmesh"
_MOST = 8
"""MPTCP_MAX_ADDR: addresses of either end."""

ReadFlags = Callable[[str], int | None]
ChangeFlags = Callable[[str, int, int], None]


class FullMesh:
    """See ``PathManager``. ``read``, ``change``: as in ``link_flags``."""

    name = "fullmesh"

    def __init__(self, read: ReadFlags = link_flags.read, change: ChangeFlags = link_flags.change) -> None:
        self._read, self._change = read, change
        self._made: dict[int, Endpoint] = {}
        self._off: set[str] = set()
        self._before: sysctls.Setting | None = None

    def endpoints(self) -> dict[int, Endpoint]:
        """Those made here whose interface is still there and unmarked: the kernel numbers none."""
        return {n: e for n, e in self._made.items() if self._marked(e.interface or "") is False}

    def add(self, endpoint: Endpoint) -> None:
        """See ``PathManager``."""
        if endpoint.interface is None:
            raise IpError(f"endpoint {endpoint.address}: {_FULLMESH} knows interfaces, and none is named")
        self._mark(endpoint.interface, off=False)
        self._made[endpoint.id] = endpoint

    def remove(self, number: int) -> None:
        """See ``PathManager``."""
        had = self._made.pop(number, None)
        if had is None or had.interface is None:
            raise IpError(f"endpoint {number}: No such endpoint")
        if all(e.interface != had.interface for e in self._made.values()):
            self._mark(had.interface, off=True)

    def limits(self) -> Limits:
        """The kernel's own, which nobody can change."""
        return Limits(_MOST, _MOST)

    def set_limits(self, limits: Limits) -> None:
        """Nothing: see ``limits``."""

    def only_endpoints(self, interfaces: Collection[str]) -> None:
        """Have new connections use this path manager, and no other interface than an endpoint's."""
        self._choose()
        used = {e.interface for e in self._made.values()}
        for name in interfaces:
            if name != "lo" and name not in used and self._marked(name) is False:
                self._mark(name, off=True)

    def set_backup(self, number: int, backup: bool) -> None:
        """Refused: what this kernel's ``multipath backup`` does to running subflows was never tried."""
        raise IpError(f"endpoint {number}: no path is made {'backup' if backup else 'active'} on the v0.94 kernel")

    def undo_backup(self, number: int) -> list[str]:  # noqa: ARG002  (as the other kernel's)
        """Nothing was done."""
        return []

    def restore(self) -> None:
        """Take off the marks that were made here, and put the path manager of before back."""
        self._made.clear()
        for name in sorted(self._off):
            if self._marked(name):
                self._mark(name, off=False)
        self._off.clear()
        if self._before is not None:
            sysctls.restore({PATH_MANAGER: self._before})
            self._before = None

    def _choose(self) -> None:
        now = sysctls.read([PATH_MANAGER])[PATH_MANAGER]
        if now in (
            _FULLMESH,
            None,
        ):  # None: hidden in a network namespace that is not the first, where the first one's holds
            return
        setting = sysctls.apply({PATH_MANAGER: _FULLMESH})[PATH_MANAGER]
        if setting.error is not None:
            raise IpError(f"{PATH_MANAGER} stays {now}: {setting.error}; mend: modprobe mptcp_fullmesh")
        self._before = self._before or setting

    def _marked(self, interface: str) -> bool | None:
        flags = self._read(interface)
        return None if flags is None else bool(flags & IFF_NOMULTIPATH)

    def _mark(self, interface: str, *, off: bool) -> None:
        if self._marked(interface) is off:
            return
        try:
            self._change(interface, IFF_NOMULTIPATH if off else 0, IFF_NOMULTIPATH)
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            raise IpError(f"{interface} multipath {'off' if off else 'on'}: {why}") from error
        if self._marked(interface) is not off:
            raise IpError(f"{interface} multipath {'off' if off else 'on'}: the kernel did not take it")
        if off:
            self._off.add(interface)
        else:
            self._off.discard(interface)
