"""Settings from flags, files and the inventory: a flag goes before the inventory, and that before the default."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tandem_image import settings
from tandem_image.errors import ImageError
from tandem_image.inventory import Variables

_CODE = re.compile(r"invite_[A-Za-z0-9_-]{43}")  # server/spec/enrolment.md
_GATEWAY_PORT = 8443
_WIFI_KEYS = frozenset({"country", "ssid", "password"})


def gather(flags: argparse.Namespace, variables: Variables) -> settings.Settings:
    """One probe's settings. Raises ImageError for what is wrong or missing."""
    probe = settings.probe_name(flags.name)
    keys = _keys(flags, variables)
    if not keys:
        raise ImageError(
            "nobody could log in: there is no SSH key; mend: --ssh-key ~/.ssh/id_ed25519.pub (or tandem_operator_keys in the inventory)"
        )
    return settings.Settings(
        probe,
        settings.user_name(flags.user or variables.text("tandem_user") or "tandem-admin"),
        keys,
        _wifi(flags, variables),
        _bearers(flags, variables),
        _enrolment(probe, flags, variables),
        settings.size(flags.root_size or variables.text("tandem_image_root_size") or "8G"),
    )


def stock_image(flags: argparse.Namespace, variables: Variables) -> Path:
    """The stock image's file."""
    named = flags.image or variables.text("tandem_image_file")
    if named is None:
        raise ImageError(
            "which image? mend: --image 2025-…-raspios-trixie-arm64-lite.img.xz (or tandem_image_file in the inventory)"
        )
    return Path(named).expanduser()


def _keys(flags: argparse.Namespace, variables: Variables) -> tuple[str, ...]:
    keys: list[str] = []
    for given in flags.ssh_key:
        keys += settings.public_keys(_text(Path(given).expanduser(), "--ssh-key"), given)
    for number, line in enumerate(variables.sequence("tandem_operator_keys"), 1):
        keys.append(settings.public_key(line if isinstance(line, str) else "", f"tandem_operator_keys[{number}]"))
    return tuple(dict.fromkeys(keys))


def _wifi(flags: argparse.Namespace, variables: Variables) -> settings.Wifi | None:
    told = variables.mapping("tandem_wifi")
    for key, value in told.items():
        if key not in _WIFI_KEYS:
            raise ImageError(f"tandem_wifi has no key {key!r}; mend: country, ssid, password")
        if not isinstance(value, str):
            raise ImageError(
                f"{key} in tandem_wifi is no text (NO and 12345678 are read as something else); mend: put it into quotes"
            )
    password = told.get("password") if flags.wifi_ssid is None else None
    if flags.wifi_password_file is not None:
        password = _text(Path(flags.wifi_password_file), "--wifi-password-file").strip("\r\n")
    return settings.wifi(flags.wifi_country or told.get("country"), flags.wifi_ssid or told.get("ssid"), password)


def _bearers(flags: argparse.Namespace, variables: Variables) -> tuple[settings.Bearer, ...]:
    bearers = [settings.bearer(apn, None, None, "--apn") for apn in flags.apn]
    for number, path in enumerate(variables.sequence("tandem_paths"), 1):
        if not isinstance(path, dict):
            raise ImageError(
                f"tandem_paths[{number}] is no dictionary; mend: ansible/roles/tandem/README.md says its keys"
            )
        if path.get("apn") is not None:
            where = f"tandem_paths[{number}]"
            bearers.append(settings.bearer(path["apn"], path.get("user"), path.get("password"), where))
    return tuple(dict.fromkeys(bearers))


def _enrolment(probe: str, flags: argparse.Namespace, variables: Variables) -> settings.Enrolment | None:
    if flags.no_enrolment:
        return None
    if flags.invite is None:
        raise ImageError(
            f"the probe could not ask for its token; mend: on the server 'tandem-server probe invite {probe} --json', its output to "
            "--invite FILE (- for standard input); or --no-enrolment"
        )
    return settings.Enrolment(_gateway(flags, variables), _code(probe, flags.invite), _ca(flags, variables))


def _gateway(flags: argparse.Namespace, variables: Variables) -> str:
    if flags.gateway is not None:
        return settings.gateway(flags.gateway)
    server = variables.text("tandem_server_name")
    if server is None:
        raise ImageError("which server? mend: --gateway https://HOST:8443 (or tandem_server_name in the inventory)")
    port = variables.mapping("tandem_server_ports").get("gateway", _GATEWAY_PORT)
    return settings.gateway(f"https://{f'[{server}]' if ':' in server else server}:{port}")


def _ca(flags: argparse.Namespace, variables: Variables) -> bytes | None:
    named = flags.ca_file or variables.text("tandem_ca_file")
    if named is None:
        return None
    text = _text(Path(named).expanduser(), "the CA's file")
    if "PRIVATE KEY" in text:
        raise ImageError(
            f"{named} holds a private key, which belongs on no probe; mend: give the CA's certificate alone"
        )
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise ImageError(f"{named} is no certificate; mend: the CA's certificate as PEM")
    return text.encode()


def _code(probe: str, invite: str) -> str:
    text = sys.stdin.read(1 << 16) if invite == "-" else _text(Path(invite), "--invite")
    return invitation(probe, text)


def invitation(probe: str, text: str) -> str:
    """The code out of ``probe invite``'s output, with --json or without. Raises ImageError for another probe's, or none."""
    code: Any = text.strip()
    if code.startswith("{"):
        try:
            told = json.loads(code)
        except (ValueError, RecursionError):
            told = None
        if not isinstance(told, Mapping):
            raise ImageError("the invitation is no JSON object; mend: 'tandem-server probe invite NAME --json' anew")
        if told.get("probe") != probe:
            raise ImageError(
                f"the invitation is for {told.get('probe')!r}, not {probe!r}; mend: one invitation for each probe"
            )
        code = told.get("code")
    if not isinstance(code, str) or _CODE.fullmatch(code) is None:
        raise ImageError(f"the invitation has no code; mend: 'tandem-server probe invite {probe} --json' anew")
    return code


def _text(path: Path, what: str) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text"
        raise ImageError(f"{what}: {path}: {reason}") from None
