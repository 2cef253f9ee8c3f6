"""Whom new connections of this network namespace leave their subflows to: the kernel's own path manager, or us.

A connection keeps what the sysctl said when its socket was made: ``net.mptcp.path_manager``, ``net.mptcp.pm_type`` before Linux 6.15.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tandem.mptcp import sysctls

_WAYS = (("net.mptcp.path_manager", "kernel", "userspace"), ("net.mptcp.pm_type", "0", "1"))
"""Sysctl, its value for the kernel's path manager, its value for ours; the first that the kernel has is used."""


class ChoiceError(RuntimeError):
    """It cannot be chosen; the message says why."""


def choose(ours: bool) -> bool:
    """Leave new connections' subflows to us, or to the kernel; whether that was changed by it. ChoiceError when it cannot be: a kernel
    before 5.19, or no CAP_NET_ADMIN."""
    for name, kernels, mine in _WAYS:
        now = sysctls.read([name])[name]
        if now is None:
            continue
        wanted = mine if ours else kernels
        error = None if now == wanted else sysctls.apply({name: wanted})[name].error
        if error is not None:
            raise ChoiceError(f"{name}: {error}")
        return now != wanted
    raise ChoiceError("this kernel has no path manager but its own")


@contextmanager
def ours() -> Iterator[None]:
    """Sockets made meanwhile leave their subflows to us, whoever makes them: to be held for the making of one, and no longer. Killed
    in between, the running collector puts it right at its next check (``ordering``). ChoiceError as ``choose``."""
    changed = choose(True)
    try:
        yield
    finally:
        if changed:
            choose(False)
