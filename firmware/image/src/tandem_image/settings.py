"""One probe's settings out of its inventory, checked: each mistake is one line that names the variable, with a hint."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tandem_image import ImageError

_T = TypeVar("_T")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_USER = re.compile(r"[a-z][a-z0-9-]{0,31}")
_SERVER = re.compile(r"[A-Za-z0-9.-]+|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
_PSK = re.compile(r"[0-9a-fA-F]{64}")
_CODE = re.compile(r"invite_[A-Za-z0-9_-]{43}")  # server/spec/enrolment.md


@dataclass(frozen=True)
class Bearer:
    """How a SIM's data is reached before the playbook has run. Without an APN NetworkManager finds it by the SIM's network."""

    apn: str | None
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Settings:
    """One probe's. ``psk``: what WPA makes of the Wi-Fi's password, 64 hex digits; ``code``: None where the playbook enrols."""

    probe: str
    user: str
    keys: tuple[str, ...]
    country: str | None = None
    ssid: str | None = None
    psk: str | None = field(default=None, repr=False)
    bearers: tuple[Bearer, ...] = ()
    gateway: str = ""
    ca_pem: str | None = None
    code: str | None = field(default=None, repr=False)


def settings(probe: str, variables: Mapping[str, Any]) -> Settings:
    """All but the invitation. Raises ImageError."""
    if _NAME.fullmatch(probe) is None:
        raise ImageError(f"{probe!r} is no host name; hint: 1 to 63 of a-z, 0-9 and -, not at its ends")
    user = _value(variables, "tandem_user", str) or "tandem-admin"
    if _USER.fullmatch(user) is None or user == "root":
        raise ImageError(f"tandem_user: {user!r}; hint: a-z first, then a-z, 0-9 and -, at most 32, not root")
    keys = tuple(_public_key(line) for line in _value(variables, "tandem_operator_keys", list) or [])
    if not keys:
        raise ImageError(
            "tandem_operator_keys is empty: nobody could log in; hint: add the line of ~/.ssh/id_ed25519.pub"
        )
    wifi = _texts("tandem_wifi", _value(variables, "tandem_wifi", dict) or {}, "country", "ssid", "password")
    ca_file = _value(variables, "tandem_ca_file", str)
    return Settings(
        probe, user, keys, *_wifi(**wifi), _bearers(variables), _gateway(variables), _ca(ca_file) if ca_file else None
    )


def invitation(probe: str, text: str) -> str:
    """The code out of what ``tandem-server probe invite NAME --json`` prints. Raises ImageError for another probe's, or none."""
    hint = f"hint: tandem-server probe invite {probe} --json"
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise ImageError(f"the invitation is no JSON object; {hint}")
    if told.get("probe") != probe:
        raise ImageError(f"the invitation is for {told.get('probe')!r}, not {probe!r}; {hint}")
    code = told.get("code")
    if not isinstance(code, str) or _CODE.fullmatch(code) is None:
        raise ImageError(f"the invitation has no code; {hint}")
    return code


def _value(variables: Mapping[str, Any], name: str, kind: type[_T]) -> _T | None:
    """A variable, None where it is not set or empty."""
    value = variables.get(name)
    if value in (None, "", [], {}):
        return None
    if not isinstance(value, kind):
        what = {"str": "text; hint: put it into quotes", "list": "list; hint: a line for each, after '- '"}
        raise ImageError(f"{name} is no {what.get(kind.__name__, 'dictionary; hint: a line for each key')}")
    return value


def _texts(where: str, values: Mapping[str, Any], *names: str) -> dict[str, str | None]:
    """These keys of a dictionary, each a text on one line or None."""
    found = {name: values.get(name) or None for name in names}
    for name, text in found.items():
        if values.get(name) is False or not isinstance(text, str | None):
            raise ImageError(f"{where}.{name} is no text (NO and 12345678 are read as something else); hint: quotes")
        if text is not None and (not text.isprintable() or len(text) > 100):
            raise ImageError(f"{where}.{name} has control characters, or more than 100; hint: one line of text")
    return found


