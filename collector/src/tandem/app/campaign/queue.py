"""The campaigns that the server pushed: the probe's own copy of its queue, and who asks the server, begins the one whose turn it is and
reports what became of them.

The copy survives a power cut: ``FOLDER/queue.json`` and for each ``FOLDER/ID.toml``, the file as it came. One that is settled is forgotten
when the server has its report and lists it no more: until then it is known here and not taken again, however often it comes.

Nothing here is needed for measuring: without a network, with a server that says nonsense or a full disk it says so once and tries again.
"""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tandem.app.campaign.driver import BusyError, Campaigns
from tandem.app.campaign.progress import Begun, Origin
from tandem.export import AnyPath
from tandem.export.gateway import Later, not_now
from tandem.schema.campaign import CampaignError
from tandem.schema.campaign_queue import (
    SETTLED,
    Pushed,
    QueueError,
    Report,
    read_pushed,
    read_queue,
    read_report,
    read_text,
)
from tandem.spool.durable import read_or_begin, write_durably

log = logging.getLogger(__name__)

FORMAT = "tandem-campaign-probe-queue/1"
FILE = "queue.json"
_LONGEST_REASON = 1000


@dataclass(slots=True)
class Queued:
    """One of them. ``report``: what the server shall know; ``has_file``: it came with its file; ``reported``: the last report that the
    server has, None before any."""

    pushed: Pushed
    report: Report
    has_file: bool
    reported: dict[str, Any] | None = None

    @property
    def settled(self) -> bool:
        return self.report.state in SETTLED

    @property
    def unreported(self) -> bool:
        """Whether the server does not know it yet."""
        return self.reported != self.report.to_dict()

    def now(self, state: str, reason: str | None = None) -> None:
        line = None if reason is None else "".join(c if c.isprintable() else " " for c in reason)[:_LONGEST_REASON]
        self.report = replace(self.report, state=state, reason=line)

    def count(self, status: Mapping[str, Any]) -> None:
        """How far it is, by the status of campaigns."""
        self.report = replace(self.report, steps=status["steps"], runs=status["runs"])

    def as_json(self) -> dict[str, Any]:
        return {**self.pushed.to_dict(), **self.report.to_dict(), "has_file": self.has_file, "told": self.reported}


class ProbeQueue:
    """All of them, by id. Every call that changes something ends with ``save``; OSError when the disk takes nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._saved: bytes | None = None
        self.known: dict[str, Queued] = {one.pushed.id: one for one in read(folder)}

    def take(self, pushed: Pushed, text: str | None, state: str = "taken", reason: str | None = None) -> None:
        """Keep one that came; ``text``: its file, None when it has none of its own or none is needed."""
        if text is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_durably(self._file(pushed.id), text.encode())
        one = Queued(pushed, Report(state), text is not None)
        one.now(state, reason)
        self.known[pushed.id] = one
        self.save()

    def text(self, push: str) -> str | None:
        """The file as it came; None: one of the probe's own package. CampaignError when it is gone."""
        if not self.known[push].has_file:
            return None
        try:
            return self._file(push).read_bytes().decode()
        except (FileNotFoundError, UnicodeDecodeError) as error:
            # Never another file of that name instead.
            raise CampaignError(f"{self._file(push)}: {error}; hint: push it again") from error

    def next(self) -> Queued | None:
        """The one whose turn it is, under way or not."""
        waiting = [one for one in self.known.values() if not one.settled]
        return min(waiting, key=lambda one: one.pushed.turn, default=None)

    def forget(self, listed: set[str]) -> None:
        """Those that are settled, told, and not ``listed`` by the server any more."""
        for one in [o for o in self.known.values() if o.settled and not o.unreported and o.pushed.id not in listed]:
            del self.known[one.pushed.id]
            self._file(one.pushed.id).unlink(missing_ok=True)
        self.save()

    def save(self) -> None:
        content = json.dumps({"format": FORMAT, "campaigns": [one.as_json() for one in self.known.values()]}).encode()
        if content != self._saved and (self.known or self._saved is not None or (self._folder / FILE).exists()):
            self._folder.mkdir(parents=True, exist_ok=True)
            write_durably(self._folder / FILE, content)
            self._saved = content

    def _file(self, push: str) -> Path:
        return self._folder / f"{push}.toml"


def read(folder: Path) -> list[Queued]:
    """What lies on the disk, as far as it can be read: the server has it still."""
    return read_or_begin(folder / FILE, _parse, list[Queued])


def _parse(content: bytes) -> list[Queued]:
    kept = json.loads(content)
    if kept["format"] != FORMAT:
        raise ValueError(f"format {kept['format']!r}")
    return [_queued(row) for row in kept["campaigns"]]


