"""Manifests as the papers' campaigns leave them, made up with the shapes that the papers found; seeded. Nothing here is measured."""

import math
import random
from collections.abc import Iterator
from itertools import count, product
from typing import Any

from synthetic_results import spread

from support.synthetic_campaign import run_manifest

Run = dict[str, Any]
IDLE_S = (10.0, 52.0, 90.0, 130.0)
"""Moments of the made-up commute: still, walking, on the tram, driving."""
_NUMBER = count()


def manifest(
    experiment: str,
    result: Run | None,
    parameters: Run,
    /,
    *,
    kind: str = "any",
    paths: tuple[str, ...] = ("a", "b"),
    at_s: float = 10.0,
    lasts_s: float = 2.0,
    shape: dict[str, Run] | None = None,
    **campaign: Any,
) -> Run:
    number = next(_NUMBER)
    told = {"name": "", "form": "paper", "step": "", "number": number, "repetition": 0, "arm": 0, "attempt": 1, "label": None,
            "roles": {}, "substituted": {}, **campaign}  # fmt: skip
    shaped = {p: {"interface": p, "asked": asked, "held": True} for p, asked in (shape or {}).items()}
    of = {"pair": f"paper-{number}", "pairing": "single", "kind": kind, "paths": list(paths), "trigger": "campaign"}
    of |= {"parameters": parameters, "conditions": {"sysctl": {}, "shape": shaped}, "campaign": told}
    return run_manifest(f"paper-{number:05d}", experiment, at_s, lasts_s, result, **of)


def downloaded(
    r: random.Random, size: int, took_s: float, shares: dict[str, float], rtt: dict[str, float], loss: dict[str, float]
) -> Run:
    flows = [
        {"subflow": str(n + 1), "path": p, "operator": p.upper(), "bytes": int(size * share), "share": share, "rtt_ms_median": rtt[p],
         "join_delay_ms": 40.0 * n, "rtt_source": "sender", "handshake_rtt_ms": rtt[p] * 0.7,
         "bytes_retrans": int(size * share * loss.get(p, 0.0) * r.uniform(0.5, 1.5))}
        for n, (p, share) in enumerate(shares.items())
    ]  # fmt: skip
    told = [{"path": p, "rtt_ms_min": value * 0.6, "rtt_ms_median": value} for p, value in rtt.items()]
    sender = {"connections": [{"subflows": told}]}
    return {"bytes": size, "duration_s": took_s, "goodput_bit_per_s": size * 8 / took_s, "connect_ms": rtt[next(iter(shares))],
            "first_byte_ms": 60.0, "fallback": False, "subflows": flows, "sender": sender}  # fmt: skip


def cordero_bandwidth(r: random.Random) -> Iterator[Run]:
    for ratio, control, _ in product((1, 2, 5, 10, 20), ("lia", "olia"), range(6)):
        alone = {"a": 1e6 * ratio * r.uniform(0.95, 1.05), "b": 1e6 * r.uniform(0.95, 1.05)}
        together = sum(alone.values()) * r.uniform(0.96, 1.02)
        best = max(alone.values())
        part = 1 - ratio / (12 if control == "lia" else 20) + r.gauss(0, 0.05)
        x = best + part * (together - best) if part > 0 else best * max(0.1, 1 + part)
        row = {"number": 0, "c_i_bit_per_s": alone, "c_max_bit_per_s": best, "c_total_bit_per_s": together,
               "tdi": together / sum(alone.values()), "bandwidth_ratio": best / min(alone.values()), "phases": [],
               "benefits": [{"primary": "a", "goodput_bit_per_s": x, "benefit": max(-1.0, min(1.0, part)), "benefit_raw": part,
                             "most_loaded_share": ratio / (1 + ratio), "fallback": False, "shares": {}}]}  # fmt: skip
        shape = {"a": {"up_bit_per_s": 1e6 * ratio}, "b": {"up_bit_per_s": 1e6}}
        parameters = {"mode": "oneway", "congestion_control": control}
        result = {"mode": "oneway", "rounds": [row]}
        yield manifest("bandwidth", result, parameters, shape=shape, name="cordero-bandwidth", step="ratios")


