"""``expected`` and ``probe_state``: a point a minute for every registered, unrevoked probe, so that silence can be alarmed for months."""

from __future__ import annotations

import logging

from tandem.schema.record import Value
from tandem_server.ingest.periodic import PERIOD_S, Leased, own_line, put
from tandem_server.ledger.at_work import AtWork, at_work
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.states import Tolerances
from tandem_server.ledger.watching import ProbeNow, kept, probes_now
from tandem_server.registry import Registry
from tandem_server.schema.measurements import PROBE_STATES
from tandem_server.store import QueryError, SeriesStore

_LOG = logging.getLogger("tandem.gateway")
LEASE = "expected"
_NOT_ONLINE = ("silent", "never_seen", "revoked")
"""What such a probe is at nobody knows."""


class ExpectedSeries(Leased):
    """``period_s``: whole seconds from point to point."""

    def __init__(
        self, registry: Registry, store: SeriesStore, tolerances: Tolerances, period_s: int = PERIOD_S
    ) -> None:
        super().__init__(registry, LEASE, self._put, period_s)
        self._store, self._tolerances = store, tolerances

    def _put(self, now_utc_ns: int) -> None:
        at_utc_ns = self.whole(now_utc_ns)
        try:
            now = probes_now(self._registry, RecordCounts(self._store), self._tolerances, now_utc_ns)
            online = {one.probe.name for one in now if one.state.state not in _NOT_ONLINE}
            work = at_work(self._registry, self._store, online, now_utc_ns)
        except QueryError as error:
            _LOG.warning("no states of probes, only who was seen: %s", error)
            now, work = [], {}
        lines = self._seen(now_utc_ns, at_utc_ns)
        for one in now:
            if one.state.state != "revoked":
                lines.append(_state_line(one, work.get(one.probe.name, AtWork()), now_utc_ns, at_utc_ns))
        put(self._store, lines)
        before = self._registry.seen.states()
        changed = {probe: state for probe, state in kept(now).items() if before.get(probe) != state}
        if changed:
            self._registry.seen.keep_states(changed)
        for one in now:
            if one.probe.name in changed and one.state.state != getattr(before.get(one.probe.name), "state", None):
                _LOG.info("%s is %s: %s", one.probe.name, one.state.state, one.state.why)

    def _seen(self, now_utc_ns: int, at_utc_ns: int) -> list[str]:
        """What needs no question to the database: a store without queries has it too."""
        sights, silent_ns = self._registry.seen.all(), int(self._tolerances.silent_after_s * 1e9)
        return [
            _line(
                "expected",
                probe.name,
                {"seen": int((s := sights.get(probe.name)) is not None and now_utc_ns - s.last_utc_ns <= silent_ns)},
                at_utc_ns,
            )
            for probe in self._registry.probes.all()
            if probe.revoked_utc_ns is None
        ]


def _state_line(one: ProbeNow, work: AtWork, now_utc_ns: int, at_utc_ns: int) -> str:
    state, sight, report = one.state, one.seen, one.report
    fields: dict[str, Value | None] = {
        "state": state.state,
        "state_code": PROBE_STATES.index(state.state),
        "since_s": max(0.0, (now_utc_ns - state.since_utc_ns) / 1e9),
        "last_seen_s": None if sight is None else max(0.0, (now_utc_ns - sight.last_utc_ns) / 1e9),
        "unsent_records": None if report is None else report.waiting,
        "unsent_oldest_s": None,
        "run": work.run,
        "experiment": work.experiment,
        "campaign": work.campaign,
    }
    if report is not None and report.waiting:
        fields["unsent_oldest_s"] = max(0.0, (now_utc_ns - report.settled_before_utc_ns) / 1e9)
    return _line("probe_state", one.probe.name, fields, at_utc_ns)


def _line(measurement: str, probe: str, fields: dict[str, Value | None], utc_ns: int) -> str:
    line = own_line(measurement, {"probe": probe}, fields, utc_ns)
    assert line is not None  # noqa: S101  (for the type checker: there is always a field)
    return line
