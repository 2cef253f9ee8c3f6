"""The gateway over whichever path works, or over those that the caller allows: the one that last worked first, the others wait for
their turn after a failure."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from tandem.export.gateway import (
    CLOCK_WAIT_S,
    Answer,
    CertificateTimeError,
    GatewayAddress,
    Later,
    Link,
    LinkError,
    Outgoing,
    TcpCounts,
    paced,
)

FIRST_S, LONGEST_S = 1.0, 60.0


@dataclass(slots=True)
class _State:
    failures: int = 0
    not_before_s: float = 0.0


class PathChoice:
    """``names`` in the order of preference at the start. Times are seconds of any steady clock."""

    def __init__(self, names: Sequence[str], chance: random.Random) -> None:
        self._chance = chance
        self._states = {name: _State() for name in names}
        self._preferred = names[0]

    def next(self, now_s: float, among: Collection[str] | None = None) -> str | None:
        """The path to try now, None while all of them are held back; of ``among`` only, if given."""
        order = sorted(self._states, key=lambda name: (name != self._preferred, self._states[name].failures))
        allowed = self._states if among is None else among
        return next((n for n in order if n in allowed and self._states[n].not_before_s <= now_s), None)

    def wait_s(self, now_s: float, among: Collection[str] | None = None) -> float:
        """How long until ``next`` has one."""
        allowed = self._states if among is None else among
        return max(0.0, min((s.not_before_s for n, s in self._states.items() if n in allowed), default=now_s) - now_s)

    def worked(self, name: str) -> None:
        """The path brought an answer."""
        self._states[name] = _State()
        self._preferred = name

    def failed(self, name: str, now_s: float) -> None:
        """The path brought none: it waits, twice as long each time, with jitter so that probes do not march in step."""
        state = self._states[name]
        state.failures += 1
        wait = min(LONGEST_S, FIRST_S * 2 ** min(state.failures - 1, 10))
        state.not_before_s = now_s + wait * self._chance.uniform(0.5, 1.0)


class AnyPath:
    """One for each thread that asks. ``interfaces``: interface by path, in the order of preference (None: as the routes have it), asked
    anew for each connection; ``rate_bit_per_s``: at most, on each path, None: no limit; ``ended``: whether ``ask`` is to try no more."""

    def __init__(
        self,
        address: GatewayAddress,
        interfaces: Mapping[str, str | None],
        chance: random.Random | None = None,
        rate_bit_per_s: int | None = None,
        ended: Callable[[], bool] = lambda: False,
    ) -> None:
        self._ended = ended
        tune = paced(rate_bit_per_s)
        self._links = {path: Link(path, partial(interfaces.get, path), address, tune=tune) for path in interfaces}
        self._choice = PathChoice(list(interfaces), chance or random.Random())
        self._reasons: dict[str, str] = {}
        self.answered: str | None = None
        """The path over which the last answer came."""

    def ask(self, method: str, url: str, content: bytes, headers: dict[str, str]) -> Answer:
        """Over the path that last worked, then over the others; Later when none brings an answer, or when ``ended`` says so."""
        while True:
            path = self.choose(self._links)
            if self._ended():
                raise Later("stopped", 0.0)
            try:
                return self._ask(path, method, url, content, headers)
            except LinkError:
                continue

    def choose(self, allowed: Collection[str]) -> str:
        """The path to take now; Later while all that are allowed are held back after a failure."""
        now_s = time.monotonic()
        path = self._choice.next(now_s, allowed)
        if path is None:
            reasons = [f"{name}: {why}" for name, why in self._reasons.items() if name in allowed]
            raise Later("; ".join(reasons) or "no path works", self._choice.wait_s(now_s, allowed))
        return path

    def ask_over(self, path: str, method: str, url: str, content: bytes | Outgoing, headers: dict[str, str]) -> Answer:
        """Over this path; Later (0 s) when no answer comes, after which the path is held back for a while."""
        try:
            return self._ask(path, method, url, content, headers)
        except LinkError as error:
            raise Later(f"{path}: {error}", 0.0) from error

    def _ask(self, path: str, method: str, url: str, content: bytes | Outgoing, headers: dict[str, str]) -> Answer:
        try:
            answer = self._links[path].ask(method, url, content, headers)
        except CertificateTimeError as error:
            raise Later(str(error), CLOCK_WAIT_S) from error  # the path is as good as before
        except LinkError as error:
            self._reasons[path] = str(error)
            self._choice.failed(path, time.monotonic())
            raise
        self._reasons.pop(path, None)
        self._choice.worked(path)
        self.answered = path
        return answer

    def count(self, path: str) -> TcpCounts:
        """What went over that path since the start, up to now. By the thread that asks."""
        self._links[path].count()
        return self._links[path].moved

    def moved(self) -> dict[str, TcpCounts]:
        """By path, as of the last request. From any thread."""
        return {path: link.moved for path, link in self._links.items()}

    def payload_bytes(self) -> dict[str, int]:
        """TCP payload by path since the start, both ways, TLS included."""
        return {path: link.moved.payload_bytes for path, link in self._links.items()}

    def abort(self) -> None:
        """End a request that waits in another thread, and every later one."""
        for link in self._links.values():
            link.abort()

    def close(self) -> None:
        """Close the connections; the next request opens one again."""
        for link in self._links.values():
            link.close()
