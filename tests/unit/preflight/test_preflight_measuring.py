"""What preflight asks the collector to measure, beside a socket that answers as a collector does."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tandem.app.preflight.measuring import Measuring
from tandem.app.status_socket import NAME, encode, listen

IDLE = [{"type": "campaign"}]
DONE = [{"type": "accepted", "pair": "p1"}, {"type": "done", "results": [{"id": "r1", "ok": True}]}]
BUSY = [{"type": "refused", "reason": "another pair is running; try again when it has ended"}]


@contextmanager
def collector(folder: Path, *answers: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Gives ``answers`` to one connection after the other; the requests that came."""
    came: list[dict[str, Any]] = []
    listening = listen(folder / NAME)
    listening.settimeout(60)

    def serve() -> None:
        for lines in answers:
            connection, _ = listening.accept()
            with connection, connection.makefile("rb") as reader:
                came.append(json.loads(reader.readline()))
                connection.sendall(b"".join(encode(line) for line in lines))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield came
    finally:
        thread.join()
        listening.close()


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tandem.app.preflight.measuring._AGAIN_S", 0.01)


def measured(folder: Path, *answers: list[dict[str, Any]]) -> tuple[Any, list[dict[str, Any]]]:
    (folder / "runs").mkdir()
    (folder / "runs" / "r1.json").write_text(json.dumps({"result": {"paths": {"a": {"primary": "native"}}}}))
    with collector(folder, *answers) as came:
        return Measuring(folder, 0.0, lambda _: None).over(["a", "b"]), came


def test_downloads_over_each_path_then_the_verdict(tmp_path: Path) -> None:
    told, came = measured(tmp_path, IDLE, DONE, DONE, DONE)
    assert (told.held, set(told.downloads), told.verdicts) == (None, {"a", "b"}, {"a": {"primary": "native"}})
    assert [request.get("experiment") for request in came] == [None, "download", "download", "verdict"]


def test_the_end_of_ones_own_run_is_waited_for_though_nobody_elses_would_be(tmp_path: Path) -> None:
    told, came = measured(tmp_path, IDLE, DONE, BUSY, DONE, DONE)
    assert (told.held, set(told.downloads)) == (None, {"a", "b"})
    assert [request["parameters"].get("path") for request in came[1:4]] == ["a", "b", "b"]


def test_another_ones_run_is_told(tmp_path: Path) -> None:
    told, _ = measured(tmp_path, IDLE, BUSY)
    assert (told.held, told.downloads) == ("another run goes on", {})


def test_a_campaign_that_holds_is_told(tmp_path: Path) -> None:
    told, _ = measured(tmp_path, [{"type": "campaign", "held": "a campaign's step runs"}])
    assert told.held == "a campaign's step runs"
