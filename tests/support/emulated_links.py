"""Two emulated links (``tandem-link``) between two namespaces, whose rates may be changed, with Multipath TCP set up."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any, TypeVar

from support.standalone_endpoint import lone_endpoint
from support.two_paths import REPOSITORY, SERVER, Space, await_true
from tandem.mptcp import sysctls
from tandem.mptcp.paths import Path as ProbePath
from tandem.mptcp.paths import Paths

_LEAST_QUEUE_BYTES = 30_000
T = TypeVar("T")


def find_link() -> str | None:
    """As the kit finds it."""
    built = REPOSITORY / "build/bin/tandem-link"
    return os.environ.get("TANDEM_LINK") or (str(built) if built.exists() else shutil.which("tandem-link"))


def no_link() -> str | None:
    """Why there can be no such pair; None when there can."""
    return None if find_link() else "no tandem-link; hint: ./kit setup builds it"


@dataclass
class RadioPair:
    """Rates and round-trip times by path, both directions alike."""

    probe: Space
    server: Space
    links: Mapping[str, subprocess.Popen[str]]
    queue_ms: float

    def offer(self, bit_per_s: Mapping[str, float]) -> None:
        """Change the links' rates, and their queues with them."""
        for name, rate in bit_per_s.items():
            self.tell(name, f"both rate {int(rate)}", f"both buffer_bytes {queue_bytes(rate, self.queue_ms)}")

    def tell(self, name: str, *changes: str) -> None:
        """Change what a link offers, as in ``down loss 0.01``."""
        link = self.links[name]
        assert link.stdin is not None
        assert link.stdout is not None
        for change in changes:
            link.stdin.write(f"set {change}\n")
            link.stdin.flush()
            assert link.stdout.readline() == "ok\n", change


def queue_bytes(bit_per_s: float, queue_ms: float) -> int:
    """A queue that takes ``queue_ms`` to empty, at least twenty packets."""
    return max(_LEAST_QUEUE_BYTES, int(bit_per_s / 8 * queue_ms / 1000))


@contextmanager
def radio_pair(
    bit_per_s: Mapping[str, float], rtt_ms: Mapping[str, float], queue_ms: float = 200
) -> Iterator[RadioPair]:
    """Both links up, both paths configured; what they offer may be changed."""
    offers = {}
    for name in "ab":
        rate, queue = str(int(bit_per_s[name])), str(queue_bytes(bit_per_s[name], queue_ms))
        offers[name] = ["--down-bit-per-s", rate, "--up-bit-per-s", rate, "--rtt-ms", str(rtt_ms[name])]
        offers[name] += ["--buffer-down-bytes", queue, "--buffer-up-bytes", queue]
    with _linked(lambda _: offers, queue_ms) as pair:
        yield pair


@contextmanager
def served_pair(
    mbit: Mapping[str, float], rtt_ms: Mapping[str, float], queue_ms: float = 200
) -> Iterator[tuple[RadioPair, dict[str, Any]]]:
    """With the real endpoint in the server's namespace; the experiments' parameter ``server`` too. Rates in Mbit/s."""
    with (
        tempfile.TemporaryDirectory() as folder,
        radio_pair({name: rate * 1e6 for name, rate in mbit.items()}, rtt_ms, queue_ms) as pair,
        lone_endpoint(pair.server, SERVER, File(folder)) as server,
    ):
        yield pair, server


@contextmanager
def offered_pair(options: Mapping[str, list[str]]) -> Iterator[tuple[RadioPair, dict[str, Any]]]:
    """As ``served_pair``, each link with options of ``tandem-link`` of its own."""
    with (
        tempfile.TemporaryDirectory() as folder,
        _linked(lambda _: options, 0) as pair,
        lone_endpoint(pair.server, SERVER, File(folder)) as server,
    ):
        yield pair, server


@contextmanager
def played_pair(
    timelines: Mapping[str, File], lead_s: float, serve: Callable[[Space], AbstractContextManager[T]]
) -> Iterator[tuple[RadioPair, T, int]]:
    """Both links up, both paths configured; what ``serve`` gave, which was entered in the server's namespace before; the CLOCK_MONOTONIC
    instant (ns) from which on the links play their timelines, ``lead_s`` after they were started."""
    with ExitStack() as stack:
        served: list[tuple[T, int]] = []

        def offers(server: Space) -> Mapping[str, list[str]]:
            given = stack.enter_context(serve(server))
            epoch_ns = time.monotonic_ns() + int(lead_s * 1e9)
            served.append((given, epoch_ns))
            return {name: ["--timeline", str(file), "--epoch-ns", str(epoch_ns)] for name, file in timelines.items()}

        with _linked(offers, 0) as pair, stack:
            yield pair, *served[0]


@contextmanager
def _linked(offers: Callable[[Space], Mapping[str, list[str]]], queue_ms: float) -> Iterator[RadioPair]:
    """``offers``: what each link offers, as options of ``tandem-link``; asked once the server's namespace is there."""
    binary = find_link()
    assert binary is not None, no_link()
    with ExitStack() as stack:
        probe, server = Space(), Space()
        stack.callback(server.close)
        stack.callback(probe.close)
        server.run(f"ip addr add {SERVER}/32 dev lo")
        links = {}
        options = offers(server)
        for number, name in enumerate("ab", start=1):
            ends = ["--a-netns", f"/proc/{probe.pid}/ns/net", "--a-name", f"tmp5-{name}"]
            ends += ["--b-netns", f"/proc/{server.pid}/ns/net", "--b-name", f"tmp5-{name}s"]
            made = subprocess.Popen(
                [binary, *ends, *options[name]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            stack.callback(made.communicate)
            stack.callback(made.terminate)
            assert made.stdout is not None
            assert made.stdout.readline().startswith("ready")
            probe.run(f"ip addr add 10.71.{number}.1 peer 10.71.{number}.2 dev tmp5-{name}; ip link set tmp5-{name} up")
            server.run(f"ip addr add 10.71.{number}.2 peer 10.71.{number}.1 dev tmp5-{name}s")
            server.run(f"ip link set tmp5-{name}s up")
            links[name] = made
        paths = Paths([ProbePath(n, f"tmp5-{n}") for n in "ab"])
        probe.inside(paths.apply)
        await_true(lambda: probe.inside(paths.check) is not None and len(paths.addresses) == 2, 60, "both paths up")
        # what one connection learns of a path must not speed up the next
        settings = {"net.mptcp.blackhole_timeout": 0, "net.ipv4.tcp_no_metrics_save": 1}
        for space in (probe, server):
            space.inside(lambda: sysctls.apply(settings))
        yield RadioPair(probe, server, links, queue_ms)
