"""What is put in the place of what may not be told, in any text or JSON value, the same everywhere in a package. Pure."""

from __future__ import annotations

import functools
import hashlib
import hmac
import ipaddress
from collections.abc import Mapping
from typing import Any

from tandem_server.publish.identities import SERVER, Address, Names, addresses, telling

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
