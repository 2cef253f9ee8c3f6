"""Homes: at what times a probe may have been within one. Pure but for the key file.

What is cut is not the circle that was told but a hidden one, as the probes do it (collector, ``position/zones.py``): twice the radius, its
middle moved by up to nine tenths of the radius as a secret key says. The same key moves it the same way in every package: the middles of
several circles would show the home.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import os
import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

EARTH_M = 6_371_000.0
MOST_OFFSET = 0.9
"""Of the radius that was told."""
FASTEST_M_PER_S = 100.0
"""Nothing that carries a probe is faster: between two fixes it was outside where it could not have gone in and come back."""
MARGIN_S = (10.0, 40.0)
"""A visit is cut this much longer at either end, drawn by the key, so that no end shows the edge."""
ASSUMED_ERROR_M = 50.0
"""Of a fix that does not tell its error."""
NEAR_M = 20_000.0
"""A home that no fix is nearer to was perhaps told with its degrees exchanged."""
RADIUS_M = (100.0, 20_000.0)
_FOREVER = 2**62

Floats = NDArray[np.float64]
Times = NDArray[np.int64]


@dataclass(frozen=True, slots=True, repr=False)
class Home:
    """As told: degrees and metres. It has no repr: no log shall hold one."""

    latitude_deg: float
    longitude_deg: float
    radius_m: float


def home_of(told: str) -> Home:
    """``LAT,LON,RADIUS_M``; ValueError with one line that does not repeat it."""
    try:
        latitude, longitude, radius = (float(part) for part in told.split(","))
    except ValueError as error:
        raise ValueError("no LAT,LON,RADIUS_M; hint: degrees and metres, as in 48.1,11.6,500") from error
    return home(latitude, longitude, radius)


def home(latitude_deg: float, longitude_deg: float, radius_m: float) -> Home:
    """Checked; ValueError."""
    if not (abs(latitude_deg) <= 90 and abs(longitude_deg) <= 180):
        raise ValueError("no place on the earth; hint: latitude -90 to 90, then longitude -180 to 180")
    if not RADIUS_M[0] <= radius_m <= RADIUS_M[1]:
        raise ValueError("the radius is out of range; hint: 100 to 20000 metres, with many homes in it")
    return Home(latitude_deg, longitude_deg, radius_m)


def secret_key(file: Path) -> bytes:
    """The key in ``file``, made there on the first call (mode 0600). OSError; ValueError where it is cut."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as made:
            made.write(secrets.token_bytes(32))
            made.flush()
            os.fsync(made.fileno())
    except FileExistsError:
        pass
    key = file.read_bytes()
    if len(key) < 32:
        raise ValueError(f"{file} is no key: {len(key)} bytes; hint: take it from a backup; another key shows more")
    return key


@dataclass(frozen=True, slots=True)
class Fixes:
    """Of one probe, in order of time. ``error_m``: not a number where it is not told."""

    utc_ns: Times
    latitude_deg: Floats
    longitude_deg: Floats
    error_m: Floats


class Spans:
    """Times that are cut: closed, apart and in order; ``bounds`` has a row for each."""

    def __init__(self, bounds: Times) -> None:
        self.bounds = bounds

    def hold(self, utc_ns: Times) -> NDArray[np.bool_]:
        """Which times lie in one."""
        at = np.searchsorted(self.bounds[:, 0], utc_ns, side="right") - 1
        return (at >= 0) & (utc_ns <= self.bounds[:, 1][np.maximum(at, 0)]) if len(self.bounds) else at >= 0

    def touch(self, start_utc_ns: int, end_utc_ns: int) -> bool:
        """Whether any of it lies within [start, end]."""
        return bool(np.any((self.bounds[:, 0] <= end_utc_ns) & (self.bounds[:, 1] >= start_utc_ns)))


NOTHING = Spans(np.empty((0, 2), dtype=np.int64))


