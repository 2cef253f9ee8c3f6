"""The table of AS, the error queue's words, and what cannot be compared."""

import ipaddress
import re
import struct

from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import said
from tandem.experiment.traceroute import (
    IP_RECVERR,
    Hop,
    IcmpError,
    Reply,
    TableError,
    Trace,
    compare,
    read_error,
    read_table,
)


def test_the_longest_prefix_counts():
    table = read_table(b"# mine\n8.0.0.0/8,1\n8.8.0.0/16 AS2\n8.8.8.8/32\t3\n2600::/16|4\n0.0.0.0/0,9\n")
    systems = {"8.1.1.1": 1, "8.8.1.1": 2, "8.8.8.8": 3, "2600:1::1": 4, "2001::1": None, "9.9.9.9": 9}
    assert {address: table.of(address) for address in systems} == systems
    assert table.prefixes == 5


@given(
    st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 32)), min_size=1, max_size=8),
    st.integers(0, 2**32 - 1),
)
def test_as_by_looking_through_all_prefixes(prefixes, address):
    networks = [ipaddress.ip_network((n, length), strict=False) for n, length in prefixes]
    table = read_table("".join(f"{n},{i + 1}\n" for i, n in enumerate(networks)).encode())
    ip = ipaddress.ip_address(address)
    holding = [(n.prefixlen, i + 1) for i, n in enumerate(networks) if ip in n]
    assert table.of(str(ip)) == (max(holding)[1] if holding else None)


def test_a_bad_line_of_the_table_is_named():
    rows = ["8.8.8.8/33,1", "8.8.8.0/24", "8.8.8.0/24,x", "8.8.8.0/24,0", "8.8.8.0/24,4294967296", ",1"]
    refusals = {line: said(TableError, read_table, f"1.0.0.0/8,1\n{line}\n".encode()) for line in rows}
    assert [line for line, refusal in refusals.items() if not re.match("line 2: .*hint", refusal)] == []


@given(st.binary(max_size=80))
def test_any_bytes_are_a_table_or_a_named_line(raw):
    text = said(TableError, read_table, raw)
    assert not text or text.startswith("line ")


def queued(origin, icmp, code, address="8.8.8.8"):
    offender = struct.pack("=H2x4s8x", 2, ipaddress.ip_address(address).packed)
    return [(0, IP_RECVERR, struct.pack("=IBBBBII", 113, origin, icmp, code, 0, 0, 0) + offender)]


def test_what_icmp_errors_are_called():
    assert read_error(queued(2, 11, 0)) == IcmpError("8.8.8.8", "expired")
    assert read_error(queued(2, 3, 3)).kind == "port"
    assert read_error(queued(2, 3, 13)).kind == "unreachable 13"
    assert read_error(queued(1, 11, 0)) is None
    assert read_error([(0, IP_RECVERR, b"too short")]) is None


def trace(*addresses):
    return Trace([Hop(i, [None if a is None else Reply(a, 1.0, "expired")]) for i, a in enumerate(addresses, start=1)])


SERVERS = {"a": "1.1.1.1", "b": "1.1.1.1"}


def test_private_routers_and_silent_ones_are_not_compared():
    one, other = trace("10.0.0.1", None, "8.8.8.1"), trace("10.0.0.1", "8.8.4.1", "8.8.8.1")
    row = compare([("a", one), ("b", other)], SERVERS, None)[0]
    assert (row["routers"], row["shared"], row["disjoint_share"]) == ([1, 2], ["8.8.8.1"], 0.5)
    nothing = compare([("a", trace(None)), ("b", trace("10.1.1.1"))], SERVERS, read_table(b""))[0]
    assert (nothing["disjoint_share"], nothing["systems_disjoint_share"]) == (None, None)
