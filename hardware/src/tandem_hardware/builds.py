"""The builds: ``hardware/builds.toml``, read with strict checks. What feeds what is a tree whose root is ``source``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from tandem.schema.toml_file import Place, line_of, places
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
    try:
        text = raw.decode()
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{file}: {error}; hint: TOML in UTF-8") from error
    lines = places(text)

    def fail(place: Place, what: str, hint: str) -> SourceError:
        return SourceError(f"{file}:{line_of(lines, place) or 1}: {what}; hint: {hint}")

    def table(value: object, *place: str, names: tuple[str, ...] | None = None) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise fail(place, f"no table {'.'.join(place)}", f"[{'.'.join(place)}] on a line of its own")
        for name in value:
            if names is not None and name not in names:
                raise fail((*place, name), f"unknown key {name!r}", f"one of {', '.join(names)}")
        return value

    def of(kind: type[Any], value: object, *place: str, besides: tuple[str, ...] = ()) -> dict[str, Any]:
        """The keys of a dataclass but those ``besides``, which are none of the file's or have a reader of their own."""
        known = tuple(one for one in fields(kind) if one.name not in besides)
        found = table(value, *place, names=tuple(one.name for one in known))
        for one in known:
            if one.name not in found and one.default is MISSING:
                raise fail(place, f"no {one.name}", "the key, with its value")
            given = found.get(one.name, one.default)
            most = _MOST.get(one.name, 1000.0)
            right, hint = {
                "float": (type(given) in (int, float) and 0 < given <= most, f"a number above 0, at most {most:g}"),
                "str": (isinstance(given, str) and given != "", "text in quotes"),
                "bool": (isinstance(given, bool), "true or false"),
            }.get(str(one.type).partition(" ")[0], (isinstance(given, list | dict), "a list or a table"))
            if one.name in found and not right:
                raise fail((*place, one.name), f"{one.name}: {given!r} cannot be", hint)
        return found

    def part(id_: object, *place: str, build: str | None = None) -> str:
        if not isinstance(id_, str) or id_ not in parts:
            raise fail(place, f"{id_!r} is no part", "an id of bom.csv")
        if build is not None and build not in parts[id_].quantities:
            raise fail(place, f"{build} has no {id_}", f"qty_{build} of {id_} in bom.csv")
        return id_

    def usb_of(name: str, value: object) -> Usb:
        found = of(Usb, value, "usb", part(name, "usb", name))
        full_with = tuple(part(one, "usb", name, "full_with") for one in found.get("full_with", ()))
        if "low_a" in found and not full_with and "raised_by" not in found:
            raise fail(("usb", name, "low_a"), "nothing says what raises it", "full_with or raised_by")
        return Usb(**found | {"full_with": full_with})

    def feed_of(build: str, fed: str, by: object) -> Feed:
        place = ("build", build, "fed_by", part(fed, "build", build, "fed_by", fed, build=build))
        feeder, colon, how = by.partition(":") if isinstance(by, str) else ("", "", "")
        if not feeder or (colon and how != "usb"):
            raise fail(place, f"{by!r} is no feeder", 'an id, an id with ":usb", or "source"')
        if by != ROOT_FEED and colon and part(feeder, *place, build=build) not in usb:
            raise fail(place, f"nothing says what {feeder} gives to USB", f"[usb.{feeder}]")
        return Feed(feeder if by == ROOT_FEED else part(feeder, *place, build=build), how == "usb")

    def build_of(name: str, value: object) -> Build:
        place = ("build", name)
        found = of(Build, value, *place, besides=("name",))
        for key in {"host", "supply", "battery"} & found.keys():
            part(found[key], *place, key, build=name)
        feeds = {fed: feed_of(name, fed, by) for fed, by in found["fed_by"].items()}
        for fed, feed in feeds.items():
            seen, at = {fed}, feed.by
            while at != ROOT_FEED:
                if at in seen or at not in feeds:
                    what = "feeds itself" if at in seen else f"is fed by {at}, which nothing feeds"
                    raise fail((*place, "fed_by", fed), f"{fed} {what}", 'a way to "source"')
                seen.add(at)
                at = feeds[at].by
        for one in parts.values():
            if name in one.quantities and one.peak_w and one.id not in feeds:
                raise fail((*place, "fed_by"), f"{one.id} draws power and nothing feeds it", f'{one.id} = "source"')
        return Build(**found | {"name": name, "fed_by": feeds})

    table(content, names=("format", "defaults", "usb", "build"))
    if content.get("format") != FORMAT:
        raise fail(("format",), f"format is {content.get('format')!r}", FORMAT)
    defaults = of(Builds, content.get("defaults"), "defaults", besides=("usb", "builds"))
    usb = {name: usb_of(name, one) for name, one in table(content.get("usb"), "usb").items()}
    for name in (*(told := table(content.get("build"), "build")), *BUILDS):
        if name not in BUILDS or name not in told:
            raise fail(("build", name), f"no build {name!r}", f"[build.{name}], and no other than {', '.join(BUILDS)}")
    return Builds(**defaults, usb=usb, builds={name: build_of(name, told[name]) for name in BUILDS})
