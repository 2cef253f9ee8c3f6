"""When traces may go, and never more over a SIM than it may cost."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from doubles import FakeCaptures, Rehearsal, points
from good_config import good
from hypothesis import given
from hypothesis import strategies as st

from support.https_gateway import Gateway
from support.recorded_files import record
from tandem.app.config import ConfigError
from tandem.app.config_schema import PlanConfig, TracesConfig
from tandem.app.traces import Keeping, Spent, UploadPath, UploadState, begins_in, decide, intended, left_today
from tandem.app.traces import parse as parse_spent
from tandem.cli.main import main
from tandem.export import LEAST_LEFT_BYTES, TraceQueue
from tandem.schema.trace import Receipt

RULES = TracesConfig()
WIFI, SIM = UploadPath("wlan", False, True), UploadPath("a", True, True, 10**8)


def state(**more: Any) -> UploadState:
    told: dict[str, Any] = {"held": None, "local_minute": 120.0, "mobile": False, "still_s": 7200.0, "requested": False}
    return UploadState(**{**told, "paths": [SIM, WIFI], **more})


BY_DAY = {"requested": True, "local_minute": 720.0, "mobile": True, "still_s": 0.0}
"""A person's wish, at noon, on the move."""
ANY, OFF = TracesConfig(over="any"), TracesConfig(enabled=False)
POOR, RICH = UploadPath("a", True, True, LEAST_LEFT_BYTES - 1), UploadPath("b", True, True, 2 * 10**8)
DECIDED: list[tuple[TracesConfig, dict[str, Any], tuple[str, ...], str]] = [
    (RULES, {}, ("wlan",), "over wlan"),
    (RULES, {"held": "a run is under way"}, (), "waits: a run is under way"),
    (RULES, {"local_minute": 22 * 60.0}, (), "waits: night begins in 3.0 h"),
    (RULES, {"local_minute": None}, (), "waits: the clock is not set: nobody knows whether it is night"),
    (RULES, {"mobile": True}, (), "waits: the probe moves"),
    (RULES, {"still_s": 3600.0}, (), "waits: the radio changed 60 min ago; in 60 min if it stays as it is"),
    (RULES, {"paths": [SIM]}, (), "waits: no path without a SIM is up"),
    # a person's wish overrules night and quiet, but no measurement and no budget
    (RULES, BY_DAY, ("wlan",), "over wlan"),
    (OFF, BY_DAY, ("wlan",), "over wlan"),
    (OFF, {}, (), "waits: "),
    (RULES, {**BY_DAY, "held": "a run is under way"}, (), "waits: a run is under way"),
    (ANY, {**BY_DAY, "paths": [POOR]}, (), "waits: what uploads may cost the SIMs today is used up"),
    # over any path: Wi-Fi when there is one, else the SIM with most left
    (ANY, {}, ("wlan",), "over wlan"),
    (ANY, {"paths": [SIM, RICH]}, ("b", "a"), "over b"),
]


def test_it_says_over_what_it_goes_or_what_it_waits_for():
    permits = [decide(rules, state(**more)) for rules, more, _, _ in DECIDED]
    told = [(*case[:2], permit.paths, permit.reason) for case, permit in zip(DECIDED, permits, strict=True)]
    pairs = zip(told, DECIDED, strict=True)
    assert [(one, case) for one, case in pairs if one[2] != case[2] or case[3] not in one[3]] == []
    assert all(permit.paths or permit.again_s > 0 for permit in permits)
    assert permits[-1].left_bytes == {"a": 10**8, "b": 2 * 10**8}
    assert permits[0].left_bytes == {}


NIGHT = "from 01:00 to 05:00 when the radio has been still for 2.0 h, over wlan, which costs no SIM anything"
ALWAYS = TracesConfig(over="any", night=None, still_for_s=0)
INTENDED = [
    (RULES, True, True, NIGHT),
    (RULES, False, False, 'every path has a SIM; [traces] over = "any" sends them from 01:00 to 05:00'),
    (ANY, False, True, "over the SIMs, a day at most a 50 MB, b 50 MB, of a plan that is set ([path.plan]) 50%"),
    (ALWAYS, True, True, "go up at any time, over wlan, which costs no SIM anything, else"),
    (OFF, True, False, "[traces] enabled is false"),
]


