"""``[pages]`` of server.toml: where people's browsers read runs, and who stands before that."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tandem_server.cli.stop import ConfigError


@dataclass(frozen=True, slots=True)
class PageServing:
    """Where ``[listen] pages_port`` is. Whoever reaches it reads all runs and traces: so it is loopback, unless ``behind_proxy`` says
    that a reverse proxy with a login of its own stands before it. ``password_file``: of the account ``reader``, for ``[store] kind =
    "running"``; by default the store's own account is used there."""

    host: str = "127.0.0.1"
    behind_proxy: bool = False
    password_file: Path | None = None


def check_pages(pages: PageServing, where: Callable[[str | None], str]) -> None:
    """ConfigError unless the address is loopback's or a proxy stands before it."""
    try:
        loopback = ipaddress.ip_address(pages.host).is_loopback
    except ValueError:
        mend = "an IP address, as 127.0.0.1"
        raise ConfigError(f"{where('host')}: [pages] host is {pages.host!r}; hint: {mend}") from None
    if not loopback and not pages.behind_proxy:
        raise ConfigError(
            f"{where('host')}: [pages] host is {pages.host}, and whoever reaches it reads all traces; hint: 127.0.0.1, or"
            " behind_proxy = true where a reverse proxy asks for a login before it"
        )
