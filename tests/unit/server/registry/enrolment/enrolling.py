"""A gateway to enrol at, a probe's root folder, and the script as a module and as a program."""

import base64
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path

from support.program_module import module_of
from support.serve_on_loopback import command, free_ports
from tandem_server.registry import Registry

SCRIPT = Path(__file__).parents[5] / "firmware/image/src/tandem_image/files/tandem-enrol"
HUB_KEY = base64.b64encode(bytes(range(32))).decode()


def lay_out_gateway(folder):
    """server.toml and tls/; the port."""
    (port,) = free_ports(1)
    (folder / "server.toml").write_text(
        f'[listen]\nhost = "127.0.0.1"\ngateway_port = {port}\n[wireguard]\nnetwork = "10.87.0.0/16"\n'
        'endpoint = "192.0.2.1:51820"\npublic_key_file = "hub.pub"\n'
        "[limits]\nfailures_per_address = 60000\n"  # all enrol from here
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

    def code_for(self, name):
        """The same without the command, for who invites fifty."""
        with Registry(self.folder / "registry.sqlite") as registry:
            return registry.enrolments.invite(name, 3600, IPv4Network("10.87.0.0/16")).code

    def knows(self, token):
        with Registry(self.folder / "registry.sqlite") as registry:
            return registry.probes.of_token(token)

    def enrolled(self, name):
        with Registry(self.folder / "registry.sqlite") as registry:
            return next(one for one in registry.enrolments.all() if one.probe == name)

    def write_enrol(self, root, name, its_code, **more):
        """What the image puts on the card; with one host key, made once, where the test has not made its folder."""
        (root / "etc/tandem").mkdir(parents=True, exist_ok=True)
        if not (self.folder / "ssh").exists():
            (self.folder / "ssh").mkdir()
            key = self.folder / "ssh/ssh_host_ed25519_key"
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        if not (root / "etc/ssh").exists():
            shutil.copytree(self.folder / "ssh", root / "etc/ssh")
        usual = {"probe": name, "gateway": f"https://127.0.0.1:{self.port}", "code": its_code}
        content = usual | {"ca_file": str(self.folder / "tls/ca.pem")} | more
        (root / "etc/tandem/enrol.json").write_text(json.dumps(content))
        return root / "etc/tandem"


def script_module():
    """A fresh one, whose constants and calls a test may change."""
    return module_of(SCRIPT)


def run_script(root, *args):
    line = [sys.executable, str(SCRIPT), "--root", str(root), *(args or ("--for", "0"))]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)


HASTY = """import sys
names = {"__name__": "tandem_enrol"}
exec(compile(open(sys.argv[1]).read(), sys.argv.pop(1), "exec"), names)
names["LOOK_S"] = 0.05
sys.exit(names["main"]())"""


def started(root, *args):
    """As a program that goes on by itself; it looks around twenty times a second."""
    line = [sys.executable, "-c", HASTY, str(SCRIPT), "--root", str(root), *args]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
