"""Which lines may go into the database, and under whose name."""

import math
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tandem.schema.line_protocol import encode, parse
from tandem.schema.metrics import MEASUREMENTS
from tandem.schema.record import Record
from tandem_server.ingest.lines import (
    EARLIEST_UTC_NS,
    LINES_LIMIT,
    FastPathCache,
    TimeWindow,
    TooMuch,
    fast_path,
    validate_batch,
)

NOW = 1_800_000_000 * 10**9
WINDOW = TimeWindow.at(NOW, 600.0, None)
GOOD = f"radio,boot=b,path=a,probe=probe-1 monotonic_ns=5i,rsrp_dbm=-90.0,seq=1i {NOW}"


def reasons(body, window=WINDOW):
    return dict(validate_batch(body, "probe-1", window).rejected)


def test_a_good_line_goes_in_as_it_is_under_the_tokens_probe_with_the_tables_types():
    sifted = validate_batch(GOOD + "\n", "probe-1", WINDOW)
    assert (sifted.lines, sifted.origins, sifted.rejected) == ([GOOD], [0], [])
    for line in (GOOD.replace("probe-1", "somebody"), GOOD.replace(",probe=probe-1", "")):
        (stored,) = validate_batch(line, "probe-1", WINDOW).lines
        assert parse(stored).tags["probe"] == "probe-1"
    (stored,) = validate_batch(GOOD.replace("-90.0", "-90i"), "probe-1", WINDOW).lines
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
        sifted = validate_batch(f"{GOOD}\n\n{line}\n{GOOD}\n", "probe-1", WINDOW)
        assert sifted.origins == [0, 3]
        ((number, why),) = sifted.rejected
        assert (number, reason in why) == (2, True), line


def test_the_window_moves_with_retention_and_a_request_has_at_most_so_many_lines():
    window = TimeWindow.at(NOW, 600.0, 30)
    old = GOOD.replace(str(NOW), str(NOW - 31 * 86_400 * 10**9))
    assert "the oldest kept" in reasons(old, window)[0]
    assert reasons(old) == {}
    assert len(validate_batch("\n".join([GOOD] * LINES_LIMIT) + "\n", "probe-1", WINDOW).lines) == LINES_LIMIT
    with pytest.raises(TooMuch):
        validate_batch("\n".join([GOOD] * (LINES_LIMIT + 1)), "probe-1", WINDOW)


PIECES = [*'abz09-+.ei,= \\"\n\r', GOOD, "radio,path=a ", "rsrp_dbm=", str(NOW), "probe=x", "\u2028", "\x85"]


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text())
def test_every_line_of_any_body_is_stored_rejected_or_empty(body):
    sifted = validate_batch(body, "probe-1", WINDOW)
    numbers = sifted.origins + [number for number, _ in sifted.rejected]
    assert sorted(numbers) == [i for i, line in enumerate(body.split("\n")) if line]
    for line in sifted.lines:
        assert "\n" not in line
        assert parse(line).tags["probe"] == "probe-1"


TEXTS = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ["connected", "a b", "x,y=1 2", '"', "\\", "\r", "é\u2028"]
)


def fitting(field):
    """A value that the table allows, edges of the range included."""
    if field.kind == "str":
        return TEXTS
    if field.kind == "bool":
        return st.booleans()
    least, most = field.minimum, field.maximum
    if field.kind == "int":
        return st.integers(-(2**63) if least is None else int(least), 2**63 - 1 if most is None else int(most))
    return st.floats(least, most, allow_nan=False, allow_infinity=False) | st.sampled_from(
        [float(v) for v in (least, most) if v is not None] or [0.0, -0.0, 1e-7, 1e22]
    )


@st.composite
def exported(draw):
    """A line as the exporter writes it."""
    kind = draw(st.sampled_from(list(MEASUREMENTS.values())))
    fields = {
        f.name: draw(fitting(f))
        for f in draw(st.lists(st.sampled_from(kind.fields), unique=True, min_size=1, max_size=6))
    }
    tags = {tag: draw(st.sampled_from(["a", "b c", "x=1", "ü"])) for tag in kind.tags if draw(st.booleans())}
    record = Record.make(kind.name, tags, fields, draw(st.integers(0, 2**63 - 1)))
    at = draw(st.integers(WINDOW.oldest_utc_ns - 1, WINDOW.newest_utc_ns + 1))
    common = {"probe": draw(st.sampled_from(["probe-1", "liar"])), "boot": "b0"}
    return encode(record, common, draw(st.integers(1, 2**63 - 1)), at)


ODD = [
    *'019-+.eEi,= \\"\n\rtruefalse', "seq=1i", "monotonic_ns=5i", ",seq=2i", "-0i", "007i", "1e5", "-0.0", "99999999999999999999i",
    ".5", "5.", "1_0", "\u0661", "NaN", "rsrp_dbm=", "t", '"', '""', " ", "  ", ",,", str(NOW), f" {NOW}", "\x00",
]  # fmt: skip


