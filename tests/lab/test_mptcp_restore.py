"""A subflow that a reset took away comes back by itself, with a transfer in flight; the time it took is told."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from two_paths import ADDRESS, Lab, await_true, lab, why_not
from watched_paths import Transfer, Watched, cut_once

LACK = why_not() or (None if shutil.which("nft") else "nft is not installed")
pytestmark = [pytest.mark.lab, pytest.mark.skipif(LACK is not None, reason=str(LACK))]


@pytest.fixture
def watched() -> Iterator[Watched]:
    with lab() as two:
        made = Watched(two)
        try:
            yield made
        finally:
            made.close()


@pytest.fixture
def transfer(watched: Watched) -> Iterator[Any]:
    begun: list[Transfer] = []

    def begin(primary: str) -> Transfer:
        begun.append(Transfer(watched.two, primary))
        await_true(lambda: set(begun[-1].carrying()) == set(ADDRESS.values()), 60, "both subflows")
        return begun[-1]

    yield begin
    for one in begun:
        one.close()


def resets(two: Lab, path: str) -> None:
    """Whatever comes over ``path`` to the server is answered by a reset, from now on."""
    rule = f"ip saddr {ADDRESS[path]} meta l4proto tcp reject with tcp reset"
    two.server.run(
        f"nft 'add table ip cut; add chain ip cut in {{ type filter hook input priority 0; }}; add rule ip cut in {rule}'"
    )


@pytest.mark.parametrize(("primary", "lost"), [("a", "a"), ("a", "b"), ("b", "b")])
def test_a_reset_subflow_returns_and_the_transfer_goes_on(watched, transfer, primary, lost):
    """The first subflow of the connection, and one that joined."""
    running = transfer(primary)
    resets(watched.two, lost)
    await_true(lambda: watched.watch.losses(running.token), 60, "the loss")
    await_true(lambda: ADDRESS[lost] not in running.carrying(), 60, "the subflow's end")
    before = running.received
    await_true(lambda: running.received > before, 60, "bytes over the other")
    watched.two.server.run("nft delete table ip cut")
    await_true(lambda: watched.of("subflow_restored"), 60, "the return")
    await_true(lambda: running.carrying().get(ADDRESS[lost]), 60, "bytes over the subflow that returned")
    (told,) = watched.of("subflow_restored")
    (loss,) = watched.watch.losses(running.token)
    assert told.path == loss["path"] == lost
    assert told.took_ms == loss["back_after_ms"] > 0
    assert "connection reset by peer" in told.detail
    assert running.ended is None


def test_a_single_reset_is_mended_at_once(watched, transfer):
    running = transfer("a")
    cut_once(watched.two, ADDRESS["b"])
    await_true(lambda: watched.of("subflow_restored"), 60, "the return")
    (told,) = watched.of("subflow_restored")
    assert told.path == "b"
    assert "attempts" not in told.detail
    assert running.ended is None


def test_another_connections_subflow_is_not_disturbed(watched, transfer):
    """Making an endpoint anew closes every subflow from it: who lost one waits while another one lives there."""
    losing, other = transfer("a"), transfer("a")
    port = losing.reader.read().subflows[1].local.port
    rule = f"ip saddr {ADDRESS['b']} tcp sport {port} reject with tcp reset"
    watched.two.server.run(
        f"nft 'add table ip cut; add chain ip cut in {{ type filter hook input priority 0; }}; add rule ip cut in {rule}'"
    )
    await_true(lambda: watched.watch.losses(losing.token), 60, "the loss")
    carried = other.carrying()[ADDRESS["b"]]
    await_true(lambda: other.carrying()[ADDRESS["b"]] > carried, 60, "bytes over the other's")
    assert watched.of("subflow_restored") == []
    assert watched.watch.losses(other.token) == []
    other.close()
    await_true(lambda: watched.of("subflow_restored"), 60, "the return once nobody else is there")


def test_an_address_that_came_back_tells_how_long_the_subflow_was_away(watched, transfer):
    running = transfer("a")
    two = watched.two
    two.probe.run(f"ip addr del {ADDRESS['b']}/24 dev tmp5-b")
    await_true(lambda: "b" not in watched.paths.addresses, 60, "the path's end")
    two.probe.run(f"ip addr add {ADDRESS['b']}/24 dev tmp5-b")
    await_true(lambda: watched.of("subflow_restored"), 60, "the return")
    (loss,) = watched.watch.losses(running.token)
    assert loss["path"] == "b"
    assert [e.kind for e in watched.events if e.path == "b"][:2] == ["path_state", "path_down"]


def test_an_ordinary_end_is_no_loss(watched, transfer):
    running = transfer("a")
    token = running.token
    known = watched.watch._losses._connections
    await_true(lambda: token in known, 60, "the kernel's word of the connection")
    running.close()
    await_true(lambda: not known[token].alive, 60, "the kernel's word of the end")
    assert watched.watch.losses(token) == []
    assert watched.of("subflow_restored") == []
