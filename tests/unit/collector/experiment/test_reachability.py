"""The tables, on rows whose figures can be told by hand; the journal that keeps the rows."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import said
from tandem.experiment.parameters import ParameterError
from tandem.experiment.reachability import read_resolvers, summary
from tandem.experiment.reachability.files import (
    COLUMNS,
    JOURNAL,
    Journal,
    ListError,
    read_deny,
    read_names,
    write_table,
)
from tandem.mptcp.names import find, nmcli, resolv_conf, resolvectl


def answer(*addresses, status="ok", ms=10.0):
    return {"status": status, "addresses": list(addresses), "ms": ms, "tries": 1, "truncated": False}


def pinged(*rtts, sent=2, resets=0, unreachable=0):
    counts = {"sent": sent, "answered": len(rtts), "resets": resets, "unreachable": unreachable}
    return {**counts, "not_sent": 0 if sent else 2, "rtt_ms": list(rtts)}


def row(rank, w, lte, pings, refused=None):
    resolved = {"w": {"A": w}, "l": {"A": lte}}
    return {"rank": rank, "name": f"n{rank}.org", "resolved": resolved, "refused": refused or {}, "pings": pings}


ROWS = [
    # the same address from both; LTE takes twice as long
    row(1, answer("1.1.1.1"), answer("1.1.1.1"), {"1.1.1.1": {"w": pinged(10, 20), "l": pinged(30, 30)}}),
    # LTE's address answers nobody; W's answers LTE only by a reset
    row(
        2,
        answer("2.2.2.2"),
        answer("3.3.3.3"),
        {"2.2.2.2": {"w": pinged(40), "l": pinged(resets=2)}, "3.3.3.3": {"w": pinged(), "l": pinged(unreachable=2)}},
    ),
    # LTE resolves nothing; its own family was missing for the ping
    row(3, answer("4.4.4.4"), answer(status="nxdomain"), {"4.4.4.4": {"w": pinged(50, 50), "l": pinged(sent=0)}}),
    row(4, answer("10.0.0.1"), answer(status="timeout", ms=None), {}, {"10.0.0.1": "private"}),
    {"rank": 5, "name": "n5.org", "denied": True},
]


def way(table, name):
    return next(w for w in table["ways"] if w["way"] == name)


def test_the_four_ways_resolution_overlap_and_comparison():
    table = summary(ROWS, ["w", "l"])
    assert [w["way"] for w in table["ways"]] == ["w/w", "w/l", "l/w", "l/l"]
    ww, wl, lw, ll = (way(table, n) for n in ("w/w", "w/l", "l/w", "l/l"))
    assert (ww["addresses"], ww["unresponsive"], ww["address_rtt_ms"]["n"]) == (3, 0, 3)
    assert ww["address_rtt_ms"]["mean"] == pytest.approx((15 + 40 + 50) / 3, abs=0.001)
    assert (wl["addresses"], wl["unresponsive_share"]) == (2, 0.5)
    assert (lw["addresses"], lw["unresponsive"], lw["only_resets"], lw["not_sent"]) == (2, 0, 1, 1)
    assert (ll["unresponsive_share"], ll["pings_unanswered_share"]) == (0.5, 0.5)
    table = summary(ROWS, ["w", "l"])
    assert table["names"] == {"done": 5, "denied": 1}
    w, lte = table["resolution"]["w"], table["resolution"]["l"]
    assert (w["names"], w["resolved"], lte["resolved"]) == (4, 4, 2)
    assert lte["status_a"] == {"ok": 2, "nxdomain": 1, "timeout": 1}
    assert w["addresses_not_pinged"] == {"private": 1}
    overlap = table["overlap"][0]
    assert (overlap["addresses_both"], overlap["addresses_either"], overlap["share"]) == (1, 5, 0.2)
    assert (overlap["names_both"], overlap["names_same_share"], overlap["names_only_first"]) == (2, 0.5, 2)
    compared = next(c for c in table["comparison"] if c["ways"] == ["w/w", "l/l"])
    assert (compared["names"], compared["second_slower_share"], compared["difference_ms"]["mean"]) == (1, 1.0, 15.0)
    table = summary([], ["w", "l"])
    assert way(table, "w/l")["unresponsive_share"] is None
    assert table["overlap"][0]["share"] is None
    json.dumps(table, allow_nan=False)


def test_a_journal_goes_on_behind_its_last_whole_line(tmp_path):
    journal = Journal(tmp_path, {"list": "x"})
    journal.add(ROWS[:2])
    journal.close()
    with (tmp_path / JOURNAL).open("ab") as stream:
        stream.write(b'{"name": "cut o')
    again = Journal(tmp_path, {"list": "x"})
    assert [r["name"] for r in again.rows] == ["n1.org", "n2.org"]
    again.add(ROWS[2:3])
    again.close()
    last = Journal(tmp_path, {"list": "x"})
    assert last.rows == ROWS[:3]
    last.close()


def test_another_survey_in_the_folder_is_refused(tmp_path):
    Journal(tmp_path, {"list": "x", "seed": 1}).close()
    with pytest.raises(ParameterError, match="other seed; hint: another folder"):
        Journal(tmp_path, {"list": "x", "seed": 2})
    (tmp_path / JOURNAL).write_text("{}\n")
    with pytest.raises(ParameterError, match="line 1"):
        Journal(tmp_path, {})


def test_a_row_for_each_way_of_each_address(tmp_path):
    lines = write_table(tmp_path, ROWS).read_text().splitlines()
    assert lines[0] == ",".join(COLUMNS)
    assert "1,n1.org,4,w,l,1.1.1.1,2,2,0,0,0,30.0,30,30" in lines
    assert len(lines) == 1 + 4 + 4 + 2
    assert not list(tmp_path.glob("*.tmp"))


def test_resolvers_as_the_programs_print_them(tmp_path):
    assert resolvectl("Link 3 (wwan0): 10.0.0.1 fe80::1%3 2001:db8::1\n") == ("10.0.0.1", "2001:db8::1")
    assert nmcli("10.0.0.1 | 10.0.0.2\n2001\\:db8\\:\\:1\n") == ("10.0.0.1", "10.0.0.2", "2001:db8::1")
    assert resolv_conf("# x\nnameserver 9.9.9.9\nsearch a.b\nnameserver\n") == ("9.9.9.9",)
    file = tmp_path / "resolv.conf"
    file.write_text("nameserver 127.0.0.53\nnameserver 9.9.9.9\n")
    assert (find("w0", lambda _: "", file).addresses, find("w0", lambda _: "", file).source) == (
        ("9.9.9.9",),
        "resolv.conf",
    )
    outputs = {"resolvectl": "Link 2 (w0): 127.0.0.53\n", "nmcli": "10.0.0.1\n"}
    found = find("w0", lambda command: outputs[command[0]], file)
    assert (found.addresses, found.source) == (("10.0.0.1",), "nmcli")


def test_resolvers_that_are_none_are_refused():
    for names in ({"c": ["1.1.1.1"]}, {"a": []}, {"a": "1.1.1.1"}, {"a": ["nonsense"]}, {"a": [1]}):
        assert "resolvers" in said(ParameterError, read_resolvers, names, ["a", "b"]), names


NAME = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?(\.[a-z]{2,5}){1,3}", fullmatch=True)


@given(st.lists(NAME, min_size=1, max_size=30, unique=True), st.sampled_from(["\n", "\r\n"]), st.integers(1, 40))
def test_tranco_lines_as_written(names, end, first):
    raw = "".join(f"{rank},{name}{end}" for rank, name in enumerate(names, start=1)).encode()
    found = read_names(raw, first).names
    assert [(n.rank, n.name) for n in found] == list(enumerate(names, start=1))[:first]


@given(st.binary(max_size=60))
def test_any_bytes_are_a_list_or_one_line_that_names_the_line(raw):
    text = said(ListError, read_names, raw, 5)
    assert not text or (text.startswith("line ") and "hint: " in text and "\n" not in text)


def test_a_line_of_either_list_that_is_none_is_named():
    for line in ("example.org", "0,example.org", "x,example.org", "1,", "1,a b.org"):
        assert said(ListError, read_names, f"1,good.org\n{line}\n".encode(), 10).startswith("line 2: "), line
    for line in ("1.2.3.4/40", "a b", "::g", "exa_mple..org"):
        assert re.match("line 2: .*hint", said(ListError, read_deny, f"example.org\n{line}\n")), line


def test_a_name_counts_once_and_who_is_denied_is_by_name_network_and_behind_nat64():
    assert [n.rank for n in read_names(b"1,a.org\n2,A.org.\n3,b.org", 10).names] == [1, 3]
    deny = read_deny("# people who asked\nexample.org\n8.8.8.0/24 # theirs\n2600::1\n")
    assert deny.denies_name("example.org")
    assert deny.denies_name("www.example.org")
    assert not deny.denies_name("notexample.org")
    assert (deny.why_not("8.8.8.9"), deny.why_not("8.8.9.9"), deny.why_not("2600::1")) == ("denied", None, "denied")
    assert read_deny("8.8.8.0/24").why_not("64:ff9b::808:808") == "denied"


def test_what_is_nobodys_public_server_is_never_pinged():
    four = ["10.0.0.1", "192.168.1.1", "172.16.0.1", "127.0.0.1", "169.254.1.1", "100.64.0.1", "0.0.0.1", "224.0.0.1"]
    six = ["::1", "::", "fe80::1", "fd00::1", "ff02::1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "2002:a00:1::1"]
    rows = [*four, "255.255.255.255", "240.0.0.1", *six]
    assert [address for address in rows if read_deny("").why_not(address) != "private"] == []
