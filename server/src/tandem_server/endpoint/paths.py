"""Which of the probe's paths a subflow runs over, judged by the address it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PathPeer:
    """One path as the session has it: the operator, and the public address (None when the probe could not find it out)."""

    operator: str | None
    address: str | None


def name_subflows(
    paths: Mapping[str, PathPeer], primary: str | None, remotes: Sequence[tuple[str, str | None]]
) -> dict[str, str | None]:
    """Path name, or None, for each subflow; ``remotes``: (subflow id, remote address) in the order of establishment.

    1. An address that belongs to exactly one path names it. 2. The first subflow is the primary path's. 3. When one path
    alone is left, and one unnamed address, they belong together: carriers change the public address between connections.
    """
    owners: dict[str, list[str]] = {}
    for name, peer in paths.items():
        if peer.address is not None:
            owners.setdefault(peer.address, []).append(name)
    named: dict[str, str | None] = {}
    for subflow, address in remotes:
        known = owners.get(address or "", [])
        named[subflow] = known[0] if len(known) == 1 else None
    if remotes and named[remotes[0][0]] is None:
        named[remotes[0][0]] = primary
    left = [name for name in paths if name not in named.values()]
    unnamed = [(subflow, address) for subflow, address in remotes if named[subflow] is None]
    if len(left) == 1 and unnamed and len({address for _, address in unnamed}) == 1:
        for subflow, _ in unnamed:
            named[subflow] = left[0]
    return named