def _queued(row: Any) -> Queued:  # noqa: ANN401 any JSON value
    pushed, report = read_pushed(row), read_report(row)
    reported, has_file = row.get("told"), row.get("has_file")
    if not isinstance(reported, dict | None) or not isinstance(has_file, bool):
        raise QueueError("'told' is no object, or 'has_file' neither true nor false")
    return Queued(pushed, report, has_file, reported)


# ---------------------------------------------------------------------------------------------------------------------
# The rounds: what ended, what is to be begun, and when it is time, the server.


_AGAIN_S = 60.0
"""After a failure, at most: a kit may be on the network for minutes only."""
_END_S = 10.0
"""It may be asking an experiment or the server's kernel what there is; it changes nothing that a collector's end would need."""


class QueueWatch:
    """``admit``: what is to be begun, or CampaignError; ``ask_every_s``: how often the server is asked. A round has a thread of its own: it
    waits for the network, and asks experiments what they are."""

    def __init__(
        self,
        own: ProbeQueue,
        campaigns: Campaigns,
        gateway: AnyPath,
        admit: Callable[[Pushed, str | None], Begun],
        ask_every_s: float,
    ) -> None:
        self._own, self._campaigns, self._gateway = own, campaigns, gateway
        self._admit, self._ask_every_s = admit, ask_every_s
        self._ended: queue.SimpleQueue[tuple[str, str, dict[str, Any]]] = queue.SimpleQueue()
        self._wake = self._stopping = False
        self._due_s = 0.0
        self._soon = False
        self._trouble: str | None = None
        self._answered_utc_s: float | None = None
        self._shown: list[dict[str, Any]] = []
        self._round: threading.Thread | None = None
        campaigns.on_end = self._on_end
        self._show()

    def tick(self) -> None:
        """Once a second: a round when there is something to do."""
        if self._round is not None and self._round.is_alive():
            return
        if self._wake or self._soon or time.monotonic() >= self._due_s:
            self._wake = False
            self._round = threading.Thread(target=self._turn, name="campaign queue", daemon=True)
            self._round.start()

    def stop(self) -> None:
        """``tick`` is called no more; a request that waits for its answer is given up."""
        self._stopping = True
        self._gateway.abort()
        if self._round is not None:
            self._round.join(_END_S)

    def soon(self) -> None:
        """Ask the server now: a network is back. Also while it is being asked: that may have begun without the network."""
        self._soon = True

    def status(self) -> dict[str, Any]:
        """For people: ``campaigns`` in their turn, when the server answered last, and why it does not."""
        return {"campaigns": self._shown, "answered_utc_s": self._answered_utc_s, "trouble": self._trouble}

    def _on_end(self, origin: Origin | None, state: str, status: dict[str, Any]) -> None:
        if origin is not None:
            self._ended.put((origin.push, state, status))
        self._wake = True

    def _turn(self) -> None:
        try:
            self.turn()
        except OSError as error:
            self._tell(f"{error.filename or 'the disk'}: {error.strerror or error}; hint: free disk space")
            self._due_s = time.monotonic() + _AGAIN_S
        except Exception:
            # Measuring does not depend on the queue: say what happened and go on.
            log.exception("the queue of campaigns failed; trying again")
            self._due_s = time.monotonic() + _AGAIN_S
        self._show()

    def turn(self) -> None:
        """One round: what ended, what is to be begun, and when it is time, the server. OSError when the disk is full."""
        self._begin_next()
        if self._stopping or (time.monotonic() < self._due_s and not self._soon):
            return
        self._soon = False
        try:
            self._ask()
            self._due_s = time.monotonic() + self._ask_every_s
            self._clear()
        except Later as later:
            self._tell(later.reason)
            self._due_s = time.monotonic() + max(later.wait_s, min(self._ask_every_s, _AGAIN_S))
        except QueueError as error:
            self._tell(f"the server's answer cannot be used: {error}")
            self._due_s = time.monotonic() + self._ask_every_s
        finally:
            self._gateway.close()  # the server closes what is idle long before it is asked again
        self._begin_next()

    # --- here ------------------------------------------------------------------------------------------------------------

    def _note_ended(self) -> None:
        while True:
            try:
                push, state, status = self._ended.get_nowait()
            except queue.Empty:
                break
            one = self._own.known.get(push)
            if one is None or one.settled:
                continue
            one.count(status)
            if state == "paused":
                one.now("taken", "paused: it goes on when those before it have ended")
            elif state == "stopped":
                made, of = (sum(counts[k] for counts in one.report.steps.values()) for k in ("made", "of"))
                one.now("refused", f"stopped by a person at the probe after {made} of {of} runs")
            else:
                one.now(state)
            self._due_s = 0.0
        self._own.save()

    def _begin_next(self) -> None:
        """Begin the one whose turn it is, unless a person's is under way; a pushed one of lower priority is paused for it."""
        while not self._stopping:
            under_way = self._campaigns.under_way
            self._note_ended()  # of all that ended before: what the server took back is not begun again
            one = self._own.next()
            if one is None:
                return
            if under_way:
                self._beside(one)
                return
            try:
                self._campaigns.begin(self._admit(one.pushed, self._own.text(one.pushed.id)))
            except BusyError:
                return
            except CampaignError as error:
                self._refuse(one, error)
                continue
            self._runs(one)
            return

    def _beside(self, one: Queued) -> None:
        """``one`` is first of the queue, and a campaign is under way: itself, a person's, or a pushed one."""
        origin = self._campaigns.origin
        if origin is None:
            return
        if origin.push == one.pushed.id:
            self._runs(one)
        elif origin.priority < one.pushed.priority:
            log.info("pushed campaign %s makes room for %s of a higher priority", origin.push, one.pushed.id)
            self._campaigns.pause(origin.push)
        elif (other := self._own.known.get(origin.push)) is not None and not other.settled:
            self._runs(other)

    def _runs(self, one: Queued) -> None:
        status = self._campaigns.status()
        if status is not None and status.get("push") == one.pushed.id:
            one.count(status)
        if one.report.state != "running":
            one.now("running")
            log.info("pushed campaign %s (%s) is under way", one.pushed.name, one.pushed.id)
            self._due_s = 0.0
        self._own.save()

    def _refuse(self, one: Queued, error: CampaignError) -> None:
        log.warning("pushed campaign %s (%s) is refused: %s", one.pushed.name, one.pushed.id, error)
        one.now("refused", str(error))
        self._own.save()
        self._due_s = 0.0

    # --- the server --------------------------------------------------------------------------------------------------------

    def _ask(self) -> None:
        """Tell what it does not know, take what came, tell that. Later, QueueError, OSError."""
        self._report()
        listed = read_queue(self._answer("/v1/campaigns"))
        self._answered_utc_s = time.time()
        for pushed in listed:
            one = self._own.known.get(pushed.id)
            if one is None:
                self._take(pushed)
            elif pushed.withdraw and not one.settled:
                self._withdraw(one)
        self._begin_next()
        self._report()
        self._own.forget({pushed.id for pushed in listed})

    def _take(self, pushed: Pushed) -> None:
        if pushed.withdraw:
            self._own.take(pushed, None, "withdrawn")
            return
        try:
            text = read_text(self._answer(f"/v1/campaigns/{pushed.id}"))
            self._admit(pushed, text)
        except (CampaignError, QueueError) as error:
            log.warning("pushed campaign %s (%s) is refused: %s", pushed.name, pushed.id, error)
            self._own.take(pushed, None, "refused", str(error))
            return
        self._own.take(pushed, text)
        log.info("pushed campaign %s (%s, priority %d) is taken", pushed.name, pushed.id, pushed.priority)

    def _withdraw(self, one: Queued) -> None:
        log.info("pushed campaign %s (%s) is withdrawn by the server", one.pushed.name, one.pushed.id)
        if not self._campaigns.withdraw(one.pushed.id):
            one.now("withdrawn")
            self._own.save()

    def _report(self) -> None:
        for one in [o for o in self._own.known.values() if o.unreported]:
            report, url = one.report.to_dict(), f"/v1/campaigns/{one.pushed.id}/state"
            answer = self._gateway.ask("PUT", url, json.dumps(report).encode(), {"Content-Type": "application/json"})
            refused = answer.status in (400, 404, 413)
            if not refused and answer.status != 200:
                raise not_now(answer)
            withdraw = answer.content.get("withdraw") if isinstance(answer.content, dict) else None
            if not refused and not isinstance(withdraw, bool):
                raise QueueError("an answer that does not settle a report")
            one.reported = report
            self._own.save()
            if refused:
                log.warning("the server takes no report of pushed campaign %s: %s", one.pushed.id, answer.error)
            elif withdraw and not one.settled:
                self._withdraw(one)

    def _answer(self, url: str) -> Any:  # noqa: ANN401 any JSON value
        """What the server answers to a question. Later when it does not now."""
        answer = self._gateway.ask("GET", url, b"", {})
        if answer.status != 200:
            raise not_now(answer)
        return answer.content

    # --- for people --------------------------------------------------------------------------------------------------------

    def _show(self) -> None:
        self._shown = [one.as_json() for one in sorted(self._own.known.values(), key=lambda one: one.pushed.turn)]

    def _tell(self, trouble: str) -> None:
        if trouble != self._trouble and not self._stopping:
            log.warning("the server's queue of campaigns waits: %s", trouble)
        self._trouble = trouble

    def _clear(self) -> None:
        if self._trouble is not None:
            log.info("the server's queue of campaigns is asked again")
        self._trouble = None