def test_it_says_what_goes_up_when_and_at_what_cost():
    for rules, wifi, go, words in INTENDED:
        paths = good('[[path]]\nname = "wlan"\ninterface = "wlan0"\n' if wifi else "").paths
        goes, said = intended(rules, paths)
        assert (goes, words in said) == (go, True)
        assert len(said) < 280, "it has to fit into a line of the check"


sights = st.builds(
    UploadState,
    held=st.none() | st.just("a run is under way"),
    local_minute=st.none() | st.floats(0, 1440, exclude_max=True),
    mobile=st.booleans(),
    still_s=st.floats(0, 20000),
    requested=st.booleans(),
    paths=st.lists(
        st.builds(UploadPath, st.sampled_from("abcd"), st.booleans(), st.booleans(), st.integers(0, 10**9)),
        max_size=4,
        unique_by=lambda path: path.name,
    ),
)
rules_of_any_kind = st.builds(
    TracesConfig,
    enabled=st.booleans(),
    over=st.sampled_from(["unmetered", "any"]),
    night=st.none() | st.tuples(st.integers(0, 1439), st.integers(0, 1439)).filter(lambda night: night[0] != night[1]),
    still_for_s=st.sampled_from([0.0, 7200.0]),
)


@given(rules_of_any_kind, sights)
def test_whatever_it_sees_it_never_goes_where_it_must_not(rules, seen):
    permit = decide(rules, seen)
    by_name = {path.name: path for path in seen.paths}
    assert bool(permit.paths) or (permit.reason.startswith("waits: ") and permit.again_s > 0)
    for name in permit.paths:
        assert seen.held is None
        assert by_name[name].up
        if by_name[name].metered:
            assert rules.over == "any"
            assert not any(path.up and not path.metered for path in seen.paths)
            assert permit.left_bytes[name] == by_name[name].left_bytes >= LEAST_LEFT_BYTES
        else:
            assert name not in permit.left_bytes
        if not seen.requested:
            assert rules.enabled
            assert rules.still_for_s == 0 or (not seen.mobile and seen.still_s >= rules.still_for_s)
            if rules.night is not None:
                assert seen.local_minute is not None
                assert begins_in(rules.night, seen.local_minute) == 0


@given(st.tuples(st.integers(0, 1439), st.integers(0, 1439)), st.floats(0, 1440, exclude_max=True))
def test_a_night_that_is_waited_for_begins_then(night, minute):
    if night[0] == night[1]:
        return
    wait = begins_in(night, minute)
    assert 0 <= wait < 1440
    if wait > 0:
        assert abs((minute + wait) % 1440 - night[0]) < 1e-6
        assert begins_in(night, float(night[0])) == 0


# --- budgets: a small world with a clock, an account and a plan --------------------------------------------------------------

PLAN = PlanConfig(2 * 10**9, 15, 0.9)
moves = st.lists(
    st.tuples(
        st.sampled_from(["upload", "others", "wait", "crash"]), st.integers(0, 400_000_000), st.floats(0, 100_000)
    ),
    max_size=40,
)


@given(moves, st.none() | st.just(PLAN), st.integers(0, 300_000_000), st.sampled_from([0.0, 0.5, 1.0]))
def test_never_beyond_the_budget_whatever_happens(tmp_path_factory, moves, plan, cap, share):
    rules = TracesConfig(over="any", metered_bytes_per_day=cap, plan_share=share)
    file = tmp_path_factory.mktemp("probe") / "spent.json"
    spent, now = Spent(file), datetime(2026, 11, 10, 22, tzinfo=UTC)
    days: dict[str, int] = {}
    uploaded: dict[str, int] = {}
    for what, count, seconds in moves:
        day = now.date().isoformat()
        if what == "others":
            days[day] = days.get(day, 0) + count
        elif what == "upload":
            left = left_today(rules, plan, days, spent.of("a", day), now.timestamp())
            used = min(left, count)
            spent.reserve("a", day, left)
            spent.settle("a", used)
            days[day] = days.get(day, 0) + used
            uploaded[day] = uploaded.get(day, 0) + used
            if plan is not None and used:
                period = [d for d in days if (d >= "2026-11-15") == (day >= "2026-11-15")]
                assert sum(days[d] for d in period) <= plan.bytes
        elif what == "wait":
            now += timedelta(seconds=seconds)
        else:
            spent = Spent(file)  # the collector is killed and started again
        assert uploaded.get(day, 0) <= cap
        assert spent.of("a", day) >= uploaded.get(day, 0)


