"""The command line with bad input, and what it prints: for people, and as the page for the box."""

import html.parser
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tandem.app.config import load
from tandem.app.daemon.status_socket import NAME, short_path
from tandem.app.preflight.check import CheckOptions, Report, check
from tandem.app.preflight.lines import fails, passes, settled
from tandem.app.preflight.own_collector import token_file
from tandem.cli.main import main
from tandem.cli.preflight import page, text

NOBODY = 65534
GOOD = (Path(__file__).parents[2] / "app" / "good.toml").read_text()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "config.toml").write_text(GOOD.replace('ca_file = "ca.pem"\n', ""))
    (tmp_path / "token").write_text("t")
    return tmp_path / "config.toml"


def test_bad_usage_and_configuration_are_one_line(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_a_collector_of_another_user_is_not_mistaken_for_none(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = load(config).folder
    with socket.socket(socket.AF_UNIX) as other, short_path(folder / NAME) as name:
        other.bind(name)
        (folder / NAME).chmod(0)
        with somebody(folder):
            assert main(["preflight", "--config", str(config)]) == 3
    assert "as root, or as user tandem" in capsys.readouterr().err


def test_a_collector_that_says_nothing_is_the_one_line_to_mend(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the connection and the question, and hangs."""
    monkeypatch.setattr("tandem.app.preflight.check._ANSWER_S", 0.2)
    loaded = load(config)
    loaded = replace(
        loaded, server=replace(loaded.server, gateway="https://127.0.0.1:1", control="https://127.0.0.1:1")
    )
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
    assert told <= {"collector", "server", "disk", "metrics"}, (
        told
    )  # there is no server here, and the paths are not told to be up


def test_the_tokens_copy_of_a_service_that_does_not_run(tmp_path: Path, config: Path) -> None:
    loaded = load(config)
    assert token_file(loaded) == config.with_name("token")
    gone = Path("/run/credentials/tandem-never.service/token")
    copied = replace(loaded, server=replace(loaded.server, token_file=gone))
    assert token_file(copied, kept=tmp_path / "nothing") == gone
    assert token_file(copied, kept=tmp_path) == tmp_path / "token"


def report(*lines: object, **more: object) -> Report:
    made = Report(
        "probe-1",
        datetime(2026, 11, 22, 7, 0, tzinfo=UTC),
        tuple(settled(lines)),  # type: ignore[arg-type]
        {"tandem": "0.1.0", "machine": "Raspberry Pi 4 <B>"},
        {"a": "O<perator>"},
        1.0,
    )
    return replace(made, **more)  # type: ignore[arg-type]


class Reading(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.said = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not {"src", "href", "onload"} & {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.said += data


def test_the_page_asks_nothing_of_anybody_and_shows_what_was_said() -> None:
    found = report(
        fails("modem", "it does not answer <script>", "pull & plug", "a"),
        fails("sim", "not looked at", "?", "a", [[("modem", "a")]]),
        passes("server", "answers"),
    )
    reading = Reading()
    reading.feed(page(found))
    assert not {"script", "img", "link", "iframe"} & set(reading.tags)
    for words in (
        "not ready: fix modem:a",
        "it does not answer <script>",
        "hint: pull & plug",
        "O<perator>",
        "follows from: modem:a",
    ):
        assert words in reading.said


def test_what_is_printed_ends_with_what_to_mend_first() -> None:
    lines = text(report(fails("gps", "no fix", "sky"), passes("server", "answers"))).splitlines()
    assert lines[-1] == "probe-1 is not ready: fix gps"
    assert "    hint: sky" in "\n".join(lines)
    assert text(report(passes("server", "answers"))).splitlines()[-1] == "probe-1 is ready"
