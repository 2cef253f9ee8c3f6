"""A second probe of the incident run: on the internet by wire, without modems, whose clock nobody sets for a while."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from support.fake_chronyc import install, line
from support.running_kit import RunningKit
from tandem_bench.run.configuration import GATEWAY_PORT
from tandem_bench.run.programs import COLLECTOR, READY_S, Owner, Program, confined
from tandem_bench.topology.spec import SERVER_NAME

NAME, PLACE, INTERFACE = "probe-2", "internet", "server0"
"""The namespace, whose operators' NATs answer nobody, and its interface towards the server."""
PROGRAMS = "programs"
"""In its folder: what it finds before the machine's own."""

CONFIG = """
[probe]
name = "{name}"

[server]
gateway = "https://{server}:8443"
control = "https://{server}:8444"
measurement = "http://{server}:8480"
ca_file = "ca.pem"
token_file = "token"

[[path]]
name = "dsl"
operator = "Fixed"
interface = "{interface}"
gateway = "{server_address}"

[capture]
enabled = false

[campaigns]
ask_every_s = 2

[clock]
source = "chrony"
"""

REFUSED = """
import http.client, json, ssl, sys, time
ca, token, host, port = sys.argv[1:]
lines = [
    'radio,boot=old,path=a state="idle",rsrp_dbm=7,seq=1i,monotonic_ns=1i',
    'radio,boot=old,path=a state="idle",field_strength=7,seq=2i,monotonic_ns=1i',
    'expected,boot=old seen=1i,seq=3i,monotonic_ns=1i',
]
body = "\\n".join(f"{line} {time.time_ns()}" for line in lines)
asked = http.client.HTTPSConnection(host, int(port), timeout=10, context=ssl.create_default_context(cafile=ca))
asked.request("POST", "/v1/records", body, {"Authorization": f"Bearer {token}"})
answer = asked.getresponse()
print(json.dumps({"status": answer.status, **json.loads(answer.read())}))
"""
"""Lines that the gateway must refuse: a value out of range, a field and a measurement that a probe has not."""


@dataclass
class SecondProbe:
    kit: RunningKit
    folder: Path
    collector: Program

    def clock_set(self) -> None:
        """From now on chronyd answers, and vouches for the time."""
        install(self.folder / PROGRAMS, line())

    def silent(self) -> None:
        os.kill(self.collector.pid, 9)
        self.kit.programs.end(self.collector)

    def sends_what_is_refused(self) -> int:
        """As a probe whose software the server does not know; how many lines were rejected."""
        argv = [sys.executable, "-c", REFUSED, str(self.folder / "ca.pem"), (self.folder / "token").read_text().strip()]
        command = self.kit.rig.command(PLACE, [*argv, SERVER_NAME, str(GATEWAY_PORT)])
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return len(json.loads(done.stdout)["rejected"])


def second_probe(kit: RunningKit) -> SecondProbe:
    """Registered, started and ready; its records wait, since its clock is not set."""
    folder, owner = kit.folder / "probe" / NAME, Owner.of_caller()
    folder.mkdir()
    owner.give(folder)
    kit.server("probe", "add", NAME, "--token-file", str(folder / "token"))
    (folder / "ca.pem").write_text((kit.probe / "ca.pem").read_text())
    text = CONFIG.format(name=NAME, server=SERVER_NAME, interface=INTERFACE, server_address=kit.rig.server_address)
    (folder / "config.toml").write_text(text)
    path = f"PATH={folder / PROGRAMS}:{os.environ['PATH']}"
    run = ["env", path, sys.executable, "-m", "tandem", "run", "--config", str(folder / "config.toml")]
    argv = confined(run, owner, COLLECTOR)
    return SecondProbe(kit, folder, kit.programs.start("collector-2", kit.rig.command(PLACE, argv), READY_S))
