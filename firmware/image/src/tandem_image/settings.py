"""One probe's settings out of its inventory, checked: each mistake is one line that names the variable, with a hint."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandem_image import ImageError

_HOST = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_LINE = r"[^\x00-\x1f\x7f]{1,100}"
_IN_QUOTES = "text of one line, in quotes (NO and 12345678 are read as something else)"


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
    if re.fullmatch(_HOST, probe) is None:
        raise ImageError(f"{probe!r} is no host name; hint: 1 to 63 of a-z, 0-9 and -, not at its ends")
    people = r"(?!root$)[a-z][a-z0-9-]{0,31}"
    user = (
        _text(variables, "tandem_user", people, "a-z first, then a-z, 0-9 and -, at most 32, not root")
        or "tandem-admin"
    )
    keys = tuple(_public_key(line) for line in _of(list, variables, "tandem_operator_keys"))
    if not keys:
        raise ImageError(
            "tandem_operator_keys is empty: nobody could log in; hint: add the line of ~/.ssh/id_ed25519.pub"
        )
    ca_file = _text(variables, "tandem_ca_file")
    return Settings(
        probe,
        user,
        keys,
        *_wifi(variables),
        _bearers(variables),
        _gateway(variables),
        _ca(ca_file) if ca_file else None,
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
    if (
        not isinstance(code, str) or re.fullmatch(r"invite_[A-Za-z0-9_-]{43}", code) is None
    ):  # docs/reference/probe-api.md
        raise ImageError(f"the invitation has no code; {hint}")
    return code


def _text(
    values: Mapping[str, Any], name: str, pattern: str = _LINE, hint: str = _IN_QUOTES, within: str = ""
) -> str | None:
    """A text, None where it is not set or empty. What is wrong is not repeated: it may be a secret."""
    value = values.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or re.fullmatch(pattern, value) is None:
        raise ImageError(f"{within}{name} cannot be used; hint: {hint}")
    return value


def _of(kind: type, values: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401 - what the inventory has
    """A list or dictionary, empty where it is not set."""
    value = values.get(name) or kind()
    if not isinstance(value, kind):
        raise ImageError(
            f"{name} is no {kind.__name__}; hint: ansible/roles/tandem/meta/argument_specs.yml says its shape"
        )
    return value


def _public_key(line: object) -> str:
    """One line of a .pub file, as ssh-keygen takes it."""
    if not isinstance(line, str) or "PRIVATE KEY" in line or not line.isprintable():
        raise ImageError("tandem_operator_keys: not a public SSH key; hint: the one line of a file that ends in .pub")
    told = subprocess.run(["ssh-keygen", "-l", "-f", "-"], input=line.encode(), capture_output=True, check=False)
    if told.returncode != 0:
        raise ImageError(f"tandem_operator_keys: {line[:40]}… is cut or changed; hint: copy the .pub file's line whole")
    return line.strip()


def _wifi(variables: Mapping[str, Any]) -> tuple[str | None, str | None, str | None]:
    """Country, network and key; the card never has the password itself, but what WPA2 makes of it (IEEE 802.11-2020, J.4)."""
    told = _of(dict, variables, "tandem_wifi")
    if told.get("country") is None and told:
        raise ImageError("tandem_wifi.country is missing, without which the radio stays off; hint: country: DE")
    country = _text(told, "country", "[A-Z]{2}", "two capitals as in ISO 3166, such as DE, in quotes", "tandem_wifi.")
    ssid = _text(told, "ssid", within="tandem_wifi.")
    password = _text(told, "password", "[ -~]{8,63}|[0-9a-fA-F]{64}", "8 to 63 of ASCII, in quotes", "tandem_wifi.")
    if ssid is not None and len(ssid.encode()) > 32:
        raise ImageError("tandem_wifi.ssid has more than 32 bytes; hint: the network's name as phones show it")
    if ssid is None or password is None or len(password) == 64:
        return country, ssid, password
    return country, ssid, hashlib.pbkdf2_hmac("sha1", password.encode(), ssid.encode(), 4096, 32).hex()


def _bearers(variables: Mapping[str, Any]) -> tuple[Bearer, ...]:
    """One for each access point; where the probe finds its modems itself, one for all of them."""
    if variables.get("tandem_paths") == "found":
        return (Bearer(None),)
    bearers = []
    for number, path in enumerate(_of(list, variables, "tandem_paths")):
        within = f"tandem_paths[{number}]"
        values = path if isinstance(path, dict) else {"apn": path}
        apn, user, password = (_text(values, name, within=f"{within}.") for name in ("apn", "user", "password"))
        if apn is not None:
            bearers.append(Bearer(apn, user, password))
    return tuple(dict.fromkeys(bearers))


def _gateway(variables: Mapping[str, Any]) -> str:
    server = _text(
        variables, "tandem_server_name", r"[A-Za-z0-9.-]+|[0-9A-Fa-f:.]+", "the server's DNS name or address"
    )
    if server is None:
        raise ImageError(
            "tandem_server_name is missing; hint: ./kit provision aws -i DIR, or the server's DNS name or address"
        )
    port = _of(dict, variables, "tandem_server_ports").get("gateway", 8443)
    return f"https://{f'[{server}]' if ':' in server else server}:{port}"


def _ca(named: str) -> str:
    try:
        text = Path(named).expanduser().read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text"
        raise ImageError(f"tandem_ca_file: {named}: {reason}; hint: ./kit fleet check DIR") from None
    if "PRIVATE KEY" in text or "-----BEGIN CERTIFICATE-----" not in text:
        raise ImageError(f"tandem_ca_file: {named} is not a certificate alone; hint: the CA's certificate as PEM")
    return text
