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
from eventful_stage import TOO_LOW, WELL, Machine, SmallDisk, small_disk
from kit_on_rig import KitOnRig, awaited, kit_on_rig
from nmea_port import NmeaPort

from tandem_bench.demo.configuration import CONTROL_PORT, GATEWAY_PORT
from tandem_bench.rig.rights import COLLECTOR, Owner, confined

MORE = """
[position]
mode = "coarse"
source = "device"
device = "{device}"
"""
SESSIONS = """
import json, sys
from tandem.experiment.asked import read_common
from tandem.experiment.control import Control
control = Control(read_common(json.loads(sys.argv[1])))
held = [control.open("any", {}, bytes=1, seconds=None) for _ in range(int(sys.argv[2]))]
print("held", flush=True)
sys.stdin.read()
for one in held:
    control.close(one, 5.0)
"""
SESSIONS_AT_ONCE = 4
CUT = "table ip cut {{ chain pass {{ type filter hook {hook} priority 0; {rule}; }}; }}"
RUN = Path("/run/tandem-preflight")
STRIP = "table ip cut { chain pass { type filter hook forward priority mangle; reset tcp option mptcp; }; }"


@dataclass
class PreflightKit:
    """``kit`` runs, on ``machine``, with a ``receiver`` that is gone once it is closed, and a ``disk`` for another folder."""

    kit: KitOnRig
    machine: Machine
    receiver: ExitStack
    disk: SmallDisk

    def check(self, *args: str, config: Path | None = None) -> tuple[int, dict[str, Any]]:
        """``tandem preflight --json``: status and result."""
        command = self._command(*args, "--config", str(config or self.kit.probe / "config.toml"))
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.returncode, json.loads(done.stdout)

    def _command(self, *args: str) -> list[str]:
        argv = [sys.executable, "-m", "tandem", "preflight", "--json", *args]
        return self.kit.rig.command("probe", [*self.machine.around, *confined(argv, Owner.of_caller(), COLLECTOR)])

    @contextmanager
    def killed_check(self) -> Iterator[Path]:
        """The folder of one that was ended by SIGKILL in its middle, and everything that it had started with it."""
        config = str(self.kit.probe / "config.toml")
        with subprocess.Popen(
            self._command("--config", config), stdout=subprocess.DEVNULL, start_new_session=True
        ) as one:
            awaited("it has its paths in the kernel", lambda: self.checks() and self.ours_in_the_kernel() > 0, 60)
            os.killpg(one.pid, signal.SIGKILL)
        (left,) = self.checks()
        yield left

    def checks(self) -> list[Path]:
        """Folders of checks that run or were killed, of this account."""
        return list(RUN.iterdir()) if RUN.is_dir() else []

    def ours_in_the_kernel(self) -> int:
        """How many of the probe's rules and endpoints are of the range that the collector has for its own."""
        told = [self.kit.rig.topology.run("probe", ["ip", *words]) for words in (("rule",), ("mptcp", "endpoint"))]
        return sum(len(re.findall(r"^71[01][0-9]:|\bid 10[1-8]\b", text, re.MULTILINE)) for text in told)

    def spent(self, path: str) -> None:
        """Something goes over ``path``, and the probe's account has it on the disk."""
        account = self.kit.probe / "account.json"

        def told() -> bool:
            return account.exists() and bool(json.loads(account.read_bytes())["paths"].get(path))

        self.kit.measured("--kind", "tcp", "--path", path, "--seconds", "1")
        awaited("the account tells of it", told, 90)

    def at_server(self, *args: str) -> str:
        """What ``tandem-server`` prints."""
        return self.kit.tool(
            "server", "tandem_server", *args, "--config", str(self.kit.folder / "server" / "server.toml")
        )

    def mended(self) -> None:
        """Both modems serve again, after faults that end by themselves."""

        def well() -> bool:
            modems = self.kit.status()["modems"]
            # One of the two families does not tell the state of RRC: that it names a technology says that it is served.
            return all(
                one["rat"] is not None and one["failure"] is None and one["age_s"] < 3 for one in modems.values()
            )

        awaited("both modems serve again", well, 90)

    @contextmanager
    def rules(self, namespace: str, rules: str) -> Iterator[None]:
        """A middlebox of nftables."""
        self.kit.rig.topology.run(namespace, ["nft", "-f", "-"], rules)
        try:
            yield
        finally:
            self.kit.rig.topology.run(namespace, ["nft", "delete", "table", "ip", "cut"])

    def nothing_passes(self, operator: str) -> Any:
        """The operator's network takes everything and brings nothing."""
        return self.rules(f"op-{operator}", CUT.format(hook="forward", rule="drop"))

    def options_stripped(self, operator: str) -> Any:
        """The operator's network takes Multipath TCP's options away."""
        return self.rules(f"op-{operator}", STRIP)

    def refused(self, *ports: int) -> Any:
        """Nobody listens there at the server, as far as probes see."""
        listed = ", ".join(map(str, ports))
        return self.rules("server", CUT.format(hook="input", rule=f"tcp dport {{ {listed} }} reject with tcp reset"))

    def no_gateway(self) -> Any:
        """See ``refused``."""
        return self.refused(GATEWAY_PORT)

    def no_endpoint(self) -> Any:
        """See ``refused``."""
        return self.refused(CONTROL_PORT)

    @contextmanager
    def interface_down(self, path: str) -> Iterator[None]:
        """As an unplugged cable."""
        (interface,) = [one.interface for one in self.kit.rig.probe_paths() if one.name == path]
        self.kit.rig.topology.run("probe", ["ip", "link", "set", interface, "down"])
        try:
            yield
        finally:
            self.kit.rig.topology.run("probe", ["ip", "link", "set", interface, "up"])
            # The address of a point-to-point interface stays; its routes went with it and are the collector's to bring back.
            awaited("the path is up", lambda: self.kit.status()["paths"][path]["state"] == "up", 30)

    @contextmanager
    def weak_supply(self) -> Iterator[None]:
        """The firmware's bits."""
        self.machine.supply(TOO_LOW)
        try:
            yield
        finally:
            self.machine.supply(WELL)

    @contextmanager
    def hung(self) -> Iterator[None]:
        """The collector stands still."""
        os.kill(self.kit.collector.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.kit.collector.pid, signal.SIGCONT)

    @contextmanager
    def all_sessions_open(self) -> Iterator[None]:
        """The probe's share of sessions is used up."""
        server = {
            "control": f"https://server.tandem.test:{CONTROL_PORT}",
            "measurement": "http://server.tandem.test:8480",
        }
        files = {"ca_file": str(self.kit.probe / "ca.pem"), "token_file": str(self.kit.probe / "token")}
        wifi = {"name": "wifi", "interface": "wlan0"}
        asked = {"run": "hold", "paths": [wifi], "server": {**server, **files}, "control_timeout_s": 10.0}
        argv = [sys.executable, "-c", SESSIONS, json.dumps(asked), str(SESSIONS_AT_ONCE)]
        command = self.kit.rig.command("probe", confined(argv, Owner.of_caller(), COLLECTOR))
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holding:
            assert holding.stdout is not None
            assert holding.stdout.readline() == "held\n"
            yield
            assert holding.stdin is not None
            holding.stdin.close()
            assert holding.wait(30) == 0

    def serve_anew(self, edit: tuple[str, str]) -> None:
        """The gateway with another configuration."""
        file = self.kit.folder / "server" / "server.toml"
        file.write_text(file.read_text().replace(*edit))
        (gateway,) = [one for one in self.kit.programs.started if one.name == "gateway"]
        self.kit.programs.end(gateway, 30)
        self.kit.programs.start("gateway", gateway.argv, 30)

    def token_of(self, *args: str) -> str:
        """The old token's text, once ``tandem-server probe ARGS`` wrote a new one into the probe's file."""
        token = self.kit.probe / "token"
        before = token.read_text()
        config = ["--config", str(self.kit.folder / "server" / "server.toml")]
        token.unlink()
        self.kit.tool("server", "tandem_server", "probe", *args, *config, "--token-file", str(token))
        return before

    @contextmanager
    def without_collector(self, ended_by: signal.Signals = signal.SIGKILL) -> Iterator[None]:
        """It is ended, and started again."""
        kit = self.kit
        os.kill(kit.collector.pid, ended_by)
        kit.programs.end(kit.collector, 45)
        try:
            yield
        finally:
            kit.collector = kit.programs.start("collector", kit.collector.argv, 30)


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
    port = NmeaPort([nmea.Place(51.8979, -8.4706, 0.0, 0.0)])
    with ExitStack() as receiver, small_disk(folder / "small", "16m") as disk:
        receiver.callback(port.close)
        with kit_on_rig(
            folder / "run",
            influxd,
            more=MORE.format(device=port.device),
            server_more=f"\n[probes.probe-1]\nsessions_at_once = {SESSIONS_AT_ONCE}\n",
            around=machine.around,
            edited=lambda text: text.replace('= "simultaneous"', '= "off"'),
        ) as kit:
            yield PreflightKit(kit, machine, receiver, disk)
