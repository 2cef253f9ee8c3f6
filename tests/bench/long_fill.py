"""Months of a fleet, written at the database's speed: roll-ups of every hour, what is asked as it is, and raw records as far as they make
the index large (a series for each boot and run) or are asked for the last minutes.

Values are drawn once for each measurement, some hundred sets of fields, and used again and again: what a query reads is as much as in the
field, but for how well it packs.
"""

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, product

from tandem.schema.grades.ranges import usual
from tandem.schema.metrics import EVENT_KINDS, MEASUREMENTS, SERVER_MEASUREMENTS, VERDICT_ROLES, VERDICTS
from tandem.schema.metrics.campaign import CAMPAIGN_STATES
from tandem.schema.metrics.coverage import DERIVED_POLICIES, MOBILITY
from tandem.schema.metrics.probe import MODEM_STATES
from tandem.schema.metrics.radio import RADIO_STATES
from tandem.schema.metrics.server import PROBE_STATES, SERVER_PLACES
from tandem.schema.rollups import RECORDS, ROLLUPS
from tandem_server.store import StoreDown

HOUR_S, DAY_S = 3600, 86_400
BATCH = 5_000
_POOL = 300
_WORDS = {
    "radio.state": RADIO_STATES[:2],
    "modem_health.state": MODEM_STATES,
    "probe_state.state": PROBE_STATES,
    "campaign.state": CAMPAIGN_STATES,
    "event.handover_kind": ("enb", "sector"),
    "health.speed_class": ("low", "high"),
}
_SPANS = {"gain": (0.5, 2.0), "sum_ratio": (0.4, 1.1), "benefit_raw": (-1.0, 1.2)}
_ABSENT = ("rscp_", "ecno_", "nr_", "lac", "ci", "_code")
"""On LTE without its neighbours these are not told."""
_PATHS = (("path", "a"), ("operator", "alpha")), (("path", "b"), ("operator", "beta"))
_VALUES = {
    "rat": ("lte",), "kind": ("mptcp", "tcp"), "pairing": ("sequential",), "experiment": ("download",),
    "campaign": ("commute",), "end": ("probe", "server"), "mode": ("oneway",), "rule": ("bola-e",), "driver": ("quectel",),
    "role": VERDICT_ROLES, "verdict": VERDICTS[:2], "sensor": ("cpu", "nvme"), "device": ("mmcblk0",), "process": ("1",),
    "place": SERVER_PLACES[:3], "mobility": MOBILITY[:3], "fallback": ("false",), "step": ("size-1",),
}  # fmt: skip
_EVENTS = ("handover", "signal_drop", "mobility_start", "mobility_stop", "service_lost")
_RARE = {"event": 0.3, "subflow": 0.3, "connection": 0.3, "run": 0.3, "run_begun": 0.3, "run_usage": 0.3, "dash": 0.05,
         "dash_segment": 0.05, "aggregation": 0.02, "verdict": 0.02}  # fmt: skip
"""Part of the hours in which there is any: a commuter moves for some of them."""
_LETTERS = "0123456789bcdefghjkmnpqrstuvwxyz"


@dataclass(frozen=True)
class Fleet:
    """``probes`` of them, for ``days`` up to ``end_s``; ``runs`` a day of each, and ``areas`` of each."""

    probes: int
    days: int
    end_s: int
    runs: int = 6
    areas: int = 12

    @property
    def names(self):
        return [f"probe-{n:03}" for n in range(1, self.probes + 1)]

    @property
    def start_s(self):
        return (self.end_s - self.days * DAY_S) // DAY_S * DAY_S


def measurement_of(name):
    return MEASUREMENTS.get(name) or SERVER_MEASUREMENTS[name]


