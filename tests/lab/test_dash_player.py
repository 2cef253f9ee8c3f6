"""The player against a scripted server over loopback: startup, rebuffering, switches, and every way in which a server can be bad."""

import json
import os
import signal
import struct
import subprocess
import sys

import pytest
from dash_server import REPOSITORY, Answer, asked, manifest, play, serving

BITRATES = (200_000, 1_000_000)


@pytest.fixture
def token(tmp_path):
    file = tmp_path / "token"
    file.write_text("secret")
    return file


def film(segment_s, segments, delay_s=lambda _number, _size: 0.0):
    """A script that serves a whole film; ``delay_s``: of the second half of segment ``number`` of ``size`` bytes."""

    def script(target, _range):
        if target.endswith(".mpd"):
            return Answer(manifest(BITRATES, segments, segment_s))
        _, _, rest = target.partition("/film/")
        representation, _, name = rest.partition("/")
        number = int(name.removesuffix(".m4s"))
        size = round(BITRATES[int(representation[1:])] * segment_s / 8)
        return Answer(os.urandom(size), after_s=delay_s(number, size))

    return script


def test_a_film_is_played_over_one_connection_without_a_stall(token):
    with serving(film(0.5, 8)) as endpoint:
        told = play(
            endpoint, token, abr="fixed", fixed_index=1, startup_buffer_s=1, resume_buffer_s=0.5, buffer_max_s=2
        )
        result = told["result"]
        assert told["failure"] is None
        assert endpoint.asked[1:] == [f"/v1/content/film/v1/{n}.m4s" for n in range(1, 9)]
        assert endpoint.connections == 1
    assert (result["stalls"], result["stalled_s"], result["switches"], result["reconnects"]) == (0, 0, 0, 0)
    assert result["bytes"] == 8 * 62_500
    assert result["media_s"] == 4
    # the whole film at its own pace, after a short startup
    assert result["play_s"] == pytest.approx(4 + result["startup_delay_ms"] / 1000, abs=0.1)
    assert result["startup_delay_ms"] < 1000
    assert result["bitrate_bit_per_s"] == result["media_bit_per_s"] == 1_000_000
    assert result["qoe_linear"] == pytest.approx(8000 - 3 * result["startup_delay_ms"])
    assert len(result["p1203"]["I13"]["segments"]) == 8
    assert [row["number"] for row in told["segments"]] == list(range(1, 9))
    assert all(row["buffer_level_ms"] <= 2001 for row in told["segments"])
    assert all(row["shares"] == {"a": 1.0} for row in told["segments"])
    assert [row["media_s"] for row in result["segments"]] == [n * 0.5 for n in range(8)]
    assert result["bytes_by_path"]["a"]["received"] > result["bytes"]
    assert told["phases"][0]["name"] == "play"
    assert told["samples"]


def test_a_segment_that_comes_late_is_a_stall_as_long_as_it_is_late(token):
    """At most 1 s is buffered when segment 5 is asked for; it takes 2.5 s."""
    with serving(film(0.5, 8, lambda number, _: 2.5 if number == 5 else 0.0)) as endpoint:
        told = play(endpoint, token, abr="fixed", startup_buffer_s=0.5, resume_buffer_s=0.5, buffer_max_s=1.5)
    result = told["result"]
    (late,) = [row for row in told["segments"] if row["number"] == 5]
    (stall,) = result["rebuffering"]
    assert result["stalls"] == 1
    assert stall["duration_s"] == pytest.approx((late["duration_ms"] - late["buffer_before_ms"]) / 1000, abs=0.05)
    assert 1.3 < stall["duration_s"] < 2.2
    assert stall["media_s"] == pytest.approx(2.0)
    assert late["stall_ms"] == pytest.approx(stall["duration_s"] * 1000, abs=50)
    assert result["stalled_s"] == pytest.approx(stall["duration_s"])
    assert result["play_s"] == pytest.approx(4 + result["startup_delay_ms"] / 1000 + result["stalled_s"], abs=0.05)
    assert result["p1203"]["I23"]["stalling"][1] == [stall["media_s"], stall["duration_s"]]


