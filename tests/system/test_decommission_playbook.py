"""The unchanged playbook decommission.yml against two root folders in which real programs run: a probe's and a server's.

No systemd runs in them (what a running one adds, stopping units, is for the booted targets); the registry, tandem-server, the files and
Ansible's modules are real. Needs root in mount and PID namespaces of its own, as all of tests/system.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from targets.play import in_json, program

PROGRAM = program()
ROOT = Path(__file__).parents[2]
PLAYBOOK = ROOT / "ansible/playbooks/decommission.yml"
SECRETS = {
    "etc/tandem/token": "tandem_0",
    "etc/tandem/wireguard.key": "key",
    "etc/tandem/pin-a": "1234",
    "etc/tandem/enrolled.json": "{}",
    "var/lib/tandem/spool/1": "records",
    "var/lib/tandem/captures/a.pcap": "packets",
    "opt/tandem/programs/0.1/bin/tandem": "program",
    "etc/systemd/system/tandem.service": "[Service]\nExecStart=/usr/bin/tandem\n[Install]\nWantedBy=multi-user.target\n",
    "etc/systemd/system/tandem.service.d/modems.conf": "[Service]\n",
    "etc/NetworkManager/system-connections/wifi.nmconnection": "psk=secret",
    "boot/firmware/user-data": "#cloud-config\n",
    "etc/ssh/ssh_host_ed25519_key": "private",
    "var/lib/cloud/instance/user-data.txt": "#cloud-config\n",
}
STAYS = {"etc/sudoers.d/tandem": "rights", "etc/ssh/sshd_config.d/10-tandem.conf": "PasswordAuthentication no\n"}
LINKS = {
    "usr/bin/tandem": "/opt/tandem/current/bin/tandem",
    "etc/systemd/system/multi-user.target.wants/tandem.service": "/etc/systemd/system/tandem.service",
}

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(os.geteuid() != 0 or PROGRAM is None, reason="needs root and Ansible"),
]


PATH = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"
"""In both folders: not this checkout's programs, which they may see too."""
SILENT = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
SILENT |= {"ansible_python_interpreter": "/usr/bin/python3"}
"""A probe where SSH finds nobody."""


def call(*command, **named):
    done = subprocess.run([*map(str, command)], check=False, capture_output=True, text=True, **named)
    assert done.returncode == 0, done.stderr
    return done.stdout


