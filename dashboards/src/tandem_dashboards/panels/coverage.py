"""Operators against each other: distributions of RSRP and goodput, service, handovers, by operator, mobility state and place (geohashes
of six letters, about 1.2 by 0.6 km; larger where positions are coarse)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tandem.schema import grades
from tandem_dashboards.expressions import Expression, chosen, every, present, some, total
from tandem_dashboards.influxql import ROLLED, Select, select, windowed
from tandem_dashboards.kinds import bar_chart, markers, table, time_series, world
from tandem_dashboards.overrides import Override
from tandem_dashboards.panel import Panel, merged, series
from tandem_server.schema.derived import GOODPUT_BINS, GOODPUT_EDGES_MBIT_PER_S, RSRP_BINS, RSRP_EDGES_DBM, WEAK_DBM

WHERE = (chosen("probe"), chosen("operator"), chosen("path"))
_MADE = (
    " Made by the server of every poll: by the hour in ranges of up to seven days (the current hour too), above by the day (UTC). "
    "Areas, states and times not shown here are those without a poll."
)
_SECONDS = (
    " Of every second of TCP downloads that had the path for themselves (in pairs one after the other, or alone); made by the server, "
    "by the hour in ranges of up to seven days, above by the day (UTC). Empty: no such downloads in this time."
)


def _names(edges: Sequence[int], unit: str) -> list[str]:
    words = [str(edge).replace("-", "\N{MINUS SIGN}") for edge in edges]
    middle = [f"{low} to {high}" for low, high in pairwise(words)]
    return [f"below {words[0]}", *middle, f"{words[-1]} {unit} and more"]


RSRP_NAMES = _names(RSRP_EDGES_DBM, "dBm")
GOODPUT_NAMES = ["nothing", *_names(GOODPUT_EDGES_MBIT_PER_S, "Mbit/s")]


def shades(count: int) -> list[str]:
    """``count`` colours from poor over fair to good, those of the grades."""
    stops = [grades.COLOURS[tone].web for tone in ("poor", "fair", "good")]
    parts = [[int(stop[i : i + 2], 16) for i in (1, 3, 5)] for stop in stops]
    made = []
    for n in range(count):
        at = 2 * n / (count - 1)
        low = min(int(at), 1)
        mixed = [round(a + (b - a) * (at - low)) for a, b in zip(parts[low], parts[low + 1], strict=True)]
        made.append("#" + "".join(f"{one:02X}" for one in mixed))
    return made


def _bins(fields: Sequence[str], names: Sequence[str]) -> list[Expression]:
    return [total(field).named(name) for field, name in zip(fields, names, strict=True)]


def _of(columns: Sequence[Expression], by: str) -> Select:
    return select(*columns, of="coverage_day", policy=ROLLED, where=WHERE, by=[by])


def _distribution(title: str, text: str, across: str, columns: Sequence[Expression]) -> Panel:
    colours = shades(len(columns))
    return bar_chart(
        title,
        text,
        _of(columns, across),
        across=across,
        shares=True,
        overrides={str(c.name): Override(colour=colour) for c, colour in zip(columns, colours, strict=True)},
    )


def rsrp_distribution(across: str = "operator") -> Panel:
    """How the polls of each operator, or each mobility state, spread over RSRP."""
    return _distribution(
        f"RSRP by {_WORDS[across]}",
        f"Share of the polls with the serving cell's RSRP in each step of 5 dB, by {_WORDS[across]}; red is weak, green strong."
        + _MADE,
        across,
        _bins(RSRP_BINS, RSRP_NAMES),
    )


def goodput_distribution(across: str = "operator") -> Panel:
    """How the seconds of downloads of each operator, or in each mobility state, spread over goodput."""
    return _distribution(
        f"Goodput of TCP by {_WORDS[across]}",
        f"Share of the seconds with goodput (Mbit/s) in each step, by {_WORDS[across]}; nothing: a second in which no byte came."
        + _SECONDS,
        across,
        _bins(GOODPUT_BINS, GOODPUT_NAMES),
    )


_WORDS = {"operator": "operator", "mobility": "mobility state"}


FIGURES = (
    (total("time_s") * 1).in_unit("s").named("observed"),
    (total("rsrp_dbm_sum") / total("rsrp_dbm_count")).in_unit("dBm").named("rsrp"),
    total("rsrp_weak_count").part_of(total("rsrp_dbm_count"), "weak"),
    total("polls_unserved").part_of(total("polls"), "unserved"),
    (total("goodput_bit_per_s_sum") / total("goodput_bit_per_s_count")).in_unit("bit/s").named("goodput"),
    (total("handovers") / total("time_s") * 3600).in_unit("1/h").named("per_hour"),
    (total("way_handovers") / total("way_m") * 1000).in_unit("1/km").named("per_km"),
    (total("way_m") * 1).in_unit("m").named("way"),
)
"""Of any group of rows: sums by sums, so that each poll counts alike."""


def rsrp_steps() -> Override:
    """RSRP, coloured as everywhere."""
    scale = grades.scale("radio", "rsrp_dbm")
    return Override("RSRP, mean", steps=scale.steps if scale else (), decimals=1, cell="text")


def figure_overrides() -> dict[str, Override]:
    """Titles of ``FIGURES``."""
    return {
        "observed": Override("Time observed"),
        "rsrp": rsrp_steps(),
        "weak": Override(f"Polls below {WEAK_DBM} dBm".replace("-", "\N{MINUS SIGN}"), decimals=1),
        "unserved": Override("Polls without service", decimals=2),
        "goodput": Override("Goodput of TCP, mean"),
        "per_hour": Override("Handovers an hour", decimals=1),
        "per_km": Override("Handovers a kilometre", decimals=2),
        "way": Override("Way"),
    }


def summary(across: str = "operator") -> Panel:
    """The figures of each operator, or of each mobility state, side by side."""
    return table(
        f"Figures by {_WORDS[across]}",
        f"Each {_WORDS[across]} over the whole time range. Time observed is that of all its modems together. Handovers a kilometre "
        f"only where the way is "
        "known: position told in full (privacy mode full), outside home zones." + _MADE,
        _of(FIGURES, across),
        show={across: Override(_WORDS[across].capitalize()), **figure_overrides()},
        size=(24, 6),
    )


def rsrp_over_time() -> Panel:
    """Mean RSRP over time."""
    query = windowed(FIGURES[1], of="coverage_day", policy=ROLLED, where=WHERE, by=["operator"], fill="none")
    return time_series(
        "RSRP over time",
        "Mean RSRP of all polls, for each operator; a point an hour, or a day in ranges of more than seven days. No points: no polls then.",
        series(query, "$tag_operator"),
        override=Override(low=-125, high=-70),
        style="points",
        cadence="1h",
        points=180,
        size=(24, 8),
    )


def handover_rate() -> Panel:
    """Handovers an hour over time."""
    query = windowed(FIGURES[5], of="coverage_day", policy=ROLLED, where=WHERE, by=["operator"], fill="none")
    return time_series(
        "Handovers an hour",
        "Handovers by the time that the modems were polled, for each operator; a point an hour, or a day in ranges of more than seven "
        "days. No points: no polls then.",
        series(query, "$tag_operator"),
        style="points",
        override=Override(low=0),
        cadence="1h",
        points=180,
    )


def handovers_on_the_move() -> Panel:
    """Handovers a kilometre and an hour, by mobility state."""
    return bar_chart(
        "Handovers by mobility state",
        "Handovers an hour and a kilometre, standing, on foot and driving, over all chosen modems. A kilometre's only where the way is "
        "known (position told in full). Empty: no polls in this time.",
        _of([FIGURES[5], FIGURES[6]], "mobility"),
        across="mobility",
        overrides={"per_hour": Override("an hour", unit="1/h"), "per_km": Override("a kilometre", unit="1/km")},
    )


IN_AREAS = (chosen("operator"), present("area"))
_WHERE_FROM = (
    " A dot is the middle of an area of about 1.2 by 0.6 km; of about 5 by 5 km, where positions are told coarse. Empty: no positions "
    "in this time (privacy mode off, home zones, no receiver)."
)


def _areas(*numbers: int, by: tuple[str, ...] = ("area",)) -> tuple[Select, Select]:
    """Of all probes together, or of those chosen: one of the two has rows."""
    figures = [FIGURES[n] for n in numbers]
    together = select(*figures, of="area_day", policy=ROLLED, where=[*IN_AREAS, every("probe")], by=by)
    of_some = [*IN_AREAS, some("probe"), chosen("probe")]
    return together, select(*figures, of="probe_area_day", policy=ROLLED, where=of_some, by=by)


def rsrp_map() -> Panel:
    """Where how much RSRP arrives, one map an operator."""
    return world(
        "RSRP along the routes, $operator",
        "Mean RSRP of all polls in each area that was passed; red is poor, yellow fair, green good." + _WHERE_FROM,
        *_areas(1, 0),
        layers=[markers("RSRP", geohash="area", colour_by="rsrp", size=8)],
        overrides={"rsrp": rsrp_steps(), "observed": Override("Time observed")},
        repeat="operator",
        transformations=(merged(),),
        size=(12, 14),
    )


def goodput_map() -> Panel:
    """Where how much goodput was reached."""
    scale = grades.scale("run", "goodput_bit_per_s")
    return world(
        "Goodput along the routes",
        "Mean goodput of the TCP downloads in each area, of the chosen operators; red is poor, yellow fair, green good. Areas without "
        "a download are dark." + _WHERE_FROM,
        *_areas(4, 0),
        layers=[markers("Goodput", geohash="area", colour_by="goodput", size=8)],
        overrides={
            "goodput": Override("Goodput of TCP, mean", steps=scale.steps if scale else ()),
            "observed": Override("Time observed"),
        },
        transformations=(merged(),),
        size=(12, 14),
    )


def table_of_areas() -> Panel:
    """Every area and operator, the weakest first."""
    return table(
        "Areas",
        "Each operator in each area, the weakest first; what is on the maps, in figures." + _WHERE_FROM,
        *_areas(0, 1, 2, 4, by=("area", "operator")),
        show={"area": Override("Area"), "operator": Override("Operator")}
        | {name: its for name, its in figure_overrides().items() if name in ("observed", "rsrp", "weak", "goodput")},
        one_of=True,
        sort_by=("rsrp", False),
        size=(12, 14),
    )
