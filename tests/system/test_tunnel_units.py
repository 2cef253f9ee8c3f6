"""The probe's tunnel as systemd runs it in a booted container: the role's units and program, Debian's wg-quick and wireguard-go."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from targets import story as stories
from targets.available import NEEDED, made
from targets.ground import PROBE
from targets.story import Story

jinja2 = pytest.importorskip("jinja2", reason="pip install -r requirements/lock.txt")
pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(900), NEEDED]
ROLE = Path(__file__).parents[2] / "ansible/roles/wireguard_client"
UNITS = "/etc/systemd/system"
ADDRESS = "ip -json address show dev wg-tandem | grep -o '10[.]87[.]0[.][0-9]*'"


def put(story: Story, text: str, place: str, mode: str = "0644") -> None:
    packed = base64.b64encode(text.encode()).decode()
    story.told(PROBE, f"echo {packed} | base64 -d >/tmp/put && sudo install -D -m {mode} /tmp/put {place}")


def enrol(story: Story, address: str | None) -> None:
    """As tandem-enrol writes it; without an address the server has no tunnel."""
    tunnel = {
        "address": f"{address}/16",
        "server_public_key": "B" * 42 + "A=",
        "endpoint": "203.0.113.200:51820",
        "allowed_ips": ["10.87.0.0/16"],
        "keepalive_s": 25,
    }
    put(story, json.dumps({"wireguard": address and tunnel}, indent=1), "/etc/tandem/enrolled.json")


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with stories.containers(tmp_path_factory.mktemp("tunnel"), made()) as story:
        story.awaited(
            "it has started", PROBE, "systemctl is-system-running || true", lambda said: said.strip() == "running"
        )
        packages = "wireguard-tools wireguard-go iproute2"
        story.told(
            PROBE, f"sudo apt-get -q update && sudo DEBIAN_FRONTEND=noninteractive apt-get -qy install {packages}"
        )
        put(story, (ROLE / "files/tandem-tunnel").read_text(), "/usr/local/sbin/tandem-tunnel", "0755")
        put(story, (ROLE / "files/wg-quick.conf").read_text(), f"{UNITS}/wg-quick@wg-tandem.service.d/tandem.conf")
        unit = jinja2.Template((ROLE / "templates/tandem-tunnel.service.j2").read_text())
        settings = {"wireguard_client_silent_s": 150, "wireguard_client_endpoints": []}
        put(story, unit.render(settings), f"{UNITS}/tandem-tunnel.service")
        story.told(
            PROBE,
            "sudo sh -c 'mkdir /etc/tandem; umask 077; wg genkey >/etc/tandem/wireguard.key' && sudo systemctl daemon-reload",
        )
        yield story


def test_without_a_tunnel_at_the_server_nothing_starts_and_nothing_fails(kit: Story) -> None:
    enrol(kit, None)
    kit.told(PROBE, "sudo systemctl start tandem-tunnel")
    assert kit.told(PROBE, "systemctl --failed --no-legend; ip -brief link show type wireguard") == ""


def test_the_tunnel_comes_up_and_follows_a_new_enrolment(kit: Story) -> None:
    enrol(kit, "10.87.0.16")
    kit.told(PROBE, "sudo systemctl start tandem-tunnel")
    assert kit.told(PROBE, ADDRESS) == "10.87.0.16\n"
    enrol(kit, "10.87.0.17")
    kit.told(PROBE, "sudo systemctl try-restart tandem-tunnel")
    assert kit.told(PROBE, ADDRESS) == "10.87.0.17\n"


def test_an_interface_that_is_lost_is_made_again(kit: Story) -> None:
    """As when wireguard-go dies."""
    kit.told(PROBE, "sudo ip link delete wg-tandem")
    kit.awaited("the interface is there again", PROBE, ADDRESS, bool)
    kit.awaited(
        "the hub is tried", PROBE, "sudo wg show wg-tandem endpoints", lambda said: "203.0.113.200:51820" in said
    )
    kit.awaited("no unit failed", PROBE, "systemctl --failed --no-legend", lambda said: said == "")


def test_an_interface_that_cannot_be_made_is_tried_again(kit: Story) -> None:
    kit.told(PROBE, "sudo systemctl stop tandem-tunnel wg-quick@wg-tandem")
    kit.told(PROBE, "sudo ip link add wg-tandem type bridge")
    kit.told(PROBE, "sudo systemctl start tandem-tunnel")
    kit.awaited(
        "wg-quick failed", PROBE, "systemctl is-failed wg-quick@wg-tandem || true", lambda said: said == "failed\n"
    )
    kit.told(PROBE, "sudo ip link delete wg-tandem")
    kit.awaited("the interface is there", PROBE, ADDRESS, bool)
    kit.awaited("no unit failed", PROBE, "systemctl --failed --no-legend", lambda said: said == "")


def test_stopped_it_leaves_nothing(kit: Story) -> None:
    kit.told(PROBE, "sudo systemctl stop tandem-tunnel")
    assert kit.told(PROBE, "ip -brief link | grep wg-tandem; ip rule | grep 22087; true") == ""
