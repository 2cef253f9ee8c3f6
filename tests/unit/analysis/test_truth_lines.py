import json

from hypothesis import given
from hypothesis import strategies as st

from tandem_server.analysis.truth import read


def line(t: float, kind: str, **keys: object) -> bytes:
    at = 100 * 10**9 + round(t * 1e9)
    return json.dumps({"t_s": t, "monotonic_ns": at, "utc_ns": at + 10**18, "type": kind, **keys}).encode() + b"\n"


def test_each_type_lands_in_its_place():
    truth = read(
        [
            line(0.0, "phase", name="home", activity="still", speed_m_s=0, until_s=5.0),
            line(0.0, "mobility", moving=False, speed_m_s=0),
            line(0.1, "link", operator="A", down_bit_per_s=2e7, rtt_ms=40, outage=False),
            line(0.2, "link", operator="A", down_bit_per_s=2e7, rtt_ms=40, outage=True),
            line(0.3, "handover", operator="A", from_eci=1, to_eci=2, interruption_ms=50.0),
            line(0.4, "signal_drop", operator="B", change_db=-7.5),
            line(0.5, "link_log", operator="A", direction="down", delay_ms=12.0),
            line(0.6, "fault", operator="B", fault="hang", seconds=3),
            line(0.7, "shape", until_s=2.5, paths={"wifi": {"rtt_ms": 100.0, "down_loss_percent": 0.0}}),
        ]
    )
    assert truth.epoch_monotonic_ns == 100 * 10**9
    assert truth.phases[0].end_s == 5.0
    assert list(truth.links["A"].down_bit_per_s) == [2e7, 0.0]
    assert (truth.handovers[0].to_eci, truth.drops[0].change_db, truth.faults[0].fault) == (2, -7.5, "hang")
    assert truth.queue_delay_ms["A"][1][0] == 12.0
    assert [(s.start_s, s.end_s, s.paths["wifi"]["rtt_ms"]) for s in truth.shapes] == [(0.7, 2.5, 100.0)]
    assert (truth.strange_lines, truth.cut) == (0, False)


def test_a_shape_without_its_end_or_its_paths_is_strange():
    truth = read([line(0.0, "shape", paths={"a": {}}), line(0.0, "shape", until_s=1.0, paths={"a": 5})])
    assert (truth.shapes, truth.strange_lines) == ([], 2)


def test_cut_last_line_is_told_apart_from_a_broken_one_inside():
    whole = line(1.0, "mobility", moving=True)
    assert (lambda t: (t.cut, t.strange_lines, t.mobility))(read([whole, whole[:30]])) == (True, 0, [(1.0, True)])
    inside = read([whole[:30], whole])
    assert (inside.cut, inside.strange_lines) == (False, 1)


def test_unknown_types_of_a_newer_bench_are_passed_over():
    assert read([line(1.0, "weather", rain=True)]).strange_lines == 0


JSON = st.sampled_from(
    [None, True, False, 0, -1, 7, 10**400, 1.5, -1e308, float("nan"), float("inf"), "", "A", [], [1], {}, {"a": 1}]
)
KEYS = [
    "t_s",
    "type",
    "operator",
    "moving",
    "down_bit_per_s",
    "rtt_ms",
    "outage",
    "from_eci",
    "to_eci",
    "change_db",
    "until_s",
]
KINDS = st.sampled_from(
    ["phase", "mobility", "radio", "link", "handover", "signal_drop", "outage", "fault", "link_log"]
)


@given(
    st.lists(st.dictionaries(st.sampled_from([*KEYS, "monotonic_ns", "utc_ns", "delay_ms"]), JSON), max_size=5), KINDS
)
def test_any_values_under_the_known_keys_are_survived(entries, kind):
    read([json.dumps({**entry, "type": kind}).encode() for entry in entries])
    read([json.dumps({"t_s": 1.0, "operator": "A", **entry, "type": kind}).encode() for entry in entries])


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_any_bytes_are_survived(lines):
    truth = read(lines)
    assert truth.strange_lines + truth.cut <= len(lines)
