"""The provisioned kit as a machine of its own with modems on USB: these are replugged, and its power is cut in the middle of an upgrade."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Iterator

import pytest
from targets import faults, kept, plugged, upgrade
from targets import story as stories
from targets.available import NEEDED
from targets.available import made as sources
from targets.disk import Disk
from targets.ground import PROBE
from targets.story import KIT, Story
from targets.vm_target import VmTarget, vm_target

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(6600), NEEDED]


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """The provisioned server in its container, and a place for the machine."""
    made = kept.kept(sources(), tmp_path_factory.mktemp("first"))
    image = kept.machine(sources(), made, tmp_path_factory.mktemp("machine"))
    with stories.containers(tmp_path_factory.mktemp("provisioned"), sources(), made, kit_starts=False) as told:
        subprocess.run(["cp", "--sparse=always", image, told.ground.folder / "disk.img"], check=True)
        yield told


@pytest.fixture(scope="module")
def machine(kit: Story) -> Iterator[VmTarget]:
    with vm_target(kit.ground, KIT, PROBE, Disk(kit.ground.folder / "disk.img")) as target:
        with kit.part("machine: boots until SSH answers"):
            target.await_ssh()
        yield target


def test_as_a_machine_with_modems_on_usb_it_measures(kit: Story, machine: VmTarget) -> None:
    assert machine.address == PROBE
    with kit.part("machine: measuring"):
        plugged.measuring(kit, time.time_ns())
    plugged.connected(kit)


def test_modems_that_come_back_with_other_numbers(kit: Story, machine: VmTarget) -> None:
    assert machine.address == PROBE
    before = plugged.numbers(kit)
    with kit.part("modems out and in again, measuring"):
        plugged.measuring(kit, plugged.exchanged(kit, before))
    plugged.connected(kit)
    after = plugged.numbers(kit)
    print(f"before {before}\nafter {after}")
    for path in before:
        assert after[path].terminals != before[path].terminals
        assert after[path].interface != before[path].interface
        assert after[path].managed != before[path].managed


@pytest.fixture(scope="module")
def coming(kit: Story, machine: VmTarget) -> tuple[str, str]:
    """What installs the release that comes, and its program's folder."""
    assert machine.address == PROBE
    return upgrade.installing(kit)


def test_power_lost_while_a_release_is_installed(kit: Story, machine: VmTarget, coming: tuple[str, str]) -> None:
    before = upgrade.state(kit)
    command, program = coming
    with kit.part("release being installed: power lost"):
        print(upgrade.cut(kit, machine, command, f"-e {program}/bin/python3"))
    with kit.part("power back: boots until SSH answers"):
        machine.start()
        machine.await_ssh()
    assert upgrade.state(kit) == before
    with kit.part("release installed"):
        kit.told(PROBE, f"sudo sh -c {shlex.quote(command)}")
    assert kit.told(PROBE, f"{program}/bin/tandem --version").startswith("tandem 9.0.0+")


def test_power_lost_before_a_release_has_reported_healthy(
    kit: Story, machine: VmTarget, coming: tuple[str, str]
) -> None:
    before = upgrade.state(kit)
    release = upgrade.laid_out(kit, coming[1])
    with kit.part("release tried, not yet healthy: power lost"):
        current = f"{upgrade.HOME}/current -ef {release} -a -L {upgrade.HOME}/before"
        print(upgrade.cut(kit, machine, upgrade.trying(release), current))
    with kit.part("power back, release taken back, measuring"):
        plugged.on_again(kit, machine)
    assert upgrade.state(kit) == before


def test_nothing_broke_in_the_machine_either(kit: Story, machine: VmTarget) -> None:
    assert faults.broken(kit, machine.address) == []
