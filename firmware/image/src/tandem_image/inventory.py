"""The probe's variables as Ansible sees them: the inventory is read by Ansible itself, with its groups, files, vaults and templates."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tandem_image.errors import ImageError, LackingError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAMES = (
    "tandem_server_name",
    "tandem_server_ports",
    "tandem_ca_file",
    "tandem_paths",
    "tandem_wifi",
    "tandem_operator_keys",
    "tandem_user",
    "tandem_image_file",
    "tandem_image_root_size",
)


_UNDEFINED = re.compile(r"'([A-Za-z_][A-Za-z0-9_]{0,99})' is undefined")


@dataclass(frozen=True)
class Variables:
    """Those of NAMES that are set, by name; never printed, for there are passwords among them."""

    values: Mapping[str, Any] = field(repr=False)

    def text(self, name: str) -> str | None:
        """A text, or None where it is not set or empty."""
        value = self.values.get(name)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise ImageError(f"{name} in the inventory is no text; mend: put it into quotes")
        return value

    def mapping(self, name: str) -> Mapping[str, Any]:
        """A dictionary, empty where it is not set."""
        value = self.values.get(name) or {}
        if not isinstance(value, dict):
            raise ImageError(
                f"{name} in the inventory is no dictionary; mend: ansible/roles/tandem/README.md says its keys"
            )
        return value

    def sequence(self, name: str) -> Sequence[Any]:
        """A list, empty where it is not set."""
        value = self.values.get(name) or []
        if not isinstance(value, list):
            raise ImageError(f"{name} in the inventory is no list; mend: one entry a line, each after '- '")
        return value


def read(probe: str, inventories: Sequence[str], vault: Sequence[str] = ()) -> Variables:
    """Ask Ansible; ``vault`` are options of its own. Its debug action runs here and connects to nobody.

    Raises ImageError for a probe or a file that is not there, LackingError without Ansible.
    """
    if not inventories:
        return Variables({})
    for place in inventories:
        if not Path(place).exists() and "," not in place:
            raise ImageError(f"there is no inventory {place}; mend: ansible/inventories/README.md")
    # Not through to_json: it does not know what `omit` leaves out.
    wanted = ", ".join(f"'{name}': hostvars[inventory_hostname]['{name}'] | default(none)" for name in NAMES)
    sources = [word for place in inventories for word in ("-i", place)]
    command = [
        _ansible(),
        *sources,
        *vault,
        probe,
        "-m",
        "ansible.builtin.debug",
        "-a",
        "msg={{ {" + wanted + "} }}",
    ]
    environment = {
        **{name: value for name, value in os.environ.items() if name != "ANSIBLE_LOG_PATH"},
        "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
        "ANSIBLE_LOAD_CALLBACK_PLUGINS": "1",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1",
        "LC_ALL": "C.UTF-8",
    }
    # A vault's password is asked for on the terminal itself.
    ran = subprocess.run(command, capture_output=True, check=False, env=environment, text=True, errors="replace")
    return Variables(_values(probe, ran.stdout, ran.stderr))


def _ansible() -> str:
    beside = Path(sys.executable).with_name("ansible")
    found = str(beside) if beside.exists() else shutil.which("ansible")
    if found is None:
        raise LackingError(
            "the inventory is read by Ansible, which is missing; mend: start this as ./kit image, which sets it up"
        )
    return found


def _values(probe: str, stdout: str, stderr: str) -> dict[str, Any]:
    values = None
    with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError):
        values = json.loads(stdout[stdout.index("{") :])["plays"][0]["tasks"][0]["hosts"][probe]["msg"]
    if not isinstance(values, dict):  # of a task that failed it is a text
        raise ImageError(f"Ansible could not say the variables of {probe} ({_why(stdout + stderr, probe)})")
    return {name: value for name, value in values.items() if value is not None}


def _why(said: str, probe: str) -> str:
    # What it says of a template may quote it, and what it was made from: only what is known to hold no value is passed on.
    undefined = _UNDEFINED.search(said)
    if undefined is not None:
        return f"{undefined[1]} is not defined; mend: set it for {probe}, or take away what refers to it"
    for text, mend in (
        ("Decryption failed", "mend: another --vault-password-file"),
        ("no vault secrets", "mend: --vault-password-file FILE, or --ask-vault-pass"),
        ("Could not match supplied host pattern", f"mend: is {probe} in that inventory?"),
        ("parse inventory", "mend: a file of the inventory is of no kind that Ansible reads"),
    ):
        if text.lower() in said.lower():
            return f"{text}; {mend}"
    return f"mend: ansible-inventory -i INVENTORY --host {probe} says more"
