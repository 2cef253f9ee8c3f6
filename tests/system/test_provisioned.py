"""From two bare Debians to a kit that measures: server and probe playbooks, whole and unchanged, over SSH; then what befalls a kit.

Last the same kit is a machine of its own with modems on USB: these are replugged, and its power is cut.
The only variables that a user's inventory would not have are where packages come from and which clock is asked (``play.sources``).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from statistics import median

import pytest
from targets import at_server, faults, plugged, provisioned, upgrade
from targets import story as stories
from targets.available import lacks, made
from targets.ground import PROBE, SERVER, SERVER_MOVED
from targets.modems import MODEMS
from targets.play import Played
from targets.story import KIT, Story
from targets.vm_target import VmTarget

pytestmark = [
    pytest.mark.system,
    pytest.mark.slow,
    pytest.mark.timeout(4800),
    pytest.mark.skipif(lacks() is not None, reason=str(lacks())),
]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with stories.containers(tmp_path_factory.mktemp("provisioned"), made()) as told:
        yield told
        provisioned.tell(told)


@pytest.fixture(scope="module")
def played(story: Story) -> Mapping[str, Played]:
    """All plays; that each came to its end, and the hand-out check passed, is seen to there."""
    return provisioned.provisioned(story)


@pytest.fixture(scope="module")
def kit(story: Story, played: Mapping[str, Played]) -> Story:
    """What is told of a kit that is provisioned."""
    assert len(played) == 8
    return story


PLAYBOOKS = {"server.yml": "server", "probe.yml": KIT}


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_a_check_of_a_bare_machine_would_change_much(playbook: str, played: Mapping[str, Played]) -> None:
    looked, made = played[f"{playbook} bare, checked"], played[f"{playbook} first"]
    host = PLAYBOOKS[playbook]
    assert looked.failed[host] == made.failed[host] == 0
    assert looked.changed[host] > 0


@pytest.mark.parametrize("playbook", PLAYBOOKS)
@pytest.mark.parametrize("part", ["second", "checked"])
def test_nothing_changes_again(part: str, playbook: str, played: Mapping[str, Played]) -> None:
    again = played[f"{playbook} {part}"]
    assert again.changed == {PLAYBOOKS[playbook]: 0}, again.changes()


def test_the_kit_is_enrolled_on_the_device_and_can_be_handed_out(story: Story, played: Mapping[str, Played]) -> None:
    assert played["probe.yml first"].failed == {KIT: 0}
    assert story.told(PROBE, "sudo stat -c %a /etc/tandem/token").split() == ["600"]
    enrolled = json.loads(story.told(SERVER, "sudo -u tandem-server tandem-server probe list --json"))
    assert [probe["name"] for probe in enrolled] == [KIT]
    page = story.ground.folder / "preflight" / f"{KIT}.html"
    assert f"{KIT} is ready" in page.read_text()


def test_what_is_measured_arrives(kit: Story) -> None:
    began_ns = time.time_ns()
    told = json.loads(kit.told(PROBE, "sudo tandem experiment run download --pairing simultaneous --seconds 2 --json"))
    assert sorted(run["kind"] for run in told["results"]) == ["mptcp", "tcp", "tcp"]
    faults.records(kit, began_ns)

    def complete(said: str) -> bool:
        states = {run["id"]: run["state"] for run in json.loads(said)["runs"]}
        return {states.get(run) for run in told["runs"]} == {"complete"}

    kit.awaited("the ledger has the runs whole", SERVER, at_server.LEDGER, complete)
    over_both = next(run["id"] for run in told["results"] if run["kind"] == "mptcp")
    carried = at_server.by_path(kit.told(SERVER, at_server.carried(over_both)))
    assert {path for path, rows in carried.items() if rows[0][1] > 0} == faults.PATHS


def test_both_modems_are_polled_once_a_second(kit: Story) -> None:
    modems = json.loads(kit.told(PROBE, "sudo tandem status --json"))["modems"]
    assert {path: modem["driver"] for path, modem in modems.items()} == {
        path: modem.family for path, modem in MODEMS.items()
    }
    for rows in at_server.by_path(kit.told(SERVER, at_server.LEVELS)).values():
        times_ns = [at_ns for at_ns, _ in rows]
        assert round(median(later - sooner for later, sooner in pairwise(times_ns)) / 1e9) == 1


def test_a_killed_collector(kit: Story) -> None:
    with kit.part("collector killed"), faults.another_process(kit):
        faults.signalled(kit, "SIGKILL")


def test_a_server_that_moves_and_a_collector_that_hangs(kit: Story) -> None:
    """At the same time, since both are found out only after minutes of silence."""
    faults.through_tunnel(kit)
    with kit.part("server moved: through the tunnel"):
        with kit.part("server moved: measuring"):
            faults.server_moved(kit, SERVER_MOVED)
            faults.records(kit, time.time_ns())
        with kit.part("collector hung"), faults.another_process(kit):
            faults.signalled(kit, "SIGSTOP")
        faults.through_tunnel(kit)
    assert SERVER_MOVED in kit.told(PROBE, "sudo wg show wg-tandem endpoints")


@pytest.mark.parametrize("address", [SERVER, PROBE], ids=["server", KIT])
def test_nothing_broke_where_nobody_looks(address: str, kit: Story) -> None:
    nothing_broke(address, kit)


def nothing_broke(address: str, kit: Story) -> None:
    assert kit.told(address, "systemctl --failed --no-legend --plain") == ""
    journal = kit.told(address, "sudo journalctl --boot --no-pager --output=cat --unit='tandem*'")
    assert journal.strip() != ""
    assert "Traceback" not in journal, journal[journal.index("Traceback") - 500 :][:3000]


@pytest.fixture(scope="module")
def machine(kit: Story) -> Iterator[VmTarget]:
    """From here on the same kit is a machine of its own with modems on USB, and no container any more."""
    with plugged.machine(kit) as target:
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


def test_nothing_broke_in_the_machine_either(kit: Story, machine: VmTarget) -> None:
    nothing_broke(machine.address, kit)
