"""A NAT on the way never ends a connection by a word of its own.

A segment that the NAT's connection tracking does not accept is not translated, so it stays addressed to the NAT itself, whose kernel
knows no such connection and would answer it with a reset: the sender's side ends, and nothing of it is seen at the receiver's.
"""

from __future__ import annotations

import re
import subprocess
import sys

from twin_modems import MODEM, twins

from support.two_paths import SERVER, lab_with, up
from tandem.mptcp.nat import Nat
from tandem.mptcp.paths import Path
from tandem_bench.link import Constant
from tandem_bench.topology.spec import TopologySpec, commuting
from tandem_bench.topology.topology import Topology

pytestmark = lab_with("nft")

ODD = """
import socket, struct, sys, time
def total(data):
    whole = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while whole >> 16:
        whole = (whole & 0xffff) + (whole >> 16)
    return 0xffff ^ whole
with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener, socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0x0300) as seen:
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((sys.argv[1], 7000))
    listener.listen()
    print("ready", flush=True)
    connection, (peer, port) = listener.accept()
    connection.sendall(b"one")
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
    seen.settimeout(60)
    while True:
        packet, place = seen.recvfrom(65536)
        head = packet[(packet[0] & 15) * 4 :][:20]
        # One that the peer sent us, once it has our three bytes: what we send next can be told from it.
        if packet[9] == 6 and head[:4] == struct.pack("!HH", port, 7000) and not head[13] & 2:
            sequence, acknowledged = struct.unpack("!II", head[4:12])
            break
    # Half a window space ahead of everything: no tracking of connections takes it for one of this one.
    odd = struct.pack("!HHIIBBHHH", 7000, port, (acknowledged + (1 << 30)) & 0xffffffff, sequence, 5 << 4, 0x10, 8192, 0, 0)
    ends = socket.inet_aton(sys.argv[1]) + socket.inet_aton(peer) + struct.pack("!HH", 6, len(odd))
    raw.sendto(odd[:16] + struct.pack("!H", total(ends + odd)) + odd[18:], (peer, 0))
    print("sent", flush=True)
    try:
        answer = connection.recv(3)
        connection.sendall(b"two")
        print("alive" if answer == b"yes" else f"ended: {answer!r}", flush=True)
    except OSError as error:
        print(f"ended: {error}", flush=True)
"""

CLIENT = """
import socket, sys
with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
    client.settimeout(60)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, sys.argv[2].encode())
    client.connect((sys.argv[1], 7000))
    assert client.recv(3) == b"one"
    sys.stdin.readline()
    client.sendall(b"yes")
    print(client.recv(3).decode(), flush=True)
"""


def outlives(server: list[str], client: list[str], address: str, interface: str) -> str:
    """What the server says of its connection after it has sent one segment far out of its window."""
    sending = [*server, sys.executable, "-c", ODD, address]
    asking = [*client, sys.executable, "-c", CLIENT, address, interface]
    with subprocess.Popen(sending, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdout is not None
        assert sender.stdout.readline() == "ready\n"
        with subprocess.Popen(asking, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asker:
            assert sender.stdout.readline() == "sent\n"
            answer, _ = asker.communicate("go on\n", timeout=120)
        return sender.stdout.readline() + answer


def test_an_operators_on_the_bench():
    offer = Constant(20e6, 5e6)
    with Topology(TopologySpec(commuting({"a": offer, "b": offer}))) as topology:
        assert (
            outlives(topology.command("server", []), topology.command("probe", []), SERVER, "wwan0") == "alive\ntwo\n"
        )
        public = str(topology.spec.accesses[0].public_address)
        called = topology.run("server", [sys.executable, "-c", CALL, public])
        assert called == "no answer\n"
        assert dropped(topology.run("op-a", ["nft", "list", "table", "ip", "nat"])) > 0


CALL = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], 7001), timeout=0.5)
except TimeoutError:
    print("no answer")
"""
"""A segment for which there is no connection at all."""


def dropped(ruleset: str) -> int:
    """How many segments the NAT kept to itself."""
    return sum(int(n) for n in re.findall(r"counter packets (\d+) bytes \d+ drop", ruleset))


def test_the_probes_own_before_a_modem_whose_address_another_has():
    sticks = (Path("a", "stick-a", MODEM), Path("b", "stick-b", MODEM))
    with twins() as lab:
        paths = up(lab, sticks)
        assert outlives(lab.modems["b"].enter, lab.probe.enter, MODEM, Nat(1).interface) == "alive\ntwo\n"
        lab.probe.inside(paths.remove)
