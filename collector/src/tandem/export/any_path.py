"""The gateway over whichever path works. One for each thread that asks."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from functools import partial

from tandem.export.gateway import Answer, CertificateTimeError, GatewayAddress, Link, LinkError
from tandem.export.paths import PathChoice
from tandem.export.sending import CLOCK_WAIT_S, Later


class AnyPath:
    """``interfaces``: interface by path, in the order of preference (None: as the routes have it), asked anew for each connection."""

    def __init__(
        self, address: GatewayAddress, interfaces: Mapping[str, str | None], chance: random.Random | None = None
    ) -> None:
        self._links = {path: Link(path, partial(interfaces.get, path), address) for path in interfaces}
        self._choice = PathChoice(list(interfaces), chance or random.Random())
        self._reasons = "no path works"
        self.answered: str | None = None
        """The path over which the last answer came."""

    def ask(
        self,
        method: str,
        url: str,
        content: bytes,
        headers: dict[str, str],
        ended: Callable[[], bool] = lambda: False,
    ) -> Answer:
        """Over the path that last worked, then over the others; Later when none brings an answer, or when ``ended`` says so."""
        reasons = []
        while (path := self._choice.next(time.monotonic())) is not None:
            if ended():
                raise Later("stopped", 0.0)
            try:
                answer = self._links[path].ask(method, url, content, headers)
            except CertificateTimeError as error:
                raise Later(str(error), CLOCK_WAIT_S) from error  # the path is as good as before
            except LinkError as error:
                reasons.append(f"{path}: {error}")
                self._choice.failed(path, time.monotonic())
                continue
            self._choice.worked(path)
            self.answered = path
            return answer
        self._reasons = "; ".join(reasons) or self._reasons
        raise Later(self._reasons, self._choice.wait_s(time.monotonic()))

    def control_bytes(self) -> dict[str, int]:
        """Bytes moved by path since the start."""
        return {path: link.control_bytes for path, link in self._links.items()}

    def abort(self) -> None:
        """End a request that waits in another thread, and every later one."""
        for link in self._links.values():
            link.abort()

    def close(self) -> None:
        """Close the connections; the next request opens one again."""
        for link in self._links.values():
            link.close()
