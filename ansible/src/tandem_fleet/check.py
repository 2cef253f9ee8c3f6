"""What is missing or wrong in a fleet, found without connecting to a machine. Shapes of variables are the plays' to check."""

from __future__ import annotations

import difflib
import re
import zoneinfo
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tandem_fleet import files
from tandem_fleet.files import FleetError, Sealed, group, load
from tandem_fleet.new import KIT, NO_ZONE, SSH_KEY

ROLES = Path(__file__).resolve().parents[2] / "roles"
_SECRET = re.compile(
    "(?:^|_)(?:pin|puk|pass(?:word|phrase|wd)|psk|secret|token|code|(?:private|secret|api)_key)$|^secret_", re.I
)
"""Names whose values are secrets."""
_TEMPLATE = re.compile(r"\s*\{\{[^{}]*\}\}\s*", re.S)
"""A value that is only a template: what it names is checked where it stands."""
_CLEAR = re.compile(rb"-----BEGIN (?:(?!ENCRYPTED)[A-Z]+ )?PRIVATE KEY-----|\bAKIA[0-9A-Z]{16}\b")
_OWN = ("ansible_", "fleet_", "secret_", "tandem_image_")
"""Beginnings of variables that no role declares: Ansible's, the fleet's own, its secrets, those of `./kit image`."""

Read = dict[Path, dict[str, Any]]
"""The variables in each file."""


def faults(fleet: Path) -> list[FleetError]:
    """All that is wrong."""
    if not (fleet / "hosts.yml").is_file():
        return [FleetError(fleet, "no fleet is here", "./kit fleet new DIR makes one; -i DIR names it")]
    found: list[FleetError] = []
    read: Read = {}
    for file in sorted(fleet.rglob("*.yml")):
        try:
            read[file] = load(file)
        except FleetError as error:
            found.append(error)
    # Of files that cannot be read the rest would be misread.
    return found or [one for look in (_key, _clear, _hosts, _everyone, _zones, _known) for one in look(fleet, read)]


def _key(fleet: Path, read: Read) -> Iterator[FleetError]:
    file, ignored = fleet / files.KEY, fleet / ".gitignore"
    if not file.is_file():
        hint = "copy it from where the fleet was made"
        yield FleetError(file, "no such file, and nothing else opens the secrets", hint)
        return
    if file.stat().st_mode & 0o077:
        yield FleetError(file, "others can read it", f"chmod 600 {file}")
    if f"/{files.KEY}" not in (ignored.read_text().split() if ignored.exists() else []):
        yield FleetError(ignored, f"git would publish {files.KEY}", f"echo /{files.KEY} >>{ignored}")
    for place, variables in read.items():
        for name, value in _values(variables):
            if isinstance(value, Sealed) and not files.opens(file.read_text(), value.text):
                what = f"{name} was encrypted with another key than {file}"
                yield FleetError(place, what, "./kit fleet secret --help")


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


def _clear(fleet: Path, read: Read) -> Iterator[FleetError]:
    for place, variables in read.items():
        owner = place.stem if place.parent.name == "host_vars" else "all"
        for name, value in _values(variables):
            # A PIN may be a number.
            text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
            if text and _SECRET.search(name) and not _TEMPLATE.fullmatch(text):
                put = name if name.startswith("secret_") else f"secret_{name}"
                then = "" if put == name else f", then {name}: '{{{{ {put} }}}}'"
                hint = f"./kit fleet secret {owner} {put} -i {fleet}{then}"
                yield FleetError(place, f"{name} is a secret in clear", hint)
    for file in sorted(fleet.rglob("*")):
        if (
            ".git" not in file.parts
            and file.is_file()
            and file.stat().st_size < 1 << 20
            and _CLEAR.search(file.read_bytes())
        ):
            yield FleetError(file, "a private key or an AWS key in clear", "move it out of the fleet")


