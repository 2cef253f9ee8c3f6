"""After any order and lateness of arrival, whatever failed meanwhile, roll-ups are those of all raw records at once. A real database."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rolled_up import expected, found

from tandem.schema.line_protocol import Point
from tandem.schema.metrics import RADIO_STATES
from tandem_server.derived.rollups import CONSUMER, HOUR_S, SETTLED_AFTER_S, Rollups, Span
from tandem_server.registry import Registry, late_hours
from tandem_server.schema.measurements import PROBE_STATES, encode_point
from tandem_server.store import Influx, QueryError
from tandem_server.store.preparing import Kept, prepare
from tandem_server.store.private import account_password

BASE_S = 1_577_836_800 + 5 * 86_400
SPAN_S = 2 * HOUR_S
MEASUREMENTS = ("radio", "usage", "probe_state", "run")

tenths = st.integers(-1400, -600).map(lambda v: v / 10)
FIELDS = {
    "radio": st.fixed_dictionaries(
        {"seq": st.integers(1, 99)},
        optional={
            "rsrp_dbm": tenths,
            "sinr_db": st.sampled_from([0.0, 3.5, -2.0]),
            "state": st.sampled_from(RADIO_STATES),
            "stale": st.booleans(),
            "eci": st.integers(0, 5),
            "poll_duration_ms": st.integers(0, 4000).map(float),
        },
    ),
    "usage": st.fixed_dictionaries({"seq": st.integers(1, 99), "received_bytes": st.integers(0, 2**40)}),
    "probe_state": st.integers(0, len(PROBE_STATES) - 1).map(lambda n: {"state": PROBE_STATES[n], "state_code": n}),
    "run": st.fixed_dictionaries(
        {"seq": st.integers(1, 99)},
        optional={
            "bytes": st.integers(0, 10**9),
            "ok": st.booleans(),
            "goodput_bit_per_s": st.integers(0, 10**8).map(float),
        },
    ),
}
TAGS = {
    "radio": st.fixed_dictionaries(
        {"path": st.sampled_from("ab"), "boot": st.sampled_from(["b1", "b2"])}, optional={"rat": st.just("lte")}
    ),
    "usage": st.fixed_dictionaries({"path": st.sampled_from("ab"), "boot": st.sampled_from(["b1", "b2"])}),
    "probe_state": st.just({}),
    "run": st.fixed_dictionaries(
        {"run": st.sampled_from(["r1", "r2", "r3"]), "boot": st.just("b1")}, optional={"campaign": st.just("c")}
    ),
}


@st.composite
def arrivals(draw):
    """Lines with the second in which each arrives, some of them twice; times are all different."""
    times = draw(st.lists(st.integers(0, SPAN_S * 10 - 1), min_size=1, max_size=25, unique=True))
    out = []
    for tenth in times:
        name = draw(st.sampled_from(MEASUREMENTS))
        # The server's own points are written by itself, at once.
        late_s = 0 if name == "probe_state" else draw(st.sampled_from([0, 1, 90, 130, 600, 4000, 9000]))
        tags = {**draw(TAGS[name]), "probe": draw(st.sampled_from(["p1", "p2"]))}
        utc_ns = BASE_S * 10**9 + tenth * 10**8
        line = encode_point(Point(name, tags, draw(FIELDS[name]), utc_ns))
        arrives_s = BASE_S + tenth // 10 + 1 + late_s
        out.append((arrives_s, line))
        if draw(st.integers(0, 4)) == 0 and name != "probe_state":
            out.append((arrives_s + draw(st.sampled_from([0, 50, 5000])), line))
    return out


steps = st.lists(
    st.tuples(
        st.sampled_from([10, 60, 61, 300, 1800, 5000]), st.sampled_from(["works", "works", "away", "begins anew"])
    ),
    min_size=1,
    max_size=12,
)


class Server:
    """Gateway's notes and the loop, by a clock of the test's."""

    def __init__(self, registry, store):
        self.registry, self.store, self.monotonic_s = registry, store, 1000.0
        self.begin_anew()

    def begin_anew(self):
        self.rollups = Rollups(self.registry, self.store, Kept(), MEASUREMENTS)

    def arrive(self, lines, now_s):
        assert self.store.write(lines) == []
        hours = set()
        for line in lines:
            if ",probe=" in line and not line.startswith("probe_state"):
                probe = line.partition(",probe=")[2][:2]
                hours |= late_hours(probe, [line], now_s * 10**9)
        self.registry.late.note(hours, now_s * 10**9)

    def work(self, now_s):
        self.rollups.fresh(now_s)
        for _ in self.rollups.late(now_s, self.monotonic_s):
            self.rollups.fresh(now_s)
        for _ in self.rollups.settle(now_s):
            pass


def close(one, other):
    """Fields of a point: whole numbers, words and truth values the same, fractions but for rounding."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert other[name] == (pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value), name
        assert isinstance(other[name], bool) == isinstance(value, bool), name


def compare(store, lines):
    for measurement in MEASUREMENTS:
        for step in ("minute", "hour"):
            wanted, there = expected(lines, measurement, step), found(store, measurement, step)
            assert wanted.keys() == there.keys(), (measurement, step)
            for key, fields in wanted.items():
                close(fields, there[key])


@pytest.fixture
def database(private_influx):
    """An empty database for each example."""
    with private_influx.client("admin") as admin:
        admin.query('DROP DATABASE "rolled"')
    password = account_password(private_influx.folder, "admin")
    with Influx(private_influx.url, "rolled", "admin", password, timeout_s=600) as client:

        def empty():
            client.query('DROP DATABASE "rolled"')
            prepare(client, Kept())
            return client

        yield empty
        client.query('DROP DATABASE "rolled"')


