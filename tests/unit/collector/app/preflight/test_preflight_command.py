"""The command of preflight: bad input, what it prints and measures, and the folder of its own collector."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from good_config import GOOD

from support.html_page import Page
from tandem.app.config import load
from tandem.app.daemon.status_socket import NAME, encode, listen, short_path
from tandem.app.preflight.check import CheckOptions, Measuring, Report, check
from tandem.app.preflight.lines import fails, passes, settled
from tandem.app.preflight.own_collector import OwnCollector, OwnFolder, sweep, token_file
from tandem.cli.main import main
from tandem.cli.preflight import page, text

NOBODY = 65534


@pytest.fixture
def config(tmp_path):
    (tmp_path / "config.toml").write_text(GOOD.replace('ca_file = "ca.pem"\n', ""))
    (tmp_path / "token").write_text("t")
    return tmp_path / "config.toml"


def test_bad_usage_and_configuration_are_one_line(config, capsys):
    assert main(["preflight", "--config", str(config.with_name("nowhere.toml"))]) == 2
    assert main(["preflight", "--config", str(config), "--accept", "gsp"]) == 2
    assert main(["preflight", "--config", str(config), "--accept", "modem:z"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 3, told
    assert "hint:" in told[0]
    assert "--accept gsp: no such line; known: collector, modem" in told[1]
    assert "--accept modem:z: no such line" in told[2]
    for wait in ("-1", "soon", "1e9"):
        with pytest.raises(SystemExit) as ended:
            main(["preflight", "--wait", wait])
        assert ended.value.code == 2


@contextmanager
def somebody(folder: Path) -> Iterator[None]:
    """Not root, who may ask every collector; ``folder`` and what leads to it can be read."""
    if os.geteuid() != 0:
        yield
        return
    for place in (folder, *(above for above in folder.parents if not above.stat().st_mode & 0o001)):
        place.chmod(place.stat().st_mode | 0o055)
    os.seteuid(NOBODY)
    try:
        if not os.access(__file__, os.R_OK, effective_ids=True):
            pytest.skip("this checkout is readable for root only, so nobody else can be tried")
        yield
    finally:
        os.seteuid(0)


def test_a_collector_of_another_user_is_not_mistaken_for_none(config, capsys):
    folder = load(config).folder
    with socket.socket(socket.AF_UNIX) as other, short_path(folder / NAME) as name:
        other.bind(name)
        (folder / NAME).chmod(0)
        with somebody(folder):
            assert main(["preflight", "--config", str(config)]) == 3
    assert "as root, or as user tandem" in capsys.readouterr().err


def test_a_collector_that_says_nothing_is_the_one_line_to_mend(config, monkeypatch):
    """It takes the connection and the question, and hangs."""
    monkeypatch.setattr("tandem.app.preflight.check._ANSWER_S", 0.2)
    loaded, nowhere = load(config), "https://127.0.0.1:1"
    loaded = replace(loaded, server=replace(loaded.server, gateway=nowhere, control=nowhere))
    held: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX) as hung, short_path(loaded.folder / NAME) as name:
        hung.bind(name)
        hung.listen()
        thread = threading.Thread(target=lambda: held.append(hung.accept()[0]), daemon=True)
        thread.start()
        report = check(loaded, CheckOptions(0.0, (), lambda _: None))
        thread.join(60)
        held[0].close()
    states = {line.label: line.state for line in report.lines}
    assert states["collector"] == "fail"
    assert not report.ok
    told = {label for label, state in states.items() if state == "fail"}
    assert told <= {"collector", "server", "disk", "metrics"}, "there is no server here, and no path is told to be up"


def test_the_tokens_copy_of_a_service_that_does_not_run(tmp_path, config):
    loaded = load(config)
    assert token_file(loaded) == config.with_name("token")
    gone = Path("/run/credentials/tandem-never.service/token")
    copied = replace(loaded, server=replace(loaded.server, token_file=gone))
    assert token_file(copied, kept=tmp_path / "nothing") == gone
    assert token_file(copied, kept=tmp_path) == tmp_path / "token"


def report(*lines):
    at, software = datetime(2026, 11, 22, 7, 0, tzinfo=UTC), {"tandem": "0.1.0", "machine": "Raspberry Pi 4 <B>"}
    return Report("probe-1", at, tuple(settled(lines)), software, {"a": "O<perator>"}, 1.0)


def test_the_page_asks_nothing_of_anybody_and_shows_what_was_said():
    found = report(
        fails("modem", "it does not answer <script>", "pull & plug", "a"),
        fails("sim", "not looked at", "?", "a", [[("modem", "a")]]),
        passes("server", "answers"),
    )
    shown = Page(page(found))
    assert not {"script", "img", "link", "iframe"} & {tag for tag, _ in shown.tags}
    assert not {"src", "href", "onload"} & {name for _, attributes in shown.tags for name in attributes}
    for words in ("not ready: fix modem:a", "it does not answer <script>", "hint: pull & plug", "O<perator>"):
        assert words in shown.text
    assert "follows from: modem:a" in shown.text


def test_what_is_printed_ends_with_what_to_mend_first():
    lines = text(report(fails("gps", "no fix", "sky"), passes("server", "answers"))).splitlines()
    assert lines[-1] == "probe-1 is not ready: fix gps"
    assert "    hint: sky" in "\n".join(lines)
    assert text(report(passes("server", "answers"))).splitlines()[-1] == "probe-1 is ready"


# --- the folder of the check's own collector: nobody else's, and gone after any end


HOLD = """
import pathlib, sys
from tandem.app.preflight.own_collector import OwnFolder
mine = OwnFolder(pathlib.Path(sys.argv[1]))
(mine.path / "spool").mkdir()
(mine.path / "spool/records").write_text("x")
print(mine.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _own_temporary_files(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))


