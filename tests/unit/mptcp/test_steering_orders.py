"""Orders of backup: whether one arrived, what is given again, and that a crash leaves none. The kernel is a double here."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tandem.mptcp import path_manager
from tandem.mptcp.backup import Backup, Confirmation
from tandem.mptcp.full_mesh import FullMesh
from tandem.mptcp.iproute import IpError
from tandem.mptcp.path_manager import Endpoint, UpstreamKernel

MS = 1_000_000


class Manager(UpstreamKernel):
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


def test_an_order_that_was_lost_is_given_by_its_opposite_and_itself(manager: Manager) -> None:
    orders = Backup(manager)
    orders.order(101, backup=True)
    orders.order(101, backup=True, again=True)
    assert not manager.file.exists()
    orders.order(101, backup=False)
    assert manager.given == [(101, True), (101, False), (101, True), (101, False)]
    assert manager.file.read_text() == "101\n"


def test_an_order_that_is_refused_leaves_no_guard(manager: Manager) -> None:
    orders = Backup(manager)
    manager.refuse = True
    with pytest.raises(IpError):
        orders.order(101, backup=True)
    assert manager.file.read_text() == "101\n"
    orders.close()
    assert manager.file.read_text() == "101\n"


def test_the_end_takes_back_what_is_left(manager: Manager) -> None:
    orders = Backup(manager)
    orders.order(101, backup=True)
    orders.close()
    assert manager.file.read_text() == "101\n"


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_steering_orders import Manager
from tandem.mptcp.backup import Backup
Backup(Manager(Path(sys.argv[1]))).order(102, backup=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_collector_leaves_nothing_backup(tmp_path: Path) -> None:
    pipe = tmp_path / "undone"
    os.mkfifo(pipe)
    program = subprocess.Popen([sys.executable, "-c", KILLED, str(pipe), str(Path(__file__).parent)])
    assert pipe.read_text() == "102\n"  # waits for who writes
    assert program.wait(60) == -signal.SIGKILL


def test_the_v094_kernel_refuses_and_leaves_nothing_to_undo() -> None:
    with pytest.raises(IpError, match=r"v0\.94"):
        FullMesh().set_backup(101, True)
    assert FullMesh().undo_backup(101) == []


def test_an_endpoint_made_anew_keeps_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(path_manager, "ip", lambda *words: asked.append(words) or "")
    kernel, endpoint = UpstreamKernel(), Endpoint(101, "10.64.0.2", "wwan0")
    for order in (None, True, False):
        if order is not None:
            kernel.set_backup(101, order)
        kernel.add(endpoint)
    assert [words[-1] for words in asked] == ["subflow", "backup", "backup", "nobackup", "subflow"]


def test_an_order_to_an_endpoint_that_is_gone_is_not_kept_for_when_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, asked = UpstreamKernel(), []

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


def test_a_path_that_falls_silent_confirms_backup() -> None:
    assert answers(True, [9, 9, 9] + [0] * 9, [9] * 12) == [True]


def test_a_path_that_still_receives_shows_that_the_order_was_lost() -> None:
    assert answers(True, [9] * 40, [9] * 40) == [False]
    assert answers(True, [9, 9] + [0] * 18 + [9] * 40, [9] * 60)[-1] is False


def test_an_order_that_was_given_again_is_judged_anew() -> None:
    one = Confirmation("a", 0, backup=True)
    assert answers(True, [9] * 40, [9] * 40, one) == [False]
    one.toggled(3_000 * MS)
    assert one.received(3_400 * MS, 300, 600) is None
    assert one.received(3_600 * MS, 300, 700) is None
    assert one.received(4_200 * MS, 300, 900) is True
    assert one.toggles == 1


def test_while_nothing_moves_nothing_is_known() -> None:
    assert answers(True, [0] * 100, [0] * 100) == []
    assert answers(False, [0] * 100, [0] * 100) == []


def test_a_backup_path_that_carries_because_the_others_fail_was_not_lost() -> None:
    assert answers(True, [9] * 100, [0] * 100) == []


def test_a_path_that_carries_again_confirms_restore() -> None:
    assert answers(False, [0] * 9 + [9] * 9, [9] * 18)[:1] == [True]
    assert answers(False, [0] * 60, [9] * 60) == [False]


def test_another_connection_under_way_begins_the_count_anew() -> None:
    one = Confirmation("a", 0, backup=True)
    assert one.received(600 * MS, 5000, 9000) is None
    assert one.received(1_200 * MS, 10, 20) is None
    assert one.received(1_800 * MS, 10, 900) is True
