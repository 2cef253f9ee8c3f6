"""Nothing goes out and nothing is rejected while this probe and the server do not agree about the time."""

import ssl
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

import pytest
from https_gateway import Gateway
from hypothesis import given
from hypothesis import strategies as st
from test_export_https import Setup, finish, radio

from tandem.export import gateway as link
from tandem.export.manifests import timed
from tandem.export.times import DOUBT_S, Comparison, Stamp

S = 10**9
NOW_S = 1_790_000_000


@pytest.mark.parametrize(
    ("ours_s", "doubted"),
    [(0.0, False), (DOUBT_S, False), (-DOUBT_S, False), (DOUBT_S + 3, True), (-DOUBT_S - 3, True)],
)
def test_when_the_two_clocks_are_doubted(ours_s: float, doubted: bool) -> None:
    seen = Comparison()
    assert not seen.fresh(0.0, 1)
    ours_ns = int((NOW_S + ours_s) * S)
    seen.saw(float(NOW_S), ours_ns, ours_ns + S, 5.0, 1)
    assert (seen.doubt is not None) == doubted
    assert seen.fresh(6.0, 1)
    assert not seen.fresh(6.0, 2)  # another map
    assert not seen.fresh(5000.0, 1)


def test_an_answer_without_a_date_says_nothing_against_us() -> None:
    seen = Comparison()
    seen.saw(None, 5, 6, 0.0, 1)
    assert seen.doubt is None


@given(st.text(max_size=60) | st.datetimes().map(lambda at: format_datetime(at.replace(tzinfo=UTC), usegmt=True)))
def test_any_date_is_read_or_passed_over(text: str) -> None:
    found = link.http_date_s(text)
    assert found is None or isinstance(found, float)


def test_a_date_is_read() -> None:
    assert link.http_date_s("Sun, 06 Nov 1994 08:49:37 GMT") == datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC).timestamp()
    assert link.http_date_s(None) is None


def test_a_probe_a_year_ahead_keeps_its_records_and_says_why(gateway: Gateway, tmp_path: Path) -> None:
    setup = Setup(gateway, tmp_path)
    true_ns = setup.times.now_ns
    setup.times.now_ns = lambda: (true_ns() or 0) + 365 * 86_400 * S  # type: ignore[method-assign]  the clock that is wrong
    setup.spool.append([radio(1)])
    setup.exporter.start()
    gateway.until(lambda: setup.exporter.state.trouble)
    assert "one of them is wrong" in str(setup.exporter.state.trouble)
    assert gateway.lines == {}
    setup.times.now_ns = true_ns  # type: ignore[method-assign]
    assert finish(setup)
    assert list(gateway.lines) == [1]
    assert not (tmp_path / "spool" / "quarantine" / "rejected.jsonl").exists()


def test_a_certificate_out_of_its_time_is_the_clocks_fault_and_no_paths() -> None:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = 9, "certificate is not yet valid"
    with pytest.raises(link.CertificateTimeError, match="not yet valid by this system's clock"):
        link._out_of_its_time(error)
    error.verify_code = 18
    link._out_of_its_time(error)


def test_a_manifest_gets_the_times_of_its_records() -> None:
    content = b'{"boot": "b", "started_monotonic_ns": 5, "ended_monotonic_ns": 9, "started_utc_ns": null, "ended_utc_ns": null}'
    told = timed(content, lambda _boot, mono: Stamp(1000 + mono, None))
    assert b'"started_utc_ns": 1005' in told
    assert b'"ended_utc_ns": 1009' in told
    assert timed(told, lambda _boot, mono: Stamp(1000 + mono, None)) == told
    assert timed(b"no manifest", lambda _boot, _mono: Stamp(0, None)) == b"no manifest"
