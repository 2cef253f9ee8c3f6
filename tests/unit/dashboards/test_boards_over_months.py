"""Boards over months ask roll-ups and have answers: of two days of one probe and its server, as months look to a board: a roll-up of every
hour, what is derived, and the newest raw records."""

import json
import random
import re
import time
from collections.abc import Iterator
from itertools import product

import pytest

from tandem.schema.metrics import (
    CAMPAIGN_STATES,
    EVENT_KINDS,
    MEASUREMENTS,
    MODEM_STATES,
    RADIO_STATES,
    VERDICT_ROLES,
    VERDICTS,
)
from tandem_dashboards import generate
from tandem_dashboards.grafana.macros import range_of
from tandem_dashboards.influx import Influx as Reading
from tandem_dashboards.query_runner import run_board
from tandem_server.schema.derived import DERIVED_POLICIES, MOBILITY
from tandem_server.schema.grades import usual
from tandem_server.schema.measurements import PROBE_STATES, SERVER_MEASUREMENTS, SERVER_PLACES
from tandem_server.schema.rollups import ROLLUPS
from tandem_server.store import PrivateInflux

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


BOARDS = {file.stem: json.loads(file.read_text()) for file in sorted(generate.boards.folder.glob("*.json"))}
END_S = int(time.time()) // 60 * 60


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


@pytest.fixture(scope="module")
def reading(influx_binary, tmp_path_factory):
    with PrivateInflux(influx_binary, tmp_path_factory.mktemp("months"), 0) as database:
        with database.client("admin") as store:
            for policy, lines in everything(END_S):
                assert store.write(lines, policy=policy) == []
        password = (database.folder / "reader.password").read_text().strip()
        with Reading(database.url, "tandem", "reader", password) as client:
            yield client


@pytest.mark.parametrize("name", BOARDS)
def test_over_half_a_year_every_query_is_answered_of_roll_ups_that_have_rows(reading, name):
    """Functions over all raw records of months would take minutes in the field. One run's and the last minutes' are few, and so are
    those of the one server."""
    span = range_of("now-6M", "now", END_S * 1000)
    chosen, answers = run_board(BOARDS[name], reading, span)
    assert answers
    for answer in answers:
        assert answer.error is None, (answer.query.name, answer.error, answer.text)
        drawn = answer.query.of == "panel"  # marks are of more kinds than are filled in
        if drawn and '"hour"."' in answer.text and not re.search(r"\bnow\(\)", answer.text):
            assert answer.rows, (answer.query.name, answer.text)
        raw = re.findall(r'FROM (?:"kept"\.)?"([a-z_]+)"', answer.text)
        figures = re.search(r"\b(mean|percentile|stddev|spread|median|sum|count)\(", answer.text)
        narrow = re.search(r'"(run|pair)" *=~? ', answer.text) or re.search(r"\bnow\(\)", answer.text)
        if figures and span.influxql in answer.text and not narrow:
            of_probes = {one for one in raw if one in ROLLUPS and "probe" in ROLLUPS[one].tags}
            assert not of_probes, (answer.query.name, answer.text)
    if "resolution" in chosen:
        assert chosen["resolution"].values == ("hour",)
