"""After any order and lateness of arrival, whatever failed meanwhile, roll-ups are those of all raw records at once. A real database."""

import json
import stat
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rolled_up import expected, found

from support.serve_on_loopback import await_ready, command, end, start
from tandem.schema.line_protocol import Point
from tandem.schema.metrics import RADIO_STATES
from tandem_server.derived.rollups import CONSUMER, HOUR_S, SETTLED_AFTER_S, Rollups
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


# --- the command, with a whole server: late lines through the gateway, roll-ups from the database


HOUR_NS = 3600 * 10**9


def polled(utc_ns, number):
    return f"radio,boot=b,path=a rsrp_dbm={-60.0 - number % 50},seq={number}i,monotonic_ns=5i {utc_ns}"


def config(server):
    return server.folder / "server.toml"


def late(server):
    return json.loads(command("series", "status", "--json", "--config", config(server))[1])["late"]


def test_late_lines_are_noted_before_the_answer_and_rolled_up_in_the_end(server):
    """By the loop of a server that was started anew."""
    old_ns = (time.time_ns() - 50 * HOUR_NS) // HOUR_NS * HOUR_NS
    lines = [polled(old_ns + n * 10**9, n + 1) for n in range(90)]
    status, _, answer = server.gateway("POST", "/v1/records", "\n".join(lines).encode())
    assert (status, answer["rejected"]) == (200, [])
    status, out, _ = command("series", "status", "--json", "--config", config(server))
    told = json.loads(out)
    assert (status, told["lacks"], told["late"]["rollups"]["hours"]) == (0, [], 1)
    assert told["late"]["coverage"]["hours"] == 1

    fresh = time.time_ns() - 10**10
    server.gateway("POST", "/v1/records", polled(fresh, 99).encode())
    assert late(server) == told["late"]

    wanted = expected([line.replace("boot=b", "boot=b,probe=probe-1") for line in lines], "radio", "hour")
    ((window, tags),) = wanted
    assert end(server.process) == 0
    with config(server).open("a") as toml:
        toml.write("[series]\nsettle_s = 1\n")
    server.process = start(server.folder)
    await_ready(server.process, "endpoint")
    deadline_s = time.monotonic() + 120
    with server.store() as store:
        while late(server)["rollups"]["hours"]:
            assert time.monotonic() < deadline_s, command("series", "status", "--config", config(server))[1]
            time.sleep(0.1)
        there = found(store, "radio", "hour")[window, tags]
        assert there["records"] == 90
        assert there["rsrp_dbm"] == pytest.approx(wanted[window, tags]["rsrp_dbm"])


def test_recompute_makes_a_span_again_and_tells_how_far_it_is(server):
    old_ns = (time.time_ns() - 30 * HOUR_NS) // HOUR_NS * HOUR_NS
    with server.store() as store:
        line = polled(old_ns + 7, 1).replace("boot=b", "boot=b,probe=probe-1")
        assert store.write([line]) == []  # past the gateway: nothing is noted
        begin = time.strftime("%Y-%m-%dT%H:%M", time.gmtime(old_ns // 10**9))
        options = ("--from", begin, "--measurement", "radio", "--probe", "probe-1", "--json")
        status, out, _ = command("series", "recompute", *options, "--config", config(server))
        told = [json.loads(one) for one in out.splitlines()]
        assert (status, told[-1]["done"]) == (0, True)
        assert [one["pieces_done"] for one in told[:-1]] == list(range(1, told[-1]["pieces"] + 1))
        tags = {"probe": "probe-1", "path": "a", "operator": "", "rat": ""}
        assert (old_ns, tuple(sorted(tags.items()))) in found(store, "radio", "hour")


def test_status_for_people(server):
    status, out, _ = command("series", "status", "--config", config(server))
    assert (status, "policy    minute: for ever" in out, "LACKS" in out) == (0, True, False)


def test_what_is_wrong_is_told_in_one_line(server):
    for line, words in (
        ("recompute --from 2026-05-02 --to 2026-05-01", "--from is not before --to"),
        ("recompute --from yesterday", "--from yesterday: no day and no time in ISO 8601; hint: 2026-06-01"),
        ("recompute --probe nobody", "no probe 'nobody'; hint: tandem-server probe list"),
        ("prepare --admin-password-file missing", "missing: No such file or directory"),
    ):
        status, _, err = command("series", *line.split(), "--config", config(server))
        assert (status in (2, 3), words in err, err.count("\n")) == (True, True, 1), (line, err)


def test_preparing_an_influxdb_of_ones_own(private_influx, tmp_path):
    """Stood in for by a private one: it has the accounts that an administrator made."""
    (tmp_path / "gateway.password").write_text((private_influx.folder / "tandem.password").read_text())
    toml = tmp_path / "server.toml"
    toml.write_text(
        f'[store]\nkind = "running"\nurl = "{private_influx.url}"\nuser = "tandem"\npassword_file = "gateway.password"\n'
        'database = "own"\nminute_days = 90\n'
    )
    with private_influx.client("admin") as admin:
        try:
            status, _, err = command("series", "prepare", "--config", toml)
            assert (status, "hint: --admin-password-file FILE" in err) == (2, True)
            admin_file, reader_file = private_influx.folder / "admin.password", tmp_path / "reader"
            options = ("--admin-password-file", admin_file, "--reader-password-file", reader_file, "--config", toml)
            for _ in range(2):
                status, out, err = command("series", "prepare", *options)
                assert (status, err) == (0, "")
            assert stat.S_IMODE(reader_file.stat().st_mode) == 0o600
            admin.query('GRANT ALL ON "own" TO tandem')
            status, out, _ = command("series", "status", "--config", toml)
            assert (status, "policy    minute: 2160h0m0s" in out) == (0, True)
            with Influx(private_influx.url, "own", "reader", reader_file.read_text().strip()) as reader:
                assert reader.query('SELECT * FROM "boards"."resolution"')
        finally:
            admin.query('DROP DATABASE "own"')
            command("series", "prepare", "--admin-password-file", private_influx.folder / "admin.password",
                    "--reader-password-file", private_influx.folder / "reader.password", "--config", toml)  # fmt: skip
            admin.query('DROP DATABASE "own"')
            admin.query('GRANT READ ON "tandem" TO reader')
