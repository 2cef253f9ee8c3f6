"""Subflows get their path's name by address, by being first, or as the one that is left."""

from hypothesis import given
from hypothesis import strategies as st

from tandem_server.endpoint.paths import PathPeer, name_subflows


def named(addresses, primary, *remotes):
    paths = {name: PathPeer(name.upper(), address) for name, address in addresses.items()}
    return list(name_subflows(paths, primary, [(str(i), r) for i, r in enumerate(remotes, 1)]).values())


def test_by_its_address_else_by_being_the_first_or_as_the_one_that_is_left():
    two = {"a": "1.1.1.1", "b": "2.2.2.2"}
    for addresses, primary, remotes, names in [
        (two, "a", ["2.2.2.2", "1.1.1.1"], ["b", "a"]),
        ({}, "a", ["1.1.1.1"], ["a"]),
        ({"a": None, "b": None}, "b", ["9.9.9.9"], ["b"]),
        (two, "a", ["1.1.1.1", "3.3.3.3"], ["a", "b"]),
        ({"a": None, "b": None}, "a", ["3.3.3.3", "4.4.4.4"], ["a", "b"]),
        (two, "a", ["1.1.1.1", "3.3.3.3", "3.3.3.3"], ["a", "b", "b"]),
        # What cannot be told stays unnamed; paths behind one address are told apart by order only.
        (two | {"c": "3.3.3.3"}, "a", ["1.1.1.1", "9.9.9.9"], ["a", None]),
        (two, "a", ["1.1.1.1", "8.8.8.8", "9.9.9.9"], ["a", None, None]),
        ({}, None, ["1.1.1.1"], [None]),
        ({"a": "1.1.1.1", "b": "1.1.1.1"}, "b", ["1.1.1.1", "1.1.1.1"], ["b", "a"]),
    ]:
        assert named(addresses, primary, *remotes) == names, (addresses, primary, remotes)


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
