"""What begins a campaign's runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from tandem.app.campaign.state import Outcome


class Runner(Protocol):
    """What begins runs. Neither call blocks."""

    def begin(self, experiment: str, request: Mapping[str, Any], campaign: Mapping[str, Any]) -> str | None:
        """Begin; what ``done`` is asked with, None when something else is being measured. ValueError: it can never be begun so.
        ``campaign``: which run of which campaign it is, for its manifest."""
        ...

    def done(self, begun: str) -> Outcome | None:
        """How it ended; None before."""
        ...

    def end(self, begun: str) -> None:
        """End it now; what it measured counts."""
        ...
