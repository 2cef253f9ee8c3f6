"""A thread that polls one modem through ModemManager once a period: for modems that have no AT port to spare."""

from __future__ import annotations

import time
from collections.abc import Callable

from tandem.at.errors import AtError, NoAnswer, PortLost
from tandem.modem.card import Card, card_managed
from tandem.modem.mm_bus import Bus, BusLost
from tandem.modem.mm_connection import BearerGiven, Connection, ConnectionSettings
from tandem.modem.mm_decode import Told, decode
from tandem.modem.mm_modem import Answer, ManagedModem
from tandem.modem.poll import NO_ANSWER, PORT_LOST, Poll, in_range
from tandem.modem.poll_thread import DEADLINE_SHARE, PollThread
from tandem.modem.staleness import Staleness
from tandem.modem.steps import CFUN, CannotStepError, StepFailedError

DRIVER = "modemmanager"
"""The tag ``driver`` of its records."""

PREFIX = f"{DRIVER}:"
"""Of a configured port that is a ModemManager device."""


class ManagedPoller(PollThread):
    """A ``PollThread`` for the modem that ModemManager knows by ``device``. ``connection``: keep it connected, if given;
    ``on_state(state, detail)`` is told, from this thread, when the connection's state changes (``mm_connection``), and ``on_given``
    at every poll that was answered what the network gave, None while not connected. ``measuring``: whether levels and cell are wanted.

    ``open_bus`` gets a descriptor that ends its waits when readable; None: the system bus.
    """

    def __init__(
        self,
        path: str,
        operator: str | None,
        device: str,
        period_s: float,
        on_poll: Callable[[Poll], None],
        connection: ConnectionSettings | None = None,
        on_state: Callable[[str, str], None] = lambda _state, _detail: None,
        open_bus: Callable[[int], Bus] | None = None,
        on_given: Callable[[BearerGiven | None], None] = lambda _given: None,
        measuring: bool = True,
    ) -> None:
        super().__init__(path, operator, period_s, on_poll)
        opener = open_bus or _system_bus
        self._modem = ManagedModem(device, lambda: opener(self._errands.wake_fd), measuring=measuring)
        self._connection = None if connection is None else Connection(connection, self._modem, on_state)
        self._on_given = on_given
        self._staleness = Staleness()
        self._told: Told | None = None

    def reset(self, step: str, timeout: float) -> str:
        """``cfun`` switches the modem off and on by ModemManager; ``at`` is not ours to do here."""
        return self._errands.ask(lambda: self._reset(step, time.monotonic() + timeout), timeout)

    def card(self, timeout: float) -> Card | None:  # noqa: ARG002 the last poll has it already
        if self._told is None:
            raise NoAnswer("ModemManager has not told of the modem")
        return card_managed(self._told.modem)

    @property
    def given(self) -> BearerGiven | None:
        """What the network gave, while connected."""
        return None if self._connection is None else self._connection.given

    def _reset(self, step: str, until: float) -> str:
        if step != CFUN:
            raise CannotStepError("ModemManager holds the port")
        try:
            self._modem.switch(until)
        except AtError as error:
            raise StepFailedError(str(error)) from error
        return "disabled and enabled by ModemManager"

    def _listen(self, until: float) -> bool:
        if self._modem.bus is None:
            return False
        try:
            self._modem.bus.wait(until)
        except BusLost as error:
            self._log_once(NO_ANSWER, error)
            self._modem.close()
        return True

    def _close(self) -> None:
        self._modem.close()

    def _poll(self, due_ns: int, skipped: int) -> Poll:
        began_ns = time.monotonic_ns()
        reading, failure, stale, ended_ns = None, None, False, None
        try:
            answer = self._modem.poll(time.monotonic() + self._period_s * DEADLINE_SHARE)
            ended_ns, self._told = time.monotonic_ns(), answer.told
        except (NoAnswer, PortLost) as error:
            failure = NO_ANSWER if isinstance(error, NoAnswer) else PORT_LOST
            self._log_once(failure, error)
            self._told = None
            self._staleness.forget()
            if self._connection is not None:
                self._connection.lost()
        else:
            self._failing = None
            reading, wrong = in_range(decode(answer.told))
            self.dropped.update(wrong)
            stale = self._staleness.feed((answer.path, answer.changes, reading), reading, began_ns)
            if self._connection is not None:
                self._tend(self._connection, answer)
        return Poll(
            self.path,
            self._operator,
            DRIVER,
            self._modem.identity.model or None,
            due_ns,
            began_ns,
            ended_ns or time.monotonic_ns(),
            reading,
            failure,
            stale,
            skipped,
        )

    def _tend(self, connection: Connection, answer: Answer) -> None:
        try:
            connection.tend(answer.path, answer.told)
            self._on_given(connection.given)
        except BusLost as error:
            self._log_once(NO_ANSWER, error)
            self._modem.close()


def _system_bus(wake_fd: int) -> Bus:
    """Imported here: a probe whose modems all have AT ports needs no D-Bus library."""
    try:
        from tandem.modem.mm_dbus import system_bus
    except ImportError as error:
        raise BusLost(f"{error.name} is missing; mend: install python3-jeepney") from error
    return system_bus(wake_fd)
