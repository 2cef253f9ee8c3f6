"""The exporter against a real HTTPS server."""

import datetime
import json
import random
import socket
import ssl
import threading
import time
from email.utils import format_datetime
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.https_gateway import Gateway, Reply
from tandem.export import Exporter, GatewayAddress, PendingManifests, SetupError
from tandem.export import gateway as link
from tandem.export.clock import Clock, Reading, Stamp
from tandem.export.exporter import DOUBT_S, Comparison, timed
from tandem.export.gateway import LONGEST_S, Link, PathChoice
from tandem.schema import line_protocol
from tandem.schema.record import Record
from tandem.spool import Spool

BOOT = "b1c0ffee-0000-4000-8000-000000000001"
UTC = time.time_ns() // 10**9 * 10**9
"""Of a record whose CLOCK_MONOTONIC is 0."""


def radio(n: int) -> Record:
    return Record.make("radio", {"path": "a", "operator": "A"}, {"state": "idle", "eci": n}, n)


class Setup:
    def __init__(self, gateway: Gateway, folder: Path, paths: dict[str, str | None] | None = None) -> None:
        self.spool = Spool(folder / "spool", BOOT)
        self.times = Clock(folder / "boots.json", BOOT, time.time_ns, lambda: time.time_ns() - UTC)
        self.times.began(1)
        self.times.take(Reading("chrony", 0, UTC, 10_000_000))
        self.runs = folder / "runs"
        self.runs.mkdir()
        self.pending = PendingManifests(folder / "pending", self.runs)
        self.gateway, self.paths = gateway, paths or {"a": None}
        self.exporter = self.made()

    def made(self) -> Exporter:
        address = GatewayAddress.of(self.gateway.url, self.gateway.ca, self.gateway.token_file)
        of = (self.spool, self.pending, address, self.paths, "probe-1", self.times)
        return Exporter(*of, period_s=0.02, chance=random.Random(1))

    def send(self, records: list[Record], arrive: int) -> None:
        """Until so many have arrived, and to the end."""
        self.spool.append(records)
        self.exporter.start()
        self.gateway.until(lambda: len(self.gateway.lines) == arrive)
        assert finish(self)


@pytest.fixture
def setup(gateway, tmp_path):
    return Setup(gateway, tmp_path)


def finish(setup: Setup, drain_s: float = 60.0) -> bool:
    done = setup.exporter.stop(drain_s)
    setup.spool.close()
    return done


def test_everything_arrives_once_over_one_connection(setup, gateway):
    setup.exporter.start()
    for n in range(5):
        setup.spool.append([radio(n * 10 + k) for k in range(10)])
        gateway.until(lambda n=n: len(gateway.lines) == 10 * (n + 1))
    assert finish(setup)
    assert sorted(gateway.lines) == list(range(1, 51))
    assert set(gateway.times_accepted.values()) == {1}
    assert gateway.connections == 1
    point = line_protocol.parse(gateway.lines[1])
    assert point.tags["probe"] == "probe-1"
    assert point.tags["boot"] == BOOT
    assert point.utc_ns == UTC
    assert 2000 < setup.exporter.payload_bytes()["a"] < 100_000  # a handshake and compressed batches, as TCP moved them


def test_while_maintenance_is_held_off_the_newest_go_and_the_backlog_waits(setup, gateway):
    for n in range(40):
        setup.spool.append([radio(n * 100 + k) for k in range(100)])
    batches: list[list[int]] = []
    held = [True]

    def answer(_method: str, _path: str, lines: list[str]) -> Reply | None:
        batches.append([int(line.partition("eci=")[2].partition("i")[0]) for line in lines])
        held[0] = len(batches) < 3
        return None

    gateway.answer = answer
    setup.exporter.held = lambda: held[0]
    setup.exporter.start()
    gateway.until(lambda: len(gateway.lines) == 4000)
    assert finish(setup)
    assert [min(b) for b in batches[:3]] == [3800, 3600, 3400]
    assert max(map(len, batches[:3])) == 200
    assert len(batches[3]) == 1000
    assert min(batches[3]) == 0


def test_rejected_lines_go_to_quarantine_the_rest_counts_as_sent(setup, gateway):
    gateway.answer = gateway.accept_but(lambda line: "eci=7i" in line)
    setup.send([radio(n) for n in range(20)], 19)
    counts = setup.spool.counts()
    assert (counts.sent, counts.rejected, counts.pending) == (19, 1, 0)


