"""The wiring diagrams agree with the bill of materials, with what feeds what, with the case, and with themselves."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from tandem_fleet import new
from tandem_hardware import bom, builds, case
from tandem_hardware.sources import HARDWARE

PARTS = bom.load()
BUILDS = builds.load(PARTS)
A_PLACE_EACH = {"led-resistors", "antenna-5g"}
"""Drawn as one box with a place for each."""
WITHOUT_WIRES = {"sd-card", "case", "strap", "screws", "supply-2a5", "supply-3a", "supply-5a"}
"""Of a kit that is carried; on the bench the supply is part of it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One plug, board or cable of a diagram. ``part``: its id in bom.csv, None where it is not bought by itself; ``places``: pins or wires
    by what they are called, in their order."""

    name: str
    part: str | None
    places: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Diagram:
    """A source. ``links``: (piece, place) after (piece, place) along each wire."""

    build: str
    pieces: Mapping[str, Piece]
    links: tuple[tuple[tuple[str, str], ...], ...]

    def across(self, one: str, place: str) -> Iterator[tuple[str, str]]:
        """All that a place is on one wire with."""
        for wire in self.links:
            if (one, place) in wire:
                yield from (end for end in wire if end != (one, place))


def read(build: str) -> Diagram:
    """``hardware/wiring/BUILD.yml``, in WireViz' words: ``pn`` is the part's id in bom.csv."""
    told = yaml.safe_load((HARDWARE / "wiring" / f"{build}.yml").read_text(encoding="utf-8"))
    pieces = {name: _piece(name, one) for kind in ("connectors", "cables") for name, one in told[kind].items()}
    return Diagram(build, pieces, tuple(wire for one in told["connections"] for wire in _wires(one)))


def _piece(name: str, told: Mapping[str, Any]) -> Piece:
    words = [str(word) for word in told.get("pinlabels") or told.get("wirelabels") or []]
    places = [str(one) for one in told.get("pins") or range(1, len(words) + 1)]
    return Piece(name, told.get("pn"), dict(zip(places, words, strict=True)))


def _wires(connection: list[Mapping[str, list[Any]]]) -> Iterator[tuple[tuple[str, str], ...]]:
    ends = [[(name, str(place)) for place in places] for step in connection for name, places in step.items()]
    yield from zip(*ends, strict=True)


diagrams = pytest.mark.parametrize("diagram", [read(build) for build in bom.BUILDS], ids=lambda one: one.build)


def drawn(diagram: Diagram) -> dict[str, int]:
    counts: dict[str, int] = {}
    for piece in diagram.pieces.values():
        if piece.part:
            counts[piece.part] = counts.get(piece.part, 0) + (len(piece.places) if piece.part in A_PLACE_EACH else 1)
    return counts


@diagrams
def test_all_that_is_bought_and_has_a_wire_is_drawn_and_nothing_else(diagram: Diagram) -> None:
    bought = {one.id: one.quantities[diagram.build] for one in PARTS.values() if diagram.build in one.quantities}
    without = WITHOUT_WIRES - ({"supply-3a"} if diagram.build == "bench" else set())
    assert drawn(diagram) == {part: count for part, count in bought.items() if part not in without}


@diagrams
def test_what_feeds_a_part_is_on_a_wire_with_each_of_it(diagram: Diagram) -> None:
    build = BUILDS.builds[diagram.build]
    root = build.battery or build.supply
    for part, feed in build.fed_by.items():
        by = root if feed.by == builds.ROOT_FEED else feed.by
        fed = [one for one in diagram.pieces.values() if one.part == part]
        assert fed, part
        for piece in fed:
            others = {name for place in piece.places for name, _ in diagram.across(piece.name, place)}
            assert by in {diagram.pieces[name].part for name in others}, f"{piece.name} is not connected to {by}"


@diagrams
def test_each_place_is_connected_once_and_five_volts_never_to_ground(diagram: Diagram) -> None:
    for wire in diagram.links:
        words = " | ".join(diagram.pieces[name].places[place] for name, place in wire)
        assert not ("5 V" in words and "GND" in words), words
    ends = [end for wire in diagram.links for end in wire]
    assert [f"{name}:{place}" for name, place in ends if place not in diagram.pieces[name].places] == []
    assert len(ends) == len(set(ends))
    bare = {(one.name, place) for one in diagram.pieces.values() for place in one.places} - set(ends)
    assert bare <= {("MODEM_A", "P"), ("MODEM_B", "P")}  # a Pi Zero's PWR IN, which must stay free


@pytest.mark.parametrize("build", ["paper", "standard", "5g"])
def test_the_status_leds_channels_are_at_their_pins(build: str) -> None:
    diagram = read(build)
    # The header's numbering: GPIO 17, 27 and 22 are its pins 11, 13 and 15, and 14 is ground.
    for pin, gpio, lead in (("11", "GPIO 17", "R"), ("13", "GPIO 27", "G"), ("15", "GPIO 22", "B"), ("14", "GND", "K")):
        assert diagram.pieces["PI"].places[pin] == gpio
        assert ("LED", lead) in set(diagram.across("PI", pin))
        assert ("R" in {name for name, _ in diagram.across("PI", pin)}) == (lead != "K")


def test_a_new_fleet_has_the_led_where_it_is_wired() -> None:
    line = next(line for line in new.KIT_FILE.format(kit="kit-01").splitlines() if "tandem_status_led" in line)
    told = yaml.safe_load(line.removeprefix("# "))
    diagram = read("standard")
    places = {word: place for place, word in diagram.pieces["PI"].places.items()}
    for colour, lead in (("red", "R"), ("green", "G"), ("blue", "B")):
        assert ("LED", lead) in set(diagram.across("PI", places[f"GPIO {told['tandem_status_led'][colour]}"]))


@pytest.mark.parametrize("build", case.CASES)
def test_cables_reach(build: str) -> None:
    """Along the walls from part to part, and four centimetres for the bends."""
    of, diagram = case.layout(build), read(build)
    checked = 0
    for cable in (one for one in diagram.pieces.values() if one.part and one.part.startswith("cable-")):
        ends = {name for place in cable.places for name, _ in diagram.across(cable.name, place)}
        boxes = []
        for name in ends:
            held = [one for one in of["parts"] if one.id == diagram.pieces[name].part]
            boxes += held[:1] if not name.endswith("_B") else held[-1:]
        one, other = boxes
        way = sum(
            max(0.0, b - a_end, a - b_end)
            for a, a_end, b, b_end in zip(one.at, one.end, other.at, other.end, strict=True)
        )
        if "battery" in (one.kind, other.kind):  # its sockets are at its right end
            battery, rest = (one, other) if one.kind == "battery" else (other, one)
            way = abs(battery.end[0] - rest.at[0]) + max(0.0, battery.at[1] - rest.end[1])
        assert way + 40 <= PARTS[cable.part].length_mm, f"{cable.name}: {way:.0f} mm"
        checked += 1
    assert checked
