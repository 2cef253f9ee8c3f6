"""The player against a scripted server over loopback: what it asks for and tells, and every way in which a server can be bad."""

import os
import signal
import struct

import pytest
from dash_server import Answer, manifest, play, serving, wanted

from support.experiment_process import Run

BITRATES = (200_000, 1_000_000)
SOON = {"startup_buffer_s": 0.2, "resume_buffer_s": 0.2}


def film(segment_s, segments):
    """A script that serves a whole film."""

    def script(target, _range):
        if target.endswith(".mpd"):
            return Answer(manifest(BITRATES, segments, segment_s))
        representation = target.partition("/film/")[2].partition("/")[0]
        return Answer(os.urandom(round(BITRATES[int(representation[1:])] * segment_s / 8)))

    return script


def test_a_film_is_played_over_one_connection(tmp_path):
    """When it stalls and what it chooses is asked with a clock of its own: ``unit/collector/experiment/dash/test_dash_play.py``."""
    with serving(film(0.2, 8)) as endpoint:
        told = play(endpoint, tmp_path, abr="fixed", fixed_index=1, **SOON, buffer_max_s=1)
        result = told["result"]
        assert told["failure"] is None
        assert endpoint.asked[1:] == [f"/v1/content/film/v1/{n}.m4s" for n in range(1, 9)]
        assert endpoint.connections == 1
    assert (result["switches"], result["reconnects"]) == (0, 0)
    assert result["bytes"] == 8 * 25_000
    assert result["media_s"] == pytest.approx(1.6)
    whole_s = 1.6 + result["startup_delay_ms"] / 1000 + result["stalled_s"]
    assert result["play_s"] >= whole_s - 0.001
    assert result["bitrate_bit_per_s"] == pytest.approx(1e6)
    assert result["media_bit_per_s"] == pytest.approx(1e6)
    assert len(result["p1203"]["I13"]["segments"]) == 8
    assert [row["number"] for row in told["segments"]] == list(range(1, 9))
    assert all(row["buffer_level_ms"] <= 1001 for row in told["segments"])
    assert all(row["shares"] == {"a": 1.0} for row in told["segments"])
    assert result["bytes_by_path"]["a"]["received"] > result["bytes"]
    assert told["phases"][0]["name"] == "play"
    assert told["samples"]


def test_segments_by_an_index_and_an_initialization_are_asked_for_by_range(tmp_path):
    sizes = (1000, 2000, 3000)
    rows = b"".join(struct.pack(">III", size, 300, 0) for size in sizes)
    body = struct.pack(">IIIII2xH", 0, 1, 1000, 0, 0, 3) + rows
    whole = b"i" * 100 + struct.pack(">I4s", 8 + len(body), b"sidx") + body + os.urandom(sum(sizes))
    text = (
        '<MPD mediaPresentationDuration="PT0.9S"><Period><AdaptationSet><Representation id="v" bandwidth="9">'
        f'<BaseURL>all.mp4</BaseURL><SegmentBase indexRange="100-{107 + len(body)}"><Initialization range="0-99"/>'
        "</SegmentBase></Representation></AdaptationSet></Period></MPD>"
    ).encode()
    ranges = []

    def script(target, part):
        if target.endswith(".mpd"):
            return Answer(text)
        first, last = map(int, part.split("-"))
        ranges.append((first, last))
        return Answer(whole[first : last + 1], status=206)

    with serving(script) as endpoint:
        told = play(endpoint, tmp_path, startup_buffer_s=0.3, resume_buffer_s=0.3)
    begin = 108 + len(body)
    assert told["failure"] is None
    assert ranges == [
        (100, begin - 1),
        (0, 99),
        (begin, begin + 999),
        (begin + 1000, begin + 2999),
        (begin + 3000, begin + 5999),
    ]
    assert [row["bytes"] for row in told["segments"]] == list(sizes)


def test_a_connection_that_the_server_ends_is_opened_again_and_counted(tmp_path):
    def script(target, part):
        answer = film(0.2, 6)(target, part)
        if target.endswith(("2.m4s", "4.m4s")):
            answer.then = "close"
        return answer

    with serving(script) as endpoint:
        told = play(endpoint, tmp_path, **SOON, attempts=1)
        assert endpoint.connections == 3
    assert told["failure"] is None
    assert told["result"]["reconnects"] == 2
    assert len(told["segments"]) == 6


def test_bytes_beyond_the_length_are_not_taken_for_the_next_answer(tmp_path):
    def script(target, part):
        answer = film(0.2, 6)(target, part)
        if target.endswith("2.m4s"):
            answer.length = len(answer.body)
            answer.body += b"HTTP/1.1 200 OK"
        return answer

    with serving(script) as endpoint:
        told = play(endpoint, tmp_path, abr="fixed", **SOON)
    assert told["failure"] is None
    assert told["result"]["reconnects"] >= 1  # one more, where they come after the next request
    assert {row["bytes"] for row in told["segments"]} == {5000}