@contextmanager
def another(run: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another check, that has its folder."""
    command = [sys.executable, "-c", HOLD, str(run)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process, Path(process.stdout.readline().strip())
        process.stdin.close()


def test_it_is_this_accounts_alone_and_goes_also_among_temporary_files(tmp_path):
    mine = OwnFolder(tmp_path / "run")
    assert mine.path.parent == tmp_path / "run/tandem-preflight"
    assert [path.stat().st_mode & 0o777 for path in (mine.path, mine.path.parent)] == [0o700, 0o700]
    mine.remove()
    assert list(mine.path.parent.iterdir()) == []
    OwnFolder(tmp_path / "run").remove()
    mine = OwnFolder(tmp_path / "nowhere")
    assert mine.path.parent == tmp_path / f"tmp/tandem-preflight-{os.geteuid()}"
    mine.remove()
    sweep(tmp_path / "nowhere")
    assert list(mine.path.parent.iterdir()) == []


def test_what_a_killed_one_left_is_removed_by_the_next(tmp_path):
    with another(tmp_path / "run") as (process, left):
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert (left / "spool/records").exists()
        mine = OwnFolder(tmp_path / "run")
        assert list(left.parent.iterdir()) == [mine.path]
        mine.remove()


def test_one_that_runs_is_left_alone_and_no_other_begins(tmp_path):
    with another(tmp_path / "run") as (process, theirs):
        with pytest.raises(BlockingIOError):
            OwnFolder(tmp_path / "run")
        sweep(tmp_path / "run")
        assert (theirs / "spool/records").exists()
        process.kill()
        process.wait()
        sweep(tmp_path / "run")
        assert not theirs.exists()


@pytest.mark.parametrize("trap", ["a link", "open to others"])
def test_a_name_that_somebody_else_prepared_is_refused(tmp_path, trap):
    base = tmp_path / f"tmp/tandem-preflight-{os.geteuid()}"
    (tmp_path / "theirs").mkdir(mode=0o700)
    if trap == "a link":
        base.symlink_to(tmp_path / "theirs")
    else:
        base.mkdir()
        base.chmod(0o777)
    with pytest.raises(PermissionError):
        OwnFolder(tmp_path / "nowhere")
    sweep(tmp_path / "nowhere")
    assert (tmp_path / "theirs").exists()


@pytest.mark.parametrize("token", ["t", "", None])
def test_the_token_is_not_copied(tmp_path, config, token):
    file = config.with_name("token")
    file.unlink()
    if token is not None:
        file.write_text(token)
    (tmp_path / "own").mkdir()
    used = OwnCollector(load(config))._alone(tmp_path / "own").server.token_file
    if token:
        assert (used, (tmp_path / "own/token").exists()) == (file, False)
    else:
        assert used.read_text() == "none"


# --- what preflight asks the collector to measure, beside a socket that answers as a collector does


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
def _at_once(monkeypatch):
    monkeypatch.setattr("tandem.app.preflight.check._AGAIN_S", 0.01)


IDLE_ASKED, A, B, VERDICT = (None, None), ("a", "download"), ("b", "download"), (None, "verdict")
HELD = "a campaign's step runs"
CASES = {
    "downloads over each path, then the verdict": ([IDLE, DONE, DONE, DONE], None, [IDLE_ASKED, A, B, VERDICT]),
    "the end of one's own run is waited for": ([IDLE, DONE, BUSY, DONE, DONE], None, [IDLE_ASKED, A, B, B, VERDICT]),
    "another one's run is told": ([IDLE, BUSY], "another run goes on", [IDLE_ASKED, A]),
    "a campaign that holds is told": ([[{"type": "campaign", "held": HELD}]], HELD, [IDLE_ASKED]),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_measured_or_holds_it(tmp_path, case):
    answers, held, asked = CASES[case]
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "r1.json").write_text(json.dumps({"result": {"paths": {"a": {"primary": "native"}}}}))
    with collector(tmp_path, *answers) as came:
        told = Measuring(tmp_path, 0.0, lambda _: None).over(["a", "b"])
    assert (told.held, set(told.downloads)) == (held, set() if held else {"a", "b"})
    assert told.verdicts == ({} if held else {"a": {"primary": "native"}})
    assert [(request.get("parameters", {}).get("path"), request.get("experiment")) for request in came] == asked
