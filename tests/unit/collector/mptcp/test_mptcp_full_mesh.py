"""Paths on a v0.94 kernel: which interfaces its full mesh uses. A stand-in of its files and flags: ``v094_tree``."""

from unittest.mock import Mock

import pytest

from support.v094_tree import NOMULTIPATH, Tree
from tandem.mptcp import kernel_v094, netlink, sysctls
from tandem.mptcp import paths as paths_module
from tandem.mptcp.iproute import Interface, IpError
from tandem.mptcp.kernel_v094 import FullMesh
from tandem.mptcp.path_manager import Endpoint
from tandem.mptcp.paths import Path, Paths

A, B = Endpoint(101, "10.64.1.2", "wwan0"), Endpoint(102, "10.65.1.2", "wwan1")
ALL = ["lo", "wwan0", "wwan1", "eth0"]
ADDRESSES = {"wwan0": A.address, "wwan1": B.address, "eth0": "192.168.1.7"}


@pytest.fixture
def tree(tmp_path, monkeypatch):
    made = Tree(tmp_path)
    monkeypatch.setattr(sysctls, "ROOT", tmp_path / "proc/sys")
    monkeypatch.setattr(netlink, "read_link_flags", made.flags)
    monkeypatch.setattr(netlink, "change_link_flags", made.change)
    for name in ALL:
        made.interface(name, address=ADDRESSES.get(name))
    return made


@pytest.fixture
def manager(tree):
    return FullMesh(tree.root)


def off(tree):
    return {name for name in ALL if tree.flags(name) & NOMULTIPATH}


def test_what_is_no_path_is_left_out_and_comes_back_at_the_end(tree, manager):
    manager.add(A)
    manager.add(B)
    manager.only_endpoints(ALL)
    assert (manager.endpoints(), off(tree)) == ({101: A, 102: B}, {"eth0"})
    manager.remove(102)
    assert (manager.endpoints(), off(tree)) == ({101: A}, {"eth0", "wwan1"})
    manager.restore()
    assert (manager.endpoints(), off(tree)) == ({}, set())


def test_a_mark_that_a_killed_collector_or_somebody_set_on_a_path_is_missing_and_can_be_mended(tree, manager):
    tree.change("wwan0", NOMULTIPATH, NOMULTIPATH)
    for _ in range(2):
        assert manager.endpoints() == {}
        manager.add(A)
        assert (off(tree), manager.endpoints()) == (set(), {101: A})
        manager.remove(101)


def test_a_mark_that_somebody_else_made_stays_and_an_interface_that_has_gone_is_no_endpoint(tree, manager):
    tree.change("eth0", NOMULTIPATH, NOMULTIPATH)
    manager.add(A)
    manager.only_endpoints(ALL)
    manager.restore()
    assert "eth0" in off(tree)
    manager.add(A)
    tree.interface("wwan0", None)
    assert manager.endpoints() == {}
    with pytest.raises(IpError, match="No such device"):
        manager.remove(101)
    manager.restore()
    with pytest.raises(IpError, match="wwan0 multipath on: No such device"):
        manager.add(A)


def test_the_full_mesh_is_chosen_and_put_back_and_a_kernel_without_it_refused_with_the_mend(tree, manager, monkeypatch):
    tree.write("proc/sys/net/mptcp/mptcp_path_manager", "ndiffports")
    manager.only_endpoints([])
    assert sysctls.read(["net.mptcp.mptcp_path_manager"]) == {"net.mptcp.mptcp_path_manager": "fullmesh"}
    manager.restore()
    assert sysctls.read(["net.mptcp.mptcp_path_manager"]) == {"net.mptcp.mptcp_path_manager": "ndiffports"}
    tree.write("proc/sys/net/mptcp/mptcp_path_manager", "default")
    setting = sysctls.Setting(
        "net.mptcp.mptcp_path_manager", "fullmesh", "default", "default", "No such file or directory"
    )
    monkeypatch.setattr(sysctls, "apply", lambda wanted: dict.fromkeys(wanted, setting))
    with pytest.raises(IpError, match="stays default: No such file or directory; hint: modprobe mptcp_fullmesh"):
        manager.only_endpoints([])


