"""The collector's service as systemd and the collector itself tell of it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tandem_release.disk import ReleaseError
from tandem_release.place import CONFIG, UNIT, credentials


@dataclass(frozen=True, slots=True)
class Told:
    """``active``: systemd holds it for started; ``pid`` its first process, 0 without; ``program``: what that runs; ``status``: the
    collector's own (collector/README.md), None when it does not answer; ``stale``: a unit or a secret that it was started with is
    another one now."""

    active: bool
    pid: int
    program: str
    status: dict[str, Any] | None
    stale: bool = False


class Service(Protocol):
    """What a switch needs of it."""

    def told(self) -> Told:
        """As it is now."""

    def start_anew(self) -> None:
        """Units are read again, the service started anew. Whether it stays up is for ``told``."""

    def wait_idle(self, seconds: float) -> bool:
        """Whether nothing is measured, now or within the time."""


class Systemd:
    """The real one. ``home``: of the releases, ``root``: of the system."""

    def __init__(self, home: Path, root: Path) -> None:
        self.program, self.config = home / "current/bin/tandem", root / CONFIG
        self.units = root / "etc/systemd/system"

    def told(self) -> Told:
        """As it is now."""
        asked = "--property=ActiveState,MainPID,NeedDaemonReload,ExecMainStartTimestamp"
        shown = _run("systemctl", "show", UNIT, asked, "--timestamp=unix")
        fields = dict(line.partition("=")[::2] for line in shown.stdout.splitlines())
        pid = int(fields.get("MainPID") or 0)
        stale = fields.get("NeedDaemonReload") == "yes" or self._newer(fields.get("ExecMainStartTimestamp", ""))
        return Told(fields.get("ActiveState") == "active", pid, _program(pid), self._status(), stale)

    def _newer(self, started: str) -> bool:
        """Whether a unit or credential was written after the start (``@`` and seconds since 1970; empty: never started)."""
        if not started.startswith("@"):
            return False
        units = [unit for unit in (self.units / UNIT, *(self.units / f"{UNIT}.d").glob("*.conf")) if unit.exists()]
        read = [*units, *(Path(path) for path in credentials(units).values())]
        return any(path.exists() and path.stat().st_mtime > int(started[1:]) + 1 for path in read)

    def _status(self) -> dict[str, Any] | None:
        if not self.program.exists():
            return None
        done = _run(str(self.program), "status", "--json", "--config", str(self.config))
        if done.returncode != 0:
            return None
        try:
            status = json.loads(done.stdout)
        except ValueError:
            return None
        return status if isinstance(status, dict) else None

    def start_anew(self) -> None:
        """Units are read again, the service started anew. What systemctl says of it is shown; whether it stays up is for ``told``."""
        for argv in (("daemon-reload",), ("restart", UNIT)):
            done = _run("systemctl", *argv)
            if done.returncode != 0:
                print(f"tandem-release: systemctl {argv[0]}: {done.stderr.strip()}", file=sys.stderr)

    def wait_idle(self, seconds: float) -> bool:
        """Whether nothing is measured, now or within the time. A collector that cannot say holds nothing."""
        if not self.program.exists():
            return True
        wait = ("campaign", "idle", "--wait", f"{seconds:g}", "--config", str(self.config))
        return _run(str(self.program), *wait).returncode != 1


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0].decode(errors="replace")
    except OSError:
        return ""


def _run(*argv: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)
    except FileNotFoundError as error:
        raise ReleaseError(f"{argv[0]} is missing; mend: run this on a probe with systemd", 3) from error
