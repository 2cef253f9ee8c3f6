"""Records and manifests from the spool to the gateway: manifests that wait, records as lines, batches, the thread that sends."""

from __future__ import annotations

import gzip
import json
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tandem.export.clock import Clock, NotYet, Stamp, utc_words
from tandem.export.gateway import CLOCK_WAIT_S, UNKNOWN_WAIT_S, Answer, AnyPath, Ask, GatewayAddress, Later, not_now
from tandem.schema.line_protocol import encode
from tandem.schema.manifest import PLAIN_NAME
from tandem.schema.record import RecordError
from tandem.spool import Batch, Item, Spool, SpoolFullError
from tandem.spool.durable import sync_folder, write_durably


class PendingManifests:
    """One empty file a pending run in ``folder``; the manifest itself is ``runs``/ID.json. For any number of threads."""

    def __init__(self, folder: Path, runs: Path) -> None:
        self._folder, self._runs = folder, runs
        folder.mkdir(parents=True, exist_ok=True)
        self._waiting: set[str] = {p.name for p in folder.iterdir() if PLAIN_NAME.match(p.name)}

    def add(self, run: str) -> None:
        """The manifest of ``run`` lies in its folder: send it. ValueError when that is no id; OSError when the disk is full."""
        if not PLAIN_NAME.match(run):
            raise ValueError(f"{run!r} is no run's id")
        fd = os.open(self._folder / run, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640)
        os.close(fd)
        sync_folder(self._folder)
        self._waiting.add(run)

    def waiting(self) -> list[str]:
        return sorted(self._waiting)

    def read(self, run: str) -> bytes | None:
        """The manifest, None when it is gone."""
        try:
            return (self._runs / f"{run}.json").read_bytes()
        except FileNotFoundError:
            return None

    def rewrite(self, run: str, content: bytes) -> None:
        """Keep ``content`` as the manifest of ``run``, durable on return; OSError when the disk takes nothing."""
        if content != self.read(run):
            write_durably(self._runs / f"{run}.json", content)

    def done(self, run: str) -> None:
        """The gateway has it, or will never take it."""
        (self._folder / run).unlink(missing_ok=True)
        self._waiting.discard(run)


def timed(content: bytes, stamp: Callable[[str, int], Stamp]) -> bytes:
    """The manifest with the times that its records get: UTC of its beginning and end by the map of its boot (``clock.Clock.stamp``).
    NotYet while there is none; as it is when nobody will ever know, or it has none to be computed from."""
    try:
        manifest = json.loads(content)
        boot, started, ended = manifest["boot"], manifest["started_monotonic_ns"], manifest["ended_monotonic_ns"]
        if not (isinstance(boot, str) and type(started) is int and type(ended) is int):
            return content
        first, last = stamp(boot, started), stamp(boot, ended)
    except (ValueError, KeyError, TypeError, RecursionError):
        return content
    if (manifest.get("started_utc_ns"), manifest.get("ended_utc_ns")) == (first.utc_ns, last.utc_ns):
        return content
    manifest |= {"started_utc_ns": first.utc_ns, "ended_utc_ns": last.utc_ns}
    return (json.dumps(manifest, indent=1, allow_nan=False) + "\n").encode()


# ---------------------------------------------------------------------------------------------------------------------
# Records to the gateway: numbered records become lines, a batch of lines goes up whatever the gateway answers, and
# manifests beside them; nothing while a clock is doubtful.


log = logging.getLogger(__name__)

LINES = 1000
HELD_LINES = 200
"""While what is not urgent is held off: a second's records at the busiest, so that people still see now."""
NO_TIME = "the clock is not synchronised: records wait for their time; hint: see tandem status"
HEADERS = {"Content-Type": "text/plain; charset=utf-8", "Content-Encoding": "gzip"}

DOUBT_S = 60.0
"""Our clock and the server's may differ by so much, beside our own error: of what both say a second at the most is rounding, so
more is a fault of one of them. Well inside the window that the gateway takes (600 s ahead)."""

ROUNDING_S = 1.0
"""HTTP tells whole seconds (RFC 9110, 5.6.7), and some servers note the time once a second."""

FRESH_S = 600.0
"""So long a comparison holds, as long as our map is the same."""

StampOf = Callable[[str, int], Stamp]
"""From boot and CLOCK_MONOTONIC ns to a time: ``clock.Clock.stamp``."""

TELL_ERROR_MS = 100.0
"""A time that may be further off than this is reported with its error in the record itself; the others' is in the ``clock`` records."""


@dataclass(frozen=True, slots=True)
class Line:
    """One record as text."""

    seq: int
    text: str


