"""AWS as moto plays it, on loopback, and its playbooks against it. A stand-in for what costs money. Where it differs from AWS:

- an elastic address at an interface always stands at the first private address, whichever was asked for;
- instances start at once, and nothing runs on them.
"""

import http.server
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
REGION = "eu-central-1"
OWNER = "123456789012"  # moto's account
CALLER = "192.0.2.7"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "played", "AWS_SECRET_ACCESS_KEY": "not-a-secret"}
"""moto takes any."""


class _Caller(http.server.BaseHTTPRequestHandler):
    """Tells everybody the same address, as the page does by which a machine learns its own."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{CALLER}\n".encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def caller_page() -> Iterator[str]:
    """The address of such a page."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Caller) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def client(url: str, service: str) -> Any:
    """One of AWS's services, of moto's server at ``url``."""
    return boto3.client(
        service,
        endpoint_url=url,
        region_name=REGION,
        aws_access_key_id="played",
        aws_secret_access_key="not a secret",  # noqa: S106 - moto takes any
    )


@dataclass(frozen=True)
class Recap:
    status: int
    changed: int
    """How many tasks changed something."""
    text: str

    def well(self) -> "Recap":
        assert self.status == 0, self.text[-6000:]
        return self

    def said(self) -> list[tuple[str, str]]:
        """Host and message of each task that failed, the message as one line."""
        parts = re.findall(r"^(?:fatal|failed): \[([^]]*)\][^\n]*\n((?:[ \t]+.*\n?)+)", self.text, re.M)
        return [(host, " ".join(str(yaml.safe_load(part)["msg"]).split())) for host, part in parts]


@dataclass(frozen=True)
class Played:
    """The service at ``url``; ``fleet`` is a new one; the modules run with ``python``; ``caller`` tells this machine's address."""

    url: str
    fleet: Path
    python: Path
    caller: str

    def client(self, service: str) -> Any:
        return client(self.url, service)

    def play(self, playbook: Path, *options: str, credentials: bool = True, **variables: object) -> Recap:
        """What ``./kit provision`` starts, with where things are here as the only additions."""
        here = {
            "ansible_python_interpreter": str(self.python),
            "aws_image_owner": OWNER,
            "aws_caller_url": self.caller,
            **variables,
        }
        given = [word for name, value in here.items() for word in ("-e", f"{name}={value}")]
        ran = self._start("playbook", str(playbook), *given, *options, credentials=credentials)
        with (self.fleet.parent / "played.log").open("a") as log:
            log.write(f"== {playbook} {given} {options}\n{ran.stdout}{ran.stderr}")
        return Recap(ran.returncode, len(re.findall(r"^changed: \[", ran.stdout, re.M)), ran.stdout + ran.stderr)

    def inventory(self) -> dict[str, Any]:
        """What ansible-inventory says of the fleet, as its ``--list``."""
        ran = self._start("inventory", "--list")
        assert ran.returncode == 0, ran.stderr
        told: dict[str, Any] = json.loads(ran.stdout)
        return told

    def _start(self, program: str, *words: str, credentials: bool = True) -> subprocess.CompletedProcess[str]:
        """One of Ansible's programs on the fleet, with AWS as it is here."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "ANSIBLE_"))}
        environment |= {
            "ANSIBLE_CONFIG": str(REPOSITORY / "ansible/ansible.cfg"),
            "ANSIBLE_HOME": str(self.fleet.parent / "home"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_VAULT_PASSWORD_FILE": str(self.fleet / "vault.key"),
            "HOME": str(self.fleet.parent),
        }
        environment |= {"AWS_URL": self.url, "AWS_EC2_METADATA_DISABLED": "true"}
        if credentials:
            environment |= CREDENTIALS
        return subprocess.run(
            [sys.executable, "-m", "ansible", program, "-i", str(self.fleet), *words],
            env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def left(self) -> dict[str, list[Any]]:
        """What stands there now, by kind; not what each region has without anybody's doing."""
        ec2 = self.client("ec2")
        zones = self.client("route53").list_hosted_zones()["HostedZones"]
        records = [
            record
            for zone in zones
            for record in self.client("route53").list_resource_record_sets(HostedZoneId=zone["Id"])[
                "ResourceRecordSets"
            ]
        ]
        mine = [{"Name": "tag:tandem", "Values": ["*"]}]
        running = [{"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}]
        return {
            "instances": ec2.describe_instances(Filters=running)["Reservations"],
            "volumes": ec2.describe_volumes()["Volumes"],
            "addresses": ec2.describe_addresses()["Addresses"],
            "interfaces": ec2.describe_network_interfaces()["NetworkInterfaces"],
            "keys": ec2.describe_key_pairs()["KeyPairs"],
            "networks": [v for v in ec2.describe_vpcs()["Vpcs"] if not v["IsDefault"]],
            "subnets": [s for s in ec2.describe_subnets()["Subnets"] if not s["DefaultForAz"]],
            "routes": ec2.describe_route_tables(Filters=mine)["RouteTables"],
            "groups": [g for g in ec2.describe_security_groups()["SecurityGroups"] if g["GroupName"] != "default"],
            "gateways": ec2.describe_internet_gateways(Filters=mine)["InternetGateways"],
            "records": [r for r in records if r["Type"] in ("A", "AAAA")],
        }
