"""What an endpoint tells of further addresses, whatever it tells."""

import ipaddress

from hypothesis import given
from hypothesis import strategies as st

from tandem.experiment.server_addresses import MOST, further_addresses

ODD = st.one_of(st.none(), st.integers(), st.text(max_size=60), st.ip_addresses().map(str), st.lists(st.none()))


def test_both_families_each_once_in_their_plainest_form():
    told = ["203.0.113.11", "2001:DB8:0::11", "203.0.113.11", "::ffff:203.0.113.12"]
    assert further_addresses({"further_addresses": told}) == ["203.0.113.11", "2001:db8::11", "203.0.113.12"]
    assert further_addresses({}) == []


def test_where_no_server_is_nothing_is_sent():
    told = ["127.0.0.1", "::1", "0.0.0.0", "::", "224.0.0.5", "ff02::1"]  # noqa: S104  told, not bound to
    told += ["169.254.1.1", "fe80::1%eth0", "255.255.255.255"]
    assert further_addresses({"further_addresses": [*told, "::ffff:127.0.0.1", "10.0.0.1x", "", 7, None, {}]}) == []


@given(st.one_of(ODD, st.lists(ODD, max_size=200), st.dictionaries(st.text(), ODD)))
def test_anything_is_read_to_few_addresses_that_a_host_can_have(told):
    found = further_addresses({"further_addresses": told})
    assert len(found) <= MOST
    assert len(set(found)) == len(found)
    for text in found:
        address = ipaddress.ip_address(text)
        assert str(address) == text
        odd = (address.is_loopback, address.is_multicast, address.is_unspecified, address.is_link_local)
        assert not any(odd)
