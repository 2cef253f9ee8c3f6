"""The thread that empties the spool into the gateway."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tandem.export.any_path import AnyPath
from tandem.export.gateway import Answer, GatewayAddress
from tandem.export.lines import UtcOf, encode_items
from tandem.export.manifests import PendingManifests
from tandem.export.sending import Later, not_now, send
from tandem.spool import Batch, SpoolFullError

log = logging.getLogger(__name__)

LINES = 1000
HELD_LINES = 200
"""While what is not urgent is held off: a second's records at the busiest, so that people still see now."""
PERIOD_S = 1.0
_TELL_AGAIN_S = 300.0


class Source(Protocol):
    """What is needed of the spool."""

    def take(self, limit: int, *, newest_only: bool = False) -> Batch | None:
        """See ``Spool``."""
        ...

    def acknowledge(self, batch: Batch) -> None:
        """See ``Spool``."""
        ...

    def reject(self, batch: Batch, seq: int, reason: str) -> None:
        """See ``Spool``."""
        ...

    def release(self, batch: Batch) -> None:
        """See ``Spool``."""
        ...


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
        spool: Source,
        manifests: PendingManifests,
        address: GatewayAddress,
        interfaces: Mapping[str, str | None],
        probe: str,
        utc_of: UtcOf,
        *,
        period_s: float = PERIOD_S,
        chance: random.Random | None = None,
    ) -> None:
        self._spool, self._manifests, self._probe, self._utc_of, self._period_s = (
            spool,
            manifests,
            probe,
            utc_of,
            period_s,
        )
        self.held: Callable[[], bool] = lambda: False
        """Whether a backlog has to wait, for a measurement that it would disturb: then the newest records go, once a period."""
        self._gateway = AnyPath(address, interfaces, chance)
        self._wake = threading.Event()
        self._deadline_s: float | None = None
        self._trouble: str | None = None
        self._told_s = 0.0
        self._emptied = False
        self._thread = threading.Thread(target=self._run, name="exporter", daemon=True)

    @property
    def state(self) -> ExportState:
        """For the status."""
        return ExportState(self._gateway.answered, self._trouble)

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
            wait_s = self._period_s
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
                self._emptied = not more and self._trouble is None
                if self._emptied or left_s <= 0:
                    break
                wait_s = min(wait_s, left_s, 1.0)
                self._wake.clear()
            if not more:
                self._wake.wait(wait_s)
        self._gateway.close()

    def _step(self) -> bool:
        """Send the manifests that wait and one batch; whether there may be more. Raises Later."""
        later: Later | None = None
        try:
            for run in self._manifests.waiting():
                self._send_manifest(run)
        except Later as refused:
            later = refused  # records do not wait for the ledger
        more = self._send_batch()
        if later is not None:
            raise later
        return more

    def _send_batch(self) -> bool:
        held = self._deadline_s is None and self.held()
        batch = self._spool.take(HELD_LINES if held else LINES, newest_only=held)
        if batch is None:
            return False
        try:
            encoded = encode_items(batch.items, self._probe, self._utc_of)
            if encoded.untimed:
                raise Later("the clock is not set yet: records wait for their time", 1.0)
            for seq, reason in encoded.refused:
                self._spool.reject(batch, seq, reason)
            send(encoded.lines, self._ask, lambda seq, reason: self._spool.reject(batch, seq, reason))
        except BaseException:
            self._spool.release(batch)
            raise
        self._spool.acknowledge(batch)
        return not held and (self._deadline_s is not None or len(batch.items) > LINES // 2)

    def _send_manifest(self, run: str) -> None:
        content = self._manifests.read(run)
        if content is None:
            log.warning("the manifest of run %s is gone; it is not sent", run)
            self._manifests.done(run)
            return
        answer = self._ask("PUT", f"/v1/runs/{run}", content, {"Content-Type": "application/json"})
        if answer.status in (400, 413):
            log.error("the gateway takes no manifest of run %s: %s; it stays on this disk", run, answer.error)
        elif answer.status != 200:
            raise not_now(answer)
        self._manifests.done(run)

    def _ask(self, method: str, url: str, content: bytes, headers: dict[str, str]) -> Answer:
        """See ``AnyPath.ask``."""
        return self._gateway.ask(method, url, content, headers, self._overdue)

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