def test_an_endpoint_made_anew_is_a_new_one_to_a_kernel_that_merges_what_happens_at_once(tree, manager):
    manager.add(A)
    had = tree.taken[A.address]
    # Without waiting for the kernel's list nothing would happen.
    tree.change("wwan0", NOMULTIPATH, NOMULTIPATH)
    tree.change("wwan0", 0, NOMULTIPATH)
    paths_module.renew(A, manager)
    assert (tree.taken[A.address], manager.endpoints()) == (had + 1, {101: A})


def test_a_path_that_the_kernel_does_not_take_up_is_refused_and_so_is_a_kernel_without_fullmesh(
    tree, manager, monkeypatch
):
    monkeypatch.setattr(kernel_v094, "_KNOWN_S", 0.2)
    with pytest.raises(IpError, match=r"10\.99\.1\.2: fullmesh does not take up it within 0\.2 s"):
        manager.add(Endpoint(103, "10.99.1.2", "wwan1"))
    assert manager.endpoints() == {}
    (tree.root / "proc/thread-self/net/mptcp_fullmesh").unlink()
    with pytest.raises(IpError, match="hint: modprobe mptcp_fullmesh"):
        manager.add(A)


def test_a_kernel_that_does_not_know_the_mark_is_found_out(manager, monkeypatch):
    monkeypatch.setattr(netlink, "change_link_flags", lambda *_: None)
    manager.add(A)
    with pytest.raises(IpError, match="wwan0 multipath off: the kernel did not take it"):
        manager.remove(101)


def machine(monkeypatch, interfaces):
    """One with these interfaces, whose ``ip`` does as it is told; what it was told."""
    calls = []
    monkeypatch.setattr(paths_module, "interfaces", interfaces)
    monkeypatch.setattr(paths_module, "ip", lambda *words: calls.append(words) or "")
    monkeypatch.setattr(paths_module, "ip_json", lambda *_: [])
    monkeypatch.setattr(paths_module.Nat, "remove", lambda _: None)
    return calls


def test_the_paths_of_a_probe_are_the_interfaces_that_it_uses(tree, manager, monkeypatch):
    def here(**addresses):
        return {
            name: Interface(name, True, (addresses[name],) if name in addresses else (), point_to_point=True)
            for name in ALL
        }

    whole = {"lo": "127.0.0.1", "wwan0": A.address, "wwan1": B.address, "eth0": "192.168.1.7"}
    now = [here(**whole)]
    calls = machine(monkeypatch, lambda: now[0])
    paths = Paths([Path("a", "wwan0"), Path("b", "wwan1")], manager)
    paths.apply()
    assert (paths.addresses, off(tree)) == ({"a": A.address, "b": B.address}, {"eth0"})
    now[0] = here(**{k: v for k, v in whole.items() if k != "wwan1"})
    assert [e.state for e in paths.check() if e.kind == "path_state"] == ["no_address"]
    assert off(tree) == {"eth0", "wwan1"}
    now[0] = here(**whole)
    paths.check()
    assert (paths.addresses["b"], off(tree)) == (B.address, {"eth0"})
    assert paths.renew("a")
    paths.remove()
    assert (off(tree), manager.endpoints()) == (set(), {})
    assert {"route", "rule"} <= {word for words in calls for word in words}, "tables and rules are the same"
    assert not any("mptcp" in words for words in calls)


def test_what_was_made_before_the_refusal_is_undone(monkeypatch):
    there = {f"wwan{n}": Interface(f"wwan{n}", True, (f"10.6{n}.0.2",), point_to_point=True) for n in (0, 1)}
    machine(monkeypatch, lambda: there)
    made: dict[int, Endpoint] = {}

    def add(endpoint: Endpoint) -> None:
        if made:
            raise IpError("ip mptcp endpoint add: too many")
        made[endpoint.id] = endpoint

    manager = Mock(add=add, remove=made.pop, endpoints=lambda: dict(made))
    paths = Paths([Path("a", "wwan0"), Path("b", "wwan1")], manager)
    with pytest.raises(IpError, match="too many"):
        paths.apply()
    assert (made, paths.addresses) == ({}, {})
    assert manager.restore.called
