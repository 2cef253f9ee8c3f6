"""When the probe's copies go."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from doubles import FakeCaptures

from tandem.app.config_traces import TracesConfig
from tandem.app.traces.keeping import Keeping
from tandem.export import TraceQueue
from tandem.schema.trace import Receipt

RULES = TracesConfig(keep="while_room", free_bytes=1000)


def probe(folder: Path, names: list[str], received: int) -> TraceQueue:
    """Files of 100 bytes; the first ``received`` of them have receipts, in their order."""
    rows = []
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        content = name.encode().ljust(100)
        (folder / name).write_bytes(content)
        rows.append({"name": name, "bytes": 100, "sha256": hashlib.sha256(content).hexdigest()})
    (folder / "runs").mkdir(exist_ok=True)
    (folder / "runs/run-1.json").write_text(json.dumps({"id": "run-1", "ended_utc_ns": 1, "files": rows}))
    queue = TraceQueue(folder)
    queue.scan()
    for number in range(received):
        wanted = queue.next()
        assert wanted is not None
        queue.received(wanted, Receipt("probe-1", wanted.name, "run-1", 100, wanted.sha256, number))
    return queue


def captures(used: int, limit: int) -> FakeCaptures:
    made = FakeCaptures()
    made.used_bytes, made.limit_bytes = used, limit
    return made


NAMES = [f"captures/{letter}.pcap" for letter in "abcd"]


def test_until_received_everything_that_the_server_has_goes(tmp_path: Path) -> None:
    queue, made = probe(tmp_path, NAMES, 2), captures(400, 1000)
    assert Keeping(replace(RULES, keep="until_received"), queue, made, lambda: 10**9).tidy() == NAMES[:2]
    assert [(tmp_path / name).exists() for name in NAMES] == [False, False, True, True]
    assert made.used_bytes == 200


def test_while_there_is_room_nothing_goes(tmp_path: Path) -> None:
    queue = probe(tmp_path, NAMES, 4)
    assert Keeping(RULES, queue, captures(400, 1000), lambda: 10**9).tidy() == []


def test_the_captures_budget_takes_what_was_received_first(tmp_path: Path) -> None:
    queue, made = probe(tmp_path, NAMES, 3), captures(400, 400)
    assert Keeping(RULES, queue, made, lambda: 10**9).tidy() == NAMES[:1]
    assert made.used_bytes == 300


def test_a_budget_full_of_what_nobody_has_stays_full(tmp_path: Path) -> None:
    queue, made = probe(tmp_path, NAMES, 0), captures(400, 400)
    assert Keeping(RULES, queue, made, lambda: 0).tidy() == []
    assert all((tmp_path / name).exists() for name in NAMES)


def test_a_full_disk_takes_all_that_was_received_results_too(tmp_path: Path) -> None:
    queue = probe(tmp_path, ["results/x.json", *NAMES], 2)
    assert Keeping(RULES, queue, captures(400, 10**9), lambda: 0).tidy() == ["results/x.json", NAMES[0]]
    assert [kept.name for kept in queue.kept()] == []


def test_a_file_that_changed_since_is_not_deleted(tmp_path: Path) -> None:
    queue = probe(tmp_path, NAMES, 1)
    (tmp_path / NAMES[0]).write_bytes(b"another length")
    assert Keeping(replace(RULES, keep="until_received"), queue, None, lambda: 0).tidy() == []
    assert (tmp_path / NAMES[0]).exists()
