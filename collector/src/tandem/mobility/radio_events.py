"""Events that the polls of modems show: changes of level and the published rule of movement, handovers, service, modems that go silent."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.mobility.levels import family
from tandem.mobility.settings import Settings
from tandem.schema.record import Record, Value

INSTEAD = {"rsrp_dbm": "rscp_dbm"}
"""On 3G the pilot's level is RSCP; never compared with RSRP, since the radio technology changed in between."""


@dataclass(frozen=True, slots=True)
class Change:
    """``change_db`` of ``quantity`` in the poll at ``monotonic_ns`` against the one before it, on ``path``."""

    path: str
    operator: str | None
    monotonic_ns: int
    change_db: float
    quantity: str


@dataclass(frozen=True, slots=True)
class _Value:
    monotonic_ns: int
    level_db: float
    of: tuple[str, str | None]


class Changes:
    """Remembers the last level of each path.

    No change is reported when the polls are further apart than ``successive_ns``, when the radio technology changed in between
    (its levels measure something else; LTE with and without a 5G carrier is one), or for a stale poll, which says nothing about
    now. A poll without the quantity is passed over.
    """

    def __init__(self, quantity: str, successive_ns: int) -> None:
        self._quantity = quantity
        self._successive_ns = successive_ns
        self._last: dict[str, _Value] = {}

    def feed(self, record: Record) -> Change | None:
        """The change that this record shows; None when it shows none."""
        quantity = self._quantity if self._quantity in record.fields else INSTEAD.get(self._quantity, self._quantity)
        level = record.fields.get(quantity)
        path = record.tags.get("path")
        if record.measurement != "radio" or path is None or record.fields.get("stale") is True:
            return None
        if not isinstance(level, (int, float)):
            return None
        before = self._last.get(path)
        now = _Value(record.monotonic_ns, float(level), (quantity, family(record.tags.get("rat"))))
        if before is not None and now.monotonic_ns <= before.monotonic_ns:
            return None  # reported twice, or out of order within one modem: not a later poll
        self._last[path] = now
        if before is None or before.of != now.of or now.monotonic_ns - before.monotonic_ns > self._successive_ns:
            return None
        change_db = round(now.level_db - before.level_db, 3)
        return Change(path, record.tags.get("operator"), now.monotonic_ns, change_db, quantity)


def _event(kind: str, path: str | None, operator: str | None, at_ns: int, **fields: Value | None) -> Record:
    return Record.make("event", {"kind": kind, "path": path, "operator": operator}, fields, at_ns)


class SignalDropDetector:
    """A ``signal_drop`` for every change of −``threshold_db`` or less, which Mohan et al. (section 4) find to matter; ``change_db`` is
    negative. Each path on its own."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._changes = Changes(settings.quantity, settings.successive_ns)

    def feed(self, record: Record) -> list[Record]:
        change = self._changes.feed(record)
        if change is None or change.change_db > -self._settings.threshold_db:
            return []
        fields: dict[str, Value | None] = {"quantity": change.quantity, "change_db": change.change_db}
        return [_event("signal_drop", change.path, change.operator, change.monotonic_ns, **fields)]


# ---------------------------------------------------------------------------------------------------------------------
# Is the probe moving? The published rule: a large change between two successive polls of either modem.


class MobilityDetector:
    """``mobility_start`` at the first change of ``threshold_db`` or more up or down, ``mobility_stop`` ``stop_after_s`` after
    the last one.

    The stop carries exactly that instant, and is reported one period later at the earliest, so that a change that the other
    modem saw before it and reported after it still counts. Starts and stops alternate. Fed by records and, where none may come,
    by ``tick``. The stop belongs to the probe and has no path.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._changes = Changes(settings.quantity, settings.successive_ns)
        self._stop_after_ns = round(settings.stop_after_s * 1e9)
        self._last_change_ns = 0
        self._since_ns: int | None = None

    @property
    def mobile(self) -> bool:
        return self._since_ns is not None

    @property
    def mobile_since_ns(self) -> int | None:
        """CLOCK_MONOTONIC of the last start; None when not mobile."""
        return self._since_ns

    def feed(self, record: Record) -> list[Record]:
        change = self._changes.feed(record)
        if change is None or abs(change.change_db) < self._settings.threshold_db:
            return self.tick(record.monotonic_ns)
        events: list[Record] = []
        if self.mobile and change.monotonic_ns > self._last_change_ns + self._stop_after_ns:
            events.append(self._stop())
        if not self.mobile:
            events.append(self._start(change))
        self._last_change_ns = max(self._last_change_ns, change.monotonic_ns)
        return events

    def tick(self, monotonic_ns: int) -> list[Record]:
        """Time has come to ``monotonic_ns``: the stop, when it is due."""
        if self.mobile and monotonic_ns >= self._last_change_ns + self._stop_after_ns + self._settings.settle_ns:
            return [self._stop()]
        return []

    def _start(self, change: Change) -> Record:
        self._since_ns = change.monotonic_ns
        fields: dict[str, Value | None] = {
            "detector": "published",
            "quantity": change.quantity,
            "change_db": change.change_db,
        }
        return _event("mobility_start", change.path, change.operator, change.monotonic_ns, **fields)

    def _stop(self) -> Record:
        since_ns, self._since_ns = self._since_ns, None
        stop_ns = self._last_change_ns + self._stop_after_ns
        moved_s = (stop_ns - (since_ns or stop_ns)) / 1e9
        detail = f"mobile for {moved_s:.1f} s"
        fields: dict[str, Value | None] = {
            "detector": "published",
            "quantity": self._settings.quantity,
            "detail": detail,
        }
        return _event("mobility_stop", None, None, stop_ns, **fields)


