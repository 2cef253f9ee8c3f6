"""Which autonomous system an address belongs to, by the user's table of ``prefix,number`` lines. Pure; nothing is looked up outside."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from dataclasses import dataclass

_SPLIT = re.compile(r"[,\s|]+")
_MOST = 4_294_967_295


class TableError(ValueError):
    """A line that cannot be read; names it and the mend."""


@dataclass(frozen=True, slots=True)
class AsTable:
    """``by_length``: per version and prefix length, the network's number → AS; the longest match counts."""

    by_length: dict[tuple[int, int], dict[int, int]]
    sha256: str
    prefixes: int

    def of(self, address: str) -> int | None:
        """The AS of ``address``; None when no prefix holds it."""
        ip = ipaddress.ip_address(address)
        bits, value = ip.max_prefixlen, int(ip)
        for version, length in sorted(self.by_length, key=lambda k: -k[1]):
            found = self.by_length[version, length].get(value >> (bits - length)) if version == ip.version else None
            if found is not None:
                return found
        return None


def read(raw: bytes) -> AsTable:
    """From lines ``192.0.2.0/24,64500`` (comma, blank or tab; ``AS`` before the number may be; ``#`` begins a comment)."""
    by_length: dict[tuple[int, int], dict[int, int]] = {}
    prefixes = 0
    for number, line in enumerate(raw.decode("utf-8", "replace").splitlines(), start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        parts = _SPLIT.split(text)
        try:
            network = ipaddress.ip_network(parts[0], strict=False)
            system = int(parts[1].upper().removeprefix("AS"))
        except (ValueError, IndexError) as error:
            raise TableError(f"line {number}: {text[:60]!r} is no prefix,AS; hint: as in 192.0.2.0/24,64500") from error
        if not 0 < system <= _MOST:
            raise TableError(f"line {number}: AS {system}; hint: 1 to {_MOST}")
        value = int(network.network_address) >> (network.max_prefixlen - network.prefixlen)
        by_length.setdefault((network.version, network.prefixlen), {})[value] = system
        prefixes += 1
    return AsTable(by_length, hashlib.sha256(raw).hexdigest(), prefixes)
