"""A raw-IP interface of the real kernel: the addresses that ModemManager tells and does not set, and the flags of rtnetlink."""

import subprocess
from collections.abc import Iterator

import pytest

from tandem.app.daemon.modems import LOOK_AGAIN_S, BearerAddresses
from tandem.modem.mm_poller import BearerGiven, given
from tandem.mptcp import netlink
from tandem.mptcp.iproute import interfaces

pytestmark = pytest.mark.lab
NAME = "bearer0"
DEBUG, UP = 0x4, 0x1


def bearer(address: str | None, *, method: int = 2, address6: str | None = None, mtu: int = 1430) -> BearerGiven:
    """As ModemManager's Bearer has it."""
    four = {"method": method, "address": address, "prefix": 30, "gateway": "10.64.0.2", "dns1": "10.0.0.1", "mtu": mtu}
    six = {"method": 2 if address6 else 0, "address": address6, "prefix": 64}
    return given({"Interface": NAME, "Ip4Config": four if address or method != 2 else {}, "Ip6Config": six})


@pytest.fixture
def interface() -> Iterator[str]:
    subprocess.run(["ip", "tuntap", "add", NAME, "mode", "tun"], check=True)
    yield NAME
    subprocess.run(["ip", "link", "delete", NAME], check=False)


def told_addresses() -> set[str]:
    return set(interfaces()[NAME].addresses) | set(interfaces()[NAME].addresses6)


def unheard(detail: str) -> None:
    pytest.fail(detail)


@pytest.mark.usefixtures("interface")
def test_the_interface_has_what_the_bearer_was_given_follows_it_and_ends_with_it() -> None:
    kept = BearerAddresses(unheard)
    kept.keep(None)
    assert told_addresses() == set()
    kept.keep(bearer("10.64.0.1", address6="2001:db8::7"))
    assert told_addresses() == {"10.64.0.1", "2001:db8::7"}
    assert (interfaces()[NAME].mtu, interfaces()[NAME].point_to_point) == (1430, True)
    kept.keep(bearer("10.64.0.9"))
    assert interfaces()[NAME].addresses == ("10.64.0.9",)
    kept.keep(None)
    assert interfaces()[NAME].addresses == ()


@pytest.mark.usefixtures("interface")
def test_an_address_of_a_life_before_goes_and_one_that_somebody_took_comes_back() -> None:
    subprocess.run(["ip", "address", "add", "10.64.7.7/30", "dev", NAME], check=True)
    now = [0.0]
    kept = BearerAddresses(unheard, lambda: now[0])
    kept.keep(bearer("10.64.0.1"))
    assert interfaces()[NAME].addresses == ("10.64.0.1",)
    subprocess.run(["ip", "address", "flush", "dev", NAME], check=True)
    kept.keep(bearer("10.64.0.1"))
    assert interfaces()[NAME].addresses == ()
    now[0] += LOOK_AGAIN_S
    kept.keep(bearer("10.64.0.1"))
    assert interfaces()[NAME].addresses == ("10.64.0.1",)


@pytest.mark.usefixtures("interface")
def test_addresses_by_dhcp_are_somebody_elses() -> None:
    subprocess.run(["ip", "address", "add", "10.64.7.7/30", "dev", NAME], check=True)
    kept = BearerAddresses(unheard)
    kept.keep(bearer(None, method=3))
    kept.keep(None)
    assert interfaces()[NAME].addresses == ("10.64.7.7",)


def test_an_interface_that_went_with_its_modem_is_no_failure_and_has_its_address_when_it_is_back(
    interface: str,
) -> None:
    now = [0.0]
    kept = BearerAddresses(unheard, lambda: now[0])
    kept.keep(bearer("10.64.0.1"))
    subprocess.run(["ip", "link", "delete", interface], check=True)
    now[0] += LOOK_AGAIN_S
    kept.keep(bearer("10.64.0.1"))
    kept.keep(None)
    subprocess.run(["ip", "tuntap", "add", interface, "mode", "tun"], check=True)
    kept.keep(bearer("10.64.0.1"))
    assert interfaces()[NAME].addresses == ("10.64.0.1",)


@pytest.mark.usefixtures("interface")
def test_what_the_kernel_refuses_is_told_once() -> None:
    told: list[str] = []
    now = [0.0]
    kept = BearerAddresses(told.append, lambda: now[0])
    wrong = bearer("10.64.0.1", mtu=7)
    for now[0] in (0.0, LOOK_AGAIN_S):
        kept.keep(wrong)
    assert len(told) == 1
    assert "mtu" in told[0].lower() or "invalid" in told[0].lower()


def test_one_flag_changes_and_no_other(interface: str) -> None:
    before = netlink.read_link_flags(interface)
    assert before is not None
    assert not before & (DEBUG | UP)
    netlink.change_link_flags(interface, DEBUG, DEBUG)
    assert netlink.read_link_flags(interface) == before | DEBUG
    netlink.change_link_flags(interface, 0, DEBUG)
    assert netlink.read_link_flags(interface) == before