# ---------------------------------------------------------------------------------------------------------------------
# Handovers: another serving cell than before (Mohan et al., section 3.2, by their BSID), by polls and by what is said
# unasked.


@dataclass(slots=True)
class _Cell:
    eci: int
    plmn: str | None
    rat: str | None
    monotonic_ns: int
    polls_without: int = 0
    left_eci: int | None = None
    """The cell before this one, where the modem reported the change unasked, at ``changed_ns``."""
    changed_ns: int = 0


class HandoverDetector:
    """A ``handover`` when a path's ECI differs from the last one that was read on it.

    ``handover_kind``: ``enb`` when the eNodeB (ECI >> 8) or the network changed, ``sector`` when another cell of the same
    eNodeB serves. A changed PLMN or radio technology, and polls without a cell in between, are noted in ``detail``. A cell that the
    modem reported unasked (a ``registration`` record) counts at that time, and the polls that show it too tell nothing more; several
    handovers between two polls are one only where they were not reported. Some modems answer polls with the cell that they have just
    left: that is no way back while ``successive_ns`` since the report have not passed. After ``cell_memory_s`` without a cell the
    next one is a beginning, no handover.
    """

    def __init__(self, settings: Settings) -> None:
        self._memory_ns = round(settings.cell_memory_s * 1e9)
        self._settle_ns = settings.successive_ns
        self._last: dict[str, _Cell] = {}

    def feed(self, record: Record) -> list[Record]:
        path = record.tags.get("path")
        if record.measurement not in ("radio", "registration") or path is None or record.fields.get("stale") is True:
            return []
        polled = record.measurement == "radio"
        before = self._last.get(path)
        if before is not None and record.monotonic_ns < before.monotonic_ns + polled:
            return []  # several lines may come by one read, at one time
        eci = record.fields.get("eci")
        if not isinstance(eci, int):
            if before is not None:
                before.polls_without += polled
            return []
        if polled and before is not None and eci == before.left_eci and self._settling(before, record.monotonic_ns):
            return []
        plmn = record.fields.get("plmn")
        now = _Cell(eci, plmn if isinstance(plmn, str) else None, record.tags.get("rat"), record.monotonic_ns)
        self._last[path] = now
        if before is None or before.eci == eci:
            if before is not None and self._settling(before, now.monotonic_ns):
                now.left_eci, now.changed_ns = before.left_eci, before.changed_ns
            return []
        if now.monotonic_ns - before.monotonic_ns > self._memory_ns:
            return []
        if not polled:
            now.left_eci, now.changed_ns = before.eci, now.monotonic_ns
        return [self._handover(path, record.tags.get("operator"), before, now)]

    def _settling(self, cell: _Cell, monotonic_ns: int) -> bool:
        return cell.left_eci is not None and monotonic_ns - cell.changed_ns <= self._settle_ns

    @staticmethod
    def _handover(path: str, operator: str | None, before: _Cell, now: _Cell) -> Record:
        new_network = None not in (before.plmn, now.plmn) and before.plmn != now.plmn
        notes = []
        if new_network:
            notes.append(f"PLMN {before.plmn} to {now.plmn}")
        if None not in (before.rat, now.rat) and before.rat != now.rat:
            notes.append(f"{before.rat} to {now.rat}")
        if before.polls_without:
            silent_s = (now.monotonic_ns - before.monotonic_ns) / 1e9
            notes.append(f"{before.polls_without} polls without a cell in {silent_s:.1f} s")
        same_site = before.eci >> 8 == now.eci >> 8 and not new_network
        fields: dict[str, Value | None] = {
            "from_eci": before.eci,
            "to_eci": now.eci,
            "handover_kind": "sector" if same_site else "enb",
            "detail": "; ".join(notes) or None,
        }
        return _event("handover", path, operator, now.monotonic_ns, **fields)


