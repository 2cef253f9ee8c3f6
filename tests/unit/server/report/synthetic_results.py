"""Manifests of every experiment, as their campaigns leave them, with results that are known beforehand; any number of runs."""

import json
from collections.abc import Sequence
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any

from support.synthetic_campaign import PROBE, run_manifest

QUANTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)


def spread(middle: float) -> dict[str, Any]:
    return {"n": 100, "mean": middle, **{f"p{q}": middle * (0.5 + q / 100) for q in QUANTILES}}


def run_of(step: str, result: dict[str, Any], arm: int = 0, **more: Any) -> dict[str, Any]:
    return {"step": step, "arm": arm, "parameters": {}, "result": result, **more}


def _download(n: int) -> dict[str, Any]:
    kind = ("mptcp", "tcp", "tcp")[n % 3]
    path = ("a", "a", "b")[n % 3]
    shares = {"a": 0.75, "b": 0.25} if kind == "mptcp" else {path: 1.0}
    goodput = {("mptcp", "a"): 30e6, ("tcp", "a"): 20e6, ("tcp", "b"): 10e6}[kind, path]
    return {
        "kind": kind, "step": "wild", "arm": 0, "pair": f"pair-{n // 3}", "parameters": {"kind": kind, "path": path, "bytes": 1_000_000},
        "result": {"bytes": 1_000_000, "duration_s": 8e6 / goodput, "goodput_bit_per_s": goodput, "connect_ms": 50.0, "first_byte_ms": 60.0,
                   "fallback": False, "subflows": [{"path": p, "bytes": 1, "share": s, "join_delay_ms": 120.0 if p == "b" else 0.0}
                                                   for p, s in shares.items()]},
    }  # fmt: skip


def _bandwidth(n: int) -> dict[str, Any]:
    ratio = (1, 4, 20)[n % 3]
    benefit = {"primary": "a", "goodput_bit_per_s": 1.5e6 * ratio, "benefit": 1 - ratio / 20, "benefit_raw": 1.25 - ratio / 20,
               "most_loaded_share": ratio / (ratio + 1), "fallback": False, "shares": {}}  # fmt: skip
    subflows = [{"path": "a", "bytes": 75}, {"path": None, "bytes": 25}]
    phase = {"name": "mptcp a", "connections": [{"subflows": subflows}]}
    row = {"number": 0, "c_i_bit_per_s": {"a": 1e6 * ratio, "b": 1e6}, "c_max_bit_per_s": 1e6 * ratio,
        "c_total_bit_per_s": 1e6 * (ratio + 1),
           "tdi": 1.0, "bandwidth_ratio": ratio * 1.01, "phases": [phase], "benefits": [benefit]}  # fmt: skip
    shape = {"a": {"interface": "wwan0", "asked": {"up_bit_per_s": 1e6 * ratio}, "held": True}}
    return run_of("ratios", {"mode": "oneway", "rounds": [row]}, n % 3, parameters={"mode": "oneway"}, shape=shape)


def _delay(n: int) -> dict[str, Any]:
    size = (150, 5_000, 700_000)[n % 3]
    value = (-0.5, 0.1, 0.9)[n % 3]
    end = {"delay_s": 0.05, "benefit": value, "benefit_raw": value}
    benefit = {"primary": "b", **end, "agent": end, "server": {**end, "benefit": value / 2}, "most_loaded_share": 0.6}
    rounds = [{"number": 0, "bytes": size, "benefits": [benefit]}]
    return run_of("sizes", {"mode": "oneway", "timed_at": "agent", "rounds": rounds})


