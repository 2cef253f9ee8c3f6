"""From a scenario to its timelines and events. Nothing here is random but by the scenario's seed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem_bench import truth
from tandem_bench.scenario import capacity, cells, levels, route, serving
from tandem_bench.scenario.chance import Array, stream
from tandem_bench.scenario.model import TICK_S, Operator, Scenario
from tandem_bench.scenario.played import Played, Timeline
from tandem_bench.scenario.propagation import band_of
from tandem_bench.truth import Event

_REFERENCE_SHARE = 1 / 3
"""Of a serving cell's power in the symbols where RSSI is measured, what is sent at no load: reference signals of two ports."""


def play(scenario: Scenario) -> Played:
    """Compute the whole scenario."""
    way = route.lay_out(scenario)
    phases = [
        {
            "t_s": round(begin * TICK_S, 1),
            "type": "phase",
            "name": phase.name,
            "activity": phase.activity,
            "speed_m_s": phase.speed_m_s,
            "until_s": round(end * TICK_S, 1),
        }
        for phase, begin, end in zip(way.phases, way.starts[:-1], way.starts[1:], strict=True)
    ]
    speed = _rounded(way.speed_m_s, 2)
    events: list[Event] = [*phases, *truth.of_mobility(speed, TICK_S)]
    timelines = {}
    for operator in scenario.operators:
        sites = cells.build(scenario, operator, way)
        heard = levels.hear(scenario, operator, sites, way)
        service = serving.serve(scenario, operator, heard, way)
        link = capacity.offer(scenario, operator, heard, service, way)
        columns = {**_radio(scenario, operator, heard, service), **_link(link, service), "speed_m_s": speed}
        timelines[operator.name] = Timeline(operator.name, scenario.name, scenario.seed, scenario.duration_s, columns)
        events += truth.of_drops(operator.name, columns["rsrp_dbm"], TICK_S)
        events += _changes(operator.name, columns["eci"], service)
    return Played(scenario.name, scenario.seed, scenario.duration_s, timelines, phases, truth.in_order(events))


def _rounded(values: Array, digits: int) -> list[float]:
    return [float(v) for v in np.round(values, digits)]


def _radio(
    scenario: Scenario, operator: Operator, heard: list[levels.Heard], service: serving.Service
) -> dict[str, list[Any]]:
    """What the modem reports, rounded as it reports it; RSRP + 10·log N − RSSI = RSRQ holds up to the rounding."""
    serving_cells = [heard[i].cell for i in service.cell.tolist()]
    blocks = np.array([c.resource_blocks for c in serving_cells], dtype=np.float64)
    load = np.empty(len(blocks))
    for i in np.unique(service.cell).tolist():
        at = np.flatnonzero(service.cell == i)
        load[at] = heard[i].load[at - heard[i].first]
    share = levels.filter_share(scenario.radio.filter_k)
    noise = serving.noise_mw(scenario.radio.noise_figure_db)
    others = 10 ** (levels.filtered(10 * np.log10(service.interference_mw + noise), share) / 10)
    own = 10 ** (service.rsrp_dbm / 10) * (_REFERENCE_SHARE + (1 - _REFERENCE_SHARE) * load)
    # RSSI is the power over all N blocks of 12 subcarriers, RSRQ = N·RSRP / RSSI (TS 36.214 5.1.3).
    rssi = 10 * np.log10(12 * blocks * (own + others))
    rsrq = 10 * np.log10(blocks) + service.rsrp_dbm - rssi
    ticks = len(serving_cells)
    told = _renewed(scenario, operator, service.cell)
    return {
        # Steps and ends of the scales: TS 36.133 9.1.4 (RSRP) and 9.1.7 (RSRQ); SINR and RSSI as modems print them.
        "rsrp_dbm": _rounded(np.clip(service.rsrp_dbm[told], -140, -44), 0),
        "rsrq_db": _rounded(np.clip(np.round(2 * rsrq[told]) / 2, -34, 2.5), 1),
        "sinr_db": _rounded(np.clip(np.round(2 * levels.filtered(service.sinr_db, share)[told]) / 2, -20, 40), 1),
        "rssi_dbm": _rounded(np.clip(rssi[told], -113, -20), 0),
        "plmn": [operator.plmn] * ticks,
        "tac": [c.tac for c in serving_cells],
        "eci": [c.eci for c in serving_cells],
        "pci": [c.pci for c in serving_cells],
        "earfcn": [c.carrier.earfcn for c in serving_cells],
        "band": [band_of(c.carrier.earfcn) for c in serving_cells],
        "rat": ["LTE"] * ticks,
        "registered": [True] * ticks,
    }


def _renewed(scenario: Scenario, operator: Operator, cell: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each tick the one whose levels the modem tells: renewed every ``report_s``, from an instant of its own, and with the cell."""
    period = max(1, round(scenario.radio.report_s / TICK_S))
    phase = int(stream(scenario.seed, operator.name, "report").integers(period))
    tick = np.arange(len(cell), dtype=np.int64)
    changed = np.concatenate(([False], cell[1:] != cell[:-1]))
    return np.maximum.accumulate(np.where(changed | (tick % period == phase), tick, 0))


def _link(link: capacity.Link, service: serving.Service) -> dict[str, list[Any]]:
    ticks = len(service.cell)
    loss = _rounded(link.loss, 7)
    return {
        "down_bit_per_s": [int(v) for v in np.round(link.down_bit_per_s * service.available, -3)],
        "up_bit_per_s": [int(v) for v in np.round(link.up_bit_per_s * service.available, -3)],
        "rtt_ms": _rounded(link.rtt_ms, 1),
        "buffer_down_bytes": [link.buffer_down_bytes] * ticks,
        "buffer_up_bytes": [link.buffer_up_bytes] * ticks,
        "loss_down": loss,
        "loss_up": loss,
        "outage": [bool(v) for v in service.available == 0],
        "queue": ["kept" if v else "dropped" for v in service.kept],
    }


def _changes(operator: str, eci: list[int], service: serving.Service) -> list[Event]:
    """``handover`` and ``outage`` lines. A cell that fell out of reach without either is a handover without interruption."""
    known = {change.tick: change for change in service.changes}
    events: list[Event] = []
    for tick in range(1, len(eci)):
        if eci[tick] != eci[tick - 1]:
            t_s, change = round(tick * TICK_S, 1), known.get(tick)
            told = (change.interruption_ms, change.kept, change.cause) if change else (0.0, True, "out of reach")
            events.append(truth.handover(operator, t_s, eci[tick - 1], eci[tick], *told))
    events.extend(
        {
            "t_s": round(change.started * TICK_S, 1),
            "type": "outage",
            "operator": operator,
            "until_s": round(change.started * TICK_S + change.interruption_ms / 1000, 4),
            "why": "handover" if change.cause == "a3" else change.cause,
        }
        for change in service.changes
        if change.interruption_ms >= TICK_S * 1000
    )
    return events
