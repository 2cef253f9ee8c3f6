"""A modem's port over its lifetime: opened, set up, lost, opened again under another number."""

from __future__ import annotations

import logging
import os
import stat
import time
from pathlib import Path

from tandem.at.channel import Channel, open_port
from tandem.at.dialogue import Response
from tandem.at.errors import NoAnswer, PortLost
from tandem.modem.base import Driver, Identity
from tandem.modem.identification import MoreSetup, prepare

log = logging.getLogger(__name__)

FIRST_BACK_OFF_S = 0.5
LONGEST_BACK_OFF_S = 8.0
"""Between attempts to open a port that is there but cannot be opened. One that is not there is looked for at every poll."""

SILENT_POLLS = 3
"""After so many missed deadlines in a row the modem may have been reset: it is set up again when it answers."""


class Session:
    """Owned by one poller thread. ``driver`` and ``identity`` stay those of the last set-up while the port is away."""

    def __init__(self, port: str, driver_name: str, wake_fd: int, more_setup: MoreSetup | None = None) -> None:
        self._port = port
        self._driver_name = driver_name
        self._more_setup = more_setup
        self._wake_fd = wake_fd
        self._ready = False
        self._silent = 0
        self._back_off_s = FIRST_BACK_OFF_S
        self._not_before = 0.0
        self._refusal = ""
        self.channel: Channel | None = None
        self.identity = Identity()
        self.driver: Driver | None = None

    def prepare(self) -> bool:
        """Have the port open and the modem set up; True when that had to be done now. NoAnswer or PortLost when it failed."""
        channel = self._opened()
        if self._ready:
            return False
        try:
            self.identity, self.driver = prepare(channel, self._driver_name, self._more_setup)
        except PortLost:
            self.lost()
            raise
        log.info("%s: %s %s, driver %s", self._port, self.identity.manufacturer, self.identity.model, self.driver.name)
        self._ready = True
        return True

    def ask_all(self, deadline_s: float) -> list[Response]:
        """One poll: the driver's command lines, one after the other, all within ``deadline_s``."""
        if self.channel is None or self.driver is None:
            raise PortLost(f"{self._port}: not open")
        until = time.monotonic() + deadline_s
        try:
            commands = self.driver.poll_commands(self.identity)
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

    def _opened(self) -> Channel:
        try:
            there = Path(self._port).stat()
        except OSError as error:
            if self.channel is None:
                raise PortLost(f"{self._port}: {error.strerror}") from error
            return self.channel  # only its name is gone; whether the port works is seen when it is used
        if self.channel is not None and not self._same(self.channel, there):
            log.warning("%s: now leads to another device", self._port)
            self.lost()
        if self.channel is None:
            self.channel = self._open()
        return self.channel

    def _open(self) -> Channel:
        if time.monotonic() < self._not_before:
            raise PortLost(self._refusal)
        try:
            port = open_port(self._port)
        except PortLost as error:
            self._refusal = str(error)
            self._not_before = time.monotonic() + self._back_off_s
            self._back_off_s = min(2 * self._back_off_s, LONGEST_BACK_OFF_S)
            raise
        self._back_off_s = FIRST_BACK_OFF_S
        return Channel(port, wake_fd=self._wake_fd)

    @staticmethod
    def _same(channel: Channel, there: os.stat_result) -> bool:
        """Whether the open port is still the device that the path leads to: a link that was moved leads to another one."""
        opened = os.fstat(channel.fileno())
        return not stat.S_ISCHR(there.st_mode) or (opened.st_rdev, opened.st_ino) == (there.st_rdev, there.st_ino)