def _hosts(fleet: Path, read: Read) -> Iterator[FleetError]:
    file, everyone = fleet / "hosts.yml", read.get(fleet / "group_vars/all.yml", {})
    servers, kits = group(read[file], "servers"), group(read[file], "probes")
    if len(servers) != 1:
        yield FleetError(file, f"{len(servers)} hosts in the group servers", "one, such as server")
    for server, said in servers.items():
        if "aws_name" not in everyone and "ansible_host" not in (said if isinstance(said, dict) else {}):
            yield FleetError(file, f"{server} has no ansible_host", "its address, or aws_name in group_vars/all.yml")
    if not kits:
        yield FleetError(file, "no kit in the group probes", f"./kit fleet add-kit kit-01 -i {fleet}")
    for kit in kits:
        own = fleet / f"host_vars/{kit}.yml"
        if not KIT.fullmatch(str(kit)):
            yield FleetError(file, f"{kit!r} is no host name", "lower-case letters, digits and -, such as kit-01")
        elif kit in servers:
            yield FleetError(file, f"{kit} is a kit and a server", "a name of its own for each")
        elif own not in read and not own.with_suffix("").is_dir():
            yield FleetError(own, "no such file", "a line `tandem_paths: found` in it")
    for place, variables in read.items():
        if place.parent.name == "host_vars" and place.stem not in kits | servers:
            hint = f"./kit fleet add-kit {place.stem} -i {fleet}, or remove the file"
            yield FleetError(place, f"{file} has no host {place.stem}", hint)
        paths = variables.get("tandem_paths")
        for key in ("usb", "interface", "port"):
            places = [path.get(key) for path in paths if isinstance(path, dict)] if isinstance(paths, list) else []
            for taken in sorted({str(one) for one in places if one and places.count(one) > 1}):
                hint = "a place of its own for each modem, or tandem_paths: found"
                yield FleetError(place, f"tandem_paths: two paths have {key} {taken}", hint)


def _everyone(fleet: Path, read: Read) -> Iterator[FleetError]:
    file = fleet / "group_vars/all.yml"
    said = read.get(file, {})
    keys, wifi, sealed = said.get("tandem_operator_keys"), said.get("tandem_wifi"), "certificate_authority_passphrase"
    if not said.get("tandem_server_name") and "aws_name" not in said:
        yield FleetError(file, "tandem_server_name is missing", "the server's DNS name or address")
    if not isinstance(keys, list) or not keys or not all(SSH_KEY.fullmatch(str(line)) for line in keys):
        hint = "- and the line of ~/.ssh/id_ed25519.pub"
        yield FleetError(file, "tandem_operator_keys: no list of public SSH keys", hint)
    if not re.fullmatch("[A-Z]{2}", str(wifi.get("country") if isinstance(wifi, dict) else "")):
        hint = "country: DE below tandem_wifi"
        yield FleetError(file, "tandem_wifi: country is missing or no ISO 3166 code", hint)
    if "ca.pem" in str(said.get("tandem_ca_file")):
        if not said.get(sealed):
            yield FleetError(file, f"{sealed} is missing", f"./kit fleet secret all {sealed} -i {fleet}")
        for own in (fleet / "ca.pem", fleet / "ca.key"):
            if not own.is_file():
                yield FleetError(own, "no such file", "bring it back: kits trust no other CA")


def _zones(_: Path, read: Read) -> Iterator[FleetError]:
    known = zoneinfo.available_timezones()
    for place, variables in read.items():
        name = variables.get("base_time_zone")
        if known and name is not None and not _TEMPLATE.fullmatch(str(name)) and name not in known:
            yield FleetError(place, f"base_time_zone: {name} is no time zone", NO_ZONE)


def _known(fleet: Path, read: Read) -> Iterator[FleetError]:
    """Variables that no role declares."""
    declared = set()
    for specs in ROLES.glob("*/meta/argument_specs.yml"):
        for entry in yaml.safe_load(specs.read_text())["argument_specs"].values():
            declared |= set(entry.get("options") or {})
    for place, variables in read.items():
        for name in variables if {"host_vars", "group_vars"} & set(place.relative_to(fleet).parts) else {}:
            if name not in declared and not str(name).startswith(_OWN):
                near = difflib.get_close_matches(str(name), declared, 1)
                hint = f"{near[0]}?" if near else "ansible/roles/*/meta/argument_specs.yml; your own begin with fleet_"
                yield FleetError(place, f"{name} is no variable of Tandem", hint)
