"""Parameters: one clear line for each way of being wrong."""

import contextlib
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import any_json, badly_refused, said
from tandem.experiment.base import Output, Stop
from tandem.experiment.download import EXPERIMENT, read
from tandem.experiment.parameters import Parameter, ParameterError, check, origin
from tandem.experiment.results import BYTES_BY_PATH, FIGURES, bytes_by_path, faults

PARAMETERS = EXPERIMENT.parameters


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


URLS = {"control": "https://s", "measurement": "http://s", "token_file": "t"}
WRONG = [
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
    ({"server": {**URLS, "measurement": "ftp://s"}}, "not of the form http://HOST:PORT or https://HOST:PORT"),
    ({"server": {**URLS, "control": "https://s:99999"}}, "is no URL"),
    ({"server": {**URLS, "token_file": "/none"}}, "No such file"),
]


def test_what_is_wrong_is_said_in_one_line(good):
    assert badly_refused(ParameterError, lambda change: read(check(PARAMETERS, {**good, **change})), WRONG) == []


@given(st.dictionaries(st.sampled_from([p.name for p in PARAMETERS]), any_json(), max_size=6))
def test_any_json_is_accepted_or_refused_in_words(given_parameters):
    assert "\n" not in said(ParameterError, lambda: read(check(PARAMETERS, given_parameters)))


@given(st.text(max_size=30))
def test_any_text_is_an_origin_or_refused(text):
    with contextlib.suppress(ParameterError):
        assert origin(text, ("http",)).host


DECLARED = (*FIGURES, BYTES_BY_PATH, Parameter("fallback", "bool", "whether"), Parameter("steps", "list", "each"))


def test_undeclared_keys_and_other_kinds_are_named_and_bytes_summed_by_path():
    assert faults(DECLARED, {"bytes": 3, "duration_s": 1, "fallback": False, "bytes_by_path": {}, "steps": []}) == []
    assert faults(DECLARED, {"bytes": None}) == [], "what could not be measured may be absent or null"
    assert faults(DECLARED, {"colour": 1, "bytes": 1.5, "fallback": 1, "duration_s": True, "steps": {}}) == [
        "'colour' is not declared",
        "'bytes': float, declared as int",
        "'fallback': int, declared as bool",
        "'duration_s': bool, declared as float",
        "'steps': dict, declared as list",
    ]
    counted = [("a", 10, 1), ("a", 5, None), ("b", None, None), (None, 7, 7)]
    assert bytes_by_path(counted) == {"a": {"received": 15, "sent": 1}, "b": {"received": None, "sent": None}}


def test_when_nobody_reads_any_more_it_stops_and_what_is_left_in_the_stream_goes_nowhere():
    reading, writing = os.pipe()
    stop = Stop()
    with os.fdopen(writing, "w") as stream:
        output = Output(stream, stop)
        output.line("sample", number=1)
        assert not stop.requested
        os.close(reading)
        stream.write("half a line, by somebody else")
        output.line("sample", number=2)
        assert stop.requested
        stream.flush()  # as Python does at exit


NOT_NEEDED = {"argparse", "pkgutil", "platform", "secrets", "statistics", "decimal", "tandem.schema.metrics"}


def test_a_download_loads_no_module_that_it_can_do_without():
    told = (
        "import json, sys, tandem.experiment.__main__, tandem.experiment.download;print(json.dumps(list(sys.modules)))"
    )
    before = (
        "import json, sys; print(json.dumps(list(sys.modules)))"  # what the environment itself loads (site, .pth files)
    )
    loaded, own = (
        set(json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout))
        for code in (told, before)
    )
    assert "tandem.experiment.transfer" in loaded
    assert loaded & NOT_NEEDED <= own
