"""Routes, rules and endpoints in a real network namespace: what is made, mended, and left alone."""

import json
import socket
import struct
import time

import pytest

from support.two_paths import ADDRESS, PATHS, SERVER, Lab, await_true, lab, lab_with, up
from tandem.capture import Budget, Capture
from tandem.mptcp import sockets, sysctls
from tandem.mptcp.netlink import subscribe_routes
from tandem.mptcp.path_manager import Endpoint
from tandem.mptcp.paths import ENDPOINTS, Paths
from tandem.mptcp.watch import LONGEST_S, Watch
from tandem.mptcp_abi.reader import ConnectionSample, Reader

UNFILTERED = (284, 1)
"""SOL_MPTCP, MPTCP_INFO: its first byte counts the subflows besides the first."""

SOL_PACKET, PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC = 263, 1, 1
"""Of linux/socket.h and linux/if_packet.h: the socket module has no names for them."""

pytestmark = lab_with()


@pytest.fixture
def two():
    with lab() as made:
        yield made


def told(two: Lab, paths: Paths) -> list[tuple[str, str]]:
    """What a check tells, but for the states, which the tests of states look at."""
    return [(e.kind, e.path) for e in two.probe.inside(paths.check) if e.kind != "path_state"]


def dump(two: Lab) -> str:
    return two.probe.run("ip -4 rule; ip -4 route show table all type unicast; ip mptcp endpoint; ip mptcp limits")