def tag_sets(name: str, tags, probe: str | None):
    """Every combination of the tags' values; path and operator go together."""
    assert set(tags) - {"probe", "path", "operator"} <= set(_VALUES) | {
        "boot",
        "run",
        "area",
        "subflow",
        "pair",
        "domain",
    }, (name, tags)
    choices = [[(("probe", probe),)]] if "probe" in tags else []
    if "path" in tags or "operator" in tags:
        choices.append([tuple(pair for pair in both if pair[0] in tags) for both in _PATHS])
    for tag in tags:
        if (name, tag) == ("campaign_data", "role"):
            choices.append([(("role", "lte"),)])
        elif tag in _VALUES:
            values = _EVENTS if (name, tag) == ("event", "kind") else _VALUES[tag]
            choices.append([((tag, value),) for value in values])
    return [dict(pair for part in parts for pair in part) for parts in product(*choices)]


def _value(draw, name, field, kind):
    words = _WORDS.get(f"{name}.{field}")
    if kind == "str":
        return f'"{draw.choice(words)}"' if words else '"word"'
    if kind == "bool":
        return draw.choice(("true", "true", "false"))
    try:
        span = usual(name, field)
        low, high = span.low, span.high
    except (KeyError, LookupError, AttributeError):
        low, high = 0, 1000
    low, high = _SPANS.get(field, (low, high))
    low, high = (0 if low is None else low), (1000 if high is None else high)
    return f"{draw.randint(int(low), max(int(low), int(high)))}i" if kind == "int" else f"{draw.uniform(low, high):.2f}"


def field_pool(name, wanted, draw):
    """Sets of fields as line protocol. ``wanted``: (name, kind, the raw field that it is about)."""
    out = []
    for _ in range(_POOL):
        parts = [
            f"{field}={_value(draw, name, raw, kind)}"
            for field, kind, raw in wanted
            if not any(field.startswith(a) or field == a for a in _ABSENT)
        ]
        out.append(",".join(parts))
    return out


def raw_pool(name, draw, needed):
    fields = [(f.name, f.kind, f.name) for f in measurement_of(name).fields if needed is None or f.name in needed]
    if name in MEASUREMENTS:
        fields += [("seq", "int", "seq"), ("monotonic_ns", "int", "monotonic_ns")]
    if len(fields) == 0:
        fields = [(f.name, f.kind, f.name) for f in measurement_of(name).fields][:1]
    return field_pool(name, fields, draw)


def rolled_pool(name, draw, needed):
    fields = []
    for column in ROLLUPS[name].columns:
        raw = column.name
        for ending in ("_min", "_max", "_sum"):
            raw = raw.removesuffix(ending)
        if column.where is not None and name == "radio" and "connected" not in column.name:
            continue  # a modem that answers tells few of its states in an hour
        if needed is None or column.name in needed or column.name == RECORDS:
            fields.append((column.name, column.kind, raw))
    return field_pool(name, fields, draw)


def _head(name, tags):
    return name + "".join(f",{key}={value}" for key, value in sorted(tags.items()))


