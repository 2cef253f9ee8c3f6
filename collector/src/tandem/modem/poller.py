"""A thread that polls one modem once a period and bears whatever happens to it."""

from __future__ import annotations

import time
from collections.abc import Callable

from tandem.at.channel import Channel
from tandem.at.dialogue import Unsolicited
from tandem.at.errors import NoAnswer, PortLost
from tandem.modem.families import check_transport
from tandem.modem.poll import NO_ANSWER, PORT_LOST, Poll, Staleness, in_range
from tandem.modem.poll_thread import DEADLINE_SHARE, PollThread
from tandem.modem.reset import reset
from tandem.modem.session import Access, Session, WebServer, access
from tandem.modem.sim import Card, SimWatch, card_at
from tandem.modem.web import poll_failure


class Poller(PollThread):
    """A ``PollThread`` for the modem at ``port``.

    ``port``: a device or a symbolic link to one, or any ``Access`` (a place on the USB bus, a stick's web server); opened here, and
    again after it vanished, under whatever number it has then.
    ``driver``: a family's name, or ``auto`` to let the modem's own answers decide; UnknownDriver when there is no such family.
    ``on_unsolicited`` gets what the modem says unasked, with the time, from this thread too. ``sim``: which SIM must be there and
    who is told of another one; asked once at each set-up. ``gnss``: whether its GNSS is the position's
    source.
    """

    def __init__(
        self,
        path: str,
        operator: str | None,
        port: str | Access,
        driver: str,
        period_s: float,
        on_poll: Callable[[Poll], None],
        on_unsolicited: Callable[[Unsolicited], None] | None = None,
        sim: SimWatch | None = None,
        gnss: bool = False,
    ) -> None:
        reached = access(port) if isinstance(port, str) else port
        check_transport(driver, "http" if isinstance(reached, WebServer) else "at")
        super().__init__(path, operator, period_s, on_poll)
        self._sim = sim
        secret = sim.secret if sim else None
        self._session = Session(reached, driver, self._errands.wake_fd, on_unsolicited, secret, gnss)
        self._staleness = Staleness()

    def reset(self, step: str, timeout: float) -> str:
        return self._errands.ask(lambda: reset(self._session, step), timeout)

    def card(self, timeout: float) -> Card | None:
        return self._errands.ask(self._card, timeout)

    def _card(self) -> Card | None:
        self._prepare()
        channel, sim = self._session.channel, self._sim
        if not isinstance(channel, Channel):
            return None  # a web server: what its pages say of SIMs is not read
        try:
            return card_at(channel, sim.wanted if sim else None, sim.secret if sim else None)
        except PortLost:
            self._session.lost()
            raise

    def _run(self) -> None:
        try:
            # The first set-up takes several exchanges: the schedule begins behind it, so that the first poll is not late.
            self._prepare()
        except (NoAnswer, PortLost) as error:
            self._log_once(NO_ANSWER if isinstance(error, NoAnswer) else PORT_LOST, error)
        super()._run()

    def _listen(self, until: float) -> bool:
        if self._session.channel is None:
            return False
        try:
            self._session.channel.listen(until)
        except PortLost as error:
            self._log_once(PORT_LOST, error)
            self._session.lost()
        return True

    def _close(self) -> None:
        self._session.close()

    def _prepare(self) -> bool:
        """Whether the modem had to be set up now; then its SIM is looked at, too."""
        fresh = self._session.prepare()
        if fresh and self._sim is not None:
            self._sim.found(self._session.sim)
        return fresh

    def _poll(self, due_ns: int, skipped: int) -> Poll:
        began_ns = time.monotonic_ns()
        reading, failure, stale = None, None, False
        try:
            if self._prepare():
                began_ns = time.monotonic_ns()
                self._staleness.forget()
            answers = self._session.ask_all(self._period_s * DEADLINE_SHARE)
        except NoAnswer as error:
            failure = NO_ANSWER
            self._log_once(failure, error)
        except PortLost as error:
            failure = PORT_LOST
            self._log_once(failure, error)
        else:
            ended_ns = time.monotonic_ns()
            driver = self._session.driver
            if driver is not None:
                reading, wrong = in_range(driver.decode(answers, self._session.identity))
                self.dropped.update(wrong)
            failure = poll_failure(driver, answers, reading)
            if failure is None:
                self._failing = None
                stale = self._staleness.feed(tuple(answer.lines for answer in answers), reading, began_ns)
            else:
                reading = None
                self._log_once(failure, f"answers {failure.replace('_', ' ')}")
        if failure in (NO_ANSWER, PORT_LOST):
            ended_ns = time.monotonic_ns()
        return Poll(
            self.path,
            self._operator,
            self._session.driver.name if self._session.driver else None,
            self._session.identity.model or None,
            due_ns,
            began_ns,
            ended_ns,
            reading,
            failure,
            stale,
            skipped,
        )
