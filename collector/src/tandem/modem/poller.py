"""A thread that polls one modem once a period and bears whatever happens to it."""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections import Counter
from collections.abc import Callable

from tandem.at.errors import AtError, NoAnswer, PortLost
from tandem.modem.identification import MoreSetup
from tandem.modem.poll import NO_ANSWER, PORT_LOST, Poll, in_range
from tandem.modem.registry import check_name
from tandem.modem.schedule import Schedule
from tandem.modem.session import Session
from tandem.modem.staleness import Staleness

log = logging.getLogger(__name__)

DEADLINE_SHARE = 0.8
"""A poll may take this share of the period: a modem that hangs must not push the next poll away."""


class Poller:
    """Polls the modem at ``port`` every ``period_s`` seconds and calls ``on_poll`` with each ``Poll``, also with failed ones.

    ``port``: a device or a symbolic link to one; opened here, and again after it vanished, under whatever number it has then.
    ``driver``: a family's name, or ``auto`` to let the modem's own answers decide; UnknownDriver when there is no such family.
    ``more_setup``: see ``identification``. ``on_poll`` is called from this modem's thread, so a slow one delays this modem only.
    ``dropped`` counts, by name, the quantities that a modem gave outside the schema's range. One thread a modem: modems do not
    wait for one another.
    """

    def __init__(
        self,
        path: str,
        operator: str | None,
        port: str,
        driver: str,
        period_s: float,
        on_poll: Callable[[Poll], None],
        more_setup: MoreSetup | None = None,
    ) -> None:
        check_name(driver)
        self.path = path
        self.dropped: Counter[str] = Counter()
        self._operator = operator
        self._period_s = period_s
        self._on_poll = on_poll
        self._failing: str | None = None
        self._stopping = False
        self._wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._session = Session(port, driver, self._wake_fd, more_setup)
        self._staleness = Staleness()
        self._thread = threading.Thread(target=self._run, name=f"poller-{path}", daemon=True)

    def start(self) -> None:
        """Begin to poll. Returns at once."""
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End the thread and close the port; TimeoutError when it has not ended within ``timeout`` seconds. Twice is fine."""
        if self._wake_fd < 0:
            return
        self._stopping = True
        os.eventfd_write(self._wake_fd, 1)
        if self._thread.ident is not None:
            self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the poller of {self.path} is still busy after {timeout} s")
        self._session.close()
        os.close(self._wake_fd)
        self._wake_fd = -1

    def _run(self) -> None:
        try:
            # The first set-up takes several exchanges: the schedule begins behind it, so that the first poll is not late.
            self._session.prepare()
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
            remaining_s = (due_ns - time.monotonic_ns()) / 1e9
            if remaining_s <= 0:
                return True
            if self._session.channel is None:
                select.select([self._wake_fd], [], [], remaining_s)
                continue
            try:
                self._session.channel.listen(time.monotonic() + remaining_s)
            except PortLost as error:
                self._log_once(PORT_LOST, error)
                self._session.lost()
        return False

    def _poll(self, due_ns: int, skipped: int) -> Poll:
        began_ns = time.monotonic_ns()
        reading, failure, stale = None, None, False
        try:
            if self._session.prepare():
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
            self._failing = None
            driver = self._session.driver
            if not any(answer.lines for answer in answers) and not any(answer.final.ok for answer in answers):
                failure = answers[0].final.code
            elif driver is not None:
                reading, wrong = in_range(driver.decode(answers, self._session.identity))
                self.dropped.update(wrong)
                stale = self._staleness.feed(tuple(answer.lines for answer in answers), began_ns)
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

    def _log_once(self, failure: str, error: AtError) -> None:
        """Every failed poll is a record; the log tells the first of a row."""
        if failure != self._failing:
            log.warning("%s: %s", self.path, error)
        self._failing = failure
