"""Two modems with one address, one subnet, one MAC: parted by a NAT namespace, put back at the end and after a crash."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from functools import partial

import pytest
from download_lab import SIZE
from dual_family_paths import begin_download
from twin_modems import HOST, MODEM, PUBLIC, Twins, twins

from support.experiment_process import server_of
from support.scripted_endpoint import Behaviour, Endpoint
from support.two_paths import REPOSITORY, await_true, lab_with, up
from tandem.mptcp import sockets
from tandem.mptcp.iproute import ip
from tandem.mptcp.nat import Nat
from tandem.mptcp.paths import Path, Paths
from tandem.mptcp.watch import Watch

pytestmark = lab_with("nft")
STICKS = (Path("a", "stick-a", MODEM), Path("b", "stick-b", MODEM))
WIRE = Path("wire", "wire", "10.73.0.2")


@pytest.fixture
def lab():
    with twins() as made:
        yield made


def states(paths: Paths) -> dict[str, str]:
    return {name: status.state for name, status in paths.statuses.items()}


def interfaces(lab: Twins) -> dict[str, list[str]]:
    rows = json.loads(lab.probe.run("ip -j -4 address"))
    return {r["ifname"]: [a["local"] for a in r["addr_info"]] for r in rows if "ifname" in r}


def page(lab: Twins, paths: Paths, name: str) -> str:
    """As a poller asks a modem's page."""
    reach = paths.reach(name)
    assert reach is not None
    assert reach.address == MODEM

    def ask() -> str:
        connection = http.client.HTTPConnection(reach.address)
        source = sockets.Source(reach.interface)
        connection.sock = sockets.connect("tcp", (reach.address, 80), source, 5).socket
        connection.request("GET", "/")
        text = connection.getresponse().read().decode()
        connection.close()
        return text

    return lab.probe.inside(ask)


def download(lab: Twins, paths: Paths, tmp_path, primary: str) -> dict:
    endpoint = lab.server.inside(lambda: Endpoint(Behaviour()))
    line = begin_download(lab, paths, server_of(tmp_path, endpoint), path=primary, bytes=SIZE, whoami=True).end()
    endpoint.close()
    assert line["failure"] is None
    return line


def test_two_sticks_alike_and_a_wire_all_carry(lab, tmp_path):
    """The wire, a path without a modem, is a path like the sticks."""
    paths = up(lab, (*STICKS, WIRE))
    assert states(paths) == dict.fromkeys(("a", "b", "wire"), "up")
    assert paths.addresses["a"] == HOST
    assert paths.addresses["b"] == Nat(1).address
    assert len(lab.namespaces()) == 1
    line = download(lab, paths, tmp_path, "wire")
    assert line["public_addresses"] == PUBLIC
    assert line["result"]["fallback"] is False
    carried = {s["path"]: s["bytes"] for s in line["result"]["subflows"]}
    assert set(carried) == {"a", "b", "wire"}
    assert all(carried.values())
    lab.probe.inside(paths.remove)


def test_either_stick_can_be_primary_and_answers_for_itself(lab, tmp_path):
    paths = up(lab, STICKS)
    for primary in "ab":
        line = download(lab, paths, tmp_path, primary)
        assert line["first"]["path"] == primary
        assert {s["path"] for s in line["result"]["subflows"] if s["bytes"]} == {"a", "b"}
    with lab.pages():
        assert [page(lab, paths, name) for name in "abab"] == ["modem a", "modem b", "modem a", "modem b"]
    lab.probe.inside(paths.remove)


def test_one_subnet_with_two_addresses_needs_no_nat(tmp_path):
    with twins("192.168.8.100", "192.168.8.101") as lab:
        paths = up(lab, STICKS)
        assert paths.addresses == {"a": "192.168.8.100", "b": "192.168.8.101"}
        assert lab.namespaces() == []
        with lab.pages():
            assert [page(lab, paths, name) for name in "ab"] == ["modem a", "modem b"]
        line = download(lab, paths, tmp_path, "a")
        assert line["public_addresses"] == {"a": PUBLIC["a"], "b": PUBLIC["b"]}
        assert {s["path"] for s in line["result"]["subflows"] if s["bytes"]} == {"a", "b"}


def test_the_collision_is_told_and_all_is_put_back(lab):
    lab.probe.run(f"ip route add default via {MODEM} dev stick-b metric 555 proto dhcp")
    before = interfaces(lab), lab.probe.run("ip -4 route; ip rule; ip mptcp endpoint; ip mptcp limits")
    paths = Paths(STICKS)
    lab.probe.inside(paths.apply)
    events = []

    def both_up() -> bool:
        events.extend(lab.probe.inside(paths.check))
        return set(states(paths).values()) == {"up"}

    await_true(both_up, 60, "both paths up")
    assert "stick-b" not in interfaces(lab)
    assert interfaces(lab)["tnat1"] == [Nat(1).address]
    lab.probe.inside(paths.remove)
    assert lab.namespaces() == []
    after = interfaces(lab), lab.probe.run("ip -4 route; ip rule; ip mptcp endpoint; ip mptcp limits")
    assert after[0] == before[0]
    assert sorted(after[1].splitlines()) == sorted(before[1].splitlines())


def test_interfaces_that_stand_in_every_namespace_are_no_modem(lab):
    paths = Paths(STICKS)
    lab.probe.inside(paths.apply)
    (nat,) = paths.nats
    for name in ("tunl0", "gre0"):  # as on Linux 4.14, where they cannot be moved
        lab.probe.inside(
            partial(ip, "-n", lab.probe.inside(lambda: nat.namespace), "tuntap", "add", "dev", name, "mode", "tun")
        )
    lab.probe.inside(paths.check)
    assert states(paths) == {"a": "up", "b": "up"}
    assert list(lab.probe.inside(nat.inside)) == ["stick-b"]
    lab.probe.inside(paths.remove)
    assert {"stick-a", "stick-b"} <= interfaces(lab).keys()
    assert not {"tunl0", "gre0"} & interfaces(lab).keys()


