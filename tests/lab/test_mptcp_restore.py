"""A subflow that a reset took away comes back by itself, with a transfer in flight; the time it took is told. Over two paths of IPv4, whose
connections are the kernel's, and over one with IPv4 and one with IPv6 alone, whose are ours."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest
from dual_family_paths import A4, B6, PROBE6, SERVER6, begin_download, mixed, why_not6
from watched_paths import Transfer, Watched, cut_once

from support.experiment_process import server_of
from support.scripted_endpoint import Behaviour, Endpoint
from support.two_paths import ADDRESS, PATHS, SERVER, Lab, await_true, lab, lab_with
from tandem.mptcp import sockets, sysctls
from tandem.mptcp.paths import Paths
from tandem.mptcp.watch import Watch

pytestmark = lab_with("nft")
ALIKE, MIXED = "two of IPv4", "IPv4 and IPv6"
HOST = {ALIKE: ADDRESS, MIXED: {"a": ADDRESS["a"], "b": PROBE6}}
OPTIONS = {ALIKE: sockets.Options(), MIXED: sockets.Options(both_families=True)}
alone = pytest.mark.parametrize("rig", [ALIKE], indirect=True)
both_families = pytest.mark.parametrize("rig", [MIXED], indirect=True)


@dataclass
class Rig:
    """``host``: the probe's address by path."""

    kind: str
    two: Lab
    watched: Watched
    host: dict[str, str]
    transfers: ExitStack

    def begin(self, primary: str = "a", server: str = SERVER) -> Transfer:
        made = Transfer(self.two, primary, server, OPTIONS[self.kind])
        self.transfers.callback(made.close)
        await_true(lambda: set(made.carrying()) == set(self.host.values()), 60, "both subflows")
        return made

    def cut(self, path: str, what: str = "meta l4proto tcp") -> None:
        """Whatever comes over ``path`` to the server is answered by a reset, from now on."""
        family = "ip6" if ":" in self.host[path] else "ip"
        self.two.server.run(
            f"nft 'add table inet cut; add chain inet cut in {{ type filter hook input priority 0; }}; "
            f"add rule inet cut in {family} saddr {self.host[path]} {what} reject with tcp reset'"
        )

    def mend(self) -> None:
        self.two.server.run("nft delete table inet cut")

    def manager(self) -> str | None:
        return manager(self.two)

    def returned(self, count: int = 1) -> None:
        await_true(lambda: len(self.watched.of("subflow_restored")) == count, 60, f"return {count}")


def manager(two: Lab) -> str | None:
    return two.probe.inside(lambda: sysctls.read(["net.mptcp.pm_type"]))["net.mptcp.pm_type"]


@pytest.fixture(params=[ALIKE, MIXED])
def rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    kind = request.param
    if kind == MIXED and (lack := why_not6()) is not None:
        pytest.skip(lack)
    with (lab if kind == ALIKE else mixed)() as two:
        watched = Watched(two, PATHS if kind == ALIKE else (A4, B6))
        try:
            with ExitStack() as transfers:
                yield Rig(kind, two, watched, HOST[kind], transfers)
        finally:
            watched.close()


def goes_on(running: Transfer) -> None:
    before = running.received
    await_true(lambda: running.received > before, 60, "bytes over the other")


@pytest.mark.parametrize(
    ("rig", "primary", "lost"),
    [(ALIKE, "a", "a"), (ALIKE, "a", "b"), (MIXED, "a", "a"), (MIXED, "a", "b")],
    indirect=["rig"],
)
def test_a_reset_subflow_returns_and_the_transfer_goes_on(rig, primary, lost):
    """The first subflow of the connection, and one that joined."""
    running = rig.begin(primary)
    rig.cut(lost)
    await_true(lambda: rig.watched.watch.losses(running.token), 60, "the loss")
    await_true(lambda: rig.host[lost] not in running.carrying(), 60, "the subflow's end")
    goes_on(running)
    rig.mend()
    rig.returned()
    await_true(lambda: running.carrying().get(rig.host[lost]), 60, "bytes over the subflow that returned")
    (told,) = rig.watched.of("subflow_restored")
    (loss,) = rig.watched.watch.losses(running.token)
    assert told.path == loss["path"] == lost
    assert told.took_ms == loss["back_after_ms"] > 0
    assert rig.kind == MIXED or "connection reset by peer" in told.detail
    assert running.ended is None


def test_one_reset_is_mended_at_once(rig):
    """Of both families twice: the address that the server told is not used up. What is lost within a second again waits longer."""
    running, times = rig.begin(), 1 if rig.kind == ALIKE else 2
    for count in range(1, times + 1):
        cut_once(rig.two, rig.host["b"])
        rig.returned(count)
        rig.mend()
        await_true(lambda: running.carrying().get(rig.host["b"]), 60, "bytes over it")
    assert [loss["path"] for loss in rig.watched.watch.losses(running.token)] == ["b"] * times
    assert "attempts" not in rig.watched.of("subflow_restored")[0].detail
    assert running.ended is None


@pytest.mark.parametrize("lost", ["a", "b"])
def test_an_address_that_goes_takes_its_subflow_and_brings_it_back(rig, lost):
    running, size = rig.begin(), 64 if ":" in rig.host[lost] else 24
    rig.two.probe.run(f"ip address del {rig.host[lost]}/{size} dev tmp5-{lost}")
    await_true(lambda: rig.host[lost] not in running.carrying(), 60, "its end")
    goes_on(running)
    rig.two.probe.run(f"ip address add {rig.host[lost]}/{size} dev tmp5-{lost} {'nodad' if size == 64 else ''}")
    await_true(lambda: running.carrying().get(rig.host[lost]), 60, "bytes over it again")
    assert [loss["path"] for loss in rig.watched.watch.losses(running.token)] == [lost]
    assert rig.watched.of("path_down")
    assert running.ended is None


