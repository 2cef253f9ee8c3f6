"""What else shapes an experiment's figures: kernel, scheduler, controllers, sysctls, buffers. The same for every experiment."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

from tandem.experiment.common_parameters import CommonParameters
from tandem.mptcp import kernels, sockets, sysctls
from tandem.mptcp_abi.controllers import described


def environment(asked: CommonParameters, connection: socket.socket | None = None) -> dict[str, Any]:
    """The machine as it is now and, of an open ``connection``, its buffers and this end's congestion control."""
    kernel, machine = kernels.here(), os.uname()
    found: dict[str, Any] = {
        "kernel": machine.release,
        "machine": machine.machine,
        "python": sys.version.split()[0],
        **kernel.settings(connection),
        "multipath": {"kernel": kernel.name, "protocol": kernel.protocol, "untried": kernel.untried},
        "sysctls": sysctls.read((*kernel.sysctls, *sysctls.RECORDED)),
        "primary": asked.primary.name,
        "paths": [{"name": p.name, "interface": p.interface, "operator": p.operator} for p in asked.paths],
    }
    if connection is not None:
        found["congestion_control"] = sockets.congestion_control(connection)
        found["controller"] = described(found["congestion_control"])
        found["receive_buffer_bytes"] = connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        found["send_buffer_bytes"] = connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    times = os.times()
    found["cpu_seconds"] = times.user + times.system
    return found
