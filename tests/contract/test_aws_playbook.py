"""The playbooks aws and aws_destroy on a new fleet, against AWS's API as moto's server plays it.

They are started as ``./kit provision`` starts them (tests/unit/kit/test_provision.py); ``./kit provision aws`` itself is run by
tests/system/test_quickstart.py. A start costs seconds, so each does as much as one can.
"""

import base64
import subprocess
import sys
import urllib.request
from pathlib import Path

import preloaded_python
import pytest
import yaml

from support.moto_aws import CALLER, CREDENTIALS, REPOSITORY, Played, caller_page
from tandem_fleet import new

moto_server = pytest.importorskip("moto.server", reason="pip install -r requirements/lock.txt")

KEY = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + b"k" * 32).decode()
WORLD = "0.0.0.0/0"
MAKE = REPOSITORY / "ansible/playbooks/aws.yml"
DESTROY = REPOSITORY / "ansible/playbooks/aws_destroy.yml"


@pytest.fixture
def aws(tmp_path):
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    warm = [sys.executable, preloaded_python.__file__, "serve", str(tmp_path / "warm")]
    try:
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\nexec {sys.executable} -IS {preloaded_python.__file__} run {tmp_path}/warm\n")
        python.chmod(0o755)
        url = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
        moto(url, "reset", b"")
        with caller_page() as page, subprocess.Popen(warm, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            played = Played(url, tmp_path / "field", python, page)
            new.make(played.fleet, new.Wanted("aws", "", ["kit-01"], "DE", [f"ssh-ed25519 {KEY} anna"]))
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


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_made_once_then_unchanged_then_nothing_left_but_the_records(aws):
    """The second run has no image: it ends with network and addresses made. The third takes those."""
    bare = aws.left()
    looked = aws.play(MAKE, "--check")
    assert looked.well().changed == 0
    assert "nothing of field is there yet" in looked.text
    assert aws.left() == bare

    stopped = aws.play(MAKE, aws_image_name="no-such-*")
    assert stopped.status != 0
    assert "USD a month" in stopped.text, "before anything is made"
    assert "has no image no-such-*" in stopped.text
    before = aws.left()
    assert len(before["addresses"]) == 2
    assert not before["instances"]

    assert aws.play(MAKE).well().changed > 0
    there = aws.left()
    assert aws.play(MAKE).well().changed == 0
    assert aws.left() == there
    assert aws.play(MAKE, "--check").well().changed == 0
    assert before["networks"] == there["networks"]
    assert {a["AllocationId"] for a in before["addresses"]} == {a["AllocationId"] for a in there["addresses"]}
    first, second = made_by_address(aws, there)
    known_by_its_key(aws, there["instances"][0]["Instances"][0], first)

    ((_, line),) = aws.play(DESTROY).said()
    for word in (first, second, there["networks"][0]["VpcId"], "would keep: volume field-records", "aws_confirm=field"):
        assert word in line
    assert aws.left() == there

    named_later(aws, first)
    assert aws.play(DESTROY, aws_confirm="field").well().changed > 0
    kept = aws.left()
    assert [v["VolumeId"] for v in kept["volumes"]] == [v["VolumeId"] for v in there["volumes"] if is_for_records(v)]
    assert kept | {"volumes": []} == bare
    assert not (aws.fleet / "aws.yml").exists()
    assert first not in (aws.fleet / "known_hosts").read_text()
    assert aws.play(DESTROY, aws_confirm="field", aws_keep_volume="false").well().changed == 1, "the volume alone"
    assert aws.left() == bare


def is_for_records(volume):
    return {"Key": "Name", "Value": "field-records"} in volume["Tags"]


def made_by_address(aws, there):
    """As a new fleet has it; its two addresses."""
    (machine,) = there["instances"][0]["Instances"]
    (interface,) = machine["NetworkInterfaces"]
    assert sorted(a["PrivateIpAddress"] for a in interface["PrivateIpAddresses"]) == ["10.88.0.10", "10.88.0.11"]
    assert {a["NetworkInterfaceId"] for a in there["addresses"]} == {interface["NetworkInterfaceId"]}
    assert machine["MetadataOptions"]["HttpTokens"] == "required"
    (image,) = aws.client("ec2").describe_images(ImageIds=[machine["ImageId"]])["Images"]
    assert image["Name"].startswith("debian-13-")
    (records,) = filter(is_for_records, there["volumes"])
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
    inventory = aws.inventory()
    assert inventory["servers"]["hosts"] == ["server"], "and no second one"
    host = inventory["_meta"]["hostvars"]["server"]
    assert host["ansible_host"] == first
    assert host["data_disk_device"].endswith(records["VolumeId"].replace("-", ""))
    assert host["tandem_server_settings"]["listen"]["further_addresses"] == [second]
    assert inventory["_meta"]["hostvars"]["kit-01"]["tandem_server_name"] == first
    return first, second


def known_by_its_key(aws, machine, first):
    """What the machine is told at its first start, and that SSH knows it by."""
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


def named_later(aws, first):
    """The fleet gets a name in a zone of Route 53, and lets its second address go."""
    name = "server.fleet.example"
    settings = aws.fleet / "group_vars/all.yml"
    with settings.open("a") as file:
        file.write(f"tandem_server_name: {name}\naws_dns_zone: fleet.example\naws_second_address: none\n")
    aws.play(MAKE).well()
    there = aws.left()
    assert [(r["Name"].rstrip("."), r["ResourceRecords"]) for r in there["records"]] == [(name, [{"Value": first}])]
    assert [a["PublicIp"] for a in there["addresses"]] == [first]
    (interface,) = there["interfaces"]
    assert [a["PrivateIpAddress"] for a in interface["PrivateIpAddresses"]] == ["10.88.0.10"]
    hosts = aws.inventory()["_meta"]["hostvars"]
    assert hosts["kit-01"]["tandem_server_name"] == name
    assert "tandem_server_settings" not in hosts["server"]


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
REFUSED = "; hint: export AWS_PROFILE=NAME, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
UNREACHED = "; hint: is there a network, and is aws_region a region?"


def play_of(playbook: Path, hosts: str) -> dict[str, object]:
    """The playbook's play on other ``hosts``, each with an environment of its own."""
    (play,) = yaml.safe_load(playbook.read_text())
    return {**play, "hosts": hosts, "environment": [play["environment"], "{{ own }}"]}


@pytest.mark.timeout(600)
def test_what_cannot_work_ends_in_one_line_before_anything_is_made(aws):
    """A host for each. Settings that cannot work are refused before anything is asked; then credentials, wrong or none, and an AWS
    out of reach."""
    bare = aws.left()
    hosts = {host: {**own, "own": {}} for host, (own, _) in UNFIT.items()}
    hosts |= {
        "no-credentials": {"own": {}},
        "wrong-credentials": {"own": CREDENTIALS},
        "out-of-reach": {"own": CREDENTIALS | {"AWS_URL": "http://127.0.0.1:9"}},
        "destroy": {"own": {}},
    }
    (aws.fleet / "hosts.yml").write_text(yaml.safe_dump({"servers": {"hosts": hosts}}))
    moto(aws.url, "reset-auth", b"0")
    refused = []
    for name, playbook, which in (("make", MAKE, "servers:!destroy"), ("destroy", DESTROY, "destroy")):
        own = aws.fleet.parent / f"{name}.yml"
        own.write_text(yaml.safe_dump([play_of(playbook, which)]))
        played = aws.play(own, credentials=False)
        assert played.status != 0
        refused += played.said()
    moto(aws.url, "reset-auth", b"inf")
    said = dict(refused)
    assert sorted(host for host, _ in refused) == sorted(hosts), "one line each"
    assert {host: said[host] for host, (_, needed) in UNFIT.items() if needed not in said[host]} == {}
    for host in ("no-credentials", "wrong-credentials", "destroy"):
        assert said[host].startswith("AWS (eu-central-1) does not accept the credentials: "), said[host]
        assert said[host].endswith(REFUSED)
    assert "AWS was not able to validate" in said["wrong-credentials"] or "security token" in said["wrong-credentials"]
    assert said["out-of-reach"].startswith("AWS (eu-central-1) does not answer: ")
    assert said["out-of-reach"].endswith(UNREACHED)
    assert aws.left() == bare
