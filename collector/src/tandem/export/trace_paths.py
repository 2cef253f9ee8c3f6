"""The gateway over those paths that may carry traces now: who asks says which, request by request. For one thread."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Mapping
from functools import partial

from tandem.export.gateway import Answer, GatewayAddress, Link, LinkError, Streamed
from tandem.export.outgoing import paced
from tandem.export.paths import PathChoice
from tandem.export.sending import Later
from tandem.export.tcp_counts import TcpCounts


class TracePaths:
    """``interfaces`` as in ``AnyPath``; ``rate_bit_per_s``: at most, on each path, None: no limit."""

    def __init__(
        self,
        address: GatewayAddress,
        interfaces: Mapping[str, str | None],
        rate_bit_per_s: int | None,
        chance: random.Random | None = None,
    ) -> None:
        tune = paced(rate_bit_per_s)
        self._links = {path: Link(path, partial(interfaces.get, path), address, tune=tune) for path in interfaces}
        self._choice = PathChoice(list(interfaces), chance or random.Random())
        self._reasons: dict[str, str] = {}

    def choose(self, allowed: Collection[str]) -> str:
        """The path to take now; Later while all that are allowed are held back after a failure."""
        path = self._choice.next(time.monotonic(), allowed)
        if path is None:
            reasons = [f"{name}: {why}" for name, why in self._reasons.items() if name in allowed]
            raise Later("; ".join(reasons) or "no path works", self._choice.wait_s(time.monotonic(), allowed))
        return path

    def ask(self, path: str, method: str, url: str, content: bytes | Streamed, headers: dict[str, str]) -> Answer:
        """Over this path; Later when no answer comes, after which the path is held back for a while."""
        try:
            answer = self._links[path].ask(method, url, content, headers)
        except LinkError as error:
            self._reasons[path] = str(error)
            self._choice.failed(path, time.monotonic())
            raise Later(f"{path}: {error}", 0.0) from error
        self._reasons.pop(path, None)
        self._choice.worked(path)
        return answer

    def count(self, path: str) -> TcpCounts:
        """What went over that path since the start, up to now. By the thread that asks."""
        self._links[path].count()
        return self._links[path].moved

    def moved(self) -> dict[str, TcpCounts]:
        """By path, as of the last request. From any thread."""
        return {path: link.moved for path, link in self._links.items()}

    def abort(self) -> None:
        """End a request that waits in another thread, and every later one."""
        for link in self._links.values():
            link.abort()

    def close(self) -> None:
        """Close the connections; the next request opens one again."""
        for link in self._links.values():
            link.close()