def test_a_collision_that_arises_later_moves_the_newcomer(lab):
    lab.probe.run("ip addr flush dev stick-a")
    lab.probe.run("ip addr add 192.168.9.100/24 dev stick-a")
    first = (Path("a", "stick-a", MODEM), Path("b", "stick-b", MODEM))
    paths = Paths(first)
    lab.probe.inside(paths.apply)
    await_true(lambda: lab.probe.inside(paths.check) is not None and "b" in paths.addresses, 60, "b up")
    assert states(paths) == {"a": "no_route", "b": "up"}  # its gateway is in none of its networks
    lab.probe.run(f"ip addr flush dev stick-a; ip addr add {HOST}/24 dev stick-a")  # DHCP answers
    events = lab.probe.inside(paths.check)
    assert [(e.path, e.state) for e in events if e.kind == "path_state"] == [("a", "colliding"), ("a", "up")]
    assert f"stick-a has {HOST}, as path b" in events[0].detail
    assert paths.addresses == {"a": Nat(0).address, "b": HOST}
    lab.probe.inside(paths.remove)
    assert lab.namespaces() == []


LIFE = """
import sys, time
from tandem.mptcp.paths import Path, Paths
paths = Paths((Path("a", "stick-a", "192.168.8.1"), Path("b", "stick-b", "192.168.8.1")))
paths.apply()
while len(paths.addresses) < 2:
    paths.check()
print(paths.addresses["b"], flush=True)
if sys.argv[1] == "killed":
    time.sleep(600)
paths.remove()
"""


def life(lab: Twins, how: str) -> subprocess.Popen[str]:
    """A process that does with the paths what a collector does."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "collector/src")}
    command = [*lab.probe.enter, sys.executable, "-c", LIFE, how]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def test_after_a_crash_the_next_start_mends(lab):
    """The first collector is killed without a word; the namespace stays with the modem in it, and the next one finds it."""
    for how in ("killed", "killed", "ended"):
        process = life(lab, how)
        assert process.stdout is not None
        assert process.stdout.readline().strip() == Nat(1).address
        if how == "killed":
            process.kill()
            assert process.wait(60) == -signal.SIGKILL
            assert "stick-b" not in interfaces(lab)
        assert process.wait(60) in (0, -signal.SIGKILL)
        process.stdout.close()
    assert interfaces(lab)["stick-b"] == [HOST]
    assert "tnat1" not in interfaces(lab)
    assert lab.probe.run("ip netns list").split() == []
    assert "7101" not in lab.probe.run("ip rule; ip route show table all")


def test_a_stick_pulled_out_of_its_namespace_is_noticed_and_comes_back_under_another_name(lab):
    """As USB does it; found by a resolver, as by its USB path."""
    names = {"b": "stick-b"}
    there = lambda: names["b"] if names["b"] in interfaces(lab) else None  # noqa: E731
    paths = up(lab, (STICKS[0], Path("b", there, MODEM)))
    watch = lab.probe.inside(lambda: Watch(paths))
    try:
        lab.probe.inside(lambda: watch.turn(0))
        lab.unplug("b")
        await_true(
            lambda: lab.probe.inside(lambda: watch.turn(0.5)) is not None and "b" not in paths.addresses, 60, "b gone"
        )
        assert states(paths)["b"] == "down"
        assert paths.interfaces["b"] is None
        assert lab.namespaces() == []
        names["b"] = "eth7"
        lab.plug("b", "192.168.8.101", "eth7")
        await_true(
            lambda: lab.probe.inside(lambda: watch.turn(0.5)) is not None and "b" in paths.addresses, 60, "b back"
        )
        assert (paths.interfaces["b"], paths.addresses["b"]) == ("eth7", "192.168.8.101")
    finally:
        watch.close()
        lab.probe.inside(paths.remove)


def test_without_the_right_to_part_them_one_is_used_and_the_other_named(lab):
    code = (
        "import json; from tandem.mptcp.paths import Path, Paths; import time\n"
        "p = Paths((Path('a', 'stick-a', '192.168.8.1'), Path('b', 'stick-b', '192.168.8.1'))); p.apply()\n"
        "while p.statuses['b'].state == 'down' or p.statuses['a'].state == 'down': p.check()\n"
        "print(json.dumps({n: [s.state, s.detail] for n, s in p.statuses.items()})); p.remove()\n"
    )
    told = json.loads(lab.probe.python(code, user=65534, capabilities="+net_admin"))
    assert told["a"][0] == "up"
    assert told["b"][0] == "colliding"
    assert "CAP_SYS_ADMIN" in told["b"][1]
    assert interfaces(lab)["stick-b"] == [HOST]


def test_a_taken_name_does_not_keep_a_stick_in_its_namespace(lab):
    paths = up(lab, STICKS)
    lab.probe.run("ip tuntap add stick-b mode tun")
    lab.probe.inside(paths.remove)
    assert lab.namespaces() == []
    assert [n for n, a in interfaces(lab).items() if a == [HOST] and n.startswith("eth")]


def test_the_namespace_is_found_by_name_even_when_its_file_is_empty(lab):
    """A leftover of mounts that went away: the name stays, the namespace does not."""
    name = lab.probe.inside(lambda: Nat(1).file)
    name.parent.mkdir(exist_ok=True)
    name.touch()
    paths = up(lab, STICKS)
    assert paths.addresses["b"] == Nat(1).address
    lab.probe.inside(paths.remove)
    assert not name.exists()
    assert socket.if_nameindex()
