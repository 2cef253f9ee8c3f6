"""A thread that polls one modem once a period and bears whatever happens to it: due at fixed instants, woken for calls from other
threads, each poll handed over; and what is asked of a modem at an AT port or a web server."""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Hashable
from concurrent.futures import CancelledError, Future
from typing import Any, NamedTuple, TypeVar

from tandem.at.channel import Channel
from tandem.at.dialogue import NoAnswer, PortLost, Unsolicited
from tandem.modem.base import Reading
from tandem.modem.families import check_transport
from tandem.modem.poll import NO_ANSWER, PORT_LOST, Poll, StuckReadingDetector, in_range
from tandem.modem.reset import reset
from tandem.modem.session import Access, Session, WebServer, access
from tandem.modem.sim import Card, SimWatch, card_at
from tandem.modem.web import poll_failure

log = logging.getLogger(__name__)


class Schedule:
    """Due times ``start + n · period``, in nanoseconds of CLOCK_MONOTONIC."""

    def __init__(self, start_ns: int, period_s: float) -> None:
        if not period_s > 0:
            raise ValueError(f"the period must be above 0 s, not {period_s}")
        self._period_ns = round(period_s * 1e9)
        self.due_ns = start_ns

    def advance(self, now_ns: int) -> int:
        """Go on to the first due time after the current one that is not past; how many were passed over."""
        self.due_ns += self._period_ns
        behind_ns = now_ns - self.due_ns
        if behind_ns <= 0:
            return 0
        skipped = -(-behind_ns // self._period_ns)
        self.due_ns += skipped * self._period_ns
        return skipped


T = TypeVar("T")


class ThreadExecutor:
    """``wake_fd`` ends the owner's waits: readable while a submitted call waits or ``wake`` was called; -1 once closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.wake_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._waiting: deque[tuple[Callable[[], Any], Future[Any]]] = deque()

    def wake(self) -> None:
        """End the owner's wait; nothing when it has ended. From any thread."""
        with self._lock:  # not a descriptor that is closed, or another's by now
            if self.wake_fd >= 0:
                os.eventfd_write(self.wake_fd, 1)

    def ask(self, work: Callable[[], T], timeout: float) -> T:
        """From any other thread: have ``work`` done and get what it returns or raises; TimeoutError after ``timeout`` seconds,
        then it is not done any more unless it has begun."""
        done: Future[T] = Future()
        self._waiting.append((work, done))
        if self.wake_fd < 0:
            raise TimeoutError("its owner has ended")
        self.wake()
        try:
            return done.result(timeout)
        except CancelledError as error:
            raise TimeoutError("its owner has ended") from error
        except TimeoutError:
            done.cancel()
            raise

    def run(self) -> bool:
        """By the owner: do all that waits; whether it had been woken, by this or by ``wake``."""
        try:
            os.eventfd_read(self.wake_fd)
        except BlockingIOError:
            return False
        while self._waiting:
            work, done = self._waiting.popleft()
            if not done.set_running_or_notify_cancel():
                continue
            try:
                done.set_result(work())
            except Exception as error:  # noqa: BLE001 - it is raised in the thread that asked
                done.set_exception(error)
        return True

    def close(self) -> None:
        """Give the descriptor back. Whoever still waits is told that nothing was done."""
        with self._lock:
            fd, self.wake_fd = self.wake_fd, -1
            os.close(fd)
        while self._waiting:
            self._waiting.popleft()[1].cancel()


DEADLINE_SHARE = 0.8
"""A poll may take this share of the period: a modem that hangs must not push the next poll away."""


class ModemAnswer(NamedTuple):
    """What a modem reported at a poll. ``failure``: why it reported nothing of the radio; ``answer``: equal when it only repeats itself."""

    ended_monotonic_ns: int
    reading: Reading | None
    failure: str | None
    answer: Hashable


class PollThread(ABC):
    """Polls one modem every ``period_s`` seconds and calls ``on_poll`` with each ``Poll``, also with failed ones.

    ``on_poll`` is called from this modem's thread, so a slow one delays this modem only. ``dropped`` counts, by name, the
    quantities that a modem gave outside the schema's range. One thread a modem: modems do not wait for one another.
    """

    def __init__(self, path: str, operator: str | None, period_s: float, on_poll: Callable[[Poll], None]) -> None:
        self.path = path
        self.dropped: Counter[str] = Counter()
        self._operator = operator
        self._period_s = period_s
        self._on_poll = on_poll
        self._failing: str | None = None
        self._stopping = False
        self._executor = ThreadExecutor()
        self._stuck = StuckReadingDetector()
        self._began_ns = 0
        self._thread = threading.Thread(target=self._run, name=f"poller-{path}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End the thread and let go of the modem; TimeoutError when it has not ended within ``timeout`` seconds. Twice is fine."""
        if self._executor.wake_fd < 0:
            return
        self._stopping = True
        self._executor.wake()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"the poller of {self.path} is still busy after {timeout} s")
        self._close()
        self._executor.close()

    @abstractmethod
    def reset(self, step: str, timeout: float) -> str:
        """Have the poller's thread do a step of the recovery ladder (``modem.reset``), from another thread; its text, or what it
        raises. TimeoutError when it is not done within ``timeout`` seconds."""

    @abstractmethod
    def card(self, timeout: float) -> Card | None:
        """Look at the SIM now, from another thread: None when this modem tells nothing of it. NoAnswer, PortLost, or TimeoutError when
        it is not done within ``timeout`` seconds."""

    @abstractmethod
    def _ask(self) -> ModemAnswer:
        """Ask the modem now, from ``_began_ns`` on, within ``DEADLINE_SHARE`` of the period. NoAnswer, PortLost."""

    @abstractmethod
    def _who(self) -> tuple[str | None, str | None]:
        """Driver and model, as far as they are known."""

    @abstractmethod
    def _listen(self, until: float) -> bool:
        """Take what comes unasked until ``time.monotonic()`` reaches ``until`` or another thread submits a call; False, at once, when
        nothing is open to listen to."""

    @abstractmethod
    def _close(self) -> None:
        """Let go of the modem; the thread has ended."""

    def _run(self) -> None:
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

    def _poll(self, due_ns: int, skipped: int) -> Poll:
        """Whatever the modem does becomes the poll."""
        self._began_ns = time.monotonic_ns()
        stale = False
        try:
            answered = self._ask()
        except (NoAnswer, PortLost) as error:
            failure = NO_ANSWER if isinstance(error, NoAnswer) else PORT_LOST
            self._log_once(failure, error)
            answered = ModemAnswer(time.monotonic_ns(), None, failure, None)
        if answered.failure is None:
            self._failing = None
            stale = self._stuck.feed(answered.answer, answered.reading, self._began_ns)
        elif answered.failure not in (NO_ANSWER, PORT_LOST):
            self._log_once(answered.failure, f"answers {answered.failure.replace('_', ' ')}")
        reading = answered.reading if answered.failure is None else None
        times = (due_ns, self._began_ns, answered.ended_monotonic_ns)
        return Poll(self.path, self._operator, *self._who(), *times, reading, answered.failure, stale, skipped)

    def _in_range(self, given: Reading) -> Reading:
        """The reading without what the schema does not allow, which is counted."""
        reading, wrong = in_range(given)
        self.dropped.update(wrong)
        return reading

    def _wait_until(self, due_ns: int) -> bool:
        """Wait for the due time, doing what other threads submit, and listening; False when stopping."""
        while not self._stopping:
            if self._executor.run():
                continue
            remaining_s = (due_ns - time.monotonic_ns()) / 1e9
            if remaining_s <= 0:
                return True
            if not self._listen(time.monotonic() + remaining_s):
                select.select([self._executor.wake_fd], [], [], remaining_s)
        return False

    def _log_once(self, failure: str, error: Exception | str) -> None:
        """Every failed poll is a record; the log tells the first of a row."""
        if failure != self._failing:
            log.warning("%s: %s", self.path, error)
        self._failing = failure


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
        self._session = Session(reached, driver, self._executor.wake_fd, on_unsolicited, secret, gnss)

    def reset(self, step: str, timeout: float) -> str:
        return self._executor.ask(lambda: reset(self._session, step), timeout)

    def card(self, timeout: float) -> Card | None:
        return self._executor.ask(self._card, timeout)

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

    def _ask(self) -> ModemAnswer:
        if self._prepare():
            self._began_ns = time.monotonic_ns()
            self._stuck.forget()
        answers = self._session.ask_all(self._period_s * DEADLINE_SHARE)
        ended_ns, driver = time.monotonic_ns(), self._session.driver
        reading = None if driver is None else self._in_range(driver.decode(answers, self._session.identity))
        failure = poll_failure(driver, answers, reading)
        return ModemAnswer(ended_ns, reading, failure, tuple(answer.lines for answer in answers))

    def _who(self) -> tuple[str | None, str | None]:
        return self._session.driver.name if self._session.driver else None, self._session.identity.model or None