def hours(fleet: Fleet, name: str, needed=None) -> Iterator[str]:
    """The roll-ups by the hour of one measurement."""
    draw = random.Random(name)
    pool, rollup = rolled_pool(name, draw, needed), ROLLUPS[name]
    some = _RARE.get(name, 1.0)
    probes = fleet.names if "probe" in rollup.tags else [None]
    heads = [_head(name, tags) for probe in probes for tags in tag_sets(name, rollup.tags, probe)]
    for at_s in range(fleet.start_s, fleet.end_s // HOUR_S * HOUR_S, HOUR_S):
        end = f" {at_s}000000000"
        for head in heads:
            if some == 1.0 or draw.random() < some:
                yield f"{head} {pool[int(draw.random() * _POOL)]}{end}"


def areas(fleet: Fleet, probe: str):
    """Of one probe: six letters, of one town."""
    draw = random.Random(probe)
    return ["u4xe" + "".join(draw.choice(_LETTERS) for _ in range(2)) for _ in range(fleet.areas)]


def derived(fleet: Fleet, name: str) -> Iterator[str]:
    """Coverage and pairs, asked as they are: by the hour (of the last days), the day, or a point a pair (of the last days)."""
    draw = random.Random(name)
    pool, kind = raw_pool(name, draw, None), measurement_of(name)
    every_s = {"coverage": HOUR_S, "area": HOUR_S, "pair": DAY_S // fleet.runs}.get(name, DAY_S)
    lately = DERIVED_POLICIES[name] == "minute"
    start_s = max(fleet.start_s, fleet.end_s - 8 * DAY_S) if lately else fleet.start_s
    mine = {probe: areas(fleet, probe) for probe in fleet.names}
    sets = {probe: [_head(name, tags) for tags in tag_sets(name, kind.tags, probe)] for probe in fleet.names}
    town = {"": sorted({area for some in mine.values() for area in some})}
    together = {"": [_head(name, tags) for tags in tag_sets(name, kind.tags, None)]}
    for at_s in range(start_s, fleet.end_s, every_s):
        for probe in fleet.names if "probe" in kind.tags else together:
            if name in ("area", "area_day"):
                most = town[""] if name == "area_day" else draw.sample(town[""], len(town[""]) // 4)
                here = [f"{s},area={area}" for s in together[""] for area in most]
            elif name == "probe_area_day":
                here = [f"{s},area={area}" for s in draw.sample(sets[probe], 2) for area in mine[probe]]
            elif name == "coverage":
                here = [f"{s},area={draw.choice(mine[probe])}" for s in draw.sample(sets[probe], 2)]
            else:
                here = draw.sample(sets[probe], 1) if name == "pair" else sets[probe]
            for head in here:
                yield f"{_sorted(head)} {pool[int(draw.random() * _POOL)]} {at_s}000000000"


def _sorted(head):
    name, *tags = head.split(",")
    return ",".join([name, *sorted(tags)])


def raw_index(fleet: Fleet, name: str, needed=None) -> Iterator[str]:
    """A record of each series that raw records make in all this time: a boot a day, ``runs`` runs a day, DASH in one of ten."""
    draw = random.Random(name)
    pool, kind = raw_pool(name, draw, needed), measurement_of(name)
    of_run = "run" in kind.tags
    numbers = range(0, fleet.runs, 10) if name in _SELDOM else range(fleet.runs if of_run else 1)
    sets = {probe: tag_sets(name, ("probe", *kind.tags), probe) for probe in fleet.names}
    for day, at_s in enumerate(range(fleet.start_s, fleet.end_s, DAY_S)):
        for probe in fleet.names:
            mine = sets[probe]
            for number in numbers:
                more = {"boot": f"{probe}-boot-{day}"} | ({"run": f"{probe}-{day}-{number}"} if of_run else {})
                more |= {"subflow": "1"} if "subflow" in kind.tags else {}
                more |= {"pair": f"{probe}-{day}-{number // 3}"} if "pair" in kind.tags else {}
                more |= {"domain": "eps"} if "domain" in kind.tags else {}
                two = name in ("subflow", "run_usage")
                here = mine if not of_run else [mine[number % len(mine)], mine[(number + 1) % len(mine)]][: 1 + two]
                for tags in here:
                    at_ns = (at_s + HOUR_S + number * 600) * 10**9 + int(draw.random() * 10**9)
                    yield f"{_head(name, tags | more)} {pool[int(draw.random() * _POOL)]} {at_ns}"


_SELDOM = ("dash", "dash_segment", "dash_playback", "aggregation", "verdict", "phase")


def events(fleet: Fleet, a_day: int) -> Iterator[str]:
    """Raw events: boards draw them as marks."""
    draw = random.Random("events")
    pool = raw_pool("event", draw, None)
    assert set(_EVENTS) <= set(EVENT_KINDS)
    for day, at_s in enumerate(range(fleet.start_s, fleet.end_s, DAY_S)):
        for probe in fleet.names:
            for _ in range(a_day):
                more = {"probe": probe, "boot": f"{probe}-boot-{day}", "kind": draw.choice(_EVENTS)}
                at_ns = at_s * 10**9 + int(draw.random() * DAY_S * 10**9)
                yield f"{_head('event', more | dict(draw.choice(_PATHS)))} {pool[int(draw.random() * _POOL)]} {at_ns}"


def latest(fleet: Fleet, name: str, every_s: float, minutes: int) -> Iterator[str]:
    """Raw records of the last minutes, as often as they come."""
    draw = random.Random(f"latest {name}")
    pool, kind = raw_pool(name, draw, None), measurement_of(name)
    of_probe = name in MEASUREMENTS
    heads = []
    for probe in fleet.names if of_probe or "probe" in kind.tags else [None]:
        boot = {"boot": f"{probe}-boot-{fleet.days - 1}"} if of_probe else {}
        tags = (*(["probe"] if of_probe else []), *kind.tags)
        heads += [_head(name, one | boot) for one in tag_sets(name, tags, probe)]
    for step in range(int(minutes * 60 / every_s)):
        at_ns = int((fleet.end_s - step * every_s) * 10**9)
        for head in heads:
            yield f"{head} {pool[int(draw.random() * _POOL)]} {at_ns}"


LATEST_S = {"radio": 1, "position": 1, "health": 10, "usage": 10, "spool": 10, "modem_health": 60, "sim_usage": 60, "clock": 60,
            "temperature": 60, "software": 3600, "card": 3600, "campaign": 60, "campaign_data": 60, "campaign_step": 60,
            "expected": 60, "probe_state": 60, "gateway": 60, "gateway_process": 60, "server_health": 60, "server_disk": 60,
            "server_traces": 60, "ledger": 60, "ledger_records": 600}  # fmt: skip


def needed_by(queries: Iterable[str]) -> dict[str, set[str]]:
    """By measurement, the names that these queries put between quotes: fields that nobody asks for cost a query nothing, and are left
    out."""
    names = [*MEASUREMENTS, *SERVER_MEASUREMENTS]
    found: dict[str, set[str]] = {}
    for query in queries:
        quoted = set(re.findall(r'"([A-Za-z0-9_]+)"', query))
        for name in names:
            if re.search(rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9_])", query):
                found.setdefault(name, set()).update(quoted)
    return found


def everything(fleet: Fleet, queries: list[str], minutes: int = 10, events_a_day: int = 20):
    """(what, retention policy, its lines), in turn; only of measurements that these queries ask."""
    needed = needed_by(queries)
    rolled = needed_by(query for query in queries if re.search(r'\$\{?(resolution|rolled)|"hour"', query))
    for name, policy in DERIVED_POLICIES.items():
        yield name, policy, derived(fleet, name)
    for name in MEASUREMENTS:
        if name != "event" and name in needed:
            yield f"raw {name}", None, raw_index(fleet, name, needed[name])
    yield "raw event", None, events(fleet, events_a_day)
    for name, every_s in LATEST_S.items():
        yield f"latest {name}", None, latest(fleet, name, every_s, max(minutes, every_s // 60 + 1))
    for name in ROLLUPS:
        if name in rolled:
            yield f"hour {name}", "hour", hours(fleet, name, rolled[name])


def write(store, lines: Iterator[str], policy: str | None) -> int:
    """How many were written; the first that the database refuses ends it."""
    count = 0
    while batch := list(islice(lines, BATCH)):
        for patience in reversed(range(20)):
            try:
                refused = store.write(batch, policy=policy)
                break
            except StoreDown:  # it compacts, or the machine is busy: its own limit is ten seconds
                if not patience:
                    raise
        assert not refused, (refused[0].reason, batch[refused[0].index])
        count += len(batch)
    return count