def promiscuous(interface: str) -> None:
    """What another program's capture does to an interface (packet(7), PACKET_MR_PROMISC), begun and ended."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as capture:
        asked = struct.pack("=iHH8s", socket.if_nametoindex(interface), PACKET_MR_PROMISC, 0, b"")
        capture.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, asked)


def connected(two: Lab, primary: str) -> Reader:
    def listen() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
        made.bind((SERVER, 0))
        made.listen()
        return made

    listener = two.server.inside(listen)
    source = sockets.Source(f"tmp5-{primary}")
    client = two.probe.inside(lambda: sockets.connect("mptcp", listener.getsockname(), source, 60)).socket
    server = listener.accept()[0]
    two.kept += [client, server, listener]  # without its listener the server would reset the joins
    server.sendall(bytes(1000))  # the first data confirms the connection, after which the peer accepts joins
    client.recv(1000)
    return Reader(client)


def sent(two: Lab, path: str) -> int:
    """IPv4 TCP packets would be best; IPv6 is off in this lab, so all that an interface sent is nearly that."""
    shown = json.loads(two.probe.run(f"ip -j -s link show dev tmp5-{path}"))
    return int(shown[0]["stats64"]["tx"]["packets"])


def alive(sample: ConnectionSample) -> list[str]:
    return [s.local.host for s in sample.subflows if s.alive and s.local]


@pytest.mark.parametrize("primary", ["a", "b"])
def test_the_primary_path_is_chosen_and_the_other_joins_over_its_own_interface(two, primary):
    up(two)
    other = "b" if primary == "a" else "a"
    before = sent(two, other)
    reader = connected(two, primary)
    await_true(lambda: len(alive(reader.read())) == 2, 60, "the join")
    assert alive(reader.read()) == [ADDRESS[primary], ADDRESS[other]]
    assert sent(two, other) - before >= 3  # SYN, ACK and the confirmation of the join left by the other interface


def test_a_first_subflow_that_a_reset_took_leaves_no_nameless_row(two):
    """The kernel keeps the first socket for a later subflow; until then it has no peer and is none."""
    up(two)
    reader = connected(two, "a")
    await_true(lambda: len(alive(reader.read())) == 2, 60, "the join")
    client, server, _ = two.kept
    two.server.run(
        "nft 'add table ip cut; add chain ip cut in { type filter hook input priority 0; }; "
        f"add rule ip cut in ip saddr {ADDRESS['a']} tcp flags ack reject with tcp reset'"
    )

    def reset() -> bool:
        server.sendall(bytes(1000))  # what crosses path a is answered with a reset
        client.recv(1 << 16)
        return ADDRESS["a"] not in alive(reader.read())

    await_true(reset, 60, "the reset of the first subflow")
    assert client.getsockopt(*UNFILTERED, 1) == bytes([1])  # the kernel counts the other as an additional one
    rows = reader.read().subflows
    assert [row.local.host for row in rows if row.alive] == [ADDRESS["b"]]
    assert all(row.id != "0" and row.remote is not None and row.remote.port for row in rows), rows


def test_a_changed_address_moves_rule_route_and_endpoint(two):
    paths = up(two)
    two.probe.run("ip addr del 10.71.1.1/24 dev tmp5-a; ip addr add 10.71.1.7/24 dev tmp5-a")
    events = two.probe.inside(paths.check)
    assert [(e.kind, e.path) for e in events] == [("endpoint_restored", "a")]
    assert "10.71.1.1 became 10.71.1.7" in events[0].detail
    text = dump(two)
    assert "10.71.1.1 " not in text
    assert "from 10.71.1.7 lookup 7100" in text
    assert paths.addresses["a"] == "10.71.1.7"


def test_what_another_program_deletes_is_put_back(two):
    paths = up(two)
    whole = sorted(dump(two).splitlines())
    for damage, missing in {
        "ip mptcp endpoint delete id 102": "endpoint",
        "ip mptcp endpoint flush": "endpoint",
        "ip rule del from 10.71.2.1": "rule",
        "ip rule del oif tmp5-b": "rule",
        "ip route flush table 7101": "route",
        "ip route del default metric 7101": "default route",
    }.items():
        two.probe.run(damage)
        events = two.probe.inside(paths.check)
        assert {e.kind for e in events} == {"endpoint_restored"}, damage
        assert f"missing: {missing}" in [e.detail for e in events], damage
        assert sorted(dump(two).splitlines()) == whole, damage


def test_an_interface_that_went_down_comes_back_whole(two):
    paths = up(two)
    whole = dump(two)
    two.probe.run("ip link set tmp5-b down")
    assert told(two, paths) == [("path_down", "b")]
    two.probe.run("ip link set tmp5-b up")
    await_true(lambda: two.probe.inside(paths.check) is not None and len(paths.addresses) == 2, 60, "the path")
    assert sorted(dump(two).splitlines()) == sorted(whole.splitlines())


def test_removing_leaves_what_others_made(two):
    two.probe.run("ip route add default via 10.71.1.2 metric 50; ip rule add from 10.9.9.9 table 99 priority 99")
    two.probe.run("ip route add 10.8.0.0/16 via 10.71.2.2 table 7100; ip mptcp endpoint add 10.71.1.1 id 7 signal")
    before = dump(two)
    paths = up(two)
    assert dump(two) != before
    two.probe.inside(paths.remove)
    assert dump(two) == before
    two.probe.inside(paths.remove)


def test_the_left_overs_of_an_earlier_life_do_not_disturb(two):
    up(two)
    whole = dump(two)
    paths = up(two)
    assert sorted(dump(two).splitlines()) == sorted(whole.splitlines())
    assert two.probe.inside(paths.check) == []


def test_limits_are_raised_for_more_paths_and_put_back(two):
    two.probe.run("ip mptcp limits set subflow 1 add_addr_accepted 0")
    paths = up(two)
    manager = paths.manager
    assert two.probe.inside(manager.limits) == (2, 0)
    assert two.probe.inside(manager.endpoints)[ENDPOINTS] == Endpoint(ENDPOINTS, "10.71.1.1", "tmp5-a")
    two.probe.inside(paths.remove)
    assert two.probe.inside(manager.limits) == (1, 0)


def test_sysctls_of_the_namespace_are_set_and_the_machines_refused(two):
    wanted = {"net.mptcp.blackhole_timeout": "0", "net.ipv4.tcp_rmem": "4096 131072 33554432"}
    had = two.probe.inside(lambda: sysctls.read(wanted))
    got = two.probe.inside(lambda: sysctls.apply(wanted))
    # What this kernel has not (blackhole_timeout came with Linux 6.12) is refused, and said so.
    assert {name for name, setting in got.items() if setting.error is None} == {
        n for n, v in had.items() if v is not None
    }
    assert {s.name: s.now for s in got.values()} == {n: wanted[n] if v is not None else None for n, v in had.items()}
    assert had["net.ipv4.tcp_rmem"] is not None
    hidden = two.probe.inside(lambda: sysctls.apply({"net.core.rmem_max": 4096}))["net.core.rmem_max"]
    assert hidden.error is not None
    assert hidden.before == hidden.now


def test_an_ordinary_user_with_net_admin_can_configure(two):
    code = "import json; from tandem.mptcp.paths import Paths; from support.two_paths import PATHS; p = Paths(PATHS); p.apply(); "
    code += "print(json.dumps(p.addresses)); p.remove()"
    await_true(lambda: two.probe.inside(Paths(PATHS).apply) and "7101" in dump(two), 60, "carrier")
    assert json.loads(two.probe.python(code, user=65534, capabilities="+net_admin")) == ADDRESS


def test_captures_ours_and_others_start_no_check_and_a_change_of_the_link_does(two, tmp_path, monkeypatch):
    paths = up(two)
    watch, heard = two.probe.inside(lambda: (Watch(paths), subscribe_routes()))
    two.kept += [watch, heard]
    checks = []
    monkeypatch.setattr(paths, "check", lambda: checks.append(time.monotonic()) or [])

    def watched(seconds: float, until: int) -> int:
        """How many checks there were in ``seconds``, or until there were so many."""
        checks.clear()
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and len(checks) < until:
            two.probe.inside(lambda left=left: watch.turn(left))
        return len(checks)

    watched(2 * LONGEST_S, 99)  # what the fresh link still tells
    heard.read()
    capture = Capture("tmp5-a", tmp_path / "a.pcap", 128, Budget(10**6))
    two.probe.inside(capture.start)
    capture.stop(0.0)
    assert not heard.read()[0], "our own captures leave the link's flags alone (tcpdump -p)"
    two.probe.inside(lambda: promiscuous("tmp5-a"))
    assert watched(2 * LONGEST_S, 1) == 0
    assert heard.read()[0], "the kernel told of no promiscuous capture: nothing was tried"
    two.probe.run("ip link set tmp5-a mtu 1400")
    assert watched(60, 1) == 1
