"""From two bare Debians to a kit that measures: server and probe playbooks, whole and unchanged, over SSH; then what befalls a kit.

The only variables that a user's inventory would not have are where packages come from and which clock is asked (``play.sources``).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from statistics import median

import pytest
from targets import at_server, faults, provisioned
from targets import story as stories
from targets.available import lacks, made
from targets.ground import PROBE, SERVER, SERVER_MOVED
from targets.modems import MODEMS
from targets.play import Played
from targets.story import KIT, Story

pytestmark = [
    pytest.mark.system,
    pytest.mark.slow,
    pytest.mark.timeout(2400),
    pytest.mark.skipif(lacks() is not None, reason=str(lacks())),
]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with stories.containers(tmp_path_factory.mktemp("provisioned"), made()) as told:
        yield told
        provisioned.tell(told)


@pytest.fixture(scope="module")
def first(story: Story) -> Mapping[str, Played]:
    """Both plays for the first time; that they came to their end is seen to there."""
    return provisioned.provisioned(story)


def nothing_changed(played: Mapping[str, Played]) -> None:
    for host, one in played.items():
        assert one.changed == {host: 0}, one.changes()


def test_a_check_of_bare_machines_comes_to_its_end(story: Story) -> None:
    for host, checked in provisioned.both(story, "bare, checked", "--check").items():
        assert checked.changed[host] > 0, "a bare machine lacks everything"
    assert story.told(SERVER, "ls /etc/tandem 2>&1 || true").startswith("ls: cannot access")


def test_the_kit_is_enrolled_on_the_device_and_can_be_handed_out(story: Story, first: Mapping[str, Played]) -> None:
    assert {host: one.failed for host, one in first.items()} == {host: {host: 0} for host in first}
    assert story.told(PROBE, "sudo stat -c %a /etc/tandem/token").split() == ["600"]
    enrolled = json.loads(story.told(SERVER, "sudo -u tandem-server tandem-server probe list --json"))
    assert [probe["name"] for probe in enrolled] == [KIT]
    page = story.ground.folder / "preflight" / f"{KIT}.html"
    assert f"{KIT} is ready" in page.read_text()


def test_a_second_time_nothing_changes(story: Story, first: Mapping[str, Played]) -> None:
    assert set(first) == {"server", KIT}
    nothing_changed(provisioned.both(story, "second"))


def test_a_check_of_what_is_provisioned_finds_nothing_to_change(story: Story, first: Mapping[str, Played]) -> None:
    assert set(first) == {"server", KIT}
    nothing_changed(provisioned.both(story, "checked", "--check"))


def test_what_is_measured_arrives(story: Story, first: Mapping[str, Played]) -> None:
    assert set(first) == {"server", KIT}
    began_ns = time.time_ns()
    told = json.loads(
        story.told(PROBE, "sudo tandem experiment run download --pairing simultaneous --seconds 2 --json")
    )
    assert sorted(run["kind"] for run in told["results"]) == ["mptcp", "tcp", "tcp"]
    faults.records(story, began_ns)

    def complete(said: str) -> bool:
        states = {run["id"]: run["state"] for run in json.loads(said)["runs"]}
        return {states.get(run) for run in told["runs"]} == {"complete"}

    story.awaited("the ledger has the runs whole", SERVER, at_server.LEDGER, complete)
    over_both = next(run["id"] for run in told["results"] if run["kind"] == "mptcp")
    carried = at_server.by_path(story.told(SERVER, at_server.carried(over_both)))
    assert {path for path, rows in carried.items() if rows[0][1] > 0} == faults.PATHS


def test_both_modems_are_polled_once_a_second(story: Story, first: Mapping[str, Played]) -> None:
    assert set(first) == {"server", KIT}
    modems = json.loads(story.told(PROBE, "sudo tandem status --json"))["modems"]
    assert {path: modem["driver"] for path, modem in modems.items()} == {
        path: modem.family for path, modem in MODEMS.items()
    }
    for rows in at_server.by_path(story.told(SERVER, at_server.LEVELS)).values():
        times_ns = [at_ns for at_ns, _ in rows]
        assert round(median(later - sooner for later, sooner in pairwise(times_ns)) / 1e9) == 1


def test_a_killed_collector(story: Story, first: Mapping[str, Played]) -> None:
    assert set(first) == {"server", KIT}
    with story.part("collector killed"), faults.another_process(story):
        faults.signalled(story, "SIGKILL")


def test_a_server_that_moves_and_a_collector_that_hangs(story: Story, first: Mapping[str, Played]) -> None:
    """At the same time, since both are found out only after minutes of silence."""
    assert set(first) == {"server", KIT}
    faults.through_tunnel(story)
    with story.part("server moved: through the tunnel"):
        with story.part("server moved: measuring"):
            began_ns = time.time_ns()
            faults.server_moved(story)
            faults.records(story, began_ns)
        with story.part("collector hung"), faults.another_process(story):
            faults.signalled(story, "SIGSTOP")
        faults.through_tunnel(story)
    assert SERVER_MOVED in story.told(PROBE, "sudo wg show wg-tandem endpoints")