def _public_key(line: object) -> str:
    """One line of a .pub file, as ssh-keygen takes it."""
    if not isinstance(line, str) or "PRIVATE KEY" in line or not line.isprintable():
        raise ImageError("tandem_operator_keys: not a public SSH key; hint: the one line of a file that ends in .pub")
    told = subprocess.run(["ssh-keygen", "-l", "-f", "-"], input=line.encode(), capture_output=True, check=False)
    if told.returncode != 0:
        raise ImageError(f"tandem_operator_keys: {line[:40]}… is cut or changed; hint: copy the .pub file's line whole")
    return line.strip()


def _wifi(country: str | None, ssid: str | None, password: str | None) -> tuple[str | None, str | None, str | None]:
    """Country, network and key; the card never has the password itself, but what WPA2 makes of it (IEEE 802.11-2020, J.4)."""
    if country is None:
        if ssid is not None or password is not None:
            raise ImageError("tandem_wifi.country is missing, without which the radio stays off; hint: country: DE")
        return None, None, None
    if re.fullmatch("[A-Z]{2}", country) is None:
        raise ImageError(f"tandem_wifi.country: {country!r}; hint: two capitals as in ISO 3166, such as DE")
    if ssid is None:
        if password is not None:
            raise ImageError("tandem_wifi.ssid is missing; hint: the network's name as phones show it")
        return country, None, None
    if len(ssid.encode()) > 32:
        raise ImageError("tandem_wifi.ssid has more than 32 bytes; hint: the network's name as phones show it")
    if password is None or _PSK.fullmatch(password):
        return country, ssid, password.lower() if password else None
    if not 8 <= len(password) <= 63 or not password.isascii():
        raise ImageError("tandem_wifi.password has not 8 to 63 characters of ASCII; hint: look it up again")
    return country, ssid, hashlib.pbkdf2_hmac("sha1", password.encode(), ssid.encode(), 4096, 32).hex()


def _bearers(variables: Mapping[str, Any]) -> tuple[Bearer, ...]:
    """One for each access point; where the probe finds its modems itself, one for all of them."""
    if variables.get("tandem_paths") == "found":
        return (Bearer(None),)
    bearers = []
    paths: Sequence[Any] = _value(variables, "tandem_paths", list) or []
    for number, path in enumerate(paths):
        where = f"tandem_paths[{number}]"
        if not isinstance(path, dict):
            raise ImageError(
                f"{where} is no dictionary; hint: ansible/roles/tandem/meta/argument_specs.yml says its keys"
            )
        texts = _texts(where, path, "apn", "user", "password")
        if texts["apn"] is not None:
            bearers.append(Bearer(**texts))
    return tuple(dict.fromkeys(bearers))


def _gateway(variables: Mapping[str, Any]) -> str:
    server = _value(variables, "tandem_server_name", str)
    if server is None or _SERVER.fullmatch(server) is None:
        raise ImageError(f"tandem_server_name: {server or 'missing'}; hint: the server's DNS name or address")
    port = (_value(variables, "tandem_server_ports", dict) or {}).get("gateway", 8443)
    if not isinstance(port, int) or not 0 < port < 65536:
        raise ImageError(f"tandem_server_ports.gateway: {port}; hint: 1 to 65535")
    return f"https://{f'[{server}]' if ':' in server else server}:{port}"


def _ca(named: str) -> str:
    try:
        text = Path(named).expanduser().read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ImageError(f"tandem_ca_file: {named}: {error}; hint: ./kit fleet check DIR") from None
    if "PRIVATE KEY" in text or "-----BEGIN CERTIFICATE-----" not in text:
        raise ImageError(f"tandem_ca_file: {named} is not a certificate alone; hint: the CA's certificate as PEM")
    return text
