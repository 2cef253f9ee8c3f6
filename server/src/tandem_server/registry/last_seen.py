"""When each probe last reached the gateway, and the state that it was found in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tandem_server.registry.table import Table

SCHEMA = """
CREATE TABLE seen (
    probe TEXT PRIMARY KEY REFERENCES probes(name),
    first_utc_ns INTEGER NOT NULL,
    last_utc_ns INTEGER NOT NULL
) STRICT;
CREATE TABLE probe_states (
    probe TEXT PRIMARY KEY REFERENCES probes(name),
    state TEXT NOT NULL,
    since_utc_ns INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_open ON sessions (probe) WHERE ended_utc_ns IS NULL;
CREATE INDEX runs_of_probe ON runs (probe, received_utc_ns);
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until_utc_ns INTEGER NOT NULL
) STRICT;
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """First and last request of a probe with a good token, UTC ns."""

    first_utc_ns: int
    last_utc_ns: int


@dataclass(frozen=True, slots=True)
class KeptState:
    """The state a probe was found in last, and since when it is in it, UTC ns."""

    state: str
    since_utc_ns: int


class LastSeen(Table):
    """The tables of when probes were seen, of their states, and of leases."""

    def note(self, last_utc_ns: Mapping[str, int]) -> None:
        """Write down when each of these probes was seen: one transaction. An earlier time than what is there changes nothing."""
        self._do_all(
            "INSERT INTO seen SELECT ?1, ?2, ?2 WHERE EXISTS (SELECT 1 FROM probes WHERE name = ?1)"
            " ON CONFLICT (probe) DO UPDATE SET last_utc_ns = max(last_utc_ns, excluded.last_utc_ns)",
            list(last_utc_ns.items()),
        )

    def all(self) -> dict[str, Seen]:
        """By probe; those that were never seen are not in it."""
        rows = self._rows("SELECT probe, first_utc_ns, last_utc_ns FROM seen")
        return {probe: Seen(first, last) for probe, first, last in rows}

    def states(self) -> dict[str, KeptState]:
        """By probe."""
        rows = self._rows("SELECT probe, state, since_utc_ns FROM probe_states")
        return {probe: KeptState(state, since) for probe, state, since in rows}

    def keep_states(self, states: Mapping[str, KeptState]) -> None:
        """Write these down in place of what was there."""
        self._do_all(
            "INSERT INTO probe_states VALUES (?, ?, ?)"
            " ON CONFLICT (probe) DO UPDATE SET state = excluded.state, since_utc_ns = excluded.since_utc_ns",
            [(probe, kept.state, kept.since_utc_ns) for probe, kept in states.items()],
        )

    def lease(self, name: str, holder: str, now_utc_ns: int, ttl_s: float) -> bool:
        """Whether ``holder`` has ``name`` until ``ttl_s`` from now: it had it, or nobody has. A holder that died loses it with its time."""
        until = now_utc_ns + int(ttl_s * 1e9)
        # One that runs out too far ahead was taken by a clock that has been set back since.
        taken = self._do(
            "INSERT INTO leases VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE SET"
            " holder = excluded.holder, until_utc_ns = excluded.until_utc_ns"
            " WHERE leases.holder = ?2 OR leases.until_utc_ns < ?4 OR leases.until_utc_ns > ?3 + ?5",
            (name, holder, until, now_utc_ns, int(ttl_s * 1e9)),
        )
        return taken == 1

    def give_up(self, name: str, holder: str) -> None:
        """End the lease, if it is this holder's."""
        with self._write() as connection:
            connection.execute("DELETE FROM leases WHERE name = ? AND holder = ?", (name, holder))