def encode_items(items: Sequence[Item], probe: str, stamp: StampOf, reject: Callable[[int, str], None]) -> list[Line]:
    """``items`` as lines with the common tags. A record gets its time here, by the map of its boot; NotYet when one has none. ``reject``
    is called with number and reason for each that can be no line."""
    lines: list[Line] = []
    for item in items:
        record = item.record
        try:
            when = stamp(item.boot, record.monotonic_ns)
            error_ms = when.error_ms if when.error_ms is not None and when.error_ms > TELL_ERROR_MS else None
            tags = {"probe": probe, "boot": item.boot}
            lines.append(Line(item.seq, encode(record, tags, item.seq, when.utc_ns, error_ms)))
        except (RecordError, KeyError, ValueError, TypeError) as error:
            # A spool from another version of the schema: one record must not hold up the others.
            reject(item.seq, f"{record.measurement} cannot be a line: {error}")
    return lines


def body(lines: Sequence[Line]) -> bytes:
    """The lines, gzipped. Level 6 halves what level 1 leaves of the uplink's bytes for 3 ms a thousand lines on a laptop."""
    return gzip.compress("\n".join(line.text for line in lines).encode(), 6, mtime=0)


def send(lines: Sequence[Line], ask: Ask, reject: Callable[[int, str], None]) -> int:
    """Send all ``lines``; ``reject`` is called with number and reason for each that is not wanted. How many were accepted.

    Later when it has to be tried again as a whole: what was accepted until then is accepted again, which changes nothing.
    """
    accepted = 0
    waiting = [tuple(lines)] if lines else []
    while waiting:
        part = waiting.pop()
        answer = ask("POST", "/v1/records", body(part), HEADERS)
        if answer.status == 200:
            refused = _refused(answer.content, len(part))
            for number, reason in refused.items():
                reject(part[number].seq, reason)
            accepted += len(part) - len(refused)
        elif answer.status in (400, 413):
            if len(part) == 1:
                reject(part[0].seq, answer.error)
            else:
                middle = len(part) // 2
                waiting += [part[middle:], part[:middle]]
        else:
            raise not_now(answer)
    return accepted


def _refused(content: Any, sent: int) -> dict[int, str]:  # noqa: ANN401  JSON from outside
    """Line and reason of the rejected; Later unless the answer settles exactly the lines sent."""
    odd = Later("an answer that does not settle the batch", UNKNOWN_WAIT_S)
    if not isinstance(content, dict) or not isinstance(content.get("rejected"), list):
        raise odd
    refused: dict[int, str] = {}
    for entry in content["rejected"]:
        if not isinstance(entry, dict) or type(entry.get("line")) is not int or not 0 <= entry["line"] < sent:
            raise odd
        refused[entry["line"]] = str(entry.get("reason", "no reason given"))[:500]
    if content.get("accepted") != sent - len(refused):
        raise odd
    return refused


class Comparison:
    """Our clock against the ``Date`` of the server's answers. Used by one thread. ``now_s``: of any steady clock."""

    def __init__(self) -> None:
        self._at_s: float | None = None
        self._key: object = None
        self.doubt: str | None = None
        """Why one of the two clocks must be wrong; None while they agree."""

    def fresh(self, now_s: float, key: object) -> bool:
        """Whether the last comparison still says something."""
        return self._at_s is not None and self._key == key and now_s - self._at_s < FRESH_S

    def saw(
        self, date_utc_s: float | None, sent_utc_ns: int | None, answered_utc_ns: int | None, now_s: float, key: object
    ) -> None:
        """An answer came: its ``Date`` (None: it has none, and says nothing), and our clock when it was asked for and when it was there."""
        if sent_utc_ns is None or answered_utc_ns is None:
            return
        self._at_s, self._key, self.doubt = now_s, key, None
        if date_utc_s is None:
            return
        behind_s = sent_utc_ns / 1e9 - ROUNDING_S - date_utc_s
        ahead_s = date_utc_s - answered_utc_ns / 1e9
        if max(behind_s, ahead_s) > DOUBT_S:
            ours, theirs = utc_words(answered_utc_ns), utc_words(round(date_utc_s * 1e9))
            self.doubt = (
                f"this probe's clock says {ours}, the server's {theirs}: one of them is wrong; records wait until they agree; "
                "hint: see tandem status, chronyc tracking, and the server's clock"
            )


