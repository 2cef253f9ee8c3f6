"""A modem behind a NAT gives another address or another gateway: followed in there, and the path stays up."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Iterator

import pytest
from twin_modems import HOST, MODEM, Twins, twins
from watched_paths import Watched

from support.two_paths import await_true, lab_with
from tandem.mptcp import sockets
from tandem.mptcp.iproute import ip_json
from tandem.mptcp.nat import Nat
from tandem.mptcp.paths import Path

pytestmark = lab_with("nft", "dnsmasq")
STICKS = (Path("a", "stick-a", MODEM), Path("b", "stick-b", MODEM))
OTHER = "192.168.8.150"


@contextlib.contextmanager
def giving(lab: Twins, address: str, folder, *more: str, router: str = MODEM) -> Iterator[None]:
    """Modem b's DHCP server, as a stick has one."""
    command = [
        *("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file=", "--port=0", "--log-facility=-"),
        *("--interface=lan", "--no-ping", f"--dhcp-range={address},{address},255.255.255.0,2m"),
        *(f"--dhcp-leasefile={folder / address}", f"--dhcp-option=3,{router}", "--user=root", *more),
    ]
    with subprocess.Popen([*lab.modems["b"].enter, *command], stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        assert any("DHCP, IP range" in line for line in server.stderr)
        drain = threading.Thread(target=server.stderr.read)
        drain.start()
        try:
            yield
        finally:
            server.terminate()
            server.wait()
            drain.join()


class Following(Watched):
    """Both sticks."""

    def __init__(self, lab: Twins) -> None:
        super().__init__(lab, STICKS)

    def inside(self) -> tuple[list[str], list[str]]:
        """Addresses and next hops behind the NAT."""
        name = self.two.probe.inside(lambda: Nat(1).namespace)
        told = ip_json("-n", name, "-4", "address", "show", "dev", "stick-b")
        routes = ip_json("-n", name, "route", "show", "default")
        return [a["local"] for row in told for a in row.get("addr_info", [])], [r["gateway"] for r in routes]

    def asked(self) -> bool:
        """Whether modem b's page answers over the path."""
        reach = self.paths.reach("b")
        assert reach is not None
        source = sockets.Source(reach.interface)
        try:
            self.two.probe.inside(lambda: sockets.connect("tcp", (str(reach.address), 80), source, 30)).socket.close()
        except OSError:
            return False
        return True

    def close(self) -> None:
        super().close()
        self.two.probe.inside(self.paths.remove)


@pytest.fixture
def lab() -> Iterator[Twins]:
    with twins() as made:
        yield made


def test_the_address_it_has_is_kept_alive(lab, tmp_path):
    """The modem's lease says so: it was asked for again from behind the NAT."""
    with giving(lab, HOST, tmp_path, "--dhcp-authoritative"):
        following = Following(lab)
        try:
            await_true(lambda: HOST in (tmp_path / HOST).read_text(), 60, "the lease")
            assert following.inside() == ([HOST], [MODEM])
            assert [e for e in following.events if "now" in e.detail] == []
        finally:
            following.close()


@pytest.mark.parametrize("server", [["--dhcp-authoritative"], []], ids=["that refuses", "that keeps silent"])
def test_another_address_is_taken(lab, tmp_path, server):
    with giving(lab, OTHER, tmp_path, *server), lab.pages():
        following = Following(lab)
        try:
            await_true(lambda: following.inside() == ([OTHER], [MODEM]), 60, "the other address")
            await_true(lambda: any(e.path == "b" and OTHER in e.detail for e in following.events), 60, "the event")
            assert following.paths.addresses == {"a": HOST, "b": Nat(1).address}
            await_true(following.asked, 60, "an answer over the path")
        finally:
            following.close()


def test_a_modem_that_began_anew_is_asked_when_its_link_is_back(lab, tmp_path):
    """It restarts, with another address for us and another one of its own: long before half of the lease."""
    following = None
    try:
        with giving(lab, HOST, tmp_path, "--dhcp-authoritative"):
            following = Following(lab)
            await_true(lambda: HOST in (tmp_path / HOST).read_text(), 60, "the lease")
        modem = lab.modems["b"]
        modem.run("ip link set lan down; ip address add 192.168.8.254/24 dev lan")
        await_true(lambda: "b" not in following.paths.addresses, 60, "the link's end")
        with giving(lab, OTHER, tmp_path, "--dhcp-authoritative", router="192.168.8.254"):
            modem.run("ip link set lan up")
            await_true(lambda: following.inside() == ([OTHER], ["192.168.8.254"]), 60, "what it gives now")
            await_true(lambda: "b" in following.paths.addresses, 60, "the path")
            reach = following.paths.reach("b")
            assert reach is not None
            assert reach.address == "192.168.8.254"
    finally:
        if following is not None:
            following.close()


def test_where_nobody_answers_all_stays(lab):
    modem = lab.modems["b"]
    chain = "chain in { type filter hook prerouting priority 0; udp dport 67 counter name questions; }; "
    modem.run(f"nft 'table ip seen {{ counter questions {{ }}; {chain}}}'")

    def questions() -> int:
        listed = json.loads(modem.run("nft -j list counter ip seen questions"))
        return next(row["counter"]["packets"] for row in listed["nftables"] if "counter" in row)

    following = Following(lab)
    try:
        await_true(lambda: questions() >= 3, 60, "three questions")
        assert following.inside() == ([HOST], [MODEM])
        assert following.paths.addresses["b"] == Nat(1).address
    finally:
        following.close()