def _dash(n: int) -> dict[str, Any]:
    length = (1, 6, 15)[n % 3]
    segments = [
        {"number": k, "requested_s": k * length * 0.9, "duration_ms": 500.0, "buffer_level_ms": 1000.0 * min(30, k * length),
         "bitrate_bit_per_s": (1, 3, 5, 8)[k % 4] * 1e6}
        for k in range(60 // length)
    ]  # fmt: skip
    return {
        "step": "plays", "arm": n % 3, "parameters": {"kind": "mptcp", "path": "a", "mpd": f"{length}s-number.mpd", "abr": "throughput"},
        "result": {"bitrate_bit_per_s": 4e6, "goodput_bit_per_s": 9e6, "startup_delay_ms": 400.0, "stalls": n % 2,
            "stalled_s": 1.5 * (n % 2),
                   "stall_ratio": 0.01, "switches_per_minute": 60 / length, "qoe_linear_per_segment": 2000.0, "media_s": 60.0,
                   "fallback": False,
                   "player": {"name": "own", "abr": "throughput"}, "segments": segments},
    }  # fmt: skip


def _reachability(_: int) -> dict[str, Any]:
    ways = [
        {"way": f"{p}/{r}", "names": 100, "addresses": 180, "unresponsive_share": 0.05, "names_unresponsive_share": 0.01,
         "name_rtt_ms": spread(40.0 if p == "W" else 70.0)}
        for p in "WL" for r in "WL"
    ]  # fmt: skip
    overlap = [{"paths": ["W", "L"], "addresses_either": 200, "addresses_both": 120, "share": 0.6, "names_both": 98,
                "names_same_share": 0.4}]  # fmt: skip
    compared = [{"ways": ["W/W", "W/L"], "names": 95, "second_slower_share": 0.7, "difference_ms": spread(5.0)}]
    return run_of("survey", {"ways": ways, "overlap": overlap, "comparison": compared})


def _latency(_: int) -> dict[str, Any]:
    streams = [
        {"path": p, "loaded": loaded, "rtt_ms": spread(200.0 if loaded else 50.0), "rtt_jitter_ms": spread(2.0), "up_ms": None,
            "lost_share": 0.0}
        for p in "ab" for loaded in (False, True)
    ]  # fmt: skip
    return run_of("idle", {"streams": streams})


def _traceroute(_: int) -> dict[str, Any]:
    hops = [{"ttl": 1, "routers": [{"address": "192.0.2.1"}]}, {"ttl": 2, "routers": []}]
    traces = [{"path": p, "protocol": "tcp", "ended": "reached", "hops": hops} for p in "ab"]
    apart = [
        {"paths": ["a", "b"], "protocol": "tcp", "shared": 1, "disjoint_share": 0.8, "systems_disjoint_share": None}
    ]
    return run_of("ways", {"traces": traces, "disjointness": apart})


def _verdict(n: int) -> dict[str, Any]:
    stripped = {"verdict": "stripped", "where": "syn"}
    join = stripped if n % 4 == 0 else {"verdict": "native"}
    return run_of("look", {"paths": {"a": {"primary": {"verdict": "native", "where": None}, "join": join}}})


def _pageload(n: int) -> dict[str, Any]:
    kind = ("mptcp", "tcp")[n % 2]
    loads = [{"page": "p", "by": "browser", "page_load_time_ms": 1500.0 + n, "objects": 40, "bytes": 10**6, "failure": None,
              "shares": {"a": 0.7, "b": 0.3}}, {"page": "q", "by": "browser", "failure": "timeout", "page_load_time_ms": 9.0}]  # fmt: skip
    result = {"page_load_time_ms": spread(1500.0 + n), "objects": 40, "fallback": False, "loads": loads}
    return run_of("pages", result, n % 2, parameters={"kind": kind, "path": "a"})


def _handshake(n: int) -> dict[str, Any]:
    figures = {"handshake_ms": 40.0 + n, "connect_ms": spread(20.0), "made": 5, "median_ms": {"a": 30.0, "b": 50.0}}
    return run_of("own", {**figures, "odd": "text"})


MAKERS = {
    "download": _download, "bandwidth": _bandwidth, "delay": _delay, "dash": _dash, "reachability": _reachability, "latency": _latency,
    "traceroute": _traceroute, "verdict": _verdict, "pageload": _pageload, "handshake": _handshake,
}  # fmt: skip
UNITS = {"pageload": {"page_load_time_ms": "ms", "objects": "1"}, "handshake": {"handshake_ms": "ms", "made": "1"}}


def manifests(runs: int, names: Sequence[str] = tuple(MAKERS)) -> list[dict[str, Any]]:
    """``runs`` of them, the experiments ``names`` in turn; each seventh of an experiment has failed."""
    made, numbers = [], {name: count() for name in names}
    for n, name in enumerate(islice(cycle(names), runs)):
        number = next(numbers[name])
        one = MAKERS[name](number)
        failed = number % 7 == 6
        at = {"name": f"all-{name}", "form": "short", "step": one["step"], "arm": one["arm"]}
        at |= {"number": number, "repetition": number}
        instead = {"scheduler": {"asked": "minsrtt", "used": "stock"}}
        more: dict[str, Any] = {
            "pair": one.get("pair", f"pair-x{n}"), "pairing": "single", "kind": one.get("kind", "any"), "trigger": "campaign",
            "paths": [one["parameters"].get("path", "a")], "parameters": one["parameters"], "seed": n, "ended_utc_ns": None,
            "failure": {"reason": "connect: timeout", "retry": True} if failed else None,
            "experiment": {"name": name, "version": 1, "units": UNITS.get(name, {})},
            "usage": {"paths": {"a": {"received": 1000, "sent": 24}}, "shared_by_pair": False},
            "campaign": {**at, "attempt": 1, "label": None, "roles": {}, "substituted": instead},
        }  # fmt: skip
        if "shape" in one:
            more["conditions"] = {"sysctl": {}, "shape": one["shape"]}
        made.append(run_manifest(f"run-{n:06d}", name, n * 10.0, 5.0, None if failed else one["result"], **more))
    return made


def write(folder: Path, runs: int, names: Sequence[str] = tuple(MAKERS)) -> Path:
    """A campaign folder of a probe in the field, with nothing but runs."""
    own = folder / "probe" / PROBE / "runs"
    own.mkdir(parents=True)
    for manifest in manifests(runs, names):
        (own / f"{manifest['id']}.json").write_text(json.dumps(manifest, indent=1))
    begun = folder / "probe" / PROBE / "campaigns" / "all-dash" / "begun.json"
    begun.parent.mkdir(parents=True)
    begun.write_text(json.dumps({"format": "tandem-campaign-progress/1", "sequences": {"plays": [[0, 0]] * 500}}))
    campaign = {"format": "tandem-campaign/1", "probe": PROBE, "scenario": None, "started_utc_ns": 1_780_000_000 * 10**9,
        "ended_utc_ns": None,
                "stopped": None, "paths": {"a": {"operator": "A"}, "b": {"operator": "B"}}}  # fmt: skip
    (folder / "campaign.json").write_text(json.dumps(campaign))
    return folder
