"""The playbooks, given what cannot work: one line that names variable, place and hint, before any machine is connected to.

Each fault is told of a machine of its own, by the playbook's own first play, which goes on to the next machine here; that one fault ends
the whole, unchanged playbook is seen once of each. The machines are at a port where nobody listens: a play that goes on says
"unreachable" of one, with which the good inventories end. So what is refused has changed nothing anywhere.
"""

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml
from targets.play import in_json, program

from tandem_fleet import new

ROOT = Path(__file__).parents[2]
PROGRAM = program()
pytestmark = [pytest.mark.system, pytest.mark.skipif(PROGRAM is None, reason="pip install -r requirements/lock.txt")]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFjJ3nV0JYg6uY0m1FvQ3kY9nQ3n0xJYg6uY0m1FvQ3k anna"
REFUSED, UNREACHABLE = 2, 4
"""Exit statuses of ansible-playbook: a task failed, a machine did not answer."""
NOBODY = {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_retries": 0}


NOTHING = {}
NO_PATHS = {"tandem_paths": []}
FOUND = {"tandem_paths": "found", "tandem_path_settings": {"a": {"apn": "web"}}, "secret_pin_a": "1234"}
KERNEL = {"mptcp_kernel": "v094", "mptcp_v094_package": "FOLDER/id.pub", "mptcp_v094_linux": "4.14.146.mptcp"}
"""The out-of-tree kernel; any file stands for it."""
LIGHT = {"tandem_status_led": {"red": 17, "green": 27, "blue": 22}, "tandem_e_paper": {"call": "Ana, 555 0100"}}


def play(folder, playbook, servers, probes, *options, everywhere=NOTHING):
    """Play PLAYBOOK (a file) with the hosts of both groups; FOLDER in their variables is the inventory's. Its status, what its failed tasks
    said by host, and how many tasks changed something."""
    for name in ("ca.pem", "ca.key"):
        (folder / name).touch()
    (folder / "id.pub").write_text(KEY + "\n")
    right = {
        "tandem_server_name": "server.tandem.test",
        "tandem_checkout": str(ROOT),
        "tandem_operator_keys": [KEY],
        "tandem_ca_file": "FOLDER/ca.pem",
        "certificate_authority_passphrase": "twelve or more",
        "tandem_paths": [{"name": "a", "interface": "eth0"}],
    }
    groups = {"all": {"vars": NOBODY | right | everywhere}, "servers": {"hosts": servers}, "probes": {"hosts": probes}}
    (folder / "hosts.yml").write_text(json.dumps(groups).replace("FOLDER", str(folder)))
    return start(folder, folder / "hosts.yml", playbook, *options)


def start(folder, inventory, playbook, *options):
    """As above, with an inventory that is there."""
    ran, told = in_json(folder, PROGRAM, "-i", inventory, playbook, *options)
    lines = {}
    for host, line in said(told):
        lines.setdefault(host, []).append(line.replace(str(folder), "FOLDER"))
    return ran.returncode, lines, sum(host["changed"] for host in told["stats"].values())


def said(told):
    """The host and each message of a failed task, of an item of its loop where it has one."""
    for task in (task for play in told["plays"] for task in play["tasks"]):
        for host, result in task["hosts"].items():
            for one in result.get("results", [result]):
                if one.get("failed") and not ({"argument_errors", "unreachable"} & set(one)):
                    yield host, one["msg"]


SERVERS = {
    "no name": ({"tandem_server_name": ""}, "tandem_server_name is empty"),
    "the example's name": ({"tandem_server_name": "server.fleet.example"}, "the example"),
    "a page's address": ({"tandem_server_name": "https://a.test/"}, 'is "https://a.test/"'),
    "a word that is no choice": ({"certificate_kind": "self"}, "certificate_kind must be one of"),
    "a port twice": ({"tandem_database_backup_port": 8086}, "tandem_database_backup_port"),
    "no passphrase": ({"certificate_authority_passphrase": ""}, "certificate_authority_passphrase"),
    "an authority without its key": ({"tandem_ca_file": "FOLDER/id.pub"}, "its key FOLDER/id.key"),
    "a given certificate that is not there": (
        {"certificate_kind": "given", "certificate_file": "FOLDER/none.pem", "certificate_key_file": "FOLDER/ca.key"},
        'certificate_file, and the control machine has no file "FOLDER/none.pem"',
    ),
    "a public authority that probes do not believe": ({"certificate_kind": "acme"}, "tandem_ca_file is"),
    "a folder without wheels": ({"tandem_wheels": "FOLDER"}, "tandem_wheels is FOLDER"),
    "another release": ({"tandem_release": "99.0"}, "tandem_release is 99.0"),
    "a volume that is no device": ({"data_disk_device": "data"}, "data_disk_device of HOST is data"),
    "a kernel without WireGuard, at the hub": (
        KERNEL | {"wireguard_server_user_space": False},
        "wireguard_server_user_space is false",
    ),
    "two videos": (
        {"dash_content_video_url": "https://a.test/v", "dash_content_video_file": "FOLDER/v"},
        "dash_content_video_url https://a.test/v and dash_content_video_file",
    ),
}
PROBES = {
    "no keys": ({"tandem_operator_keys": []}, "tandem_operator_keys is empty"),
    "the example's key": (
        {
            "tandem_operator_keys": [
                "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPut/your/own/public/key/here/it/is/one/line0 anna"
            ]
        },
        "is no public SSH key of yours",
    ),
    "no paths": (NO_PATHS, "tandem_paths of HOST is empty"),
    "a path without a place": ({"tandem_paths": [{"name": "a"}]}, "tandem_paths of HOST"),
    "a place that is none": ({"tandem_paths": [{"name": "a", "usb": "usb1"}]}, "HOST, path a"),
    "two modems on one place": (
        {"tandem_paths": [{"name": "a", "usb": "1-1.2"}, {"name": "b", "usb": "1-1.2"}]},
        "tandem_paths of HOST: two paths name one USB place",
    ),
    "a word that is none": ({"tandem_paths": "find"}, "tandem_paths of HOST"),
    "a key that is none": ({"tandem_paths": [{"name": "a", "usb": "1-1.2", "apm": "web"}]}, "tandem_paths of HOST"),
    "an access point that nobody uses": (
        {"tandem_paths": [{"name": "a", "usb": "1-1.2", "port": "http://192.168.8.1", "apn": "web"}]},
        "path a has an apn and the port http://192.168.8.1",
    ),
    "no file of the authority": ({"tandem_ca_file": "FOLDER/no.pem"}, "tandem_ca_file of HOST"),
    "a kernel that is not there": (KERNEL | {"mptcp_v094_package": "none.deb"}, "mptcp_v094_package of HOST"),
    "another kernel than the server's": (KERNEL, "mptcp_kernel of HOST is v094"),
    "a GPIO twice": (
        {"tandem_status_led": {"red": 17, "green": 23}, "tandem_e_paper": {"call": "Ana"}},
        "tandem_status_led or tandem_e_paper of HOST (17, 23, 25, 23, 24)",
    ),
}
"""By what is wrong: variables of one machine of that group, and what is said."""
FAULTS = {"server": SERVERS, "probe": PROBES}

WHOLE = {
    "a server": ("server", {"everywhere": {"tandem_server_name": ""}}, "tandem_server_name is empty"),
    "one probe of two": ("probe", {"kit": NO_PATHS}, "tandem_paths of kit-02 is empty"),
    "a kernel without WireGuard": (
        "probe",
        {"everywhere": KERNEL, "kit": {"wireguard_client_userspace": False}},
        "kit-02: wireguard_client_userspace is false and mptcp_kernel is v094",
    ),
    "no backup": ("restore", {}, "restore_from"),
    "SSH for the world": ("aws", {"everywhere": {"aws_ssh_from": ["0.0.0.0/0"]}}, "aws_ssh_from"),
    "no key for AWS": (
        "aws",
        {"everywhere": {"tandem_operator_keys": []}},
        "tandem_operator_keys has no ed25519 or RSA key",
    ),
    "a server that does not answer": ("server", {"everywhere": KERNEL}, "server does not answer at 127.0.0.1: "),
    "none of whom to ask who enrolled": ("enrolled", {}, "server does not answer at 127.0.0.1: "),
}
ACCEPTED = {
    "probes": ("probe", {"everywhere": KERNEL, "kit": LIGHT}),
    "probes whose modems are found": ("probe", {"everywhere": FOUND}),
    "all but the wrong one": ("probe", {"kit": NO_PATHS}, "--limit", "kit-01"),
}


def lines_of(lines, words):
    """What is wrong with ``lines``, which should each be one with ``words`` and a mend; empty when nothing."""
    return (
        []
        if lines and all(words in one and re.search("; hint: ", one) and "\n" not in one for one in lines)
        else [lines]
    )


def whole(folder, playbook, given, *options):
    """The playbook as it is, on one server and two kits."""
    file = ROOT / "ansible/playbooks" / f"{playbook}.yml"
    probes = {"kit-01": {}, "kit-02": given.get("kit", {})}
    return play(folder, file, {"server": {}}, probes, *options, everywhere=given.get("everywhere", NOTHING))


@pytest.mark.parametrize("playbook", FAULTS)
def test_each_fault_is_told_of_its_machine(tmp_path, playbook):
    first = yaml.safe_load((ROOT / "ansible/playbooks" / f"{playbook}.yml").read_text())[0]
    assert first["any_errors_fatal"] is True
    (tmp_path / "first.yml").write_text(json.dumps([first | {"any_errors_fatal": False}]))
    named = {f"{playbook}-{number:02}": fault for number, fault in enumerate(FAULTS[playbook])}
    hosts = {host: FAULTS[playbook][fault][0] for host, fault in named.items()} | {f"{playbook}-good": {}}
    groups = (hosts, {"kit": {}}) if playbook == "server" else ({"server": {}}, hosts)
    status, told, changed = play(tmp_path, tmp_path / "first.yml", *groups)
    assert (status, changed) == (REFUSED, 0), told
    words = {host: FAULTS[playbook][fault][1].replace("HOST", host) for host, fault in named.items()}
    wrong = {named[host]: lines_of(told.get(host, []), words[host]) for host in named}
    assert {fault: lines for fault, lines in wrong.items() if lines} == {}
    assert told.keys() == named.keys(), "nothing of the good one"


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Each whole playbook, played; as many at once as there are processors."""
    cases = {("refused", name): (playbook, given) for name, (playbook, given, _) in WHOLE.items()}
    cases |= {("accepted", name): case for name, case in ACCEPTED.items()}
    cases["one part"] = ("probe", {"kit": NO_PATHS}, "--tags", "modems")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        started = {name: pool.submit(whole, tmp_path_factory.mktemp("play"), *case) for name, case in cases.items()}
        return {name: one.result() for name, one in started.items()}


def test_what_cannot_work_is_refused_before_a_machine_is_touched(played):
    found = {name: played["refused", name] for name in WHOLE}
    assert {(status, changed) for status, _, changed in found.values()} == {(REFUSED, 0)}, found
    said = {name: [line for lines in told.values() for line in lines] for name, (_, told, _) in found.items()}
    assert {name: lines for name, lines in said.items() if lines_of(lines, WHOLE[name][2])} == {}


def test_what_can_work_goes_on_to_the_machines(played):
    found = {name: played["accepted", name] for name in ACCEPTED}
    assert found == dict.fromkeys(ACCEPTED, (UNREACHABLE, {}, 0))


def test_one_part_alone_is_not_played_past_what_another_lacks(played):
    assert played["one part"] == played["refused", "one probe of two"]


@pytest.mark.parametrize(("playbook", "status", "said"), [("server", REFUSED, ["server"]), ("probe", UNREACHABLE, [])])
def test_a_new_fleet_goes_on_to_the_machines(tmp_path, playbook, status, said):
    """Nothing filled in by hand. The paths stand for what is found on a kit, which no machine here is."""
    fleet = tmp_path / "fleet"
    new.make(fleet, new.Wanted("127.0.0.1", "", ["kit-01"], "DE", [KEY]))
    paths = [{"name": "a", "interface": "eth0"}]
    options = ["-e", json.dumps(NOBODY | {"tandem_paths": paths}), "--vault-password-file", fleet / "vault.key"]
    ended, lines, changed = start(tmp_path, fleet, ROOT / "ansible/playbooks" / f"{playbook}.yml", *options)
    assert (ended, list(lines), changed) == (status, said, 0)
    assert not said or lines_of(lines["server"], "server does not answer at 127.0.0.1: ") == []