def test_too_large_a_batch_is_halved_and_an_unreadable_line_found_by_halving(setup, gateway):
    def answer(_method: str, _path: str, lines: list[str]) -> Reply | None:
        if len(lines) > 30:
            return 413, {"error": "too many lines"}, {}
        return (400, {"error": "unreadable"}, {}) if any("eci=77i" in line for line in lines) else None

    gateway.answer = answer
    setup.send([radio(n) for n in range(200)], 199)
    assert set(gateway.times_accepted.values()) == {1}
    counts = setup.spool.counts()
    assert (counts.sent, counts.rejected) == (199, 1)
    told = json.loads((setup.spool.folder / "quarantine" / "rejected.jsonl").read_text())
    assert told["fields"]["eci"] == 77
    assert "unreadable" in told["reason"]


@pytest.mark.parametrize("status", [401, 503, 404])
def test_while_the_gateway_refuses_everything_is_kept(setup, gateway, status, monkeypatch):
    for name in ("TOKEN_WAIT_S", "UNKNOWN_WAIT_S", "BUSY_WAIT_S"):
        monkeypatch.setattr(f"tandem.export.gateway.{name}", 0.02)
    gateway.answer = lambda _m, _p, _l: (status, {"error": "not now"}, {"Retry-After": "0"})
    setup.spool.append([radio(1)])
    setup.exporter.start()
    gateway.until(lambda: len(gateway.requests) >= 3)
    assert setup.spool.counts().pending == 1
    assert setup.exporter.trouble is not None
    assert "not now" in setup.exporter.trouble
    gateway.answer = lambda _m, _p, _l: None
    gateway.until(lambda: len(gateway.lines) == 1)
    assert finish(setup)
    assert setup.exporter.trouble is None


def test_an_answer_that_does_not_settle_the_batch_settles_nothing(setup, gateway, monkeypatch):
    monkeypatch.setattr("tandem.export.exporter.UNKNOWN_WAIT_S", 0.02)
    odd = [["ok"], {"rejected": {}}, {"accepted": 1, "rejected": []}, {"accepted": 2, "rejected": [{"line": True}]}]
    odd.append({"accepted": 3, "rejected": [{"line": 3, "reason": "x"}]})
    gateway.answer = lambda _m, _p, _l: (200, odd.pop(), {}) if odd else None
    setup.send([radio(1), radio(2), radio(3)], 3)
    assert setup.spool.counts().rejected == 0


def test_a_path_that_is_out_is_left_for_the_other(gateway, tmp_path):
    setup = Setup(gateway, tmp_path, {"a": "no-such-if0", "b": "lo"})
    setup.send([radio(1)], 1)
    assert setup.exporter.path == "b"
    moved = setup.exporter.payload_bytes()
    assert moved["a"] == 0
    assert moved["b"] > 0


def test_stop_does_not_wait_for_a_gateway_that_is_silent(tmp_path, gateway, monkeypatch):
    """Not even in the handshake of TLS."""
    monkeypatch.setattr("tandem.export.gateway.Link", partial(Link, connect_s=600.0, answer_s=600.0))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        gateway.url = f"https://127.0.0.1:{silent.getsockname()[1]}"
        setup = Setup(gateway, tmp_path)
        setup.spool.append([radio(1)])
        setup.exporter.start()
        heard = silent.accept()[0]
        ended = list[bool]()
        stopping = threading.Thread(target=lambda: ended.append(finish(setup, 0.3)), daemon=True)
        stopping.start()
        stopping.join(60)
        heard.close()
    assert ended == [False]
    assert Spool(setup.spool.folder, BOOT).counts().pending == 1


def test_stop_says_that_something_is_left_when_the_time_runs_out_in_the_middle_of_a_backlog(setup, gateway):
    enough = threading.Event()

    def slow(_method: str, _path: str, _lines: list[str]) -> Reply | None:
        return None if len(gateway.lines) < 1000 or enough.wait(60) else (503, {}, {})

    gateway.answer = slow
    setup.spool.append([radio(n) for n in range(2500)])
    setup.exporter.start()
    gateway.until(lambda: len(gateway.lines) == 1000)
    assert not setup.exporter.stop(0.1)  # no trouble at all, and yet not everything
    enough.set()
    assert setup.spool.counts().pending == 1500
    setup.spool.close()


def test_a_manifest_is_sent_until_it_is_acknowledged_also_after_a_restart(setup, gateway, tmp_path):
    (setup.runs / "run-1.json").write_text('{"id": "run-1"}')
    setup.pending.add("run-1")
    setup.pending.add("run-0-gone")
    gateway.answer = lambda method, _p, _l: (503, {"error": "busy"}, {"Retry-After": "0"}) if method == "PUT" else None
    setup.exporter.start()
    gateway.until(lambda: len(gateway.requests) >= 2)
    setup.spool.append([radio(1)])
    gateway.until(lambda: len(gateway.lines) == 1)  # records do not wait for the ledger
    assert not finish(setup, 0.1)
    assert PendingManifests(tmp_path / "pending", setup.runs).waiting() == ["run-1"]
    gateway.answer = lambda _m, _p, _l: None
    setup.spool, setup.pending = Spool(tmp_path / "spool", BOOT), PendingManifests(tmp_path / "pending", setup.runs)
    setup.exporter = setup.made()
    setup.exporter.start()
    gateway.until(lambda: "run-1" in gateway.manifests)
    assert finish(setup)
    assert PendingManifests(tmp_path / "pending", setup.runs).waiting() == []


