"""Round trips of all paths at the same instants: one path's, the best of all, and whether they are impaired together.

Only instants count at which every path was measured (answered, late, lost or down) and no run was under way, whose own load would be in
the times: so the paths and the best of them are told of the same instants. A question without an answer took infinitely long.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.schema.grades import SCALES
from tandem.schema.metrics import ROUND_TRIP_MEASURED
from tandem_server.analysis.estimates import RESAMPLES, Estimate, drawn_again, ends
from tandem_server.analysis.records import Clock, Piece
from tandem_server.quantile import nearest_rank

Array = NDArray[np.float64]
Codes = NDArray[np.int8]
ANSWERED, LATE, LOST, DOWN = range(len(ROUND_TRIP_MEASURED))
"""Codes of ``ROUND_TRIP_MEASURED``."""

IMPAIRED_MS = SCALES["round_trip.rtt_ms"].good
"""Above which a round trip is impaired: 300 ms, the limit of good in ``tandem.schema.grades``."""

WINDOW_S = 300.0
"""What is drawn again for intervals: impairments last, so that single instants are no independent ones."""

_MS_OF_A_BOOT = 1 << 40
FIELDS = ("outcome", "rtt_ms", "beside_run")
"""Of a record, that are read."""


@dataclass(frozen=True, slots=True)
class PathTrips:
    """One path's measured instants in their order; arrays of one length. ``instant``: the same number on all paths; ``rtt_ms`` infinite
    without an answer; ``code``: index in ``ROUND_TRIP_MEASURED``."""

    path: str
    operator: str
    instant: NDArray[np.int64]
    t_s: Array
    rtt_ms: Array
    code: Codes
    beside_run: NDArray[np.bool_]

    def outside(self, spans: Sequence[tuple[float, float]]) -> PathTrips:
        """Without the instants from any span's begin to its end."""
        kept = np.ones(len(self.t_s), dtype=np.bool_)
        for begun, ended in spans:
            kept &= (self.t_s < begun) | (self.t_s > ended)
        if bool(kept.all()):
            return self
        columns = ("instant", "t_s", "rtt_ms", "code", "beside_run")
        return replace(self, **{name: getattr(self, name)[kept] for name in columns})


def load(pieces: Iterable[Piece], clock: Clock, operators: Mapping[str, str]) -> dict[str, PathTrips]:
    """The campaign's, by path, of its records of ``round_trip``. One without a time or a known outcome is left out."""
    found: dict[str, list[tuple[NDArray[Any], ...]]] = {}
    named: dict[str, str] = {}
    boots: dict[str, int] = {}
    codes = {word: code for code, word in enumerate(ROUND_TRIP_MEASURED)}
    for piece in pieces:
        path, outcome = piece.tags.get("path"), piece.fields.get("outcome")
        if path is None or outcome is None:
            continue
        monotonic_ns, rtt_ms = piece.numbers("monotonic_ns"), piece.numbers("rtt_ms")
        told = np.isfinite(rtt_ms)
        code = np.array([codes.get(word, -1) for word in outcome], dtype=np.int8)
        kept = (code >= 0) & np.isfinite(monotonic_ns) & (told == np.isin(code, (ANSWERED, LATE)))
        boot = boots.setdefault(piece.tags.get("boot", ""), len(boots))
        instant = boot * _MS_OF_A_BOOT + np.rint(monotonic_ns[kept] / 1e6).astype(np.int64)
        beside = np.array(
            [flag is True for flag in piece.fields.get("beside_run", [False] * len(code))], dtype=np.bool_
        )
        columns = (clock.times(piece), np.where(told, rtt_ms, np.inf), code, beside)
        found.setdefault(path, []).append((instant, *(column[kept] for column in columns)))
        named.setdefault(path, operators.get(path) or piece.tags.get("operator") or path)
    made = {}
    for path, parts in sorted(found.items()):
        instant, order = np.unique(np.concatenate([part[0] for part in parts]), return_index=True)
        if len(instant):
            rest = (np.concatenate(column)[order] for column in list(zip(*parts, strict=True))[1:])
            made[path] = PathTrips(path, named[path], instant, *rest)
    return made


@dataclass(frozen=True, slots=True)
class Joint:
    """Instants at which all of the paths in ``names`` were measured alone: ``t_s`` of each, ``rtt_ms`` and ``code`` a row a path."""

    names: Sequence[str]
    t_s: Array
    rtt_ms: Array
    code: Codes

    def best(self) -> tuple[Array, Codes]:
        """Round trip and code of the best path at each instant, as if each packet had gone over all of them."""
        return self.rtt_ms.min(axis=0), self.code.min(axis=0)

    def impaired(self) -> NDArray[np.bool_]:
        """A row a path: whether it was impaired: lost, down, or above ``IMPAIRED_MS``."""
        return np.asarray(self.rtt_ms > IMPAIRED_MS)


