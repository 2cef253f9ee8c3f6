"""The address plan, and the files that decide how names are looked up."""

from __future__ import annotations

import re
from ipaddress import IPv4Network
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_bench.link.emulator import Constant
from tandem_bench.topology import files, requirements
from tandem_bench.topology.spec import SERVER_NETWORK, SpecError, TopologySpec, commuting, mobile

OFFER = Constant(1e6, 1e6)


@given(st.integers(1, 61), st.booleans(), st.booleans())
def test_no_two_networks_overlap_and_metrics_differ(count, wifi, wired):
    accesses = commuting({f"p{n}": OFFER for n in range(count)}, OFFER if wifi else None, OFFER if wired else None)
    networks = [SERVER_NETWORK, *(n for access in accesses for n in (access.network, access.uplink))]
    assert not any(left.overlaps(right) for left, right in combinations(networks, 2))
    assert len({access.metric for access in accesses}) == len(accesses)
    for access in accesses:
        assert {access.gateway, access.address.ip} == set(access.network.hosts())
        assert {access.internet_side, access.public_address} == set(access.uplink.hosts())
        assert access.uplink.subnet_of(IPv4Network("198.51.100.0/24"))
    TopologySpec(accesses)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TopologySpec(()), "0 access networks"),
        (lambda: TopologySpec((mobile("a", 0, OFFER),), servers=3), "3 server addresses"),
        (lambda: TopologySpec((mobile("a", 0, OFFER), mobile("a", 1, OFFER))), "the same path: a, a"),
        (lambda: TopologySpec((mobile("a", 0, OFFER), mobile("b", 0, OFFER))), "the same interface: wwan0, wwan0"),
        (lambda: mobile("A b", 0, OFFER), "path 'A b'"),
        (lambda: mobile("a", 63, OFFER), "index 63"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(SpecError, match=re.escape(message)):
        make()


@given(st.lists(st.sampled_from(["hosts: files resolve [!UNAVAIL=return] dns", "passwd: files", "# hosts: x", ""])))
def test_names_are_looked_up_in_files_and_dns_alone(lines):
    result = files.plain_lookup("\n".join(lines))
    found = [line for line in result.splitlines() if line.startswith("hosts:")]
    assert found
    assert set(found) == {"hosts: files dns"}
    assert [line for line in result.splitlines() if line == "passwd: files"] == [
        x for x in lines if x == "passwd: files"
    ]


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("os.geteuid", lambda: 1000, "not root.*sudo"),
        (
            "shutil.which",
            lambda program: None if program == "nft" else "/x",
            "nft not found; mend: apt-get install nftables",
        ),
    ],
)
def test_what_the_machine_lacks_is_one_line_with_its_mend(monkeypatch, attribute, value, message):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(f"tandem_bench.topology.requirements.{attribute}", value)
    with pytest.raises(requirements.MachineError, match=message) as caught:
        requirements.require()
    assert "\n" not in str(caught.value)


def test_a_kernel_without_multipath_tcp(monkeypatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda _: "/x")
    monkeypatch.setattr("pathlib.Path.exists", lambda self: str(self) != "/proc/sys/net/mptcp/enabled")
    with pytest.raises(requirements.MachineError, match="no Multipath TCP"):
        requirements.require()