def put(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


class Folder:
    """This machine's programs below a root folder of its own; nothing that runs there writes outside."""

    def __init__(self, path):
        self.root, self._mounts = path / "root", []
        self.root.mkdir(parents=True)
        self._mount("-t", "tmpfs", "none", self.root)
        self._mount("-t", "tmpfs", "none", path.joinpath("over"), make=True)
        upper, work = path / "over/upper", path / "over/work"
        upper.mkdir()
        work.mkdir()
        layers = f"lowerdir=/usr,upperdir={upper},workdir={work}"
        self._mount("-t", "overlay", "none", "-o", layers, self.root / "usr", make=True)
        for name in ("bin", "sbin", "lib", "lib64"):
            if Path("/", name).is_symlink():
                (self.root / name).symlink_to(f"usr/{name}")
        for name in ("etc", "run", "tmp", "root", "var/log/journal", "var/lib"):
            (self.root / name).mkdir(parents=True)
        put(self.root, {"etc/pam.d/runuser": "auth sufficient pam_rootok.so\nsession required pam_unix.so\n"})
        put(self.root, {"etc/nsswitch.conf": "passwd: files\ngroup: files\n", "etc/machine-id": "0" * 31 + "1\n"})
        users = "root:x:0:0::/root:/bin/sh\ntandem:x:990:990::/var/lib/tandem:/bin/false\ntandem-server:x:991:991::/:/bin/sh\n"
        groups = "root:x:0:\ntandem:x:990:\ntandem-server:x:991:\n"
        put(
            self.root,
            {"etc/passwd": users, "etc/group": groups, "etc/shadow": users.replace(":x:", ":*:").split(":9")[0] + "\n"},
        )
        for name in ("proc", "dev"):
            self._mount("--rbind", f"/{name}", self.root / name, make=True)

    def _mount(self, *args, make=False):
        if make:
            Path(args[-1]).mkdir(parents=True, exist_ok=True)
        call("mount", *args)
        self._mounts.append(args[-1])

    def show(self, folder):
        """This machine's ``folder``, to be read only."""
        if not folder.is_relative_to("/usr"):
            self._mount("--bind", "-o", "ro", folder, self.root / folder.relative_to("/"), make=True)

    def close(self):
        for place in reversed(self._mounts):
            call("umount", "-l", place)


@pytest.fixture
def probe(tmp_path):
    folder = Folder(tmp_path / "probe")
    put(folder.root, SECRETS | STAYS)
    for name, target in LINKS.items():
        (folder.root / name).parent.mkdir(parents=True, exist_ok=True)
        (folder.root / name).symlink_to(target)
    yield folder.root
    folder.close()


@pytest.fixture
def server(tmp_path):
    folder = Folder(tmp_path / "server")
    for shown in {Path(sys.prefix), ROOT}:
        folder.show(shown)
    sources = ":".join(str(ROOT / name) for name in ("collector/src", "server/src"))
    program = folder.root / "usr/bin/tandem-server"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={sources} exec {sys.executable} -m tandem_server "$@"\n')
    program.chmod(0o755)
    wireguard = '[wireguard]\nnetwork = "10.87.0.0/16"\nendpoint = "192.0.2.1:51820"\n'
    put(
        folder.root,
        {"etc/tandem/server.toml": '[registry]\nfile = "/var/lib/tandem-server/registry.sqlite"\n' + wireguard},
    )
    (folder.root / "var/lib/tandem-server").mkdir()
    os.chown(folder.root / "var/lib/tandem-server", 991, 991)
    yield folder.root
    folder.close()


ENROL = """
import ipaddress, pathlib, sys
from tandem_server.registry import Registry
from tandem_server.registry.probes import write_peers
file = pathlib.Path("/var/lib/tandem-server/registry.sqlite")
network = ipaddress.ip_network("10.87.0.0/16")
with Registry(file) as registry:
    for name in ("kit-1", "kit-2"):
        code = registry.enrolments.invite(name, 60, network).code
        print(registry.enrolments.redeem(name, code, name + "=", ["ssh-ed25519 AAAA"], network)[0])
    write_peers(file.parent, registry.enrolments)
"""


def in_server(server, *command, given=None):
    return call("env", PATH, "chroot", server, "runuser", "-u", "tandem-server", "--", *command, input=given)


def enrolled(server):
    """Tokens of kit-1 and kit-2, made by the registry itself."""
    sources = f"PYTHONPATH={ROOT / 'collector/src'}:{ROOT / 'server/src'}"
    return in_server(server, "env", sources, sys.executable, "-", given=ENROL).split()


def play(tmp_path, probe, server, *more, kits=None):
    """``kits``: settings of each; else two that are ``probe``."""
    inventory = tmp_path / "hosts.yml"
    here = {"ansible_connection": "community.general.chroot", "ansible_python_interpreter": "/usr/bin/python3"}
    of_probe = here | {"ansible_host": str(probe)}
    hosts = {
        "probes": {"hosts": kits or {"kit-1": of_probe, "kit-2": of_probe}},
        "servers": {"hosts": {"server": here | {"ansible_host": str(server)}}},
    }
    inventory.write_text(json.dumps({"all": {"children": hosts, "vars": {"ansible_become": False}}}))
    named = ["-i", inventory, PLAYBOOK, "-e", '{"decommission_power_off": false}']
    return in_json(tmp_path, "env", PATH, PROGRAM, *named, *more)


def faults(told):
    """What failed, for the reader of a failed test."""
    tasks = [task for one in told["plays"] for task in one["tasks"]]
    results = [(task["task"]["name"], host, result) for task in tasks for host, result in task["hosts"].items()]
    bad = [one for one in results if one[2].get("failed") or one[2].get("unreachable")]
    return "\n".join(f"{name}: {host}: {of.get('msg')} {of.get('stderr')} {of.get('stdout')}" for name, host, of in bad)


def there(probe):
    return sorted(name for name in (*SECRETS, *LINKS) if (probe / name).exists() or (probe / name).is_symlink())


def test_a_probe_is_revoked_and_wiped_and_a_second_run_changes_nothing(tmp_path, probe, server):
    first, other = enrolled(server)
    done, told = play(tmp_path, probe, server, "--check", "-e", "decommission=kit-1")
    assert done.returncode == 0, faults(told)
    assert there(probe) == sorted((*SECRETS, *LINKS))
    done, told = play(tmp_path, probe, server, "-e", "decommission=kit-1")
    assert done.returncode == 0, faults(told)
    assert told["stats"]["kit-1"]["changed"] >= 3  # revoked, wiped, the place in the tunnel taken away
    assert there(probe) == []
    assert all((probe / name).read_text() == text for name, text in STAYS.items())
    assert "tandem:" not in (probe / "etc/passwd").read_text()
    assert in_server(server, "tandem-server", "probe", "peers").count("# kit-") == 1
    listed = {one["name"]: one for one in json.loads(in_server(server, "tandem-server", "probe", "list", "--json"))}
    assert [listed[name]["state"] == "revoked" for name in ("kit-1", "kit-2")] == [True, False]
    assert first not in done.stdout
    assert other not in done.stdout
    done, told = play(tmp_path, probe, server, "-e", "decommission=kit-1")
    assert (done.returncode, told["stats"]["kit-1"]["changed"]) == (0, 0), faults(told)


def test_what_is_lost_or_does_not_answer_is_revoked_all_the_same_and_no_name_is_passed_over(tmp_path, probe, server):
    """In one play: a kit that is lost, which is not looked for; one that does not answer; one that no server knows by its name."""
    enrolled(server)
    lost = {"decommission_lost": True}
    kits = {
        "kit-1": SILENT | {"decommission_reach_s": 1},
        "kit-2": SILENT | lost,
        "kit-3": SILENT | lost | {"decommission_probe": "kit-8"},
    }
    done, told = play(tmp_path, probe, server, "-e", "decommission=kit-1,kit-2,kit-3", kits=kits)
    assert done.returncode != 0
    failed = {name: told["stats"][name]["failures"] for name in kits}
    assert failed == {"kit-1": 1, "kit-2": 0, "kit-3": 1}, faults(told)
    assert told["stats"]["kit-2"]["unreachable"] == 0, faults(told)
    said = faults(told)
    assert "kit-1: kit-1 is revoked at the server, but was not reached and is not wiped; hint: " in said
    assert "kit-3: No server knows a probe kit-8, so nothing was revoked; hint: " in said
    peers = in_server(server, "tandem-server", "probe", "peers")
    assert "kit-1" not in peers
    assert "kit-2" not in peers
    assert there(probe) == sorted((*SECRETS, *LINKS))


def test_nobody_is_taken_out_of_service_by_accident(tmp_path, probe, server):
    """What the playbook asks first holds for probes of the inventory alone; where it does not hold, nothing is done."""
    assert [named for named in (None, "all", "kit-1,kit-9", "server", "") if may_go(named)] == []
    assert may_go("kit-1")
    assert may_go("kit-1,kit-2")
    enrolled(server)
    done, _ = play(tmp_path, probe, server, "-e", "decommission=kit-1,kit-9")
    assert done.returncode != 0
    assert "hint: -e decommission=NAME" in done.stdout
    assert in_server(server, "tandem-server", "probe", "peers").count("# kit-") == 2
    assert there(probe) == sorted((*SECRETS, *LINKS))


def may_go(named):
    """Whether the playbook's first task lets it pass. None: nothing is named."""
    (check,) = DataLoader().load_from_file(str(PLAYBOOK), trusted_as_template=True)[0]["tasks"]
    told = {"groups": {"probes": ["kit-1", "kit-2"], "servers": ["server"]}}
    told |= {} if named is None else {"decommission": named}
    templar = Templar(loader=DataLoader(), variables=told)
    return all(templar.evaluate_conditional(one) for one in check["ansible.builtin.assert"]["that"])


def test_below_a_read_only_root_nothing_is_wiped(tmp_path, probe):
    """It would be back at the next start."""
    folder = tmp_path / "overlaid"
    folder.mkdir()
    layers = f"lowerdir={probe},upperdir={folder / 'upper'},workdir={folder / 'work'}"
    call("mount", "-t", "tmpfs", "none", folder)
    for name in ("top", "upper", "work"):
        (folder / name).mkdir()
    call("mount", "-t", "overlay", "none", "-o", layers, folder / "top")
    call("mount", "--rbind", "/proc", folder / "top/proc")
    call("mount", "--rbind", "/usr", folder / "top/usr")
    shutil.copy(ROOT / "ansible/roles/decommission/files/tandem-wipe", folder / "top/root")
    command = ["chroot", folder / "top", "/bin/bash", "/root/tandem-wipe", "--yes"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"PATH": PATH.removeprefix("PATH=")}, check=False
    )
    call("umount", "-R", folder)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("tandem-wipe: the root is read-only, and all would be back; hint: ")
    assert there(probe) == sorted((*SECRETS, *LINKS))
