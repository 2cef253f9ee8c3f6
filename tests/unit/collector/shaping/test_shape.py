"""Shapes, and the commands that make them."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import badly_refused
from tandem.shaping import Shape, ShapeError, apply_commands, foreign, index_of, meaning, remove_commands, shape_of


def test_taken_down_in_the_order_that_leaves_the_network_working():
    assert [" ".join(c) for c in remove_commands("wwan0", up=True, ifb="tshape7")] == [
        "tc qdisc del dev wwan0 root",
        "tc qdisc del dev wwan0 ingress",
        "ip link del tshape7",
    ]
    assert remove_commands(None, up=True, ifb="tshape7") == [("ip", "link", "del", "tshape7")]


def test_our_ifbs_are_known_by_name():
    names = {"tshape12": 12, "tshape": None, "tshape-try": None, "wwan0": None}
    assert {name: index_of(name) for name in names} == names


def test_what_cannot_be_is_refused_by_name():
    rows = [
        ({"rate": 1}, "shape.a: unknown 'rate'; known: down_bit_per_s"),
        ({"up_bit_per_s": "fast"}, "'fast' is no number of bit/s"),
        ({"up_bit_per_s": True}, "True is no number"),
        ({"up_bit_per_s": 9999}, "not from 10000 to"),
        ({"down_loss_percent": 101}, "101 % is not from 0 to 100"),
        ({"queue_ms": 5}, "nothing is shaped"),
        ({"up_delay_ms": float("nan")}, "no number of ms"),
    ]
    assert badly_refused(ShapeError, lambda wrong: shape_of(wrong, "shape.a"), rows) == []


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
KEYS = st.sampled_from([*Shape.__slots__, "other"])


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_anything_is_a_shape_with_whole_commands_or_refused(values):
    with contextlib.suppress(ShapeError):
        shape = shape_of(values, "shape.a")
        made = apply_commands(shape, "wwan0", 7)
        assert made
        assert all(word and "nan" not in word and "e+" not in word for command in made for word in command)


def test_what_is_missing_is_named_with_a_hint():
    unknown = "Error: Specified qdisc kind is unknown."
    netem = ("tc", "qdisc", "add", "dev", "x", "root", "netem", "delay", "5us")
    assert meaning(netem, unknown) == (
        f"delay and loss need netem, which this kernel has not ({unknown}); hint: a kernel with CONFIG_NET_SCH_NETEM, "
        "or shape without it"
    )
    assert "CONFIG_IFB" in meaning(("ip", "link", "add", "x", "type", "ifb"), "Error: Unknown device type.")
    assert "NET_ADMIN" in meaning(netem, "RTNETLINK answers: Operation not permitted")
    assert meaning(netem, "Cannot find device").endswith("netem delay 5us: Cannot find device")


def test_another_programs_qdisc_is_seen_and_the_kernels_own_is_not():
    own = [{"kind": "mq", "handle": "0:", "root": True}, {"kind": "fq_codel", "handle": "0:", "parent": ":1"}]
    assert foreign(own, up=True, down=True) is None
    cake = [{"kind": "cake", "handle": "8001:", "root": True}]
    assert foreign(cake, up=True, down=False) == "cake qdisc"
    assert foreign(cake, up=False, down=True) is None
    clsact = [{"kind": "clsact", "handle": "ffff:", "parent": "ffff:fff1"}]
    assert foreign(clsact, up=True, down=False) is None
    assert foreign(clsact, up=False, down=True) == "clsact qdisc"
