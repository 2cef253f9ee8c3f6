"""Paths that the kernel refuses in the middle leave nothing behind."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from tandem.mptcp import paths as module
from tandem.mptcp import routing
from tandem.mptcp.iproute import Interface, IpError
from tandem.mptcp.path_manager import Endpoint, Limits
from tandem.mptcp.paths import Path, Paths


class Manager:
    """A path manager that has room for one endpoint."""

    name = "double"

    def __init__(self) -> None:
        self.made: dict[int, Endpoint] = {}
        self.set = Limits(1, 0)

    def endpoints(self) -> dict[int, Endpoint]:
        return dict(self.made)

    def add(self, endpoint: Endpoint) -> None:
        if self.made:
            raise IpError("ip mptcp endpoint add: too many")
        self.made[endpoint.id] = endpoint

    def remove(self, number: int) -> None:
        del self.made[number]

    def limits(self) -> Limits:
        return self.set

    def set_limits(self, limits: Limits) -> None:
        self.set = limits

    def only_endpoints(self, interfaces: Collection[str]) -> None:
        self.kept = set(interfaces)

    def restore(self) -> None:
        self.restored = True


def test_what_was_made_before_the_refusal_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {f"wwan{n}": Interface(f"wwan{n}", True, (f"10.6{n}.0.2",), point_to_point=True) for n in (0, 1)}
    monkeypatch.setattr(module, "interfaces", lambda: there)
    monkeypatch.setattr(routing, "ip", lambda *_: "")
    monkeypatch.setattr(routing, "ip_json", lambda *_: [])
    monkeypatch.setattr(module.Nat, "remove", lambda _: None)
    manager = Manager()
    paths = Paths([Path("a", "wwan0"), Path("b", "wwan1")], manager)
    with pytest.raises(IpError, match="too many"):
        paths.apply()
    assert manager.made == {}
    assert manager.set == Limits(1, 0)
    assert paths.addresses == {}
