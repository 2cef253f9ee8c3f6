"""The story of test_provisioned.py goes on: the same kit as a machine of its own with modems on USB: replugged, and its power cut.

By hand: ``./kit test tests/system/machine_by_hand.py -s``. It is not among the tests that run by themselves yet; targets/README.md
says what was seen and what not.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from targets import plugged, upgrade
from targets.available import lacks
from targets.ground import PROBE
from targets.story import Story
from targets.vm_target import VmTarget
from test_provisioned import kit, played, story

__all__ = ["kit", "played", "story"]  # the fixtures that this story begins with
pytestmark = [
    pytest.mark.system,
    pytest.mark.slow,
    pytest.mark.timeout(4800),
    pytest.mark.skipif(lacks() is not None, reason=str(lacks())),
]


@pytest.fixture(scope="module")
def machine(kit: Story) -> Iterator[VmTarget]:
    """From here on the same kit is a machine of its own with modems on USB, and no container any more."""
    with plugged.machine(kit) as target:
        yield target


def test_as_a_machine_with_modems_on_usb_it_measures(kit: Story, machine: VmTarget) -> None:
    assert machine.address == PROBE
    with kit.part("machine: measuring"):
        plugged.measuring(kit, time.time_ns())


def test_modems_that_come_back_with_other_numbers(kit: Story, machine: VmTarget) -> None:
    assert machine.address == PROBE
    before = plugged.numbers(kit)
    with kit.part("modems out and in again, measuring"):
        plugged.measuring(kit, plugged.exchanged(kit, before))
    after = plugged.numbers(kit)
    print(f"before {before}\nafter {after}")
    for path in before:
        assert after[path].terminals != before[path].terminals
        assert after[path].interface != before[path].interface
        assert after[path].managed != before[path].managed


def test_power_lost_while_a_release_is_unpacked(kit: Story, machine: VmTarget) -> None:
    before = upgrade.state(kit)
    with kit.part("release being unpacked: power lost"):
        print(upgrade.cut(kit, machine, upgrade.INSTALL, upgrade.UNPACKED))
    with kit.part("power back, measuring"):
        plugged.on_again(kit, machine)
    assert upgrade.state(kit) == before


def test_power_lost_before_a_release_has_reported_healthy(kit: Story, machine: VmTarget) -> None:
    before = upgrade.state(kit)
    with kit.part("release switched to, not yet healthy: power lost"):
        print(upgrade.cut(kit, machine, upgrade.SWITCH, upgrade.SWITCHED))
    with kit.part("power back, release taken back, measuring"):
        plugged.on_again(kit, machine)
    after = upgrade.state(kit)
    assert (after["current"], after["unproven"]) == (before["current"], False)
    assert upgrade.NEW in after["installed"]