@alone
def test_another_connections_subflow_is_not_disturbed(rig):
    """Making an endpoint anew closes every subflow from it: who lost one waits while another one lives there."""
    losing, other = rig.begin(), rig.begin()
    rig.cut("b", f"tcp sport {losing.reader.read().subflows[1].local.port}")
    await_true(lambda: rig.watched.watch.losses(losing.token), 60, "the loss")
    carried = other.carrying()[ADDRESS["b"]]
    await_true(lambda: other.carrying()[ADDRESS["b"]] > carried, 60, "bytes over the other's")
    assert rig.watched.of("subflow_restored") == []
    assert rig.watched.watch.losses(other.token) == []
    other.close()
    rig.returned()


@both_families
def test_another_connections_subflow_lives_on(rig):
    """Unlike an endpoint made anew, an order is for one connection: nobody waits and nobody is disturbed."""
    running, other = rig.begin(), rig.begin()
    port = next(s.local.port for s in running.reader.read().subflows if s.local.host == PROBE6)
    rig.cut("b", f"tcp sport {port}")
    rig.returned()
    assert rig.watched.watch.losses(other.token) == []
    assert len(other.reader.read().subflows) == 2


@alone
def test_an_ordinary_end_is_no_loss(rig):
    """The kernel tells in order: once a later loss is told, the end was."""
    running = rig.begin()
    token = running.token
    running.close()
    later = rig.begin()
    cut_once(rig.two, rig.host["b"])
    rig.returned()
    assert rig.watched.watch.losses(token) == []
    assert [loss["path"] for loss in rig.watched.watch.losses(later.token)] == ["b"]


@both_families
def test_new_connections_are_ours_only_while_families_differ(rig):
    two = rig.two
    assert rig.manager() == "1"
    two.probe.run(f"ip address add {ADDRESS['b']}/24 dev tmp5-b; ip address del {PROBE6}/64 dev tmp5-b")
    await_true(lambda: rig.manager() == "0", 60, "the kernel's again")
    two.probe.run(f"ip address del {ADDRESS['b']}/24 dev tmp5-b; ip address add {PROBE6}/64 dev tmp5-b nodad")
    await_true(lambda: rig.manager() == "1", 60, "ours again")


@pytest.mark.skipif(why_not6() is not None, reason=str(why_not6()))
def test_the_kernel_has_them_again_at_the_end_and_after_a_crash():
    with mixed() as two:
        Watched(two, (A4, B6)).close()
        assert manager(two) == "0"
        two.probe.run("echo 1 >/proc/sys/net/mptcp/pm_type")  # as a collector that was killed leaves it
        paths = Paths((A4,))
        two.probe.inside(paths.apply)
        watch = two.probe.inside(lambda: Watch(paths))
        assert manager(two) == "0"
        two.probe.inside(watch.close)


@both_families
def test_a_socket_of_ipv4_alone_gets_what_its_family_has(rig):
    """The kernel refuses the subflow by IPv6; its IPv4 one comes back all the same."""
    alone = Transfer(rig.two, "a", SERVER)
    rig.transfers.callback(alone.close)
    await_true(lambda: alone.received, 60, "bytes")
    token = alone.token
    await_true(lambda: rig.watched.watch.losses(token) == [], 60, "its beginning heard")
    assert set(alone.carrying()) == {ADDRESS["a"]}
    assert alone.ended is None


@both_families
@pytest.mark.parametrize("lost", ["a", "b"])
def test_begun_by_ipv6_it_takes_the_servers_word_of_ipv4(rig, lost):
    """The other way round; without that word it has one subflow."""
    alone = Transfer(rig.two, "b", SERVER6, OPTIONS[MIXED])
    await_true(lambda: alone.received, 60, "bytes")
    assert set(alone.carrying()) == {PROBE6}
    alone.close()
    rig.two.server.run(f"ip mptcp endpoint add {SERVER} id 10 signal")
    one = rig.begin("b", SERVER6)
    cut_once(rig.two, rig.host[lost])
    rig.returned()
    await_true(lambda: len(one.carrying()) == 2, 60, "both subflows again")
    assert [loss["path"] for loss in rig.watched.watch.losses(one.token)] == [lost]


@both_families
def test_a_download_over_both_families_loses_a_subflow_and_tells_when_it_was_back(rig, tmp_path):
    """The experiment and the collector's watch together."""
    endpoint = rig.two.server.inside(lambda: Endpoint(Behaviour(), host="::"))
    run = begin_download(rig.two, rig.watched.paths, server_of(tmp_path, endpoint), seconds=600)
    try:
        run.until(lambda sample: sample["connection"]["subflows"] == 2)
        cut_once(rig.two, PROBE6)
        rig.returned()
        run.until(lambda _: len({s["subflow"] for at in run.samples for s in at["subflows"]}) == 3)
        run.process.terminate()
        line = run.end()
    finally:
        run.process.kill()
        endpoint.close()
    assert line["failure"] == {"reason": "stopped", "retry": False}
    (loss,) = rig.watched.watch.losses(int(line["connection"], 16))
    assert (loss["path"], loss["back_after_ms"] > 0) == ("b", True)
    # b's first, and the one that came back
    assert sorted(s["path"] for s in line["result"]["subflows"]) == ["a", "b", "b"]
