"""The lab of two paths, of which b has IPv6 alone; the server has both families and tells its IPv6 address to every connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.experiment_process import Probed, Run, parameters
from support.two_paths import PATHS, Lab, lab, why_not
from tandem.mptcp import sockets
from tandem.mptcp.paths import Path, Paths

SERVER6, PROBE6, HOP6 = "fd00:5::10", "fd00:2::1", "fd00:2::2"
A4, B6 = PATHS[0], Path("b", "tmp5-b", HOP6)


def why_not6() -> str | None:
    """What this machine lacks for the lab; None when nothing."""
    return why_not() or (None if sockets.multipath6() else "this kernel's Multipath TCP has no IPv6")


@contextmanager
def mixed() -> Iterator[Lab]:
    with lab() as made:
        for space, interface in ((made.probe, "tmp5-b"), (made.server, "tmp5-bs"), (made.server, "lo")):
            space.run(f"echo 0 >/proc/sys/net/ipv6/conf/{interface}/disable_ipv6")
        made.server.run(f"ip address add {SERVER6}/128 dev lo; ip address add {HOP6}/64 dev tmp5-bs nodad")
        made.server.run(f"ip mptcp endpoint add {SERVER6} id 9 signal")
        made.probe.run(f"ip address flush dev tmp5-b scope global; ip address add {PROBE6}/64 dev tmp5-b nodad")
        yield made


def begin_download(two: Probed, paths: Paths, server: dict[str, str], **more: Any) -> Run:
    """A download over ``paths``, whose addresses are named, in the probe's namespace."""
    wanted = parameters(server, paths.paths, **{"kind": "mptcp", "path": "a", "whoami": False, **more})
    for path in wanted["paths"]:
        path |= {"address": paths.addresses[path["name"]], "interface": paths.interfaces[path["name"]]}
    return Run("download", wanted, two.probe.enter)