# ---------------------------------------------------------------------------------------------------------------------
# Loss of service and its return: by polls, and between them by what a modem says unasked of its registration.


WITHOUT = ("searching", "limited", "no_service")
"""States of a modem that no network serves. Limited is emergency calls only."""

_DOMAIN = {"GSM": ("cs", "ps"), "WCDMA": ("cs", "ps"), "LTE": ("eps",), "NR-SA": ("5gs",)}
"""Which registrations speak of service, by the technology that serves. A data-only SIM is never registered for calls (``cs``) on LTE."""


@dataclass(slots=True)
class _Path:
    """``served`` None: not known yet. ``lost_ns``: of a loss that was reported. ``pending_ns``: when a loss was reported that nothing has
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
        return self._polled(name, path, record) if polled else self._registered(name, path, record)

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
        # A state that is not reported is service when a cell is named.
        if state in ("connected", "idle") or (state == "unknown" and ("eci" in fields or "ci" in fields)):
            path.pending_ns = None
            return self._served(name, path, record)
        return []

    def _registered(self, name: str, path: _Path, record: Record) -> list[Record]:
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
        return [_event("service_back", name, path.operator, record.monotonic_ns, took_ms=took_ms)]

    def _lost(self, name: str, path: _Path, at_ns: int, state: str | None) -> Record:
        path.served, path.lost_ns, path.pending_ns = False, at_ns, None
        return _event("service_lost", name, path.operator, at_ns, state=state if state in WITHOUT else None)


# ---------------------------------------------------------------------------------------------------------------------
# Modems that went silent and came back.


FAILED_STATES = ("no_answer", "port_lost")


@dataclass(slots=True)
class _Silence:
    polls: int = 0
    since_ns: int = 0
    last_ns: int = -1
    reported: bool = False


class PresenceDetector:
    """``modem_lost`` at the poll that makes ``lost_after_polls`` failed ones in a row, ``modem_back`` at the first good one."""

    def __init__(self, settings: Settings) -> None:
        self._after = settings.lost_after_polls
        self._silences: dict[str, _Silence] = {}

    def feed(self, record: Record) -> list[Record]:
        path = record.tags.get("path")
        if record.measurement != "radio" or path is None:
            return []
        silence = self._silences.setdefault(path, _Silence())
        if record.monotonic_ns <= silence.last_ns:
            return []
        silence.last_ns = record.monotonic_ns
        if record.fields.get("state") in FAILED_STATES:
            if silence.polls == 0:
                silence.since_ns = record.monotonic_ns
            silence.polls += 1
            if silence.reported or silence.polls < self._after:
                return []
            silence.reported = True
            lost = f"{silence.polls} polls failed, last: {record.fields['state']}"
            return [_event("modem_lost", path, record.tags.get("operator"), record.monotonic_ns, detail=lost)]
        reported, silent_s = silence.reported, (record.monotonic_ns - silence.since_ns) / 1e9
        back = f"after {silence.polls} failed polls, {silent_s:.1f} s"
        self._silences[path] = _Silence(last_ns=record.monotonic_ns)
        if not reported:
            return []
        return [_event("modem_back", path, record.tags.get("operator"), record.monotonic_ns, detail=back)]
