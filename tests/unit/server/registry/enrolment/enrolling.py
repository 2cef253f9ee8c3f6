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
from support.serve_on_loopback import Server, command
from tandem_server.registry import Registry

SCRIPT = Path(__file__).parents[5] / "firmware/image/src/tandem_image/files/tandem-enrol"
HUB_KEY = base64.b64encode(bytes(range(32))).decode()


TUNNEL = """[wireguard]
network = "10.87.0.0/16"
endpoint = "192.0.2.1:51820"
public_key_file = "hub.pub"
[limits]
failures_per_address = 60000
"""
"""All enrol from one address here."""


@dataclass
class Gateway(Server):
    """``secrets``: the codes and tokens that it gave."""

    def __post_init__(self):
        self.secrets = []
        (self.folder / "hub.pub").write_text(HUB_KEY + "\n")
        (self.folder / "ssh").mkdir()
        key = self.folder / "ssh/ssh_host_ed25519_key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "root@probe", "-f", key], check=True)
        self.host_key = key.with_name(f"{key.name}.pub").read_text().strip()

    def run(self, *words):
        return command("probe", *words, "--config", self.folder / "server.toml")

    def invite(self, name, *more):
        status, out, _ = self.run("invite", name, "--json", *more)
        assert status == 0
        made = json.loads(out)
        self.secrets.append(made["code"])
        return made

    def code_for(self, name):
        """The same without the command, for who invites fifty."""
        with Registry(self.folder / "registry.sqlite") as registry:
            return registry.enrolments.invite(name, 3600, IPv4Network("10.87.0.0/16")).code

    def enrol(self, asked):
        status, headers, answer = self.gateway("POST", "/v1/enrol", json.dumps(asked), token="")
        self.secrets += [answer["token"]] if "token" in answer else []
        return status, headers, answer

    def knows(self, token):
        with Registry(self.folder / "registry.sqlite") as registry:
            return registry.probes.of_token(token)

    def enrolled(self, name):
        with Registry(self.folder / "registry.sqlite") as registry:
            return next(one for one in registry.enrolments.all() if one.probe == name)

    def write_enrol(self, root, name, its_code, **more):
        """What the image puts on the card; with one host key, made once, where the test has not made its folder."""
        (root / "etc/tandem").mkdir(parents=True, exist_ok=True)
        if not (root / "etc/ssh").exists():
            shutil.copytree(self.folder / "ssh", root / "etc/ssh")
        usual = {"probe": name, "gateway": f"https://127.0.0.1:{self.gateway_port}", "code": its_code}
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