def joint(paths: Sequence[PathTrips], names: Sequence[str] | None = None) -> Joint:
    """Of one path or more of one kit; ``names``: what they go by, else as they are called."""
    alone = [one.instant[~one.beside_run] for one in paths]
    common = reduce(lambda a, b: np.intersect1d(a, b, assume_unique=True), alone)
    places = [np.searchsorted(one.instant, common) for one in paths]
    rtt_ms = np.stack([one.rtt_ms[at] for one, at in zip(paths, places, strict=True)])
    code = np.stack([one.code[at] for one, at in zip(paths, places, strict=True)])
    return Joint(list(names or [one.path for one in paths]), paths[0].t_s[places[0]], rtt_ms, code)


def after_each_other(several: Sequence[Joint]) -> Joint:
    """Of several kits whose paths go by the same names, one: their instants behind each other, none of two kits in one window."""
    places = [np.argsort(np.array(one.names), kind="stable") for one in several]
    t_s, begin_s = [], 0.0
    for one in several:
        t_s.append(one.t_s - np.floor(one.t_s.min() / WINDOW_S) * WINDOW_S + begin_s)
        begin_s = (math.floor(t_s[-1].max() / WINDOW_S) + 1) * WINDOW_S
    rows = [(one.rtt_ms[at], one.code[at]) for one, at in zip(several, places, strict=True)]
    return Joint(
        sorted(several[0].names),
        np.concatenate(t_s),
        np.concatenate([rtt_ms for rtt_ms, _ in rows], axis=1),
        np.concatenate([code for _, code in rows], axis=1),
    )


def quantile(rtt_ms: Array, share: float) -> float | None:
    """The least value that at least ``share`` of all do not exceed, infinite where that is none that was answered; None where fewer than
    one value lies beyond it: the tail of so few is not known."""
    n = len(rtt_ms)
    if n == 0 or n * (1 - share) < 1 - 1e-9:
        return None
    return nearest_rank(np.sort(rtt_ms).tolist(), share)


def ccdf(rtt_ms: Array, most: int = 200) -> list[tuple[float, float]]:
    """Points (x, share of all that took longer than x or had no answer) down to the last answer, at most ``most``: every one of the tail's,
    then ever fewer. Shares are above 0."""
    values, counts = np.unique(rtt_ms[np.isfinite(rtt_ms)], return_counts=True)
    shares = 1 - np.cumsum(counts) / max(1, len(rtt_ms))
    kept = shares > 1e-12
    values, shares = values[kept], shares[kept]
    if len(values) > most:
        half = most // 2
        spread = np.geomspace(half, len(values), half).astype(np.int64)
        chosen = np.unique(np.concatenate([np.arange(1, half + 1), spread]))
        values, shares = values[len(values) - chosen][::-1], shares[len(shares) - chosen][::-1]
    return list(zip(values.tolist(), shares.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Together:
    """How the impairments (``Joint.impaired``) of a path go with another's. ``alone``: P(B impaired), over all instants; ``given``:
    P(B impaired | A impaired), over the instants at which A was: None when it never was; ``phi``: their correlation, of two yes-or-no
    values at each instant (Pearson's), None when one of them is always the same. Independent paths have given = alone and phi = 0;
    1 is paths that fail together, below 0 that they take turns. Intervals: windows of five minutes drawn again; ``n``: instants."""

    a: str
    b: str
    alone: Estimate
    given: Estimate | None
    phi: Estimate | None


def together(of: Joint, a: int, b: int) -> Together | None:
    """Of the paths with these places in ``of``; None without instants."""
    impaired = of.impaired()
    if impaired.shape[1] == 0:
        return None
    _, window = np.unique(np.floor(of.t_s / WINDOW_S), return_inverse=True)
    columns = (np.ones(len(window)), impaired[a], impaired[b], impaired[a] & impaired[b])
    counts = np.stack([np.bincount(window, weights=column.astype(np.float64)) for column in columns])
    whole = counts.sum(axis=1)
    drawn = drawn_again(counts.shape[1], lambda picked: counts[:, picked].sum(axis=2).T).reshape(-1, 4)
    n, in_a = int(whole[0]), int(whole[1])
    alone = _estimate(whole[2] / whole[0], drawn[:, 2] / np.maximum(drawn[:, 0], 1), n)
    given = _estimate(whole[3] / whole[1], _ratio(drawn[:, 3], drawn[:, 1]), in_a) if in_a else None
    phi = _phi(whole[None, :])[0]
    correlation = _estimate(float(phi), _phi(drawn), n) if math.isfinite(phi) else None
    return Together(of.names[a], of.names[b], alone, given, correlation)


def _ratio(part: Array, of: Array) -> Array:
    found: Array = np.divide(part, of, out=np.full(len(of), np.nan), where=of > 0)
    return found


def _phi(counts: Array) -> Array:
    """Of rows of instants, of A's, B's and both's impairments; not a number where one is always the same."""
    n, a, b, both = counts.T
    under = a * (n - a) * b * (n - b)
    return _ratio(n * both - a * b, np.sqrt(np.maximum(under, 0)))


def _estimate(value: float, drawn: Array, n: int) -> Estimate:
    """With the ends of what was drawn again, where that tells something."""
    known = drawn[np.isfinite(drawn)]
    if len(known) < RESAMPLES / 2:
        return Estimate(float(value), None, None, n)
    return Estimate(float(value), *ends(known), n)
