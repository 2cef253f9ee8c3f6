"""The wiring diagrams agree with the bill of materials, with what feeds what, and with themselves; and drift is seen."""

import copy
from pathlib import Path

import pytest
import yaml

from tandem_fleet import new
from tandem_hardware import bom, builds, wiring
from tandem_hardware.errors import SourceError

PARTS = bom.load()
BUILDS = builds.load(PARTS)
A_PLACE_EACH = {"led-resistors", "antenna-5g"}
"""Drawn as one box with a place for each."""
WITHOUT_WIRES = {"sd-card", "case", "strap", "screws", "supply-2a5", "supply-3a", "supply-5a"}
"""Of a kit that is carried; on the bench the supply is part of it."""

diagrams = pytest.mark.parametrize("diagram", [wiring.read(build) for build in bom.BUILDS], ids=lambda one: one.build)


def drawn(diagram: wiring.Diagram) -> dict[str, int]:
    counts: dict[str, int] = {}
    for piece in diagram.pieces.values():
        if piece.part:
            counts[piece.part] = counts.get(piece.part, 0) + (len(piece.places) if piece.part in A_PLACE_EACH else 1)
    return counts


@diagrams
def test_all_that_is_bought_and_has_a_wire_is_drawn_and_nothing_else(diagram: wiring.Diagram) -> None:
    bought = {one.id: one.quantities[diagram.build] for one in PARTS.values() if diagram.build in one.quantities}
    without = WITHOUT_WIRES - ({"supply-3a"} if diagram.build == "bench" else set())
    assert drawn(diagram) == {part: count for part, count in bought.items() if part not in without}


@diagrams
def test_what_feeds_a_part_is_on_a_wire_with_each_of_it(diagram: wiring.Diagram) -> None:
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
def test_each_place_is_connected_once_and_five_volts_never_to_ground(diagram: wiring.Diagram) -> None:
    for wire in diagram.links:
        words = " | ".join(diagram.pieces[name].places[place] for name, place in wire)
        assert not ("5 V" in words and "GND" in words), words
    ends = [end for wire in diagram.links for end in wire]
    assert len(ends) == len(set(ends))
    bare = {(one.name, place) for one in diagram.pieces.values() for place in one.places} - set(ends)
    assert bare <= {("MODEM_A", "P"), ("MODEM_B", "P")}  # a Pi Zero's PWR IN, which must stay free


@pytest.mark.parametrize("build", ["paper", "standard", "5g"])
def test_the_status_leds_channels_are_at_their_pins(build: str) -> None:
    diagram = wiring.read(build)
    # The header's numbering: GPIO 17, 27 and 22 are its pins 11, 13 and 15, and 14 is ground.
    for pin, gpio, lead in (("11", "GPIO 17", "R"), ("13", "GPIO 27", "G"), ("15", "GPIO 22", "B"), ("14", "GND", "K")):
        assert diagram.pieces["PI"].places[pin] == gpio
        assert ("LED", lead) in set(diagram.across("PI", pin))
        assert ("R" in {name for name, _ in diagram.across("PI", pin)}) == (lead != "K")


def test_a_new_fleet_has_the_led_where_it_is_wired() -> None:
    line = next(line for line in new.KIT_FILE.format(kit="kit-01").splitlines() if "tandem_status_led" in line)
    told = yaml.safe_load(line.removeprefix("# "))
    diagram = wiring.read("standard")
    places = {word: place for place, word in diagram.pieces["PI"].places.items()}
    for colour, lead in (("red", "R"), ("green", "G"), ("blue", "B")):
        assert ("LED", lead) in set(diagram.across("PI", places[f"GPIO {told['tandem_status_led'][colour]}"]))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda one: one["connections"][0][2].update(PI=["P+", "P9"]), "PI:P9 is connected and is not there"),
        (lambda one: one["connectors"]["LED"]["pins"].pop(), "LED: 3 pins, 4 labels"),
        (lambda one: one["connections"][0][1].update(W_POWER=[1]), "mend: connectors, cables, connections"),
        (lambda one: one.pop("cables"), "mend: connectors, cables, connections"),
    ],
)
def test_a_wrong_source_is_told_in_one_line(tmp_path: Path, change, told: str) -> None:
    source = copy.deepcopy(yaml.safe_load((wiring.FOLDER / "paper.yml").read_text()))
    change(source)
    (tmp_path / "paper.yml").write_text(yaml.safe_dump(source, sort_keys=False))
    with pytest.raises(SourceError) as error:
        wiring.read("paper", tmp_path)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_moving_a_label_is_no_drift_and_another_wire_is() -> None:
    kept = (wiring.FOLDER / "paper.svg").read_bytes()
    assert wiring.same(kept, kept.replace(b'font-size="14.00"', b'font-size="15.00"')) is None
    assert wiring.same(kept, kept.replace(b"GPIO 17", b"GPIO 18")) == "another text: GPIO 17"
    edge = kept.index(b'<g id="edge3" class="edge">')
    assert str(wiring.same(kept, kept[:edge] + kept[kept.index(b"</g>", edge) :])).startswith("another wire")
    assert wiring.same(kept, b"") == "no text in it"