@st.composite
def spoilt(draw):
    """Such a line with pieces cut out, doubled or put in."""
    line = draw(exported())
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(line)))
        to = min(len(line), at + draw(st.integers(0, 6)))
        line = line[:at] + draw(st.sampled_from(["", line[at:to] * 2, *ODD])) + line[to:]
    return line


def same(line):
    """Judged with all heads known, as it is judged without any."""
    heads, own = FastPathCache(), f"{line.partition(' ')[0]} seq=1i,monotonic_ns=1i {NOW}"
    validate_batch(line, "probe-1", WINDOW, heads)
    for other in MEASUREMENTS:  # heads of lines that were good, whatever becomes of this one
        validate_batch(f"{own}\n{other},boot=b0 seq=1i,monotonic_ns=1i {NOW}", "probe-1", WINDOW, heads)
    short, long = validate_batch(line, "probe-1", WINDOW, heads), validate_batch(line, "probe-1", WINDOW)
    assert (short.origins, short.rejected) == (long.origins, long.rejected)
    for one, other in zip(short.lines, long.lines, strict=True):
        read, expected = parse(one), parse(other)
        assert (one.partition(" ")[0], read) == (other.partition(" ")[0], expected)
        for name, value in read.fields.items():
            assert type(value) is type(expected.fields[name])
            assert not isinstance(value, float) or math.copysign(1, value) == math.copysign(1, expected.fields[name])


@given(exported(), st.lists(st.sampled_from(ODD), max_size=12).map("".join))
def test_what_an_exporter_writes_and_any_fields_after_a_known_head_are_judged_alike(line, rest):
    same(line)
    same(f"radio,boot=b0,path=a {rest}")


@given(spoilt())
@example(f"connection,boot=b0 bytes=1i,monotonic_ns=1i,seq=1i, {NOW}")
@example(f"connection,boot=b0 monotonic_ns=1i,seq=1i,seq=1i {NOW}")
@example(f"connection,boot=b0 monotonic_ns=1i,seq=1i,subflows=65i {NOW}")
@example(f"connection,boot=b0 monotonic_ns=1i,seq=0i {NOW}")
@example(f"connection,boot=b0 monotonic_ns=1i,seq=9223372036854775808i {NOW}")
@example(f"radio,boot=b0 monotonic_ns=1i,rsrp_dbm=-157.00000000000001,seq=1i {NOW}")
@example(f"radio,boot=b0 monotonic_ns=1i,rsrp_dbm=-157.1,seq=1i {NOW}")
@example(f"radio,boot=b0 monotonic_ns=1i,pci=1008i,seq=1i {NOW}")
@example(f"subflow,boot=b0 monotonic_ns=1i,rcv_rtt_ms=4.rtt_ms=1.5,seq=1i {NOW}")
@example(f'radio,boot=b0 monotonic_ns=1i,seq=1i,state="a" ,b=" {NOW}')
def test_what_is_spoilt_is_judged_alike(line):
    same(line)


def test_an_exporters_lines_do_take_the_short_way():
    """Otherwise the tests above would show nothing: most of a real batch must."""
    chance, heads, lines = random.Random(3), FastPathCache(), []
    for i in range(200):
        fields = {"rsrp_dbm": -chance.randint(80, 110), "pci": chance.randint(0, 503), "stale": False}
        fields |= {"state": "connected", "poll_late_ms": chance.uniform(0, 5)}
        record = Record.make("radio", {"path": "a"}, fields, i)
        lines.append(encode(record, {"probe": "probe-1", "boot": "b0"}, i + 1, NOW + i))
    assert validate_batch("\n".join(lines), "probe-1", WINDOW, heads).lines == lines
    mine = heads.of("probe-1")
    short = [line for line in lines if fast_path(line, mine, WINDOW.oldest_utc_ns, WINDOW.newest_utc_ns) == line]
    assert len(short) == len(lines)


def test_another_probes_head_is_not_mine():
    heads, line = FastPathCache(), f"health,boot=b0,probe=probe-1 monotonic_ns=1i,seq=1i {NOW}"
    for probe in ("probe-1", "probe-2", "probe-2"):
        (stored,) = validate_batch(line, probe, WINDOW, heads).lines
        assert parse(stored).tags["probe"] == probe


@pytest.mark.parametrize("probes", [1, 50])
def test_what_is_remembered_is_bounded(probes):
    heads = FastPathCache(most=100)
    for i in range(1000):
        validate_batch(f"health,boot=b{i} monotonic_ns=1i,seq=1i {NOW}", f"probe-{i % probes}", WINDOW, heads)
        assert len(heads) <= 100
    assert len(heads) > 0
