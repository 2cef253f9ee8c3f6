"""Sysctls: names are kept to the network's, refusals are recorded."""

import pytest

from tandem.mptcp import sysctls


@pytest.fixture(autouse=True)
def tree(tmp_path, monkeypatch):
    (tmp_path / "net/ipv4").mkdir(parents=True)
    (tmp_path / "net/ipv4/tcp_rmem").write_text("4096\t131072\t6291456\n")
    monkeypatch.setattr(sysctls, "ROOT", tmp_path)


def test_values_are_set_and_told_before_and_after():
    setting = sysctls.apply({"net.ipv4.tcp_rmem": "4096 131072 33554432"})["net.ipv4.tcp_rmem"]
    assert (setting.before, setting.now, setting.error) == ("4096 131072 6291456", "4096 131072 33554432", None)
    back = sysctls.restore({"x": setting})
    assert back["net.ipv4.tcp_rmem"].now == "4096 131072 6291456"


def test_what_the_kernel_does_not_have_is_recorded_not_fatal():
    setting = sysctls.apply({"net.mptcp.blackhole_timeout": 0})["net.mptcp.blackhole_timeout"]
    assert (setting.before, setting.now, setting.error) == (None, None, "No such file or directory")
    assert sysctls.restore({"x": setting}) == {}
    assert sysctls.read(["net.mptcp.blackhole_timeout"]) == {"net.mptcp.blackhole_timeout": None}


@pytest.mark.parametrize(
    "name", ["kernel.panic", "net", "net.ipv4/../../kernel.panic", "net..x", "net.ipv4.tcp_rmem\n"]
)
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match="no network sysctl"):
        sysctls.apply({name: 1})
