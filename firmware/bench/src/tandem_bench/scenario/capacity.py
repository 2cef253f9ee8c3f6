"""What a link carries: rates from SINR, width and load; delay, loss and buffer of the path behind it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tandem_bench.scenario.chance import Array, slow_noise, stream
from tandem_bench.scenario.levels import Heard, energy_per_element_dbm, filter_share, filtered
from tandem_bench.scenario.model import Operator, Scenario
from tandem_bench.scenario.route import Route
from tandem_bench.scenario.serving import Service

_BLOCK_HZ = 180e3
_OVERHEAD = 0.25
_SHANNON = 0.75
_BEST_BIT_PER_S_HZ = 5.55
_SECOND_LAYER_FROM_DB, _SECOND_LAYER_FULL_DB = 8.0, 30.0
_UPLINK_SHANNON = 0.6
_UPLINK_BEST = 3.6
_UPLINK_TARGET_SNR_DB = 9.0
_UPLINK_NOISE_RISE_DB = 5.0
_PROBE_POWER_DBM = 23.0
_PACKET_BYTES = 1500


@dataclass(frozen=True)
class Link:
    """One entry a tick: bit/s down and up before interruptions, round-trip time ms, packet loss 0 to 1; buffers in bytes."""

    down_bit_per_s: Array
    up_bit_per_s: Array
    rtt_ms: Array
    loss: Array
    buffer_down_bytes: int
    buffer_up_bytes: int


def down_bit_per_s_hz(sinr_db: Array) -> Array:
    """Attenuated Shannon bound (3GPP TR 36.942 annex A), up to 64QAM; a second layer joins as the SINR rises."""
    one = np.minimum(_BEST_BIT_PER_S_HZ, _SHANNON * np.log2(1 + 10 ** (sinr_db / 10)))
    second = np.clip((sinr_db - _SECOND_LAYER_FROM_DB) / (_SECOND_LAYER_FULL_DB - _SECOND_LAYER_FROM_DB), 0, 1)
    return np.where(sinr_db < -10, 0.0, one * (1 + second) * (1 - _OVERHEAD))


def up_bit_per_s(coupling_loss_db: Array, blocks: Array) -> Array:
    """Rate over ``blocks`` resource blocks: power follows the loss up to what the probe has, then falls short of it."""
    noise_dbm = -174 + 10 * math.log10(_BLOCK_HZ) + 5 + _UPLINK_NOISE_RISE_DB
    wanted = noise_dbm + _UPLINK_TARGET_SNR_DB + coupling_loss_db
    most = _PROBE_POWER_DBM - 10 * np.log10(np.maximum(blocks, 1))
    snr_db = np.minimum(wanted, most) - coupling_loss_db - noise_dbm
    return blocks * _BLOCK_HZ * np.minimum(_UPLINK_BEST, _UPLINK_SHANNON * np.log2(1 + 10 ** (snr_db / 10)))


def offer(scenario: Scenario, operator: Operator, heard: list[Heard], service: Service, route: Route) -> Link:
    """The link of one operator along the route."""
    ticks = len(route.t_s)
    blocks, energy, load = np.empty(ticks), np.empty(ticks), np.empty(ticks)
    for i in np.unique(service.cell).tolist():
        at = np.flatnonzero(service.cell == i)
        h = heard[i]
        blocks[at] = h.cell.resource_blocks
        energy[at] = energy_per_element_dbm(operator, h.cell)
        load[at] = h.load[at - h.first]
    # The base station's scheduler follows reports, which the modem averages as it does the level.
    sinr = filtered(service.sinr_db, filter_share(scenario.radio.filter_k))
    whole = blocks * _BLOCK_HZ * down_bit_per_s_hz(sinr)
    share = 1.0 - load
    share = np.where(
        service.cell == service.cell[0], share * _start_share(scenario, operator, whole * share, route), share
    )
    share = np.clip(share, 0.03, 0.97)
    down = np.clip(whole * share, 0, operator.cap_down_mbit_s * 1e6)
    up = np.clip(up_bit_per_s(energy - service.rsrp_dbm, blocks * share), 0, operator.cap_up_mbit_s * 1e6)
    rng = stream(scenario.seed, operator.name, "path")
    drift = operator.rtt_variation_ms * slow_noise(rng, route.t_s, 20.0, 120.0) / 2
    # Below 5 dB blocks are sent again: 8 ms each time (HARQ), and below −3 dB the link layer repeats as well.
    rtt = operator.rtt_ms + drift + 8.0 * _ramp(5.0 - sinr, 8.0) + 25.0 * _ramp(-3.0 - sinr, 5.0)
    loss = operator.loss + 1e-4 * _ramp(-sinr, 6.0)
    return Link(down, up, np.maximum(1.0, rtt), loss, *_buffers(operator, down, up))


def _start_share(scenario: Scenario, operator: Operator, down: Array, route: Route) -> float:
    """What the share of the first cell is multiplied by, so that the first phase offers what the file says."""
    if operator.start_down_mbit_s is None:
        return 1.0
    low, high = operator.start_down_mbit_s
    wanted = low + (high - low) * float(stream(scenario.seed, operator.name, "start").random())
    offered = float(down[route.first_phase()].mean()) / 1e6
    return wanted / offered if offered > 0 else 1.0


def _ramp(over: Array, span: float) -> Array:
    return np.clip(over / span, 0.0, 1.0)


def _buffers(operator: Operator, down: Array, up: Array) -> tuple[int, int]:
    """Bytes: ``buffer_s`` of the mean rate, and never less than one and a half times what the best second has in flight."""

    def size(rate: Array) -> int:
        flight = 1.5 * float(rate.max()) * operator.rtt_ms / 1000
        bits = max(operator.buffer_s * float(rate.mean()), flight)
        return max(20, math.ceil(bits / 8 / _PACKET_BYTES)) * _PACKET_BYTES

    return size(down), size(up)
