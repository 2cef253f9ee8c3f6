"""``tandem traces``, with a running collector of doubles and without one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from doubles import Rehearsal, points
from https_gateway import Gateway

from tandem.cli.main import main
from tandem.schema.trace import Receipt


def begun(tmp_path: Path, gateway: Gateway) -> Rehearsal:
    """Two captures wait."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "captures").mkdir()
    rows = []
    for name in ("captures/a.pcap", "captures/b.pcap"):
        (tmp_path / name).write_bytes(b"x" * 1000)
        rows.append({"name": name, "bytes": 1000, "sha256": name[9] * 64})
    told = {"id": "run-1", "pair": "pair-1", "ended_utc_ns": 1, "files": rows}
    (tmp_path / "runs/run-1.json").write_text(json.dumps(told))
    made = Rehearsal(tmp_path, gateway).start()
    made.until(lambda: made.supervisor.traces.queue.scanned)
    return made


@pytest.fixture
def running(tmp_path: Path, gateway: Gateway) -> Iterator[Rehearsal]:
    made = begun(tmp_path, gateway)
    yield made
    made.stop()


def asked(capsys: pytest.CaptureFixture[str], folder: Path, *words: str) -> tuple[int, Any]:
    status = main(["traces", *words, "--json", "--socket", str(folder / "status.sock")])
    out, err = capsys.readouterr()
    return status, json.loads(out) if out else err


def test_status_says_what_waits_and_for_what(running: Rehearsal, capsys: pytest.CaptureFixture[str]) -> None:
    status, told = asked(capsys, running.folder, "status")
    assert status == 0
    assert (told["traces"]["waiting"], told["traces"]["waiting_bytes"]) == (2, 2000)
    assert told["traces"]["said"].startswith("waits: ")
    assert main(["status", "--socket", str(running.folder / "status.sock")]) == 0
    assert "traces: 2 waiting (2.0 kB)" in capsys.readouterr().out


def test_list_and_what_is_asked_for_goes_first(running: Rehearsal, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_what_does_not_wait_is_refused(running: Rehearsal, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(capsys, running.folder, "upload", "captures/c.pcap") == (
        1,
        "tandem: captures/c.pcap does not wait here; mend: tandem traces list\n",
    )
    assert asked(capsys, running.folder, "upload")[0] == 2


def test_health_records_tell_how_much_waits(running: Rehearsal, gateway: Gateway) -> None:
    def told() -> list[Any]:
        return [p.fields.get("traces_waiting") for p in points(gateway) if p.measurement == "health"]

    running.until(lambda: 2 in told())


def test_without_a_collector_the_disk_is_read(
    gateway: Gateway, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    running = begun(tmp_path, gateway)
    running.stop()
    receipt = Receipt("probe-1", "captures/a.pcap", "run-1", 1000, "a" * 64, 7)
    running.supervisor.traces.queue.receipts.keep(receipt)
    status, told = asked(capsys, tmp_path, "list")
    assert (status, told["traces"]["said"]) == (0, "no collector runs")
    assert {(row["name"], row["state"]) for row in told["files"]} == {
        ("captures/a.pcap", "received"),
        ("captures/b.pcap", "waiting"),
    }
    status, said = asked(capsys, tmp_path, "upload", "--now")
    assert (status, said.startswith("tandem: no collector answers: ")) == (1, True)
