"""Sysctls of one run are put back, also by the next start after kill -9."""

import json

import pytest

from tandem.app.runs import conditions
from tandem.app.runs.conditions import FILE, Conditions, ConditionsError, ConditionsMade, undo_earlier
from tandem.mptcp import sysctls
from tandem.shaping import Shape, ShapingError

SACK = "net.ipv4.tcp_sack"
RMEM = "net.ipv4.tcp_rmem"


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A tree of sysctls, and no shaping to clean."""
    folder = tmp_path / "sys/net/ipv4"
    folder.mkdir(parents=True)
    (folder / "tcp_sack").write_text("1\n")
    (folder / "tcp_rmem").write_text("4096\t131072\t6291456\n")
    monkeypatch.setattr(sysctls, "ROOT", tmp_path / "sys")
    monkeypatch.setattr(conditions.shaping, "clean", lambda: ["wwan0"])
    return folder


def test_set_told_and_put_back(tree, tmp_path):
    wanted = Conditions({SACK: 0, RMEM: "4096 8192 16384"})
    made = ConditionsMade(wanted, {}, tmp_path, "boot")
    assert (tree / "tcp_sack").read_text() == "0\n"
    assert json.loads((tmp_path / FILE).read_text())["before"][RMEM] == "4096 131072 6291456"
    (tree / "tcp_rmem").write_text("1 2 3\n")  # somebody else, in mid-run
    told = made.state()["sysctl"][RMEM]
    assert (told["before"], told["now"], told["at_end"]) == ("4096 131072 6291456", "4096 8192 16384", "1 2 3")
    assert made.undo() == []
    assert (tree / "tcp_sack").read_text() == "1\n"
    assert (tree / "tcp_rmem").read_text().split() == ["4096", "131072", "6291456"]
    assert not (tmp_path / FILE).exists()
    assert made.undo() == []


def test_of_another_boot_nothing_is_put_back(tree, tmp_path):
    ConditionsMade(Conditions({SACK: 0}), {}, tmp_path, "boot")
    assert undo_earlier(tmp_path, "next boot") == ["wwan0: shaping taken down"]
    assert (tree / "tcp_sack").read_text() == "0\n"
    assert not (tmp_path / FILE).exists()


def test_a_file_that_is_none_of_ours_does_no_harm(tree, tmp_path):
    for text in ("", "[]", "{}", '{"boot": "boot", "before": {"kernel.panic": "1"}}', "\xff"):
        (tmp_path / FILE).write_bytes(text.encode("latin-1"))
        assert undo_earlier(tmp_path, "boot") == ["wwan0: shaping taken down"]
        assert not (tmp_path / FILE).exists()
        assert (tmp_path / f"{FILE}.broken").read_bytes() == text.encode("latin-1")
    assert (tree / "tcp_sack").read_text() == "1\n"
    (tmp_path / FILE).mkdir()  # it cannot be read now: kept
    assert undo_earlier(tmp_path, "boot") == ["wwan0: shaping taken down"]
    assert (tmp_path / FILE).exists()


def test_what_cannot_be_put_back_now_is_kept_for_the_next_start(tree, tmp_path):
    ConditionsMade(Conditions({SACK: 0}), {}, tmp_path, "boot")  # and dies
    (tree / "tcp_sack").unlink()
    (tree / "tcp_sack").mkdir()  # a write fails, for root too
    assert undo_earlier(tmp_path, "boot") == ["wwan0: shaping taken down"]
    (tree / "tcp_sack").rmdir()
    (tree / "tcp_sack").write_text("0\n")
    assert f"sysctl {SACK} = 1" in undo_earlier(tmp_path, "boot")
    assert not (tmp_path / FILE).exists()


def test_a_sysctl_that_is_not_there_refuses_all(tree, tmp_path):
    with pytest.raises(ConditionsError, match=r"net\.ipv4\.tcp_nosuch: this kernel has none"):
        ConditionsMade(Conditions({SACK: 0, "net.ipv4.tcp_nosuch": 1}), {}, tmp_path, "boot")
    assert (tree / "tcp_sack").read_text() == "1\n"


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (ShapingError("path a: it has no interface now", retry=True), ConditionsError("no interface", retry=True)),
        (KeyboardInterrupt("in the midst"), KeyboardInterrupt("in the midst")),
    ],
)
def test_shaping_that_cannot_be_puts_the_sysctls_back(tree, tmp_path, monkeypatch, fault, told):
    def no(*_: object) -> None:
        raise fault

    monkeypatch.setattr(conditions.shaping.Shaping, "apply", no)
    with pytest.raises(type(told), match=str(told)) as refused:
        ConditionsMade(Conditions({SACK: 0}, {"a": Shape(up_bit_per_s=1e6)}), {"a": None}, tmp_path, "boot")
    assert getattr(refused.value, "retry", None) == getattr(told, "retry", None)
    assert (tree / "tcp_sack").read_text() == "1\n"
    assert not (tmp_path / FILE).exists()
