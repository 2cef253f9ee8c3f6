"""What is missing or wrong in a fleet, found without connecting to a machine. Shapes of variables are the plays' to check."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tandem_fleet import vault
from tandem_fleet.files import FleetError, Sealed, load
from tandem_fleet.new import KIT, SSH_KEY, group, probes

ROLES = Path(__file__).resolve().parents[2] / "roles"
_SECRET = re.compile(
    r"(?:^|_)(?:pin|puk|password|passphrase|passwd|psk|secret|token|code|private_key|secret_key|api_key)$|^secret_",
    re.I,
)
"""Names whose values are secrets."""
_TEMPLATE = re.compile(r"\s*\{\{[^{}]*\}\}\s*", re.S)
"""A value that is only a template: what it names is checked where it stands."""
_CLEAR = re.compile(r"-----BEGIN (?:(?!ENCRYPTED)[A-Z]+ )?PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b")
_OWN = ("ansible_", "fleet_", "secret_", "tandem_image_")
"""Beginnings of variables that no role declares: Ansible's, the fleet's own, its secrets, those of `./kit image`."""


def faults(fleet: Path) -> list[FleetError]:
    """All that is wrong, in the order of the files."""
    if not (fleet / "hosts.yml").is_file():
        return [FleetError(fleet, "no fleet is here", "./kit fleet new DIR makes one; -i DIR names it")]
    files = [file for file in sorted(fleet.rglob("*.yml")) if ".git" not in file.parts]
    read: dict[Path, dict[str, Any]] = {}
    found: list[FleetError] = []
    for file in files:
        try:
            read[file] = load(file)
        except FleetError as error:
            found.append(error)
    if not found:  # the rest would be misread
        found = [
            *_key(fleet, read),
            *_clear(fleet, read),
            *_hosts(fleet, read),
            *_everyone(fleet, read),
            *_known(fleet, read),
        ]
    return found


def _key(fleet: Path, read: dict[Path, dict[str, Any]]) -> Iterator[FleetError]:
    file = fleet / vault.KEY
    if not file.is_file():
        yield FleetError(
            str(file),
            "no such file, and the fleet's secrets open with no other key",
            "copy it from where the fleet was made",
        )
        return
    if file.stat().st_mode & 0o077:
        yield FleetError(file, "others can read it", f"chmod 600 {file}")
    ignored = fleet / ".gitignore"
    if f"/{vault.KEY}" not in (ignored.read_text().split() if ignored.exists() else []):
        yield FleetError(ignored, f"git would publish {vault.KEY}", f"echo /{vault.KEY} >>{ignored}")
    key = file.read_text()
    for place, variables in read.items():
        for name, value in _values(variables):
            if isinstance(value, Sealed) and not vault.opens(key, value.text):
                yield FleetError(
                    str(place),
                    f"{name} was encrypted with another key than {file}",
                    "set it anew: ./kit fleet secret --help",
                )


def _values(node: object, name: str = "") -> Iterator[tuple[str, object]]:
    """Each value below ``node`` with the innermost name that tells what it is."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _values(value, str(key))
    elif isinstance(node, list):
        for value in node:
            yield from _values(value, name)
    else:
        yield name, node


def _clear(fleet: Path, read: dict[Path, dict[str, Any]]) -> Iterator[FleetError]:
    for place, variables in read.items():
        for name, value in _values(variables):
            # A number in quotes or without: a PIN is one.
            secret = (
                isinstance(value, str | int) and not isinstance(value, bool) and value != "" and _SECRET.search(name)
            )
            if secret and not _TEMPLATE.fullmatch(str(value)):
                owner = place.stem if place.parent.name == "host_vars" else "all"
                put = name if name.startswith("secret_") else f"secret_{name}"
                then = "" if put == name else f", then {name}: '{{{{ {put} }}}}'"
                yield FleetError(
                    str(place), f"{name} is a secret in clear", f"./kit fleet secret {owner} {put} -i {fleet}{then}"
                )
    for file in sorted(one for one in fleet.rglob("*") if one.is_file() and ".git" not in one.parts):
        if file.stat().st_size < 1 << 20 and _CLEAR.search(file.read_bytes().decode("ascii", "replace")):
            yield FleetError(file, "a private key or an AWS key in clear", "move it out of the fleet")


