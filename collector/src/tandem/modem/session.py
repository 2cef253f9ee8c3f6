"""A modem over its lifetime: opened, set up, lost, opened again under another number."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from tandem.at.channel import Channel
from tandem.at.dialogue import Response
from tandem.at.errors import NoAnswer, PortLost
from tandem.at.unsolicited import Unsolicited
from tandem.modem.access import Access, Conversation
from tandem.modem.base import Driver, Identity
from tandem.modem.http_transport import WebChannel
from tandem.modem.identification import MoreSetup, prepare, prepare_web
from tandem.modem.sim import card_hash
from tandem.modem.web_faults import session_ended

log = logging.getLogger(__name__)

FIRST_BACK_OFF_S = 0.5
LONGEST_BACK_OFF_S = 8.0
"""Between attempts to open a port that is there but cannot be opened. One that is not there is looked for at every poll."""

RADIO_S = 15.0
"""+CFUN may take so long."""

RENEW_AGAIN_S = 30.0
"""A session that ended again sooner is not renewed within the poll."""

SILENT_POLLS = 3
"""After so many missed deadlines in a row the modem may have been reset: it is set up again when it answers."""


class Session:
    """Owned by one poller thread. ``driver`` and ``identity`` stay those of the last set-up while the modem is away.

    ``on_unsolicited`` gets what it says unasked. ``sim_secret``: when given, each set-up asks once for the SIM's number, and
    ``sim`` is its hash, None when the modem does not tell. ``more_setup``: see ``identification``.
    """

    def __init__(
        self,
        access: Access,
        driver_name: str,
        wake_fd: int,
        on_unsolicited: Callable[[Unsolicited], None] | None = None,
        sim_secret: bytes | None = None,
        more_setup: MoreSetup | None = None,
    ) -> None:
        self._access = access
        self._driver_name = driver_name
        self._more_setup = more_setup
        self._wake_fd = wake_fd
        self._on_unsolicited = on_unsolicited
        self._sim_secret = sim_secret
        self._ready = False
        self._silent = 0
        self._back_off_s = FIRST_BACK_OFF_S
        self._not_before = 0.0
        self._refusal = ""
        self._renew_not_before = 0.0
        self.channel: Conversation | None = None
        self.identity = Identity()
        self.driver: Driver | None = None
        self.sim: str | None = None
        self.switch_on = False
        """The radio may have been left off: it is switched on at the next set-up."""

    def prepare(self) -> bool:
        """Have the port open and the modem set up; True when that had to be done now. NoAnswer or PortLost when it failed."""
        channel = self._opened()
        if self._ready:
            return False
        try:
            if isinstance(channel, Channel):
                if self.switch_on:
                    self.switch_on = not channel.ask("AT+CFUN=1", RADIO_S).final.ok
                self.identity, self.driver = prepare(channel, self._driver_name, self._more_setup)
                if self._sim_secret is not None:
                    self.sim = card_hash(channel, self._sim_secret)
            else:
                self.identity, self.driver = prepare_web(channel, self._driver_name)
        except PortLost:
            self.lost()
            raise
        name = f"{self.identity.manufacturer} {self.identity.model}".strip() or "a modem that does not say what it is"
        log.info("%s: %s, driver %s", self._access.name, name, self.driver.name)
        self._ready = True
        return True

    def ask_all(self, deadline_s: float) -> list[Response]:
        """One poll: the driver's command lines, one after the other, all within ``deadline_s``."""
        if self.channel is None or self.driver is None:
            raise PortLost(f"{self._access.name}: not open")
        until = time.monotonic() + deadline_s
        try:
            commands = self.driver.poll_commands(self.identity)
            answers = [self.channel.ask(command, until - time.monotonic()) for command in commands]
            if isinstance(self.channel, WebChannel) and session_ended(self.driver, answers) and self._may_renew():
                self.channel.renew(until)
                answers = [self.channel.ask(command, until - time.monotonic()) for command in commands]
        except PortLost:
            self.lost()
            raise
        except NoAnswer:
            self._silent += 1
            if self._silent >= SILENT_POLLS:
                self._ready = False
            raise
        self._silent = 0
        return answers

    def _may_renew(self) -> bool:
        """Once, and only after a while again: a stick that a new session does not mend is not to be asked twice at every poll."""
        now = time.monotonic()
        if now < self._renew_not_before:
            return False
        self._renew_not_before = now + RENEW_AGAIN_S
        return True

    def reopen(self) -> Conversation:
        """Close the port and open it now, whatever was owed and however often it was refused; PortLost when it cannot be."""
        self.lost()
        self._not_before = 0.0
        return self._opened()

    def lost(self) -> None:
        """The port is gone: close what is left of it."""
        self.close()
        self._silent = 0
        self._ready = False

    def close(self) -> None:
        """Close the port when it is open."""
        if self.channel is not None:
            self.channel.close()
            self.channel = None

    def _opened(self) -> Conversation:
        try:
            where = self._access.look()
            moved = self.channel is not None and self._access.moved(self.channel, where)
        except PortLost:
            if self.channel is None:
                raise
            return self.channel  # only its name is gone; whether the port works is seen when it is used
        if moved:
            log.warning("%s: now leads to another device", self._access.name)
            self.lost()
        if self.channel is None:
            self.channel = self._open(where)
        return self.channel

    def _open(self, where: str) -> Conversation:
        if time.monotonic() < self._not_before:
            raise PortLost(self._refusal)
        try:
            channel = self._access.open(where, self._wake_fd)
        except PortLost as error:
            self._refusal = str(error)
            self._not_before = time.monotonic() + self._back_off_s
            self._back_off_s = min(2 * self._back_off_s, LONGEST_BACK_OFF_S)
            raise
        self._back_off_s = FIRST_BACK_OFF_S
        if isinstance(channel, Channel) and self._on_unsolicited is not None:
            channel.unsolicited.subscribe(self._on_unsolicited)
        return channel
