"""./kit provision aws and aws_destroy on a new fleet, against AWS's API as moto's server plays it."""

import base64
import subprocess
import sys
import urllib.request

import pytest
import warm_python
import yaml
from played_aws import CALLER, REPOSITORY, Played, caller_page

from tandem_fleet import new

moto_server = pytest.importorskip("moto.server", reason="pip install -r requirements/dev.txt")

KEY = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + b"k" * 32).decode()
WORLD = "0.0.0.0/0"


def fleet(folder, name=""):
    """A new one, as `./kit fleet new` makes it."""
    new.make(folder, new.Wanted("aws", name, ["kit-01"], "DE", [f"ssh-ed25519 {KEY} anna"]))
    return folder


@pytest.fixture
def aws(tmp_path):
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    warm = [sys.executable, warm_python.__file__, "serve", str(tmp_path / "warm")]
    try:
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\nexec {sys.executable} -IS {warm_python.__file__} run {tmp_path}/warm\n")
        python.chmod(0o755)
        url = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
        moto(url, "reset", b"")
        with caller_page() as page, subprocess.Popen(warm, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            played = Played(url, tmp_path / "field", python, page)
            for name in ("debian-13-amd64-20260101-1", "debian-12-amd64-20260101-1"):
                played.client("ec2").register_image(Name=name, RootDeviceName="/dev/xvda", Architecture="x86_64")
            played.client("route53").create_hosted_zone(Name="fleet.example.", CallerReference="once")
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield played
            process.stdin.close()
    finally:
        server.stop()


def moto(url, what, data):
    """moto's own address for tests."""
    request = urllib.request.Request(f"{url}/moto-api/{what}", data, {"Content-Type": "text/plain"}, method="POST")  # noqa: S310 - loopback
    urllib.request.urlopen(request).close()  # noqa: S310 - loopback


def rules(group):
    """(protocol, port, network) of what is let in."""
    for rule in group["IpPermissions"]:
        for network in [*rule["IpRanges"], *rule["Ipv6Ranges"]]:
            yield rule["IpProtocol"], rule.get("FromPort"), network.get("CidrIp") or network["CidrIpv6"]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_made_once_then_unchanged_then_nothing_left_but_the_records(aws):
    """By address, as a new fleet has it. The second run has no image: it ends with network and addresses made. The third takes those."""
    fleet(aws.fleet)
    bare = aws.left()
    looked = aws.play("aws", "--check")
    assert looked.well().changed == 0
    assert "nothing of field is there yet" in looked.text
    assert aws.left() == bare

    stopped = aws.play("aws", aws_image_name="no-such-*")
    assert stopped.status != 0
    assert "USD a month" in stopped.text, "before anything is made"
    assert "has no image no-such-*" in stopped.text
    before = aws.left()
    assert len(before["addresses"]) == 2
    assert not before["instances"]

    assert aws.play("aws").well().changed > 0
    there = aws.left()
    assert aws.play("aws").well().changed == 0
    assert aws.left() == there
    assert aws.play("aws", "--check").well().changed == 0
    assert before["networks"] == there["networks"]
    assert {a["AllocationId"] for a in before["addresses"]} == {a["AllocationId"] for a in there["addresses"]}
    (machine,) = there["instances"][0]["Instances"]
    (interface,) = machine["NetworkInterfaces"]
    assert sorted(a["PrivateIpAddress"] for a in interface["PrivateIpAddresses"]) == ["10.88.0.10", "10.88.0.11"]
    assert {a["NetworkInterfaceId"] for a in there["addresses"]} == {interface["NetworkInterfaceId"]}
    assert machine["MetadataOptions"]["HttpTokens"] == "required"
    (image,) = aws.client("ec2").describe_images(ImageIds=[machine["ImageId"]])["Images"]
    assert image["Name"].startswith("debian-13-")
    (records,) = [v for v in there["volumes"] if {"Key": "Name", "Value": "field-records"} in v["Tags"]]
    assert records["Encrypted"]
    assert records["Size"] == 100
    assert [a["InstanceId"] for a in records["Attachments"]] == [machine["InstanceId"]]
    assert set(rules(there["groups"][0])) == {
        *(("tcp", port, WORLD) for port in (80, 443, 8443, 8444, 8480, 8481)),
        *(("udp", port, WORLD) for port in (8480, 51820)),
        ("icmp", 8, WORLD),
        ("tcp", 22, f"{CALLER}/32"),
    }

    by_name = {t["Value"]: a["PublicIp"] for a in there["addresses"] for t in a["Tags"] if t["Key"] == "Name"}
    first, second = by_name["field-first"], by_name["field-second"]
    host = variables(aws.fleet, "server")
    assert host["ansible_host"] == first
    assert host["data_disk_device"].endswith(records["VolumeId"].replace("-", ""))
    assert host["tandem_server_settings"]["listen"]["further_addresses"] == [second]
    assert variables(aws.fleet, "kit-01")["tandem_server_name"] == first
    assert graph(aws.fleet).count("server\n") == 1, "and no second one"

    said = aws.client("ec2").describe_instance_attribute(InstanceId=machine["InstanceId"], Attribute="userData")
    first_line, _, cloud = base64.b64decode(said["UserData"]["Value"]).decode().partition("\n")
    assert first_line == "#cloud-config"
    settings = yaml.safe_load(cloud)
    assert settings["ssh_authorized_keys"] == [f"ssh-ed25519 {KEY} anna"]
    (aws.fleet.parent / "host_key").touch(0o600)
    (aws.fleet.parent / "host_key").write_text(settings["ssh_keys"]["ed25519_private"])
    host_key = ["ssh-keygen", "-y", "-f", aws.fleet.parent / "host_key"]
    public = subprocess.run(host_key, capture_output=True, text=True, check=True).stdout.split()[:2]
    assert settings["ssh_keys"]["ed25519_public"].split()[:2] == public
    known = ["ssh-keygen", "-F", first, "-f", aws.fleet / "known_hosts"]
    assert public[1] in subprocess.run(known, capture_output=True, text=True, check=True).stdout

    refused = aws.play("aws_destroy")
    (line,) = refused.said()
    for word in (first, second, there["networks"][0]["VpcId"], "would keep: volume field-records", "aws_confirm=field"):
        assert word in line
    assert aws.left() == there

    assert aws.play("aws_destroy", aws_confirm="field").well().changed > 0
    kept = aws.left()
    assert [v["VolumeId"] for v in kept["volumes"]] == [records["VolumeId"]]
    assert kept | {"volumes": []} == bare
    assert not (aws.fleet / "aws.yml").exists()
    assert first not in (aws.fleet / "known_hosts").read_text()
    assert aws.play("aws_destroy", aws_confirm="field").well().changed == 0
    assert aws.play("aws_destroy", aws_confirm="field", aws_keep_volume="false").well().changed == 1
    assert aws.left() == bare


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_dns_name_and_credentials_that_aws_does_not_accept(aws):
    """The records in Route 53 come and go; without credentials, or with wrong ones, both playbooks end in one line."""
    fleet(aws.fleet, "server.fleet.example")
    bare = aws.left()
    for playbook in ("aws", "aws_destroy"):
        assert [line.partition(";")[2] for line in aws.play(playbook, credentials=False).said()] == [CREDENTIALS]
    moto(aws.url, "reset-auth", b"0")
    (wrong,) = aws.play("aws").said()
    moto(aws.url, "reset-auth", b"inf")
    assert wrong.endswith(f";{CREDENTIALS}")
    assert "AWS was not able to validate" in wrong or "security token" in wrong
    assert aws.left() == bare

    aws.play("aws", aws_dns_zone="fleet.example", aws_second_address="none").well()
    there = aws.left()
    assert there["records"][0]["ResourceRecords"] == [{"Value": there["addresses"][0]["PublicIp"]}]
    assert variables(aws.fleet, "kit-01")["tandem_server_name"] == "server.fleet.example"
    aws.play("aws_destroy", aws_dns_zone="fleet.example", aws_confirm="field", aws_keep_volume="false").well()
    assert aws.left() == bare


CREDENTIALS = " hint: export AWS_PROFILE=NAME, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"


def inventory(folder, *options):
    """What ansible-inventory says of the fleet."""
    program = [sys.executable, "-m", "ansible", "inventory", "-i", folder, *options]
    environment = {
        "PATH": "/usr/bin:/bin",
        "ANSIBLE_CONFIG": str(REPOSITORY / "ansible/ansible.cfg"),
        "ANSIBLE_HOME": str(folder.parent / "home"),
        "ANSIBLE_VAULT_PASSWORD_FILE": str(folder / "vault.key"),
    }
    return subprocess.run(program, env=environment, capture_output=True, text=True, check=True).stdout


def variables(folder, host):
    return yaml.safe_load(inventory(folder, "--host", host))


def graph(folder):
    return inventory(folder, "--graph")


UNFIT = {
    "world": ({"aws_ssh_from": [WORLD]}, "not the whole world"),
    "nobody": ({"aws_ssh_from": []}, "aws_ssh_from is []"),
    "name": ({"aws_name": "Tandem Server"}, "small letters"),
    "zone": ({"aws_dns_zone": "other.example"}, "does not lie in aws_dns_zone"),
    "second": ({"aws_second_address": "both"}, "aws_second_address"),
    "port": ({"tandem_server_ports": {"gateway": 8443, "control": 8443}}, "one port twice in tandem_server_ports"),
    "key": ({"tandem_operator_keys": []}, "tandem_operator_keys has no ed25519 or RSA key"),
}
"""Host → its settings, and what is said of them."""


def test_settings_that_cannot_work_end_the_run_before_anything_is_asked(tmp_path):
    """aws.yml on a host for each. The address is one where nobody answers."""
    played = Played("http://127.0.0.1:9", fleet(tmp_path / "field"), sys.executable, "http://127.0.0.1:9/")
    hosts = {"servers": {"hosts": {host: own for host, (own, _) in UNFIT.items()}}}
    (tmp_path / "field/hosts.yml").write_text(yaml.safe_dump(hosts))
    (play,) = yaml.safe_load((REPOSITORY / "ansible/playbooks/aws.yml").read_text())
    (tmp_path / "all.yml").write_text(yaml.safe_dump([{**play, "hosts": "servers"}]))
    program = [sys.executable, "-m", "ansible", "playbook", "-i", str(tmp_path / "field"), str(tmp_path / "all.yml")]
    refused = played.start(
        [
            "env",
            f"ANSIBLE_CONFIG={REPOSITORY}/ansible/ansible.cfg",
            f"ANSIBLE_VAULT_PASSWORD_FILE={tmp_path}/field/vault.key",
            *program,
        ]
    )
    assert refused.status != 0
    assert "Ask AWS" not in refused.text
    said = refused.said()
    assert [needed for _, needed in UNFIT.values() if not any(needed in line for line in said)] == []
    assert len(said) == len(UNFIT), said


def test_an_aws_out_of_reach_is_told_as_that(tmp_path):
    played = Played("http://127.0.0.1:9", fleet(tmp_path / "field"), sys.executable, "http://127.0.0.1:9/")
    (said,) = played.play("aws").said()
    assert said.startswith("AWS (eu-central-1) does not answer: ")
    assert said.endswith("; hint: is there a network, and is aws_region a region?")
