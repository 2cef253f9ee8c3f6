"""Secrets: encrypted by Ansible's own library with the fleet's key, each in place in its YAML file."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from ansible.errors import AnsibleError
from ansible.parsing.vault import VaultLib, VaultSecret

from tandem_fleet.files import FleetError, load, replace

if TYPE_CHECKING:
    from pathlib import Path

KEY = "vault.key"


def make_key() -> str:
    """A new key's text: 256 bits."""
    return secrets.token_hex(32) + "\n"


def _library(key: str) -> VaultLib:
    return VaultLib([("default", VaultSecret(key.strip().encode()))])


def encrypt(key: str, value: str) -> str:
    """``value`` as ansible-vault writes it, several lines."""
    return str(_library(key).encrypt(value).decode())


def opens(key: str, sealed: str) -> bool:
    """Whether ``key`` decrypts ``sealed``."""
    try:
        _library(key).decrypt(sealed)
    except AnsibleError:
        return False
    return True


def entry(key: str, name: str, value: str, indent: int = 0) -> str:
    """The lines of a YAML file that set ``name`` to the encrypted ``value``, ``indent`` spaces deep."""
    lines = "".join(" " * (indent + 2) + line + "\n" for line in encrypt(key, value).split())
    return f"{' ' * indent}{name}: !vault |\n{lines}"


def put(fleet: Path, owner: str, name: str, value: str) -> Path:
    """Set a secret of a kit, or of all. Everything else in the file stays as it is. FleetError: what is wrong."""
    file = fleet / ("group_vars/all.yml" if owner == "all" else f"host_vars/{owner}.yml")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise FleetError(name, "not a variable's name", "lower-case letters, digits and _, such as secret_pin_a")
    if not file.is_file():
        raise FleetError(file, "no such file", f"./kit fleet add-kit {owner} -i {fleet}")
    if not (fleet / KEY).is_file():
        raise FleetError(fleet / KEY, "no such file", "copy the fleet's key here; its secrets open with no other")
    made = entry((fleet / KEY).read_text(), name, value)
    text = file.read_text()
    # The variable's line at the left edge, and the indented or empty lines below it.
    before = re.compile(rf"^{name}:.*\n(?:[ \t]+.*\n|(?=\n)\n)*", re.M)
    text = before.sub(lambda _: made, text, count=1) if before.search(text) else text.rstrip("\n") + "\n" + made
    replace(file, text)
    load(file)
    return file
