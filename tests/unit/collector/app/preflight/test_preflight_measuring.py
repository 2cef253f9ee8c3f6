"""What preflight asks the collector to measure, beside a socket that answers as a collector does."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tandem.app.daemon.status_socket import NAME, encode, listen
from tandem.app.preflight.check import Measuring

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
    monkeypatch.setattr("tandem.app.preflight.check._AGAIN_S", 0.01)


EXPERIMENTS = [None, "download", "download", "verdict"]
CASES = {
    "downloads over each path, then the verdict": ([IDLE, DONE, DONE, DONE], None, {"a", "b"}, EXPERIMENTS),
    "the end of one's own run is waited for, though nobody else's would be": (
        [IDLE, DONE, BUSY, DONE, DONE], None, {"a", "b"}, [*EXPERIMENTS[:2], *EXPERIMENTS[1:]],
    ),
    "another one's run is told": ([IDLE, BUSY], "another run goes on", set(), EXPERIMENTS[:2]),
    "a campaign that holds is told": (
        [[{"type": "campaign", "held": "a campaign's step runs"}]], "a campaign's step runs", set(), EXPERIMENTS[:1],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_is_measured_or_holds_it(tmp_path: Path, case: str) -> None:
    answers, held, paths, asked = CASES[case]
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "r1.json").write_text(json.dumps({"result": {"paths": {"a": {"primary": "native"}}}}))
    with collector(tmp_path, *answers) as came:
        told = Measuring(tmp_path, 0.0, lambda _: None).over(["a", "b"])
    assert (told.held, set(told.downloads)) == (held, paths)
    assert told.verdicts == ({"a": {"primary": "native"}} if paths else {})
    assert [request.get("experiment") for request in came] == asked
    if len(asked) > 4:
        assert [request["parameters"].get("path") for request in came[1:4]] == ["a", "b", "b"]
