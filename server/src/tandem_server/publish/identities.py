"""Identities in text: of subscribers, devices, people and hosts. Pure. When in doubt it is one.

Numbers: IMEI 3GPP TS 23.003 6.2 (15 digits, the last by Luhn), IMSI 2.2 (14 or 15), ICCID ITU-T E.118 (89…, 19 or 20 digits), telephone
numbers ITU-T E.164 (to 15 digits behind a plus).
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import ipaddress
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

SERVER = "server.invalid"
"""What stands for the server's name (RFC 2606: no host ever has it)."""

_DIGITS = re.compile(r"(?<![0-9A-Za-z.+-])[0-9](?:[ -]?[0-9]){13,19}(?![0-9A-Za-z])")
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_TELEPHONE = re.compile(r"(?<![\w+])\+[1-9](?:[ ()/-]{0,2}[0-9]){7,14}(?![0-9])")
_MAC = re.compile(r"(?<![0-9A-Fa-f:-])[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:-])")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_PRIVATE_HOST = re.compile(
    r"(?<![\w.-])(?:[\w-]+\.)+(?:local|lan|home|internal|localdomain|home\.arpa|box)(?![\w.-])", re.I
)
_WORDS = r"imei(?:sv)?|imsi|iccid|msisdn|e?ssid|bssid|mac(?:_?addr(?:ess)?)?|host_?name|phone(?:_?number)?|serial(?:_?number)?|e_?mail"
_KEY = re.compile(rf"(?:.*_)?(?:{_WORDS})", re.IGNORECASE)
_KEYED = re.compile(rf"(?<![A-Za-z0-9])({_WORDS})[\"']?\s*[:=]\s*[\"']?\w", re.IGNORECASE)
_V4 = r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}"
# An address of IPv6 may end in one of IPv4, which is no address of its own then.
_ADDRESS = re.compile(
    rf"(?<![\w:.])(?:[0-9A-Fa-f]{{0,4}}:){{2,7}}(?:{_V4}|[0-9A-Fa-f]{{1,4}})?(?![\w:])|(?<![\w.]){_V4}(?![\w]|\.[0-9])"
)
_VERSION = re.compile(r"version|revision|firmware|bootloader", re.IGNORECASE)
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|(?<![\w".])(-?[0-9]+)(?![0-9.eE])')
_COUNTS = ("_ns", "bytes", "seed")
"""Ends of the names of numbers that may be long."""

REWRITTEN = frozenset({"public address", "server's name", "probe's own name"})
"""What publishing takes out by itself: no fault of what is published, only of the package."""


@dataclass(frozen=True, slots=True)
class Finding:
    """``column``: from 1, of characters. What was found is not repeated."""

    kind: str
    column: int


@dataclass(frozen=True, slots=True)
class Names:
    """``hosts``: the server's and this machine's; ``probes``: as they were called."""

    hosts: Collection[str] = ()
    probes: Collection[str] = ()

    def pattern(self, names: Collection[str]) -> re.Pattern[str] | None:
        """The names as whole words, the longest first."""
        listed = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        return re.compile(rf"(?<![\w.-])(?:{listed})(?![\w-]|\.\w)", re.IGNORECASE) if listed else None


class Check:
    """Finds identities; ``names`` are looked for too."""

    def __init__(self, names: Names) -> None:
        self._hosts, self._probes = names.pattern(names.hosts), names.pattern(names.probes)

    def text(self, text: str, key: str = "") -> Iterator[Finding]:
        """In a value, by the ``key`` it has."""
        if not text or _UUID.fullmatch(text):
            return
        if _KEY.fullmatch(key):
            yield Finding(_kind(key), 1)
        for found in _KEYED.finditer(text):
            yield Finding(_kind(found[1]), found.start() + 1)
        for found in _DIGITS.finditer(text):
            if kind := _number(found[0]):
                yield Finding(kind, found.start() + 1)
        for kind, pattern in (
            ("telephone number", _TELEPHONE),
            ("e-mail address", _MAIL),
            ("host name", _PRIVATE_HOST),
        ):
            for found in pattern.finditer(text):
                yield Finding(kind, found.start() + 1)
        for found in _MAC.finditer(text):
            if set(found[0]) - set("0:-"):
                yield Finding("MAC address", found.start() + 1)
        for at, _, address in addresses(text, key):
            if telling(address):
                yield Finding("public address", at + 1)
        for kind, names in (("server's name", self._hosts), ("probe's own name", self._probes)):
            for found in names.finditer(text) if names is not None else ():
                yield Finding(kind, found.start() + 1)

    def json_line(self, line: str, key: str = "") -> Iterator[Finding | str]:
        """In a line of JSON text; ``key``: the last one of the line before. The last thing is this line's last key."""
        for token in _TOKEN.finditer(line):
            told, colon, number = token.groups()
            if number is not None:
                if _KEY.fullmatch(key):
                    yield Finding(_kind(key), token.start() + 1)
                elif 14 <= len(number) <= 20 and not key.endswith(_COUNTS):
                    yield Finding("number as long as an IMEI or IMSI", token.start() + 1)
            elif colon:
                yield from _moved(self.text(told[1:-1]), token.start() + 1)
                key = told[1:-1]
            else:
                yield from _moved(self.text(told[1:-1], key), token.start() + 1)
        yield key


def _moved(found: Iterator[Finding], by: int) -> Iterator[Finding]:
    return (Finding(one.kind, one.column + by) for one in found)


_KINDS = {
    "ssid": "name of a Wi-Fi",
    "mac": "MAC address",
    "host": "host name",
    "phone": "telephone number",
    "msisdn": "telephone number",
    "serial": "serial number",
    "mail": "e-mail address",
}


def _kind(word: str) -> str:
    """Of a key that says what its value is."""
    plain = word.lower()
    return next((kind for part, kind in _KINDS.items() if part in plain), plain.rpartition("_")[2].upper())


def _number(text: str) -> str | None:
    digits = re.sub("[ -]", "", text)
    apart = digits != text
    if len(digits) in (19, 20) and digits.startswith("89") and (not apart or _luhn(digits)):
        return "ICCID"
    if not apart and 14 <= len(digits) <= 16:
        return "IMEI" if len(digits) == 15 and _luhn(digits) else "IMEI or IMSI"
    # With blanks a row of numbers looks alike: only what has an IMEI's check digit and its dashes.
    return "IMEI" if apart and " " not in text and len(digits) == 15 and _luhn(digits) else None


def _luhn(digits: str) -> bool:
    """ISO/IEC 7812-1 annex B."""
    doubled = (int(c) * (2 if i % 2 else 1) for i, c in enumerate(reversed(digits)))
    return sum(n - 9 if n > 9 else n for n in doubled) % 10 == 0


Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def addresses(text: str, key: str = "") -> Iterator[tuple[int, str, Address]]:
    """Addresses in a text, where they begin and how they are written; versions of programs look alike, and stand under keys of
    their own."""
    if _VERSION.search(key):
        return
    for found in _ADDRESS.finditer(text):
        try:
            yield found.start(), found[0], ipaddress.ip_address(found[0])
        except ValueError:
            continue


_DOCUMENTED = ipaddress.ip_network("2001:db8::/32")


def telling(address: Address) -> bool:
    """Whether it may not be told: a public one; of IPv6 any but the loopback and what was put in its place: the last half may be
    a MAC."""
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global
    return not (address in _DOCUMENTED or address.is_loopback or address.is_unspecified)


# --- What is put in the place of what may not be told, in any text or JSON value, the same everywhere in a package --

NO_PLACE = frozenset({"tac", "lac", "pci", "nr_pci", "detail", "city"})
"""Without places these are absent: areas, codes that with an operator's carriers find a cell in public lists, a city's name."""
CELLS = frozenset({"eci", "enb_id", "ci", "from_eci", "to_eci"})
"""Without places these have another number, the same for the same cell; the sector stays."""
_MOST_LTE = 2**28


class Rewriter:
    """``probes``: new names by old; ``hosts``: names of the server; ``places`` False: no cell can be found on a map."""

    def __init__(self, key: bytes, probes: Mapping[str, str], hosts: frozenset[str], *, places: bool) -> None:
        self._key, self._new, self.places = key, {name.lower(): new for name, new in probes.items()}, places
        # A name that is a plain word stands for other things too: only what is called a probe's is changed then.
        names = Names(hosts, [old for old, new in probes.items() if old != new and not old.isalpha()])
        self._hosts, self._probes = names.pattern(names.hosts), names.pattern(names.probes)
        self.text = functools.lru_cache(65_536)(self._text)

    def probe(self, name: str) -> str:
        """Its name in the package."""
        return self._new.get(name.lower(), name)

    def json(self, value: Any, key: str = "") -> Any:  # noqa: ANN401  any JSON value, the same kind back
        """``value`` of the member ``key``, rewritten; keys that are names too."""
        if isinstance(value, dict):
            return {self.text(name): self.json(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [self.json(one, key) for one in value]
        if isinstance(value, str):
            return None if self.absent(key) else self.text(value, key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return value
        if self.absent(key):
            return None
        return self.cell(key, int(value)) if key in CELLS else value

    def absent(self, key: str) -> bool:
        """Whether a field or member is left out."""
        return not self.places and (key in NO_PLACE or key.startswith(("latitude", "longitude", "altitude")))

    def cell(self, key: str, value: int) -> int:
        """A cell's number, of the same size."""
        if self.places:
            return value
        if key == "enb_id":
            return self._drawn("enb", value) % 2**20
        if key == "ci" or value >= _MOST_LTE:
            return self._drawn("cell", value) % (2**36 if value >= _MOST_LTE else 2**28)
        return (self._drawn("enb", value >> 8) % 2**20) << 8 | value & 255

    def address(self, address: Address) -> Address:
        """What stands for it: of 240.0.0.0/4 (reserved, RFC 1112) and 2001:db8::/32 (RFC 3849), which nobody has."""
        if not telling(address):
            return address
        drawn = int.from_bytes(hmac.digest(self._key, b"address " + address.packed, hashlib.sha256)[:12], "big")
        if isinstance(address, ipaddress.IPv4Address):
            return ipaddress.IPv4Address(0xF0000000 | drawn % 0x0FFFFFFF)
        return ipaddress.IPv6Address(0x20010DB8 << 96 | drawn)

    def _text(self, text: str, key: str = "") -> str:
        if key == "probe":
            return self.probe(text)
        for at, written, address in sorted(addresses(text, key), key=lambda one: -one[0]):
            text = f"{text[:at]}{self.address(address)}{text[at + len(written) :]}"
        if self._hosts is not None:
            text = self._hosts.sub(SERVER, text)
        if self._probes is not None:
            text = self._probes.sub(lambda found: self.probe(found[0]), text)
        return text

    def _drawn(self, kind: str, value: int) -> int:
        return int.from_bytes(hmac.digest(self._key, f"{kind} {value}".encode(), hashlib.sha256)[:8], "big")
