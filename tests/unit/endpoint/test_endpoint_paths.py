"""Subflows get their path's name by address, by being first, or as the one that is left."""

from hypothesis import given
from hypothesis import strategies as st

from tandem_server.endpoint.paths import PathPeer, name_subflows


def named(addresses, primary, *remotes):
    paths = {name: PathPeer(name.upper(), address) for name, address in addresses.items()}
    return list(name_subflows(paths, primary, [(str(i), r) for i, r in enumerate(remotes, 1)]).values())


def test_an_address_names_its_path():
    assert named({"a": "1.1.1.1", "b": "2.2.2.2"}, "a", "2.2.2.2", "1.1.1.1") == ["b", "a"]


def test_the_first_subflow_is_the_primary_paths():
    assert named({}, "a", "1.1.1.1") == ["a"]
    assert named({"a": None, "b": None}, "b", "9.9.9.9") == ["b"]


def test_the_last_path_is_the_last_address():
    assert named({"a": "1.1.1.1", "b": "2.2.2.2"}, "a", "1.1.1.1", "3.3.3.3") == ["a", "b"]
    assert named({"a": None, "b": None}, "a", "3.3.3.3", "4.4.4.4") == ["a", "b"]
    assert named({"a": "1.1.1.1", "b": "2.2.2.2"}, "a", "1.1.1.1", "3.3.3.3", "3.3.3.3") == ["a", "b", "b"]


def test_what_cannot_be_told_stays_unnamed():
    assert named({"a": "1.1.1.1", "b": "2.2.2.2", "c": "3.3.3.3"}, "a", "1.1.1.1", "9.9.9.9") == ["a", None]
    assert named({"a": "1.1.1.1", "b": "2.2.2.2"}, "a", "1.1.1.1", "8.8.8.8", "9.9.9.9") == ["a", None, None]
    assert named({}, None, "1.1.1.1") == [None]


def test_paths_behind_one_address_are_told_apart_by_order_only():
    assert named({"a": "1.1.1.1", "b": "1.1.1.1"}, "b", "1.1.1.1", "1.1.1.1") == ["b", "a"]


ADDRESS = st.sampled_from(["1.1.1.1", "2.2.2.2", "3.3.3.3", None])


@given(
    st.dictionaries(st.sampled_from("abc"), ADDRESS),
    st.sampled_from([None, "a", "b"]),
    st.lists(ADDRESS, max_size=5),
)
def test_an_address_that_is_one_paths_never_gets_another_name(addresses, primary, remotes):
    owners = [[n for n, a in addresses.items() if a == r] if r else [] for r in remotes]
    for own, name in zip(owners, named(addresses, primary, *remotes), strict=True):
        if len(own) == 1:
            assert name == own[0]
        assert name is None or name in addresses or name == primary