class Batches:
    """Used by one thread. ``now_s``: any steady clock."""

    def __init__(
        self,
        spool: Spool,
        manifests: PendingManifests,
        probe: str,
        times: Clock,
        ask: Ask,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spool, self._manifests, self._probe, self._times = spool, manifests, probe, times
        self._plain_ask, self._now_s = ask, now_s
        self._comparison = Comparison()
        self.holding = False
        """Whether records were passed over in the last step because they have no time yet."""

    def step(self, *, newest_only: bool = False) -> int:
        """Send what waits: the manifests and a batch, whose records are counted. Raises Later, with everything kept."""
        later: Later | None = None
        held = self._times.held()
        self.holding = bool(held)
        try:
            for run in self._manifests.waiting():
                self._send_manifest(run)
        except Later as refused:
            later = refused  # records do not wait for the ledger
        sent = self._send_batch(newest_only, held)
        if later is not None:
            raise later
        return sent

    def _send_batch(self, newest_only: bool, held: Sequence[tuple[int, int | None]]) -> int:
        batch = self._spool.take(HELD_LINES if newest_only else LINES, newest_only=newest_only, held=held)
        if batch is None:
            return 0
        try:
            self._compare()
            lines = encode_items(batch.items, self._probe, self._times.stamp, partial(self._spool.reject, batch))
            self._times.keep()  # before they go out: sent again after a power cut, they must have the same times
            send(lines, self._ask, partial(self._rejected, batch))
        except NotYet as untimed:  # held records became known after these were taken
            self._spool.release(batch)
            raise Later(NO_TIME, 1.0) from untimed
        except BaseException:
            self._spool.release(batch)
            raise
        self._spool.acknowledge(batch)
        return len(batch.items)

    def _rejected(self, batch: Batch, seq: int, reason: str) -> None:
        """The gateway does not take a line: it is to blame, unless one of the clocks is."""
        if self._comparison.doubt is not None:
            raise Later(self._comparison.doubt, CLOCK_WAIT_S)
        self._spool.reject(batch, seq, reason)

    def _compare(self) -> None:
        """Later when the server's clock and this one are known not to agree; it is asked when that is not known."""
        times = self._times
        if times.now_ns() is None:
            return  # what may go now is of earlier boots, by maps that were compared then
        if not self._comparison.fresh(self._now_s(), times.map_key()) or self._comparison.doubt is not None:
            self._ask("GET", "/v1/health", b"", {})  # whatever it answers, it says when
        if self._comparison.doubt is not None:
            raise Later(self._comparison.doubt, CLOCK_WAIT_S)

    def _send_manifest(self, run: str) -> None:
        content = self._manifests.read(run)
        if content is None:
            log.warning("the manifest of run %s is gone; it is not sent", run)
            self._manifests.done(run)
            return
        try:
            self._compare()
            content = timed(content, self._times.stamp)
        except NotYet:
            self.holding = True  # as its records
            return
        self._times.keep()
        self._manifests.rewrite(run, content)
        answer = self._ask("PUT", f"/v1/runs/{run}", content, {"Content-Type": "application/json"})
        if answer.status in (400, 413):
            log.error("the gateway takes no manifest of run %s: %s; it stays on this disk", run, answer.error)
        elif answer.status != 200:
            raise not_now(answer)
        self._manifests.done(run)

    def _ask(self, method: str, url: str, content: bytes, headers: dict[str, str]) -> Answer:
        """Ask, and note what the answer says of the time."""
        times = self._times
        key, requested_ns = times.map_key(), times.now_ns()
        answer = self._plain_ask(method, url, content, headers)
        self._comparison.saw(answer.date_utc_s, requested_ns, times.now_ns(), self._now_s(), key)
        times.doubted(self._comparison.doubt is not None)
        return answer


# ---------------------------------------------------------------------------------------------------------------------
# The thread that empties the spool into the gateway.


PERIOD_S = 1.0
_TELL_AGAIN_S = 300.0


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
        times: Clock,
        *,
        period_s: float = PERIOD_S,
        chance: random.Random | None = None,
    ) -> None:
        self._period_s, self._manifests = period_s, manifests
        self.held: Callable[[], bool] = lambda: False
        """Whether a backlog has to wait, for a measurement that it would disturb: then the newest records go, once a period."""
        self._gateway = AnyPath(address, interfaces, chance, ended=self._overdue)
        self.payload_bytes = self._gateway.payload_bytes
        self._batches = Batches(spool, manifests, probe, times, self._gateway.ask)
        self._wake = threading.Event()
        self._deadline_s: float | None = None
        self._trouble: str | None = None
        self._logged_s = 0.0
        self._emptied = False
        self._thread = threading.Thread(target=self._run, name="exporter", daemon=True)

    @property
    def path(self) -> str | None:
        """Over which the last answer came."""
        return self._gateway.answered

    @property
    def trouble(self) -> str | None:
        """Why nothing is sent now, None while all is well."""
        return self._trouble or (NO_TIME if self._batches.holding else None)

    @property
    def manifests_waiting(self) -> int:
        return len(self._manifests.waiting())

    def start(self) -> None:
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
        if self._trouble is None or now - self._logged_s > _TELL_AGAIN_S:
            log.warning("records wait: %s", trouble)
            self._logged_s = now
        self._trouble = trouble

    def _clear(self) -> None:
        if self._trouble is not None:
            log.warning("records are sent again, over path %s", self._gateway.answered)
        self._trouble = None
