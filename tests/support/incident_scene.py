"""The commute of the incident run: what the operators do in it, and where the probe is each second."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from support.nmea import Place
from tandem_bench.scenario import Played, load, play
from tandem_bench.scenario.model import TICK_S
from tandem_bench.scenario.route import lay_out

FILE = Path(__file__).with_name("incidents.toml")
HOME = (51.8979, -8.4706)
DOWN_BIT_PER_S, UP_BIT_PER_S = 14e6, 5e6
"""At most: what counts here is that everything happens, and a machine with two cores has to carry it."""
BUFFER_S = 0.3
SERVICE_LOST_S = 5.0
"""In the tunnel, of the second operator: no cell at all."""

_HEARD = ("rsrp_dbm", "rsrq_db", "sinr_db", "rssi_dbm", "plmn", "tac", "eci", "pci", "earfcn", "band", "rat")


def scene() -> tuple[Played, list[Place]]:
    """The scenario played, and a place for each second."""
    scenario = load(FILE)
    played = play(scenario)
    operators = dict(played.operators)
    for name, timeline in operators.items():
        columns = {column: list(values) for column, values in timeline.columns.items()}
        _capped(columns)
        if name == list(operators)[-1]:
            (tunnel,) = (phase for phase in played.phases if phase["name"] == "tunnel")
            begin = round(tunnel["t_s"] / TICK_S)
            _without_service(columns, begin, begin + round(SERVICE_LOST_S / TICK_S))
        operators[name] = replace(timeline, columns=columns)
    route = lay_out(scenario)
    every = round(1 / TICK_S)
    points = [(float(x), float(y), float(v)) for x, y, v in zip(route.x_m, route.y_m, route.speed_m_s, strict=True)]
    return replace(played, operators=operators), _places(points[::every])


def _capped(columns: dict[str, list[Any]]) -> None:
    for way, most in (("down", DOWN_BIT_PER_S), ("up", UP_BIT_PER_S)):
        columns[f"{way}_bit_per_s"] = [min(rate, int(most)) for rate in columns[f"{way}_bit_per_s"]]
        columns[f"buffer_{way}_bytes"] = [int(most * BUFFER_S / 8)] * len(columns["outage"])


def _without_service(columns: dict[str, list[Any]], begin: int, end: int) -> None:
    for tick in range(begin, end):
        for column in _HEARD:
            columns[column][tick] = None
        columns["registered"][tick], columns["outage"][tick] = False, True
        columns["down_bit_per_s"][tick] = columns["up_bit_per_s"][tick] = 0


def _places(points: list[tuple[float, float, float]]) -> list[Place]:
    places, track = [], 90.0
    for here, there in zip(points, [*points[1:], points[-1]], strict=True):
        east, north = there[0] - here[0], there[1] - here[1]
        if math.hypot(east, north) > 0.1:
            track = math.degrees(math.atan2(east, north)) % 360
        latitude = HOME[0] + here[1] / 111_195
        longitude = HOME[1] + here[0] / 111_195 / math.cos(math.radians(HOME[0]))
        places.append(Place(latitude, longitude, here[2], track))
    return places
