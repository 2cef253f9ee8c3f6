"""Runs joined with what was offered, what the sender saw, and what the probe was doing at that time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tandem_server.analysis.reading import flag, mapping, mappings, number, text, whole
from tandem_server.analysis.recorded import Recorded, SubflowSeries
from tandem_server.analysis.records import Clock
from tandem_server.analysis.truth import Array, Link, Truth


def mean_held(t_s: Array, values: Array, start_s: float, end_s: float) -> float | None:
    """Mean over [start, end] of a quantity whose values each hold until the next; before the first, the first holds.

    None without values or when the span is empty. Exact: the integral of the steps over the span's length.
    """
    if len(t_s) == 0 or not end_s > start_s:
        return None
    inside = (t_s > start_s) & (t_s < end_s)
    edges = np.concatenate(([start_s], t_s[inside], [end_s]))
    held = np.maximum(np.searchsorted(t_s, edges[:-1], side="right") - 1, 0)
    return float(np.sum(values[held] * np.diff(edges)) / (end_s - start_s))


def offered_bit_per_s(links: list[Link | None], start_s: float, end_s: float) -> float | None:
    """Sum over the links of their mean downlink capacity, outages as nothing; None when a link is unknown or none is given."""
    total = 0.0
    for link in links:
        mean = None if link is None else mean_held(link.t_s, link.down_bit_per_s, start_s, end_s)
        if mean is None:
            return None
        total += mean
    return total if links else None


@dataclass(frozen=True, slots=True)
class RunSubflow:
    """``share`` 0 to 1 of the run's received bytes. ``rtt_ms_median`` at the sender; the manifest's value where the database has none."""

    path: str | None
    operator: str | None
    bytes: int
    share: float | None
    rtt_ms_median: float | None


@dataclass(frozen=True, slots=True)
class Run:
    """One run. Rates in bit/s, times in s since the campaign's start; None where it is not known.

    ``capacity_bit_per_s``: what the bench offered on the run's paths, mean over the run. Runs that went on at the same time
    shared it: their ratio is that of the pair (``pair_ratio``), None for others.
    """

    id: str
    pair: str | None
    kind: str
    pairing: str
    path: str | None
    paths: tuple[str, ...]
    start_s: float | None
    end_s: float | None
    bytes: int | None
    duration_s: float | None
    goodput_bit_per_s: float | None
    fallback: bool | None
    failure: str | None
    activity: str | None
    capacity_bit_per_s: float | None
    sum_of_singles_bit_per_s: float | None
    pair_ratio: float | None
    subflows: tuple[RunSubflow, ...]

    @property
    def ratio(self) -> float | None:
        """Goodput over the capacity offered, for runs that had it for themselves."""
        if self.pairing == "simultaneous" or self.goodput_bit_per_s is None or not self.capacity_bit_per_s:
            return None
        return self.goodput_bit_per_s / self.capacity_bit_per_s


def join(
    manifests: Sequence[Mapping[str, Any]],
    recorded: Recorded,
    truth: Truth | None,
    clock: Clock,
    operators: Mapping[str, str],
    activity: Callable[[float, float], str | None],
) -> list[Run]:
    """The manifests' runs in order of time."""
    pairs: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for m in manifests:
        pairs[text(m, "pair") or str(m["id"])].append(m)

    def offered(over: Sequence[Mapping[str, Any]]) -> float | None:
        """On all the paths of these runs, from the first one's begin to the last one's end."""
        times = [known for m in over if (known := _measured(m, recorded, clock)) is not None]
        if truth is None or not times:
            return None
        links = [truth.links.get(operators.get(p, p)) for p in sorted({p for m in over for p in run_paths(m)})]
        return offered_bit_per_s(links, min(a for a, _ in times), max(b for _, b in times))

    def goodput(of: Sequence[Mapping[str, Any]]) -> float | None:
        """Of all of these together; None where one of them has none."""
        found = [_goodput(m) for m in of]
        known = [g for g in found if g is not None]
        return sum(known) if known and len(known) == len(found) else None

    out, flows = list[Run](), recorded.flows()
    for m in manifests:
        result, pair = mapping(m, "result"), pairs[text(m, "pair") or str(m["id"])]
        together = [one for one in pair if text(one, "pairing") == "simultaneous" and text(one, "pair") is not None]
        carried, capacity = goodput(together), offered(together)
        (start, end), paths = span(m, clock), tuple(run_paths(m))
        out.append(
            Run(
                id=str(m["id"]),
                pair=text(m, "pair"),
                kind=str(m["kind"]),
                pairing=text(m, "pairing") or "single",
                path=paths[0] if paths else None,
                paths=paths,
                start_s=start,
                end_s=end,
                bytes=whole(result, "bytes"),
                duration_s=number(result, "duration_s"),
                goodput_bit_per_s=_goodput(m),
                fallback=flag(result, "fallback"),
                failure=text(mapping(m, "failure"), "reason"),
                activity=activity(start, end) if start is not None and end is not None else None,
                capacity_bit_per_s=offered([m]),
                sum_of_singles_bit_per_s=goodput([x for x in pair if x["kind"] == "tcp"])
                if m["kind"] == "mptcp"
                else None,
                pair_ratio=carried / capacity if capacity and carried is not None else None,
                subflows=tuple(_subflows(m, flows.get((str(m["id"]), "server"), ()), operators)),
            )
        )
    return out


