"""Parameters: one clear line for each way of being wrong."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.experiment.asked import origin
from tandem.experiment.download.request import PARAMETERS, read
from tandem.experiment.parameters import Parameter, ParameterError, check


@pytest.fixture
def good(tmp_path):
    token = tmp_path / "token"
    token.write_text("secret\n")
    return {
        "run": "run-1",
        "kind": "mptcp",
        "path": "b",
        "paths": [
            {"name": "a", "interface": "lo", "operator": "A"},
            {"name": "b", "interface": "lo", "address": "10.0.0.1"},
        ],
        "seconds": 8,
        "server": {
            "control": "https://s:8444",
            "measurement": "http://s:8480",
            "token_file": str(token),
            "ca_file": "ca.pem",
        },
    }


def test_the_primary_path_comes_first_and_defaults_are_filled_in(good):
    request = read(check(PARAMETERS, good))
    assert [p.name for p in request.paths] == ["b", "a"]
    assert (request.primary.address, request.paths[1].operator) == ("10.0.0.1", "A")
    assert (request.sample_hz, request.deadline_s, request.token) == (10.0, 38.0, "secret")
    assert (request.control.scheme, request.control.port, request.measurement.port) == ("https", 8444, 8480)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "sctp"}, "'sctp' is not one of mptcp, tcp"),
        ({"seconds": None}, "either 'bytes' or 'seconds'"),
        ({"bytes": 5}, "either 'bytes' or 'seconds'"),
        ({"seconds": "8"}, "'8' is not a number"),
        ({"seconds": True}, "True is not a number"),
        ({"seconds": float("nan")}, "nan is not a number"),
        ({"seconds": 0}, "0 s is below 0.1 s"),
        ({"sample_hz": 1000}, "1000 1/s is above 100 1/s"),
        ({"path": "c"}, "'c' is none of the paths a, b"),
        ({"run": None}, "'run' is missing"),
        ({"colour": 1}, "unknown parameter 'colour'"),
        ({"bytes": 1.5}, "not a whole number"),
        ({"paths": [{"name": "a"}]}, "'paths[0]': 'interface' is missing"),
        ({"paths": ["a"]}, "entry 0 is not an object"),
        ({"paths": [{"name": "b", "interface": "x"}] * 2}, "a name occurs twice"),
        (
            {"server": {"control": "https://s", "measurement": "ftp://s", "token_file": "t"}},
            "not of the form http://HOST:PORT or https://HOST:PORT",
        ),
        ({"server": {"control": "https://s:99999", "measurement": "http://s", "token_file": "t"}}, "is no URL"),
        ({"server": {"control": "https://s", "measurement": "http://s", "token_file": "/none"}}, "No such file"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(good, change, words):
    with pytest.raises(ParameterError) as refused:
        read(check(PARAMETERS, {**good, **change}))
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


TEXT = st.text(string.printable, max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from([p.name for p in PARAMETERS]), JSON, max_size=6))
def test_any_json_is_accepted_or_refused_in_words(given_parameters):
    said = ""
    try:
        read(check(PARAMETERS, given_parameters))
    except ParameterError as error:
        said = str(error)
    assert "\n" not in said


@given(st.text(max_size=30))
def test_any_text_is_an_origin_or_refused(text):
    try:
        found = origin(text, ("http",))
    except ParameterError:
        return
    assert found.host


def test_a_description_leaves_out_what_is_default():
    parameter = Parameter("seconds", "float", "how long", "s", minimum=1)
    told = {"name": "seconds", "kind": "float", "purpose": "how long", "unit": "s", "minimum": 1}
    assert parameter.describe() == told
    json.dumps([p.describe() for p in PARAMETERS])