def test_the_bitrate_follows_the_throughput_up_and_down(token):
    """8 Mbit/s up to the fifth segment, then 400 kbit/s: nine tenths of the first allow the second bitrate, of the other the first."""

    def delay_s(number, size):
        return size * 8 / (8e6 if number <= 5 else 4e5)

    with serving(film(1.0, 10, delay_s)) as endpoint:
        told = play(endpoint, token, abr="throughput", startup_buffer_s=1, resume_buffer_s=1, buffer_max_s=4)
    chosen = [row["representation"] for row in told["segments"]]
    # the sixth is still chosen by what the fifth brought
    assert chosen[:6] == ["v0", "v1", "v1", "v1", "v1", "v1"]
    assert chosen[-1] == "v0"
    assert told["result"]["switches"] == 2
    assert told["result"]["switches_per_minute"] == pytest.approx(12)
    assert {row["rule"] for row in told["segments"]} == {"throughput"}


def test_segments_by_an_index_and_an_initialization_are_asked_for_by_range(token):
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
        told = play(endpoint, token, startup_buffer_s=0.3, resume_buffer_s=0.3)
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


def test_a_connection_that_the_server_ends_is_opened_again_and_counted(token):
    def script(target, part):
        answer = film(0.2, 6)(target, part)
        if target.endswith(("2.m4s", "4.m4s")):
            answer.then = "close"
        return answer

    with serving(script) as endpoint:
        told = play(endpoint, token, startup_buffer_s=0.2, resume_buffer_s=0.2, attempts=1)
        assert endpoint.connections == 3
    assert told["failure"] is None
    assert told["result"]["reconnects"] == 2
    assert len(told["segments"]) == 6


def test_bytes_beyond_the_length_are_not_taken_for_the_next_answer(token):
    def script(target, part):
        answer = film(0.2, 6)(target, part)
        if target.endswith("2.m4s"):
            answer.length = len(answer.body)
            answer.body += b"HTTP/1.1 200 OK"
        return answer

    with serving(script) as endpoint:
        told = play(endpoint, token, abr="fixed", startup_buffer_s=0.2, resume_buffer_s=0.2)
    assert told["failure"] is None
    assert told["result"]["reconnects"] == 1
    assert {row["bytes"] for row in told["segments"]} == {5000}


def test_a_segment_that_fails_once_is_had_at_the_second_attempt(token):
    failures = iter([Answer(b"x" * 50, cut=20, then="reset")])

    def script(target, part):
        if target.endswith("3.m4s"):
            return next(failures, None) or film(0.2, 6)(target, part)
        return film(0.2, 6)(target, part)

    with serving(script) as endpoint:
        told = play(endpoint, token, startup_buffer_s=0.2, resume_buffer_s=0.2)
    assert told["failure"] is None
    assert told["result"]["reconnects"] == 1
    assert told["segments"][2]["shares"] is None  # of a connection that was replaced meanwhile
    assert len(told["segments"]) == 6


