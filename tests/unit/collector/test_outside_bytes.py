"""Whatever kernel, firmware and other programs say, a parser takes it or refuses it with its own error: real words with a damaged place,
and any others. Parsers with a file of tests of their own have theirs there (AT, gpsd, web pages, DASH, HTTP, campaigns, spool)."""

import contextlib
import ipaddress
import json
import struct
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.fake_chronyc import line
from support.hostile_json import said
from tandem import mptcp_abi as abi
from tandem.app.clock_watch import chrony_reading, parse_tracking
from tandem.app.health import machine, reports
from tandem.experiment.traceroute import IP_RECVERR, read_error
from tandem.mptcp import netlink, path_manager
from tandem.mptcp_abi import v094

FULLMESH = (
    "Index, Address-ID, Backup, IP-address\nIPv4, next v4-index: 1\n0, 1, 0, 192.168.1.102\nIPv6, next v6-index: 0\n"
)
CONNECTIONS = (
    "  sl  loc_tok  rem_tok  v6 local_address                         remote_address                        st ns"
    " tx_queue rx_queue inode\n"
    "   0: 2D0B85BA 39F8CCC5  0 6601A8C0:E89F                         2DE66882:0050                         01 02"
    " 00000010:00000400 21895\n"
)
PROC = {
    "meminfo": "MemTotal:        3884348 kB\nMemAvailable:    3012312 kB\n",
    "loadavg": "0.52 0.58 0.59 1/597 31254\n",
    "uptime": "350735.47 234388.90\n",
}
BOOTS = json.dumps({"format": reports.FORMAT, "count": 7, "boot": "5f2c"})
TEXTS: list[tuple[Callable[[str], Any], type[Exception], str]] = [
    (machine.throttled, ValueError, "throttled=0x50005"),
    (machine.degrees, ValueError, "47712"),
    (machine.moved_bytes, ValueError, "8 0 64 1 9 0 72 2 0 3 3"),
    (partial(machine.codes, count=2), ValueError, "0x02 0x0a"),
    *((partial(machine.proc_value, field), ValueError, PROC.get(row[0], "1")) for field, row in machine.PROC.items()),
    (reports.parse, ValueError, BOOTS),
    (v094.parse_connections, abi.AbiError, CONNECTIONS),
    (v094.parse_fullmesh, abi.AbiError, FULLMESH),
    (v094.parse_counters, abi.AbiError, "MPCapableSYNRX                  \t3\n"),
]
FAMILY = 28
EVENT = struct.pack("=IHHII", 28, FAMILY, 0, 0, 0) + struct.pack("=BBHHHI", 1, 1, 0, 8, 1, 0xC0FFEE)
ADDRESS = struct.pack("=H", 2) + struct.pack("!H4s8x", 443, bytes([10, 64, 0, 2]))
BYTES: list[tuple[Callable[[bytes], Any], type[Exception], bytes]] = [
    (abi.decode_tcp_info, abi.AbiError, bytes(232)),
    (abi.decode_mptcp_info, abi.AbiError, bytes(80)),
    (abi.decode_tcp_array, abi.AbiError, struct.pack("<4I", 16, 2, 232, 232) + bytes(464)),
    (abi.decode_address_array, abi.AbiError, struct.pack("<4I", 16, 1, 256, 256) + bytes(256)),
    (partial(path_manager.parse, family=FAMILY), netlink.NetlinkError, EVENT),
    (lambda data: list(netlink.messages(data)), netlink.NetlinkError, EVENT),
    (netlink.attributes, netlink.NetlinkError, EVENT[20:]),
    (netlink.number, netlink.NetlinkError, bytes(4)),
    (netlink.flags_of, netlink.NetlinkError, EVENT),
]


def damaged(sample: Any, other: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """The sample with a place left out, put in or changed."""
    cut = st.tuples(st.integers(0, len(sample)), st.integers(0, 8), other)
    return cut.map(lambda place: sample[: place[0]] + place[2] + sample[place[0] + place[1] :])


@pytest.mark.parametrize(("parse", "refusal", "sample"), TEXTS)
@given(data=st.data())
def test_any_text_is_read_or_refused(parse, refusal, sample, data):
    words = st.text(max_size=80) | st.from_regex(r"\A[0-9a-fx .:=\n-]{0,60}\Z")
    said(refusal, parse, data.draw(words | damaged(sample, st.text(max_size=8))))


@pytest.mark.parametrize(("parse", "refusal", "sample"), BYTES)
@given(data=st.data())
def test_any_bytes_are_read_or_refused(parse, refusal, sample, data):
    said(refusal, parse, data.draw(st.binary(max_size=600) | damaged(sample, st.binary(max_size=8))))


@given(st.integers(0, 2**32 - 1))
def test_every_value_of_the_firmwares_bits_is_read_the_same_in_both_forms(bits):
    assert machine.throttled(f"throttled=0x{bits:x}") == machine.throttled(f"{bits:x}")
    assert machine.throttled(f"{bits:x}").now == {machine.NAMES[n] for n in range(4) if bits & 1 << n}


@given(st.text(max_size=200))
def test_the_systems_name_is_printable_or_absent(text):
    for release in (text, f'PRETTY_NAME="{text}"\n'):
        name = machine.pretty_name(release)
        assert name is None or (name.isprintable() and name)


@given(st.text(max_size=300) | damaged(line(), st.text(max_size=8)))
def test_what_chronyc_prints_gives_a_time_with_an_error_or_none(text):
    told = parse_tracking(text)
    said_of_it = None if told is None else chrony_reading(told, 0, 0)
    assert said_of_it is None or (told.stratum > 0 and 0 <= (said_of_it.error_ns or 0) <= 2**127)


@given(st.binary(max_size=64))
def test_what_lies_in_the_error_queue_is_an_icmp_error_of_an_address_or_none(content):
    found = read_error([(0, IP_RECVERR, content)])
    assert found is None or ipaddress.ip_address(found.offender)


@given(st.binary(max_size=40) | damaged(ADDRESS, st.binary(max_size=8)))
def test_an_address_of_the_kernel_has_a_port_or_is_none(raw):
    address = abi.decode_address(raw)
    assert address is None or 0 <= address.port <= 65535


SIZES = st.lists(st.integers(0, 400), min_size=5, max_size=5)


@given(SIZES, st.binary(min_size=400, max_size=400), st.binary(max_size=60))
def test_subflows_of_v094_are_as_many_as_its_sizes_say(sizes, array, meta):
    with contextlib.suppress(abi.AbiError):
        info = v094.decode_info(struct.pack("@5I4P", *sizes, 0, 0, 0, 0), meta, array, array)
        assert len(info.subflows) * (sizes[0] or 1) == sizes[1]