def cut_spans(homes: Sequence[Home], fixes: Fixes, key: bytes) -> Spans:
    """When the probe may have been at a home: all times but those at which the fixes before and behind leave no time to go there."""
    away = _away_m(homes, fixes, key)
    need_ns = (np.maximum(away, 0) / FASTEST_M_PER_S * 1e9).astype(np.int64)
    start = np.concatenate([[-_FOREVER], fixes.utc_ns + need_ns])
    end = np.concatenate([fixes.utc_ns - need_ns, [_FOREVER]])
    start, end = start[start <= end], end[start <= end]
    first = np.concatenate([[True], start[1:] > end[:-1]])
    last = np.concatenate([first[1:], [True]])
    start, end = start[first], end[last]
    margins = np.array([_margins_ns(key, int(at)) for at in start], dtype=np.int64).reshape(-1, 2)
    return Spans(_joined(np.stack([start - margins[:, 0], end + margins[:, 1]], axis=1)))


def _joined(bounds: Times) -> Times:
    """Spans that the margins brought together, as one."""
    reach = np.maximum.accumulate(bounds[:, 1])
    first = np.concatenate([[True], bounds[1:, 0] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return np.stack([bounds[first, 0], reach[last]], axis=1)


def _away_m(homes: Sequence[Home], fixes: Fixes, key: bytes) -> Floats:
    """Metres to the nearest hidden circle, less the fix's error; 0 or below: perhaps inside."""
    error = np.where(np.isfinite(fixes.error_m), fixes.error_m, ASSUMED_ERROR_M)
    nearest = np.full(len(fixes.utc_ns), np.inf)
    for one in homes:
        middle = hidden_middle(one, key)
        nearest = np.minimum(nearest, distance_m(fixes.latitude_deg, fixes.longitude_deg, *middle) - 2 * one.radius_m)
    found: Floats = nearest - error
    return found


def came_near(one: Home, fixes: Fixes) -> bool:
    """Whether a fix lies within ``NEAR_M`` of its circle."""
    away = distance_m(fixes.latitude_deg, fixes.longitude_deg, one.latitude_deg, one.longitude_deg)
    return bool(np.any(away < NEAR_M + 2 * one.radius_m))


def hidden_middle(one: Home, key: bytes) -> tuple[float, float]:
    """Latitude and longitude of the circle that is cut."""
    text = f"{one.latitude_deg:.6f},{one.longitude_deg:.6f},{one.radius_m:.1f}".encode()
    first, second = struct.unpack(">QQ", hmac.digest(key, b"tandem published home " + text, hashlib.sha256)[:16])
    # The root makes every place within the disk equally likely.
    offset_m, course = MOST_OFFSET * one.radius_m * math.sqrt(first / 2**64), 2 * math.pi * second / 2**64
    north, east = (math.degrees(offset_m * part / EARTH_M) for part in (math.cos(course), math.sin(course)))
    return one.latitude_deg + north, one.longitude_deg + east / max(0.01, math.cos(math.radians(one.latitude_deg)))


def distance_m(latitude_deg: Any, longitude_deg: Any, of_latitude_deg: float, of_longitude_deg: float) -> Any:  # noqa: ANN401  numbers or arrays
    """On a ball, by the haversine."""
    a, b = np.radians(latitude_deg), math.radians(of_latitude_deg)
    half = np.sin((a - b) / 2) ** 2
    half = half + np.cos(a) * math.cos(b) * np.sin(np.radians(np.subtract(longitude_deg, of_longitude_deg)) / 2) ** 2
    return 2 * EARTH_M * np.arcsin(np.sqrt(np.clip(half, 0, 1)))


def _margins_ns(key: bytes, at: int) -> tuple[int, int]:
    drawn = struct.unpack(">QQ", hmac.digest(key, b"tandem margin %d" % at, hashlib.sha256)[:16])
    low, high = MARGIN_S
    before, behind = (int((low + (high - low) * one / 2**64) * 1e9) for one in drawn)
    return before, behind
