"""The server asked for its own captures: refused, too old, silent, dead; measuring goes on, and each session has one entry."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import any_json
from tandem.experiment import base
from tandem.experiment.control import LEFT_OPEN, NO_ANSWER, Control, ControlError, capture_of
from tandem.experiment.parameters import CommonParameters, ProbePath
from tandem.schema.manifest import ServerCapture
from tandem.schema.url import Origin

NAME, SHA256 = "captures/server/run-1-s1.pcap", "a" * 64
KEPT = {"name": NAME, "file": "run-1-s1.pcap", "bytes": 900, "sha256": SHA256, "packets": 7, "packets_dropped": 0}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr(base, "server_captures", {})


def control(answers, monkeypatch, *, capture=True):
    """A control channel that gives these answers, one a request; what it was asked, as it comes."""
    http = Origin("http", "127.0.0.1", 1)
    made = Control(
        CommonParameters("run-1", (ProbePath("a", "lo", None, None),), http, http, "x", None, 1.0, capture=capture)
    )
    asked = []

    def answer(method, url, body, _timeout_s):
        asked.append((method, url, None if body is None else json.loads(body)))
        told = answers.pop(0)
        if isinstance(told, Exception):
            raise told
        return *told, "a"

    monkeypatch.setattr(made, "_over_any", answer)
    return made, asked


OPENED = (201, {"session": "s1", "key": "ab" * 32})


def entry():
    (one,) = base.server_captures.values()
    return one


def test_it_is_asked_for_only_where_the_run_wants_it(monkeypatch):
    made, asked = control([OPENED, (200, {"capture": None})], monkeypatch, capture=False)
    made.close(made.open("mptcp", {}), 1.0)
    assert "capture" not in asked[0][2]
    assert base.server_captures == {}


def test_what_the_server_kept_is_told_by_name_and_hash(monkeypatch):
    made, asked = control([OPENED, (200, {"capture": {**KEPT, "truncated": True}})], monkeypatch)
    session = made.open("mptcp", {}, bytes=5)
    assert (asked[0][2]["capture"], asked[0][2]["bytes"]) == (True, 5)
    assert entry()["why"] == LEFT_OPEN  # as long as nobody ends it
    assert made.close(session, 1.0) is not None
    told = {key: value for key, value in KEPT.items() if key != "file"}
    assert entry() == {"session": "s1", **told, "truncated": True, "why": None}


def test_refused_it_is_measured_without_and_says_why(monkeypatch):
    """By a server older than captures."""
    status, reason = 400, "unknown key 'capture'"
    made, asked = control([(status, {"error": reason}), OPENED, (200, {"capture": None})], monkeypatch)
    made.close(made.open("tcp", {}, seconds=1.0), 1.0)
    assert ["capture" in body for _, _, body in asked[:2]] == [True, False]
    assert {**asked[0][2], "capture": None} == {**asked[1][2], "capture": None}
    assert (entry()["name"], entry()["why"]) == (None, f"refused: HTTP {status}: {reason}")


@pytest.mark.parametrize("again", [(429, {"error": "probe-1 has 8 open sessions already"}), (503, None)])
def test_a_refusal_that_is_not_for_the_capture_is_the_runs_own(again, monkeypatch):
    made, _ = control([(429, {"error": "no"}), again], monkeypatch)
    with pytest.raises(ControlError, match=f"HTTP {again[0]}"):
        made.open("tcp", {})
    assert base.server_captures == {}
    made, asked = control([(503, {"error": "later"})], monkeypatch)
    with pytest.raises(ControlError, match="later"):
        made.open("tcp", {})
    assert len(asked) == 1, "what is no refusal is not asked twice"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (ControlError("control channel: a: timeout", retry=True), NO_ANSWER),
        ((200, {"capture": None}), "the server made none and does not say why"),
        ((200, {"capture": {"file": None, "name": None, "error": "tcpdump\n wrote nothing"}}), "tcpdump wrote nothing"),
        # A server whose captures are no traces; one that names another run's.
        *(
            (
                (200, {"capture": {**KEPT, "name": name}}),
                "the server kept none among the run's files; hint: update the server",
            )
            for name in (None, "captures/server/run-2-s1.pcap")
        ),
    ],
)
def test_without_one_the_entry_says_why(answer, why, monkeypatch):
    made, _ = control([OPENED, answer], monkeypatch)
    made.close(made.open("mptcp", {}), 1.0)
    assert (entry()["session"], entry()["name"], entry()["why"]) == ("s1", None, why)


def test_one_that_broke_off_is_kept_with_its_reason(monkeypatch):
    broke = {**KEPT, "truncated": True, "error": "No space left on device"}
    made, _ = control([OPENED, (200, {"capture": broke})], monkeypatch)
    made.close(made.open("mptcp", {}), 1.0)
    assert (entry()["name"], entry()["truncated"], entry()["why"]) == (NAME, True, "No space left on device")


VALUES = any_json() | st.just(NAME)


@given(VALUES | st.dictionaries(st.sampled_from([*KEPT, "error", "truncated"]), VALUES))
def test_whatever_a_server_says_is_an_entry(told):
    made = capture_of("run-1", "s1", {"capture": told})
    assert made.keys() == ServerCapture.__annotations__.keys()
    assert made["name"] in (None, NAME)
    assert made["name"] is not None or made["why"]
    assert made["why"] is None or "\n" not in made["why"]
    json.dumps(made, allow_nan=False)
