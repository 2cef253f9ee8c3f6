"""The targets that playbooks are tried on answer by SSH with the keys made for them and take packages from the tests' archive only."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from targets import play, stand_in_grafana
from targets import story as stories
from targets.available import lacks, made
from targets.ground import OPERATORS, PROBE, SERVER, SERVER_NAME, SERVER_PUBLIC
from targets.story import Story

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(600),
    pytest.mark.skipif(lacks() is not None, reason=str(lacks())),
]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with stories.containers(tmp_path_factory.mktemp("targets"), made()) as told:
        yield told


def test_a_system_of_its_own_runs_in_each(story: Story) -> None:
    for address, name in ((SERVER, "server"), (PROBE, stories.KIT)):
        story.awaited(
            "it has started", address, "systemctl is-system-running || true", lambda said: said.strip() == "running"
        )
        assert story.told(address, "hostname; sudo id -u").split() == [name, "0"]


def test_a_host_key_that_is_not_known_is_refused(story: Story) -> None:
    known = story.ground.known_hosts.read_text()
    server, kit = known.splitlines()
    exchanged = f"{SERVER} {kit.split(' ', 1)[1]}\n"
    story.ground.known_hosts.write_text(exchanged)
    try:
        refused = story.ground.ssh(SERVER, "true")
    finally:
        story.ground.known_hosts.write_text(known)
    assert refused.returncode == 255
    assert "Host key verification failed" in refused.stderr
    assert server != kit


def test_the_kit_reaches_the_server_over_both_operators_and_knows_its_name(story: Story) -> None:
    for interface in ("wwan0", "wwan1"):
        story.told(PROBE, f"ping -c 1 -W 5 -I {interface} {SERVER_PUBLIC}")
    assert story.told(PROBE, f"getent ahostsv4 {SERVER_NAME}").split()[0] == SERVER_PUBLIC
    assert OPERATORS in story.told(SERVER, "ip route show default")


def test_packages_come_from_the_archive_signed(story: Story) -> None:
    story.told(SERVER, "sudo apt-get -q update && sudo env DEBIAN_FRONTEND=noninteractive apt-get -qy install grafana")
    story.told(SERVER, "sudo systemctl start grafana-server")
    asking = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:3000/api/health').read().decode())"
    said = story.awaited("Grafana's stand-in answers", SERVER, f'python3 -c "{asking}"', bool)
    assert json.loads(said)["stand_in"] is True
    assert stand_in_grafana.VERSION in story.told(SERVER, "dpkg-query -W grafana")


def test_ansible_reaches_the_kit(story: Story) -> None:
    played = play.play(story.ground, "ping.yml", play.inventory(story.ground, {}, {}))
    assert played.exit == 0, played.output
    assert played.changed == {stories.KIT: 0}


def test_a_kit_may_end_while_its_root_the_server_and_the_ground_stay(story: Story) -> None:
    story.kit_runs.close()
    assert (story.kit / "etc/hostname").read_text() == f"{stories.KIT}\n"
    assert story.told(SERVER, "hostname").strip() == "server"
