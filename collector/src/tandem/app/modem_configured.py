"""The modems that a configuration names and that were not found on the USB bus: a web server, a link to a port, an empty place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.app.config import Config, PathConfig
from tandem.app.config_modem import ModemConfig
from tandem.app.modem_asked import Asked, asked_at, asked_web, holder, radio, radio_line
from tandem.at.channel import Channel, Port
from tandem.at.errors import NoAnswer, PortLost
from tandem.modem.families import AUTO, FALLBACK
from tandem.modem.web import WebChannel


@dataclass(frozen=True)
class Configured:
    """A path's modem. ``where``: as the configuration has it. ``asked`` None: it was not, or gave no answer, as ``state`` says."""

    slot: str
    operator: str | None
    where: str
    state: str
    asked: Asked | None = None
    sim_wanted: str | None = None

    @property
    def present(self) -> bool:
        """Whether it is there, as far as was looked."""
        return self.asked is not None or self.state == "not asked" or self.state.startswith("in use")

    def as_json(self) -> dict[str, Any]:
        """One flat object, with the keys of ``modem_list.Listed``."""
        found = self.asked
        return {
            "usb": None,
            "where": self.where,
            "model": (found.identity.model or None) if found else None,
            "revision": (found.identity.revision or None) if found else None,
            "driver": found.driver if found else None,
            "slot": self.slot,
            "operator": self.operator,
            "sim": found.sim if found else None,
            "sim_wanted": self.sim_wanted,
            "state": self.state,
            "pollable": self.state == "ready",
            **(radio(found.reading) if found else {}),
        }

    def lines(self) -> list[str]:
        """For people."""
        told = self.as_json()
        driver = f"  driver {told['driver']}" if told["driver"] else ""
        heard = radio_line(self.asked.reading) if self.asked is not None else None
        slot = self.slot + (f" ({self.operator})" if self.operator else "")
        return [
            f"{self.where}  {told['model'] or 'modem of the configuration'}{driver}",
            f"    slot {slot}  state {self.state}",
            *([f"    hears {heard}"] if heard else []),
        ]


def configured(
    config: Config, found: set[str], ask: bool, secret: bytes | None, open_port: Callable[[str], Port]
) -> list[Configured]:
    """Those of the paths that are not in ``found``."""
    rest = [(path, path.modem) for path in config.paths if path.name not in found]
    return [by_configuration(path, modem, ask, secret, open_port) for path, modem in rest if modem is not None]


def by_configuration(
    path: PathConfig, modem: ModemConfig, ask: bool, secret: bytes | None, open_port: Callable[[str], Port]
) -> Configured:
    """The modem as the configuration reaches it."""
    where = f"usb {modem.usb}" if modem.usb is not None else str(modem.port)
    state, asked = "not asked", None
    if modem.usb is not None:
        state = "nothing that is a modem is plugged in there"
    elif where.startswith("modemmanager:"):
        state = "through ModemManager: tandem status and mmcli show it"
    elif where.startswith("/") and not Path(where).exists():
        state = "there is no such port"
    elif ask:
        try:
            asked = _asked(path, modem, where, secret, open_port)
            state = asked.state
        except NoAnswer as error:
            state = str(error) if where.startswith("http://") else "does not answer"
        except PortLost as error:
            state = refused(where, str(error))
    return Configured(path.name, path.operator, where, state, asked, modem.sim)


def _asked(
    path: PathConfig, modem: ModemConfig, where: str, secret: bytes | None, open_port: Callable[[str], Port]
) -> Asked:
    if where.startswith("http://"):
        return asked_web(WebChannel(where, path.interface), modem.driver)
    channel = Channel(open_port(where))
    try:
        return asked_at(channel, (modem.driver if modem.driver != AUTO else FALLBACK,), secret)
    finally:
        channel.close()


def refused(port: str, error: str) -> str:
    """Why a port cannot be opened, in words, and who has it."""
    if "lock" in error or "busy" in error:
        who = holder(port)
        return f"in use by {who}" if who else "in use"
    return "no permission: join the group dialout" if "ermission" in error else error
