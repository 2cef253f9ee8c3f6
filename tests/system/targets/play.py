"""Runs the repository's own playbooks against targets: an inventory as a user writes it, ansible-playbook as ``./kit provision`` does."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from targets.ground import CONTROL, PROBE, SERVER, SERVER_NAME, USER, Ground, GroundError
from targets.vm_target import REPOSITORY

from tandem_fleet.new import authority

PLAYBOOKS = REPOSITORY / "ansible" / "playbooks"
CA_PASSPHRASE = "only for this run"  # noqa: S105 - of a CA that nobody trusts
_RECAP = re.compile(r"^(\S+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)\s+skipped=(\d+)", re.M)


@dataclass(frozen=True)
class Played:
    """One run of a playbook: ``changed`` tasks by host, and what it printed."""

    changed: Mapping[str, int]
    failed: Mapping[str, int]
    tasks: Mapping[str, int]
    exit: int
    output: str

    def changes(self) -> list[str]:
        """The tasks that changed something, for a message."""
        found: list[str] = []
        task = ""
        for line in self.output.splitlines():
            if line.startswith(("TASK [", "RUNNING HANDLER [")):
                task = line.split("[", 1)[1].partition("]")[0]
            elif line.startswith("changed:"):
                found.append(f"{task} ({line.removeprefix('changed:').strip()})")
        return found


def program() -> str | None:
    """ansible-playbook of this environment, or the one in TANDEM_ANSIBLE."""
    beside = Path(sys.prefix) / "bin" / "ansible-playbook"
    return os.environ.get("TANDEM_ANSIBLE") or (str(beside) if beside.exists() else shutil.which("ansible-playbook"))


def sources(ground: Ground) -> dict[str, Any]:
    """Where packages come from here: the only variables that a user's inventory would not have. The playbooks are unchanged."""
    return {
        "tandem_debian_mirror": ground.mirror,
        "tandem_wheels": str(ground.wheels),
        # What stands in for Grafana is in the same archive.
        "grafana_repository": "",
        # The only clock that can be asked from here.
        "base_time_sources": [f"server {CONTROL} iburst"],
    }


def inventory(ground: Ground, servers: Mapping[str, Any], probes: Mapping[str, Any], name: str = "inventory") -> Path:
    """Write it; its file, called ``name``. ``servers`` and ``probes``: variables of the one host of each group."""
    options = f"-F none -o UserKnownHostsFile={ground.known_hosts} -o StrictHostKeyChecking=yes -o IdentitiesOnly=yes"
    common = {
        "ansible_user": USER,
        "ansible_ssh_private_key_file": str(ground.key),
        "ansible_ssh_common_args": options,
        "ansible_control_path_dir": str(ground.folder / "cp"),
        "tandem_user": USER,
        "tandem_operator_keys": [ground.key.with_suffix(".pub").read_text().strip()],
        "tandem_server_name": SERVER_NAME,
        "tandem_ca_file": str(ground.folder / "ca.pem"),
        "certificate_authority_passphrase": CA_PASSPHRASE,
    }
    groups: dict[str, Any] = {"all": {"vars": common | sources(ground)}}
    groups["servers"] = {"hosts": {"server": {"ansible_host": SERVER} | dict(servers)}}
    groups["probes"] = {"hosts": {"kit": {"ansible_host": PROBE} | dict(probes)}}
    if not (ground.folder / "ca.pem").exists():
        for made, text in zip(("ca.pem", "ca.key"), authority("tests", CA_PASSPHRASE), strict=True):
            (ground.folder / made).write_text(text, encoding="utf-8")
    file = ground.folder / f"{name}.yml"
    file.write_text(json.dumps(groups, indent=1), encoding="utf-8")  # JSON is YAML
    return file


def in_json(folder: Path, *words: object) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """``ansible-playbook``, told whole by ``words``: the run, and what Ansible itself tells of it. In ``folder`` it keeps what it must."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "AWS_"))}
    env |= {"ANSIBLE_CONFIG": str(REPOSITORY / "ansible/ansible.cfg"), "ANSIBLE_HOME": str(folder / "ansible")}
    env |= {"ANSIBLE_STDOUT_CALLBACK": "json", "LC_ALL": "C.UTF-8"}
    streams = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    done = subprocess.run([*map(str, words)], env=env, check=False, timeout=900, **streams)
    begin = done.stdout.find("{")
    assert begin >= 0, done.stdout + done.stderr
    return done, json.loads(done.stdout[begin:])


def play(ground: Ground, name: str, inventory: Path, *options: str, log: str = "") -> Played:
    """``ansible-playbook NAME``; what it printed is kept as LOG.log in the ground's folder."""
    found = program()
    if found is None:
        raise GroundError("ansible-playbook not found; hint: pip install -r requirements/lock.txt")
    env = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    env |= {
        "ANSIBLE_CONFIG": str(REPOSITORY / "ansible" / "ansible.cfg"),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_HOME": str(ground.folder / "ansible"),
        "ANSIBLE_CALLBACKS_ENABLED": "ansible.posix.profile_tasks",
        "PIP_NO_INDEX": "1",
    }
    with (ground.folder / f"{log or name}.log").open("w+", encoding="utf-8") as output:
        done = subprocess.run(
            [found, "-i", str(inventory), str(PLAYBOOKS / name), *options],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=env, cwd=REPOSITORY, check=False,
            timeout=2700,  # a play lasts three minutes on a machine of its own: this is for one that hangs
        )  # fmt: skip
        output.seek(0)
        text = output.read()
    recap = {row[0]: [int(number) for number in row[1:]] for row in _RECAP.findall(text)}
    return Played(
        changed={host: row[1] for host, row in recap.items()},
        failed={host: row[2] + row[3] for host, row in recap.items()},
        tasks={host: row[0] for host, row in recap.items()},
        exit=done.returncode,
        output=text,
    )
