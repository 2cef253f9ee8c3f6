"""aws.yml and aws_destroy.yml against AWS's API as moto's server plays it."""

import base64
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import warm_python
import yaml
from played_aws import PLAYBOOKS, Played

moto_server = pytest.importorskip("moto.server", reason="pip install -r requirements/dev.txt")
general = pytest.importorskip("moto.ec2.responses.general")

KEY = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + b"k" * 32).decode()
CONSOLE = f"""[    4.2] cloud-init[511]: Generating public/private keys
-----BEGIN SSH HOST KEY KEYS-----
ssh-ed25519 {KEY} root@ip-10-88-0-10
-----END SSH HOST KEY KEYS-----
"""


@pytest.fixture
def aws(tmp_path, monkeypatch):
    monkeypatch.setattr(general, "SAMPLE_CONSOLE_OUTPUT", CONSOLE)
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    warm = [sys.executable, warm_python.__file__, "serve", str(tmp_path / "warm")]
    try:
        port = server.get_host_and_port()[1]
        (tmp_path / "key.pub").write_text(f"ssh-ed25519 {KEY} nobody\n")
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\nexec {sys.executable} -IS {warm_python.__file__} run {tmp_path}/warm\n")
        python.chmod(0o755)
        played = Played(f"http://127.0.0.1:{port}", tmp_path, python)
        urllib.request.urlopen(urllib.request.Request(f"{played.url}/moto-api/reset", method="POST")).close()  # noqa: S310 - loopback
        ec2 = played.client("ec2")
        for name in ("debian-13-amd64-20260101-1", "debian-12-amd64-20260101-1"):
            ec2.register_image(Name=name, RootDeviceName="/dev/xvda", Architecture="x86_64")
        played.client("route53").create_hosted_zone(Name="fleet.example.", CallerReference="once")
        with subprocess.Popen(warm, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield played
            process.stdin.close()
    finally:
        server.stop()


def rules(group):
    """(protocol, port, network) of what is let in."""
    for rule in group["IpPermissions"]:
        for network in [*rule["IpRanges"], *rule["Ipv6Ranges"]]:
            yield rule["IpProtocol"], rule.get("FromPort"), network.get("CidrIp") or network["CidrIpv6"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_made_once_then_unchanged_then_nothing_left(aws):
    """The second run has no image: it ends with network and addresses made. The third takes those, and makes the rest."""
    bare = aws.left()
    looked = aws.play("aws", options=["--check"])
    assert looked.well().changed == [0]
    assert "nothing of tandem is there yet" in looked.text
    assert aws.left() == bare

    stopped = aws.play("aws", aws_image_name="no-such-*", aws_second_address="none")
    assert stopped.status != 0
    assert "has no image no-such-*" in stopped.text
    before = aws.left()
    assert len(before["addresses"]) == 1
    assert not before["instances"]

    first_made, again = aws.play("aws", "aws").well().changed
    assert first_made > 0
    assert again == 0
    there = aws.left()
    assert len(there["networks"]) == 1
    assert before["addresses"][0]["AllocationId"] in [a["AllocationId"] for a in there["addresses"]]
    (machine,) = there["instances"][0]["Instances"]
    (interface,) = machine["NetworkInterfaces"]
    assert sorted(a["PrivateIpAddress"] for a in interface["PrivateIpAddresses"]) == ["10.88.0.10", "10.88.0.11"]
    assert {a["NetworkInterfaceId"] for a in there["addresses"]} == {interface["NetworkInterfaceId"]}
    assert machine["MetadataOptions"]["HttpTokens"] == "required"
    (image,) = aws.client("ec2").describe_images(ImageIds=[machine["ImageId"]])["Images"]
    assert image["Name"].startswith("debian-13-")
    (records,) = [v for v in there["volumes"] if {"Key": "Name", "Value": "tandem-records"} in v["Tags"]]
    assert records["Encrypted"]
    assert records["Size"] == 100
    assert [a["InstanceId"] for a in records["Attachments"]] == [machine["InstanceId"]]
    assert set(rules(there["groups"][0])) == {
        *(("tcp", port, "0.0.0.0/0") for port in (8443, 8444, 8480, 8481)),
        *(("udp", port, "0.0.0.0/0") for port in (8480, 51820)),
        ("icmp", 8, "0.0.0.0/0"),
        *(("tcp", port, network) for port in (22, 443) for network in ("192.0.2.7/32", "2001:db8::/48")),
    }

    by_name = {t["Value"]: a["PublicIp"] for a in there["addresses"] for t in a["Tags"] if t["Key"] == "Name"}
    first, second = by_name["tandem-first"], by_name["tandem-second"]
    assert there["records"][0]["ResourceRecords"] == [{"Value": first}]
    written = yaml.safe_load(aws.inventory.read_text())
    host = written["all"]["children"]["servers"]["hosts"]["tandem"]
    assert host["ansible_host"] == first
    assert host["data_disk_device"].endswith(records["VolumeId"].replace("-", ""))
    assert host["tandem_server_settings"]["listen"]["further_addresses"] == [second]
    assert written["all"]["vars"]["tandem_server_name"] == "server.fleet.example"
    hosts = aws.folder / "aws.yml.known_hosts"
    assert hosts.read_text().splitlines()[1:] == [f"{first} ssh-ed25519 {KEY}"]
    found = subprocess.run(["ssh-keygen", "-F", first, "-f", hosts], capture_output=True, text=True, check=True)
    assert KEY in found.stdout
    assert str(hosts) in host["ansible_ssh_common_args"]

    assert aws.play("aws", options=["--check"]).well().changed == [0]
    refused = aws.play("aws_destroy", aws_confirm="tandom")
    assert refused.status != 0
    assert "aws_confirm=tandem" in refused.text
    assert aws.left() == there

    taken, taken_again = aws.play("aws_destroy", "aws_destroy", aws_confirm="tandem").well().changed
    assert taken > 0
    assert taken_again == 0
    assert aws.left() == bare
    assert not aws.inventory.exists()
    assert not hosts.exists()


UNFIT = {
    "world": ({"aws_ssh_from": ["0.0.0.0/0"]}, "not the whole world"),
    "name": ({"aws_name": "Tandem Server"}, "small letters"),
    "zone": ({"aws_dns_zone": "other.example"}, "does not lie in aws_dns_zone"),
    "second": ({"aws_second_address": "both"}, "aws_second_address"),
    "port": ({"tandem_server_ports": {"gateway": 8443, "control": 8443}}, "one port twice in tandem_server_ports"),
}
"""Host → its settings, and what is said of them."""


def test_settings_that_cannot_work_end_the_run_before_anything_is_asked(tmp_path):
    """aws.yml on a host for each. The address is one where nobody answers."""
    played = Played("http://127.0.0.1:9", tmp_path, Path(sys.executable))
    (tmp_path / "key.pub").write_text("ssh-ed25519 AAAA nobody\n")
    hosts = {host: {**played.variables(), **own} for host, (own, _) in UNFIT.items()}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    (play,) = yaml.safe_load((PLAYBOOKS / "aws.yml").read_text())
    (tmp_path / "all.yml").write_text(yaml.safe_dump([{**play, "hosts": "all"}]))
    refused = played.start([str(tmp_path / "all.yml")], ["-i", str(tmp_path / "hosts.yml")])
    assert refused.status != 0
    assert "Look for the network" not in refused.text
    ends = re.findall(r"^fatal: \[(\w+)\]: FAILED!(.*?)(?=^\S|\Z)", refused.text, re.S | re.M)
    said = {host: " ".join(text.split()) for host, text in ends}
    assert [(host, said.get(host)) for host, (_, needed) in UNFIT.items() if needed not in said.get(host, "")] == []
