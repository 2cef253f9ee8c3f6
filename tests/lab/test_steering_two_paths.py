"""Orders of backup on two real paths: the server leaves the path, comes back to it, an order that was lost is seen and given again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from watched_paths import Transfer, Watched

from support.two_paths import ADDRESS, Lab, await_true, lab, lab_with
from tandem.mptcp.backup import MOST_TOGGLES, Backup, Confirmation

pytestmark = lab_with()


class Steered:
    """A transfer over both paths, and orders for them."""

    def __init__(self, two: Lab) -> None:
        self.two, self.watched = two, Watched(two)
        self.transfer = Transfer(two, "a")
        self.orders = Backup(self.watched.paths.manager)
        await_true(lambda: len(self.growing()) == 2, 60, "both paths carry")

    def order(self, path: str, *, backup: bool, again: bool = False) -> None:
        number = self.watched.paths.number(path)
        self.two.probe.inside(lambda: self.orders.order(number, backup=backup, again=again))

    def counts(self) -> dict[str, int]:
        carrying = self.transfer.carrying()
        return {path: carrying.get(address, 0) for path, address in ADDRESS.items()}

    def growing(self) -> set[str]:
        """Paths that received more than two hundredths of what came since before; waits for 500 kB of it all."""
        before = self.counts()
        await_true(lambda: sum(self.counts().values()) - sum(before.values()) > 500_000, 60, "anything arrives")
        now = self.counts()
        got = {path: now[path] - before[path] for path in now}
        return {path for path, count in got.items() if count > 0.02 * sum(got.values())}

    def confirmed(self, one: Confirmation, toggle: Callable[[], None] | None = None) -> bool:
        """What becomes of an order that was just given; ``toggle``: gives it again."""
        answer: list[bool] = []

        def decided() -> bool:
            counts = self.counts()
            said = one.received(time.monotonic_ns(), counts[one.path], sum(counts.values()))
            if said is False and toggle is not None and one.toggles < MOST_TOGGLES:
                toggle()
                one.toggled(time.monotonic_ns())
                return False
            if said is not None:
                answer.append(said)
            return said is not None

        await_true(decided, 60, "the order is confirmed or lost")
        return answer[0]

    def flags(self) -> str:
        return self.two.probe.run("ip mptcp endpoint show")

    def close(self) -> None:
        self.transfer.close()
        self.two.probe.inside(self.orders.close)
        self.watched.close()


@pytest.fixture
def steered() -> Iterator[Steered]:
    with lab() as two:
        made = Steered(two)
        try:
            yield made
        finally:
            made.close()


@pytest.mark.parametrize("path", ["a", "b"])
def test_a_backup_path_receives_nothing_and_a_restored_one_does(steered: Steered, path: str) -> None:
    steered.order(path, backup=True)
    assert steered.confirmed(Confirmation(path, time.monotonic_ns(), backup=True))
    assert steered.growing() == {"a", "b"} - {path}
    steered.order(path, backup=False)
    assert steered.confirmed(Confirmation(path, time.monotonic_ns(), backup=False))
    await_true(lambda: steered.growing() == {"a", "b"}, 60, "both carry again")
    assert "backup" not in steered.flags()


def test_an_order_lost_on_the_uplink_is_seen_and_given_again(steered: Steered) -> None:
    # What the probe sends over b for the moment of the order: the order with it. Acknowledgements stop too, data goes on to come.
    chain = "add chain inet lost out { type filter hook output priority 0; }"
    cut = f"nft 'add table inet lost; {chain}; add rule inet lost out oifname tmp5-b drop'"
    steered.two.probe.run(cut)
    steered.order("b", backup=True)
    steered.two.probe.run("nft delete table inet lost")
    assert "backup" in steered.flags()
    assert "b" in steered.growing()
    one = Confirmation("b", time.monotonic_ns(), backup=True)
    assert steered.confirmed(one, lambda: steered.order("b", backup=True, again=True))
    assert one.toggles >= 1
    assert steered.growing() == {"a"}
    steered.order("b", backup=False)
    await_true(lambda: steered.growing() == {"a", "b"}, 60, "both carry again")


def test_an_endpoint_that_is_made_anew_keeps_the_order_until_it_is_taken_back(steered: Steered) -> None:
    steered.order("b", backup=True)
    steered.two.probe.run("ip addr del 10.71.2.1/24 dev tmp5-b")
    await_true(lambda: "10.71.2.1" not in steered.flags(), 60, "the endpoint is gone")
    steered.two.probe.run("ip addr add 10.71.2.1/24 dev tmp5-b")
    await_true(lambda: "10.71.2.1" in steered.flags(), 60, "the endpoint is back")
    assert steered.flags().count("backup") == 1
    await_true(lambda: ADDRESS["b"] in steered.transfer.carrying(), 60, "the subflow is back")
    assert steered.growing() == {"a"}
    steered.order("b", backup=False)
    await_true(lambda: steered.growing() == {"a", "b"}, 60, "both carry again")
