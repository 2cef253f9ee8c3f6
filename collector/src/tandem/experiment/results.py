"""What a run's result holds, declared once as its parameters are, and what results of different experiments have alike: the machine, the
bytes of each path, distributions."""

from __future__ import annotations

import math
import os
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tandem.experiment.parameters import CommonParameters, Parameter, ProbePath, is_of
from tandem.mptcp import kernels, sockets, sysctls
from tandem.mptcp.statistics import SubflowTotal
from tandem.mptcp_abi import described

BYTES_BY_PATH = Parameter(
    "bytes_by_path", "object", "by path: received and sent, as far as the kernel says; null: unknown", "B"
)
"""Every experiment declares it: what the run cost each path, beside the interface's own counters in the manifest."""

INTERFACE_BYTES = Parameter(
    "interface_bytes_by_path", "object", "all that the interface counted, headers and other traffic too"
)
"""Of experiments whose payload is small beside its headers."""

FIGURES = (
    Parameter("bytes", "int", "payload", "B"),
    Parameter("duration_s", "float", "of the transfer", "s"),
    Parameter("goodput_bit_per_s", "float", "bytes · 8 / duration", "bit/s"),
)  # fmt: skip
"""The figures that can be compared with every experiment's; one that has them uses these names."""

SENDER = Parameter("sender", "object", "the server's answer when the session was closed")
"""For experiments of one session."""


def faults(declared: Sequence[Parameter], result: Mapping[str, Any]) -> list[str]:
    """What ``result`` has that was not declared, or of another kind, one line each; None is a value of every kind. A declared key
    that is not there is no fault: it could not be measured."""
    kinds = {p.name: p.kind for p in declared}
    found = [f"{name!r} is not declared" for name in result if name not in kinds]
    return found + [
        f"{name!r}: {type(value).__name__}, declared as {kinds[name]}"
        for name, value in result.items()
        if name in kinds and value is not None and not is_of(kinds[name], value)
    ]


def bytes_by_path(counted: Iterable[tuple[str | None, int | None, int | None]]) -> dict[str, dict[str, int | None]]:
    """Sums of (path, received, sent) over everything that was measured, by path; a subflow whose path is not known is left out,
    and what is known for none of a path's is None."""
    sums: dict[str, dict[str, int | None]] = {}
    for path, received, sent in counted:
        if path is None:
            continue
        row = sums.setdefault(path, {"received": None, "sent": None})
        for name, value in (("received", received), ("sent", sent)):
            if value is not None:
                row[name] = (row[name] or 0) + value
    return sums


def carried(totals: Iterable[SubflowTotal]) -> dict[str | None, int]:
    """Bytes that these subflows carried, by path; None: whose path is not known."""
    found: dict[str | None, int] = {}
    for total in totals:
        found[total.name.path] = found.get(total.name.path, 0) + total.bytes
    return found


def path_rows(totals: Iterable[SubflowTotal]) -> list[dict[str, Any]]:
    by_path = carried(totals)
    whole = sum(by_path.values())
    return [{"path": p, "bytes": count, "share": count / whole if whole else 0.0} for p, count in by_path.items()]


class InterfaceCounters:
    """What the kernel counts on the interfaces of ``paths``, headers and all, from now on. Of the network namespace that this process is
    in, which /sys may not be."""

    def __init__(self, paths: Sequence[ProbePath]) -> None:
        self._paths = paths
        self._begun = {p.name: self._read(p.interface) for p in paths}

    def by_path(self) -> dict[str, dict[str, int | None]]:
        """Bytes received and sent since; None: the interface is gone, or was made anew."""
        found: dict[str, dict[str, int | None]] = {}
        for path in self._paths:
            now, begun = self._read(path.interface), self._begun[path.name]
            pairs = ((begun.get(key), now.get(key)) for key in ("received", "sent"))
            since = [None if a is None or b is None or b < a else b - a for a, b in pairs]
            found[path.name] = dict(zip(("received", "sent"), since, strict=True))
        return found

    @staticmethod
    def _read(interface: str) -> dict[str, int]:
        try:
            rows = (line.partition(":") for line in Path("/proc/thread-self/net/dev").read_text().splitlines())
            counted = next((row.split() for name, _, row in rows if name.strip() == interface), None)
        except OSError:
            return {}
        return {} if counted is None else {"received": int(counted[0]), "sent": int(counted[8])}


_PERCENT = (1, 5, 10, 25, 50, 75, 90, 95, 99)


def distribution(values: Sequence[float]) -> dict[str, Any]:
    """``n``, ``mean``, ``p1`` … ``p99`` (by the nearest rank) rounded to the thousandth; None where there is no value."""
    ordered = sorted(values)
    size = len(ordered)
    found: dict[str, Any] = {"n": size, "mean": round(sum(ordered) / size, 3) if size else None}
    for percent in _PERCENT:
        # the least value that so many percent do not exceed
        found[f"p{percent}"] = round(ordered[-(-percent * size // 100) - 1], 3) if size else None
    return found


def quantile(values: Sequence[float], share: float) -> float | None:
    """By linear interpolation between the two nearest; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def share(part: int, whole: int) -> float | None:
    """``part`` of ``whole``; None of nothing."""
    return part / whole if whole else None


def with_counters(environment: dict[str, Any], before: Mapping[str, int]) -> dict[str, Any]:
    """``environment`` with what this namespace's counters of Multipath TCP rose by since ``before``, in ``multipath``; as it is where
    it has no ``multipath``, or the kernel no counters."""
    multipath, now = environment.get("multipath"), kernels.here().counters()
    if not isinstance(multipath, dict) or not now:
        return environment
    risen = {name: value - before.get(name, 0) for name, value in now.items() if value > before.get(name, 0)}
    return {**environment, "multipath": {**multipath, "counters": risen}}


def environment(common: CommonParameters, connection: socket.socket | None = None) -> dict[str, Any]:
    """What else shapes the figures: the machine as it is now and, of an open ``connection``, its buffers and this end's congestion
    control."""
    kernel, machine, times = kernels.here(), os.uname(), os.times()
    found: dict[str, Any] = {
        "kernel": machine.release,
        "machine": machine.machine,
        "python": sys.version.split()[0],
        **kernel.settings(connection),
        "multipath": {"kernel": kernel.name, "protocol": kernel.protocol, "untried": kernel.untried},
        "sysctls": sysctls.read((*kernel.sysctls, *sysctls.RECORDED)),
        "primary": common.primary.name,
        "paths": [{"name": p.name, "interface": p.interface, "operator": p.operator} for p in common.paths],
        "cpu_seconds": times.user + times.system,
    }
    if connection is not None:
        control = sockets.congestion_control(connection)
        found |= {
            "congestion_control": control,
            "controller": described(control),
            "receive_buffer_bytes": connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
            "send_buffer_bytes": connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
        }
    return found
