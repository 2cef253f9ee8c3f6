"""Sysctls: names are kept to the network's, refusals are recorded."""

import json

import pytest

from support.hostile_json import said
from tandem.mptcp import sysctls, watch
from tandem.mptcp.paths import Path, Paths
from tandem.mptcp.watch import NamespaceOrders
from tandem.mptcp_abi import described


@pytest.fixture(autouse=True)
def tree(tmp_path, monkeypatch):
    (tmp_path / "net/ipv4").mkdir(parents=True)
    (tmp_path / "net/ipv4/tcp_rmem").write_text("4096\t131072\t6291456\n")
    monkeypatch.setattr(sysctls, "ROOT", tmp_path)


def test_other_names_are_refused_and_what_the_kernel_does_not_have_is_recorded():
    rows = ["kernel.panic", "net", "net.ipv4/../../kernel.panic", "net..x", "net.ipv4.tcp_rmem\n"]
    assert [name for name in rows if "no network sysctl" not in said(ValueError, sysctls.apply, {name: 1})] == []
    setting = sysctls.apply({"net.mptcp.blackhole_timeout": 0})["net.mptcp.blackhole_timeout"]
    assert (setting.before, setting.now, setting.error) == (None, None, "No such file or directory")
    assert sysctls.restore({"x": setting}) == {}
    assert sysctls.read(["net.mptcp.blackhole_timeout"]) == {"net.mptcp.blackhole_timeout": None}


PATHS = (Path("a", "eth1"), Path("b", "eth2"))


class Kernel:
    """Sysctls of a kernel; ``refuses``: none of them may be written."""

    def __init__(self, values: dict[str, str], *, refuses: bool = False) -> None:
        self.values, self.refuses = values, refuses

    def read(self, names):
        return {name: self.values.get(name) for name in names}

    def apply(self, wanted):
        made = {}
        for name, value in wanted.items():
            before = self.values[name]
            if not self.refuses:
                self.values[name] = value
            error = "Permission denied" if self.refuses else None
            made[name] = sysctls.Setting(name, value, before, self.values[name], error)
        return made


@pytest.fixture
def chosen(monkeypatch):
    monkeypatch.setattr(watch, "PmCommands", lambda: type("Silent", (), {"close": lambda _: None})())

    def choose(kernel: Kernel, addresses: dict[str, str]) -> NamespaceOrders:
        monkeypatch.setattr(sysctls, "read", kernel.read)
        monkeypatch.setattr(sysctls, "apply", kernel.apply)
        monkeypatch.setattr(Paths, "addresses", addresses)
        made = NamespaceOrders(Paths(PATHS))
        made.choose()
        return made

    return choose


MIXED, ONE = {"a": "192.0.2.1", "b": "2001:db8::1"}, {"a": "192.0.2.1", "b": "192.0.2.9"}


@pytest.mark.parametrize(
    ("name", "kernels", "mine"), [("net.mptcp.path_manager", "kernel", "userspace"), ("net.mptcp.pm_type", "0", "1")]
)
def test_ours_while_families_differ_and_the_kernels_again_at_the_end(chosen, name, kernels, mine):
    kernel = Kernel({name: kernels})
    made = chosen(kernel, MIXED)
    assert (made.ours, kernel.values) == (True, {name: mine})
    made.close()
    assert kernel.values == {name: kernels}
    left = Kernel({name: mine})
    assert chosen(left, ONE).ours is False
    assert left.values == {name: kernels}


def test_a_refusal_is_said_once(chosen, caplog):
    made = chosen(Kernel({"net.mptcp.pm_type": "0"}, refuses=True), MIXED)
    made.choose()
    assert (made.ours, made.why_not) == (False, "net.mptcp.pm_type: Permission denied")
    assert caplog.text.count("will not come back") == 1


def test_a_kernel_before_5_19_is_said_only_where_it_matters(chosen, caplog):
    assert chosen(Kernel({}), ONE).why_not is None
    assert "no path manager but its own" in (chosen(Kernel({}), MIXED).why_not or "")
    assert caplog.text.count("will not come back") == 1


def test_a_controller_that_was_noted_is_bpf_with_its_object_and_a_note_that_is_none_claims_nothing(tmp_path):
    note = tmp_path / "loaded.json"
    assert described("lia", note) == {"name": "lia", "kind": "kernel", "object_sha256": None}
    note.write_text(json.dumps({"controllers": ["lia"], "object_sha256": "ab"}))
    assert described("lia", note) == {"name": "lia", "kind": "bpf", "object_sha256": "ab"}
    assert described("cubic", note) == {"name": "cubic", "kind": "kernel", "object_sha256": None}
    assert described(None, note) is None
    for text in ("", "{", "[]", "{}", '{"controllers": 1, "object_sha256": "ab"}', '{"controllers": ["lia"]}'):
        note.write_text(text)
        assert described("lia", note) == {"name": "lia", "kind": "kernel", "object_sha256": None}
