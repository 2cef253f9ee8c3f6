"""A fleet's files: YAML with Ansible's ``!vault`` values, written in one step; secrets are encrypted by Ansible's own library."""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from ansible.errors import AnsibleError
from ansible.parsing.vault import VaultLib, VaultSecret

KEY = "vault.key"


class FleetError(Exception):
    """What cannot be done: a place (file, variable or option), what is wrong with it, what helps. One line."""

    def __init__(self, place: object, what: str, hint: str) -> None:
        super().__init__(f"{place}: {what}; hint: {hint}")
        self.place, self.what, self.hint = str(place), what, hint


@dataclass(frozen=True)
class Sealed:
    """An encrypted value, as it stands in the file."""

    text: str


class _Loader(yaml.SafeLoader):
    """Knows encrypted values, and refuses a key that stands twice, of which YAML would keep the second."""


def _sealed(loader: _Loader, node: yaml.Node) -> Sealed:
    return Sealed(str(loader.construct_scalar(node)))  # type: ignore[arg-type]  # a mapping raises


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value} stands twice", problem_mark=key.start_mark)
            seen.add(key.value)
    return dict(loader.construct_mapping(node, deep=True))


_Loader.add_constructor("!vault", _sealed)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def load(file: Path) -> dict[str, Any]:
    """The variables in ``file``; empty for an empty file. FleetError: not there, not YAML, or no dictionary."""
    try:
        return parse(file, file.read_text())
    except FileNotFoundError:
        raise FleetError(file, "no such file", "./kit fleet new DIR makes a fleet") from None
    except UnicodeDecodeError:
        raise FleetError(file, "is no text", "UTF-8") from None


def parse(file: Path, text: str) -> dict[str, Any]:
    """As ``load``, of the ``text`` that ``file`` has or would have."""
    try:
        found = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        place = f"{file}:{mark.line + 1}" if mark else str(file)
        raise FleetError(place, problem or "not YAML", "two spaces a level, `name: value`, each name once") from None
    if not isinstance(found or {}, dict):
        raise FleetError(file, "holds no variables", "each line as `name: value`")
    return found or {}


def group(hosts: object, name: str, *, inside: bool = False) -> dict[str, object]:
    """The hosts of the group ``name`` in hosts.yml, its children's too, each with what stands there of it."""
    found: dict[str, object] = {}
    for key, node in hosts.items() if isinstance(hosts, dict) else ():
        if isinstance(node, dict):
            within = inside or key == name
            found |= (node.get("hosts") or {}) if within else {}
            found |= group(node.get("children"), name, inside=within)
    return found


def replace(file: Path, text: str, mode: int = 0o644) -> None:
    """Write ``file`` in one step: a power cut leaves the old or the new one."""
    made = file.with_name(f".{file.name}.tmp")
    made.unlink(missing_ok=True)
    with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    made.replace(file)


def make_key() -> str:
    """A new vault key's text: 256 bits."""
    return secrets.token_hex(32) + "\n"


def _vault(key: str) -> VaultLib:
    return VaultLib([("default", VaultSecret(key.strip().encode()))])


def opens(key: str, sealed: str) -> bool:
    """Whether ``key`` decrypts ``sealed``."""
    try:
        _vault(key).decrypt(sealed)
    except AnsibleError:
        return False
    return True


def encrypted(key: str, name: str, value: str, indent: int = 0) -> str:
    """The lines of a YAML file that set ``name`` to ``value``, as ansible-vault writes it, ``indent`` spaces deep."""
    lines = _vault(key).encrypt(value).decode().split()
    return f"{' ' * indent}{name}: !vault |\n" + "".join(f"{' ' * (indent + 2)}{line}\n" for line in lines)


def set_secret(fleet: Path, owner: str, name: str, value: str) -> Path:
    """Set a secret of a kit, or of all. Everything else in the file stays as it is. FleetError: what is wrong."""
    file = fleet / ("group_vars/all.yml" if owner == "all" else f"host_vars/{owner}.yml")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise FleetError(name, "not a variable's name", "lower-case letters, digits and _, such as secret_pin_a")
    if not file.is_file():
        raise FleetError(file, "no such file", f"./kit fleet add-kit {owner} -i {fleet}")
    if not (fleet / KEY).is_file():
        raise FleetError(fleet / KEY, "no such file", "copy the fleet's key here; its secrets open with no other")
    made = encrypted((fleet / KEY).read_text(), name, value)
    text = file.read_text()
    # The variable's line at the left edge, and the indented or empty lines below it.
    before = re.compile(rf"^{name}:.*\n(?:[ \t]+.*\n|(?=\n)\n)*", re.M)
    text = before.sub(lambda _: made, text, count=1) if before.search(text) else text.rstrip("\n") + "\n" + made
    replace(file, text)
    load(file)
    return file
