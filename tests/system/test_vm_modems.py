"""Two modems as real USB devices, the distribution's kernel, the real ModemManager, the kit: in a virtual machine.

One story is played (``vm/scene_modems.py``) and judged here. Functions only: rates on an emulated processor mean nothing.
"""

from typing import Any

import pytest
from vm import machine

pytestmark = [pytest.mark.system, pytest.mark.slow, pytest.mark.timeout(3700), machine.NEEDED]
SCENE = str(machine.REPOSITORY / "tests" / "system" / "vm" / "scene_modems.py")
BELONGS = {"a": ("192.168.8.100", "00101"), "b": ("192.168.9.100", "00102")}
"""What each slot's modem gives by DHCP, and its operator."""


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    told = machine.played(["python3", SCENE], timeout_s=3600)
    print(told["took_s"], f"links told again: {told['links_told_again']}")
    return told


def rightly_connected(told: dict[str, dict[str, Any]]) -> None:
    for path, modem in told.items():
        assert modem["model"] == "TOBY-L200"
        assert (modem["connected"], modem["state"], modem["method"]) == ("yes", "connected", "dhcp")
        assert modem["interface"] == modem["interface_at_its_place"]
        assert (modem["address"], modem["plmn"]) == BELONGS[path]
        ports = " ".join(modem["ports"])
        assert ports.count("(at)") == 1, "ModemManager has one port"
        assert ports.count("(ignored)") == 1, "and leaves the other to the collector"


def heard_in_its_slot(seen: dict[str, Any], radio: dict[str, dict[str, Any]]) -> None:
    assert {path: modem["eci"] in seen["cells"][path] for path, modem in radio.items()} == {"a": True, "b": True}
    assert not set(seen["cells"]["a"]) & set(seen["cells"]["b"])
    assert {path: modem["operator"] for path, modem in radio.items()} == {"a": "A", "b": "B"}
    assert all(-140 < modem["rsrp_dbm"] < -44 for modem in radio.values())


def carried(pair: list[dict[str, Any]]) -> None:
    assert sorted((run["kind"], run["paths"][0]) for run in pair if run["kind"] == "tcp") == [
        ("tcp", "a"),
        ("tcp", "b"),
    ]
    assert len(pair) == 3
    for run in pair:
        assert run["failure"] is None
        assert run["fallback"] is False
        used = {"a", "b"} if run["kind"] == "mptcp" else {run["paths"][0]}
        assert {path for path, size in run["bytes"].items() if size > 0} == used


def test_modem_manager_finds_both_and_connects_through_their_network_functions(seen: dict[str, Any]) -> None:
    assert set(seen["connected"]) == set(BELONGS)
    rightly_connected(seen["connected"])


def test_the_collector_polls_both_second_ports_beside_it(seen: dict[str, Any]) -> None:
    heard_in_its_slot(seen, seen["radio"])


def test_a_pair_of_downloads_goes_over_both_usb_network_functions(seen: dict[str, Any]) -> None:
    carried(seen["pair"])


def test_one_modem_out_leaves_the_other_polled_and_is_there_again_when_it_comes_back(seen: dict[str, Any]) -> None:
    """Both replugged, the other first: test_provisioned_machine.py."""
    assert seen["a_while_b_is_out"]["eci"] in seen["cells"]["a"]
    rightly_connected(seen["connected_again"])
    heard_in_its_slot(seen, seen["radio_again"])
    assert seen["exported_at_the_end"] == ["1-1", "2-1"]


def test_records_reached_the_server_and_the_collector_ends_well(seen: dict[str, Any]) -> None:
    assert seen["spool"]["sent"] > 0
    assert (seen["spool"]["rejected"], seen["spool"]["dropped"]) == (0, 0)
    assert seen["collector_exit"] == 0
    assert seen["traceback"] is False