def cordero_delay(r: random.Random) -> Iterator[Run]:
    for ratio, _ in product((1, 2, 4, 10), range(60)):
        size = round(10 ** r.uniform(2, 7))
        fast, slow = 0.02 + size * 8 / (1e6 * ratio), 0.06 + size * 8 / 1e6
        long = min(1.0, math.log10(max(size, 1000) / 1000) / 4)
        value = max(-1.0, min(1.0, long * r.gauss(0.6, 0.4) + r.gauss(-0.04, 0.04)))
        ideal = 1 / (1 / fast + 1 / slow)
        took = fast - value * (fast - ideal) if value > 0 else fast - value * (slow - fast)
        share = 1.0 if size < 100_000 else max(ratio / (1 + ratio), 1.0 - long * r.uniform(0.3, 1) / (1 + ratio))
        end = {"delay_s": took, "benefit": value, "benefit_raw": value}
        transfers = [{"name": "tcp a", "connect_ms": r.uniform(20, 24)}, {"name": "tcp b", "connect_ms": r.uniform(60, 90)},
                     {"name": "mptcp a", "connect_ms": r.uniform(20.4, 24.6)}]  # fmt: skip
        benefit = {"primary": "a", **end, "agent": end, "server": end, "most_loaded_share": share, "fallback": False}
        rounds = [{"number": 0, "bytes": size, "transfers": transfers, "benefits": [benefit]}]
        shape = {"a": {"up_bit_per_s": 1e6 * ratio}, "b": {"up_bit_per_s": 1e6}}
        result = {"mode": "oneway", "timed_at": "agent", "rounds": rounds}
        yield manifest("delay", result, {"mode": "oneway"}, shape=shape, name="cordero-delay", step="ratios")


