"""Lists: Tranco's lines, and who is left alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.experiment.reachability.names import ListError, read_deny, read_names

NAME = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?(\.[a-z]{2,5}){1,3}", fullmatch=True)


@given(st.lists(NAME, min_size=1, max_size=30, unique=True), st.sampled_from(["\n", "\r\n"]), st.integers(1, 40))
def test_tranco_lines_as_written(names, end, first):
    raw = "".join(f"{rank},{name}{end}" for rank, name in enumerate(names, start=1)).encode()
    found = read_names(raw, first).names
    assert [(n.rank, n.name) for n in found] == list(enumerate(names, start=1))[:first]


@given(st.binary(max_size=60))
def test_any_bytes_are_a_list_or_one_line_that_names_the_line(raw):
    said = ""
    try:
        assert read_names(raw, 5).names
    except ListError as error:
        said = str(error)
    assert not said or (said.startswith("line ") and "mend" in said and "\n" not in said)


@pytest.mark.parametrize("line", ["example.org", "0,example.org", "x,example.org", "1,", "1;example.org", "1,a b.org"])
def test_a_line_that_is_none_is_named(line):
    with pytest.raises(ListError, match=r"^line 2: "):
        read_names(f"1,good.org\n{line}\n".encode(), 10)


def test_a_name_that_comes_twice_counts_once():
    assert [n.rank for n in read_names(b"1,a.org\n2,A.org.\n3,b.org", 10).names] == [1, 3]


def test_deny_names_below_and_networks():
    deny = read_deny("# people who asked\nexample.org\n8.8.8.0/24 # theirs\n2600::1\n")
    assert deny.denies_name("example.org")
    assert deny.denies_name("www.example.org")
    assert not deny.denies_name("notexample.org")
    assert (deny.why_not("8.8.8.9"), deny.why_not("8.8.9.9"), deny.why_not("2600::1")) == ("denied", None, "denied")


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.1", "192.168.1.1", "172.16.0.1", "127.0.0.1", "169.254.1.1", "100.64.0.1", "0.0.0.1", "224.0.0.1", "239.1.1.1",
        "255.255.255.255", "240.0.0.1", "::1", "::", "fe80::1", "fd00::1", "ff02::1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1",
        "2002:a00:1::1",
    ],
)  # fmt: skip
def test_what_is_nobodys_public_server_is_never_pinged(address):
    assert read_deny("").why_not(address) == "private"


def test_a_network_of_ipv4_holds_when_nat64_hides_it():
    assert read_deny("8.8.8.0/24").why_not("64:ff9b::808:808") == "denied"


@pytest.mark.parametrize("line", ["1.2.3.4/40", "a b", "::g", "exa_mple..org"])
def test_a_bad_line_of_the_deny_list_is_named(line):
    with pytest.raises(ListError, match=r"^line 2: .*mend"):
        read_deny(f"example.org\n{line}\n")
