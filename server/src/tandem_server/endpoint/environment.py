"""The sender's side of a measurement's conditions: kernel, congestion control, scheduler, buffers."""

from __future__ import annotations

import platform
import uuid
from pathlib import Path

from tandem.mptcp_abi import v094

_SYSCTLS = {
    "congestion_control": "net/ipv4/tcp_congestion_control",
    "tcp_wmem": "net/ipv4/tcp_wmem",
    "tcp_rmem": "net/ipv4/tcp_rmem",
    "tcp_slow_start_after_idle": "net/ipv4/tcp_slow_start_after_idle",
    "tcp_no_metrics_save": "net/ipv4/tcp_no_metrics_save",
}

_MULTIPATH = {
    "1": {"scheduler": "net/mptcp/scheduler", "mptcp_enabled": "net/mptcp/enabled"},
    "0": {"scheduler": "net/mptcp/mptcp_scheduler", "mptcp_enabled": "net/mptcp/mptcp_enabled"},
}
"""By the version of the protocol that the kernel speaks: 0 is the out-of-tree kernel's."""


def read_environment(root: Path = Path("/")) -> dict[str, str | None]:
    """Settings of this network namespace as the kernel tells them; None for those that this kernel does not have, or hides: the
    out-of-tree kernel shows its own in the first namespace only. ``mptcp_protocol``: the version that it speaks, None without any."""
    settings: dict[str, str | None] = {"kernel": platform.release()}
    proc = root / "proc"
    stock = "1" if (proc / "sys" / _MULTIPATH["1"]["mptcp_enabled"]).exists() else None
    settings["mptcp_protocol"] = protocol = "0" if v094.present(root) else stock
    for name, place in {**_SYSCTLS, **_MULTIPATH[protocol or "1"]}.items():
        try:
            settings[name] = " ".join((proc / "sys" / place).read_text().split())
        except OSError:
            settings[name] = None
    if protocol == "0" and settings["scheduler"] is None:
        settings["scheduler"] = v094.in_force().get("scheduler")
    return settings


def boot_id(proc: Path = Path("/proc")) -> str:
    """The id of this boot, in which CLOCK_MONOTONIC counts; a random one where the kernel tells none."""
    try:
        return (proc / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return str(uuid.uuid4())
