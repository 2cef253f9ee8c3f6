"""What tells an identity, and where; and what looks like one and is none."""

import ipaddress
import re

from hypothesis import given
from hypothesis import strategies as st

from tandem_server.publish.identities import SERVER, Check, Finding, Names, Rewriter, addresses, telling

CHECK = Check(Names({"measure.example.org"}, {"kit-anna"}))
REWRITER = Rewriter(
    b"k" * 32, {"kit-anna": "probe-1", "home": "probe-2"}, frozenset({"measure.example.org"}), places=True
)


def kinds(text, key=""):
    return [one.kind for one in CHECK.text(text, key)]


FOUND = {
    "IMEI": ["490154203237518", "modem 490154203237518 lost", "49-015420-323751-8"],
    "IMEI or IMSI": ["262011234567890", "26201123456789"],
    "ICCID": ["8949020000012345678", "8949 0200 0001 2345 670"],
    "telephone number": ["call +49 170 1234567", ("0170 1234", "phone_number"), ("5", "msisdn")],
    "MAC address": ["b8:27:eb:12:34:56", "B8-27-EB-12-34-56"],
    "name of a Wi-Fi": [("Anna's net", "wlan_ssid"), "joined ssid=anna"],
    "IMSI": ["IMSI: 1"],
    "e-mail address": ["anna@example.org"],
    "host name": ["annas-laptop.local", "router.fritz.box said no", ("x", "hostname")],
    "public address": [
        "from 9.9.9.9 to 10.0.0.1",
        "9.9.9.9:443",
        "2a00:1450:4001:82b::200e",
        "fe80::ba27:ebff:fe12:3456",
    ],
    "server's name": ["https://measure.example.org:8444/v1"],
    "probe's own name": ["at Kit-Anna,"],
}
NOT_FOUND = [
    ("4096 131072 33554432", "net.ipv4.tcp_rmem"), "4096 16384 4194304", ("7f0c6f2e-8f7e-4c7e-9a59-0e6a3c9d2b11", "boot"),
    ("12345678-1234-4234-9234-123456789012", "boot"), ("run-08eb2af885ec", "id"), ("2026-11-26T13:22:10+02:00", "at"),
    ("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "sha256"), ("26201", "plmn"), ("net.mptcp.enabled", "name"),
    ("10.64.0.2", "address"), "100.64.3.1:43842", "127.0.0.1", ("1.2.3.4", "firmware_version"), "02:00:00 and 00:00:00:00:00:00",
    ("captures/run-1-a.pcap", "name"), ("", "imsi"), "kit-annabelle",
]  # fmt: skip


def of(told):
    return kinds(told) if isinstance(told, str) else kinds(*told)


def test_what_tells_an_identity_is_found_and_what_looks_like_one_is_not():
    assert [(kind, told) for kind, texts in FOUND.items() for told in texts if kind not in of(told)] == []
    assert [told for told in NOT_FOUND if of(told)] == []


def test_places_in_json():
    *found, key = CHECK.json_line(
        '{"a": "x", "modem": {"imei": "1"}, "n": 490154203237518, "t_ns": 1795699813565774804, "r": 0.12345678901234567, "z":'
    )
    assert found == [Finding("IMEI", 31), Finding("number as long as an IMEI or IMSI", 41)]
    assert key == "z"
    assert list(CHECK.json_line('  "9.9.9.9"', "z")) == [Finding("public address", 4), "z"]


@given(st.text())
def test_any_text_is_read_and_rewritten_once_for_all(text):
    list(CHECK.text(text))
    assert list(CHECK.json_line(text))[-1:] is not None
    once = REWRITER.text(text)
    assert REWRITER.text(once) == once
    assert not {"public address", "server's name", "probe's own name"} & set(kinds(once))


@given(st.ip_addresses())
def test_an_address_has_one_that_nobody_has_in_its_place(address):
    other = REWRITER.address(address)
    assert other == REWRITER.address(address)
    assert other.version == address.version
    assert not telling(other)
    assert (other == address) is not telling(address)


def test_rewritten_everywhere_alike():
    own = {"probe": "home", "text": "kit-anna is home at 9.9.9.9:80", "url": "https://measure.example.org/"}
    told = REWRITER.json({**own, "n": [9, None, True]})
    text = f"probe-1 is home at {REWRITER.address(ipaddress.ip_address('9.9.9.9'))}:80"
    assert told == {"probe": "probe-2", "text": text, "url": f"https://{SERVER}/", "n": [9, None, True]}


def test_without_places_cells_keep_what_they_have_in_common_and_nothing_else():
    hidden = Rewriter(b"k" * 32, {}, frozenset(), places=False)
    cell = {"eci": 6339329, "enb_id": 24763, "pci": 285, "tac": 7, "latitude_deg": 48.1}
    told = hidden.json({**cell, "rsrp_dbm": -90.0, "path": "a"})
    other = hidden.json({"from_eci": 6339330, "to_eci": 2**33 + 1})
    assert told["eci"] >> 8 == told["enb_id"] == other["from_eci"] >> 8 != 24763
    assert (told["eci"] & 255, other["from_eci"] & 255) == (1, 2)
    assert told["pci"] is told["tac"] is told["latitude_deg"] is None
    assert (told["rsrp_dbm"], told["path"]) == (-90.0, "a")
    assert 0 <= other["to_eci"] < 2**36
    assert other["to_eci"] != 2**33 + 1


def test_addresses_are_found_where_they_stand():
    text = "a 9.9.9.9, [2001:db8::1]:80 12:30:45 1.2.3 999.1.1.1 ::ffff:9.9.9.9 8.8.8.8:53 fe80::1%wwan0"
    found = [written for _, written, _ in addresses(text)]
    assert found == ["9.9.9.9", "2001:db8::1", "::ffff:9.9.9.9", "8.8.8.8", "fe80::1"]
    assert all(text[at:].startswith(written) for at, written, _ in addresses(text))
    rewritten = REWRITER.text(text)
    assert not {"9.9.9.9", "8.8.8.8"} & set(re.split("[^0-9.]+", rewritten))
    assert rewritten.endswith("%wwan0")
