"""Which state a path is in, from what the kernel shows."""

from dataclasses import replace

import pytest

from tandem.mptcp import iproute
from tandem.mptcp.iproute import Interface, interfaces
from tandem.mptcp.paths import DefaultRoute, Path, judge

ETH = Interface("eth1", True, ("192.168.8.100",), (), ("192.168.8.100/24",))
SIX = Interface("eth1", True, (), ("2001:db8::5",), ("2001:db8::5/64",))
TUN = Interface("wwan0", True, ("10.64.0.2",), (), ("10.64.0.2/30",), point_to_point=True)
PATH = Path("a", "eth1", "192.168.8.1")
LEARNED = DefaultRoute("eth1", "192.168.8.1", 100)


@pytest.mark.parametrize(
    ("path", "interface", "routes", "state", "address", "gateway"),
    [
        (PATH, ETH, [], "up", "192.168.8.100", "192.168.8.1"),
        (PATH, None, [], "down", None, None),
        (PATH, replace(ETH, usable=False), [], "down", None, None),
        (PATH, replace(ETH, addresses=(), networks=()), [], "no_address", None, None),
        (replace(PATH, address="192.168.8.7"), ETH, [], "no_address", None, None),
        (replace(PATH, gateway=None), ETH, [], "no_route", "192.168.8.100", None),
        (replace(PATH, gateway=None), ETH, [LEARNED], "up", "192.168.8.100", "192.168.8.1"),
        (replace(PATH, gateway=None), ETH, [replace(LEARNED, interface="eth2")], "no_route", "192.168.8.100", None),
        (replace(PATH, gateway="10.9.9.9"), ETH, [], "no_route", "192.168.8.100", None),
        (replace(PATH, gateway="10.9.9.9"), ETH, [LEARNED], "up", "192.168.8.100", "192.168.8.1"),
        (PATH, ETH, [replace(LEARNED, gateway="192.168.8.2")], "up", "192.168.8.100", "192.168.8.1"),
        (Path("a", "wwan0"), TUN, [], "up", "10.64.0.2", None),
        (PATH, SIX, [], "no_route", "2001:db8::5", None),
        (PATH, SIX, [LEARNED], "no_route", "2001:db8::5", None),
        (PATH, SIX, [DefaultRoute("eth1", "fe80::1", 1024)], "up", "2001:db8::5", "fe80::1"),
        (replace(PATH, gateway="fe80::7"), SIX, [], "up", "2001:db8::5", "fe80::7"),
        (replace(PATH, gateway=None), replace(ETH, addresses6=("2001:db8::5",)), [LEARNED], "up", "192.168.8.100", "192.168.8.1"),
    ],
)  # fmt: skip
def test_states(path, interface, routes, state, address, gateway) -> None:
    got = judge(path, "eth1" if interface is None else interface.name, interface, routes, mptcp6=True)
    assert (got.state, got.address, got.gateway) == (state, address, gateway)
    assert "\n" not in got.detail


def test_the_better_of_two_default_routes_is_taken_and_what_cannot_be_used_is_named() -> None:
    routes = [replace(LEARNED, gateway="192.168.8.3", metric=700), LEARNED]
    assert judge(replace(PATH, gateway=None), "eth1", ETH, routes, mptcp6=True).gateway == "192.168.8.1"
    got = judge(PATH, "eth1", SIX, [], mptcp6=False)
    assert (got.state, got.address) == ("ipv6_only_unusable", None)
    got = judge(Path("a", lambda: None), None, None, [], mptcp6=True)
    assert (got.state, got.interface, got.detail) == ("down", None, "there is no such modem")


def test_ips_answer_is_read_with_lasting_addresses_of_the_internet_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def row(local: str, length: int, **more: object) -> dict[str, object]:
        family = "inet6" if ":" in local else "inet"
        return {"family": family, "local": local, "prefixlen": length, "scope": "global", **more}

    addresses = [
        row("10.0.0.5", 32, address="10.0.0.6"),
        row("fd00::1", 64),
        row("2001:db8::9", 64, temporary=True),
        row("2001:db8::1", 64),
        row("2001:db8::2", 64, tentative=True),
        row("2001:db8::3", 64, deprecated=True),
        {**row("fe80::1", 64), "scope": "link"},
    ]
    shown = {"ifname": "ppp0", "flags": ["POINTOPOINT", "UP"], "mtu": 1400, "addr_info": addresses}
    monkeypatch.setattr(iproute, "ip_json", lambda *_: [shown])
    got = interfaces()["ppp0"]
    assert got.addresses == ("10.0.0.5",)
    assert got.addresses6 == ("2001:db8::1", "2001:db8::9", "fd00::1")
    assert "10.0.0.6/32" in got.networks
    assert (got.usable, got.point_to_point, got.mtu) == (True, True, 1400)
