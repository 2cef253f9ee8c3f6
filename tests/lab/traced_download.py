"""A download by this kernel's TCP or Multipath TCP over two emulated links, captured at both ends, with the sender's counters.

Server and client are namespaces of their own. Link 1 is quick, link 2 slow; both may lose packets.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tandem_bench.link import Constant, LinkProcess, LinkSpec
from tandem_bench.topology.namespace import Namespace

ENDS = Path(__file__).resolve().parents[1] / "support/mptcp_ends.py"
SERVER, CLIENT = "10.64.0.1", "10.64.0.2"
SERVER_2, CLIENT_2 = "10.64.1.1", "10.64.1.2"
PORT = "4000"
ANYWHERE = "0.0.0.0"  # noqa: S104  in a namespace of its own; the second address is announced and must answer
TCP, MPTCP = "6", "262"


@dataclass(frozen=True)
class Traced:
    """What one download left. ``kernel``: how much each counter of the server's namespace rose."""

    client: Path
    server: Path
    kernel: dict[str, int]


def counters(space: Namespace) -> dict[str, int]:
    """Of /proc/net/snmp and netstat: pairs of lines, names and values."""
    found = {}
    for file in ("snmp", "netstat"):
        lines = subprocess.run(space.command(["cat", f"/proc/net/{file}"]), check=True, capture_output=True, text=True)
        rows = [line.split() for line in lines.stdout.splitlines()]
        for names, values in zip(rows[::2], rows[1::2], strict=True):
            pairs = zip(names[1:], values[1:], strict=True)
            found |= {names[0].removesuffix(":") + name: int(value) for name, value in pairs}
    return found


@contextmanager
def captured(space: Namespace, path: Path) -> Iterator[None]:
    """tcpdump in there; AssertionError when it dropped a packet."""
    # Without the immediate mode what the kernel has not handed over yet is lost at the end.
    words = ["tcpdump", "--immediate-mode", "-U", "--time-stamp-precision=nano", "-Z", "root", "-n"]
    words += ["-i", "any", "-s", "128", "-B", "20000", "-w", str(path), "tcp", "port", PORT]
    with subprocess.Popen(space.command(words), stderr=subprocess.PIPE, text=True) as dump:
        assert dump.stderr is not None
        for line in dump.stderr:
            if "listening on" in line:
                break
        try:
            yield
        finally:
            dump.send_signal(signal.SIGINT)
            said = dump.stderr.read()
    assert "\n0 packets dropped by kernel" in "\n" + said, said


@contextmanager
def two_links(folder: Path, loss: float) -> Iterator[tuple[Namespace, Namespace, list[LinkProcess]]]:
    with ExitStack() as stack:
        client, server = Namespace("client", {}), Namespace("server", {})
        for space in (client, server):
            space.open()
            stack.callback(space.close)
            space.sysctl({"net.ipv6.conf.default.disable_ipv6": "1", "net.mptcp.enabled": "1"})
        links = []
        offers = (Constant(12e6, 6e6, 30, 150_000, 60_000, loss), Constant(6e6, 3e6, 60, 150_000, 60_000, loss))
        for number, offer in enumerate(offers):
            spec = LinkSpec(
                client.path, f"wwan{number}", server.path, f"ran{number}", offer, folder / f"link{number}.jsonl", "A"
            )
            links.append(stack.enter_context(LinkProcess(spec)))
            for space, device, address in ((client, f"wwan{number}", 2), (server, f"ran{number}", 1)):
                space.run(["ip", "address", "add", f"10.64.{number}.{address}/30", "dev", device])
        yield client, server, links


def download(
    folder: Path,
    *,
    protocol: str,
    seconds: float = 4,
    loss: float = 0.0,
    before: Callable[[Namespace, Namespace], None] | None = None,
    meanwhile: Callable[[Namespace, Namespace, list[LinkProcess]], None] | None = None,
) -> Traced:
    folder.mkdir(exist_ok=True)
    made = Traced(folder / "client.pcap", folder / "server.pcap", {})
    with two_links(folder, loss) as (client, server, links):
        if before is not None:
            before(client, server)
        at_start = counters(server)
        with captured(client, made.client), captured(server, made.server):
            send = server.command([sys.executable, str(ENDS), "send", ANYWHERE, PORT, str(seconds)])
            with subprocess.Popen(send, stdout=subprocess.PIPE, text=True) as sender:
                assert sender.stdout is not None
                assert sender.stdout.readline() == "ready\n"
                words = [sys.executable, str(ENDS), "receive", SERVER, PORT, str(seconds + 20), protocol, "-"]
                with subprocess.Popen(client.command(words), stdout=subprocess.PIPE, text=True) as receiver:
                    assert sender.stdout.readline()  # who called
                    if meanwhile is not None:
                        meanwhile(client, server, links)
                    assert receiver.wait(60) == 0
                assert sender.wait(60) == 0
        made.kernel.update({name: value - at_start.get(name, 0) for name, value in counters(server).items()})
    return made
