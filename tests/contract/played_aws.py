"""AWS as moto plays it, on loopback, and playbooks run against it. A stand-in for what costs money. Where it differs from AWS:

- its consoles print one fixed text: here that of a machine whose cloud-init printed host keys;
- an elastic address at an interface always stands at the first private address, whichever was asked for;
- instances start at once.
"""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

REPOSITORY = Path(__file__).resolve().parents[2]
PLAYBOOKS = REPOSITORY / "ansible/playbooks"
REGION = "eu-central-1"
OWNER = "123456789012"  # moto's account


@dataclass(frozen=True)
class Recap:
    """What one start said."""

    status: int
    changed: list[int]
    """How many tasks changed something, by playbook."""
    text: str

    def well(self) -> "Recap":
        """It, if it ended well."""
        assert self.status == 0, self.text[-6000:]
        return self


@dataclass(frozen=True)
class Played:
    """The service at ``url``; ``folder`` has the operator's key and gets the inventory; the modules run with ``python``."""

    url: str
    folder: Path
    python: Path

    @property
    def inventory(self) -> Path:
        return self.folder / "aws.yml"

    def client(self, service: str):
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id="played",
            aws_secret_access_key="not a secret",  # noqa: S106 - moto takes any
        )

    def variables(self) -> dict[str, Any]:
        return {
            "ansible_python_interpreter": str(self.python),
            "aws_key_file": str(self.folder / "key.pub"),
            "aws_inventory": str(self.inventory),
            "aws_image_owner": OWNER,
            "aws_ssh_from": ["192.0.2.7/32", "2001:db8::/48"],
            "aws_dns_zone": "fleet.example",
            "tandem_server_name": "server.fleet.example",
            "aws_host_keys_wait_s": 30,
        }

    def play(self, *playbooks: str, options: Sequence[str] = (), **variables: object) -> Recap:
        """Run the playbooks as ``./kit provision`` does, one after the other in one start."""
        # Python's literals of these are YAML's.
        (self.folder / "said.yml").write_text(repr({**self.variables(), **variables}))
        paths = [str(PLAYBOOKS / f"{playbook}.yml") for playbook in playbooks]
        return self.start(paths, ["-i", "localhost,", "-e", f"@{self.folder}/said.yml", *options])

    def start(self, paths: list[str], options: list[str]) -> Recap:
        """Run the playbooks at ``paths``."""
        ran = subprocess.run(
            [str(Path(sys.executable).with_name("ansible-playbook")), *paths, *options],
            env={
                **os.environ,
                "ANSIBLE_CONFIG": str(REPOSITORY / "ansible/ansible.cfg"),
                "ANSIBLE_HOME": str(self.folder / "home"),
                "AWS_URL": self.url,
                "AWS_ACCESS_KEY_ID": "played",
                "AWS_SECRET_ACCESS_KEY": "not-a-secret",
                "AWS_EC2_METADATA_DISABLED": "true",
                "ANSIBLE_NOCOLOR": "1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        with (self.folder / "played.log").open("a") as log:
            log.write(f"== {paths} {options}\n{ran.stdout}{ran.stderr}")
        plays = re.split(r"^PLAY \[", ran.stdout, flags=re.M)[1:]
        changed = [len(re.findall(r"^changed: \[", play, flags=re.M)) for play in plays]
        return Recap(ran.returncode, changed, ran.stdout + ran.stderr)

    def left(self) -> dict[str, list[object]]:
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
