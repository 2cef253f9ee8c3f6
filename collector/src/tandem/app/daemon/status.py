"""The status of a running collector: what is going on, gathered from all threads, given out as one object; and what people request."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tandem.app.campaign.wiring import CampaignPart
from tandem.app.config import Config
from tandem.app.daemon.accounts import Account
from tandem.app.daemon.modems import Polling
from tandem.app.daemon.paths import NetworkPaths
from tandem.app.health.reports import Reports, all_that_is_wrong
from tandem.app.round_trips import RoundTrips
from tandem.app.runs.captures import Captured
from tandem.app.runs.context import RunObserver
from tandem.app.runs.executor import MobilityTrigger, RunScheduler
from tandem.app.runs.manifest import number, result_row
from tandem.app.runs.process import Ending
from tandem.app.runs.request import Plan, PlannedRun
from tandem.app.traces import TracesPart
from tandem.modem.sim import Card
from tandem.schema.grades import meaning
from tandem.schema.record import Record

HISTORY, EVENTS, FINISHED = 60, 60, 6
SECOND = 10
"""Samples of a run in a second."""
_RADIO = ("state", "failure", "rsrp_dbm", "rsrq_db", "sinr_db", "rssi_dbm", "eci", "enb_id", "sector_id", "pci")


@dataclass(slots=True)
class _Modem:
    operator: str | None
    driver: str | None = None
    model: str | None = None
    rat: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    history: deque[float | None] = field(default_factory=lambda: deque(maxlen=HISTORY))
    read_ns: int | None = None
    sim: dict[str, Any] | None = None
    """As docs/contributing/collector.md has it, but for its age; ``sim_ns``: when it was looked at, CLOCK_MONOTONIC."""
    sim_ns: int = 0

    def row(self) -> dict[str, Any]:
        return {"operator": self.operator, "driver": self.driver, "model": self.model, "rat": self.rat, **self.fields}


@dataclass(slots=True)
class _Run:
    run: PlannedRun
    started_ns: int
    bytes: int = 0
    goodput: float | None = None
    subflows: dict[str, dict[str, Any]] = field(default_factory=dict)
    histories: dict[str, deque[float]] = field(default_factory=dict)
    phase: dict[str, Any] | None = None
    ended: bool = False


class StatusModel(RunObserver):
    """``changed`` is called, from any thread, when something happened that a watcher wants to see at once."""

    def __init__(self, config: Config, utc_ns: Callable[[int], int | None], changed: Callable[[], None]) -> None:
        self._probe, self.utc_ns, self.changed = config.probe, utc_ns, changed
        self._lock = threading.Lock()
        self._started_ns = time.monotonic_ns()
        self._modems = {p.name: _Modem(p.operator) for p in config.paths if p.modem is not None}
        self._events: deque[dict[str, Any]] = deque(maxlen=EVENTS)
        self._finished: deque[dict[str, Any]] = deque(maxlen=FINISHED)
        self._plan: Plan | None = None
        self._runs: dict[str, _Run] = {}
        self.mobile_since_ns: int | None = None
        self.speed_class: str | None = None
        self.spool: dict[str, Any] = {"made": 0, "sent": 0, "pending": 0, "rejected": 0}
        self.polls: dict[str, int] = {"made": 0, "late": 0}
        self.captures_bytes = 0
        self.clock: dict[str, Any] | None = None
        self.trouble: str | None = None
        self.position: dict[str, Any] | None = None
        """Whether there is a fix, never where; None: position is off."""

    def polled(self, record: Record, driver: str | None, model: str | None) -> None:
        with self._lock:
            modem = self._modems.setdefault(record.tags["path"], _Modem(record.tags.get("operator")))
            modem.driver, modem.model = driver or modem.driver, model or modem.model
            modem.rat, modem.read_ns = record.tags.get("rat"), record.monotonic_ns
            modem.fields = {name: record.fields.get(name) for name in _RADIO}
            level = record.fields.get("rsrp_dbm")
            modem.history.append(float(level) if isinstance(level, int | float) else None)

    def card(self, path: str, card: Card | None, failure: str | None) -> None:
        """A SIM was looked at. ``card`` None without ``failure``: this modem tells nothing of its SIM."""
        state, named = (None, None) if card is None else (card.state, card.named)
        with self._lock:
            modem = self._modems[path]
            modem.sim, modem.sim_ns = {"state": state, "named": named, "failure": failure}, time.monotonic_ns()

    def happened(self, event: Record) -> None:
        shown = {
            "utc_ns": self.utc_ns(event.monotonic_ns),
            "kind": event.tags.get("kind"),
            "path": event.tags.get("path"),
            "operator": event.tags.get("operator"),
            "state": event.fields.get("state"),
            "detail": describe(event),
        }
        with self._lock:
            self._events.append(shown)
        self.changed()

    def position_is(self, state: dict[str, Any]) -> None:
        self.position = state

    def modems(self) -> dict[str, dict[str, Any]]:
        """Who the modems are and what they said last, for a manifest."""
        with self._lock:
            return {path: modem.row() for path, modem in self._modems.items()}

    # --- runs ----------------------------------------------------------------------------------------------------------

    def group_started(self, plan: Plan) -> None:
        with self._lock:
            self._plan, self._runs = plan, {}
        self.changed()

    def run_started(self, plan: Plan, run: PlannedRun) -> None:  # noqa: ARG002 the observer's signature
        with self._lock:
            self._runs[run.id] = _Run(run, time.monotonic_ns())
        self.changed()

    def run_sampled(self, run: PlannedRun, sample: dict[str, Any]) -> None:
        """Bytes and rates of its subflows. Values come from another process: what is no number is passed over."""
        connection = sample.get("connection")
        subflows = sample.get("subflows")
        with self._lock:
            shown = self._runs.get(run.id)
            if shown is None:
                return
            if isinstance(connection, dict):
                shown.bytes = number(connection.get("bytes"), int) or shown.bytes
                shown.goodput = number(connection.get("goodput_bit_per_s"), float)
            for subflow in subflows if isinstance(subflows, list) else []:
                if not isinstance(subflow, dict):
                    continue
                key = str(subflow.get("subflow"))
                goodput = number(subflow.get("goodput_bit_per_s"), float)
                history = shown.histories.setdefault(key, deque(maxlen=HISTORY))
                history.append(goodput or 0.0)
                shown.subflows[key] = {
                    "path": subflow.get("path"),
                    "operator": subflow.get("operator"),
                    "goodput_bit_per_s": goodput,
                    "bytes": number(subflow.get("bytes_received"), int),
                    "rtt_ms": _rtt_ms(subflow),
                }

    def run_phased(self, run: PlannedRun, phase: dict[str, Any]) -> None:
        with self._lock:
            if run.id in self._runs:
                self._runs[run.id].phase = {name: phase.get(name) for name in ("name", "number", "of")}
        self.changed()

    def run_ended(self, plan: Plan, run: PlannedRun, ending: Ending, captured: Sequence[Captured]) -> None:  # noqa: ARG002 as above
        with self._lock:
            self._finished.append(result_row(plan, run, ending.result, ending.failure))
            if run.id in self._runs:
                self._runs[run.id].ended = True
        self.changed()

    def group_ended(self, plan: Plan) -> None:  # noqa: ARG002 as above
        with self._lock:
            self._plan, self._runs = None, {}
        self.changed()

    # --- the status object ---------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """The status object, but for what other parts know (docs/contributing/collector.md)."""
        now = time.monotonic_ns()
        with self._lock:
            since = self.mobile_since_ns
            return {
                "type": "status",
                "probe": self._probe,
                "utc_ns": self.utc_ns(now),
                "uptime_s": round((now - self._started_ns) / 1e9, 1),
                "mobile": since is not None,
                "mobile_since_s": None if since is None else round((now - since) / 1e9, 1),
                "speed_class": self.speed_class,
                "modems": {path: _modem(m, now) for path, m in self._modems.items()},
                "events": list(self._events),
                "run": self._run(now),
                "finished": list(self._finished),
                "spool": dict(self.spool),
                "polls": dict(self.polls),
                "captures_bytes": self.captures_bytes,
                "clock": self.clock,
                "position": self.position,
                "trouble": self.trouble,
            }

    def _run(self, now: int) -> dict[str, Any] | None:
        plan = self._plan
        if plan is None:
            return None
        running = [r for r in self._runs.values() if not r.ended]
        return {
            "id": running[0].run.id if running else None,
            "pair": plan.pair,
            "experiment": plan.request.experiment,
            "campaign": None if plan.request.campaign is None else plan.request.campaign.get("name"),
            "pairing": plan.request.pairing,
            "seconds": plan.request.seconds,
            "bytes": plan.request.bytes,
            "number": sum(r.ended for r in self._runs.values()) + 1,
            "of": len(plan.runs),
            "runs": [
                {
                    "id": r.run.id,
                    "kind": r.run.kind,
                    "experiment": plan.request.experiment,
                    "path": r.run.path,
                    "phase": r.phase,
                    "elapsed_s": round((now - r.started_ns) / 1e9, 1),
                    "bytes": r.bytes,
                    "goodput_bit_per_s": r.goodput,
                    "subflows": [
                        {
                            **values,
                            "share": _share(r.histories, key),
                            "history_bit_per_s": [round(v) for v in r.histories[key]],
                        }
                        for key, values in sorted(r.subflows.items())
                    ],
                }
                for r in running
            ],
        }


class StatusService:
    """Who of a running collector answers what people request through its status socket. ``status``, ``brief`` and ``outcome`` do not
    block; the others may, and may raise OSError (a disk that takes nothing): one at a time."""

    def __init__(
        self,
        model: StatusModel,
        scheduler: RunScheduler,
        trigger: MobilityTrigger,
        campaigns: CampaignPart,
        traces: TracesPart,
        account: Account,
        reports: Reports,
        paths: NetworkPaths,
    ) -> None:
        self._model, self._scheduler, self._trigger = model, scheduler, trigger
        self._campaigns, self._traces = campaigns, traces
        self._account, self._reports, self._paths = account, reports, paths
        self.request, self.cancel, self.outcome = scheduler.request, scheduler.cancel, scheduler.outcome
        self.campaign, self.traces = campaigns.requested, traces.requested
        self.polling: Polling | None = None
        self.round_trips: RoundTrips | None = None
        """None: off."""
        self.indicator: Callable[[], dict[str, Any]] | None = None
        """What the kit shows to whoever carries it; None: nothing."""

    def brief(self) -> dict[str, Any]:
        """What the indicator chooses by, at little cost, once a second."""
        reports = self._reports.status
        return {
            "alarms": reports.get("alarms", []),
            "modem_health": reports["modem_health"],
            "health": reports["health"],
            "paths": self._paths.states,
            "measuring": self._scheduler.running,
            "sent": self._model.spool["sent"],
            "utc_ns": self._model.utc_ns(time.monotonic_ns()),
        }

    def status(self) -> dict[str, Any]:
        status = {
            **self._model.status(),
            **self._reports.status,
            "paths": self._paths.states,
            "spent_today_bytes": self._account.today(),
            "day_limit_bytes": self._trigger.limits,
            "radio_only": self._trigger.held(),
            "traces": self._traces.status(),
            "campaign": self._campaigns.brief(),
            "round_trips": None if self.round_trips is None else self.round_trips.status(),
            "indicator": None if self.indicator is None else self.indicator(),
        }
        return {**status, "wrong": all_that_is_wrong(status)}

    def sims(self) -> dict[str, Any]:
        """Have the modems' SIMs looked at; which paths were asked. What is found is in the status, as ``sim`` of the modem."""
        return {"asked": [] if self.polling is None else self.polling.cards(self._model.card)}


