"""What Ansible says: a probe's variables, with groups, files, vaults and templates; and the invitation, asked of the server over SSH."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tandem_image import ImageError

_NAMES = (
    "tandem_server_name",
    "tandem_server_ports",
    "tandem_ca_file",
    "tandem_paths",
    "tandem_wifi",
    "tandem_operator_keys",
    "tandem_user",
    "tandem_image_file",
)
_UNDEFINED = re.compile(r"'([A-Za-z_][A-Za-z0-9_]{0,99})' is undefined")
# What Ansible says of a template may quote a secret: only what is known to hold none is passed on.
_REASONS = (
    ("Decryption failed", "the vault does not open; hint: is {inventory}/vault.key this fleet's key?"),
    ("no vault secrets", "the vault has no key; hint: put the fleet's key into {inventory}/vault.key"),
    ("parse inventory", "a file is of no kind that Ansible reads; hint: ./kit fleet check {inventory}"),
)


def variables(inventory: Path, probe: str) -> dict[str, Any]:
    """Those of _NAMES that are set. Ansible's debug action runs here and connects to nobody. Raises ImageError."""
    # Not through to_json: it does not know what `omit` leaves out.
    wanted = ", ".join(f"'{name}': hostvars[inventory_hostname]['{name}'] | default(none)" for name in _NAMES)
    hosts = _ansible(inventory, probe, "ansible.builtin.debug", "msg={{ {" + wanted + "} }}")
    if probe not in hosts:
        raise ImageError(f"{inventory}: there is no {probe}; hint: ./kit fleet add-kit {probe}")
    task = hosts[probe]
    if not isinstance(task.get("msg"), dict):  # of a task that failed it is a text
        raise ImageError(f"{inventory}: {_why(str(task), inventory, probe)}")
    return {name: value for name, value in task["msg"].items() if value is not None}


def invite(inventory: Path, probe: str) -> str:
    """What ``tandem-server probe invite`` prints on the fleet's server. Raises ImageError."""
    words = f"tandem-server probe invite {probe} --json"
    hosts = _ansible(
        inventory, "servers", "ansible.builtin.command", words, "--become-user", "tandem-server", "--become"
    )
    hint = "hint: --invite FILE with the output of `tandem-server probe invite`, or --no-enrolment"
    if len(hosts) != 1:
        raise ImageError(f"{inventory}: the group servers has {len(hosts)} machines, not one; {hint}")
    ((server, task),) = hosts.items()
    if task.get("rc") != 0:
        said = " ".join(str(task.get("stderr") or task.get("msg") or "no answer").split())[:300]
        what = "cannot be reached" if task.get("unreachable") else "gives no invitation"
        raise ImageError(f"{server} {what} ({said}); {hint}", 1)
    return str(task["stdout"])


def _ansible(inventory: Path, hosts: str, module: str, arguments: str, *options: str) -> dict[str, Any]:
    """The result of one action for each host. Raises ImageError where Ansible does not come to it."""
    if not inventory.exists():
        raise ImageError(f"there is no inventory {inventory}; hint: ./kit fleet new {inventory}")
    environment = {
        **{name: value for name, value in os.environ.items() if name != "ANSIBLE_LOG_PATH"},
        "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
        "ANSIBLE_LOAD_CALLBACK_PLUGINS": "1",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1",
        "LC_ALL": "C.UTF-8",
    }
    key = inventory / "vault.key"
    if key.is_file():
        environment.setdefault("ANSIBLE_VAULT_PASSWORD_FILE", str(key.resolve()))
    beside = Path(sys.executable).with_name("ansible")
    program = str(beside) if beside.exists() else "ansible"
    command = [program, "-i", str(inventory), hosts, "-m", module, "-a", arguments, *options]
    try:
        ran = subprocess.run(command, capture_output=True, check=False, env=environment, text=True, errors="replace")
    except FileNotFoundError:
        raise ImageError("Ansible is missing; hint: start this as ./kit image, which sets it up", 3) from None
    try:
        (play,) = json.loads(ran.stdout[ran.stdout.index("{") :])["plays"]
        return dict(play["tasks"][0]["hosts"]) if play["tasks"] else {}
    except (ValueError, LookupError, TypeError):
        raise ImageError(f"{inventory}: {_why(ran.stdout + ran.stderr, inventory, hosts)}") from None


def _why(said: str, inventory: Path, host: str) -> str:
    undefined = _UNDEFINED.search(said)
    if undefined is not None:
        return f"{undefined[1]} is not defined; hint: set it for {host}, or remove what refers to it"
    for text, reason in _REASONS:
        if text.lower() in said.lower():
            return reason.format(inventory=inventory, host=host)
    return f"Ansible cannot read it; hint: ansible-inventory -i {inventory} --host {host}"
