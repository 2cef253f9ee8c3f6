"""The builds: ``hardware/builds.toml``, read with strict checks. What feeds what is a tree whose root is ``source``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem.schema.toml_keys import Key
from tandem.schema.toml_lines import Place, line_of, places
from tandem_hardware.bom import BUILDS, Part
from tandem_hardware.errors import SourceError
from tandem_hardware.places import HARDWARE

SOURCE = HARDWARE / "builds.toml"
FORMAT = "tandem-builds/1"
ROOT_FEED = "source"

_TEXT, _NUMBER = "say it in quotes", "a number above 0"


def _text(name: str, *, required: bool = True) -> Key:
    return Key(name, "text", _TEXT, required=required)


def _number(name: str, *, required: bool = True, most: float = 1000.0) -> Key:
    return Key(name, "number", _NUMBER, required=required, minimum=0.0, above=True, maximum=most)


_DEFAULTS = (
    _number("volts"), _text("campaign"), _number("hours_on", most=24.0), _text("hours_on_source"),
    _number("efficiency", most=1.0), _text("efficiency_source"),
)  # fmt: skip
_USB = (
    _number("total_a"), _number("low_a", required=False), _text("raised_by", required=False),
    _number("port_a", required=False), _number("standard_a", required=False), _text("source"),
)  # fmt: skip
_BUILD = (
    _text("title"), _text("for"), _text("host"), _text("supply"), _text("battery", required=False),
    Key("always_on", "truth", "true or false", default=False), _text("note", required=False),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Usb:
    """What a computer or hub gives to its ports, in A. ``low_a``: without what raises it."""

    total_a: float
    low_a: float | None
    full_with: tuple[str, ...]
    raised_by: str | None
    port_a: float | None
    standard_a: float | None
    source: str


@dataclass(frozen=True, slots=True)
class Feed:
    """What feeds a part. ``usb``: through a USB port of it."""

    by: str
    usb: bool


@dataclass(frozen=True, slots=True)
class Build:
    """One build. ``battery`` None: it never moves."""

    name: str
    title: str
    whom: str
    host: str
    supply: str
    battery: str | None
    always_on: bool
    note: str
    fed_by: Mapping[str, Feed]


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


def load(parts: Mapping[str, Part], path: Path = SOURCE) -> Builds:
    """SourceError: the first thing that is wrong, or that the parts do not agree with."""
    try:
        return parse(path.read_bytes(), path.name, parts)
    except OSError as error:
        raise SourceError(f"{path.name}: {error.strerror}") from error


def parse(raw: bytes, file: str, parts: Mapping[str, Part]) -> Builds:
    """The same, of bytes."""
    try:
        text = raw.decode()
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"{file}: {error}; mend: TOML in UTF-8") from error
    return _Reader(file, places(text), parts).file(content)


class _Reader:
    def __init__(self, file: str, lines: Mapping[Place, int], parts: Mapping[str, Part]) -> None:
        self._file, self._lines, self._parts = file, dict(lines), parts

    def _fail(self, place: Place, what: str, mend: str) -> SourceError:
        return SourceError(f"{self._file}:{line_of(self._lines, place) or 1}: {what}; mend: {mend}")

    def _table(self, value: object, place: Place) -> dict[str, Any]:
        if not isinstance(value, dict):
            name = ".".join(str(one) for one in place)
            raise self._fail(place, f"no table {name}", f"[{name}] on a line of its own")
        return value

    def _checked(
        self, value: object, place: Place, keys: tuple[Key, ...], others: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        table = self._table(value, place)
        for name in table:
            if name not in others and all(name != key.name for key in keys):
                known = ", ".join((*(key.name for key in keys), *others))
                raise self._fail((*place, name), f"unknown key {name!r}", f"one of {known}")
        found: dict[str, Any] = {}
        for key in keys:
            if key.name not in table:
                if key.required:
                    raise self._fail(place, f"no {key.name}", key.mend)
                found[key.name] = key.default
                continue
            if wrong := key.wrong(table[key.name]):
                raise self._fail((*place, key.name), f"{key.name}: {wrong}", key.mend)
            found[key.name] = table[key.name]
        return found

    def _part(self, name: object, place: Place) -> str:
        if not isinstance(name, str) or name not in self._parts:
            raise self._fail(place, f"{name!r} is no part", "an id of bom.csv")
        return name

    def file(self, content: dict[str, Any]) -> Builds:
        top = self._checked(content, (), (_text("format"),), ("defaults", "usb", "build"))
        if top["format"] != FORMAT:
            raise self._fail(("format",), f"format is {top['format']!r}", FORMAT)
        defaults = self._checked(content.get("defaults"), ("defaults",), _DEFAULTS)
        usb = {name: self._usb(name, one) for name, one in self._table(content.get("usb"), ("usb",)).items()}
        told = self._table(content.get("build"), ("build",))
        for name in told:
            if name not in BUILDS:
                raise self._fail(("build", name), f"no build {name!r}", f"one of {', '.join(BUILDS)}")
        for name in BUILDS:
            if name not in told:
                raise self._fail(("build",), f"no build {name!r}", f"[build.{name}]")
        return Builds(**defaults, usb=usb, builds={name: self._build(name, told[name], usb) for name in BUILDS})

    def _usb(self, name: str, value: object) -> Usb:
        place: Place = ("usb", name)
        self._part(name, place)
        found = self._checked(value, place, _USB, ("full_with",))
        full = value.get("full_with", []) if isinstance(value, dict) else []
        if not isinstance(full, list):
            raise self._fail((*place, "full_with"), "full_with is no list", '["supply-5a"]')
        full_with = tuple(self._part(one, (*place, "full_with")) for one in full)
        if found["low_a"] is not None and not full_with and found["raised_by"] is None:
            raise self._fail((*place, "low_a"), "nothing says what raises it", "full_with or raised_by")
        return Usb(**found, full_with=full_with)

    def _build(self, name: str, value: object, usb: Mapping[str, Usb]) -> Build:
        place: Place = ("build", name)
        found = self._checked(value, place, _BUILD, ("fed_by",))
        fed = self._table(self._table(value, place).get("fed_by"), (*place, "fed_by"))
        for key in ("host", "supply", "battery"):
            if found[key] is not None:
                self._there(name, self._part(found[key], (*place, key)), (*place, key))
        feeds = {part: self._feed(name, part, by, usb) for part, by in fed.items()}
        for part in feeds:
            self._rooted(name, part, feeds)
        for one in self._parts.values():
            if name in one.quantities and one.peak_w and one.id not in feeds:
                raise self._fail(
                    (*place, "fed_by"), f"{one.id} draws power and nothing feeds it", f'{one.id} = "source"'
                )
        note = found.pop("note") or ""
        return Build(name=name, whom=found.pop("for"), note=note, fed_by=feeds, **found)

    def _there(self, build: str, part: str, place: Place) -> None:
        if build not in self._parts[part].quantities:
            raise self._fail(place, f"{build} has no {part}", f"qty_{build} of {part} in bom.csv")

    def _feed(self, build: str, part: str, by: object, usb: Mapping[str, Usb]) -> Feed:
        place: Place = ("build", build, "fed_by", part)
        self._there(build, self._part(part, place), place)
        if not isinstance(by, str):
            raise self._fail(place, f"{by!r} is no feeder", 'an id, an id with ":usb", or "source"')
        feeder, _, how = by.partition(":")
        if by != ROOT_FEED:
            self._there(build, self._part(feeder, place), place)
            if how not in ("", "usb") or by.endswith(":"):
                raise self._fail(place, f"{by!r} is no feeder", f"{feeder} or {feeder}:usb")
            if how and feeder not in usb:
                raise self._fail(place, f"nothing says what {feeder} gives to USB", f"[usb.{feeder}]")
        return Feed(feeder, how == "usb")

    def _rooted(self, build: str, part: str, feeds: Mapping[str, Feed]) -> None:
        seen, at = {part}, feeds[part].by
        while at != ROOT_FEED:
            if at in seen or at not in feeds:
                what = "feeds itself" if at in seen else f"is fed by {at}, which nothing feeds"
                raise self._fail(("build", build, "fed_by", part), f"{part} {what}", 'a way to "source"')
            seen.add(at)
            at = feeds[at].by