def _hosts(fleet: Path, read: dict[Path, dict[str, Any]]) -> Iterator[FleetError]:
    file = fleet / "hosts.yml"
    servers, kits = group(read[file], "servers"), probes(read[file])
    if len(servers) != 1:
        yield FleetError(file, f"{len(servers)} hosts in the group servers", "one, such as server")
    aws = "aws_name" in read.get(fleet / "group_vars/all.yml", {})
    for server, said in servers.items():
        if not aws and "ansible_host" not in (said or {} if isinstance(said, dict) else {}):
            yield FleetError(file, f"{server} has no ansible_host", "its address, or aws_name in group_vars/all.yml")
    if not kits:
        yield FleetError(file, "no kit in the group probes", f"./kit fleet add-kit kit-01 -i {fleet}")
    for kit in kits:
        if not KIT.fullmatch(str(kit)):
            yield FleetError(file, f"{kit!r} is no host name", "lower-case letters, digits and -, such as kit-01")
        elif kit in servers:
            yield FleetError(file, f"{kit} is a kit and a server", "a name of its own for each")
        elif not (fleet / f"host_vars/{kit}.yml").exists() and not (fleet / "host_vars" / str(kit)).is_dir():
            yield FleetError(fleet / f"host_vars/{kit}.yml", "no such file", "a line `tandem_paths: found` in it")
    for place, variables in read.items():
        name = place.stem if place.parent.name == "host_vars" else ""
        if name and name not in kits and name not in servers:
            yield FleetError(
                str(place), f"{file} has no host {name}", f"./kit fleet add-kit {name} -i {fleet}, or remove the file"
            )
        yield from _places(place, variables.get("tandem_paths"))


def _places(file: Path, paths: object) -> Iterator[FleetError]:
    for key in ("name", "usb", "interface", "port"):
        taken: list[object] = []
        for path in paths if isinstance(paths, list) else []:
            value = path.get(key) if isinstance(path, dict) else None
            if value is not None and value in taken:
                hint = "a place of its own for each modem, or tandem_paths: found"
                yield FleetError(file, f"tandem_paths: two paths have {key} {value}", hint)
            taken.append(value)


def _everyone(fleet: Path, read: dict[Path, dict[str, Any]]) -> Iterator[FleetError]:
    file = fleet / "group_vars/all.yml"
    everyone = read.get(file)
    if everyone is None:
        yield FleetError(file, "no such file", "./kit fleet new makes it; take that of a new fleet")
        return
    if not everyone.get("tandem_server_name") and "aws_name" not in everyone:
        yield FleetError(file, "tandem_server_name is missing", "the server's DNS name or address")
    keys = everyone.get("tandem_operator_keys")
    if not isinstance(keys, list) or not keys:
        yield FleetError(file, "tandem_operator_keys is missing", "the lines of ~/.ssh/id_ed25519.pub, as a list")
    else:
        for line in keys:
            if not SSH_KEY.fullmatch(str(line)):
                yield FleetError(
                    str(file),
                    f"tandem_operator_keys: {str(line)[:40]!r} is no public SSH key",
                    "the line of a .pub file",
                )
    wifi = everyone.get("tandem_wifi")
    if not re.fullmatch("[A-Z]{2}", str(wifi.get("country") if isinstance(wifi, dict) else "")):
        yield FleetError(file, "tandem_wifi: country is missing or no ISO 3166 code", "country: DE below tandem_wifi")
    if "ca.pem" in str(everyone.get("tandem_ca_file", "")):
        for name in ("ca.pem", "ca.key"):
            if not (fleet / name).is_file():
                yield FleetError(fleet / name, "no such file", "bring it back: kits trust no other CA")
        if not everyone.get("certificate_authority_passphrase"):
            hint = f"./kit fleet secret all certificate_authority_passphrase -i {fleet}"
            yield FleetError(file, "certificate_authority_passphrase is missing", hint)


def _known(fleet: Path, read: dict[Path, dict[str, Any]]) -> Iterator[FleetError]:
    """Variables that no role declares."""
    declared = set()
    for specs in ROLES.glob("*/meta/argument_specs.yml"):
        for entry in yaml.safe_load(specs.read_text())["argument_specs"].values():
            declared |= set(entry.get("options") or {})
    for place, variables in read.items():
        if {"host_vars", "group_vars"} & set(place.relative_to(fleet).parts):
            for name in variables:
                if name not in declared and not str(name).startswith(_OWN):
                    near = difflib.get_close_matches(str(name), declared, 1)
                    hint = (
                        f"{near[0]}?" if near else "ansible/roles/*/meta/argument_specs.yml; your own begin with fleet_"
                    )
                    yield FleetError(place, f"{name} is no variable of Tandem", hint)
