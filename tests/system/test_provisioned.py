"""From two bare Debians to a kit that measures: server and probe playbooks, whole and unchanged, over SSH; then what befalls a kit.

What the first plays make is kept (``targets/kept.py``). The only variables that a user's inventory would not have are where packages come
from and which clock is asked (``play.sources``).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from targets import at_server, faults, kept, provisioned, upgrade
from targets import story as stories
from targets.available import NEEDED
from targets.available import made as sources
from targets.ground import PROBE, SERVER, SERVER_MOVED
from targets.modems import MODEMS
from targets.story import KIT, Story

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(3600), NEEDED]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kept.kept(sources(), tmp_path_factory.mktemp("first"))


@pytest.fixture(scope="module")
def kit(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """A server and a kit that were provisioned and started again."""
    with stories.containers(tmp_path_factory.mktemp("provisioned"), sources(), made) as told:
        for address in (SERVER, PROBE):
            told.awaited(
                "it has started", address, "systemctl is-system-running || true", lambda said: said == "running\n"
            )
        yield told


PLAYBOOKS = {"server.yml": "server", "probe.yml": KIT}


def test_a_check_of_a_bare_machine_would_change_much(made: Path) -> None:
    played = json.loads((made / "played.json").read_text())
    for playbook, host in PLAYBOOKS.items():
        looked, first = played[f"{playbook} bare, checked"], played[f"{playbook} first"]
        assert looked["failed"] == first["failed"] == {host: 0}
        assert looked["changed"][host] > 0


def test_the_kit_is_enrolled_on_the_device_and_can_be_handed_out(made: Path, kit: Story) -> None:
    assert kit.told(PROBE, "sudo stat -c %a /etc/tandem/token").split() == ["600"]
    enrolled = json.loads(kit.told(SERVER, "sudo -u tandem-server tandem-server probe list --json"))
    assert [probe["name"] for probe in enrolled] == [KIT]
    assert f"{KIT} is ready" in (made / f"ground/preflight/{KIT}.html").read_text()


def test_nothing_changes_again(kit: Story) -> None:
    again = provisioned.again(kit)
    assert len(again) == 2 * len(PLAYBOOKS)
    assert {part: one.changes() for part, one in again.items() if set(one.changed.values()) != {0}} == {}


def test_a_restart_that_a_broken_off_play_owed_is_made_by_the_next(kit: Story) -> None:
    process = "systemctl show --property=MainPID --value tandem-gateway.service"
    before = kit.told(SERVER, f"sudo touch /etc/tandem/server.toml; {process}")
    provisioned.play(kit, "server.yml", "owed a restart", provisioned.inventory(kit, ""), "--tags", "ingest")
    assert kit.told(SERVER, process) != before


def test_what_is_measured_arrives(kit: Story) -> None:
    faults.paths_up(kit)
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


def test_each_modem_is_polled_in_its_own_dialogue(kit: Story) -> None:
    modems = json.loads(kit.told(PROBE, "sudo tandem status --json"))["modems"]
    assert {path: modem["driver"] for path, modem in modems.items()} == {
        path: modem.family for path, modem in MODEMS.items()
    }


def test_a_configuration_that_loses_a_modem_is_taken_back(kit: Story) -> None:
    before = upgrade.state(kit)
    configured = kit.told(PROBE, "sudo cat /etc/tandem/config.toml")
    first, second = provisioned.KIT_VARIABLES["tandem_paths"]
    with kit.part("a configuration that loses a modem"):
        played = upgrade.played(kit, "lost-modem", tandem_paths=[first, second | {"port": "/dev/ttyNONE"}])
    assert played.failed == {KIT: 1}, played.output[-4000:]
    assert f"{second['name']} was usable before and is not" in played.output
    assert upgrade.state(kit) == before
    assert kit.told(PROBE, "sudo cat /etc/tandem/config.toml") == configured
    faults.paths_up(kit)


def test_after_a_killed_collector_another_one_measures(kit: Story) -> None:
    before = faults.process(kit)
    with kit.part("collector killed"), faults.another_process(kit):
        faults.signalled(kit, "SIGKILL")
    assert faults.process(kit) not in (0, before)


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


def test_nothing_broke_where_nobody_looks(kit: Story) -> None:
    assert {address: faults.broken(kit, address) for address in (SERVER, PROBE)} == {SERVER: [], PROBE: []}
