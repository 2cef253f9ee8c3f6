"""What an experiment's process says while its run goes on: taken as records, counted for the manifest. Nothing in it is trusted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from tandem.app.plan import Plan, PlannedRun
from tandem.app.run_records import experiment_record, phase_record, sample_records
from tandem.app.surroundings import Surroundings
from tandem.schema.record import Record, RecordError

_TOKEN = re.compile(r"[0-9a-f]{1,8}\Z")


class RunLines:
    """Called with every line of one run but the last. ``counts``: records by measurement, and the ``broken`` ones, which were left out;
    ``version``: what the process says of its experiment."""

    def __init__(
        self,
        around: Surroundings,
        plan: Plan,
        run: PlannedRun,
        sampled: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        """``sampled``: who else takes the lines of type ``sample``."""
        self._sampled = sampled
        self._around, self._plan, self._run = around, plan, run
        self._operators = {path.name: path.operator for path in around.config.paths}
        self.counts: Counter[str] = Counter()
        self.version: dict[str, Any] = {}

    def __call__(self, said: dict[str, Any]) -> None:
        """One line."""
        kind = said.get("type")
        if kind == "started":
            self.version.update({k: said[k] for k in ("experiment", "version", "units") if k in said})
        elif kind == "sample":
            records, broken = sample_records(self._run, said, self._utc_ns(said))
            self.counts["broken"] += broken
            self.emit(records)
            self._around.audience.run_sampled(self._run, said)
            if self._sampled is not None:
                self._sampled(said)
        elif kind == "phase":
            if self._checked(lambda: phase_record(self._run, self._plan.wish.experiment, said, self._utc_ns(said))):
                self._around.audience.run_phased(self._run, said)
        elif kind == "record":
            self._checked(lambda: experiment_record(self._plan, self._run, said, self._operators, self._utc_ns(said)))
        elif kind == "ordering" and (token := token_of(said.get("connection"))) is not None:
            self._around.paths.leave(token)

    def emit(self, records: list[Record]) -> None:
        """Records of this run: the manifest promises them."""
        self.counts.update(record.measurement for record in records)
        self._around.emit(records)

    def _checked(self, make: Callable[[], Record]) -> bool:
        try:
            record = make()
        except RecordError:
            self.counts["broken"] += 1
            return False
        self.emit([record])
        return True

    def _utc_ns(self, said: Mapping[str, Any]) -> int | None:
        monotonic_ns = said.get("monotonic_ns")
        return self._around.clock.utc_ns(monotonic_ns) if type(monotonic_ns) is int else None


def token_of(said: object) -> int | None:
    """The kernel's number of a connection, as experiments tell it: eight hexadecimal digits."""
    return int(said, 16) if isinstance(said, str) and _TOKEN.match(said) else None