HOSTILE = [
    (Answer(b"<MPD", then="close"), "MPD: line 1: no XML", False),
    (Answer(b'<MPD type="dynamic"/>'), "a live presentation; only stored ones are played", False),
    (Answer(b"<!DOCTYPE M [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]><MPD>&b;</MPD>"), "document type declaration", False),
    (Answer(manifest((1,), 1, 1).replace(b"<Period>", b"<BaseURL>http://192.0.2.1/</BaseURL><Period>")), "is not on http://", False),
    (Answer(manifest((1,), 1, 1).replace(b"$Number$.m4s", b"a b")), "cannot be asked for", False),
    (Answer(length=100, then="stall"), "stalled: no byte for 0.5 s", True),
    (Answer(b"x" * 50, length=100, then="close"), "closed after 50 of 100 bytes", True),
    (Answer(b"x", length=1 << 40), "Content-Length 1099511627776, more than 4194304", False),
    (Answer(raw=b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 10, endless=True), "", False),
    (Answer(raw=b"HTTP/1.1 200 OK\r\n", then="stall"), "stalled: no byte for 0.5 s", True),
    (Answer(raw=b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"), "Content-Length: b'2'", False),
    (Answer(raw=b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "Transfer-Encoding", False),
    (Answer(raw=b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 65536, endless=True), "more than", False),
    (Answer(raw=b"SSH-2.0-x\r\n", then="stall"), "not HTTP/1", False),
    (Answer(then="close", raw=b"\r\n"), "not HTTP/1", False),
    (Answer(b"none", status=404), "HTTP 404 none", False),
    (Answer(b"later", status=503), "HTTP 503 later", True),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "reason", "retry"), HOSTILE)
def test_a_bad_manifest_or_server_is_a_recorded_failure_and_never_a_hang(token, answer, reason, retry):
    with serving(lambda *_: answer) as endpoint:
        told = play(endpoint, token, wait_s=30, stall_s=0.5, attempts=2, deadline_s=15)
    assert reason in told["failure"]["reason"]
    assert told["failure"]["retry"] is retry
    assert "\n" not in told["failure"]["reason"]
    assert told["result"] is None
    assert told["seconds"] < 12


SEGMENTS = [
    (Answer(b"x" * 1000, cut=500, then="stall"), "stalled: no byte for 0.5 s"),
    (Answer(b"x" * 1000, cut=500, then="close"), "closed after 500 of 1000 bytes"),
    (Answer(b"x" * 1000, cut=500, then="reset"), "reset"),
    (Answer(length=1 << 50), "Content-Length"),
    (Answer(raw=b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 10, endless=True), "no end of the head within 16384 bytes"),
    (Answer(b"gone", status=410), "HTTP 410 gone"),
]


@pytest.mark.parametrize(("answer", "reason"), SEGMENTS)
def test_a_bad_segment_ends_the_play_with_what_was_played(token, answer, reason):
    def script(target, part):
        return answer if target.endswith("3.m4s") else film(0.5, 6)(target, part)

    with serving(script) as endpoint:
        told = play(endpoint, token, wait_s=30, stall_s=0.5, attempts=2, startup_buffer_s=0.5, resume_buffer_s=0.5)
    assert reason in told["failure"]["reason"]
    assert told["result"]["media_s"] == 1.0
    assert len(told["segments"]) == 2
    assert told["seconds"] < 12


def test_a_drip_is_ended_by_the_deadline(token):
    """A byte now and then is no stall: the deadline is what ends it."""
    with serving(lambda *_: Answer(raw=b"H", endless=False, then="stall")) as endpoint:
        told = play(endpoint, token, wait_s=30, stall_s=20, deadline_s=2)
    assert told["failure"] == {"reason": "deadline passed", "retry": True}
    assert told["seconds"] < 8


def test_told_to_stop_it_says_what_was_played(token):
    with serving(film(1.0, 30)) as endpoint:
        process = subprocess.Popen(
            [sys.executable, "-m", "tandem.experiment.dash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY / "collector/src")},
        )
        process.stdin.write(json.dumps(asked(endpoint, token, buffer_max_s=3)))
        process.stdin.close()
        process.stdin = None  # communicate() must not flush it again
        seen = 0
        while seen < 2:
            seen += json.loads(process.stdout.readline())["type"] == "segment"
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=10)
        assert endpoint.calls[-1][0] == "DELETE"
    last = json.loads(out.splitlines()[-1])
    assert process.returncode == 1
    assert last["failure"] == {"reason": "stopped", "retry": False}
    assert 2 <= last["result"]["media_s"] <= 6


def test_a_range_that_is_answered_whole_is_said(token):
    text = (
        b'<MPD mediaPresentationDuration="PT1S"><Period><AdaptationSet><Representation id="v" bandwidth="9">'
        b'<BaseURL>a.mp4</BaseURL><SegmentBase indexRange="0-9"/></Representation></AdaptationSet></Period></MPD>'
    )
    with serving(lambda target, _: Answer(text if target.endswith(".mpd") else b"x" * 10)) as endpoint:
        told = play(endpoint, token)
    assert told["failure"] == {"reason": "HTTP 200: byte ranges are not served", "retry": False}
