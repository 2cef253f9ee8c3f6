"""What one probe's image is made from, checked: every mistake is one line with its mend."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tandem_image.errors import ImageError

GIB = 1 << 30
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
# What userconf-service of bookworm takes for a user's name (userconf-pi, validate_user).
_USER = re.compile(r"[a-z][a-z0-9-]{0,31}")
_COUNTRY = re.compile(r"[A-Z]{2}")
_KEY_KINDS = re.compile(r"(?:sk-)?(?:ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521))(?:@openssh\.com)?")
_PSK = re.compile(r"[0-9a-fA-F]{64}")


@dataclass(frozen=True)
class Wifi:
    """Country alone (the radio may be used), or a network as well. ``psk``: what WPA makes of the password, 64 hex digits."""

    country: str
    ssid: str | None = None
    psk: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Bearer:
    """How a SIM's data is reached before the playbook has run."""

    apn: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Enrolment:
    """Whom the probe asks for its token, and by what code."""

    gateway: str
    code: str = field(repr=False)
    ca_pem: bytes | None


@dataclass(frozen=True)
class Settings:
    """One probe's. ``root_bytes``: what the root partition gets; the rest of the card is the spool's."""

    probe: str
    user: str
    keys: tuple[str, ...]
    wifi: Wifi | None = None
    bearers: tuple[Bearer, ...] = ()
    enrolment: Enrolment | None = None
    root_bytes: int = 8 * GIB


def probe_name(name: str) -> str:
    """A probe's name, which is its host name too (RFC 1123)."""
    if _NAME.fullmatch(name) is None:
        raise ImageError(f"{name!r} is no host name; mend: 1 to 63 of a-z, 0-9 and -, not at its ends")
    return name


def user_name(name: str) -> str:
    """The people's account."""
    if _USER.fullmatch(name) is None or name == "root":
        raise ImageError(f"{name!r} is no user name here; mend: a-z first, then a-z, 0-9 and -, at most 32, not root")
    return name


def public_key(line: str, where: str) -> str:
    """One line of a .pub file, as OpenSSH writes it, without options."""
    if "PRIVATE KEY" in line:
        raise ImageError(f"{where} is a private key; mend: give the file beside it that ends in .pub")
    fields = line.split(None, 2)
    if len(fields) < 2 or _KEY_KINDS.fullmatch(fields[0]) is None:
        raise ImageError(f"{where} is no public SSH key; mend: a line such as 'ssh-ed25519 AAAA… name'")
    if _fields(fields[1])[:1] != [fields[0].encode()]:
        raise ImageError(f"{where} is a public SSH key that was cut or changed; mend: copy the .pub file's line whole")
    if not line.isprintable():
        raise ImageError(f"{where} has control characters; mend: copy the .pub file's line")
    return " ".join(fields)


def _fields(encoded: str) -> list[bytes]:
    """The fields of a key's base64, each with its length before it (RFC 4253, 6.6); nothing where they do not fill it."""
    try:
        blob = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return []
    fields = []
    while blob:
        length = int.from_bytes(blob[:4], "big")
        if len(blob) < 4 + length:
            return []
        fields.append(blob[4 : 4 + length])
        blob = blob[4 + length :]
    return fields if len(fields) > 1 else []


def public_keys(text: str, where: str) -> list[str]:
    """Every key of a .pub or authorized_keys file."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    return [public_key(line, f"{where}:{number}") for number, line in lines if line and not line.startswith("#")]


def wifi(country: str | None, ssid: str | None, password: str | None) -> Wifi | None:
    """Checked, and the password turned into what WPA2 makes of it (IEEE 802.11-2020, J.4): the card never has the password itself."""
    if country is None:
        if ssid is not None or password is not None:
            raise ImageError(
                "Wi-Fi without a country: its radio stays off; mend: --wifi-country DE (or country in tandem_wifi)"
            )
        return None
    if _COUNTRY.fullmatch(country) is None:
        raise ImageError(f"Wi-Fi country {country!r}; mend: two capitals as in ISO 3166, such as DE")
    if ssid is None:
        if password is not None:
            raise ImageError("a Wi-Fi password without a network; mend: --wifi-ssid (or ssid in tandem_wifi)")
        return Wifi(country)
    if not 1 <= len(ssid.encode()) <= 32 or not ssid.isprintable():
        raise ImageError(
            "the Wi-Fi network's name has 1 to 32 bytes and no control characters; mend: its name as phones show it"
        )
    if password is None:
        return Wifi(country, ssid)
    if _PSK.fullmatch(password):
        return Wifi(country, ssid, password.lower())
    if not 8 <= len(password) <= 63 or not all(" " <= character <= "~" for character in password):
        raise ImageError(
            "a Wi-Fi password has 8 to 63 characters of ASCII (or is the 64 hex digits made of it); mend: look it up again"
        )
    return Wifi(country, ssid, hashlib.pbkdf2_hmac("sha1", password.encode(), ssid.encode(), 4096, 32).hex())


def bearer(apn: object, user: object, password: object, where: str) -> Bearer:
    """An access point's name and login, as the inventory has them."""
    texts = (apn, user, password)
    if not isinstance(apn, str) or any(text is not None and not isinstance(text, str) for text in texts):
        raise ImageError(f"{where}: apn, user and password are texts; mend: put them into quotes")
    if any(isinstance(text, str) and (not text.isprintable() or not 1 <= len(text) <= 100) for text in texts):
        raise ImageError(f"{where}: apn, user and password have 1 to 100 characters and no control characters")
    return Bearer(apn, user if isinstance(user, str) else None, password if isinstance(password, str) else None)


def gateway(url: str) -> str:
    """The server's address for enrolment."""
    try:
        parts = urlsplit(url)
        good = (
            parts.scheme == "https"
            and bool(parts.hostname)
            and parts.path in ("", "/")
            and not (parts.query or parts.fragment or parts.username)
        )
        _ = parts.port
    except ValueError:
        good = False
    if not good or not url.isprintable() or " " in url:
        raise ImageError(f"gateway {url!r}; mend: https://HOST:8443")
    return url.rstrip("/")


def size(text: str) -> int:
    """``8G``, ``7500M`` or bytes; at least 3 GiB, which the system and its upgrades need."""
    match = re.fullmatch(r"([0-9]{1,15})([MG]?)", text)
    if match is None:
        raise ImageError(f"size {text!r}; mend: 8G, 7500M or a number of bytes")
    value = int(match[1]) * {"": 1, "M": 1 << 20, "G": GIB}[match[2]]
    if not 3 * GIB <= value <= 1024 * GIB:
        raise ImageError(f"size {text!r}; mend: 3G to 1024G")
    return value
