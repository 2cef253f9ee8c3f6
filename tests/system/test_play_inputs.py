"""The unchanged playbooks, given what cannot work: one line that names variable, place and mend, before any machine is connected to.

The machines of these inventories are at a port where nobody listens: a play that goes on says "unreachable" of one, with which the good
inventories end. So what is refused has changed nothing anywhere.
"""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from targets.play import program

ROOT = Path(__file__).parents[2]
PROGRAM = program()
pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(PROGRAM is None, reason="pip install -r requirements/provision.txt"),
]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFjJ3nV0JYg6uY0m1FvQ3kY9nQ3n0xJYg6uY0m1FvQ3k anna"
REFUSED, UNREACHABLE = 2, 4
"""Exit statuses of ansible-playbook: a task failed, a machine did not answer."""
NOBODY = {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_retries": 0}


NO_PATHS = {"kit": {"tandem_paths": []}}
KERNEL = {"mptcp_kernel": "v094", "mptcp_v094_package": "FOLDER/id.pub", "mptcp_v094_linux": "4.14.146.mptcp"}
"""The out-of-tree kernel; any file stands for it."""
LIGHT = {"tandem_status_led": {"red": 17, "green": 27, "blue": 22}, "tandem_e_paper": {"call": "Ana, 555 0100"}}


def play(folder, playbook, given, options=()):
    """Play PLAYBOOK with what is given: variables of all machines (``everywhere``), of ``server``, of ``kit`` (kit-02); FOLDER in them is
    the inventory's. Its status, what its failed tasks said, and how many tasks changed something."""
    for name in ("ca.pem", "ca.key"):
        (folder / name).touch()
    (folder / "id.pub").write_text(KEY + "\n")
    right = {
        "tandem_server_name": "server.tandem.test",
        "tandem_operator_keys": [KEY],
        "tandem_ca_file": "FOLDER/ca.pem",
        "certificate_authority_passphrase": "twelve or more",
        "tandem_paths": [{"name": "a", "interface": "eth0"}],
        "aws_key_file": "FOLDER/id.pub",
        "aws_inventory": "FOLDER/aws.yml",
        "pull_repository": "https://git.tandem.test/fleet.git",
        "pull_signers": [KEY],
    }
    groups = {
        "all": {"vars": NOBODY | right | given.get("everywhere", {})},
        "servers": {"hosts": {"server": given.get("server", {})}},
        "probes": {"hosts": {"kit-01": {}, "kit-02": given.get("kit", {})}},
    }
    (folder / "hosts.yml").write_text(json.dumps(groups).replace("FOLDER", str(folder)))
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "AWS_"))}
    env |= {"ANSIBLE_CONFIG": str(ROOT / "ansible/ansible.cfg"), "ANSIBLE_HOME": str(folder / "ansible")}
    ran = subprocess.run(
        [PROGRAM, "-i", folder / "hosts.yml", ROOT / "ansible/playbooks" / f"{playbook}.yml", *options],
        env=env | {"ANSIBLE_STDOUT_CALLBACK": "json"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    told = json.loads(ran.stdout[ran.stdout.index("{") :])
    lines = [line.replace(str(folder), "FOLDER") for line in said(told)]
    return ran.returncode, lines, sum(host["changed"] for host in told["stats"].values())


def said(told):
    """Each message of a failed task, of an item of its loop where it has one."""
    for task in (task for play in told["plays"] for task in play["tasks"]):
        for result in task["hosts"].values():
            for one in result.get("results", [result]):
                if one.get("failed") and not ({"argument_errors", "unreachable"} & set(one)):
                    yield one["msg"]


REFUSALS = {
    "no name": ("server", {"everywhere": {"tandem_server_name": ""}}, "tandem_server_name is empty"),
    "the example's name": ("server", {"everywhere": {"tandem_server_name": "server.fleet.example"}}, "the example"),
    "a page's address": ("server", {"everywhere": {"tandem_server_name": "https://a.test/"}}, 'is "https://a.test/"'),
    "a word that is no choice": ("server", {"server": {"certificate_kind": "self"}}, "certificate_kind must be one of"),
    "a port twice": ("server", {"server": {"tandem_database_backup_port": 8086}}, "tandem_database_backup_port"),
    "no passphrase": (
        "server",
        {"server": {"certificate_authority_passphrase": ""}},
        "certificate_authority_passphrase",
    ),
    "an authority without its key": ("server", {"server": {"tandem_ca_file": "FOLDER/id.pub"}}, "without its key"),
    "a given certificate that is not there": (
        "server",
        {
            "server": {
                "certificate_kind": "given",
                "certificate_file": "FOLDER/none.pem",
                "certificate_key_file": "FOLDER/ca.key",
            }
        },
        'certificate_file, and the control machine has no file "FOLDER/none.pem"',
    ),
    "a public authority that probes do not believe": (
        "server",
        {"server": {"certificate_kind": "acme"}},
        "tandem_ca_file is",
    ),
    "a folder without wheels": ("server", {"server": {"tandem_wheels": "FOLDER"}}, "tandem_wheels is FOLDER"),
    "another release": ("server", {"server": {"tandem_release": "99.0"}}, "tandem_release is 99.0"),
    "a volume that is no device": ("server", {"server": {"volume_device": "data"}}, "volume_device of server is data"),
    "a kernel without WireGuard, at the hub": (
        "server",
        {"server": KERNEL | {"hub_user_space": False}},
        "hub_user_space is false",
    ),
    "two videos": (
        "server",
        {"server": {"content_video_url": "https://a.test/v", "content_video_file": "FOLDER/v"}},
        "content_video_url https://a.test/v and content_video_file",
    ),
    "no backup": ("restore", {}, "restore_from"),
    "no keys": ("probe", {"everywhere": {"tandem_operator_keys": []}}, "tandem_operator_keys is empty"),
    "the example's key": (
        "probe",
        {
            "everywhere": {
                "tandem_operator_keys": [
                    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPut/your/own/public/key/here/it/is/one/line0 anna"
                ]
            }
        },
        "is no public SSH key of yours",
    ),
    "no paths": ("probe", NO_PATHS, "tandem_paths of kit-02 is empty"),
    "a path without a place": ("probe", {"kit": {"tandem_paths": [{"name": "a"}]}}, "tandem_paths of kit-02"),
    "a place that is none": ("probe", {"kit": {"tandem_paths": [{"name": "a", "usb": "usb1"}]}}, "kit-02, path a"),
    "an access point that nobody uses": (
        "probe",
        {"kit": {"tandem_paths": [{"name": "a", "usb": "1-1.2", "port": "http://192.168.8.1", "apn": "web"}]}},
        "path a has an apn and the port http://192.168.8.1",
    ),
    "no file of the authority": ("probe", {"kit": {"tandem_ca_file": "FOLDER/no.pem"}}, "tandem_ca_file of kit-02"),
    "a kernel without WireGuard": (
        "probe",
        {"everywhere": KERNEL, "kit": {"wireguard_userspace": False}},
        "kit-02: wireguard_userspace is false and mptcp_kernel is v094",
    ),
    "a kernel that is not there": (
        "probe",
        {"kit": KERNEL | {"mptcp_v094_package": "none.deb"}},
        "mptcp_v094_package of kit-02",
    ),
    "another kernel than the server's": ("probe", {"kit": KERNEL}, "mptcp_kernel of kit-02 is v094"),
    "a GPIO twice": (
        "probe",
        {"kit": {"tandem_status_led": {"red": 17, "green": 23}, "tandem_e_paper": {"call": "Ana"}}},
        "tandem_status_led or tandem_e_paper of kit-02 (17, 23, 25, 23, 24)",
    ),
    "nothing to pull": ("pull", {"kit": {"pull_repository": ""}}, "pull_repository is empty"),
    "SSH for the world": ("aws", {"everywhere": {"aws_ssh_from": ["0.0.0.0/0"]}}, "aws_ssh_from"),
    "no key for AWS": (
        "aws",
        {"everywhere": {"aws_key_file": "FOLDER/none.pub"}},
        "aws_key_file FOLDER/none.pub is no file",
    ),
}


ACCEPTED = {
    "a server": ("server", {"everywhere": KERNEL}),
    "probes": ("probe", {"everywhere": KERNEL, "kit": LIGHT}),
    "probes that pull": ("pull", {}),
    "all but the wrong one": ("probe", NO_PATHS, "--limit", "kit-01"),
}


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """Each of them, played; as many at once as there are processors."""
    cases = {name: (playbook, given, ()) for name, (playbook, given, _) in REFUSALS.items()}
    cases |= {name: (playbook, given, options) for name, (playbook, given, *options) in ACCEPTED.items()}
    cases["one part"] = ("probe", NO_PATHS, ("--tags", "modems"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        started = {name: pool.submit(play, tmp_path_factory.mktemp("play"), *case) for name, case in cases.items()}
        return {name: one.result() for name, one in started.items()}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_work_is_refused_before_a_machine_is_touched(played, name):
    status, lines, changed = played[name]
    assert (status, changed) == (REFUSED, 0), lines
    assert lines
    for line in lines:
        assert REFUSALS[name][2] in line
        assert "; mend: " in line
        assert "\n" not in line


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_can_work_goes_on_to_the_machines(played, name):
    assert played[name] == (UNREACHABLE, [], 0)


def test_one_part_alone_is_not_played_past_what_another_lacks(played):
    assert played["one part"] == played["no paths"]
