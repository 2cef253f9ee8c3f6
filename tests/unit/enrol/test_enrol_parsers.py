"""What tandem-enrol reads from outside: any bytes are one of its own answers."""

import json
from pathlib import Path

import pytest
from enrolling import HUB_KEY, script_module
from hypothesis import given
from hypothesis import strategies as st

MODULE = script_module()
CODE, TOKEN = "invite_" + "A" * 43, "tandem_" + "A" * 43  # no secret: the shape alone

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def objects(**usual):
    """With the right keys, of which each may be right or anything."""
    return st.fixed_dictionaries({}, optional={key: st.just(right) | values for key, right in usual.items()})


enrols = objects(probe="probe-1", code=CODE, gateway="https://server.example.org:8443", ca_file=None)
tunnels = objects(
    address="10.87.0.16/16", server_public_key=HUB_KEY, endpoint="a:1", allowed_ips=["10.87.0.0/16"], keepalive_s=25
)
answers = st.fixed_dictionaries(
    {}, optional={"probe": st.just("probe-1") | values, "token": st.just(TOKEN) | values, "wireguard": tunnels | values}
)


@given(st.text() | values.map(json.dumps) | enrols.map(json.dumps))
def test_any_file_is_an_enrolment_or_one_line(text):
    try:
        read = MODULE.read_enrol(text, Path("/etc/tandem/enrol.json"))
    except MODULE.StopError as stop:
        status, line = stop.args
        assert (status, line.startswith("/etc/tandem/enrol.json: "), "; hint: " in line) == (2, True, True)
        return
    assert (read.probe, read.code) == ("probe-1", CODE)
    assert 0 < read.port < 65536


@pytest.mark.parametrize(
    ("gateway", "place"),
    [
        ("https://server.example.org:8443", ("server.example.org", 8443)),
        ("https://192.0.2.1/", ("192.0.2.1", 443)),
        ("https://[2001:db8::1]:8443", ("2001:db8::1", 8443)),
        ("https://user@server.example.org", None),
        ("https://server.example.org/v1", None),
        ("https://server.example.org:0", None),
        ("https://a b", None),
        ("https://a\n", None),
        ("", None),
    ],
)
def test_a_gateway_is_a_host_and_a_port(gateway, place):
    text = json.dumps({"probe": "probe-1", "code": CODE, "gateway": gateway})
    if place is None:
        with pytest.raises(MODULE.StopError, match="gateway is not https"):
            MODULE.read_enrol(text, Path("f"))
    else:
        read = MODULE.read_enrol(text, Path("f"))
        assert (read.host, read.port, read.ca_file) == (*place, None)


@given(
    st.integers(min_value=100, max_value=599),
    st.none() | st.text() | st.integers(min_value=0, max_value=10**7).map(str),
    st.binary() | values.map(lambda one: json.dumps(one).encode()) | answers.map(lambda one: json.dumps(one).encode()),
)
def test_any_answer_is_a_token_or_a_pause(status, retry_after, body):
    try:
        told = MODULE.outcome(status, retry_after, body, "probe-1")
    except MODULE.LaterError as later:
        why, after_s = later.args
        assert why.isprintable()
        assert after_s is None or 1 <= after_s <= MODULE.PERSON_S
        return
    if status == 409:
        assert told is None
        return
    assert (status, told["token"]) == (200, TOKEN)
    if told["wireguard"] is not None:
        lines = [told["wireguard"]["address"], told["wireguard"]["endpoint"], *told["wireguard"]["allowed_ips"]]
        assert all(line.isprintable() for line in lines)  # they end up in a file of settings, a line each