def test_a_day_has_its_part_of_what_the_plan_will_have_left():
    """2 GB, 50 MB a day by everything else, 10 days to the reset: what is left then, its half, in ten parts."""
    by_day = {
        (datetime(2026, 10, 15, tzinfo=UTC) + timedelta(days=n)).date().isoformat(): 50_000_000 for n in range(21)
    }
    now = datetime(2026, 11, 5, tzinfo=UTC)
    rules = TracesConfig(metered_bytes_per_day=10**9)
    spare = 2 * 10**9 - 31 * 50_000_000
    assert abs(left_today(rules, PLAN, by_day, 0, now.timestamp()) - spare / 2 / 10) < 1000
    assert left_today(RULES, None, {}, 0, None) == 0, "without a clock nothing goes over a SIM"
    used = {**by_day, "2026-11-05": 5_000_000}
    assert left_today(rules, PLAN, used, 5_000_000, now.timestamp()) <= spare / 2 / 10 - 5_000_000 + 1000


@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(repr))
def test_any_text_is_an_account_or_told(text):
    try:
        days = parse_spent(text)
    except (ValueError, RecursionError):
        return
    assert all(type(count) is int for row in days.values() for count in row.values())


# --- the configuration -------------------------------------------------------------------------------------------------------


def test_the_table_is_taken_and_paths_with_modems_are_metered():
    assert good("").traces == TracesConfig()
    told = good('[traces]\nnight = "22:30-05:00"\nover = "any"\nkeep = "until_received"').traces
    assert (told.night, told.over, told.keep) == ((22 * 60 + 30, 300), "any", "until_received")
    assert good('[traces]\nnight = "off"').traces.night is None
    for night in ("1:00-5:00", "25:00-05:00", "01:00", "05:00-05:00"):
        with pytest.raises(ConfigError, match=r"traces.night: .*; hint: as in 01:00-05:00"):
            good(f'[traces]\nnight = "{night}"')
    paths = good(
        '[[path]]\nname = "w"\ninterface = "wlan0"\n[[path]]\nname = "m"\ninterface = "mifi0"\nmetered = true'
    ).paths
    assert [(p.name, p.is_metered) for p in paths if p.name in "wm"] == [("w", False), ("m", True)]
    assert all(p.is_metered for p in paths if p.modem is not None)


# --- ``tandem traces``, with a running collector of doubles and without one


def begun(tmp_path: Path, gateway: Gateway) -> Rehearsal:
    """Two captures wait."""
    record(tmp_path, {f"captures/{name}.pcap": name.encode() * 1000 for name in "ab"})
    made = Rehearsal(tmp_path, gateway).start()
    made.until(lambda: made.supervisor.traces.queue.scanned)
    return made


@pytest.fixture
def running(tmp_path, gateway):
    made = begun(tmp_path, gateway)
    yield made
    made.stop()


def asked(capsys: pytest.CaptureFixture[str], folder: Path, *words: str) -> tuple[int, Any]:
    status = main(["traces", *words, "--json", "--socket", str(folder / "status.sock")])
    out, err = capsys.readouterr()
    return status, json.loads(out) if out else err


