"""A thread that polls one modem once a period and bears whatever happens to it."""

from __future__ import annotations

import logging
import select
import threading
import time
from collections import Counter
from collections.abc import Callable

from tandem.at.errors import AtError, NoAnswer, PortLost
from tandem.at.unsolicited import Unsolicited
from tandem.modem.access import Access, WebServer, access
from tandem.modem.errands import Errands
from tandem.modem.identification import MoreSetup
from tandem.modem.poll import NO_ANSWER, PORT_LOST, Poll, in_range
from tandem.modem.registry import check_transport
from tandem.modem.reset import reset
from tandem.modem.schedule import Schedule
from tandem.modem.session import Session
from tandem.modem.sim import SimWatch
from tandem.modem.staleness import Staleness
from tandem.modem.web_faults import poll_failure

log = logging.getLogger(__name__)

DEADLINE_SHARE = 0.8
"""A poll may take this share of the period: a modem that hangs must not push the next poll away."""


class Poller:
    """Polls the modem at ``port`` every ``period_s`` seconds and calls ``on_poll`` with each ``Poll``, also with failed ones.

    ``port``: a device or a symbolic link to one, or any ``Access`` (a place on the USB bus, a stick's web server); opened here, and
    again after it vanished, under whatever number it has then.
    ``driver``: a family's name, or ``auto`` to let the modem's own answers decide; UnknownDriver when there is no such family.
    ``on_poll`` is called from this modem's thread, so a slow one delays this modem only. ``dropped`` counts, by name, the
    quantities that a modem gave outside the schema's range. One thread a modem: modems do not wait for one another.
    ``on_unsolicited`` gets what the modem says unasked, with the time, from this thread too. ``sim``: which SIM must be there and
    who is told of another one; asked once at each set-up. ``more_setup``: see ``identification``.
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
        more_setup: MoreSetup | None = None,
    ) -> None:
        reached = access(port) if isinstance(port, str) else port
        check_transport(driver, "http" if isinstance(reached, WebServer) else "at")
        self.path = path
        self._sim = sim
        self.dropped: Counter[str] = Counter()
        self._operator = operator
        self._period_s = period_s
        self._on_poll = on_poll
        self._failing: str | None = None
        self._stopping = False
        self._errands = Errands()
        secret = sim.secret if sim else None
        self._session = Session(reached, driver, self._errands.wake_fd, on_unsolicited, secret, more_setup)
        self._staleness = Staleness()
        self._thread = threading.Thread(target=self._run, name=f"poller-{path}", daemon=True)

    def start(self) -> None:
        """Begin to poll. Returns at once."""
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End the thread and close the port; TimeoutError when it has not ended within ``timeout`` seconds. Twice is fine."""
        if self._errands.wake_fd < 0:
            return
        self._stopping = True
        self._errands.wake()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the poller of {self.path} is still busy after {timeout} s")
        self._session.close()
        self._errands.close()

    def reset(self, step: str, timeout: float) -> str:
        """Have the poller's thread do a step of ``modem.reset``, from another thread; its text, or what it raises. TimeoutError."""
        return self._errands.ask(lambda: reset(self._session, step), timeout)

    def _run(self) -> None:
        try:
            # The first set-up takes several exchanges: the schedule begins behind it, so that the first poll is not late.
            self._prepare()
        except (NoAnswer, PortLost) as error:
            self._log_once(NO_ANSWER if isinstance(error, NoAnswer) else PORT_LOST, error)
        schedule = Schedule(time.monotonic_ns(), self._period_s)
        skipped = 0
        while self._wait_until(schedule.due_ns):
            poll = self._poll(schedule.due_ns, skipped)
            try:
                self._on_poll(poll)
            except Exception:
                # Whatever the receiver does, this modem must go on being measured.
                log.exception("%s: the poll could not be handed over", self.path)
            skipped = schedule.advance(time.monotonic_ns())

    def _wait_until(self, due_ns: int) -> bool:
        """Wait for the due time, taking what the modem says unasked; False when stopping."""
        while not self._stopping:
            if self._errands.run():
                continue
            remaining_s = (due_ns - time.monotonic_ns()) / 1e9
            if remaining_s <= 0:
                return True
            if self._session.channel is None:
                select.select([self._errands.wake_fd], [], [], remaining_s)
                continue
            try:
                self._session.channel.listen(time.monotonic() + remaining_s)
            except PortLost as error:
                self._log_once(PORT_LOST, error)
                self._session.lost()
        return False

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
                stale = self._staleness.feed(tuple(answer.lines for answer in answers), began_ns)
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

    def _log_once(self, failure: str, error: AtError | str) -> None:
        """Every failed poll is a record; the log tells the first of a row."""
        if failure != self._failing:
            log.warning("%s: %s", self.path, error)
        self._failing = failure
