"""The thread that empties the spool into the gateway."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tandem.export.gateway import GatewayAddress, Later
from tandem.export.manifests import PendingManifests
from tandem.export.paths import AnyPath
from tandem.export.records import LINES, NO_TIME, Batches
from tandem.export.times import Times
from tandem.spool import Spool, SpoolFullError

log = logging.getLogger(__name__)

PERIOD_S = 1.0
_TELL_AGAIN_S = 300.0


@dataclass(frozen=True, slots=True)
class ExportState:
    """``path``: over which the last answer came; ``trouble``: why nothing is sent now, None while all is well."""

    path: str | None
    trouble: str | None


class Exporter:
    """Sends while there is something, about once a second, and without a pause while there is a backlog.

    ``interfaces``: interface by path, in the order of preference (None: as the routes have it), asked anew for each connection. Its
    thread never holds anything that a poller waits for: it only takes from the spool and gives back.
    """

    def __init__(
        self,
        spool: Spool,
        manifests: PendingManifests,
        address: GatewayAddress,
        interfaces: Mapping[str, str | None],
        probe: str,
        times: Times,
        *,
        period_s: float = PERIOD_S,
        chance: random.Random | None = None,
    ) -> None:
        self._period_s, self._manifests = period_s, manifests
        self.held: Callable[[], bool] = lambda: False
        """Whether a backlog has to wait, for a measurement that it would disturb: then the newest records go, once a period."""
        self._gateway = AnyPath(address, interfaces, chance, ended=self._overdue)
        self._batches = Batches(spool, manifests, probe, times, self._gateway.ask)
        self._wake = threading.Event()
        self._deadline_s: float | None = None
        self._trouble: str | None = None
        self._told_s = 0.0
        self._emptied = False
        self._thread = threading.Thread(target=self._run, name="exporter", daemon=True)

    @property
    def state(self) -> ExportState:
        """For the status."""
        return ExportState(self._gateway.answered, self._trouble or (NO_TIME if self._batches.holding else None))

    @property
    def manifests_waiting(self) -> int:
        """Manifests that the gateway does not have yet."""
        return len(self._manifests.waiting())

    def control_bytes(self) -> dict[str, int]:
        """Bytes moved by path since the start."""
        return self._gateway.control_bytes()

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self, drain_s: float) -> bool:
        """Send what is left, at most ``drain_s`` seconds, and end. True when nothing was left."""
        self._deadline_s = time.monotonic() + drain_s
        self._wake.set()
        if self._thread.ident is None:
            return False
        self._thread.join(drain_s + 0.5)
        self._gateway.abort()  # a request that still waits for its answer ends here
        self._thread.join()
        return self._emptied

    def _run(self) -> None:
        while True:
            wait_s, ending = self._period_s, self._deadline_s is not None
            try:
                more = self._step()
                self._clear()
            except Later as later:
                more, wait_s = False, later.wait_s
                self._tell(later.reason)
            except SpoolFullError as error:
                more = False
                self._tell(str(error))
            except Exception:
                # Measuring does not depend on sending: say what happened and go on.
                log.exception("export failed; trying again")
                more, wait_s, self._trouble = False, 5.0, "export failed, see the log"
            deadline_s = self._deadline_s
            if deadline_s is not None:
                left_s = deadline_s - time.monotonic()
                done = not more and self._trouble is None
                self._emptied = done and not self._batches.holding
                if self._emptied or left_s <= 0 or (done and ending):  # nobody waits here for a clock
                    break
                wait_s = wait_s if ending else 0.0
                wait_s = min(wait_s, left_s, 1.0)
                self._wake.clear()
            if not more:
                self._wake.wait(wait_s)
        self._gateway.close()

    def _step(self) -> bool:
        """Send what waits; whether there may be more. Raises Later."""
        held = self._deadline_s is None and self.held()
        sent = self._batches.step(newest_only=held)
        return not held and sent > (0 if self._deadline_s is not None else LINES // 2)

    def _overdue(self) -> bool:
        return self._deadline_s is not None and time.monotonic() > self._deadline_s

    def _tell(self, trouble: str) -> None:
        now = time.monotonic()
        if self._trouble is None or now - self._told_s > _TELL_AGAIN_S:
            log.warning("records wait: %s", trouble)
            self._told_s = now
        self._trouble = trouble

    def _clear(self) -> None:
        if self._trouble is not None:
            log.warning("records are sent again, over path %s", self._gateway.answered)
        self._trouble = None
