"""What a probe said last, and what of it may be why it says no more. The reading, and a pure judgement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tandem.schema.grades import SCALES, tone_of
from tandem_server.store import Influx, Series
from tandem_server.utc import SPACED, duration, utc

WITHIN_S = 3600
"""Before its last record, so far back is looked."""
EVENTS = 12
_JUST_BEFORE_S = 120.0
_SERVED = ("connected", "idle", "unknown")
_HOT_DEGC = SCALES["health.processor_temperature_degc"].fair


@dataclass(frozen=True, slots=True)
class LastWords:
    """``at_utc_ns``: of its last record. By measurement (``health``) or measurement and path (``radio``, ``sim_usage``, ``modem_health``)
    the last value of each field within an hour before; ``events``: the newest first, with ``at_utc_ns kind path state detail``."""

    at_utc_ns: int
    health: Mapping[str, Any] = field(default_factory=dict)
    radio: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    modems: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    sims: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    events: Sequence[Mapping[str, Any]] = ()

    def to_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "at_utc": _utc(self.at_utc_ns),
            "reasons": reasons(self),
            "health": dict(self.health),
            "radio": {path: dict(fields) for path, fields in self.radio.items()},
            "modems": {path: dict(fields) for path, fields in self.modems.items()},
            "sims": {path: dict(fields) for path, fields in self.sims.items()},
            "events": [{"at_utc": _utc(one["at_utc_ns"]), **one} for one in self.events],
        }


def last_words(store: Influx, probe: str) -> LastWords | None:
    """None: it never sent a record, or none is kept any more. StoreDown, QueryError."""
    newest = 0
    for measurement in ("health", "radio", "event"):
        select = f'SELECT last("seq") FROM "{measurement}" WHERE "probe" = $probe'  # noqa: S608  a name from three lines above
        for series in store.query(select, {"probe": probe}):
            newest = max(newest, int(series.rows[0][0]))
    if newest == 0:
        return None
    since = newest - WITHIN_S * 10**9

    def ask(measurement: str, by: str = "") -> list[Series]:
        select = f'SELECT last(*) FROM "{measurement}" WHERE "probe" = $probe AND time > {since}{by}'  # noqa: S608  own names
        return store.query(select, {"probe": probe})

    def by_path(measurement: str) -> dict[str, dict[str, Any]]:
        return {one.tags.get("path", ""): _fields(one) for one in ask(measurement, ' GROUP BY "path"')}

    health = [_fields(one) for one in ask("health")]
    columns = '"kind", "path", "state", "detail"'
    select = (
        f'SELECT {columns} FROM "event" WHERE "probe" = $probe AND time > {since} ORDER BY time DESC LIMIT {EVENTS}'  # noqa: S608  own names
    )
    found = store.query(select, {"probe": probe})
    events = [
        {"at_utc_ns": row[0], **dict(zip(("kind", "path", "state", "detail"), row[1:], strict=True))}
        for one in found
        for row in one.rows
    ]
    return LastWords(
        newest, health[0] if health else {}, by_path("radio"), by_path("modem_health"), by_path("sim_usage"), events
    )


def _fields(series: Series) -> dict[str, Any]:
    """The values of ``last(*)`` by field."""
    named = dict(zip(series.columns, series.rows[0], strict=True))
    return {name.removeprefix("last_"): value for name, value in named.items() if name != "time" and value is not None}


def reasons(said: LastWords) -> list[str]:
    """What may be why it says no more, the likeliest first; never empty."""
    found: list[str] = []
    stop = next((e for e in said.events if e["kind"] in ("collector_start", "collector_stop")), None)
    if stop is not None and stop["kind"] == "collector_stop":
        found.append("its collector was ended in order: switched off, restarted, or an upgrade that did not come back")
    health = said.health
    if health.get("undervoltage") or _just_before(said, "undervoltage"):
        found.append("its supply's voltage was too low just before: power bank empty, weak supply or cable")
    if any(sim.get("left_bytes") == 0 for sim in said.sims.values()):
        used = [path for path, sim in said.sims.items() if sim.get("left_bytes") == 0]
        found.append(f"the SIM's plan of path {', '.join(used)} is used up: the operator may have cut it off")
    lost = [path for path, one in said.modems.items() if one.get("state") in ("lost", "recovering")]
    if lost:
        found.append(f"the modem of path {', '.join(lost)} was lost: its plug, its supply, or it hangs")
    away = [path for path, one in said.radio.items() if _without_service(one)]
    if away and len(away) == len(said.radio):
        found.append(
            "no network served it, or hardly: a tunnel, a cellar, abroad, antennas; it will send what it has when it is back"
        )
    if tone_of("health", "disk_free_bytes", health.get("disk_free_bytes")) == "poor":
        found.append("its disk was nearly full")
    degc = health.get("processor_temperature_degc")
    if isinstance(degc, int | float) and degc >= _HOT_DEGC:
        found.append(f"it was hot: {degc:.0f} °C")
    if not found:
        found.append("nothing foretold it: power was cut, or both networks fell away at once")
    return found


def _without_service(radio: Mapping[str, Any]) -> bool:
    if radio.get("state") not in _SERVED:
        return True
    return tone_of("radio", "rsrp_dbm", radio.get("rsrp_dbm")) == "poor"


def _just_before(said: LastWords, kind: str) -> bool:
    """An event of that kind that did not end, in the last two minutes."""
    for event in said.events:
        if event["kind"] == kind:
            return event.get("state") != "ends" and said.at_utc_ns - event["at_utc_ns"] < _JUST_BEFORE_S * 1e9
    return False


def text(probe: str, said: LastWords, now_utc_ns: int) -> list[str]:
    """For people."""
    ago_s = (now_utc_ns - said.at_utc_ns) / 1e9
    lines = [f"{probe}: last record {_utc(said.at_utc_ns)}, {duration(ago_s)} ago", "", "may be why:"]
    lines += [f"  - {one}" for one in reasons(said)]
    lines += ["", "said last:"]
    for path, one in sorted(said.radio.items()):
        level = "" if one.get("rsrp_dbm") is None else f", RSRP {one['rsrp_dbm']:g} dBm"
        modem = said.modems.get(path, {}).get("state")
        sim = said.sims.get(path, {})
        left = "" if sim.get("left_bytes") is None else f", plan {sim['left_bytes'] / 1e9:.2f} GB left"
        lines.append(f"  path {path}: {one.get('state')}{level}" + ("" if modem is None else f", modem {modem}") + left)
    shown = {name: said.health[name] for name in _SHOWN if said.health.get(name) is not None}
    lines += [
        f"  {name} {value:g}" if isinstance(value, float) else f"  {name} {value}" for name, value in shown.items()
    ]
    lines += ["", "events, the newest first:"]
    for event in said.events:
        where = "" if event["path"] is None else f" {event['path']}"
        lines.append(f"  {_utc(event['at_utc_ns'])} {event['kind']}{where} {event['detail'] or ''}".rstrip())
    return lines


_SHOWN = (
    *("uptime_s", "boot_count", "undervoltage", "throttled", "processor_temperature_degc"),
    *("disk_free_bytes", "clock_synchronised", "spool_records", "spool_oldest_s", "load_1min"),
)


def _utc(utc_ns: int) -> str:
    return utc(utc_ns, f"{SPACED}Z")