def _modem(modem: _Modem, now: int) -> dict[str, Any]:
    return {
        **dict.fromkeys(_RADIO),
        **modem.row(),
        "history_rsrp_dbm": list(modem.history),
        "age_s": None if modem.read_ns is None else round((now - modem.read_ns) / 1e9, 1),
        "sim": None if modem.sim is None else {**modem.sim, "age_s": round((now - modem.sim_ns) / 1e9, 1)},
    }


def _share(histories: Mapping[str, Sequence[float]], key: str) -> float | None:
    """A subflow's part of what all of its run brought in the last second, 0 to 1; None while nothing came."""
    sums = {name: sum(list(values)[-SECOND:]) for name, values in histories.items()}
    whole = sum(sums.values())
    return round(sums[key] / whole, 3) if whole else None


def _rtt_ms(subflow: Mapping[str, Any]) -> float | None:
    """The receiver's estimate where more comes in than goes out: TCP's own is true at the sender of the data only."""
    received, sent = (number(subflow.get(name), int) or 0 for name in ("bytes_received", "bytes_sent"))
    found: float | None = number(subflow.get("rcv_rtt_ms" if received > sent else "rtt_ms"), float)
    return found


def describe(event: Record) -> str:
    """What the record's fields say; empty when the kind says it all."""
    fields = event.fields
    parts: list[str] = []
    change = fields.get("change_db")
    if isinstance(change, int | float):
        parts.append(f"{change:+.1f} dB {str(fields.get('quantity', '')).removesuffix('_dbm').upper()}".rstrip())
    before, after = fields.get("from_eci"), fields.get("to_eci")
    if isinstance(before, int) and isinstance(after, int):
        if fields.get("handover_kind") == "sector":
            parts.append(f"sector {before & 255} → {after & 255} of eNB {after >> 8}")
        else:
            parts.append(f"eNB {before >> 8}/{before & 255} → {after >> 8}/{after & 255}")
    if fields.get("state"):
        parts.append(str(fields["state"]).replace("_", " "))
    if fields.get("speed_class") and event.tags.get("kind") == "mobility_stop":
        parts.append(meaning("event", "speed_class", fields["speed_class"]).words)
    if fields.get("detail") and fields["detail"] != event.tags.get("kind", "").replace("_", " "):
        parts.append(str(fields["detail"]))
    return ", ".join(parts)
