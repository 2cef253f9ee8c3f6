"""Room for the connections that [limits] allows: each takes a file descriptor."""

from __future__ import annotations

import logging
import resource

_LOG = logging.getLogger("tandem.serve")
_FURTHER = 128
"""The registry's files, pipes, the database's connections."""


def enough_descriptors(connections: int) -> None:
    """Raise this process's limit as far as needed and allowed; say so when that is too little."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _FURTHER
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    now = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (now, hard))
    except (OSError, ValueError):  # a service's filter forbids it: what the unit gave holds
        now = soft
    if now < wanted:
        _LOG.warning(
            "%d file descriptors allowed, %d connections configured; hint: LimitNOFILE=%d, or lower [limits] https_connections",
            now, connections, wanted,
        )  # fmt: skip
