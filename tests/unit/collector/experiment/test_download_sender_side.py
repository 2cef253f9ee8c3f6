"""Which of the sender's subflows is which of ours."""

import ipaddress
import json

from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import any_json
from tandem.experiment.control import MOST_FURTHER, further_addresses
from tandem.experiment.download import SenderSide
from tandem.mptcp.statistics import PathName, SubflowTotal

FIRST, SECOND = "203.0.113.10", "203.0.113.11"


def total(number, path, remote, port):
    return SubflowTotal(str(number), PathName(path, None), local_port=port, remote=remote)


def row(path, local, port, retrans, rtt=None, acked=0):
    told = {"path": path, "local": local, "remote": {"address": "198.51.100.2", "port": port}}
    return {**told, "bytes_retrans": retrans, "rtt_ms_median": rtt, "bytes_acked": acked}


def answer(*rows):
    return {"connections": [{"subflows": list(rows)}]}


FOUR = [
    total(1, "a", FIRST, 1001),
    total(2, "b", FIRST, 1002),
    total(3, "a", SECOND, 1003),
    total(4, "b", SECOND, 1004),
]


def test_subflows_are_told_by_path_or_our_port_and_what_cannot_be_is_absent():
    there = SenderSide(answer(row("b", "10.0.0.5", 9, 7, 30.0), row("a", "10.0.0.5", 8, 5, 20.0)), FOUR[:2])
    assert [(there.bytes_retrans(t), there.rtt_ms(t)) for t in FOUR[:2]] == [(5, 20.0), (7, 30.0)]
    assert there.all_bytes_retrans == 12
    rows = [row(t.name.path, "10.0.0.5", t.local_port, n) for n, t in enumerate(FOUR)]
    assert [SenderSide(answer(*rows), FOUR).bytes_retrans(t) for t in FOUR] == [0, 1, 2, 3]
    ours = [total(1, "a", FIRST, 1001), total(2, "a", FIRST, 1002)]
    there = SenderSide(answer(row("a", "10.0.0.5", 1, 1, 20.0, 10), row("a", "10.0.0.5", 2, 2, 50.0, 99)), ours)
    assert [there.bytes_retrans(t) for t in ours] == [None, None]
    assert [there.rtt_ms(t) for t in ours] == [50.0, 50.0]
    assert there.all_bytes_retrans == 3
    nothing = answer(row("a", None, None, None))
    for silent in (None, {}, {"connections": None}, {"connections": [{"subflows": [7]}]}, nothing):
        there = SenderSide(silent, FOUR)
        assert [there.bytes_retrans(t) for t in FOUR] == [None] * 4
        assert there.all_bytes_retrans is None


def test_behind_a_nat_that_changes_ports_they_are_told_by_the_servers_own_address():
    """The server's addresses may be private ones: which of them is the first is known by the first subflow."""
    rows = [
        row("a", "10.0.0.5", 1, 10),
        row("b", "10.0.0.6", 2, 11),
        row("b", "10.0.0.5", 3, 12),
        row("a", "10.0.0.6", 4, 13),
    ]
    assert [SenderSide(answer(*rows), FOUR).bytes_retrans(t) for t in FOUR] == [10, 12, 13, 11]


ODD = any_json() | st.just(10**400)


@given(st.lists(st.fixed_dictionaries({"path": st.sampled_from(["a", "b"]), "bytes_retrans": ODD, "rtt_ms_median": ODD,
                                       "bytes_acked": ODD, "local": ODD, "remote": ODD}), max_size=5))  # fmt: skip
def test_any_rows_give_plain_figures(rows):
    there = SenderSide(answer(*rows), FOUR)
    json.dumps(there.all_bytes_retrans)
    for t in FOUR:
        assert there.bytes_retrans(t) is None or there.bytes_retrans(t) >= 0
        assert there.rtt_ms(t) is None or isinstance(there.rtt_ms(t), float)


ANYTHING = st.one_of(st.none(), st.integers(), st.text(max_size=60), st.ip_addresses().map(str), st.lists(st.none()))


def test_addresses_of_both_families_each_once_and_none_where_no_server_is():
    told = ["203.0.113.11", "2001:DB8:0::11", "203.0.113.11", "::ffff:203.0.113.12"]
    assert further_addresses({"further_addresses": told}) == ["203.0.113.11", "2001:db8::11", "203.0.113.12"]
    assert further_addresses({}) == []
    told = ["127.0.0.1", "::1", "0.0.0.0", "::", "224.0.0.5", "ff02::1"]  # noqa: S104  told, not bound to
    told += ["169.254.1.1", "fe80::1%eth0", "255.255.255.255"]
    assert further_addresses({"further_addresses": [*told, "::ffff:127.0.0.1", "10.0.0.1x", "", 7, None, {}]}) == []


@given(st.one_of(ANYTHING, st.lists(ANYTHING, max_size=200), st.dictionaries(st.text(), ANYTHING)))
def test_anything_is_read_to_few_addresses_that_a_host_can_have(told):
    found = further_addresses({"further_addresses": told})
    assert len(found) <= MOST_FURTHER
    assert len(set(found)) == len(found)
    for text in found:
        address = ipaddress.ip_address(text)
        assert str(address) == text
        odd = (address.is_loopback, address.is_multicast, address.is_unspecified, address.is_link_local)
        assert not any(odd)