def test_what_waits_is_told_and_goes_first_when_asked_for(running, capsys, gateway):
    status, told = asked(capsys, running.folder, "status")
    assert status == 0
    assert (told["traces"]["waiting"], told["traces"]["waiting_bytes"]) == (2, 2000)
    assert told["traces"]["said"].startswith("waits: ")
    assert main(["status", "--socket", str(running.folder / "status.sock")]) == 0
    assert "traces: 2 waiting (2.0 kB)" in capsys.readouterr().out
    _, told = asked(capsys, running.folder, "list")
    assert [(row["name"], row["state"]) for row in told["files"]] == [
        ("captures/a.pcap", "waiting"),
        ("captures/b.pcap", "waiting"),
    ]
    status, told = asked(capsys, running.folder, "upload", "captures/b.pcap", "--now")
    assert status == 0
    first = running.supervisor.traces.queue.next()
    assert first.name == "captures/b.pcap"
    assert told["traces"]["said"] == "waits: no path without a SIM is up", "a wish spends no SIM's bytes"
    assert asked(capsys, running.folder, "upload", "captures/c.pcap") == (
        1,
        "tandem: captures/c.pcap does not wait here; hint: tandem traces list\n",
    )
    assert asked(capsys, running.folder, "upload")[0] == 2
    running.until(lambda: 2 in [p.fields.get("traces_waiting") for p in points(gateway) if p.measurement == "health"])


def test_without_a_collector_the_disk_is_read(gateway, capsys, tmp_path):
    running = begun(tmp_path, gateway)
    running.stop()
    queue = running.supervisor.traces.queue
    queue.receipts.keep(Receipt("probe-1", "captures/a.pcap", "run-1", 1000, queue.next().sha256, 7))
    status, told = asked(capsys, tmp_path, "list")
    assert (status, told["traces"]["said"]) == (0, "no collector runs")
    assert {(row["name"], row["state"]) for row in told["files"]} == {
        ("captures/a.pcap", "received"),
        ("captures/b.pcap", "waiting"),
    }
    status, said = asked(capsys, tmp_path, "upload", "--now")
    assert (status, said.startswith("tandem: no collector answers: ")) == (1, True)


# --- when the probe's copies go

ROOMY = TracesConfig(keep="while_room", free_bytes=1000)


def probe(folder: Path, names: list[str], received: int) -> TraceQueue:
    """Files of 100 bytes; the first ``received`` of them have receipts, in their order."""
    record(folder, {name: name.encode().ljust(100) for name in names})
    queue = TraceQueue(folder)
    queue.scan()
    for number in range(received):
        wanted = queue.next()
        queue.received(wanted, Receipt("probe-1", wanted.name, "run-1", 100, wanted.sha256, number))
    return queue


def captures(limit: int) -> FakeCaptures:
    made = FakeCaptures()
    made.used_bytes, made.limit_bytes = 400, limit
    return made


NAMES = [f"captures/{letter}.pcap" for letter in "abcd"]


@pytest.mark.parametrize(
    ("keep", "received", "limit", "free", "gone"),
    [
        ("until_received", 2, 1000, 10**9, 2),
        ("while_room", 4, 1000, 10**9, 0),
        ("while_room", 3, 400, 10**9, 1),
        ("while_room", 0, 400, 0, 0),
    ],
    ids=["all that was received", "nothing while there is room", "room for one", "nothing that nobody has"],
)
def test_what_goes(tmp_path, keep, received, limit, free, gone):
    queue, made = probe(tmp_path, NAMES, received), captures(limit)
    assert Keeping(replace(ROOMY, keep=keep), queue, made, lambda: free).tidy() == NAMES[:gone]
    assert [name for name in NAMES if (tmp_path / name).exists()] == NAMES[gone:]
    assert made.used_bytes == 400 - 100 * gone


def test_a_full_disk_takes_all_that_was_received_and_did_not_change_since(tmp_path):
    queue = probe(tmp_path, ["results/x.json", *NAMES], 2)
    assert Keeping(ROOMY, queue, captures(10**9), lambda: 0).tidy() == ["results/x.json", NAMES[0]]
    assert [kept.name for kept in queue.kept()] == []
    another = tmp_path / "another"
    queue = probe(another, NAMES, 1)
    (another / NAMES[0]).write_bytes(b"another length")
    assert Keeping(replace(ROOMY, keep="until_received"), queue, None, lambda: 0).tidy() == []
    assert (another / NAMES[0]).exists()
