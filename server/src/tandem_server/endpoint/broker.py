"""What a connection needs of the sessions, wherever they are kept: in this process or in the one that accepted it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from tandem_server.endpoint.options import Options
from tandem_server.endpoint.paths import PathPeer
from tandem_server.endpoint.request import Claim, Transfer


class BudgetLease(Protocol):
    """One connection's part in an open session."""

    @property
    def probe(self) -> str:
        """Whose session it is."""

    @property
    def run(self) -> str:
        """The run that it belongs to."""

    @property
    def kind(self) -> str:
        """``mptcp``, ``tcp`` or ``any``."""

    @property
    def path(self) -> str | None:
        """The primary path's name."""

    @property
    def paths(self) -> Mapping[str, PathPeer]:
        """The paths as the session has them."""

    @property
    def options(self) -> Options:
        """Of the connection's socket."""

    def over(self) -> bool:
        """Whether the connection must end now."""

    def take(self, wanted_bytes: int) -> int:
        """Reserve up to so much of the budget; how much it is, 0 when nothing is left."""

    def give_back(self, unused_bytes: int) -> None:
        """Return what was reserved and not carried."""

    def leave(self, summary: dict[str, Any] | None) -> None:
        """The connection has ended, with what became of it."""


class SessionBroker(Protocol):
    """Where connections are admitted to sessions."""

    def admit(self, claim: Claim, transfer: Transfer, tls: bool) -> BudgetLease:
        """A part in the session that it claims, for one connection, with TLS or without, for this transfer; BadRequest says why not."""
