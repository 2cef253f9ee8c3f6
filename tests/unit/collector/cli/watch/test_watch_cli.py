"""The command lines: what they answer without a collector, and with bad input."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tandem.app.daemon.status_server import StatusServer
from tandem.app.daemon.status_socket import listen
from tandem.cli.main import main
from tandem.mptcp import kernels
from tandem.mptcp.kernel_v094 import V094

GOOD = (Path(__file__).parents[2] / "app" / "good.toml").read_text()


class Answers:
    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.ended: dict[str, Any] = {"runs": ["run-1"], "results": [], "ok": True}
        self.answered = threading.Event()

    def status(self) -> dict[str, Any]:
        self.answered.set()
        told = {"type": "status", "probe": "probe-1", "uptime_s": 5, "run": None}
        return {**told, "modems": {}, "events": [], "finished": []}

    def request(self, experiment: str, parameters: dict[str, Any]) -> str:
        self.asked.append({"experiment": experiment, **parameters})
        if parameters.get("kind") == "mptcp":
            raise ValueError("another pair is running")
        return "pair-1"

    def outcome(self, _pair: str) -> dict[str, Any] | None:
        return self.ended


@pytest.fixture
def config(tmp_path):
    (tmp_path / "config.toml").write_text(GOOD.replace('ca_file = "ca.pem"\n', ""))
    (tmp_path / "token").write_text("t")
    return tmp_path / "config.toml"


def test_check_says_what_would_be_done_and_at_what_cost_and_touches_nothing(config, capsys):
    assert main(["run", "--config", str(config), "--check"]) == 0
    said = capsys.readouterr().out
    assert "path a: A, wwan0 via 10.64.0.1, modem at /dev/ttyUSB2 (auto)" in said
    assert "runs of 8 s, sequential, when movement starts, at least 20 s apart" in said
    assert "sysctl net.mptcp.blackhole_timeout = 0" in said
    assert "no round trips all the time" in said
    assert sorted(p.name for p in config.parent.iterdir()) == ["config.toml", "token"]
    text = config.read_text().replace('operator = "B"', 'operator = "B"\nplan = { bytes = 1_000_000_000 }')
    config.write_text(text + "\n[round_trip]\nenabled = true\n")
    assert main(["run", "--config", str(config), "--check"]) == 0
    told = "round trips every 1 s: 17.3 MB a day on each path, 536 MB a month (a 5% of day_bytes, b 54% of its plan); "
    told += "the records of each 3.8 MB a day more, over the path that uploads take"
    assert told in capsys.readouterr().out
    tables = (
        '\n[status_led]\nenabled = true\nfolder = "none"\nonly = "x"\n[e_paper]\nenabled = true\nspi = "/dev/none"\n'
    )
    config.write_text(config.read_text() + tables)
    assert main(["run", "--config", str(config), "--check"]) == 0
    said = capsys.readouterr().out
    assert f"status LED x: not below {config.parent / 'none'}; hint: the overlay gpio-led" in said
    assert "e-paper: /dev/none is not there, or not for this user; hint: dtparam=spi=on" in said
    assert "the configuration is good" in said


def test_check_says_which_kernel_runs_and_what_it_lacks(config, capsys, monkeypatch, tmp_path):
    folder = tmp_path / "root/proc/sys/net/mptcp"
    folder.mkdir(parents=True)
    (folder / "mptcp_enabled").write_text("1\n")
    (folder / "mptcp_scheduler").write_text("default\n")
    (tmp_path / "root/proc/sys/kernel").mkdir()
    (tmp_path / "root/proc/sys/kernel/osrelease").write_text("4.14.110\n")
    monkeypatch.setattr(kernels, "here", lambda: V094(tmp_path / "root"))
    assert main(["run", "--config", str(config), "--check"]) == 0
    said = capsys.readouterr().out
    assert "kernel: Multipath TCP v0.94, version 0; scheduler minsrtt" in said
    lacks = ("not in the field", "modprobe mptcp_fullmesh", "server must run such a kernel", "CAP_NET_RAW")
    for words in lacks:
        assert words in said


def test_a_bad_configuration_and_a_missing_token_are_one_line_and_status_2(config, capsys):
    (config.parent / "token").unlink()
    assert main(["run", "--config", str(config), "--check"]) == 2
    assert "hint: tandem-server probe add" in capsys.readouterr().err
    config.write_text(config.read_text().replace("seconds = 8.0", "secs = 8.0"))
    for arguments in (["run"], ["run", "--check"], ["watch"], ["status"], ["experiment", "run", "download"]):
        assert main([*arguments, "--config", str(config)]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert f"{config}:31: unknown key 'secs' in [runs]; hint: known are" in said


def test_a_running_collector_is_asked(config, capsys):
    for words in ("watch", "status"):
        assert main([words, "--config", str(config)]) == 1
        assert "no collector answers" in capsys.readouterr().err
    answers = Answers()
    server = StatusServer(listen(config.parent / "status.sock"), answers)
    server.start()
    command = ["experiment", "run", "download", "--config", str(config)]
    try:
        assert main([*command, "--pairing", "simultaneous", "--seconds", "4", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == {"runs": ["run-1"], "ok": True, "results": []}
        assert answers.asked == [{"experiment": "download", "pairing": "simultaneous", "seconds": 4.0}]
        answers.ended = {"runs": ["run-1"], "results": [], "ok": False}
        assert main([*command, "--kind", "tcp", "--path", "a"]) == 1
        assert main([*command, "--kind", "mptcp"]) == 3
        assert "another pair is running" in capsys.readouterr().err
        assert main(["status", "--config", str(config), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["probe"] == "probe-1"
    finally:
        server.stop()