def test_a_segment_that_fails_once_is_had_at_the_second_attempt(tmp_path):
    failures = iter([Answer(b"x" * 50, cut=20, then="reset")])

    def script(target, part):
        if target.endswith("3.m4s"):
            return next(failures, None) or film(0.2, 6)(target, part)
        return film(0.2, 6)(target, part)

    with serving(script) as endpoint:
        told = play(endpoint, tmp_path, **SOON)
    assert told["failure"] is None
    assert told["result"]["reconnects"] == 1
    assert told["segments"][2]["shares"] is None  # of a connection that was replaced meanwhile
    assert len(told["segments"]) == 6


# What cannot be read of a head or a manifest: test_experiment_http_head.py and dash/test_dash_mpd.py in unit/collector/experiment/.
HOSTILE = [
    (Answer(manifest((1,), 1, 1).replace(b"<Period>", b"<BaseURL>http://192.0.2.1/</BaseURL><Period>")), "is not on http://", False),
    (Answer(length=100, then="stall"), "stalled: no byte for 0.5 s", True),
    (Answer(b"x" * 50, length=100, then="close"), "closed after 50 of 100 bytes", True),
    (Answer(b"none", status=404), "HTTP 404 none", False),
    (Answer(b"later", status=503), "HTTP 503 later", True),
]  # fmt: skip


def test_a_bad_manifest_or_server_is_a_recorded_failure_and_never_a_hang(tmp_path):
    for answer, reason, retry in HOSTILE:
        stall_s = 0.5 if answer.then == "stall" else 60
        with serving(lambda *_, answer=answer: answer) as endpoint:
            told = play(endpoint, tmp_path, stall_s=stall_s, attempts=2)
        assert reason in told["failure"]["reason"], answer
        assert told["failure"]["retry"] is retry, answer
        assert "\n" not in told["failure"]["reason"], answer
        assert told["result"] is None, answer


SEGMENTS = [
    (Answer(b"x" * 1000, cut=500, then="stall"), "stalled: no byte for 1 s"),
    (Answer(b"x" * 1000, cut=500, then="close"), "closed after 500 of 1000 bytes"),
    (Answer(length=1 << 50), "Content-Length"),
    (Answer(b"gone", status=410), "HTTP 410 gone"),
]


def test_a_bad_segment_ends_the_play_with_what_was_played(tmp_path):
    for answer, reason in SEGMENTS:

        def script(target, part, answer=answer):
            return answer if target.endswith("3.m4s") else film(0.2, 6)(target, part)

        with serving(script) as endpoint:
            told = play(endpoint, tmp_path, stall_s=1 if answer.then == "stall" else 60, attempts=2, **SOON)
        assert reason in told["failure"]["reason"], answer
        assert told["result"]["media_s"] == 0.4, answer
        assert len(told["segments"]) == 2, answer


def test_a_drip_is_ended_by_the_deadline(tmp_path):
    """A byte now and then is no stall: the deadline is what ends it."""
    with serving(lambda *_: Answer(raw=b"H", then="stall")) as endpoint:
        told = play(endpoint, tmp_path, stall_s=600, deadline_s=2)
    assert told["failure"] == {"reason": "deadline passed", "retry": True}


def test_told_to_stop_it_says_what_was_played(tmp_path):
    with serving(film(1.0, 30)) as endpoint:
        run = Run("dash", wanted(endpoint, tmp_path, buffer_max_s=3))
        run.until(lambda segment: segment["number"] == 2, "segment")
        run.process.send_signal(signal.SIGTERM)
        last = run.end()
        assert endpoint.calls[-1][0] == "DELETE"
    assert last["status"] == 1
    assert last["failure"] == {"reason": "stopped", "retry": False}
    assert last["result"]["media_s"] >= 2


def test_a_range_that_is_answered_whole_is_said(tmp_path):
    text = (
        b'<MPD mediaPresentationDuration="PT1S"><Period><AdaptationSet><Representation id="v" bandwidth="9">'
        b'<BaseURL>a.mp4</BaseURL><SegmentBase indexRange="0-9"/></Representation></AdaptationSet></Period></MPD>'
    )
    with serving(lambda target, _: Answer(text if target.endswith(".mpd") else b"x" * 10)) as endpoint:
        told = play(endpoint, tmp_path)
    assert told["failure"] == {"reason": "HTTP 200: byte ranges are not served", "retry": False}