def mohan_plays(r: random.Random) -> Iterator[Run]:
    for at_s, length, n in product(IDLE_S[:2] + IDLE_S[3:], (1, 6, 15), range(5)):
        slow = 1 + IDLE_S.index(at_s) / 3
        rates = ((240, 0.4e6), (720, 3e6), (1080, 5e6), (2160, 14e6))
        segments = [
            {"number": k, "height": rates[k % 4][0], "bitrate_bit_per_s": rates[k % 4][1], "requested_s": k * length * 0.9,
             "duration_ms": 400.0, "bytes": int(rates[k % 4][1] * length / 8)}
            for k in range(60 // length)
        ]  # fmt: skip
        result = {"bitrate_bit_per_s": 5e6, "goodput_bit_per_s": 14e6 / slow * r.uniform(0.85, 1.1), "startup_delay_ms": 400.0, "stalls": 0,
                  "switches_per_minute": 8 * slow / length * r.uniform(0.8, 1.2), "media_s": 600.0, "segments": segments,
                  "player": {"name": "own", "abr": "throughput"}}  # fmt: skip
        parameters = {"kind": "mptcp", "path": "a", "mpd": f"{length}s-number.mpd"}
        step = "controlled" if n == 0 else "wild"
        yield manifest("dash", result, parameters, at_s=at_s, name="mohan-dash", step=step)


def mohan_controllers(r: random.Random) -> Iterator[Run]:
    for at_s, (rank, control), _ in product(
        (10.0, 52.0, 130.0), enumerate(("cubic", "lia", "olia", "balia")), range(9)
    ):
        slow = 1 + IDLE_S.index(at_s) / 2
        rate = (60e6 - rank * 2e6) / slow * r.uniform(0.7, 1.3)
        rtt = {p: (56.0 + 40 * slow - rank * 5) * r.uniform(0.7, 1.4) for p in "ab"}
        result = downloaded(r, 2_000_000, 16e6 / rate, {"a": 0.55, "b": 0.45}, rtt, {})
        parameters = {"kind": "mptcp", "path": "a", "bytes": 2_000_000, "congestion_control": control}
        yield manifest("download", result, parameters, kind="mptcp", at_s=at_s, name="mohan-congestion", step="wild")


def mohan_labelled(r: random.Random) -> Iterator[Run]:
    for (n, label), repetition, kind in product(
        enumerate(("stationary", "walking", "driving")), range(4), ("mptcp", "tcp", "tcp-b")
    ):
        paths = {"mptcp": ("a", "b"), "tcp": ("a",), "tcp-b": ("b",)}[kind]
        rate = (70e6, 45e6, 30e6)[n] * (1 if kind == "mptcp" else 0.7) * r.uniform(0.8, 1.2)
        share = {p: 1 / len(paths) for p in paths}
        result = downloaded(r, 300_000_000, 24e8 / rate, share, dict.fromkeys(paths, 55.0 + 10 * n), {})
        yield manifest("download", result, {"bytes": 300_000_000}, kind=kind[:5].rstrip("-").removesuffix("-b"), paths=paths,
                       at_s=IDLE_S[n] + repetition, name="mohan-dual-lte", step="controlled", label=label)  # fmt: skip


def adarsh_downloads(r: random.Random, campaign: str) -> Iterator[Run]:
    roles = {"path1": "a", "path2": "b"}
    steps = (("rtt", "rtt_ms", (0, 50, 150, 300, 500)), ("loss", "down_loss_percent", (0, 2, 5, 10, 20)))
    for (step, key, values), size, primary in product(steps, (131072, 524288, 2097152), "ab"):
        for value, _, kind in product(values, range(4), ("mptcp", "tcp")):
            gap, loss = (value, 0) if step == "rtt" else (0, value)
            rate = 4e7 * (size / 2097152) ** 0.5 / (1 + gap / (150 if primary == "b" else 400) + loss / 6)
            if kind == "tcp":
                rate = 2.4e7 * (size / 2097152) ** 0.5 / (1 + (gap / 60 + loss / 3) * (primary == "b"))
            second = max(0.02, 0.5 - gap / 400 - loss / 60 + 0.1 * (primary == "b"))
            shares = {"a": 1 - second, "b": second} if kind == "mptcp" else {primary: 1.0}
            shares = dict(sorted(shares.items(), key=lambda item: item[0] != primary))
            took = size * 8 / (rate * r.uniform(0.85, 1.15))
            result = downloaded(r, size, took, shares, {"a": 20.0, "b": 20.0 + gap}, {"b": loss / 100})
            path2 = {key: 20 + value if step == "rtt" else value}
            shape = {"a": {"rtt_ms": 20}, "b": {"rtt_ms": 20, **path2}}
            yield manifest("download", result, {"bytes": size, "path": primary, "kind": kind}, kind=kind, shape=shape, roles=roles,
                           paths=tuple(shares), name=campaign, step=step)  # fmt: skip


def adarsh_pages(r: random.Random, campaign: str) -> Iterator[Run]:
    for (step, key, values), primary in product(
        (("pages", "rtt_ms", (0, 150, 500)), ("pages-loss", "down_loss_percent", (0, 5, 20))), "ab"
    ):
        for value in values:
            slower = 1 + value / 60 * (key != "rtt_ms")
            loads = [
                {"page": f"page-{n}", "by": "browser", "page_load_time_ms": 800 * r.lognormvariate(0, 0.6) * slower,
                 "objects": 40, "bytes": 10**6, "failure": None, "shares": {"a": 0.95 - value / 1000, "b": 0.05 + value / 1000}}
                for n in range(30)
            ]  # fmt: skip
            path2 = {key: 20 + value if key == "rtt_ms" else value}
            shape = {"a": {"rtt_ms": 20}, "b": {"rtt_ms": 20, **path2}}
            yield manifest("pageload", {"loads": loads}, {"kind": "mptcp", "path": primary, "pages": "all"}, shape=shape,
                           roles={"path1": "a", "path2": "b"}, name=campaign, step=step)  # fmt: skip


def adarsh_survey(_: random.Random) -> Iterator[Run]:
    ways = [
        {"way": f"{ping}/{asked}", "names": 9700, "addresses": 9700, "unresponsive": n, "unresponsive_share": 0.03 + n / 200,
         "names_unresponsive_share": 0.03, "name_rtt_ms": {**spread(40.0 + 35 * (ping == "b") + 8 * (asked == "b")), "n": 9650}}
        for n, (ping, asked) in enumerate(product("ab", "ab"))
    ]  # fmt: skip
    overlap = [{"paths": ["a", "b"], "addresses_either": 12000, "addresses_both": 7050, "share": 0.5875, "names_both": 9600,
                "names_same_share": 0.52, "names_sharing_share": 0.61}]  # fmt: skip
    result = {"ways": ways, "overlap": overlap, "comparison": []}
    yield manifest(
        "reachability", result, {}, roles={"wifi": "a", "cellular": "b"}, name="adarsh-survey", step="survey"
    )


def chen(r: random.Random) -> Iterator[Run]:
    roles = {"wifi": "a", "cellular": "b"}
    arms = [("tcp", "a", None, "reno"), ("tcp", "b", None, "reno")]
    arms += [("mptcp", "a", flows, control) for flows in (2, 4) for control in ("reno", "lia", "olia")]
    for size, (kind, path, flows, control), n in product(
        (8192, 65536, 524288, 4194304, 33554432, 536870912), arms, range(5)
    ):
        wifi, cell = 8e6, 14e6
        rate = {"tcp": wifi if path == "a" else cell, "mptcp": (wifi + cell) * (0.8 + 0.05 * (flows or 0))}[kind]
        took = (0.03 if path == "a" else 0.07) + size * 8 / rate * r.lognormvariate(0, 0.25)
        cellular = min(0.65, max(0.0, math.log10(size / 32768) / 3.2))
        shares = {path: 1.0} if kind == "tcp" else {"a": 1 - cellular, "b": cellular}
        rtt = {"a": 30.0 * r.uniform(0.8, 1.3), "b": 70.0 * r.uniform(0.9, 1.8)}
        result = downloaded(r, size, took, shares, rtt, {"a": 0.016, "b": 0.0001})
        parameters = {"kind": kind, "path": path, "bytes": size, "congestion_control": control}
        if flows is not None:
            parameters["subflows"] = flows
        step = "small" if size <= 4194304 else "large"
        yield manifest("download", result, parameters, kind=kind, paths=("a", "b") if kind == "mptcp" else (path,), roles=roles, arm=n,
                       name="chen-sizes", step=step)  # fmt: skip


def chen_hotspot(r: random.Random) -> Iterator[Run]:
    """A busy hot spot: Wi-Fi is slow and loses, so the cellular path carries more."""
    arms = [("tcp", "a", "reno"), ("tcp", "b", "reno"), ("mptcp", "a", "reno"), ("mptcp", "a", "lia")]
    for size, (kind, path, control), _ in product((8192, 65536, 524288, 4194304), arms, range(5)):
        rate = {"tcp": 2e6 if path == "a" else 12e6, "mptcp": 12.5e6}[kind]
        shares = {path: 1.0} if kind == "tcp" else {"a": 0.2, "b": 0.8}
        rtt = {"a": 25.0 * r.uniform(0.8, 2.5), "b": 62.0 * r.uniform(0.9, 1.2)}
        result = downloaded(r, size, 0.05 + size * 8 / rate * r.lognormvariate(0, 0.25), shares, rtt, {"a": 0.045})
        parameters = {"kind": kind, "path": path, "bytes": size, "congestion_control": control}
        if kind == "mptcp":
            parameters["subflows"] = 2
        yield manifest("download", result, parameters, kind=kind, paths=tuple(shares), roles={"wifi": "a", "cellular": "b"},
                       name="chen-hotspot", step="small")  # fmt: skip


def every(seed: int = 1) -> list[Run]:
    r = random.Random(seed)
    return [
        *cordero_bandwidth(r), *cordero_delay(r), *mohan_plays(r), *mohan_controllers(r), *mohan_labelled(r),
        *adarsh_downloads(r, "adarsh-controlled"), *adarsh_downloads(r, "adarsh-field"), *adarsh_pages(r, "adarsh-controlled"),
        *adarsh_pages(r, "adarsh-field"), *adarsh_survey(r), *chen(r), *chen_hotspot(r),
    ]  # fmt: skip
