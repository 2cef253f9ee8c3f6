"""When the probe's copies go."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
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
        queue.received(wanted, Receipt("probe-1", wanted.name, "run-1", 100, wanted.sha256, number))
    return queue


def captures(used: int, limit: int) -> FakeCaptures:
    made = FakeCaptures()
    made.used_bytes, made.limit_bytes = used, limit
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
def test_what_goes(tmp_path: Path, keep: str, received: int, limit: int, free: int, gone: int) -> None:
    queue, made = probe(tmp_path, NAMES, received), captures(400, limit)
    assert Keeping(replace(RULES, keep=keep), queue, made, lambda: free).tidy() == NAMES[:gone]
    assert [name for name in NAMES if (tmp_path / name).exists()] == NAMES[gone:]
    assert made.used_bytes == 400 - 100 * gone


def test_a_full_disk_takes_all_that_was_received_results_too(tmp_path: Path) -> None:
    queue = probe(tmp_path, ["results/x.json", *NAMES], 2)
    assert Keeping(RULES, queue, captures(400, 10**9), lambda: 0).tidy() == ["results/x.json", NAMES[0]]
    assert [kept.name for kept in queue.kept()] == []


def test_a_file_that_changed_since_is_not_deleted(tmp_path: Path) -> None:
    queue = probe(tmp_path, NAMES, 1)
    (tmp_path / NAMES[0]).write_bytes(b"another length")
    assert Keeping(replace(RULES, keep="until_received"), queue, None, lambda: 0).tidy() == []
    assert (tmp_path / NAMES[0]).exists()
