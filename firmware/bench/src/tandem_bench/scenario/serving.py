"""Which cell serves, tick by tick: event A3, handover with its interruption, radio link failure and re-establishment."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tandem_bench.scenario.chance import Array, stream
from tandem_bench.scenario.levels import Heard, energy_per_element_dbm
from tandem_bench.scenario.model import TICK_S, HandoverModel, Operator, Scenario
from tandem_bench.scenario.route import Route

_CHUNK = 200
_PREPARATION_TICKS = 1
_ABSENT_DBM = -250.0
_FAST_M_S = 20.0
_TICK_MS = TICK_S * 1000


@dataclass(frozen=True, slots=True)
class Change:
    """The end of one interruption: from ``tick`` on the new cell serves. ``cause`` a3, or radio link failure.

    ``interruption_ms`` ended with ``tick``; ``kept``: what was queued at the base station is delivered afterwards.
    """

    tick: int
    started: int
    from_cell: int
    to_cell: int
    interruption_ms: float
    kept: bool
    cause: str


@dataclass
class Service:
    """One entry a tick. ``cell``: index into the cells heard (-1 before any). ``rsrp_dbm`` filtered, ``sinr_db``.

    ``interference_mw`` per resource element, without noise; ``available`` 0 to 1: the share of the tick that carries traffic;
    ``kept``: the fate of the queue while it does not.
    """

    cell: NDArray[np.int64]
    rsrp_dbm: Array
    sinr_db: Array
    interference_mw: Array
    available: Array
    kept: NDArray[np.bool_]
    changes: list[Change] = field(default_factory=list)


def noise_mw(noise_figure_db: float) -> float:
    """Thermal noise and noise figure in one resource element of 15 kHz."""
    return float(10 ** ((-174.0 + 10 * math.log10(15e3) + noise_figure_db) / 10))


def serve(scenario: Scenario, operator: Operator, heard: list[Heard], route: Route) -> Service:
    """Play the whole route for one operator."""
    ticks = len(route.t_s)
    machine = _Machine(scenario, operator, heard, route)
    for begin in range(0, ticks, _CHUNK):
        machine.run(begin, min(begin + _CHUNK, ticks))
    return machine.out


class _Machine:
    """State between ticks. Cells are known by their index in ``heard``."""

    def __init__(self, scenario: Scenario, operator: Operator, heard: list[Heard], route: Route) -> None:
        ticks = len(route.t_s)
        self._model: HandoverModel = scenario.handover
        self._heard, self._route = heard, route
        self._noise_mw = noise_mw(scenario.radio.noise_figure_db)
        self._rng = stream(scenario.seed, operator.name, "handover")
        self._channels = np.array([h.cell.carrier.earfcn for h in heard])
        self._edge_dbm = energy_per_element_dbm(operator, heard[0].cell)
        self._waited = np.zeros(len(heard), dtype=np.int64)
        self._serving = -1
        self._target = -1
        self._resume = 0
        self._pending: Change | None = None
        self._lost_ticks = 0
        self._execute = -1
        self.out = Service(
            np.full(ticks, -1, dtype=np.int64),
            np.zeros(ticks),
            np.zeros(ticks),
            np.zeros(ticks),
            np.ones(ticks),
            np.ones(ticks, dtype=np.bool_),
        )

    def run(self, begin: int, end: int) -> None:
        """Play the ticks ``begin`` to ``end`` with the cells heard in them."""
        here = np.array([i for i, h in enumerate(self._heard) if h.first < end and h.end > begin])
        raw = np.full((end - begin, len(here)), _ABSENT_DBM)
        smooth = np.full((end - begin, len(here)), _ABSENT_DBM)
        load = np.zeros((end - begin, len(here)))
        for column, i in enumerate(here.tolist()):
            h = self._heard[i]
            first, last = max(begin, h.first), min(end, h.end)
            inside, of = slice(first - begin, last - begin), slice(first - h.first, last - h.first)
            raw[inside, column], smooth[inside, column] = h.rsrp_dbm[of], h.filtered_dbm[of]
            load[inside, column] = h.load[of]
        power = 10 ** (raw / 10)
        weighted = power * load
        channels = self._channels[here]
        totals = {int(c): weighted[:, channels == c].sum(axis=1) for c in np.unique(channels)}
        column_of = {int(i): column for column, i in enumerate(here)}
        for row in range(end - begin):
            self._tick(begin + row, here, column_of, smooth[row], power[row], weighted[row], totals, row)

    def _tick(
        self,
        tick: int,
        here: NDArray[np.int64],
        column_of: dict[int, int],
        smooth: Array,
        power: Array,
        weighted: Array,
        totals: dict[int, Array],
        row: int,
    ) -> None:
        if self._pending is not None and tick >= self._resume:
            self._arrive(tick, here, smooth)
        known = column_of.get(self._serving)
        if known is None or smooth[known] <= _ABSENT_DBM:
            self._serving = int(here[int(np.argmax(smooth))])
        column = column_of[self._serving]
        interference = max(0.0, float(totals[int(self._channels[self._serving])][row] - weighted[column]))
        sinr_db = 10 * math.log10(float(power[column]) / (interference + self._noise_mw))
        out = self.out
        out.cell[tick], out.rsrp_dbm[tick], out.sinr_db[tick] = self._serving, smooth[column], sinr_db
        out.interference_mw[tick] = interference
        if self._pending is not None:
            return
        self._lost_ticks = self._lost_ticks + 1 if sinr_db < self._model.failure_sinr_db else 0
        if self._lost_ticks * TICK_S >= self._model.failure_s:
            self._fail(tick)
        elif self._execute >= 0:
            if tick >= self._execute:
                self._hand_over(tick, sinr_db)
        else:
            self._watch(tick, here, smooth, column)

    def _watch(self, tick: int, here: NDArray[np.int64], smooth: Array, column: int) -> None:
        """Event A3 (TS 36.331 5.5.4.4): a neighbour better by offset and hysteresis for the time to trigger."""
        model = self._model
        better = smooth - (smooth[column] + model.offset_db)
        waited = self._waited
        counting = waited[here]
        counting = np.where(
            better > model.hysteresis_db, counting + 1, np.where(better < -model.hysteresis_db, 0, counting)
        )
        counting[column] = 0
        waited[:] = 0
        waited[here] = counting
        due = (counting - 1) * _TICK_MS >= model.time_to_trigger_ms
        due &= counting > 0
        if due.any():
            self._target = int(here[int(np.argmax(np.where(due, smooth, -np.inf)))])
            self._execute = tick + _PREPARATION_TICKS

    def _hand_over(self, tick: int, sinr_db: float) -> None:
        model, rng = self._model, self._rng
        self._execute = -1
        fast = min(1.0, float(self._route.speed_m_s[tick]) / _FAST_M_S)
        # The command itself is lost when the old cell is drowned: half of them at the failure threshold, steep around it.
        lost = 1.0 / (1.0 + math.exp(min(50.0, sinr_db - model.failure_sinr_db)))
        chance, drawn = rng.random(3), rng.standard_normal()
        if chance[0] < lost:
            self._fail(tick)
            return
        long = chance[1] < model.long_share + fast * (model.long_share_at_speed - model.long_share)
        median, spread = (
            (model.long_interruption_ms, 0.7) if long else (model.interruption_ms, model.interruption_spread)
        )
        interruption = min(10_000.0, median * math.exp(spread * float(drawn)))
        same_enb = self._heard[self._target].cell.enb_id == self._heard[self._serving].cell.enb_id
        kept = same_enb or bool(chance[2] >= model.drop_queue_share)
        self._interrupt(tick, interruption if kept else max(_TICK_MS, interruption), self._target, kept, "a3")

    def _fail(self, tick: int) -> None:
        """Radio link failure: the probe looks for the best cell and re-establishes there; the old queue is not forwarded."""
        self._lost_ticks = 0
        seconds = self._model.reestablishment_s * math.exp(0.5 * float(self._rng.standard_normal()))
        self._interrupt(tick, max(_TICK_MS, min(10.0, seconds) * 1000), -1, False, "radio link failure")

    def _interrupt(self, tick: int, interruption_ms: float, target: int, kept: bool, cause: str) -> None:
        """Nothing passes in whole ticks of the interruption; the tick of its last part carries less."""
        interruption_ms = round(interruption_ms, 1)
        whole, rest = divmod(interruption_ms, _TICK_MS)
        end = tick + int(whole)
        self.out.available[tick:end] = 0.0
        self.out.kept[tick:end] = kept
        if end < len(self.out.available):
            self.out.available[end] = 1.0 - rest / _TICK_MS
        self._resume = end + 1 if rest else end
        self._execute = -1
        self._waited[:] = 0
        self._pending = Change(self._resume, tick, self._serving, target, interruption_ms, kept, cause)

    def _arrive(self, tick: int, here: NDArray[np.int64], smooth: Array) -> None:
        change, self._pending = self._pending, None
        assert change is not None  # noqa: S101 - the caller looked
        best = int(here[int(np.argmax(smooth))])
        wanted = np.flatnonzero(here == change.to_cell)
        target = change.to_cell if wanted.size and smooth[int(wanted[0])] > _ABSENT_DBM else best
        self._serving = target
        self.out.changes.append(
            Change(tick, change.started, change.from_cell, target, change.interruption_ms, change.kept, change.cause)
        )
