"""Loss of service and its return: by polls, and between them by what a modem says unasked of its registration."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.mobility.levels import family
from tandem.mobility.settings import Settings
from tandem.schema.record import Record

WITHOUT = ("searching", "limited", "no_service")
"""States of a modem that no network serves. Limited is emergency calls only."""

_DOMAIN = {"GSM": ("cs", "ps"), "WCDMA": ("cs", "ps"), "LTE": ("eps",), "NR-SA": ("5gs",)}
"""Which registrations speak of service, by the technology that serves. A data-only SIM is never registered for calls (``cs``) on LTE."""


@dataclass(slots=True)
class _Path:
    """``served`` None: not known yet. ``lost_ns``: of a loss that was told. ``pending_ns``: when a loss was reported that nothing has
    confirmed, in ``pending_domain``."""

    operator: str | None = None
    served: bool | None = None
    rat: str | None = None
    last_ns: int = -1
    lost_ns: int | None = None
    pending_ns: int | None = None
    pending_domain: str | None = None
    pending_state: str | None = None


class ServiceDetector:
    """``service_lost`` when no network serves a modem that was served, ``service_back`` when one does again, each once.

    A poll tells at once. An unsolicited report is believed when a poll confirms it, when the same registration returns, or when
    ``settings.successive_ns`` have passed and nothing spoke against it: from LTE to 3G the registration with LTE ends, which is no
    loss of service. Whatever decides, the event has the time of the report. A modem that is silent or gone has no service event.
    """

    def __init__(self, settings: Settings) -> None:
        self._settle_ns = settings.successive_ns
        self._paths: dict[str, _Path] = {}

    def feed(self, record: Record) -> list[Record]:
        """The events that this record shows: a radio or a registration record."""
        name = record.tags.get("path")
        if record.measurement not in ("radio", "registration") or name is None or record.fields.get("stale") is True:
            return []
        path = self._paths.setdefault(name, _Path())
        path.operator = record.tags.get("operator")
        polled = record.measurement == "radio"
        if record.monotonic_ns < path.last_ns + polled:
            return []  # a poll that began before the report that came during it; several reports may come by one read
        path.last_ns = record.monotonic_ns
        return self._polled(name, path, record) if polled else self._told(name, path, record)

    def tick(self, monotonic_ns: int) -> list[Record]:
        """Time has come to ``monotonic_ns``: reports that nothing spoke against are believed."""
        return [
            self._lost(name, path, path.pending_ns, path.pending_state)
            for name, path in self._paths.items()
            if path.pending_ns is not None and monotonic_ns - path.pending_ns > self._settle_ns
        ]

    def _polled(self, name: str, path: _Path, record: Record) -> list[Record]:
        state, fields = record.fields.get("state"), record.fields
        if state in WITHOUT:
            if path.pending_ns is not None:
                return [self._lost(name, path, path.pending_ns, str(state))]
            if path.served:
                return [self._lost(name, path, record.monotonic_ns, str(state))]
            path.served = False
            return []
        # A state that is not told is service when a cell is named.
        if state in ("connected", "idle") or (state == "unknown" and ("eci" in fields or "ci" in fields)):
            path.pending_ns = None
            return self._served(name, path, record)
        return []

    def _told(self, name: str, path: _Path, record: Record) -> list[Record]:
        domain = record.tags.get("domain")
        if record.fields.get("registered") is True:
            events = []
            if path.pending_ns is not None and domain == path.pending_domain:
                events.append(self._lost(name, path, path.pending_ns, path.pending_state))
            path.pending_ns = None
            return events + self._served(name, path, record)
        if not path.served or path.pending_ns is not None or domain not in _DOMAIN.get(family(path.rat) or "", ()):
            return []
        path.pending_ns, path.pending_domain = record.monotonic_ns, domain
        path.pending_state = str(record.fields.get("state"))
        return []

    def _served(self, name: str, path: _Path, record: Record) -> list[Record]:
        path.rat = record.tags.get("rat") or path.rat
        path.served = True
        lost_ns, path.lost_ns = path.lost_ns, None
        if lost_ns is None:
            return []
        took_ms = (record.monotonic_ns - lost_ns) / 1e6
        return [self._event("service_back", name, path, record.monotonic_ns, took_ms=took_ms)]

    def _lost(self, name: str, path: _Path, at_ns: int, state: str | None) -> Record:
        path.served, path.lost_ns, path.pending_ns = False, at_ns, None
        return self._event("service_lost", name, path, at_ns, state=state if state in WITHOUT else None)

    @staticmethod
    def _event(kind: str, name: str, path: _Path, at_ns: int, **fields: str | float | None) -> Record:
        return Record.make("event", {"kind": kind, "path": name, "operator": path.operator}, fields, at_ns)
