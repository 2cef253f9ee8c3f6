"""Network sysctls: set where permitted, and recorded either way, for a run's manifest.

/proc/sys/net shows the network namespace of the reader and may be written with CAP_NET_ADMIN in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/proc/sys")

RECORDED = (
    "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_sack", "net.ipv4.tcp_timestamps", "net.ipv4.tcp_no_metrics_save",
    "net.core.rmem_max", "net.core.wmem_max", "net.core.default_qdisc",
)  # fmt: skip
"""What a manifest should hold, with what ``kernels.Kernel.sysctls`` names: everything that changes how a connection behaves."""

_NAME = re.compile(r"net(\.[A-Za-z0-9_-]+)+\Z")


@dataclass(frozen=True, slots=True)
class Setting:
    """One sysctl. ``before`` and ``now`` are None where the kernel has none or hides it; ``error`` says why it was not set."""

    name: str
    asked: str
    before: str | None
    now: str | None
    error: str | None


def _file(name: str) -> Path:
    if not _NAME.match(name):
        raise ValueError(f"{name!r} is no network sysctl; expected net.…, as in net.ipv4.tcp_rmem")
    return ROOT.joinpath(*name.split("."))


def read(names: Iterable[str]) -> dict[str, str | None]:
    """Values by name, white space as single blanks; None where the kernel has no such sysctl or hides it."""
    return {name: read_text(_file(name)) for name in names}


def read_text(file: Path) -> str | None:
    """Its content, white space as single blanks; None where there is none, or it is hidden."""
    try:
        return " ".join(file.read_text().split())
    except OSError:
        return None


def apply(wanted: Mapping[str, str | int]) -> dict[str, Setting]:
    """Set each; what could not be set says why in ``error``. ValueError for a name outside ``net.``."""
    settings = {}
    for name, value in wanted.items():
        file = _file(name)
        before = read_text(file)
        error = None
        try:
            file.write_text(f"{value}\n")
        except OSError as refused:
            error = refused.strerror or str(refused)
        settings[name] = Setting(name, str(value), before, read_text(file), error)
    return settings


def restore(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Put back what ``apply`` found, where it had set anything."""
    return apply({s.name: s.before for s in settings.values() if s.error is None and s.before is not None})
