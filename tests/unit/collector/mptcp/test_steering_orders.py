"""Orders of backup: whether one arrived, what is given again, and that a crash leaves none. The kernel is a double here."""

from pathlib import Path

import pytest

from tandem.mptcp import path_manager
from tandem.mptcp.backup import Backup, Confirmation
from tandem.mptcp.iproute import IpError
from tandem.mptcp.kernel_v094 import FullMesh
from tandem.mptcp.path_manager import Endpoint, PathManager

MS = 1_000_000


class Manager(PathManager):
    """Notes orders; a guard writes its own into ``file``."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file, self.given, self.refuse = file, [], False

    def set_backup(self, number: int, backup: bool) -> None:
        if self.refuse:
            raise IpError("ip mptcp endpoint change: no such endpoint")
        self.given.append((number, backup))

    def undo_backup(self, number: int) -> list[str]:
        return ["sh", "-c", f"echo {number} >>{self.file}"]


@pytest.fixture
def manager(tmp_path: Path) -> Manager:
    return Manager(tmp_path / "undone")


def test_an_order_that_was_lost_is_given_by_its_opposite_and_itself_and_the_end_takes_back_what_is_left(
    manager: Manager,
) -> None:
    orders = Backup(manager)
    orders.order(101, backup=True)
    orders.order(101, backup=True, again=True)
    assert not manager.file.exists()
    orders.order(101, backup=False)
    assert manager.given == [(101, True), (101, False), (101, True), (101, False)]
    assert manager.file.read_text() == "101\n"
    orders.order(102, backup=True)
    orders.close()
    assert manager.file.read_text() == "101\n102\n"


def test_an_order_that_is_refused_leaves_no_guard(manager: Manager) -> None:
    orders = Backup(manager)
    manager.refuse = True
    with pytest.raises(IpError):
        orders.order(101, backup=True)
    assert manager.file.read_text() == "101\n"
    orders.close()
    assert manager.file.read_text() == "101\n"


def test_the_v094_kernel_refuses_and_an_order_to_an_endpoint_that_is_gone_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(IpError, match=r"v0\.94"):
        FullMesh().set_backup(101, True)
    assert FullMesh().undo_backup(101) == []
    kernel, asked = PathManager(), []

    def ip(*words: str) -> str:
        asked.append(words)
        if "change" in words:
            raise IpError("no such endpoint")
        return ""

    monkeypatch.setattr(path_manager, "ip", ip)
    for backup in (True, False):
        with pytest.raises(IpError):
            kernel.set_backup(101, backup)
        kernel.add(Endpoint(101, "10.64.0.2", None))
    assert [words[-1] for words in asked if "add" in words] == ["subflow", "subflow"]


# --- confirmation: samples every 100 ms from the order on -------------------------------------------------------------------------


def answers(backup: bool, mine: list[int], others: list[int], given: Confirmation | None = None) -> list[bool]:
    """What was said, in order; ``mine``, ``others``: bytes in each 100 ms."""
    one = given or Confirmation("a", 0, backup=backup)
    found, had, whole = [], 0, 0
    for number, (m, o) in enumerate(zip(mine, others, strict=True), 1):
        had, whole = had + m, whole + m + o
        answer = one.received(number * 100 * MS, had, whole)
        if answer is not None:
            found.append(answer)
            if not answer:
                break
    return found


def test_what_a_path_receives_says_whether_its_order_arrived() -> None:
    assert answers(True, [9, 9, 9] + [0] * 9, [9] * 12) == [True], "it fell silent"
    assert answers(True, [9] * 40, [9] * 40) == [False]
    assert answers(True, [9, 9] + [0] * 18 + [9] * 40, [9] * 60)[-1] is False
    assert answers(True, [0] * 100, [0] * 100) == answers(False, [0] * 100, [0] * 100) == [], "nothing moves"
    assert answers(True, [9] * 100, [0] * 100) == [], "it carries because the others fail"
    assert answers(False, [0] * 9 + [9] * 9, [9] * 18)[:1] == [True]
    assert answers(False, [0] * 60, [9] * 60) == [False]


def test_an_order_that_was_given_again_and_another_connection_begin_the_count_anew() -> None:
    one = Confirmation("a", 0, backup=True)
    assert answers(True, [9] * 40, [9] * 40, one) == [False]
    one.toggled(3_000 * MS)
    told = [one.received(ms * MS, 300, whole) for ms, whole in ((3_400, 600), (3_600, 700), (4_200, 900))]
    assert (told, one.toggles) == ([None, None, True], 1)
    other = Confirmation("a", 0, backup=True)
    assert [other.received(*seen) for seen in ((600 * MS, 5000, 9000), (1_200 * MS, 10, 20))] == [None, None]
    assert other.received(1_800 * MS, 10, 900) is True
