"""A kit on the bench with all that the check looks at, and what can be made to fail on it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nmea
from incident_host import TOO_LOW, WELL, Machine, SmallDisk, small_disk

from support.running_kit import RunningKit, awaited, running_kit
from tandem_bench.run.programs import COLLECTOR, READY_S, Owner, confined

MORE = """
[position]
mode = "coarse"
source = "device"
device = "{device}"
"""
OWN_RUN = 'mkdir -p /run/tandem-preflight && mount --bind "$1" /run/tandem-preflight && shift && exec "$@"'
"""Each collector that starts on this machine removes from /run what killed checks left there."""
STRIP = "chain pass { type filter hook forward priority mangle; reset tcp option mptcp; }"


@dataclass
class PreflightKit:
    """``kit`` runs, on ``machine``, with a ``receiver`` that is gone once it is closed, and a ``disk`` for another folder; ``run``: what
    checks have in place of /run/tandem-preflight."""

    kit: RunningKit
    machine: Machine
    receiver: ExitStack
    disk: SmallDisk
    run: Path

    def check(self, *args: str, config: Path | None = None) -> tuple[int, dict[str, Any]]:
        """``tandem preflight --json``: status and result."""
        command = self._command(*args, "--config", str(config or self.kit.probe / "config.toml"))
        done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.returncode, json.loads(done.stdout)

    def _command(self, *args: str) -> list[str]:
        argv = [sys.executable, "-m", "tandem", "preflight", "--json", *args]
        around = [*self.machine.around, "sh", "-c", OWN_RUN, "sh", str(self.run)]
        return self.kit.rig.command("probe", [*around, *confined(argv, Owner.of_caller(), COLLECTOR)])

    @contextmanager
    def killed_check(self) -> Iterator[Path]:
        """The folder of one that was ended by SIGKILL in its middle, and everything that it had started with it."""
        command = self._command(*self.kit.probe_config)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True) as one:
            awaited("it has its paths in the kernel", lambda: self.checks() and self.ours_in_the_kernel() > 0, 60)
            os.killpg(one.pid, signal.SIGKILL)
        (left,) = self.checks()
        yield left

    def checks(self) -> list[Path]:
        """Folders of checks that run or were killed."""
        return list(self.run.iterdir())

    def ours_in_the_kernel(self) -> int:
        """How many of the probe's rules and endpoints are of the range that the collector has for its own."""
        told = [self.kit.run("probe", "ip", *words) for words in (("rule",), ("mptcp", "endpoint"))]
        return sum(len(re.findall(r"^71[01][0-9]:|\bid 10[1-8]\b", text, re.MULTILINE)) for text in told)

    def spent(self, path: str) -> None:
        """Something goes over ``path``, and the probe's account has it on the disk."""
        account = self.kit.probe / "account.json"

        def told() -> bool:
            return account.exists() and bool(json.loads(account.read_bytes())["paths"].get(path))

        self.kit.measured("--kind", "tcp", "--path", path, "--seconds", "1")
        awaited("the account tells of it", told, 90)

    def options_stripped(self, operator: str) -> Any:
        """The operator's network takes Multipath TCP's options away."""
        return self.kit.ruled(f"op-{operator}", STRIP)

    @contextmanager
    def interface_down(self, path: str) -> Iterator[None]:
        """As an unplugged cable."""
        (interface,) = [one.interface for one in self.kit.rig.probe_paths() if one.name == path]
        self.kit.run("probe", "ip", "link", "set", interface, "down")
        try:
            yield
        finally:
            self.kit.run("probe", "ip", "link", "set", interface, "up")
            # The address of a point-to-point interface stays; its routes went with it and are the collector's to bring back.
            awaited("the path is up", lambda: self.kit.status()["paths"][path]["state"] == "up", 60)

    @contextmanager
    def weak_supply(self) -> Iterator[None]:
        """The firmware's bits."""
        self.machine.supply(TOO_LOW)
        try:
            yield
        finally:
            self.machine.supply(WELL)

    def serve_anew(self, edit: tuple[str, str]) -> None:
        """The gateway with another configuration."""
        file = self.kit.folder / "server" / "server.toml"
        file.write_text(file.read_text().replace(*edit))
        (gateway,) = [one for one in self.kit.programs.started if one.name == "gateway"]
        self.kit.programs.end(gateway, 60)
        self.kit.programs.start("gateway", gateway.argv, READY_S)

    @contextmanager
    def without_collector(self) -> Iterator[None]:
        """It ends as with the power, and is started again."""
        kit = self.kit
        os.kill(kit.collector.pid, signal.SIGKILL)
        kit.programs.end(kit.collector)
        try:
            yield
        finally:
            kit.collector = kit.programs.start("collector", kit.collector.argv, READY_S)


def shown(told: dict[str, Any]) -> str:
    """What does not pass, for a test that fails."""
    return "\n".join(str(line) for line in told["lines"] if line["state"] != "pass")


def failed(told: dict[str, Any], state: str = "fail") -> set[str]:
    """Labels of the lines in that state."""
    return {
        line["line"] + (f":{line['path']}" if line["path"] else "") for line in told["lines"] if line["state"] == state
    }


@contextmanager
def preflight_kit(folder: Path, influxd: Path) -> Iterator[PreflightKit]:
    """Up and polling; nothing is measured unless it is asked for."""
    machine = Machine.planted(folder / "machine")
    (folder / "checks").mkdir(mode=0o700)
    Owner.of_caller().give(folder / "checks")
    port = nmea.NmeaPort([nmea.Place(51.8979, -8.4706, 0.0, 0.0)])
    with ExitStack() as receiver, small_disk(folder / "small", "16m") as disk:
        receiver.callback(port.close)
        with running_kit(
            folder / "run",
            influxd,
            more=MORE.format(device=port.device),
            around=machine.around,
            edited=lambda text: text.replace('= "simultaneous"', '= "off"'),
        ) as kit:
            yield PreflightKit(kit, machine, receiver, disk, folder / "checks")
