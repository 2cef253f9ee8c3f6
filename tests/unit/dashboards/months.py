"""Two days of one probe and its server, as months look to a board: a roll-up of every hour, what is derived, and the newest raw records."""

import random
from collections.abc import Iterator
from itertools import product

from tandem.schema.metrics import (
    CAMPAIGN_STATES,
    EVENT_KINDS,
    MEASUREMENTS,
    MODEM_STATES,
    RADIO_STATES,
    VERDICT_ROLES,
    VERDICTS,
)
from tandem_server.schema.derived import DERIVED_POLICIES, MOBILITY
from tandem_server.schema.grades import usual
from tandem_server.schema.measurements import PROBE_STATES, SERVER_MEASUREMENTS, SERVER_PLACES
from tandem_server.schema.rollups import ROLLUPS

HOUR_S = 3600
HOURS = 48
_WORDS = {
    "radio.state": RADIO_STATES[:2],
    "modem_health.state": MODEM_STATES,
    "probe_state.state": PROBE_STATES,
    "campaign.state": CAMPAIGN_STATES,
    "event.handover_kind": ("enb", "sector"),
    "health.speed_class": ("low", "high"),
}
_TAGS = {
    "probe": ("kit-1",), "rat": ("lte",), "kind": ("mptcp", "tcp"), "pairing": ("sequential",), "experiment": ("download",),
    "campaign": ("commute",), "end": ("probe", "server"), "mode": ("oneway",), "rule": ("bola-e",), "driver": ("quectel",),
    "role": VERDICT_ROLES, "verdict": VERDICTS[:2], "sensor": ("cpu",), "device": ("mmcblk0",), "process": ("1",),
    "place": SERVER_PLACES[:3], "mobility": MOBILITY[:3], "fallback": ("false",), "step": ("size-1",), "area": ("u4xe00",),
}  # fmt: skip
_OF_EVENTS = {"kind": EVENT_KINDS}
_PATHS = ({"path": "a", "operator": "alpha"}, {"path": "b", "operator": "beta"})


def _heads(name: str, tags: tuple[str, ...], **more: str) -> list[str]:
    """A series for every combination of its tags' values; path and operator go together."""
    values = {**_TAGS, **(_OF_EVENTS if name == "event" else {})}
    free = [tag for tag in tags if tag in values]
    found = []
    for path, *chosen in product(_PATHS, *(values[tag] for tag in free)):
        both = {**{tag: path[tag] for tag in path if tag in tags}, **dict(zip(free, chosen, strict=True)), **more}
        found.append(name + "".join(f",{tag}={value}" for tag, value in sorted(both.items())))
    return list(dict.fromkeys(found))


def _value(name: str, kind: str, raw: str, draw: random.Random) -> str:
    if kind == "str":
        return f'"{draw.choice(_WORDS.get(f"{name}.{raw}", ("word",)))}"'
    if kind == "bool":
        return draw.choice(("true", "false"))
    try:
        span = usual(name, raw)
    except KeyError:  # how often, or how many records
        low, high = 1.0, 100.0
    else:
        low, high = span.low or 0.0, 1000.0 if span.high is None else span.high
    return f"{int(draw.uniform(low, high))}i" if kind == "int" else f"{draw.uniform(low, high):.3f}"


def _line(head: str, fields: list[tuple[str, str, str]], at_s: int, draw: random.Random) -> str:
    name = head.partition(",")[0]
    told = ",".join(f"{column}={_value(name, kind, raw, draw)}" for column, kind, raw in fields)
    return f"{head} {told} {at_s}000000000"


def everything(end_s: int) -> Iterator[tuple[str | None, list[str]]]:
    """(retention policy, its lines): what is there at ``end_s``."""
    draw = random.Random("months")
    hours = range(end_s // HOUR_S * HOUR_S - HOURS * HOUR_S, end_s // HOUR_S * HOUR_S, HOUR_S)
    for name, rollup in ROLLUPS.items():
        fields = [
            (c.name, c.kind, c.name.removesuffix("_min").removesuffix("_max").removesuffix("_sum"))
            for c in rollup.columns
        ]
        yield "hour", [_line(head, fields, at_s, draw) for head in _heads(name, rollup.tags) for at_s in hours]
    for name, kind in {**MEASUREMENTS, **SERVER_MEASUREMENTS}.items():
        fields = [(f.name, f.kind, f.name) for f in kind.fields]
        own = {"probe": "kit-1", "boot": "b"} if name in MEASUREMENTS else {}
        own |= {tag: tag for tag in ("run", "pair", "subflow", "domain") if tag in kind.tags}
        if name in DERIVED_POLICIES:
            yield (
                DERIVED_POLICIES[name],
                [_line(head, fields, at_s, draw) for head in _heads(name, kind.tags) for at_s in hours],
            )
        else:
            yield None, [_line(head, fields, end_s - 60, draw) for head in _heads(name, kind.tags, **own)]
