"""The records that the collector makes of its own: health every ten seconds, modems, SIMs and temperatures every minute, storage and
software every hour; and what of it people are shown."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Protocol

from tandem.app.account import Account
from tandem.app.clock import Clock
from tandem.app.config import Config
from tandem.app.health.boots import count_boot
from tandem.app.health.machine_state import MachineState
from tandem.app.health.modems import ModemStates
from tandem.app.health.roots import Roots
from tandem.app.health.sims import Sim, sims
from tandem.app.health.wrong import Wrong
from tandem.app.machine import UsageAccount, cpu_seconds, rss_bytes
from tandem.schema.record import Record, Value

log = logging.getLogger(__name__)

REPORT_S, MINUTE_S, HOUR_S = 10.0, 60.0, 3600.0
_EARLY_S = 1.0
"""A round comes with a tick, up to a second late: a minute's or an hour's share is due a little before its time."""

_EACH_ROUND = (
    *("processor_temperature_degc", "memory_available_bytes", "disk_free_bytes"),
    *("undervoltage", "undervoltage_seen", "throttled"),
)
"""Of the machine every ten seconds; the rest of it changes slowly and is told each minute: 0.8 MB a day less over the SIM."""

_SHOWN = (
    *("disk_free_bytes", "disk_used_bytes", "memory_available_bytes", "load_1min", "uptime_s", "boot_count"),
    *("spool_oldest_s", "processor_temperature_degc", "clock_synchronised"),
    *("undervoltage", "undervoltage_since_boot", "throttled", "throttled_since_boot"),
)


class Collected(Protocol):
    """What the collector knows of itself."""

    def own_fields(self) -> dict[str, Value | None]:
        """Of a ``health`` record: spool, captures, movement."""
        ...

    def control_bytes(self) -> dict[str, int]:
        """By path, what the exporter and the campaigns' queue moved since the start."""
        ...

    def upload_bytes(self) -> dict[str, int]:
        """By path, what files of runs moved since the start."""
        ...


class Reports:
    """Used by the collector's thread; ``status`` by any."""

    def __init__(
        self,
        config: Config,
        clock: Clock,
        account: Account,
        usage: UsageAccount,
        roots: Roots,
        now_ns: int,
    ) -> None:
        self._config, self._clock, self._account, self._usage = config, clock, account, usage
        self._operators = {p.name: p.operator for p in config.paths}
        self._machine = MachineState(roots, config.folder, count_boot(config.folder, clock.boot))
        self._wrong = Wrong()
        self._modems = ModemStates([p.name for p in config.paths if p.modem is not None], now_ns)
        self.polled, self.noted = self._modems.polled, self._modems.noted
        self.polling = True
        """False: nobody polls the modems, for one experiment from the command line; nothing is told of them then."""
        self._due_ns = {"round": now_ns, "minute": now_ns, "hour": now_ns}
        self._status: dict[str, Any] = {"health": None, "cards": {}, "software": {}, "sims": {}, "modem_health": {}}

    def tick(self, now_ns: int) -> bool:
        """Once a second; whether a report is due."""
        self._machine.look()
        return self._is_due("round", REPORT_S, now_ns)

    def report(self, collected: Collected, now_ns: int, *, last: bool = False) -> list[Record]:
        """The records that are due. ``last``: those of a minute too, whenever they were made before."""
        self._count()
        minute = self._is_due("minute", MINUTE_S, now_ns) or last
        records = [self._health(collected, now_ns, whole=minute), *self._usages(collected, now_ns)]
        if minute:
            records += self._minute(now_ns)
        if self._is_due("hour", HOUR_S, now_ns):
            records += self._hour(now_ns)
        records += self._wrong.events()
        modems = self._modems.told(now_ns) if self.polling else {}
        self._show({"modem_health": modems, "wrong": self._wrong.texts(), "alarms": self._wrong.kinds()})
        return records

    @property
    def status(self) -> dict[str, Any]:
        """Parts of the status object: ``health``, ``cards``, ``software``, ``sims``, ``modem_health``, ``wrong``, ``alarms``."""
        return self._status

    def _is_due(self, what: str, every_s: float, now_ns: int) -> bool:
        if now_ns < self._due_ns[what] - (0 if what == "round" else _EARLY_S * 1e9):
            return False
        self._due_ns[what] = now_ns + int(every_s * 1e9)
        return True

    def _health(self, collected: Collected, now_ns: int, *, whole: bool) -> Record:
        fields = self._machine.fields()
        low = fields.get("undervoltage")
        fields["undervoltage_seen"] = None if low is None else int(low)
        fields["clock_synchronised"] = bool(self._clock.state()["synchronised"])
        self._wrong.supply(self._machine.supply, now_ns)
        if self._machine.room is not None:
            self._wrong.disk(self._machine.room, now_ns)
        self._show({"health": {name: fields.get(name) for name in _SHOWN}})
        own = {"cpu_seconds": cpu_seconds(), "rss_bytes": rss_bytes(), **collected.own_fields()}
        told = fields if whole else {name: fields.get(name) for name in _EACH_ROUND}
        return Record.make("health", {}, {**own, **told}, now_ns)

    def _usages(self, collected: Collected, now_ns: int) -> list[Record]:
        control, uploads = collected.control_bytes(), collected.upload_bytes()
        records = []
        for path, (received, sent) in self._usage.update().items():
            used: dict[str, Value | None] = {"received_bytes": received, "sent_bytes": sent}
            used |= {"control_bytes": control.get(path), "upload_bytes": uploads.get(path)}
            records.append(Record.make("usage", {"path": path, "operator": self._operators[path]}, used, now_ns))
        return records

    def _minute(self, now_ns: int) -> list[Record]:
        told: list[Sim] = sims(self._config.paths, self._account, self._clock.utc_ns(now_ns))
        self._wrong.plans(told, now_ns)
        self._show({"sims": {sim.path.name: sim.status() for sim in told}})
        temperatures = self._machine.temperatures()
        return [
            *(self._modems.records(self._operators, now_ns) if self.polling else []),
            *(sim.record(now_ns) for sim in told),
            *(
                Record.make("temperature", {"sensor": sensor}, {"temperature_degc": value}, now_ns)
                for sensor, value in temperatures.items()
            ),
        ]

    def _hour(self, now_ns: int) -> list[Record]:
        cards, software = self._machine.cards(), self._machine.software()
        self._wrong.cards(cards, now_ns)
        self._show({"cards": cards, "software": software})
        records = [Record.make("card", {"device": device}, fields, now_ns) for device, fields in cards.items()]
        if software:
            records.append(Record.make("software", {}, software, now_ns))
        return records

    def _show(self, more: Mapping[str, Any]) -> None:
        """A new object each time: another thread reads it."""
        self._status = {**self._status, **more}

    def _count(self) -> None:
        try:
            self._account.update()
            self._account.save()
        except OSError as error:
            log.error("the account of the paths waits in memory: %s; mend: free disk space", error)
