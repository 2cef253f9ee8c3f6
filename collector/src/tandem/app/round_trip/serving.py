"""Who answers: a session at the endpoint, opened anew in time, and the server's address as each path finds it.

What asks the network does so in a thread of its own that lives as long as that takes: questions go out at their instants meanwhile.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tandem.experiment.control import Control, ControlError, Session, describe
from tandem.experiment.latency.reflector import Reflector, reflector_of
from tandem.experiment.parameters import CommonParameters, ParameterError
from tandem.mptcp import sockets

log = logging.getLogger(__name__)

SILENT_NS = 3_000_000_000
"""No answer over any path for so long: perhaps the server forgot the session."""

_AGE_NS, _LIFE_NS = 3000 * 10**9, 3550 * 10**9
"""When a session is followed by another, and when it is used no more, of an hour that the endpoint grants. What is under way when the
next takes over is still answered."""

_PAUSE_NS, _LONG_PAUSE_NS, _SOON_NS = 3 * 10**9, 60 * 10**9, 3600 * 10**9
_FAREWELL_S = 1.0
_IDLE_S = 120

Leaving = Mapping[str, tuple[str, str | None]]
"""By path that is up, its interface and own address."""


@dataclass(frozen=True, slots=True)
class Served:
    """An open session. ``idle_ns``: half of the time after which the server forgets it when nothing comes."""

    session: Session
    reflector: Reflector
    opened_ns: int
    idle_ns: int


class Serving:
    """``asked`` makes what a session is asked with, of the paths as they are now: ParameterError where it cannot; ``budget_bytes``: of one
    session. All but ``_renew`` by one thread."""

    def __init__(self, asked: Callable[[Leaving], CommonParameters], budget_bytes: int) -> None:
        self._make, self._budget_bytes = asked, budget_bytes
        self.served: Served | None = None
        self.earlier: Served | None = None
        """The one before, whose answers may still be under way."""
        self._forgotten_ns: int | None = None
        self._found: dict[str, tuple[tuple[str, str | None], tuple[str, int]]] = {}
        self._last_asked_ns = self._last_heard_ns = 0
        self._lacking_since_ns: int | None = None
        self._not_before_ns = 0
        self._worker: threading.Thread | None = None
        self._trouble = ""

    def usable(self, now_ns: int) -> Served | None:
        """The session to ask in now; None while there is none that the server surely knows."""
        served = self.served
        if served is None or now_ns - served.opened_ns > _LIFE_NS:
            return None
        return served if now_ns - max(self._last_asked_ns, served.opened_ns) <= served.idle_ns else None

    def server(self, path: str) -> tuple[str, int] | None:
        """Where the reflector is reached over ``path``; None while that is not known."""
        found, served = self._found.get(path), self.served
        return None if found is None or served is None else (found[1][0], served.reflector.port)

    def asked(self, now_ns: int) -> None:
        """A question went out."""
        self._last_asked_ns = now_ns

    def heard(self, now_ns: int) -> None:
        """An answer came."""
        self._last_heard_ns = now_ns

    def forgotten_ns(self) -> int | None:
        """When the session before this one was followed by it, if the server said that it did not know it: once."""
        was, self._forgotten_ns = self._forgotten_ns, None
        return was

    def look(self, now_ns: int, leaving: Leaving, oldest_ns: int | None) -> None:
        """Have done what is due; returns at once. ``oldest_ns``: when the oldest question that waits for an answer went out."""
        served, silent = self.served, False
        if served is not None and oldest_ns is not None:
            since_ns = max(oldest_ns, served.opened_ns)
            silent = self._last_heard_ns < since_ns and now_ns - since_ns > SILENT_NS
        open_anew = (
            self.usable(now_ns) is None or silent or (served is not None and now_ns - served.opened_ns > _AGE_NS)
        )
        unknown = {path for path, way in leaving.items() if path not in self._found or self._found[path][0] != way}
        if not leaving or not (open_anew or unknown):
            self._lacking_since_ns = None
            return
        if self._lacking_since_ns is None:
            self._lacking_since_ns = now_ns
        if now_ns < self._not_before_ns or (self._worker is not None and self._worker.is_alive()):
            return
        self._worker = threading.Thread(
            target=self._renew, args=(dict(leaving), open_anew, silent), name="round-trips-session", daemon=True
        )
        self._worker.start()

    def _renew(self, leaving: Leaving, open_anew: bool, silent: bool) -> None:
        pause_ns, told = 0, ""
        try:
            asked = self._make(leaving)
            if open_anew:
                pause_ns = self._open(Control(asked), silent)
            for path, way in leaving.items():
                try:
                    self._found[path] = way, sockets.resolve(asked.measurement.host, asked.measurement.port, way[0])
                except OSError as error:  # of this path alone
                    pause_ns, told = _PAUSE_NS, f"{path}: {describe(error)}"
        except (ControlError, ParameterError) as error:
            again = isinstance(error, ControlError) and bool(error.failure["retry"])
            told = str(error.failure["reason"]) if isinstance(error, ControlError) else str(error)
            lacking_ns = time.monotonic_ns() - (self._lacking_since_ns or time.monotonic_ns())
            pause_ns = _PAUSE_NS if again and lacking_ns < _SOON_NS else _LONG_PAUSE_NS
        if told and told != self._trouble:
            log.warning("round trips: %s", told)
        self._trouble = told
        self._not_before_ns = time.monotonic_ns() + pause_ns

    def _open(self, control: Control, silent: bool) -> int:
        """A new session; how long to wait before the next, ns. Where all was silent the old one is ended: if the server has none, its
        questions were nobody's. Not before the new one serves, so that what is under way meets a session; and not when the old one was
        heard meanwhile."""
        since_ns = self._last_heard_ns
        session = control.open("any", {}, budget_bytes=self._budget_bytes)
        told = session.answer.get("expires_s")
        idle_s = told if isinstance(told, int | float) and not isinstance(told, bool) and told > 0 else _IDLE_S
        made = Served(session, reflector_of(session), time.monotonic_ns(), int(idle_s * 1e9 / 2))
        self.earlier, self.served = self.served, made
        if not silent or self.earlier is None or self._last_heard_ns != since_ns:
            return 0
        status, _ = control.end(self.earlier.session, _FAREWELL_S * 3)
        if status == 404:
            self._forgotten_ns = made.opened_ns
            return 0
        return _LONG_PAUSE_NS  # it knew the session: what is silent is the way of UDP, and stays so with another

    def close(self, leaving: Leaving) -> None:
        """End the session, where the server was heard of just now."""
        served = self.served
        if served is not None and leaving and time.monotonic_ns() - self._last_heard_ns < SILENT_NS:
            try:
                Control(self._make(leaving)).close(served.session, _FAREWELL_S)
            except (ControlError, ParameterError) as error:
                log.info("round trips: the session is left to lapse: %s", error)