@settings(
    max_examples=settings.default.max_examples // 5,  # each is a database of its own, worked on for hours of its time
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(arrivals(), steps)
def test_any_order_and_lateness_of_arrival_leaves_no_trace(database, made, taken):
    store = database()
    with tempfile.TemporaryDirectory() as folder, Registry(Path(folder) / "registry.sqlite") as registry:
        server = Server(registry, store)
        waiting, now_s = sorted(made), BASE_S
        for length_s, how in taken:
            now_s, server.monotonic_s = now_s + length_s, server.monotonic_s + length_s
            while waiting and waiting[0][0] <= now_s:
                at_s, line = waiting.pop(0)
                server.arrive([line], at_s)
            if how == "begins anew":
                server.begin_anew()
            if how != "away":
                server.work(now_s)
        for at_s, line in waiting:
            server.arrive([line], max(at_s, now_s))
        end_s = max(now_s, BASE_S + SPAN_S) + HOUR_S + SETTLED_AFTER_S
        for _ in range(3):  # seen, ripe, done
            server.monotonic_s += 31
            server.work(end_s)
        assert registry.late.waiting(CONSUMER) == (0, None)
        compare(store, [line for _, line in made])


def radio(at_s, value, probe="p1", boot="b1"):
    return f"radio,boot={boot},path=a,probe={probe} rsrp_dbm={value},seq=1i {int(at_s * 10**9)}"


def test_many_probes_late_hour_is_made_by_one_statement_and_a_probes_day_in_one_piece(database, tmp_path, monkeypatch):
    store = database()
    with Registry(tmp_path / "registry.sqlite") as registry:
        rollups = Rollups(registry, store, Kept(), ("radio",))
        made = []
        monkeypatch.setattr(rollups, "make", lambda span, _now: made.append(span))
        registry.late.note({(f"p{n}", "radio", BASE_S) for n in range(9)}, 1)
        registry.late.note({("p1", "radio", BASE_S + HOUR_S * n) for n in range(30, 60)}, 1)
        assert list(rollups.late(BASE_S, 0.0)) == []
        assert sum(rollups.late(BASE_S, 31.0)) == 39
        assert made == [
            Span("radio", BASE_S, BASE_S + HOUR_S),
            Span("radio", BASE_S + HOUR_S * 36, BASE_S + HOUR_S * 60, "p1"),
            Span("radio", BASE_S + HOUR_S * 30, BASE_S + HOUR_S * 36, "p1"),
        ]
        assert registry.late.pending(CONSUMER) == []


class Counting:
    """A database that counts its statements."""

    database = "tandem"

    def __init__(self):
        self.statements = []

    def query(self, statement):
        self.statements.append(statement)
        return []


def test_late_hours_of_many_probes_take_as_many_statements_as_one_probes(tmp_path):
    asked = []
    for probes in (1, 300):
        store = Counting()
        with Registry(tmp_path / f"{probes}.sqlite") as registry:
            rollups = Rollups(registry, store, Kept(), ("radio",))
            # One probe's alone is asked for by its name; a second one's makes the hour everybody's.
            registry.late.note({(f"p{n}", "radio", BASE_S) for n in range(probes)}, 1)
            assert list(rollups.late(BASE_S, 0.0)) == []
            assert sum(rollups.late(BASE_S + HOUR_S, 31.0)) == probes
        asked.append(len(store.statements))
    assert asked[0] == asked[1] > 0


def test_what_a_database_held_before_is_rolled_up_from_its_beginning(database, tmp_path):
    store = database()
    later_s = BASE_S + 100 * 86_400
    lines = [radio(BASE_S + 10, -80), radio(later_s, -90)]
    store.write(lines)
    with Registry(tmp_path / "registry.sqlite") as registry:
        rollups = Rollups(registry, store, Kept(), MEASUREMENTS)
        spans = list(rollups.settle(later_s + 3 * HOUR_S))
        assert len(spans) < 400  # an empty day is one piece
        compare(store, lines)
        assert list(rollups.settle(later_s + 3 * HOUR_S)) == []


def test_another_table_makes_them_anew(database, tmp_path, monkeypatch):
    store = database()
    store.write([radio(BASE_S + 10, -80)])
    with Registry(tmp_path / "registry.sqlite") as registry:
        rollups = Rollups(registry, store, Kept(), ("radio",))
        assert list(rollups.settle(BASE_S + 2 * HOUR_S))
        assert not list(rollups.settle(BASE_S + 2 * HOUR_S))
        monkeypatch.setattr("tandem_server.derived.rollups.made_by", lambda _: "another")
        assert list(rollups.settle(BASE_S + 2 * HOUR_S))


def test_without_policies_it_says_so_and_keeps_the_notes(private_influx, tmp_path):
    with private_influx.client("admin") as admin:
        admin.query('CREATE DATABASE "bare"')
        try:
            with Influx(private_influx.url, "bare", "admin", account_password(private_influx.folder, "admin")) as bare:
                bare.write([radio(BASE_S + 10, -80)])
                with Registry(tmp_path / "registry.sqlite") as registry:
                    registry.late.note({("p1", "radio", BASE_S)}, 1)
                    rollups = Rollups(registry, bare, Kept(), ("radio",), settle_s=0)
                    with pytest.raises(QueryError, match="retention policy"):
                        list(rollups.late(BASE_S + HOUR_S, 0.0))
                    assert registry.late.waiting(CONSUMER)[0] == 1
        finally:
            admin.query('DROP DATABASE "bare"')