def _goodput(manifest: Mapping[str, Any]) -> float | None:
    return number(mapping(manifest, "result"), "goodput_bit_per_s")


def run_paths(manifest: Mapping[str, Any]) -> list[str]:
    """The names of a run's paths, the primary first."""
    value = manifest.get("paths")
    return [p for p in value if isinstance(p, str)] if isinstance(value, list) else []


def span(manifest: Mapping[str, Any], clock: Clock) -> tuple[float | None, float | None]:
    """Begin and end of a run on the campaign's axis; None where it is not known."""
    start, end = (
        clock.seconds(
            whole(manifest, f"{name}_utc_ns"), whole(manifest, f"{name}_monotonic_ns"), text(manifest, "boot")
        )
        for name in ("started", "ended")
    )
    return start, end


def _measured(manifest: Mapping[str, Any], recorded: Recorded, clock: Clock) -> tuple[float, float] | None:
    """From connect to the last byte counted, seconds: what the run's duration spans. The first sample is taken when the connection is
    there; without samples it is the whole span, in which sessions are opened and captures closed too."""
    start, end = span(manifest, clock)
    if start is None or end is None:
        return None
    result = mapping(manifest, "result")
    duration, connect_ms = number(result, "duration_s"), number(result, "connect_ms")
    times = recorded.connections.get(str(manifest["id"]), (None,))[0]
    if duration is None or duration <= 0 or times is None or len(times) == 0:
        return start, end
    begun = max(start, float(times[0]) - (connect_ms or 0.0) / 1e3)
    return begun, min(end, begun + duration)


def _subflows(
    manifest: Mapping[str, Any], sender: Sequence[SubflowSeries], operators: Mapping[str, str]
) -> list[RunSubflow]:
    at_sender: dict[str | None, list[float]] = defaultdict(list)
    for series in sender:
        at_sender[series.path] += [float(v) for v in series.rtt_ms if np.isfinite(v)]
    out: list[RunSubflow] = []
    for entry in mappings(mapping(manifest, "result"), "subflows"):
        path = text(entry, "path")
        values = at_sender.get(path, [])
        out.append(
            RunSubflow(
                path,
                text(entry, "operator") or operators.get(path or ""),
                whole(entry, "bytes") or 0,
                number(entry, "share"),
                float(np.median(values)) if values else number(entry, "rtt_ms_median"),
            )
        )
    return out


def run_rtt_ms(run: Run) -> float | None:
    """One RTT for a run: its subflows' medians weighted by the bytes that each carried."""
    known = [(s.rtt_ms_median, max(s.bytes, 1)) for s in run.subflows if s.rtt_ms_median is not None]
    weight = sum(b for _, b in known)
    return sum(v * b for v, b in known) / weight if weight else None