def test_a_setup_that_cannot_work_is_named(tmp_path):
    file = tmp_path / "token"
    with pytest.raises(SetupError, match="token_file"):
        GatewayAddress.of("https://x:1", None, file)
    for url, token, what in (("http://x:1", "t", "https"), ("https://x:1", "", "no token")):
        file.write_text(token)
        with pytest.raises(SetupError, match=what):
            GatewayAddress.of(url, None, file)


S = 10**9
NOW_S = 1_790_000_000


def test_when_the_two_clocks_are_doubted():
    for ours_s, doubted in (
        (0.0, False),
        (DOUBT_S, False),
        (-DOUBT_S, False),
        (DOUBT_S + 3, True),
        (-DOUBT_S - 3, True),
    ):
        seen = Comparison()
        assert not seen.fresh(0.0, 1)
        ours_ns = int((NOW_S + ours_s) * S)
        for date_s in (float(NOW_S), None):  # an answer without a date says nothing against us
            seen.saw(date_s, ours_ns, ours_ns + S, 5.0, 1)
            assert (seen.doubt is not None) == (doubted and date_s is not None)
            # 2: another map
            assert [seen.fresh(6.0, 1), seen.fresh(6.0, 2), seen.fresh(5000.0, 1)] == [True, False, False]


@given(
    st.text(max_size=60) | st.datetimes().map(lambda at: format_datetime(at.replace(tzinfo=datetime.UTC), usegmt=True))
)
def test_any_date_is_read_or_passed_over(text):
    found = link.http_date_s(text)
    assert found is None or isinstance(found, float)
    assert link.http_date_s(None) is None
    assert link.http_date_s("Sun, 06 Nov 1994 08:49:37 GMT") == 784_111_777


def test_a_probe_a_year_ahead_keeps_its_records_and_says_why(gateway, tmp_path):
    setup = Setup(gateway, tmp_path)
    true_ns = setup.times.now_ns
    setup.times.now_ns = lambda: true_ns() + 365 * 86_400 * S  # the clock that is wrong
    setup.spool.append([radio(1)])
    setup.exporter.start()
    gateway.until(lambda: setup.exporter.trouble)
    assert "one of them is wrong" in str(setup.exporter.trouble)
    assert gateway.lines == {}
    setup.times.now_ns = true_ns
    assert finish(setup)
    assert list(gateway.lines) == [1]
    assert not (tmp_path / "spool" / "quarantine" / "rejected.jsonl").exists()


def test_a_certificate_out_of_its_time_is_the_clocks_fault_and_no_paths():
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = 9, "certificate is not yet valid"
    with pytest.raises(link.CertificateTimeError, match="not yet valid by this system's clock"):
        link._out_of_its_time(error)
    error.verify_code = 18
    link._out_of_its_time(error)


def test_a_manifest_gets_the_times_of_its_records():
    content = b'{"boot": "b", "started_monotonic_ns": 5, "ended_monotonic_ns": 9, "started_utc_ns": null, "ended_utc_ns": null}'
    told = timed(content, lambda _boot, mono: Stamp(1000 + mono, None))
    assert b'"started_utc_ns": 1005' in told
    assert b'"ended_utc_ns": 1009' in told
    assert timed(told, lambda _boot, mono: Stamp(1000 + mono, None)) == told
    assert timed(b"no manifest", lambda _boot, _mono: Stamp(0, None)) == b"no manifest"


def test_the_path_that_last_worked_is_tried_first_and_when_all_failed_the_one_due_first_is_waited_for():
    choice = PathChoice(["a", "b"], random.Random(1))
    assert choice.next(0) == "a"
    choice.failed("a", 0)
    assert choice.next(0) == "b"
    choice.worked("b")
    assert choice.next(100) == "b"  # although a might work again by now
    choice = PathChoice(["a", "b"], random.Random(1))
    choice.failed("a", 0)
    choice.failed("b", 0)
    assert choice.next(0.1) is None
    assert 0.5 <= choice.wait_s(0) <= 1.0
    assert choice.next(choice.wait_s(0)) is not None


@given(st.integers(1, 40), st.integers(0, 2**32))
def test_the_wait_grows_and_is_bounded(failures, seed):
    choice = PathChoice(["a"], random.Random(seed))
    for _ in range(failures):
        choice.failed("a", 0)
    least = min(LONGEST_S, 2.0 ** (failures - 1)) / 2
    assert least <= choice.wait_s(0) <= LONGEST_S
