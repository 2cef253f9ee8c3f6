"""A gateway to enrol at, a probe's root folder, and the script as a module and as a program."""

import base64
import importlib.machinery
import importlib.util
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from serve_on_loopback import command, free_ports

from tandem_server.registry import Registry

SCRIPT = Path(__file__).parents[3] / "firmware/image/src/tandem_image/files/tandem-enrol"
HUB_KEY = base64.b64encode(bytes(range(32))).decode()


def lay_out_gateway(folder):
    """server.toml and tls/; the port."""
    (port,) = free_ports(1)
    (folder / "server.toml").write_text(
        f'[listen]\nhost = "127.0.0.1"\ngateway_port = {port}\n[wireguard]\nnetwork = "10.87.0.0/16"\n'
        'endpoint = "192.0.2.1:51820"\npublic_key_file = "hub.pub"\n'
    )
    (folder / "influxdb").mkdir()
    (folder / "influxdb/tandem.password").write_text("unused")
    (folder / "hub.pub").write_text(HUB_KEY)
    made = command("tls", "--folder", folder / "tls", "--name", "server.tandem.test", "--address", "127.0.0.1")
    assert made == (0, "", "")
    return port


@dataclass
class Gateway:
    folder: Path
    port: int

    def invite(self, name):
        status, out, _ = command("probe", "invite", name, "--config", self.folder / "server.toml", "--json")
        assert status == 0
        return json.loads(out)

    def knows(self, token):
        """The probe whose good token this is."""
        with Registry(self.folder / "registry.sqlite") as registry:
            return registry.probes.of_token(token)

    def enrolled(self, name):
        with Registry(self.folder / "registry.sqlite") as registry:
            return next(one for one in registry.enrolments.all() if one.probe == name)

    def write_enrol(self, root, name, its_code, **more):
        """What the image puts on the card."""
        (root / "etc/tandem").mkdir(parents=True, exist_ok=True)
        (root / "etc/ssh").mkdir(parents=True, exist_ok=True)
        usual = {"probe": name, "gateway": f"https://127.0.0.1:{self.port}", "code": its_code}
        content = usual | {"ca_file": str(self.folder / "tls/ca.pem")} | more
        (root / "etc/tandem/enrol.json").write_text(json.dumps(content))
        return root / "etc/tandem"


def script_module():
    """A fresh one, whose constants and calls a test may change."""
    loader = importlib.machinery.SourceFileLoader("tandem_enrol", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("tandem_enrol", loader))
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


def run_script(root, *args):
    """As a program, asked once."""
    line = [sys.executable, str(SCRIPT), "--root", str(root), *(args or ("--for", "0"))]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
