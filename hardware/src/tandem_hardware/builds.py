"""The builds: ``hardware/builds.toml``, read with strict checks. What feeds what is a tree whose root is ``source``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any

from tandem_hardware.bom import BUILDS, Part
from tandem_hardware.sources import HARDWARE, SourceError

SOURCE = HARDWARE / "builds.toml"
FORMAT = "tandem-builds/1"
ROOT_FEED = "source"
_MOST = {"hours_on": 24.0, "efficiency": 1.0}
"""Numbers are above 0 and at most this, or 1000."""


@dataclass(frozen=True, slots=True)
class Usb:
    """What a computer or hub gives to its ports, in A. ``low_a``: without what raises it, ``full_with`` (supplies) or ``raised_by``."""

    total_a: float
    source: str
    low_a: float | None = None
    full_with: tuple[str, ...] = ()
    raised_by: str | None = None
    port_a: float | None = None
    standard_a: float | None = None


@dataclass(frozen=True, slots=True)
class Feed:
    """What feeds a part. ``usb``: through a USB port of it."""

    by: str
    usb: bool


@dataclass(frozen=True, slots=True)
class Build:
    """One build. ``battery`` None: it never moves."""

    title: str
    whom: str
    host: str
    supply: str
    fed_by: Mapping[str, Feed]
    battery: str | None = None
    always_on: bool = False
    note: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Builds:
    """The file."""

    volts: float
    campaign: str
    hours_on: float
    hours_on_source: str
    efficiency: float
    efficiency_source: str
    usb: Mapping[str, Usb]
    builds: Mapping[str, Build]


def load(parts: Mapping[str, Part]) -> Builds:
    """SourceError: the first thing that is wrong, or that the parts do not agree with."""
    return parse(SOURCE.read_bytes(), SOURCE.name, parts)


def parse(raw: bytes, file: str, parts: Mapping[str, Part]) -> Builds:
    """The same, of bytes."""

    def fail(place: str, what: str, hint: str) -> SourceError:
        return SourceError(f"{file}: [{place}]: {what}; hint: {hint}")

    def table(value: object, place: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise fail(place, "no such table", f"[{place}] on a line of its own")
        return value

    def read(kind: type[Any], place: str, value: object, **made: Any) -> Any:  # noqa: ANN401 - what is read is of any kind
        """One of a dataclass, of a table's keys; ``made``: those that have a reader of their own, in its place."""
        known, given = {one.name: one for one in fields(kind)}, table(value, place)
        for name, one in given.items():
            if name not in known:
                raise fail(place, f"unknown key {name!r}", f"one of {', '.join(known)}")
            most = _MOST.get(name, 1000.0)
            right, hint = {
                "float": (type(one) in (int, float) and 0 < one <= most, f"a number above 0, at most {most:g}"),
                "str": (isinstance(one, str) and one != "", "text in quotes"),
                "bool": (isinstance(one, bool), "true or false"),
            }.get(str(known[name].type).partition(" ")[0], (isinstance(one, list | dict), "a list or a table"))
            if not right:
                raise fail(place, f"{name}: {one!r} cannot be", hint)
        for name, field in known.items():
            if field.default is MISSING and name not in {*given, *made}:
                raise fail(place, f"no {name}", "the key, with its value")
        return kind(**given | made)

    def part(id_: object, place: str, build: str = "") -> str:
        if not isinstance(id_, str) or id_ not in parts:
            raise fail(place, f"{id_!r} is no part", "an id of bom.csv")
        if build and build not in parts[id_].quantities:
            raise fail(place, f"{build} has no {id_}", f"qty_{build} of {id_} in bom.csv")
        return id_

    def usb_of(name: str, value: object) -> Usb:
        found: Usb = read(Usb, place := f"usb.{part(name, 'usb')}", value)
        if found.low_a is not None and not found.full_with and found.raised_by is None:
            raise fail(place, "nothing says what raises low_a", "full_with or raised_by")
        return replace(found, full_with=tuple(part(one, place) for one in found.full_with))

    def feed_of(by: object, place: str, build: str) -> Feed:
        feeder, colon, how = by.partition(":") if isinstance(by, str) else ("", "", "")
        if not feeder or (colon and how != "usb"):
            raise fail(place, f"{by!r} is no feeder", 'an id, an id with ":usb", or "source"')
        if by != ROOT_FEED and colon and part(feeder, place, build) not in usb:
            raise fail(place, f"nothing says what {feeder} gives to USB", f"[usb.{feeder}]")
        return Feed(feeder if by == ROOT_FEED else part(feeder, place, build), how == "usb")

    def build_of(name: str, value: object) -> Build:
        found: Build = read(Build, place := f"build.{name}", value, name=name)
        for id_ in filter(None, (found.host, found.supply, found.battery)):
            part(id_, place, name)
        place = f"{place}.fed_by"
        feeds = {part(fed, place, name): feed_of(by, place, name) for fed, by in table(found.fed_by, place).items()}
        for fed, feed in feeds.items():
            seen, at = {fed}, feed.by
            while at != ROOT_FEED:
                if at in seen or at not in feeds:
                    what = "feeds itself" if at in seen else f"is fed by {at}, which nothing feeds"
                    raise fail(place, f"{fed} {what}", 'a way to "source"')
                seen.add(at)
                at = feeds[at].by
        for one in parts.values():
            if name in one.quantities and one.peak_w and one.id not in feeds:
                raise fail(place, f"{one.id} draws power and nothing feeds it", f'{one.id} = "source"')
        return replace(found, fed_by=feeds)

    try:
        content = tomllib.loads(raw.decode())
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{file}: {error}; hint: TOML in UTF-8") from error
    if content.get("format") != FORMAT:
        raise SourceError(f"{file}: format is {content.get('format')!r}; hint: {FORMAT}")
    usb = {name: usb_of(name, one) for name, one in table(content.get("usb"), "usb").items()}
    told = table(content.get("build"), "build")
    if strange := sorted({*told} ^ {*BUILDS}):
        raise fail("build", f"no build {strange[0]!r}", f"[build.NAME] for each of {', '.join(BUILDS)}, and no other")
    builds = {name: build_of(name, told[name]) for name in BUILDS}
    made: Builds = read(Builds, "defaults", content.get("defaults"), usb=usb, builds=builds)
    return made
