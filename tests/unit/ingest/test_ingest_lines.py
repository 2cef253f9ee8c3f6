"""Which lines may go into the database, and under whose name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.schema.line_protocol import parse
from tandem_server.ingest.lines import EARLIEST_UTC_NS, LINES_LIMIT, TimeWindow, TooMuch, sift

NOW = 1_800_000_000 * 10**9
WINDOW = TimeWindow.at(NOW, 600.0, None)
GOOD = f"radio,boot=b,path=a,probe=probe-1 monotonic_ns=5i,rsrp_dbm=-90.0,seq=1i {NOW}"


def reasons(body, window=WINDOW):
    return dict(sift(body, "probe-1", window).rejected)


def test_a_good_line_goes_in_as_it_is():
    sifted = sift(GOOD + "\n", "probe-1", WINDOW)
    assert (sifted.lines, sifted.origins, sifted.rejected) == ([GOOD], [0], [])


def test_the_probe_tag_is_the_tokens_whatever_the_line_says():
    for line in (GOOD.replace("probe-1", "somebody"), GOOD.replace(",probe=probe-1", "")):
        (stored,) = sift(line, "probe-1", WINDOW).lines
        assert parse(stored).tags["probe"] == "probe-1"


def test_types_are_the_tables_so_that_no_conflict_can_arise():
    (stored,) = sift(GOOD.replace("-90.0", "-90i"), "probe-1", WINDOW).lines
    assert "rsrp_dbm=-90.0" in stored


def test_a_bad_line_is_named_and_the_others_pass():
    for line, reason in (
        (GOOD.replace("seq=1i", "pci=1i"), "no field 'seq'"),
        (GOOD.replace("monotonic_ns=5i,", ""), "no field 'monotonic_ns'"),
        (GOOD.replace("boot=b,", ""), "no tag 'boot'"),
        (GOOD.rsplit(" ", 1)[0], "no time"),
        (GOOD.replace(str(NOW), str(NOW + 601 * 10**9)), "in the future"),
        (GOOD.replace(str(NOW), str(EARLIEST_UTC_NS - 1)), "the oldest kept"),
        (GOOD.replace("rsrp_dbm=-90.0", "rsrp_dbm=99.0"), "above -30"),
        (GOOD.replace("rsrp_dbm", "rsrp"), "unknown field"),
        (GOOD.replace("radio", "weather"), "unknown measurement"),
        ("# a comment", "field without a value"),
    ):
        sifted = sift(f"{GOOD}\n\n{line}\n{GOOD}\n", "probe-1", WINDOW)
        assert sifted.origins == [0, 3]
        ((number, why),) = sifted.rejected
        assert (number, reason in why) == (2, True), line


def test_the_window_moves_with_retention():
    window = TimeWindow.at(NOW, 600.0, 30)
    old = GOOD.replace(str(NOW), str(NOW - 31 * 86_400 * 10**9))
    assert "the oldest kept" in reasons(old, window)[0]
    assert reasons(old) == {}


def test_a_request_has_at_most_so_many_lines():
    assert len(sift("\n".join([GOOD] * LINES_LIMIT) + "\n", "probe-1", WINDOW).lines) == LINES_LIMIT
    with pytest.raises(TooMuch):
        sift("\n".join([GOOD] * (LINES_LIMIT + 1)), "probe-1", WINDOW)


PIECES = st.lists(
    st.sampled_from(
        [*'abz09-+.ei,= \\"\n\r', GOOD, "radio,path=a ", "rsrp_dbm=", str(NOW), "probe=x", "\u2028", "\x85"]
    ),
    max_size=25,
).map("".join)


@given(st.one_of(PIECES, st.text()))
def test_every_line_of_any_body_is_stored_rejected_or_empty(body):
    sifted = sift(body, "probe-1", WINDOW)
    numbers = sifted.origins + [number for number, _ in sifted.rejected]
    assert sorted(numbers) == [i for i, line in enumerate(body.split("\n")) if line]
    for line in sifted.lines:
        assert "\n" not in line
        assert parse(line).tags["probe"] == "probe-1"
