"""``[wireguard]`` of server.toml: the tunnel by which people reach probes behind a carrier's NAT."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tandem_server.cli.stop import ConfigError
from tandem_server.registry import HUB_AND_PEOPLE, Network

_ENDPOINT = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?):([0-9]{1,5})\Z")


@dataclass(frozen=True, slots=True)
class WireGuard:
    """Without ``network`` there is no tunnel. The hub has its first address. ``public_key_file``: the hub's, one line, made where the
    hub is set up. ``endpoint``: the hub as probes reach it, HOST:PORT."""

    network: str | None = None
    public_key_file: Path = Path("/etc/tandem/wireguard.pub")
    endpoint: str | None = None

    @property
    def addresses(self) -> Network | None:
        """The network that was checked."""
        return None if self.network is None else ipaddress.ip_network(self.network)


def check_wireguard(section: WireGuard, where: Callable[[str | None], str]) -> None:
    """ConfigError with one line unless the section can be used."""
    if section.network is None:
        if section.endpoint is not None:
            raise ConfigError(
                f'{where("endpoint")}: [wireguard] endpoint without network; hint: add network = "10.87.0.0/16"'
            )
        return
    try:
        room = ipaddress.ip_network(section.network).num_addresses
    except ValueError as error:
        raise ConfigError(f"{where('network')}: [wireguard] network: {error}; hint: as 10.87.0.0/16") from None
    if room < 2 * (HUB_AND_PEOPLE + 1):
        raise ConfigError(
            f"{where('network')}: [wireguard] network {section.network} has {room} addresses, of which {HUB_AND_PEOPLE} are the"
            " hub's and people's; hint: a larger one, as 10.87.0.0/16"
        )
    if section.endpoint is None:
        raise ConfigError(
            f'{where("network")}: [wireguard] network without endpoint; hint: add endpoint = "server.example.org:51820"'
        )
    found = _ENDPOINT.match(section.endpoint)
    if found is None or not 1 <= int(found[1]) <= 65535:
        raise ConfigError(
            f"{where('endpoint')}: [wireguard] endpoint is {section.endpoint!r}; hint: HOST:PORT, as server.example.org:51820"
        )
